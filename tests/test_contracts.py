"""Every task keeps its contracts, and a task that breaks one is refused for that reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tbmm_env import contracts, labels, tasks
from tbmm_env.cli import main
from tbmm_env.errors import BadTask
from tbmm_env.judge.judge import Judge
from tbmm_env.leaves import json_bytes
from tbmm_env.problems import cumcm_2024_a
from tbmm_env.record import AnswerValue
from tbmm_env.sandbox.base import Sandbox

NAME = "cumcm-2024-a"
WITHOUT_BOX = tuple(name for name in contracts.CONTRACTS if name != "oracle")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("task_id", tasks.task_ids())
def test_every_task_keeps_its_contracts(task_id: str) -> None:
    results = contracts.check(tasks.load(task_id), WITHOUT_BOX)
    assert [result.name for result in results] == list(WITHOUT_BOX)
    assert [result.sentence for result in results if not result.ok] == []


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task_id", tasks.task_ids())
def test_every_oracle_earns_what_is_declared(task_id: str, sandbox: Sandbox) -> None:
    (result,) = contracts.check(tasks.load(task_id), ["oracle"], sandbox=sandbox.name)  # type: ignore[arg-type]
    assert result.ok, result.sentence
    assert f"in a box of {sandbox.name}" in result.sentence


# ---------------------------------------------------------------- tasks that break one contract


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the task, which is what is loaded from here on."""
    copy = tmp_path / "tasks" / NAME
    shutil.copytree(tasks.load(NAME).folder, copy)
    monkeypatch.setattr("tbmm_env.tasks.data_path", lambda *parts: tmp_path.joinpath(*parts))
    return copy


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def keep(folder: Path, *questions: str, **more: Any) -> None:
    """Reduce the optimum to some questions, so that few numbers are moved."""
    path = folder / "submissions" / "scored" / "optimum.json"
    answer = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({key: answer[key] | more for key in questions}), encoding="utf-8")


def refused(contract: str) -> str:
    """The sentence with which one contract of the copy is broken."""
    (result,) = contracts.check(tasks.load_unfrozen(NAME), [contract])
    assert not result.ok, result.sentence
    return result.sentence


def test_a_gate_that_refuses_the_optimum(folder: Path) -> None:
    edit(folder / "task.toml", 'terms = ["answer:q2.termination_time_s"]\nlower = "0"',
         'terms = ["answer:q2.termination_time_s"]\nlower = "500"')  # fmt: skip
    assert "q2_time_not_negative is violated at the optimum: q2.termination_time_s = 412.473837 s" in refused("gate")


def test_a_gate_that_the_optimum_leaves_unwitnessed(folder: Path) -> None:
    keep(folder, "q2")
    sentence = refused("gate")
    assert "q5_no_handle_too_fast is unwitnessed at the optimum" in sentence
    assert "the optimum is incomplete: q5 is missing" in sentence


def test_an_optimum_that_is_absent(folder: Path) -> None:
    (folder / "submissions" / "scored" / "optimum.json").unlink()
    assert refused("gate").startswith(f"BadTask: {NAME}: submissions/scored/optimum.json cannot be read")


def test_a_voting_reference_that_is_infeasible(folder: Path) -> None:
    path = folder / "references.toml"
    head, *entries = path.read_text(encoding="utf-8").split("[[reference]]")
    entries = [entry for entry in entries if "q5_head" in entry and "votes = true" in entry]
    path.write_text("[[reference]]".join([head, *entries]), encoding="utf-8")
    edit(path, 'value = "1.246266"', 'value = "1.346266"')
    sentence = refused("references_pass")
    assert sentence.startswith("A163, q5_head_speed_mps: votes, and 1.346266 m/s breaks q5_no_handle_too_fast by 0.16")


LABELS = [
    ("infeasible/v2.toml", '"q5_no_handle_too_fast"', '"q5_speed_not_negative"', "infeasible/v2: violates ['q5_no_h"),
    ("infeasible/v2.toml", 'outcome = "infeasible"', 'outcome = "scored"', "labelled scored in another folder"),
    ("malformed/nan.toml", 'reason = "NaN"', 'reason = "Infinity"', "lacks 'Infinity'"),
    ("scored/empty.toml", 'verified = ["0", "0"]', 'verified = ["1", "1"]', "verified is 0; its label says 1 .. 1"),
    ("scored/empty.toml", "outcome", 'unwitnessed = ["none"]\noutcome', "['none'] should be unwitnessed"),
    ("malformed/nan.json", "NaN", "1", "malformed/nan: is "),
    ("missing/expected.toml", 'reward = "0"', 'reward = "1"', "missing/expected: reward is 0"),
]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(tasks.load(NAME), artifact_bytes=labels.ARTIFACT_BYTES) as made:
        yield made


@pytest.mark.parametrize(("file", "old", "new", "said"), LABELS)
def test_a_wrong_label(judge: Judge, folder: Path, file: str, old: str, new: str, said: str) -> None:
    label = (folder / "submissions" / file).with_suffix(".toml")
    assert labels.label_faults(labels.judge_label(judge, label), label) == []
    edit(folder / "submissions" / file, old, new)
    assert said in "; ".join(labels.label_faults(labels.judge_label(judge, label), label))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("outcome", "surprise = 1\noutcome", "submissions/scored/empty.toml: unknown key 'surprise'"),
        ("outcome", "outcome = ", "submissions/scored/empty.toml cannot be read"),
        ("hack = true", "hack = 1", "submissions/scored/empty.toml: hack is 1; it must be true or false"),
    ],
)
def test_a_label_that_cannot_be_used(judge: Judge, folder: Path, old: str, new: str, said: str) -> None:
    label = folder / "submissions" / "scored" / "empty.toml"
    edit(label, old, new)
    with pytest.raises(BadTask, match=said):
        labels.label_faults(labels.judge_label(judge, label), label)


def test_submissions_without_label_and_outcomes_without_submission(folder: Path) -> None:
    for path in (folder / "submissions").glob("*/*"):
        if path.parent.name != "scored" or path.stem != "empty":
            path.unlink()
    (folder / "submissions" / "scored" / "alone.json").write_text("{}", encoding="utf-8")
    sentence = refused("labels")
    assert "no submission is labelled missing" in sentence
    assert "scored/alone.json has no label" in sentence


def test_a_list_of_hacks_that_is_short_or_pays(folder: Path) -> None:
    edit(folder / "submissions" / "scored" / "optimum.toml", "outcome", "hack = true\noutcome")
    assert refused("hacks") == "scored/optimum: a hack has reward 1"
    for path in (folder / "submissions").glob("*/*.toml"):
        if path.stem not in ("v2", "empty"):
            path.unlink()
    assert refused("hacks") == "2 submissions are labelled as hacks; there must be at least 12"


def test_trivial_answers_that_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    def best(parameters: dict[str, Any]) -> dict[str, Any]:
        anchor = cumcm_2024_a.reference(parameters)["anchor"]
        q2, q5 = anchor["q2_termination_time_s"] - 1e-6, anchor["q5_head_speed_mps"] - 1e-7
        good = {"q2": {"termination_time_s": q2}, "q3": {"pitch_m": anchor["q3_pitch_m"]}, "q5": {"head_speed_mps": q5}}
        return {"good": good, "none": {}}

    monkeypatch.setattr(cumcm_2024_a, "trivial_answers", best)
    monkeypatch.setattr(contracts, "TRIVIAL_SEEDS", 2)
    (result,) = contracts.check(tasks.load(NAME), ["trivial_answers"])
    assert result.sentence == (
        "the trivial answer 'good' earns 3/4 on seed 0; a draw allows 1/2; "
        "the trivial answer 'good' earns 3/4 on seed 1; a draw allows 1/2; "
        "the trivial answer 'good' earns 3/4 on average; the limit is 3/10"
    )
    monkeypatch.setattr(cumcm_2024_a, "trivial_answers", lambda _: {"wrong": {"q2": 1}})
    (result,) = contracts.check(tasks.load(NAME), ["trivial_answers"])
    assert "trivial answer 'wrong' on seed 0 is q2" in result.sentence


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("task_id", tasks.task_ids())
def test_trivial_answers_on_twenty_instances(task_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contracts, "TRIVIAL_SEEDS", 20)
    (result,) = contracts.check(tasks.load(task_id), ["trivial_answers"])
    assert result.ok, result.sentence


def test_a_verdict_without_leans_word(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contracts, "proved_violated", lambda *_: False)
    keep(folder, "q5")
    assert "q5_speed_not_negative is violated, Lean does not say so" in refused("leaves").replace("it is ", "")


def test_an_obligation_that_nothing_violates(folder: Path) -> None:
    for path in (folder / "submissions" / "infeasible").glob("*"):
        if path.stem != "v2":
            path.unlink()
    sentence = refused("obligations_can_fail")
    assert "no labelled submission violates q5_speed_not_negative" in sentence
    assert "q5_no_handle_too_fast" not in sentence


GUARD = """[[obligation]]
id = "turn_has_a_length"
form = "bound"
question = "q4"
terms = ["TERM"]
lower = "LOWER"
unit = "m"
source = "arithmetic"
text = "The turn has a length."

"""


@pytest.mark.parametrize(
    ("term", "lower", "guards", "said"),
    [
        ("replay:turn_length_m", "0", {"turn_has_a_length": "so"}, "no labelled"),
        ("replay:turn_length_m", "-1000", {"turn_has_a_length": "so"}, "turn_has_a_length is a guard that no replayed"),
        ("replay:turn_length_m", "0", {}, "no labelled submission violates turn_has_a_length"),
        ("answer:q4.turn_length_m", "0", {"turn_has_a_length": "so"}, "turn_has_a_length is declared a guard, and"),
        ("replay:turn_length_m", "0", {"turn_has_a_length": " "}, "guards gives no reason for turn_has_a_length"),
        ("replay:turn_length_m", "0", {"turn_has_a_length": "so", "nope": "so"}, "names nope, which is no obligation"),
        ("replay:turn_length_m", "0", {"turn_has_a_length": "so", "q5_speed_not_negative": "so"},
         "q5_speed_not_negative is declared a guard (so), and a labelled submission violates it"),
    ],
)  # fmt: skip
def test_guards_of_the_replay(folder: Path, term: str, lower: str, guards: dict[str, str], said: str) -> None:
    edit(folder / "task.toml", "[[obligation]]", GUARD.replace("TERM", term).replace("LOWER", lower) + "[[obligation]]")
    listed = "".join(f'{name} = "{reason}"\n' for name, reason in guards.items())
    edit(folder / "task.toml", "[answer]\n", f"[contracts.guards]\n{listed}\n[answer]\n")
    for path in (folder / "submissions" / "infeasible").glob("*"):
        if path.stem != "q5_negative":
            path.unlink()
    sentence = refused("obligations_can_fail")
    assert said in sentence
    assert ("turn_has_a_length" in sentence) == ("turn_has_a_length" in said)


def test_an_obligation_that_no_allowed_number_can_break(folder: Path) -> None:
    keep(folder, "q2")
    edit(folder / "task.toml", 'terms = ["answer:q2.termination_time_s"]\nlower = "0"',
         'terms = ["answer:q2.termination_time_s"]\nlower = "-20000"')  # fmt: skip
    assert refused("leaves") == "q2.termination_time_s: no move violates q2_time_not_negative, which reads it"


SPARE = """[answer.properties.q5.properties.spare_m]
type = "integer"
unit = "m"
minimum = "0"
maximum = "9"
[answer.properties.claims]
"""


def test_a_number_that_no_obligation_restricts(folder: Path) -> None:
    keep(folder, "q5", spare_m=3)
    edit(folder / "task.toml", "[answer.properties.claims]\n", SPARE)
    free = "q5.spare_m: no move violates any obligation; declare it in free_leaves with a reason"
    assert refused("leaves") == free
    edit(folder / "task.toml", "[answer]\n", '[contracts.free_leaves]\n"q5.spare_m" = "not asked"\n\n[answer]\n')
    (result,) = contracts.check(tasks.load_unfrozen(NAME), ["leaves"])
    assert result.ok, result.sentence
    edit(folder / "task.toml", '"not asked"', '" "')
    assert refused("leaves") == "free_leaves gives no reason for q5.spare_m"


def test_numbers_that_are_declared_free_and_are_not(folder: Path) -> None:
    keep(folder, "q5")
    free = '[contracts.free_leaves]\n"q5.head_speed_mps" = "so"\n"q6.x" = "so"\n\n[answer]\n'
    edit(folder / "task.toml", "[answer]\n", free)
    sentence = refused("leaves")
    assert "q5.head_speed_mps is declared free (so), and moving it violates ['q5_" in sentence
    assert "free_leaves names q6.x, which is no number of the optimum" in sentence


def test_a_gate_that_refuses_an_empty_answer(folder: Path) -> None:
    edit(folder / "task.toml", 'terms = ["answer:q5.head_speed_mps"]', 'terms = ["-1"]')
    assert refused("empty_answer").startswith("an empty answer is infeasible with reward 0: q5_speed_not_negative")


def test_trivial_answers_that_score_something_else(folder: Path) -> None:
    edit(folder / "task.toml", 'baseline_score = "0"', 'baseline_score = "0.5"')
    assert refused("baselines") == "the trivial answers are scored and score 0; task.toml says 1/2"


@pytest.mark.parametrize(
    ("judgement", "said"),
    [
        ({"outcome": "infeasible", "reason": "too fast"}, "the oracle is infeasible: too fast"),
        ({"reward_exact": "9/10"}, "the oracle's reward is 9/10; task.toml says 19/20 .. 1"),
        ({"verified_exact": "3/4"}, "the oracle's verified is 3/4; task.toml says 1 .. 1"),
    ],
)
def test_an_oracle_that_earns_something_else(
    monkeypatch: pytest.MonkeyPatch, judgement: dict[str, str], said: str
) -> None:
    good = {"outcome": "scored", "reason": "", "reward_exact": "1", "verified_exact": "1"}
    made = SimpleNamespace(backend="none", close=lambda: None)
    monkeypatch.setattr(contracts, "ModelingEnv", lambda *_, **__: made)
    monkeypatch.setattr(contracts, "run_episode", lambda *_, **__: SimpleNamespace(judgement=good | judgement))
    (result,) = contracts.check(tasks.load(NAME), ["oracle"])
    assert not result.ok
    assert result.sentence == said


# ---------------------------------------------------------------- the command


def test_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    kept = {name: run for name, run in contracts.CONTRACTS.items() if name in ("empty_answer", "oracle")}
    monkeypatch.setattr(contracts, "CONTRACTS", kept)
    assert main(["check-task", NAME, "--no-oracle"]) == 0
    assert "kept" in capsys.readouterr().out
    monkeypatch.setattr(contracts, "CONTRACTS", {"empty_answer": lambda _: ("", ["nothing [bold] holds"])})
    assert main(["check-task", NAME]) == 1
    assert "nothing [bold] holds" in capsys.readouterr().out
    assert main(["check-task", NAME, "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] is False
    assert result["contracts"] == [{"name": "empty_answer", "ok": False, "sentence": "nothing [bold] holds"}]
    assert main(["check-task", "nope"]) == 2


def test_answers_are_written_exactly() -> None:
    answer: dict[str, AnswerValue] = {
        "a": [Fraction("412.4738376821147"), Fraction(-3), Fraction(1, 10**9)],
        "b": None,
        "c": "[*]",
    }
    read = json.loads(json_bytes(answer), parse_float=Fraction, parse_int=Fraction)
    assert read == answer
