"""Stored episodes as values that ``json.dumps`` takes, for people and programs that do not read the format.

What JSON does not have is written so that it can be seen: fractions as ``"1/3"``, numbers that are not finite as
``"NaN"``, ``"Infinity"`` and ``"-Infinity"``, bytes as ``{"base64": ...}``, lone surrogates as ``\\udXXX``.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tbmm_env.instances import instance_json
from tbmm_env.record import Episode, JsonValue, Observation, Step, Turn
from tbmm_env.trajectory.schema import Summary


def plain(value: Any) -> JsonValue:
    """Return any storable value as JSON, see the module."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    return str(value)


def visible(text: str) -> str:
    """Return a text without anything that a terminal obeys: controls and what is not Unicode are spelt out."""
    spelt = text.encode("utf-8", "backslashreplace").decode()
    return "".join(
        one if one in "\n\t" or one.isprintable() else one.encode("unicode_escape").decode() for one in spelt
    )


def shown(value: JsonValue) -> JsonValue:
    """Return a JSON value with every text in it made ``visible``."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {visible(key): shown(item) for key, item in value.items()}
    return value


def summary_json(summary: Summary) -> dict[str, JsonValue]:
    """Return a summary as a flat JSON object: task and seed instead of the instance, every other field by name."""
    fields = {name: getattr(summary, name) for name in Summary.__slots__ if name != "instance"}
    instance = {"task": summary.instance.task, "task_version": summary.instance.version, "seed": summary.instance.seed}
    return {name: plain(value) for name, value in (instance | fields).items()}


def _figure(pixels: NDArray[np.uint8]) -> JsonValue:
    return {"height": pixels.shape[0], "width": pixels.shape[1]}


def _observation(observation: Observation) -> JsonValue:
    return {"terminal": plain(observation.terminal), "figures": [_figure(one) for one in observation.figures]}


def _turn(turn: Turn, arrays: bool) -> JsonValue:
    fields = {name: getattr(turn, name) for name in Turn.__slots__}
    for name in ("prompt_token_ids", "completion_token_ids", "logprobs"):
        if not arrays:
            fields[name] = {"length": len(fields[name])}
    return plain(fields)


def _step(step: Step, arrays: bool) -> JsonValue:
    return {
        "action": plain(step.action),
        "observation": _observation(step.observation),
        "exit_status": plain(step.exit_status),
        "ending": step.ending,
        "started_s": plain(step.started_s),
        "wall_s": plain(step.wall_s),
        "turn": None if step.turn is None else _turn(step.turn, arrays),
    }


def episode_json(episode: Episode, *, arrays: bool = True) -> dict[str, JsonValue]:
    """Return a whole episode as a JSON object.

    Args:
        episode: as stored.
        arrays: token ids and logprobs as lists, or only their lengths. Figures are always only their sizes, and the
            answer is its text (bytes that are not UTF-8 as ``\\xHH``).
    """
    artifact = episode.artifact
    own: dict[str, JsonValue] = {
        "instance": plain(instance_json(episode.instance)),
        "first_observation": _observation(episode.first_observation),
        "steps": [_step(step, arrays) for step in episode.steps],
        "artifact": {
            "status": artifact.status,
            "size_bytes": plain(artifact.size_bytes),
            "sha256": plain(artifact.sha256),
            "text": artifact.data.decode("utf-8", "backslashreplace"),
        },
    }
    return {name: own[name] if name in own else plain(getattr(episode, name)) for name in Episode.__slots__}
