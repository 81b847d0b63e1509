"""Budgets: presets, and refusals that say value and limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tbmm_env.limits import CONTEST, GIB, MIB, TRAIN


def test_presets_are_those_documented() -> None:
    assert (CONTEST.episode_wall_s, CONTEST.steps, CONTEST.step_wall_s) == (4 * 3600, 200, 900)
    assert (CONTEST.cpus, CONTEST.memory_bytes) == (2, 8 * GIB)
    assert (TRAIN.episode_wall_s, TRAIN.steps, TRAIN.step_wall_s) == (600, 30, 120)
    assert (TRAIN.cpus, TRAIN.memory_bytes) == (1, 2 * GIB)
    assert CONTEST.step_output_bytes == TRAIN.step_output_bytes == 64 * 1024


@pytest.mark.parametrize("field", ["steps", "episode_wall_s", "memory_bytes", "pids", "view_pixels"])
def test_a_budget_must_be_positive(field: str) -> None:
    with pytest.raises(ValueError, match=f"limit {field} is 0"):
        replace(TRAIN, **{field: 0})


def test_tmpfs_must_fit_in_memory() -> None:
    fits = replace(TRAIN, memory_bytes=1024 * MIB, workspace_bytes=831 * MIB)
    assert fits.workspace_bytes == 831 * MIB
    with pytest.raises(ValueError, match="must be smaller"):
        replace(TRAIN, memory_bytes=1024 * MIB, workspace_bytes=832 * MIB)
