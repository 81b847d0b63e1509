"""Splits: which one an instance belongs to."""

from __future__ import annotations

import dataclasses

import pytest

from tbmm_env import instances, splits, tasks
from tbmm_env.record import Instance

TASK = tasks.load("cumcm-2024-a")


@pytest.mark.parametrize(
    ("seed", "split"),
    [(0, "training"), (2**31 - 1, "training"), (2**31, "evaluation"), (2**63 - 1, "evaluation"), (None, "given")],
)
def test_the_seed_says_the_split(seed: int | None, split: str) -> None:
    instance = dataclasses.replace(instances.sampled(TASK, 3), seed=seed)
    assert splits.split_of(instance) == split


def test_official_parameters_are_official_whatever_the_seed() -> None:
    official = instances.official(TASK)
    assert splits.split_of(official) == "official"
    assert splits.split_of(dataclasses.replace(official, seed=3)) == "official"
    assert splits.split_of(instances.given(TASK, dict(official.parameters))) == "official"


@pytest.mark.parametrize(("seed", "split"), [(None, "given"), (3, "training"), (2**40, "evaluation")])
def test_a_task_that_is_not_here_is_judged_by_its_seed(seed: int | None, split: str) -> None:
    assert splits.split_of(Instance(task="probe", version="1", seed=seed, parameters={})) == split


def test_evaluation_seeds_can_be_sampled() -> None:
    assert splits.split_of(instances.sampled(TASK, 2**62 + 1)) == "evaluation"
