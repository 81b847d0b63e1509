"""Parquet rows and ATIF trajectories against the episodes they were made of."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import export_samples as samples
import numpy as np
import pyarrow.parquet
import pytest

from tbmm_env.datasets.atif import export_atif
from tbmm_env.datasets.parquet import export_parquet, schema
from tbmm_env.datasets.selection import Selection
from tbmm_env.errors import UsageError
from tbmm_env.record import Episode
from tbmm_env.trajectory.store import Store

RECORDS = {one.episode_id: one for one in reversed(samples.records())}


@pytest.fixture(scope="module")
def table(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All rows."""
    out = tmp_path_factory.mktemp("parquet") / "out"
    summary = export_parquet(store, out, Selection(), rows_per_file=30)
    assert summary.files == ["episodes-00000.parquet", "episodes-00001.parquet", "episodes-00002.parquet"]
    parts = [pyarrow.parquet.read_table(out / name) for name in summary.files]
    assert [part.num_rows for part in parts] == [30, 30, 22]
    assert all(part.schema.equals(schema()) for part in parts)
    return pyarrow.concat_tables(parts)


def replaced(text: str) -> str:
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").replace("\ufffd\ufffd\ufffd", "\ufffd")


def test_a_row_is_the_episode(table: Any) -> None:
    rows = table.to_pylist()
    assert len(rows) == 82
    for row in rows:
        episode = RECORDS[row["episode_id"]]
        _same_episode(row, episode)
        assert len(row["steps"]) == len(episode.steps)
        for got, step in zip(row["steps"], episode.steps, strict=True):
            assert got["action"] == replaced(step.action)
            assert got["terminal"] == replaced(step.observation.terminal)
            assert got["exit_status"] == step.exit_status
            assert got["wall_s"] == step.wall_s or math.isnan(got["wall_s"]) and math.isnan(step.wall_s)
            assert len(got["figures"]) == len(step.observation.figures)
            _same_turn(got, step.turn)


def _same_episode(row: dict[str, Any], episode: Episode) -> None:
    assert row["instance_seed"] == episode.instance.seed
    assert row["artifact"] == episode.artifact.data
    assert row["artifact_sha256"] == episode.artifact.sha256
    assert Fraction(row["reward_exact"]) == Fraction(episode.judgement["reward_exact"])
    assert json.loads(row["parameters_json"]) == episode.instance.parameters
    assert json.loads(row["judgement_json"]) == episode.judgement
    assert row["prompt"] == samples.STATEMENT
    assert (row["terminated"], row["policy"], row["job"]) == (episode.terminated, episode.policy, episode.job)


def _same_turn(got: dict[str, Any], turn: Any) -> None:
    assert got["has_turn"] == (turn is not None)
    if turn is None:
        assert got["prompt_token_ids"] is got["logprobs"] is None
        return
    assert got["prompt_token_ids"] == turn.prompt_token_ids.tolist()
    assert got["completion_token_ids"] == turn.completion_token_ids.tolist()
    assert np.array_equal(got["logprobs"], turn.logprobs)
    assert json.loads(got["sampling_json"]) == turn.sampling
    assert got["completion"] == turn.completion


def test_values_without_a_json_form(table: Any) -> None:
    extra = json.loads(next(row for row in table.to_pylist() if row["episode_id"] == "group-0-1")["extra_json"])
    assert extra == {"fraction": "1/3", "bytes": "AP8=", "big": str(10**30), "infinite": None, "array": [0, 1, 2]}


def test_a_row_a_file(store: Store, tmp_path: Path) -> None:
    selection = Selection(tasks=frozenset({samples.OTHER_TASK}))
    summary = export_parquet(store, tmp_path / "out", selection, rows_per_file=1)
    assert len(summary.files) == summary.rows == 24
    with pytest.raises(UsageError, match="--rows-per-file is 0"):
        export_parquet(store, tmp_path / "no", selection, rows_per_file=0)


def test_without_pyarrow_the_way_out_is_named(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"pip install 'tbmm-env\[datasets\]'"):
        export_parquet(store, tmp_path / "out", Selection())


# ---------------------------------------------------------------- ATIF


@pytest.fixture(scope="module")
def trajectories(store: Store, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Objects by episode id."""
    out = tmp_path_factory.mktemp("atif") / "out"
    summary = export_atif(store, out, Selection())
    assert summary.rows == len(summary.files) == 82
    found = {}
    for name in summary.files:
        made = json.loads((out / name).read_text(encoding="utf-8"))
        found[made["session_id"]] = made
        for path in _images(made):
            assert (out / path).is_file()
    return found


def _images(trajectory: dict[str, Any]) -> Iterator[str]:
    for step in trajectory["steps"]:
        contents = [step["message"], *(result["content"] for result in step.get("observation", {}).get("results", []))]
        for content in contents:
            if isinstance(content, list):
                yield from (part["source"]["path"] for part in content if part["type"] == "image")


def test_a_trajectory_is_the_episode(trajectories: dict[str, dict[str, Any]]) -> None:
    assert len(trajectories) == 82
    for name, made in trajectories.items():
        episode = RECORDS[name]
        first, *steps = made["steps"]
        assert first["source"] == "user"
        assert first["message"][0] == {"type": "text", "text": samples.STATEMENT}
        assert [step["step_id"] for step in made["steps"]] == list(range(1, len(episode.steps) + 2))
        calls = [step["tool_calls"][0]["tool_call_id"] for step in steps]
        assert len(set(calls)) == len(calls)
        for step, played in zip(steps, episode.steps, strict=True):
            [call] = step["tool_calls"]
            [result] = step["observation"]["results"]
            assert call["arguments"] == {"command": replaced(played.action)}
            assert result["source_call_id"] == call["tool_call_id"]
            assert result["extra"]["exit_status"] == played.exit_status
        assert made["final_metrics"]["extra"]["reward_exact"] == episode.judgement["reward_exact"]
        assert made["extra"]["judgement"]["outcome"] == episode.judgement["outcome"]


def test_tokens_are_in_the_metrics(trajectories: dict[str, dict[str, Any]]) -> None:
    made = trajectories["model-1-1"]
    assert made["agent"]["name"] == "model:Qwen"
    assert made["agent"]["version"] == "step-3"
    metrics = made["steps"][1]["metrics"]
    assert metrics["prompt_token_ids"] == [1, 2, 4]
    assert metrics["completion_token_ids"] == [10, 11]
    assert metrics["logprobs"] == [-0.5, -1.5]
    assert made["final_metrics"]["total_completion_tokens"] == 3
    assert made["steps"][1]["message"] == "<think>想一想</think>"
    assert "metrics" not in trajectories["group-0-0"]["steps"][1]
    assert "logprobs" not in trajectories["model-4-1"]["steps"][2]["metrics"], "not finite: JSON has no such number"
