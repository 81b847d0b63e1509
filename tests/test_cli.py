"""The command line: exit codes, JSON, tables, and one clear sentence for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tbmm_env import tasks
from tbmm_env.cli import main
from tbmm_env.sandbox.base import Sandbox

TASK = "cumcm-2024-a"
SUBMISSIONS = tasks.load(TASK).folder / "submissions"

Capture = pytest.CaptureFixture[str]


def test_list(capsys: Capture) -> None:
    assert main(["list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["task"] for row in rows] == tasks.task_ids()
    assert main(["list"]) == 0
    assert "板凳龙" in capsys.readouterr().out


def test_show(capsys: Capture) -> None:
    assert main(["show", TASK, "--json", "--language", "zh", "--instance", "sampled", "--seed", "3"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["task"] == TASK
    assert "板凳" in shown["statement"]
    assert len(shown["metrics"]) == 4
    assert main(["show", TASK]) == 0
    assert "q5_head_speed_mps" in capsys.readouterr().out


def test_judge_json_has_the_promised_fields(capsys: Capture, tmp_path: Path) -> None:
    certificate = tmp_path / "证书.lean"
    answer = SUBMISSIONS / "scored" / "optimum.json"
    assert main(["judge", TASK, str(answer), "--json", "--certificate", str(certificate)]) == 0
    result = json.loads(capsys.readouterr().out)
    for field in ("task", "instance", "outcome", "reward", "reward_exact", "o_eval", "verified"):
        assert field in result
    assert result["reward"] == pytest.approx(1, abs=0.05)
    for field in ("key", "value", "claimed", "references", "reason"):
        assert field in result["metrics"][0]
    assert {"id", "form", "status"} <= set(result["obligations"][0])
    assert result["certificate"]["accepted"] is True
    assert result["certificate"]["axioms"] == []
    assert result["certificate"]["path"] == str(certificate)
    assert "theorem" in certificate.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("scored/five_percent_worse.json", "scored"),
        ("infeasible/v2.json", "infeasible"),
        ("malformed/nan.json", "malformed"),
        ("none.json", "missing"),
    ],
)
def test_judge_tables_and_exit_code_0_whatever_the_outcome(capsys: Capture, answer: str, outcome: str) -> None:
    assert main(["judge", TASK, str(SUBMISSIONS / answer)]) == 0
    assert outcome in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "cumcm-1999-z"], "unknown task 'cumcm-1999-z'"),
        (["judge", TASK, "x.json", "--instance-file", "no.json"], "no.json: cannot be read"),
        (["run", TASK, "--agent", "human"], "policy is 'human'"),
        (["run", TASK, "--agent", "script:no.txt"], "script no.txt: cannot be read"),
        (["run", TASK, "--agent", "nop", "--seed", "3"], "--seed goes with --instance sampled"),
        (["run", TASK, "--agent", "nop", "--instance", "sampled", "--seed", "-3"], "instance seed is -3"),
    ],
)
def test_bad_input_is_exit_code_2_and_a_sentence(capsys: Capture, arguments: list[str], said: str) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert main([*arguments, "--json"]) == 2
    assert said in json.loads(capsys.readouterr().out)["error"]


def test_certificate_path_that_cannot_be_written(capsys: Capture, tmp_path: Path) -> None:
    answer = str(SUBMISSIONS / "scored" / "optimum.json")
    assert main(["judge", TASK, answer, "--certificate", str(tmp_path / "no" / "x.lean")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_wrong_usage_is_exit_code_2(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["judge"])
    assert caught.value.code == 2


def test_our_own_failure_is_exit_code_3(capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TBMM_LEAN", str(tmp_path / "no-lean"))
    answer = str(SUBMISSIONS / "scored" / "optimum.json")
    assert main(["judge", TASK, answer, "--json"]) == 3
    result = json.loads(capsys.readouterr().out)
    assert result["kind"] == "LeanUnavailable"
    assert "reward" not in result


def test_doctor(capsys: Capture, bwrap_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["healthy"] is True
    monkeypatch.setenv("TBMM_IMAGE_DIR", str(tmp_path))
    assert main(["doctor"]) == 1
    assert "tbmm image build" in " ".join(capsys.readouterr().out.split())


def test_a_store_that_cannot_be_written_is_known_before_the_episode(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert main(["run", TASK, "--agent", "nop", "--sandbox", "bwrap", "--out", str(tmp_path / "file")]) == 2
    said = capsys.readouterr().err
    assert "--out" in said
    assert "step 1" not in said


def test_import_of_something_else(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "x.tar.zst").write_bytes(b"{}")
    assert main(["image", "import", str(tmp_path / "x.tar.zst"), "--json"]) == 2
    assert "is not a whole image file" in json.loads(capsys.readouterr().out)["error"]


def test_run_nop(capsys: Capture, bwrap_sandbox: Sandbox, tmp_path: Path) -> None:
    arguments = [
        "run",
        TASK,
        "--agent",
        "nop",
        "--sandbox",
        "bwrap",
        "--budget",
        "train",
        "--out",
        str(tmp_path / "存"),
    ]
    assert main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["outcome"], result["reward"], result["reward_exact"]) == ("missing", 0, "0")
    assert (result["sandbox"], result["steps"], result["artifact"]) == ("bwrap", 1, None)
    assert Path(result["trajectory"]).exists()
    assert main(arguments) == 0
    assert "missing" in capsys.readouterr().out


def test_run_script(capsys: Capture, bwrap_sandbox: Sandbox, tmp_path: Path) -> None:
    script = tmp_path / "剧本.txt"
    answer = (SUBMISSIONS / "infeasible" / "v2.json").read_text(encoding="utf-8")
    script.write_text(f"cat > answer.json <<'E'\n{answer}\nE\n%%\ncheck\n%%\nsubmit\n", encoding="utf-8")
    arguments = ["run", TASK, "--agent", f"script:{script}", "--sandbox", "bwrap", "--budget", "train"]
    assert main([*arguments, "--out", str(tmp_path / "out"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["outcome"], result["reward"], result["steps"]) == ("infeasible", 0, 3)
    assert Path(result["artifact"]).read_text(encoding="utf-8").strip() == answer.strip()
    assert Path(result["certificate"]["path"]).is_file()
    assert [entry["status"] for entry in result["obligations"]].count("violated") >= 1
