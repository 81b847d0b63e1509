"""Rollouts on Ray: actors, hosts and boxes that die, jobs that hang, and how many are under way at once."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ray_surroundings
import rollout_policies
from conftest import missing

from tbmm_env.errors import BoxLost, UsageError
from tbmm_env.rollout import ray_pool
from tbmm_env.rollout.jobs import Job, Plan, stored
from tbmm_env.rollout.locks import DriverLock
from tbmm_env.rollout.pool import Ended
from tbmm_env.rollout.ray_pool import RayPool
from tbmm_env.rollout.run import rollout
from tbmm_env.rollout.tally import Summary
from tbmm_env.rollout.worker import Attempt, Setting
from tbmm_env.sandbox.base import Sandbox
from tbmm_env.sandbox.scripted import ScriptedSandbox
from tbmm_env.trajectory.store import Store

try:
    import ray
except ImportError:  # an optional dependency
    ray = None

pytestmark = ray_surroundings.WARNINGS

TASK = "cumcm-2024-a"


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    """One Ray for many tests; its workers can import the policies beside this file."""
    if ray is None:
        missing("Ray is not installed")
    with ray_surroundings.environment():
        ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                 num_cpus=2, object_store_memory=100 * 2**20)  # fmt: skip
        yield
        ray.shutdown()


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


def play(out: Path, plan: Plan, policy: Any = "nop", **keywords: Any) -> Summary:
    settings: dict[str, Any] = {"sandbox": ScriptedSandbox(), "workers": 2, "policy_name": "tried"} | keywords
    return rollout(plan, policy, out, **settings)


def each_once(out: Path, plan: Plan) -> None:
    """Every job of the plan is in the store once, whole, and none is a failure of ours in disguise."""
    episodes = [stored.episode for stored in Store(out).episodes()]
    assert sorted(episode.job for episode in episodes) == sorted(job.key for job in plan)
    assert all(episode.terminated and episode.steps[-1].ending == "exited" for episode in episodes)
    assert [found for found in Store(out).verify() if found.kind not in ("torn", "leftover")] == []


@pytest.mark.bwrap
def test_twelve_episodes_in_real_boxes(local_ray: None, tmp_path: Path, bwrap_sandbox: Sandbox) -> None:
    plan = Plan([TASK], 3, 4)
    summary = play(tmp_path, plan, "random-template", sandbox="bwrap")
    assert (summary.done, summary.complete, dict(summary.failures)) == (12, True, {})
    each_once(tmp_path, plan)
    episodes = [stored.episode for stored in Store(tmp_path).episodes()]
    groups: dict[str, set[int]] = {}
    for episode in episodes:
        groups.setdefault(episode.group_id, set()).add(episode.sample_id)
    assert len(groups) == 3
    assert all(samples == {0, 1, 2, 3} for samples in groups.values())
    assert len({episode.artifact.sha256 for episode in episodes}) == 12
    assert len(list((tmp_path / "segments").iterdir())) == 2
    assert list((tmp_path / "locks").iterdir()) == [tmp_path / "locks" / "driver"]


def test_an_actor_that_dies_costs_its_running_episode_only(local_ray: None, tmp_path: Path, marks: Path) -> None:
    plan = Plan([TASK], 3, 2)
    summary = play(tmp_path, plan, partial(rollout_policies.KillActor, str(marks)))
    assert (summary.done, summary.retries, dict(summary.failures)) == (6, 1, {"ActorDied": 1})
    assert dict(summary.outcomes) == {"missing": 6}
    each_once(tmp_path, plan)


@pytest.mark.bwrap
def test_a_box_that_dies_costs_its_episode_only(
    local_ray: None, tmp_path: Path, marks: Path, bwrap_sandbox: Sandbox
) -> None:
    plan = Plan([TASK], 2, 2)
    summary = play(tmp_path, plan, partial(rollout_policies.KillBoxes, str(marks)), sandbox="bwrap")
    assert (summary.done, summary.retries, dict(summary.failures)) == (4, 1, {"BoxLost": 1})
    each_once(tmp_path, plan)


def test_a_job_past_its_wall_limit_is_tried_again(local_ray: None, tmp_path: Path, marks: Path) -> None:
    plan = Plan([TASK], 2, 1)
    started_s = time.monotonic()
    summary = play(tmp_path, plan, partial(rollout_policies.Sleep, str(marks)), job_wall_s=25.0)
    assert time.monotonic() - started_s < 400
    assert (summary.done, summary.retries, dict(summary.failures)) == (2, 1, {"JobWallLimit": 1})
    assert "the limit is 25 s" in summary.reasons["JobWallLimit"]
    each_once(tmp_path, plan)


def test_failures_inside_an_actor_are_never_stored(local_ray: None, tmp_path: Path, marks: Path) -> None:
    plan = Plan([TASK], 1, 2)
    lost = ScriptedSandbox(results={"submit": BoxLost("the daemon is gone")})
    summary = play(tmp_path / "a", plan, sandbox=lost, retries=1)
    assert (summary.done, summary.unfinished, dict(summary.failures)) == (0, 2, {"BoxLost": 4})
    assert stored(tmp_path / "a") == {}
    summary = play(tmp_path / "b", plan, partial(rollout_policies.Raise, str(marks)))
    assert (summary.done, dict(summary.failures)) == (2, {"ConnectionResetError": 1})


def test_wrong_usage_seen_by_an_actor_only(local_ray: None, tmp_path: Path) -> None:
    def factory(task: Any) -> Any:
        raise UsageError("no such model")

    with pytest.raises(UsageError, match="no such model"):
        play(tmp_path, Plan([TASK], 2, 1), factory)
    with DriverLock(tmp_path, wait_s=60.0):
        pass


# ---------------------------------------------------------------- the pool itself


def pool_of(out: Path, token: str, marks: Path, **keywords: Any) -> RayPool:
    setting = Setting(out=out, policy=partial(rollout_policies.Crowd, str(marks)), policy_name="crowd",
                      sandbox=ScriptedSandbox())  # fmt: skip
    settings: dict[str, Any] = {"workers": 1, "in_flight": 3, "job_wall_s": 300.0, "address": None, "worker_cpus": 0.0}
    return RayPool(setting, token=token, **settings | keywords)


def finish(pool: RayPool, count: int) -> list[Ended]:
    ended: list[Ended] = []
    deadline = time.monotonic() + 300
    while len(ended) < count:
        assert time.monotonic() < deadline
        ended += pool.wait(1.0)
    return ended


def test_no_more_jobs_are_taken_than_there_is_room_for(local_ray: None, tmp_path: Path, marks: Path) -> None:
    with DriverLock(tmp_path) as lock:
        pool = pool_of(tmp_path, lock.token, marks, workers=2, in_flight=2)
        given = 0
        while pool.has_room():
            pool.give(Attempt(job=Job(task=TASK, seed=given)))
            given += 1
        assert given == 4
        assert sorted(len(slot.jobs) for slot in pool._slots) == [2, 2]
        finish(pool, 4)
        assert pool.has_room()
        pool.close(now=False)
    assert len(list(marks.iterdir())) == 2


def test_jobs_behind_a_lost_one_come_back_untried(local_ray: None, tmp_path: Path, marks: Path) -> None:
    with DriverLock(tmp_path) as lock:
        pool = pool_of(tmp_path, lock.token, marks)
        for seed in range(3):
            pool.give(Attempt(job=Job(task=TASK, seed=seed)))
        name = pool._slots[0].name
        ray.kill(pool._slots[0].actor)
        ended = finish(pool, 3)
        assert [one.lost for one in ended] == [name] * 3
        assert [one.report is None for one in ended] == [False, True, True]
        first = ended[0].report
        assert first is not None
        assert first.failure is not None
        assert first.failure.kind == "ActorDied"
        for one in ended:
            pool.give(Attempt(job=one.attempt.job, lost=one.lost))
        again = [one.report for one in finish(pool, 3)]
        assert all(report is not None and report.failure is None for report in again)
        pool.close(now=False)
    assert len(stored(tmp_path)) == 3


def test_an_actor_that_never_begins_is_replaced(
    local_ray: None, tmp_path: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_pool, "START_WALL_S", 0.5)
    with DriverLock(tmp_path) as lock:
        pool = pool_of(tmp_path, lock.token, marks, worker_cpus=1000.0, in_flight=1)
        pool.give(Attempt(job=Job(task=TASK, seed=1)))
        (ended,) = finish(pool, 1)
        assert ended.report is not None
        assert ended.report.failure is not None
        assert "actor is not at work" in ended.report.failure.message
        pool.close(now=True)


def test_actors_of_an_earlier_driver_do_nothing(local_ray: None, tmp_path: Path, marks: Path) -> None:
    with DriverLock(tmp_path):
        pool = pool_of(tmp_path, "0" * 32, marks, in_flight=1)
        pool.give(Attempt(job=Job(task=TASK, seed=1)))
        (ended,) = finish(pool, 1)
        assert ended.report is not None
        assert ended.report.failure is not None
        assert "another driver by now" in ended.report.failure.message
        pool.close(now=True)
    assert stored(tmp_path) == {}


def test_ray_data_is_not_starved(local_ray: None, tmp_path: Path, marks: Path) -> None:
    """Two actors on two cores leave both to other Ray work."""
    with DriverLock(tmp_path) as lock:
        pool = pool_of(tmp_path, lock.token, marks, workers=2, in_flight=1)
        for seed in range(2):
            pool.give(Attempt(job=Job(task=TASK, seed=seed)))
        assert ray.get(ray.remote(num_cpus=2)(lambda: 7).remote(), timeout=120) == 7
        finish(pool, 2)
        pool.close(now=False)


def test_an_address_without_a_cluster(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        ray_pool.reach(f"{host}:{port}")
    for address in (f"127.0.0.1:{port}", "127.0.0.1:99999"):
        with pytest.raises(UsageError, match="no Ray cluster at address"):
            ray_pool.reach(address)
    ray_pool.reach("auto")
