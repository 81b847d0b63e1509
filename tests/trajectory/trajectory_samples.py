"""Episodes for the trajectory tests, and what it means that two are equal."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tbmm_env.record import Artifact, Episode, Instance, Observation, Step, Turn
from tbmm_env.trajectory import schema


def values_equal(left: Any, right: Any) -> bool:
    """Whether two values are the same to the last bit: type, sign of zero, NaN payload, byte order, key order."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return list(left) == list(right) and all(values_equal(left[key], right[key]) for key in left)
    if type(left) is not type(right):
        return False
    if dataclasses.is_dataclass(left):
        names = [field.name for field in dataclasses.fields(left)]
        return all(values_equal(getattr(left, name), getattr(right, name)) for name in names)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(values_equal, left, right))
    if isinstance(left, np.ndarray | np.generic):
        return left.dtype.str == right.dtype.str and left.shape == right.shape and left.tobytes() == right.tobytes()
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    return bool(left == right)


def episodes_equal(left: Episode, right: Episode) -> bool:
    """Whether two episodes are the same; ``==`` cannot say so for arrays."""
    return values_equal(left, right)


def image(seed: int, height: int = 6, width: int = 9) -> np.ndarray:
    """A small picture, the same for the same seed."""
    y, x, channel = np.indices((height, width, 3))
    return ((seed * 31 + y * 7 + x * 3 + channel * 50) % 256).astype(np.uint8)


def artifact(data: bytes) -> Artifact:
    """An artifact as collected."""
    return Artifact(status="regular", data=data, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def small(number: int, steps: int = 2) -> Episode:
    """An episode of a few hundred bytes, different for each number."""
    return Episode(
        episode_id=f"episode-{number}",
        instance=Instance(task="cumcm-2024-a", version="1", seed=number, parameters={"pitch_m": 0.55}),
        budget="train",
        language="zh",
        sandbox="bwrap",
        limits={"steps": 30},
        versions={"tbmm_env": "0.1.0"},
        first_observation=Observation(terminal="题目：板凳龙\n", figures=(image(0),)),
        steps=tuple(
            Step(
                action=f"echo {number} {step}",
                observation=Observation(terminal=f"{number} {step}\n[exit 0]\n", figures=()),
                exit_status=0,
                ending="exited",
                started_s=float(step),
                wall_s=0.125,
            )
            for step in range(steps)
        ),
        artifact=artifact(b'{"n": %d}' % number),
        judgement={"outcome": "scored", "reward": 0.5},
        certificate_text="theorem reward : True := True.intro\n",
        terminated=True,
        truncated=False,
        started_unix_s=1.7e9,
        wall_s=12.5,
    )


def golden() -> Episode:
    """The first episode kept for ever in ``trajectories/golden``; it holds every kind of value once."""
    return dataclasses.replace(
        small(7),
        episode_id="黄金样本-\ud800",
        instance=Instance(task="cumcm-2024-a", version="1", seed=2**70, parameters={"list": [1, -1, [], {}, None]}),
        steps=(
            Step(
                action="view 图.png \udcff",
                observation=Observation(terminal="图 1 of 2 🐉\x00", figures=(image(1), image(0), image(1))),
                exit_status=None,
                ending="wall_limit",
                started_s=0.1,
                wall_s=float("inf"),
            ),
            Step(
                action="submit",
                observation=Observation(terminal="", figures=()),
                exit_status=137,
                ending=None,
                started_s=1,
                wall_s=np.float32(0.1),
            ),
        ),
        extra={
            "integers": [0, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**100, -(10**100)],
            "floats": [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 0.1],
            "fraction": Fraction(-(10**30), 7),
            "bytes": bytes(range(256)),
            "tuple": ((), (1, ("two", [3.0]))),
            "\udfff": "\ud83d\ude00",
            "scalars": [np.bool_(True), np.int8(-1), np.uint64(2**64 - 1), np.float16(0.5), np.complex128(1 - 2j)],
            "arrays": [np.arange(6, dtype=">i4").reshape(2, 3), np.zeros((0, 4)), np.array(1.5, dtype=np.float32)],
            "turns": [{"prompt_token_ids": [1, 2, 3], "logprobs": [-0.5, -1.25], "finish_reason": "stop"}],
        },
    )


def turn() -> Turn:
    """A turn of a model that told everything."""
    return Turn(
        completion="<think>先看图</think>view 图.png \ud83d",
        prompt_token_ids=np.arange(5, dtype=np.int64) * 2**40,
        completion_token_ids=np.array([7, -1, 151_643], dtype=np.int64),
        logprobs=np.array([-0.5, -np.inf, np.nan], dtype=np.float32),
        finish_reason="tool_calls",
        sampling={"temperature": 0.7, "top_p": 1, "seed": 2**63, "stop": ["</s>"], "adapter": None},
        weight_version="step-120",
    )


def golden_2() -> Episode:
    """The episode of schema version 2: what a model did at a turn, and where the episode came from."""
    episode = golden()
    quiet = Turn(completion="submit")
    steps = tuple(dataclasses.replace(step, turn=one) for step, one in zip(episode.steps, (turn(), quiet), strict=True))
    last = dataclasses.replace(episode.steps[0], turn=None)
    origin: dict[str, Any] = {"job": "板凳龙/7/0", "group_id": "cumcm-2024-a/7", "sample_id": 3, "policy": "oracle"}
    return dataclasses.replace(episode, steps=(*steps, last), **origin)


def encode(episode: Episode) -> tuple[bytes, dict[str, bytes]]:
    """The record of an episode, and its blobs by sha256."""
    blobs: dict[str, bytes] = {}
    return schema.encode(episode, lambda kind, sha256, data: blobs.update({f"{kind} {sha256}": data()})), blobs


def fetcher(blobs: Mapping[str, bytes]) -> Callable[[str, str], bytes]:
    """What ``decode`` asks for blobs."""
    return lambda kind, sha256: blobs[f"{kind} {sha256}"]


def through_bytes(episode: Episode) -> Episode:
    """An episode after writing and reading."""
    data, blobs = encode(episode)
    return schema.decode(data, fetcher(blobs))
