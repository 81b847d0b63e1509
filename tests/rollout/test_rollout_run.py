"""Rollouts in this process: what is stored, what is retried, what is refused, and how it is stopped."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tbmm_env.cli import main
from tbmm_env.errors import BoxLost, SandboxUnavailable, TrajectoryError, UsageError
from tbmm_env.limits import CONTEST, TRAIN
from tbmm_env.record import CommandResult, Observation
from tbmm_env.rollout import run
from tbmm_env.rollout.jobs import Plan, stored
from tbmm_env.rollout.locks import DriverLock
from tbmm_env.rollout.policies import EpisodeStart, Exchange, Scripted
from tbmm_env.rollout.run import INTERRUPTED, default_job_wall_s, rollout
from tbmm_env.rollout.tally import Summary
from tbmm_env.sandbox.scripted import ScriptedBox, ScriptedSandbox, printed
from tbmm_env.tasks import Task
from tbmm_env.trajectory.store import Store

TASK = "cumcm-2024-a"
Capture = pytest.CaptureFixture[str]


def play(out: Path, plan: Plan | None = None, sandbox: ScriptedSandbox | None = None, **keywords: Any) -> Summary:
    settings: dict[str, Any] = {"policy": "nop", "workers": 0} | keywords
    policy = settings.pop("policy")
    return rollout(plan or Plan([TASK], 2, 2), policy, out, sandbox=sandbox or ScriptedSandbox(), **settings)


def losing(times: int) -> ScriptedSandbox:
    """Boxes of which the first so many are lost at their ``submit``."""
    left = [times]

    def submit(box: ScriptedBox) -> CommandResult:
        if left[0]:
            left[0] -= 1
            raise BoxLost("the daemon is gone")
        return printed("", submitted=True)

    return ScriptedSandbox(results={"submit": submit})


def test_every_job_is_stored_once_with_its_labels(tmp_path: Path) -> None:
    seen: list[Summary] = []
    summary = play(tmp_path, watch=seen.append)
    assert (summary.planned, summary.done, summary.complete) == (4, 4, True)
    assert (dict(summary.outcomes), summary.reward_mean) == ({"missing": 4}, 0.0)
    assert set(summary.parts_s) == {"reset", "policy", "steps", "judge", "store"}
    episodes = [stored.episode for stored in Store(tmp_path).episodes()]
    assert sorted(episode.job for episode in episodes) == [job.key for job in Plan([TASK], 2, 2)]
    for episode in episodes:
        task, seed, group, sample = episode.job.split("/")
        assert episode.group_id == f"{task}@{episode.versions['task']}/{seed}/{group}/nop"
        assert (episode.instance.seed, episode.sample_id, episode.policy) == (int(seed), int(sample), "nop")
    assert len({episode.group_id for episode in episodes}) == 2
    assert seen[0].running == 1
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert Store(tmp_path).verify() == []


def test_the_official_instance_only_when_it_is_named(tmp_path: Path) -> None:
    play(tmp_path, Plan([TASK], 1, 1, official=True))
    (episode,) = (stored.episode for stored in Store(tmp_path).episodes())
    assert episode.instance.seed is None
    assert episode.job == f"{TASK}/official/0/0"


# ---------------------------------------------------------------- failures of ours


def test_a_lost_box_is_retried_and_never_stored(tmp_path: Path) -> None:
    summary = play(tmp_path, sandbox=losing(2))
    assert (dict(summary.failures), summary.retries, summary.complete) == ({"BoxLost": 2}, 2, True)
    assert summary.reasons == {"BoxLost": "the daemon is gone"}
    assert len(list(Store(tmp_path).episodes())) == 4


def test_retries_are_bounded_and_the_job_is_left_for_resume(tmp_path: Path) -> None:
    summary = play(tmp_path, Plan([TASK], 1, 2), sandbox=losing(3), retries=1)
    assert (summary.done, summary.unfinished, summary.retries, summary.complete) == (1, 1, 2, False)
    assert dict(summary.failures) == {"BoxLost": 3}
    (missing,) = summary.unfinished_jobs
    assert missing not in stored(tmp_path)
    assert play(tmp_path, Plan([TASK], 1, 2), resume=True).complete
    assert len(stored(tmp_path)) == 2


def test_a_sandbox_that_never_works_stops_the_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "FAILURES_IN_A_ROW", 3)
    sandbox = ScriptedSandbox(unavailable=SandboxUnavailable("no namespaces here"))
    summary = play(tmp_path, Plan([TASK], 1000, 2), sandbox=sandbox)
    assert summary.stopped == "3 failures in a row"
    assert dict(summary.failures) == {"SandboxUnavailable": 3}
    assert (summary.done, summary.complete) == (0, False)
    assert stored(tmp_path) == {}


def test_a_full_disk_is_a_failure_and_no_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append, left = Store.append, [1]

    def failing(self: Store, episode: Any) -> str:
        if left[0]:
            left[0] -= 1
            raise TrajectoryError("no space left")
        return append(self, episode)

    monkeypatch.setattr(Store, "append", failing)
    assert dict(play(tmp_path).failures) == {"TrajectoryError": 1}
    assert len(stored(tmp_path)) == 4


class Failing(Scripted):
    """Fails as a model server may, in the first episode."""

    failed = False

    def reset(self, start: EpisodeStart) -> None:
        if not Failing.failed:
            Failing.failed = True
            raise ConnectionResetError("the model server is gone")


def test_an_exception_of_a_policy_is_a_failure_and_no_episode(tmp_path: Path) -> None:
    Failing.failed = False
    summary = play(tmp_path, policy=lambda task: Failing([]), policy_name="failing")
    assert summary.reasons == {"ConnectionResetError": "ConnectionResetError: the model server is gone"}
    assert (summary.retries, summary.complete) == (1, True)


def test_an_episode_that_was_stored_though_its_end_was_lost_is_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, left = Store.append, [1]

    def told_wrong(self: Store, episode: Any) -> str:
        record = append(self, episode)
        if left[0]:
            left[0] -= 1
            raise TrajectoryError("fsync failed")
        return record

    monkeypatch.setattr(Store, "append", told_wrong)
    summary = play(tmp_path)
    assert (summary.done, summary.retries, dict(summary.outcomes)) == (4, 1, {"missing": 4})
    assert len(list(Store(tmp_path).episodes())) == 4


def test_a_fault_of_the_callers_ends_the_rollout_at_once(tmp_path: Path) -> None:
    def factory(task: Task) -> Scripted:
        raise UsageError("no such model")

    with pytest.raises(UsageError, match=r"job cumcm-2024-a/0/0/0: no such model"):
        play(tmp_path, policy=factory, policy_name="own")


# ---------------------------------------------------------------- resume


def test_resume_plays_what_is_missing(tmp_path: Path) -> None:
    play(tmp_path, Plan([TASK], 1, 3))
    with pytest.raises(UsageError, match=r"holds 3 of the 6 episodes .* --resume"):
        play(tmp_path, Plan([TASK], 2, 3))
    summary = play(tmp_path, Plan([TASK], 2, 3), resume=True)
    assert (summary.skipped, summary.done, summary.complete) == (3, 3, True)
    assert len(list(Store(tmp_path).episodes())) == len(stored(tmp_path)) == 6
    again = play(tmp_path, Plan([TASK], 2, 3), resume=True)
    assert (again.skipped, again.done, again.reward_mean, again.complete) == (6, 0, None, True)


def test_a_damaged_record_is_played_again(tmp_path: Path) -> None:
    play(tmp_path, Plan([TASK], 1, 2))
    (segment,) = (tmp_path / "segments").iterdir()
    data = segment.read_bytes()
    segment.write_bytes(data[:-7])
    summary = play(tmp_path, Plan([TASK], 1, 2), resume=True)
    assert (summary.skipped, summary.done) == (1, 1)
    assert len(stored(tmp_path)) == 2


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"policy": "oracle"}, "episodes of policy 'nop', not 'oracle'"),
        ({"policy_name": "other"}, "episodes of policy 'nop', not 'other'"),
        ({"budget": "contest"}, "budget 'train', not 'contest'"),
        ({"language": "zh"}, "language 'en', not 'zh'"),
    ],
)
def test_a_folder_has_episodes_of_one_kind(tmp_path: Path, keywords: dict[str, Any], message: str) -> None:
    play(tmp_path, Plan([TASK], 1, 1))
    with pytest.raises(UsageError, match=message):
        play(tmp_path, Plan([TASK], 1, 1), resume=True, **keywords)


def test_another_version_of_a_task_is_not_mixed_in(tmp_path: Path) -> None:
    play(tmp_path, Plan([TASK], 1, 1))
    path = tmp_path / "rollout.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(kept | {"tasks": {TASK: "0.9.0"}}), encoding="utf-8")
    with pytest.raises(UsageError, match=r"version 0\.9\.0, which is version"):
        play(tmp_path, Plan([TASK], 1, 1), resume=True)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(TrajectoryError, match=r"rollout\.json: cannot be read"):
        play(tmp_path, Plan([TASK], 1, 1), resume=True)


def test_two_rollouts_on_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tbmm_env.rollout.run.DriverLock", lambda out, on_wait: DriverLock(out, wait_s=0.1))
    with DriverLock(tmp_path), pytest.raises(UsageError, match="another rollout is at work"):
        play(tmp_path)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"workers": -1}, "workers is -1"), ({"retries": -1}, "retries is -1"), ({"in_flight": 0}, "in_flight is 0"),
        ({"job_wall_s": 0.0}, "job_wall_s is 0.0 s"), ({"worker_cpus": -1.0}, "worker_cpus"),
        ({"policy": "gpt"}, "must be oracle"), ({"policy": lambda task: Scripted([])}, "needs policy_name"),
    ],
)  # fmt: skip
def test_bad_arguments(tmp_path: Path, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        play(tmp_path / "out", **keywords)
    assert not (tmp_path / "out").exists()


def test_without_ray_the_message_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'tbmm-env\[ray\]'.*--workers 0"):
        play(tmp_path, workers=2)
    assert play(tmp_path, workers=0).complete


def test_the_wall_limit_of_a_job_covers_all_its_budgets() -> None:
    assert default_job_wall_s(TRAIN) > TRAIN.episode_wall_s + TRAIN.startup_wall_s + 150
    assert default_job_wall_s(CONTEST) > CONTEST.episode_wall_s


# ---------------------------------------------------------------- Ctrl-C


class Interrupting(Scripted):
    """Presses Ctrl-C so many times in its third episode, and counts how often it could go on."""

    def __init__(self, presses: int) -> None:
        super().__init__([])
        self.presses = presses
        self.episodes = 0
        self.went_on = 0

    def reset(self, start: EpisodeStart) -> None:
        self.episodes += 1

    def act(self, history: Sequence[Exchange], observation: Observation) -> str | None:
        if self.episodes == 3:
            for _ in range(self.presses):
                os.kill(os.getpid(), signal.SIGINT)
                self.went_on += 1
        return None


@pytest.mark.parametrize(("presses", "done"), [(1, 3), (2, 2)])
def test_ctrl_c_drains_and_a_second_one_stops(tmp_path: Path, presses: int, done: int) -> None:
    policy = Interrupting(presses)
    before = signal.getsignal(signal.SIGINT)
    summary = play(tmp_path, policy=lambda task: policy, policy_name="interrupting", plan=Plan([TASK], 5, 1))
    assert (summary.stopped, summary.done, summary.complete) == (INTERRUPTED, done, False)
    assert policy.went_on == 1
    assert signal.getsignal(signal.SIGINT) is before
    assert len(stored(tmp_path)) == done
    rest = play(tmp_path, policy="nop", policy_name="interrupting", plan=Plan([TASK], 5, 1), resume=True)
    assert (rest.skipped, rest.complete) == (done, True)


# ---------------------------------------------------------------- the command


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """``tbmm rollout`` with scripted boxes, in this process."""

    def scripted(plan: Plan, policy: str, out: Path, **keywords: Any) -> Summary:
        return rollout(plan, policy, out, **keywords | {"sandbox": scripted.sandbox})  # type: ignore[attr-defined]

    scripted.sandbox = ScriptedSandbox()  # type: ignore[attr-defined]
    monkeypatch.setattr("tbmm_env.cli.episodes.rollout", scripted)

    def run_it(*extra: str, sandbox: ScriptedSandbox | None = None) -> int:
        scripted.sandbox = sandbox or ScriptedSandbox()  # type: ignore[attr-defined]
        arguments = ["rollout", "--tasks", TASK, "--policy", "nop", "--workers", "0", "--out", str(tmp_path / "out")]
        return main([*arguments, *extra])

    return run_it


def test_command(command: Callable[..., int], capsys: Capture, tmp_path: Path) -> None:
    assert command("--instances", "2", "--group-size", "2", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["done"], said["outcomes"], said["complete"]) == (4, {"missing": 4}, True)
    assert command("--instances", "2", "--group-size", "2") == 2
    assert "--resume" in capsys.readouterr().err
    assert command("--instances", "3", "--group-size", "2", "--resume") == 0
    printed_ = capsys.readouterr().out
    assert "6 of 6" in printed_
    assert "missing" in printed_
    assert command("--instance", "official", "--resume", "--json") == 0
    assert json.loads(capsys.readouterr().out)["planned"] == 1
    assert len(stored(tmp_path / "out")) == 7


def test_command_says_when_jobs_are_missing(command: Callable[..., int], capsys: Capture) -> None:
    assert command("--instances", "2", "--retries", "0", sandbox=losing(1)) == 1
    said = capsys.readouterr()
    assert "1 of 2" in said.out
    assert "BoxLost (ours, not stored)" in said.out
    assert "--resume" in said.out
    assert "the daemon is gone" in said.err


@pytest.mark.parametrize(
    "extra", [["--instances", "0"], ["--group-size", "0"], ["--tasks", "nobody"], ["--policy", "gpt"], ["--tasks", ","]]
)
def test_wrong_usage_of_the_command(command: Callable[..., int], extra: list[str], capsys: Capture) -> None:
    assert command(*extra, "--json") == 2
    assert json.loads(capsys.readouterr().out)["exit_code"] == 2
