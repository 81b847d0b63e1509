"""Plans and their keys, and the locks that say who is at work."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tbmm_env.errors import TrajectoryError, UsageError
from tbmm_env.rollout.jobs import Job, Plan
from tbmm_env.rollout.locks import DriverLock, WorkerLock, await_gone

HOLDER = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"


def test_keys_are_distinct_and_in_order() -> None:
    plan = Plan(["a", "b"], 3, 2, groups=2, first_seed=5)
    keys = [job.key for job in plan]
    assert len(plan) == len(keys) == len(set(keys)) == 24
    assert keys[:3] == ["a/5/0/0", "a/5/0/1", "a/5/1/0"]
    assert keys[-1] == "b/7/1/1"
    assert [job.key for job in plan] == keys
    assert [job.seed for job in Plan(["a"], 3, 1, first_seed=2, stride=5)] == [2, 7, 12]
    assert [job.key for job in Plan(["a"], 1, 2, official=True)] == ["a/official/0/0", "a/official/0/1"]


def test_group_ids_tell_version_instance_group_and_policy_apart() -> None:
    job = Job(task="a", seed=5, group=1, sample=3)
    assert job.group_id("1.0.0", "nop") == "a@1.0.0/5/1/nop"
    others = {Job(task="a", seed=None).group_id("1", "p"), Job(task="a", seed=0).group_id("1", "p"),
              Job(task="a", seed=0).group_id("2", "p"), Job(task="a", seed=0).group_id("1", "q"),
              Job(task="a", seed=0, group=1).group_id("1", "p"), Job(task="b", seed=0).group_id("1", "p")}  # fmt: skip
    assert len(others) == 6


def test_a_plan_of_any_size_is_made_as_it_is_read() -> None:
    plan = Plan(["a"], 10**12, 1000)
    assert len(plan) == 10**15
    assert [job.sample for job in itertools.islice(plan, 1001)][-2:] == [999, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"instances": 0}, "instances is 0"), ({"group_size": 0}, "group_size is 0"), ({"groups": -1}, "groups is -1"),
        ({"first_seed": -1}, "first_seed is -1"), ({"first_seed": 2**63}, "first_seed"), ({"tasks": []}, "no task"),
        ({"tasks": ["a", "a"]}, "named twice"), ({"stride": 0}, "stride is 0"),
        ({"instances": 2**32, "stride": 2**32}, "first_seed"),
    ],
)  # fmt: skip
def test_bad_plans(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Plan(**({"tasks": ["a"], "instances": 1, "group_size": 1} | arguments))


# ---------------------------------------------------------------- locks


@pytest.fixture
def hold() -> Iterator[Any]:
    """Another process that holds a lock until its standard input ends or it is killed."""
    started = []

    def begin(path: Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def test_one_driver_at_a_time(tmp_path: Path) -> None:
    with DriverLock(tmp_path), pytest.raises(UsageError, match="another rollout is at work"):
        DriverLock(tmp_path, wait_s=0.2)
    DriverLock(tmp_path, wait_s=0.0).close()


@pytest.mark.parametrize("name", ["driver", "worker-3"])
def test_a_new_driver_waits_for_the_remains_of_a_killed_one(tmp_path: Path, hold: Any, name: str) -> None:
    (tmp_path / "locks").mkdir()
    other = hold(tmp_path / "locks" / name)
    told: list[int] = []
    with pytest.raises(UsageError, match="another rollout"):
        DriverLock(tmp_path, wait_s=0.3, on_wait=lambda: told.append(1))
    assert told == [1]
    threading.Timer(0.3, other.kill).start()
    DriverLock(tmp_path, wait_s=60.0).close()


def test_a_worker_of_an_earlier_driver_does_not_begin(tmp_path: Path) -> None:
    with DriverLock(tmp_path) as earlier:
        token = earlier.token
        WorkerLock(tmp_path, token, "1").close()
    with DriverLock(tmp_path), pytest.raises(UsageError, match="another driver by now"):
        WorkerLock(tmp_path, token, "2")


def test_a_lost_worker_is_waited_for(tmp_path: Path, hold: Any) -> None:
    (tmp_path / "locks").mkdir()
    await_gone(tmp_path, "never-began")
    path = tmp_path / "locks" / "worker-7"
    other = hold(path)
    with pytest.raises(TrajectoryError, match=r"worker 7 is lost, but still holds .* after 0.2 s"):
        await_gone(tmp_path, "7", wait_s=0.2)
    os.kill(other.pid, 9)
    started_s = time.monotonic()
    await_gone(tmp_path, "7", wait_s=60.0)
    assert time.monotonic() - started_s < 60
    assert not path.exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TrajectoryError, match="name another folder"):
        DriverLock(tmp_path / "file")
