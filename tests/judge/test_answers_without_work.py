"""What can be left without solving the task earns nothing, in every task: others' answers, the judge's own words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tbmm_env import instances, tasks
from tbmm_env.judge.artifact import regular
from tbmm_env.judge.judge import Judge
from tbmm_env.labels import ARTIFACT_BYTES
from tbmm_env.record import Judgement


@pytest.fixture(scope="module", params=tasks.task_ids())
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    with Judge(tasks.load(request.param), artifact_bytes=ARTIFACT_BYTES) as made:
        yield made


def optimum(task_id: str) -> dict[str, Any]:
    """The best answer known to a task's official instance."""
    text = (tasks.load(task_id).folder / "submissions" / "scored" / "optimum.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def judged(judge: Judge, answer: object, seed: int | None = None) -> Judgement:
    instance = instances.official(judge.task) if seed is None else instances.sampled(judge.task, seed)
    return judge.judge(instance, regular(json.dumps(answer).encode()))


def test_the_optimum_earns_what_the_others_do_not(judge: Judge) -> None:
    assert judged(judge, optimum(judge.task.id)).reward > 0.9


def test_answers_of_other_tasks(judge: Judge) -> None:
    for name in tasks.task_ids():
        if name != judge.task.id:
            assert judged(judge, optimum(name)).reward == 0, name


def test_numbers_instead_of_decisions(judge: Judge) -> None:
    anchor = {key: float(value) for key, value in judge.task.anchor.items()}
    replays = dict.fromkeys([entry.name for entry in judge.task.replay_names], 1.0)
    for answer in ({"claims": anchor}, anchor, {"replay": replays}, replays, {"reward": 1, "score": 1, "o_eval": 1}):
        assert judged(judge, answer).reward == 0, answer


def test_the_official_answer_to_a_sampled_instance(judge: Judge) -> None:
    assert judged(judge, optimum(judge.task.id), seed=1).reward <= 0.5
