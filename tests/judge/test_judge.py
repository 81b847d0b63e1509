"""The pipeline as a whole: every labelled submission gets its outcome, for its reason, with its certificate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from tbmm_env import instances, labels, tasks
from tbmm_env.errors import ReplayFailed
from tbmm_env.judge import judge as pipeline
from tbmm_env.judge.artifact import regular
from tbmm_env.judge.judge import Judge, check_report
from tbmm_env.record import Artifact, Judgement
from tbmm_env.report import judgement_json

TASK = tasks.load("cumcm-2024-a")
BYTES = 1 << 20


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(TASK, artifact_bytes=BYTES) as made:
        yield made


def judged(judge: Judge, artifact: Artifact) -> Judgement:
    return judge.judge(instances.official(TASK), artifact)


@pytest.fixture(scope="module")
def judge_of() -> Iterator[Callable[[str], Judge]]:
    """The judge of a task, made when it is first asked for."""
    made: dict[str, Judge] = {}

    def of(task_id: str) -> Judge:
        if task_id not in made:
            made[task_id] = Judge(tasks.load(task_id), artifact_bytes=BYTES)
        return made[task_id]

    yield of
    for each in made.values():
        each.close()


@pytest.mark.parametrize(
    ("task_id", "label"),
    [
        pytest.param(name, label, id=f"{name}-{label.parent.name}-{label.stem}")
        for name in tasks.task_ids()
        for label in labels.labels(tasks.load(name))
    ],
)
def test_labelled_submissions(judge_of: Callable[[str], Judge], task_id: str, label: Path) -> None:
    assert labels.label_faults(labels.judge_label(judge_of(task_id), label), label) == []


def test_missing_answer(judge: Judge) -> None:
    judgement = judged(judge, Artifact(status="missing"))
    assert (judgement.outcome, judgement.reward, judgement.certificate) == ("missing", 0, None)
    assert judgement.reason == "answer.json: there is no answer file"


def test_empty_answer_warns_and_is_scored_zero(judge: Judge) -> None:
    judgement = judged(judge, regular(b"{}"))
    assert (judgement.outcome, judgement.reward) == ("scored", 0)
    assert {entry.state for entry in judgement.obligations} == {"unwitnessed"}
    assert {problem.path for problem in judgement.problems} == {"q2", "q3", "q4", "q5"}
    assert judgement.certificate is not None
    assert judgement.certificate.accepted


def test_claims_are_kept_and_never_scored(judge: Judge) -> None:
    optimum = json.loads((TASK.folder / "submissions" / "scored" / "optimum.json").read_text(encoding="utf-8"))
    plain = judged(judge, regular(json.dumps(optimum | {"claims": {}}).encode()))
    boasting = judged(judge, regular(json.dumps(optimum | {"claims": {"q5_head_speed_mps": 99}}).encode()))
    assert plain.reward == boasting.reward
    assert plain.score is not None
    assert boasting.score is not None
    entry = next(entry for entry in boasting.score.metrics if entry.spec.key == "q5_head_speed_mps")
    assert entry.claimed == 99
    assert boasting.outcome == "scored"


def test_too_large_an_artifact_is_refused_even_when_it_was_read(judge: Judge) -> None:
    under = judged(judge, regular(b"{}" + b" " * (BYTES - 2)))
    over = judged(judge, regular(b"{}" + b" " * (BYTES - 1)))
    assert under.outcome == "scored"
    assert over.outcome == "malformed"
    assert f"the limit is {BYTES} bytes" in over.reason


def test_the_same_answer_gives_the_same_bytes(judge: Judge) -> None:
    data = (TASK.folder / "submissions" / "scored" / "five_percent_worse.json").read_bytes()
    first = judged(judge, regular(data))
    with Judge(TASK, artifact_bytes=BYTES) as other:
        second = other.judge(instances.official(TASK), regular(data))
    assert json.dumps(judgement_json(first)) == json.dumps(judgement_json(second))
    assert first.certificate == second.certificate


def test_a_replay_that_names_what_it_may_not_is_our_failure(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge._replayer, "_call", lambda *_: {"reward": 1.0})
    with pytest.raises(ReplayFailed, match="does not declare"):
        judged(judge, regular(b"{}"))


def test_an_anchor_that_the_replay_contradicts_is_our_failure() -> None:
    anchor = dict(TASK.anchor) | {"q4_turn_length_m": Fraction("13.63")}
    wrong = replace(TASK, anchor=anchor)
    data = (TASK.folder / "submissions" / "scored" / "optimum.json").read_bytes()
    with Judge(wrong, artifact_bytes=BYTES) as other, pytest.raises(ReplayFailed, match="q4_turn_length_m: the anchor"):
        other.judge(instances.official(wrong), regular(data))


def test_check_report_says_nothing_of_worth(judge: Judge) -> None:
    optimum = (TASK.folder / "submissions" / "scored" / "optimum.json").read_bytes()
    bad = (TASK.folder / "submissions" / "infeasible" / "q5_plus_1pct.json").read_bytes()
    assert check_report(judge.read(regular(optimum))) == check_report(judge.read(regular(bad)))
    assert "q2 is missing" in check_report(judge.read(regular(b"{}")))
    assert "would be refused" in check_report(judge.read(regular(b"[]")))
    assert "there is no answer file" in check_report(judge.read(Artifact(status="missing")))


def test_judge_version_is_in_the_judgement(judge: Judge) -> None:
    judgement = judged(judge, Artifact(status="missing"))
    assert judgement.judge_version == pipeline.JUDGE_VERSION
    assert judgement.panel_version == TASK.panel_version
