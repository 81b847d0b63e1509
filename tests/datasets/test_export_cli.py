"""``tbmm export`` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import export_samples as samples
import pytest
from export_folders import read_rows

from tbmm_env.cli import main
from tbmm_env.instances import instance_json
from tbmm_env.trajectory.store import Store


@pytest.mark.parametrize("name", ["rs", "sft", "grpo", "turns", "parquet", "atif"])
def test_each_format(name: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["export", name, str(store.path), str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.pop("out") == str(out)
    assert told == json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert told["read"] == told["episodes"] + sum(told["left_out"].values()) == samples.RECORDS
    assert main(["export", name, str(store.path), str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["export", name, str(store.path), str(out), "--force"]) == 0
    table = capsys.readouterr().out
    assert f"{name}: {told['episodes']} of 100 episodes went in" in table
    assert "Left out" in table
    assert "evaluation instance" in table


def test_arguments_reach_the_export(store: Store, tmp_path: Path) -> None:
    store_path, out = str(store.path), tmp_path / "out"
    arguments = ["--top-k", "2", "--min-reward", "1/4", "--arguments", "string", "--images", "none"]
    assert main(["export", "rs", store_path, str(out), *arguments, "--task", samples.TASK]) == 0
    rows = read_rows(out)
    assert min(row["reward"] for row in rows) >= 0.25
    assert {row["task"] for row in rows} == {samples.TASK}
    assert max(row["rank"] for row in rows) == 2
    assert isinstance(rows[0]["messages"][2]["tool_calls"][0]["function"]["arguments"], str)


def test_training_and_evaluation_in_one_file_is_refused(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["--split", "training", "--split", "evaluation"]
    assert main(["export", "parquet", str(store.path), str(tmp_path / "out"), *both]) == 2
    assert "never in one export" in capsys.readouterr().err
    assert main(["export", "sft", str(store.path), str(tmp_path / "out"), "--split", "evaluation"]) == 2
    assert "sft is training data" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_evaluation_instances_are_kept_out(store: Store, tmp_path: Path) -> None:
    arguments = []
    for seed in samples.HASHED_SEEDS:
        path = tmp_path / f"{seed}.json"
        path.write_text(json.dumps(instance_json(samples.episode("e", seed).instance)), encoding="utf-8")
        arguments += ["--evaluation", str(path)]
    assert main(["export", "sft", str(store.path), str(tmp_path / "out"), *arguments]) == 0
    assert not [row for row in read_rows(tmp_path / "out") if row["episode_id"].startswith("hashed-")]


@pytest.mark.parametrize("text", ["1.5", "-0.1", "x", "1/0"])
def test_a_least_reward_is_in_0_to_1(text: str, store: Store, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["export", "rs", str(store.path), str(tmp_path / "out"), f"--min-reward={text}"])
    assert stopped.value.code == 2


@pytest.mark.parametrize("name", ["grpo", "turns"])
def test_groups_are_not_cut_by_reward(name: str, store: Store, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["export", name, str(store.path), str(tmp_path / "out"), "--min-reward", "0.5"])
