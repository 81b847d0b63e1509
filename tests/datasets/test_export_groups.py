"""Groups: who belongs to one, advantages, and marks."""

from __future__ import annotations

import dataclasses
import math
import statistics
from fractions import Fraction
from pathlib import Path
from typing import Any

import export_samples as samples
import pytest
from export_folders import read_rows

from tbmm_env.datasets.groups import MIXED, STD_EPS
from tbmm_env.datasets.grpo import export_grpo
from tbmm_env.datasets.selection import Selection
from tbmm_env.errors import UsageError
from tbmm_env.trajectory.store import Store


@pytest.fixture(scope="module")
def groups(store: Store, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Rows by group id."""
    out = tmp_path_factory.mktemp("grpo") / "out"
    export_grpo(store, out, Selection())
    return {row["group_id"]: row for row in read_rows(out)}


def test_a_row_is_a_group(groups: dict[str, dict[str, Any]]) -> None:
    assert len(groups) == 18
    for row in groups.values():
        assert [sample["sample_id"] for sample in row["samples"]] == list(range(len(row["samples"])))
        assert row["rewards"] == [sample["reward"] for sample in row["samples"]]
        assert row["advantages"] == [sample["advantage"] for sample in row["samples"]]
        assert [message["role"] for message in row["prompt"]] == ["system", "user"]
        assert all(sample["messages"][-1]["role"] == "assistant" for sample in row["samples"] if sample["messages"])
        places = sum(part["type"] == "image" for part in row["prompt"][1]["content"])
        assert places == len(row["images"]) == 2


def test_failures_of_the_agent_are_members_with_reward_0(groups: dict[str, dict[str, Any]]) -> None:
    row = groups[f"{samples.TASK}/7"]
    assert [sample["outcome"] for sample in row["samples"]] == ["scored", "scored", "infeasible", "missing"]
    assert row["rewards"] == [0.17, 0.27, 0.0, 0.0]
    assert row["samples"][3]["messages"] == []
    assert row["samples"][3]["truncated"]


def test_advantages_by_hand(groups: dict[str, dict[str, Any]]) -> None:
    row = groups[f"{samples.OTHER_TASK}/0"]
    assert row["rewards"] == [0.0, 0.25, 0.5, 0.75]
    assert row["advantages"] == [-0.375, -0.125, 0.125, 0.375]
    assert (row["reward_mean"], row["reward_mean_exact"]) == (0.375, "3/8")
    population = statistics.pstdev([0, 0.25, 0.5, 0.75])
    assert row["reward_std"] == pytest.approx(population)
    assert row["reward_std"] != pytest.approx(statistics.stdev([0, 0.25, 0.5, 0.75]))
    assert row["std_eps"] == STD_EPS
    assert row["advantages_normalised"] == pytest.approx([a / (population + STD_EPS) for a in row["advantages"]])


def test_every_group_has_zero_mean_advantage(groups: dict[str, dict[str, Any]]) -> None:
    for row in groups.values():
        assert math.fsum(row["advantages"]) == pytest.approx(0, abs=1e-12)


def test_constant_and_incomplete_groups_are_marked(groups: dict[str, dict[str, Any]]) -> None:
    assert {name for name, row in groups.items() if row["constant"]} == {f"{samples.TASK}/8", f"{samples.TASK}/9"}
    assert {name for name, row in groups.items() if row["incomplete"]} == {f"{samples.TASK}/10", f"{samples.TASK}/11"}
    constant = groups[f"{samples.TASK}/8"]
    assert constant["advantages"] == constant["advantages_normalised"] == [0.0] * 4
    assert constant["reward_std"] == 0


def test_a_group_is_constant_only_exactly(tmp_path: Path) -> None:
    third = Fraction(1, 3)
    rewards = [third, third + Fraction(1, 10**40)]
    made = [
        samples.episode(f"e{n}", 1, "scored", reward, group_id="g", sample_id=n) for n, reward in enumerate(rewards)
    ]
    export_grpo(samples.build(tmp_path / "store", made), tmp_path / "out", Selection())
    [row] = read_rows(tmp_path / "out")
    assert row["rewards"][0] == row["rewards"][1]
    assert not row["constant"]
    assert row["advantages"][0] == -row["advantages"][1] < 0


def test_the_size_of_a_whole_group(store: Store, tmp_path: Path) -> None:
    summary = export_grpo(store, tmp_path / "out", Selection(), group_size=8)
    assert all(row["incomplete"] and row["group_size"] == 8 for row in read_rows(tmp_path / "out"))
    assert summary.notes["groups with members missing, marked `incomplete`"] == 18
    with pytest.raises(UsageError, match="has 4 members; --group-size is 3"):
        export_grpo(store, tmp_path / "no", Selection(), group_size=3)
    with pytest.raises(UsageError, match="--group-size is 1"):
        export_grpo(store, tmp_path / "no", Selection(), group_size=1)


@pytest.mark.parametrize("change", [{"policy": "other"}, {"language": "en"}, {"budget": "contest"}, "instance"])
def test_a_group_compares_like_with_like(change: Any, tmp_path: Path) -> None:
    made = [samples.episode(f"e{n}", 1, "scored", Fraction(n, 4), group_id="g", sample_id=n) for n in range(2)]
    other = [samples.episode(f"f{n}", 2, "scored", Fraction(n, 4), group_id="h", sample_id=n) for n in range(2)]
    if change == "instance":
        change = {"instance": dataclasses.replace(made[1].instance, seed=2, parameters={"boards": 5})}
    made[1] = dataclasses.replace(made[1], **change)
    summary = export_grpo(samples.build(tmp_path / "store", [*made, *other]), tmp_path / "out", Selection())
    assert [row["group_id"] for row in read_rows(tmp_path / "out")] == ["h"]
    assert summary.left_out == {MIXED: 2}


def test_episodes_of_no_group_are_counted(store: Store, tmp_path: Path) -> None:
    summary = export_grpo(store, tmp_path / "out", Selection())
    assert summary.left_out["no group id: not of a rollout with groups"] == 12
