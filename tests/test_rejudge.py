"""Stores scored anew: every answer once, in a store of its own, and no score version mixed with another."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tbmm_env import instances, rejudge, tasks
from tbmm_env.cli import main
from tbmm_env.errors import LeanUnavailable, ReplayFailed, UsageError
from tbmm_env.judge.judge import JUDGE_VERSION
from tbmm_env.limits import TRAIN
from tbmm_env.record import Artifact, Certificate, Episode, Instance, Judgement, Observation
from tbmm_env.tasks import Task
from tbmm_env.trajectory import Store

TASK = tasks.load("cumcm-2024-a")
OFFICIAL = instances.official(TASK)
PRESENT = {"task": TASK.version, "panel": TASK.panel_version, "judge": JUDGE_VERSION}
OLD = PRESENT | {"judge": "0", "image": "some", "tbmm_env": "0.0.1"}

Capture = pytest.CaptureFixture[str]


def answer(number: int) -> Artifact:
    data = b"%d" % number
    return Artifact(status="regular", data=data, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def episode(number: int, **fields: Any) -> Episode:
    """An episode whose answer is a number; under the old judge it was worth a half."""
    made = Episode(
        episode_id=f"集-{number}",
        instance=OFFICIAL,
        budget="train",
        language="zh",
        sandbox="scripted",
        limits={"artifact_bytes": TRAIN.artifact_bytes},
        versions=OLD,
        first_observation=Observation(terminal="题", figures=()),
        steps=(),
        artifact=answer(number),
        judgement={"outcome": "scored", "reward": 0.5, "reward_exact": "1/2"},
        certificate_text="old",
        terminated=True,
        truncated=False,
        started_unix_s=0.0,
        wall_s=1.0,
        job=f"job-{number}",
        extra={"mine": number},
    )
    return dataclasses.replace(made, **fields)


class FakeJudge:
    """A judge that is quick: an answer n is worth n tenths, 5 being what it was worth before."""

    made: list[FakeJudge] = []

    def __init__(self, task: Task, artifact_bytes: int) -> None:
        self.task, self.artifact_bytes, self.closed = task, artifact_bytes, False
        FakeJudge.made.append(self)

    def judge(self, instance: Instance, artifact: Artifact) -> Judgement:
        number = int(artifact.data)
        if number == 7:
            raise ReplayFailed("the replay takes too long")
        if number == 8:
            raise LeanUnavailable("there is no Lean")
        text = f"theorem {number}"
        return Judgement(
            task=self.task.id,
            instance=instance,
            panel_version=self.task.panel_version,
            judge_version=JUDGE_VERSION,
            outcome="scored",
            reward=Fraction(number, 10),
            reason="",
            artifact_sha256=artifact.sha256,
            certificate=Certificate(
                text=text,
                sha256=hashlib.sha256(text.encode()).hexdigest(),
                accepted=True,
                theorems=(),
                axioms=(),
                lean_version="4.35.0",
            ),
        )

    def close(self) -> None:
        self.closed = True


def filled(path: Path, *episodes: Episode) -> Store:
    with Store(path, durable=False) as store:
        for one in episodes:
            store.append(one)
    return store


def run(source: Store, out: Path, **options: Any) -> rejudge.Report:
    FakeJudge.made.clear()
    with Store(out, durable=False) as made:
        report = rejudge.rejudge(source, made, make_judge=FakeJudge, **options)
    assert all(judge.closed for judge in FakeJudge.made)
    return report


def check_rescored(source: Store, out: Store) -> None:
    """Demand that the new store has every answer of the old one, in order, with nothing but its score changed."""
    old, new = list(source.episodes()), list(out.episodes())
    assert [item.episode.episode_id for item in new] == [item.episode.episode_id for item in old]
    scored = {"judgement", "certificate_text", "versions", "extra"}
    for before, after in zip(old, new, strict=True):
        for field in set(Episode.__slots__) - scored:
            assert getattr(after.episode, field) == getattr(before.episode, field), field
        number = int(before.episode.artifact.data)
        assert after.episode.judgement["reward_exact"] == (f"{Fraction(number, 10)}")
        assert after.episode.certificate_text == f"theorem {number}"
        assert after.episode.versions == {**before.episode.versions, **PRESENT, "lean": "4.35.0", "tbmm_env": "0.1.0"}
        assert after.episode.extra["mine"] == number
        assert after.episode.extra["rejudged"] == {
            "key": before.key,
            "versions": before.episode.versions,
            "outcome": "scored",
            "reward": "1/2",
        }
    assert out.verify() == []


@pytest.mark.parametrize("workers", [1, 3])
def test_every_answer_is_scored_anew_in_order(workers: int, tmp_path: Path) -> None:
    source = filled(tmp_path / "旧", *(episode(number) for number in (5, 3, 5, 10, 1, 0, 2)))
    totals: list[int] = []
    report = run(source, tmp_path / "新", workers=workers, on_total=totals.append)
    check_rescored(source, Store(tmp_path / "新"))
    assert (report.rescored, report.passed_over, report.failed, report.whole, totals) == (7, 0, [], True, [7])
    assert [(one.old_reward, one.new_reward) for one in report.changed] == [
        ("1/2", str(Fraction(number, 10))) for number in (3, 10, 1, 0, 2)
    ]
    keys = {item.key for item in Store(tmp_path / "新").episodes()}
    assert {one.new_key for one in report.changed} < keys
    assert report.json()["old_versions"] == [
        {"task": TASK.id, "versions": {"task": TASK.version, "panel": TASK.panel_version, "judge": "0"}, "episodes": 7}
    ]
    assert report.json()["new_versions"] == {TASK.id: PRESENT}
    assert len(FakeJudge.made) <= workers


@pytest.mark.parametrize(
    "change",
    [
        lambda one: dataclasses.replace(one, judgement=episode(0).judgement),
        lambda one: dataclasses.replace(one, versions=OLD),
        lambda one: dataclasses.replace(one, wall_s=2.0),
        lambda one: dataclasses.replace(one, extra={}),
    ],
)
def test_the_check_of_a_new_store_rejects(change: Callable[[Episode], Episode], tmp_path: Path) -> None:
    source = filled(tmp_path / "old", episode(3))
    run(source, tmp_path / "out")
    check_rescored(source, Store(tmp_path / "out"))
    (made,) = Store(tmp_path / "out").episodes()
    with pytest.raises((AssertionError, KeyError)):
        check_rescored(source, filled(tmp_path / "changed", change(made.episode)))


def test_a_run_that_was_stopped_is_taken_up_again(tmp_path: Path) -> None:
    source = filled(tmp_path / "old", episode(1), episode(2))
    first = run(source, tmp_path / "out")
    filled(source.path, episode(3))
    again = run(source, tmp_path / "out")
    assert (again.rescored, again.passed_over) == (1, 2)
    assert {one.key for one in again.changed} > {one.key for one in first.changed}
    assert {one.new_key for one in first.changed} < {one.new_key for one in again.changed}
    assert sorted(item.episode.episode_id for item in Store(tmp_path / "out").episodes()) == ["集-1", "集-2", "集-3"]


def test_the_same_store_is_refused(tmp_path: Path) -> None:
    source = filled(tmp_path / "old", episode(1))
    with pytest.raises(UsageError, match="is the store that is read"):
        run(source, tmp_path / "x" / ".." / "old")
    assert len(list(source.episodes())) == 1


@pytest.mark.parametrize("name", rejudge.SCORE_VERSIONS)
def test_a_store_of_other_score_versions_is_refused(name: str, tmp_path: Path) -> None:
    source = filled(tmp_path / "old", episode(1))
    filled(tmp_path / "same", episode(2, versions=PRESENT))
    assert run(source, tmp_path / "same").rescored == 1
    out = filled(tmp_path / "other", episode(2, versions=PRESENT | {name: "9"}))
    with pytest.raises(UsageError, match=f"scored under .*{name} 9.*the present versions are .* never mixed"):
        run(source, tmp_path / "other")
    assert len(list(out.episodes())) == 1
    filled(tmp_path / "unknown", episode(2, versions={}))
    with pytest.raises(UsageError, match="judge unknown"):
        run(source, tmp_path / "unknown")


def test_a_failure_of_the_judge_is_counted_and_left_out(tmp_path: Path) -> None:
    source = filled(tmp_path / "old", episode(1), episode(7), episode(2))
    report = run(source, tmp_path / "out")
    assert (report.rescored, report.whole) == (2, False)
    ((key, reason),) = report.failed
    assert source.read(key).episode_id == "集-7"
    assert reason == "ReplayFailed: the replay takes too long"
    assert [item.episode.episode_id for item in Store(tmp_path / "out").episodes()] == ["集-1", "集-2"]


def test_without_lean_nothing_goes_on(tmp_path: Path) -> None:
    source = filled(tmp_path / "old", episode(1), episode(8), *(episode(2) for _ in range(5)))
    with pytest.raises(LeanUnavailable):
        run(source, tmp_path / "out")
    assert len(list(Store(tmp_path / "out").episodes())) <= 1


def test_an_answer_to_another_version_of_the_task_needs_the_word(tmp_path: Path) -> None:
    earlier = dataclasses.replace(OFFICIAL, version="0.9.0")
    wrong = dataclasses.replace(earlier, parameters={"boards": 3})
    source = filled(tmp_path / "old", episode(1, instance=earlier), episode(2, instance=wrong), episode(3))
    report = run(source, tmp_path / "out")
    assert report.rescored == 1
    assert all("--across-task-versions" in reason for _, reason in report.failed)
    report = run(source, tmp_path / "out2", across_task_versions=True)
    assert report.rescored == 2
    assert [reason.split(":")[0] for _, reason in report.failed] == ["BadInstance"]


def test_an_unknown_task_is_counted(tmp_path: Path) -> None:
    gone = dataclasses.replace(OFFICIAL, task="cumcm-1999-z")
    report = run(filled(tmp_path / "old", episode(1, instance=gone)), tmp_path / "out")
    assert [reason.split(":")[0] for _, reason in report.failed] == ["UnknownTask"]


def test_damage_is_named_and_a_torn_end_is_no_failure(tmp_path: Path) -> None:
    source = filled(tmp_path / "old", episode(1), episode(2), episode(3))
    (path,) = (source.path / "segments").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    report = run(source, tmp_path / "out")
    assert ([one.kind for one in report.unreadable], report.rescored, report.whole) == (["torn"], 2, True)
    path.write_bytes(whole[:100] + b"\xff" + whole[101:])
    report = run(source, tmp_path / "out2")
    assert ([one.kind for one in report.unreadable], report.rescored, report.whole) == (["corrupt"], 2, False)


def test_only_a_few_judges_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeJudge, "made", [])
    judges = rejudge._Judges(FakeJudge)
    kept = [judges.get(TASK, size) for size in (1, 2, 1, 3, 4, 5)]
    assert kept[0] is kept[2]
    assert [judge.closed for judge in FakeJudge.made] == [False, True, False, False, False]
    judges.close()
    assert all(judge.closed for judge in FakeJudge.made)


@pytest.mark.lean
def test_the_command_scores_with_the_real_judge(tmp_path: Path, capsys: Capture) -> None:
    data = b'{"q5": {"head_speed_mps": 1.9}}'
    answered = Artifact(status="regular", data=data, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    source = filled(tmp_path / "旧", episode(1, artifact=answered), episode(2, artifact=Artifact(status="missing")))
    command = ["rejudge", str(source.path), str(tmp_path / "新")]
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [one["new_outcome"] for one in printed["changed"]] == ["infeasible", "missing"]
    made = list(Store(tmp_path / "新").episodes())
    certificate = made[0].episode.judgement["certificate"]
    assert isinstance(certificate, dict)
    assert certificate["accepted"] is True
    assert hashlib.sha256(made[0].episode.certificate_text.encode()).hexdigest() == certificate["sha256"]
    assert made[1].episode.certificate_text == ""
    assert main(command) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 episodes of task 1.0.0, panel 2024a-1, judge 0; now task 1.0.0, panel 2024a-1, judge 1" in said
    assert "0 scored anew, 2 changed, 2 were there already" in said


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: Capture) -> None:
    source = filled(tmp_path / "old", episode(1, instance=dataclasses.replace(OFFICIAL, version="0")))
    assert main(["rejudge", str(source.path), str(tmp_path / "out")]) == 1
    assert "not scored" in capsys.readouterr().out
    for arguments in (["none", "out"], [str(source.path), str(source.path)], [str(source.path), "x", "--workers", "0"]):
        assert main(["rejudge", *arguments]) == 2
