"""The benchmarks run and say what they measure; their bars are not asserted here, where machines are busy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tbmm_env import tasks
from tbmm_env.sandbox.base import Sandbox

FOLDER = Path(__file__).parents[1] / "benchmarks"


def ran(name: str, *words: str) -> dict[str, Any]:
    """Run a benchmark and return what it prints; missed bars are fine, anything else is not."""
    command = [sys.executable, FOLDER / name, "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.stdout, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if all(bar["kept"] for bar in found["bars"]) else 1), done.stderr[-3000:]
    return found


@pytest.mark.docker
@pytest.mark.bwrap
@pytest.mark.lean
def test_sandbox(bwrap_sandbox: Sandbox, docker_sandbox: Sandbox) -> None:
    found = ran("sandbox.py", "--quick", "--repeats", "1")
    assert {bar["name"].partition(" ")[0] for bar in found["bars"]} >= {"docker", "tmux", "bwrap", "MiB", "flood"}
    for title, values in found["measured"].items():
        assert all(value > 0 for name, value in values.items() if "growth" not in name), title


@pytest.mark.bwrap
@pytest.mark.lean
def test_soak(bwrap_sandbox: Sandbox) -> None:
    found = ran("soak.py", "--sandbox", "bwrap", "--episodes", "2", "--kills", "1", "--limit-s", "120")
    assert found["count"]["episodes"] >= 2
    assert found["count"]["kills"] == 1
    assert (found["left"], found["left_after_a_kill"], found["failures"]) == ([], [], []), found["errors"]
    assert sum(found["killed_during"].values()) == 1


def test_replays() -> None:
    found = ran("replays.py", "--quick", "--repeats", "1")
    assert set(found["ms"]) == set(tasks.task_ids())
    assert all(value > 0 for values in found["ms"].values() for value in values.values())
