"""Who failed: every way a box or an action can end, and the one answer to each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tbmm_env.limits import MIB
from tbmm_env.record import CommandResult, Ending
from tbmm_env.sandbox.fault import Counters, Fault, classify, of_command, of_end


@pytest.mark.parametrize(
    ("counters", "silent", "fault", "evidence"),
    [
        (Counters(), False, "sandbox_failed", ""),
        (Counters(), True, "sandbox_failed", ""),
        (Counters(oom_kills=2), False, "agent_broke_box", "oom_kill 2"),
        (Counters(memory_hits=9, pids_hits=3), False, "sandbox_failed", ""),
        (Counters(memory_hits=9, pids_hits=3), True, "agent_broke_box", "memory_limit_hits 9, pids_limit_hits 3"),
        (Counters(memory_share=0.951), True, "agent_broke_box", "memory at 95% of its limit"),
        (Counters(pids_share=1.0), True, "agent_broke_box", "processes at 100% of their limit"),
        (Counters(memory_share=0.949, pids_share=0.949), True, "sandbox_failed", ""),
        (Counters(memory_share=1.0, pids_share=1.0), False, "sandbox_failed", ""),
    ],
)
def test_the_end_of_a_box(counters: Counters, silent: bool, fault: Fault, evidence: str) -> None:
    assert of_end(counters, silent=silent) == (fault, evidence)


def test_only_what_happened_during_a_command_is_its_evidence() -> None:
    before = Counters(oom_kills=1, pids_hits=5, memory_hits=1)
    assert of_command(before, before) == ""
    assert of_command(before, Counters(oom_kills=3, pids_hits=5, memory_hits=99)) == "oom_kill 2"
    assert of_command(before, Counters(oom_kills=1, pids_hits=6)) == "pids_limit_hits 1"


@pytest.mark.parametrize(
    ("ending", "exit_status", "evidence", "fault"),
    [
        ("exited", 0, "", "none"),
        ("exited", 0, "oom_kill 1", "none"),
        ("exited", 137, "", "command_failed"),
        ("exited", 137, "oom_kill 1", "limit_hit"),
        ("exited", 1, "pids_limit_hits 2", "limit_hit"),
        ("exited", 1, "", "command_failed"),
        ("awaiting_input", None, "", "none"),
        ("wall_limit", None, "", "limit_hit"),
        ("shell_restarted", 7, "", "command_failed"),
        ("shell_restarted", 137, "oom_kill 1", "limit_hit"),
        ("box_died", None, "oom_kill 1", "agent_broke_box"),
    ],
)
def test_the_end_of_an_action(ending: Ending, exit_status: int | None, evidence: str, fault: Fault) -> None:
    text = b"Out of memory. Killed. container died. sandbox lost."  # text never counts
    result = CommandResult(
        head=text, tail=b"", dropped_bytes=0, ending=ending, exit_status=exit_status, evidence=evidence, wall_s=0.0
    )
    assert classify(result) == fault


def test_real_boxes_tell_a_limit_from_a_failure(start: Callable[..., Any], grouped: None) -> None:
    tried = start(memory_bytes=160 * MIB, workspace_bytes=8 * MIB, pids=48)
    cases: dict[str, Fault] = {
        "true": "none",
        "false": "command_failed",
        "sh -c 'kill -9 $$'": "command_failed",
        "echo Killed; echo Out of memory; sh -c 'exit 137'": "command_failed",
        "python3 -c 'x = bytearray(400 << 20)'": "limit_hit",
        "kill -9 $$": "command_failed",
        "python3 -c 'import time, threading as t; [t.Thread(target=time.sleep, args=(2,)).start() for _ in range(99)]'"
        " 2>&1 | tail -n 1; false": "limit_hit",
    }
    assert {command: classify(tried.run(command)) for command in cases} == cases
    assert classify(tried.run("sleep 60", wall_s=0.5)) == "limit_hit"
