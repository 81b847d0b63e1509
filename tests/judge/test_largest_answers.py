"""The largest answers that a schema allows are judged, whatever their numbers, within the limits of the judge."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tbmm_env import instances, tasks
from tbmm_env.judge.artifact import regular
from tbmm_env.judge.judge import Judge
from tbmm_env.limits import PRESETS
from tbmm_env.rollout.template import random_answer


class Least(random.Random):
    """Draws the least number of every range."""

    def uniform(self, a: float, b: float) -> float:
        return a

    def randint(self, a: int, b: int) -> int:
        return a


class Most(random.Random):
    """Draws the greatest number of every range."""

    def uniform(self, a: float, b: float) -> float:
        return b

    def randint(self, a: int, b: int) -> int:
        return b


def items(answer: Any) -> int:
    """The numbers of an answer."""
    if isinstance(answer, dict):
        return sum(map(items, answer.values()))
    return sum(map(items, answer)) if isinstance(answer, list) else 1


@pytest.mark.lean
@pytest.mark.parametrize("task_id", tasks.task_ids())
def test_the_largest_answers_are_judged(task_id: str) -> None:
    task = tasks.load(task_id)
    draws = [Least(), Most(), random.Random(1), random.Random(2)]
    answers = [random_answer(task.answer_schema, rng, full=True) for rng in draws]
    assert len(set(map(items, answers))) == 1
    assert items(answers[0]) >= items(random_answer(task.answer_schema, random.Random(3)))
    with Judge(task, artifact_bytes=PRESETS["contest"].artifact_bytes) as judge:
        for instance in [
            instances.official(task),
            *(instances.sampled(task, seed) for seed in (0, instances.levels(task) - 1)),
        ]:
            for answer in answers:
                judgement = judge.judge(instance, regular(json.dumps(answer).encode()))
                assert judgement.outcome in ("scored", "infeasible"), judgement.reason
                assert judgement.certificate is not None
                assert judgement.certificate.accepted
                assert judgement.reward <= 1
