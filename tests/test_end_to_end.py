"""The oracle of every task as an agent: sampled instances on real boxes, the same verdict bytes on both.

Two sampled instances a task run in every run, on both boxes; ``--full`` runs twenty. The official instance, which may
take the oracle minutes, is a contract (``tbmm check-task``).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from tbmm_env import tasks
from tbmm_env.env import ModelingEnv
from tbmm_env.judge.numeral import read_exact
from tbmm_env.rollout import policies
from tbmm_env.rollout.episode import run_episode
from tbmm_env.sandbox.base import Sandbox
from tbmm_env.sandbox.docker import LABEL


@pytest.fixture(scope="module")
def environments() -> Iterator[dict[tuple[str, str], ModelingEnv]]:
    made: dict[tuple[str, str], ModelingEnv] = {}
    yield made
    for env in made.values():
        env.close()


@lru_cache(maxsize=256)
def remembered(task_id: str, seed: int) -> list[str]:
    """Judgement bytes seen for a seed, whichever box they come from."""
    return []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 20))])
@pytest.mark.parametrize("task_id", tasks.task_ids())
def test_oracle_on_sampled_instances(
    environments: dict[tuple[str, str], ModelingEnv], sandbox: Sandbox, task_id: str, seed: int
) -> None:
    task = tasks.load(task_id)
    if (sandbox.name, task_id) not in environments:
        environments[sandbox.name, task_id] = ModelingEnv(task_id, sandbox=sandbox, budget="contest")
    env = environments[sandbox.name, task_id]
    result = run_episode(env, policies.oracle(task), options={"instance": {"seed": seed}})
    judgement = dict(result.judgement)
    assert result.steps == 4
    assert judgement["outcome"] == "scored", judgement["reason"]
    assert judgement["certificate"]["accepted"] is True
    assert judgement["certificate"]["axioms"] == []
    assert read_exact(judgement["reward_exact"]) >= task.oracle.sampled, judgement["reason"]
    seen = remembered(task_id, seed)
    seen.append(json.dumps(judgement))
    if task.oracle.sampled == 1:
        assert len(set(seen)) == 1  # the same bytes on every box


# ---------------------------------------------------------------- the owner is killed

OWNER = """
import sys, time
from tbmm_env.env import ModelingEnv
from tbmm_env.judge.numeral import read_exact
env = ModelingEnv("cumcm-2024-a", sandbox=sys.argv[1], budget="train")
env.reset(seed=1)
env.step("(setsid sleep 600 &) ; sleep 600 & echo started")
print("ready", flush=True)
time.sleep(600)
"""


def children_of(owner: int) -> set[int]:
    """Return the ids of all living descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    found, grown = {owner}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found - {owner}


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


@pytest.mark.parametrize("ending", ["close", "kill"])
def test_nothing_is_left(sandbox: Sandbox, ending: str) -> None:
    code = OWNER if ending == "kill" else OWNER.replace("time.sleep(600)", "sys.stdin.readline(); env.close()")
    code += "\nprint('closed', flush=True)\nsys.stdin.readline()\n"
    owner = subprocess.Popen([sys.executable, "-c", code, sandbox.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdin is not None
    assert owner.stdout is not None
    try:
        assert owner.stdout.readline() == b"ready\n"
        before = children_of(owner.pid)
        containers = box_labels(owner.pid) if sandbox.name == "docker" else []
        assert len(before) >= 1
        if sandbox.name == "docker":
            assert containers
        if ending == "kill":
            owner.send_signal(signal.SIGKILL)
            owner.wait()
        else:
            owner.stdin.write(b"\n")
            owner.stdin.flush()
            assert owner.stdout.readline() == b"closed\n"
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            left = {pid for pid in before if alive(pid)}
            boxes = box_labels(owner.pid) if sandbox.name == "docker" else []
            if not left and not boxes:
                break
            time.sleep(0.05)
        assert not left, [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]
        assert not boxes
    finally:
        owner.kill()
        owner.wait()
        owner.stdin.close()
        owner.stdout.close()


def box_labels(owner: int) -> list[str]:
    """Return the names of containers that this process owns."""
    import docker

    client = docker.from_env()
    try:
        found = client.containers.list(all=True, ignore_removed=True)
        return [box.name or "" for box in found if str(box.labels.get(LABEL, "")).split("-")[1:2] == [str(owner)]]
    finally:
        client.close()


def test_children_are_seen() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert child.pid in children_of(os.getpid())
        assert alive(child.pid)
    finally:
        child.kill()
        child.wait()
    assert not alive(child.pid)
