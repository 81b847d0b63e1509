"""A store of 100 records with everything that an export has to cope with; no box is needed."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tbmm_env.judge.numeral import exact_text
from tbmm_env.problems import module_for
from tbmm_env.record import Artifact, Episode, Instance, Observation, Step, Turn
from tbmm_env.trajectory.store import Store

TASK, OTHER_TASK = "cumcm-2024-a", "mcm-2031-z"
"""The second one is of no installed task."""

RECORDS = 100
HASHED_SEEDS = (40, 41)
"""Seeds of instances that only ``--evaluation`` says are for evaluation."""

STATEMENT = "题目：板凳龙 🐉\nFind the decisions.\n"
JUNK = "\x00\x01\ufffd\x7f binary \ud800 \u2028 text\n"


def picture(seed: int) -> np.ndarray:
    """A small picture, the same for the same seed."""
    y, x, channel = np.indices((5, 7, 3))
    return ((seed * 31 + y * 7 + x * 3 + channel * 50) % 256).astype(np.uint8)


def judgement(outcome: str, reward: Fraction, **changes: Any) -> dict[str, Any]:
    """What the judge reports, as far as exports read it."""
    certificate = {"accepted": True, "sha256": "0" * 64, "theorems": ["reward"]}
    return {
        "outcome": outcome,
        "reward": float(reward),
        "reward_exact": exact_text(reward),
        "panel_version": "2026-11",
        "judge_version": "7",
        "certificate": certificate if outcome in ("scored", "infeasible") else None,
        "metrics": [{"key": "半径_m", "value": 1.5, "value_exact": "3/2"}],
        "notes": [],
    } | changes


def artifact(text: str) -> Artifact:
    """An answer as collected; empty text means that there is none."""
    if not text:
        return Artifact(status="missing")
    data = text.encode()
    return Artifact(status="regular", data=data, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def step(number: int, action: str, terminal: str = "", *, turn: Turn | None = None, figures: int = 0) -> Step:
    """One step; its numbers are numpy's, as a careless recorder would leave them."""
    return Step(
        action=action,
        observation=Observation(
            terminal=terminal or f"输出 {number}\n[exit status 0]\n",
            figures=tuple(picture(100 + number + index) for index in range(figures)),
        ),
        exit_status=np.int64(0),  # type: ignore[arg-type]
        ending="exited",
        started_s=np.float64(number),
        wall_s=0.25,
        turn=turn,
    )


def turn(prompt: list[int], completion: list[int], *, logprobs: bool = True, text: str = "", **sampling: Any) -> Turn:
    """A turn of a model."""
    return Turn(
        completion=text,
        prompt_token_ids=np.array(prompt, dtype=np.int64),
        completion_token_ids=np.array(completion, dtype=np.int64),
        logprobs=np.array([-0.5 - index for index in range(len(completion))] if logprobs else [], dtype=np.float32),
        finish_reason="stop",
        sampling=sampling or {"temperature": 0.7, "top_p": 1},
        weight_version="step-3",
    )


def episode(
    name: str, seed: int | None, outcome: str = "scored", reward: Fraction = Fraction(0), **changes: Any
) -> Episode:
    """An episode of two actions."""
    made = Episode(
        episode_id=name,
        instance=Instance(task=TASK, version="1", seed=seed, parameters={"boards": 100 + (seed or 0), "pitch_m": 0.55}),
        budget="train",
        language="zh",
        sandbox="bwrap",
        limits={"steps": 30},
        versions={"tbmm_env": "0.1.0", "panel": "2026-11"},
        first_observation=Observation(terminal=STATEMENT, figures=(picture(1), picture(2))),
        steps=(step(0, f"echo {name} > 答案.txt"), step(1, "submit")),
        artifact=artifact("" if outcome == "missing" else f'{{"name": "{name}"}}'),
        judgement=judgement(outcome, reward),
        certificate_text="theorem reward : True := True.intro\n",
        terminated=outcome != "missing",
        truncated=outcome == "missing",
        started_unix_s=1.7e9,
        wall_s=12.5,
    )
    return dataclasses.replace(made, **changes)


# ---------------------------------------------------------------- the 100 records


def _groups() -> Iterator[Episode]:
    """12 groups on the first task: 8 whole, 2 constant, 2 incomplete; 46 episodes."""
    outcomes = ("scored", "scored", "infeasible", "malformed")
    for group in range(12):
        for sample in range(3 if group >= 10 else 4):
            outcome = "scored" if group in (8, 9) else outcomes[sample]
            if group == 7 and sample == 3:
                outcome = "missing"
            reward = Fraction(1, 3) if group in (8, 9) else Fraction(sample + 1, 10) + Fraction(group, 100)
            name = f"group-{group}-{sample}"
            changes: dict[str, Any] = {"policy": "random-template"}
            if outcome == "missing":
                changes["steps"] = ()
            elif sample == 1:
                changes["steps"] = (
                    step(0, "view 图.png \udcff", figures=2),
                    step(1, f"printf {group}", JUNK, figures=1),
                    dataclasses.replace(step(2, "sleep 1"), exit_status=None, ending="wall_limit", wall_s=float("nan")),
                    step(3, "submit"),
                )
                changes["extra"] = {
                    "fraction": Fraction(1, 3),
                    "bytes": b"\x00\xff",
                    "big": 10**30,
                    "infinite": float("inf"),
                    "array": np.arange(3),
                }
            yield episode(
                name,
                group,
                outcome,
                reward if outcome == "scored" else Fraction(0),
                group_id=f"{TASK}/{group}",
                sample_id=sample,
                job=f"job {name}",
                **changes,
            )


def _model_steps(group: int, sample: int) -> tuple[Step, ...]:
    prompt = [1, 2, 3 + group]
    first = turn(
        prompt,
        [10, 11],
        logprobs=sample != 2,
        text='<think>想一想</think>\n<tool_call>\n{"command": "ls"}\n</tool_call>',
    )
    base = [*prompt, 10, 11, 20, 21]
    second = turn([9, 9] if sample == 3 else base, [12], logprobs=sample != 2, text="now `submit` it")
    if group == 4 and sample == 0:
        second = dataclasses.replace(second, prompt_token_ids=np.zeros(0, dtype=np.int64))
    if group == 4 and sample == 1:
        second = dataclasses.replace(second, logprobs=np.array([-np.inf], dtype=np.float32))
    return step(0, "ls", turn=first), step(1, "submit", turn=second)


def _model_groups() -> Iterator[Episode]:
    """6 groups of 4 on the second task, played by a model; 24 episodes."""
    for group in range(6):
        for sample in range(4):
            name = f"model-{group}-{sample}"
            yield episode(
                name,
                group,
                "scored",
                Fraction(sample, 4),
                instance=Instance(task=OTHER_TASK, version="2", seed=group, parameters={"其他": [group, None]}),
                language="en",
                policy="model:Qwen",
                group_id=f"{OTHER_TASK}/{group}",
                sample_id=np.int64(sample),
                job=f"job {name}",
                steps=_model_steps(group, sample),
            )


def _by_hand() -> Iterator[Episode]:
    """10 episodes without a group: two answers three times each, one list of actions twice, two of their own."""
    for number in range(10):
        changes: dict[str, Any] = {}
        if number < 6:
            changes["artifact"] = artifact(f'{{"same": {number // 3}}}')
        elif number < 8:
            changes["steps"] = (step(0, "python3 solve.py"), step(1, "submit"))
        yield episode(
            f"hand-{number}", 20, "scored", Fraction(number // 2, 10), started_unix_s=1.7e9 + number, **changes
        )


def _kept_out() -> Iterator[Episode]:
    """20 records that a training export must not take: see the comments."""
    official = dict(module_for(TASK).OFFICIAL)
    for number in range(5):  # official, one of them under a training seed
        seed = 77 if number == 4 else None
        instance = Instance(task=TASK, version="1", seed=seed, parameters=official)
        yield episode(f"official-{number}", seed, "scored", Fraction(9, 10), instance=instance)
    for number in range(3):  # parameters of somebody's own
        yield episode(f"given-{number}", None, "scored", Fraction(9, 10))
    for number in range(5):  # seeds for evaluation
        yield episode(f"evaluation-{number}", 2**31 + number, "scored", Fraction(9, 10))
    for number in range(2):  # said to be for evaluation
        yield episode(f"said-{number}", 30 + number, "scored", Fraction(9, 10), extra={"split": "evaluation"})
    for seed in HASHED_SEEDS:  # only the hash of the instance tells, or --evaluation
        yield episode(f"hashed-{seed}", seed, "scored", Fraction(9, 10))
    yield episode("group-0-0", 0, "scored", Fraction(9, 10), started_unix_s=1.8e9)  # the same episode once more
    refused = judgement("scored", Fraction(9, 10), certificate={"accepted": False})
    yield episode("not-certified", 50, "scored", Fraction(9, 10), judgement=refused)
    yield episode("not-judged", 51, judgement={})


def records() -> list[Episode]:
    """All of them."""
    made = [*_groups(), *_model_groups(), *_by_hand(), *_kept_out()]
    assert len(made) == RECORDS
    return made


def build(path: Path, episodes: list[Episode] | None = None) -> Store:
    """Write a store."""
    store = Store(path, durable=False)
    for one in records() if episodes is None else episodes:
        store.append(one)
    store.close()
    return store
