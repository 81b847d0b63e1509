"""The driver as a process: killed at any moment and resumed, and stopped by Ctrl-C."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import missing
from rollout_policies import descendants

from tbmm_env.rollout.jobs import Plan
from tbmm_env.sandbox.base import Sandbox
from tbmm_env.trajectory.store import Store

TASK = "cumcm-2024-a"
PATIENCE_S = 300.0

pytestmark = pytest.mark.bwrap


class Rollouts:
    """Drivers on one folder, each the leader of its own process group as a shell makes it."""

    def __init__(self, folder: Path) -> None:
        self.out = folder / "out"
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tbmm_env.cli", "rollout", "--tasks", TASK, "--sandbox", "bwrap", "--json"]
        process = subprocess.Popen(
            [*command, "--out", str(self.out), *arguments], cwd=Path(__file__).parent, start_new_session=True,
            env={**os.environ, "TBMM_TEST_MARKS": str(self.marks)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        self.started.append(process)
        return process

    def end(self, process: subprocess.Popen[str], code: int) -> dict[str, Any]:
        said, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == code, err
        summary: dict[str, Any] = json.loads(said)
        return summary

    def begun(self) -> int:
        return len(list(self.marks.iterdir()))

    def moved(self) -> int:
        """A number that grows when an episode begins that is marked, or an actor stores its first one."""
        return self.begun() + len(list(self.out.glob("segments/*.seg")))

    def each_once(self, plan: Plan) -> None:
        jobs = [stored.episode.job for stored in Store(self.out).episodes()]
        assert sorted(jobs) == sorted(job.key for job in plan)
        assert {found.kind for found in Store(self.out).verify()} <= {"torn", "leftover"}


@pytest.fixture
def rollouts(tmp_path: Path, bwrap_sandbox: Sandbox) -> Iterator[Rollouts]:
    try:
        import ray  # noqa: F401 - the drivers need it
    except ImportError:
        missing("Ray is not installed")
    made = Rollouts(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.05)


SLOW = ("--policy", "rollout_policies:Slow", "--policy-name", "slow")


def killed_again_and_again(rollouts: Rollouts, plan: Plan, arguments: list[str], moments: list[float]) -> None:
    """Kill drivers at moments: seconds from the start or, when negative, from when an actor is at work."""
    survivors: set[int] = set()
    for number, moment in enumerate(moments):
        before = rollouts.moved()
        driver = rollouts.start(*arguments, *(["--resume"] if number else []))
        if moment < 0:
            wait_for(lambda driver=driver, before=before: rollouts.moved() > before or driver.poll() is not None)
        time.sleep(abs(moment))
        survivors |= {pid for pid in descendants(driver.pid) if actor(pid)}
        driver.kill()
        driver.communicate()
    summary = rollouts.end(rollouts.start(*arguments, "--resume"), 0)
    assert summary["complete"]
    assert summary["skipped"] + summary["done"] == len(plan)
    rollouts.each_once(plan)
    wait_for(lambda: not any(actor(pid) for pid in survivors))


def actor(pid: int) -> bool:
    try:
        return b"LockedWorker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_killed_driver_is_resumed(rollouts: Rollouts) -> None:
    arguments = ["--instances", "4", "--group-size", "2", "--workers", "2", *SLOW]
    killed_again_and_again(rollouts, Plan([TASK], 4, 2), arguments, [2.0, -0.5, -1.2])


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_128_episodes_and_twenty_kills(rollouts: Rollouts) -> None:
    """The issue's own measure: 32 instances, groups of 4, two workers."""
    arguments = ["--instances", "32", "--group-size", "4", "--policy", "random-template", "--workers", "2"]
    rng = random.Random(20)
    moments = [rng.uniform(0.0, 10.0) * (-1 if number % 4 else 1) for number in range(20)]
    killed_again_and_again(rollouts, Plan([TASK], 32, 4), arguments, moments)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_128_episodes(rollouts: Rollouts) -> None:
    arguments = ["--instances", "32", "--group-size", "4", "--policy", "random-template", "--workers", "2"]
    process = rollouts.start(*arguments)
    said, err = process.communicate(timeout=3000)
    assert process.returncode == 0, err
    assert json.loads(said)["done"] == 128
    rollouts.each_once(Plan([TASK], 32, 4))


def test_ctrl_c_lets_running_episodes_finish(rollouts: Rollouts) -> None:
    driver = rollouts.start("--instances", "200", "--workers", "2", *SLOW)
    wait_for(lambda: rollouts.begun() >= 2 or driver.poll() is not None)
    os.killpg(driver.pid, signal.SIGINT)
    summary = rollouts.end(driver, 130)
    assert summary["stopped"] == "interrupted"
    assert summary["failures"] == {}
    assert 2 <= summary["done"] == rollouts.begun() < 200
    assert len(list(Store(rollouts.out).episodes())) == summary["done"]


def test_a_second_ctrl_c_stops_at_once(rollouts: Rollouts) -> None:
    driver = rollouts.start("--instances", "200", "--workers", "1", *SLOW)
    wait_for(lambda: rollouts.begun() >= 1 or driver.poll() is not None)
    actors = [pid for pid in descendants(driver.pid) if actor(pid)]
    assert actors
    os.kill(driver.pid, signal.SIGINT)
    time.sleep(0.1)
    os.kill(driver.pid, signal.SIGINT)
    summary = rollouts.end(driver, 130)
    assert not summary["complete"]
    assert len(list(Store(rollouts.out).episodes())) >= summary["done"]
    wait_for(lambda: not any(actor(pid) for pid in actors))
