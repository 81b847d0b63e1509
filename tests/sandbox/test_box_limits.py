"""Limits seen from the host, and what an agent reads of them; that they hold is in the conformance suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tbmm_env import shell
from tbmm_env.errors import BoxLost
from tbmm_env.limits import MIB
from tbmm_env.sandbox import conformance
from tbmm_env.sandbox.bubblewrap import BubblewrapSandbox

Start = Callable[..., Any]


def own_memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def seen(tried: Any, command: str, wall_s: float = 20.0) -> str:
    """What an agent reads of a command."""
    return shell.observe(tried.run(command, wall_s), tried.limits).terminal


def test_an_agent_reads_which_limit_it_met_and_how_much_was_cut(start: Start) -> None:
    tried = start(step_output_bytes=1000, step_wall_s=0.5)
    cut = "[... 892 bytes not shown; an action shows 1000 bytes, half of them from its end ...]"
    text = seen(tried, "seq 500")
    assert text.splitlines()[:2] == ["1", "2"]
    assert cut in text.splitlines()
    assert text.endswith("499\n500\n[exit status 0]\n")
    stopped = (
        "[stopped: the action reached its limit of 0.5 s wall time. Run longer work in the background: COMMAND > log"
    )
    text = seen(tried, "echo part; sleep 60", 0.5)
    assert text.startswith("part\n")
    assert stopped in text
    assert "exit status" not in text
    text = seen(tried, "seq 500; sleep 60", 0.5)
    assert "bytes not shown" in text
    assert stopped in text
    text = seen(tried, "read -p 'name? ' x")
    assert text.startswith("name? \n[nothing was printed for 0.2 s and the program waits for input: the next action is")
    assert seen(tried, "^C").endswith("[exit status 130]\n")
    text = seen(tried, "exit 3")
    assert "[the shell ended and was started anew in /workspace: variables and functions are gone," in text
    assert text.endswith("[exit status 3]\n")


def test_an_agent_reads_the_last_state_of_a_progress_bar(tried: Any) -> None:
    assert seen(tried, r"printf '10%%\r20%%\r100%%\n'") == "100%\n[exit status 0]\n"
    bar = "import sys, time\nfor n in range(5): sys.stdout.write(f'\\r{n * 25}%'); sys.stdout.flush(); time.sleep(0.05)"
    assert seen(tried, f"python3 - <<'E'\n{bar}\nE") == "100%\n[exit status 0]\n"


def test_a_screen_that_was_drawn_reads_as_text(tried: Any) -> None:
    text = seen(tried, "top")
    assert "PID" in text
    assert "waits for input" in text
    assert "\x1b" not in text
    assert seen(tried, "q").endswith("[exit status 0]\n")


def test_a_flood_grows_no_memory(tried: Any) -> None:
    before = own_memory_bytes()
    helper_before = int(tried.text("ps -o rss= 1"))
    result = tried.run("yes 'a flood of words' ; true", 2.0)
    assert result.ending == "wall_limit"
    assert result.dropped_bytes > 1_000_000
    assert len(result.head) == len(result.tail) == tried.limits.step_output_bytes // 2
    assert own_memory_bytes() - before < 32 * MIB
    assert int(tried.text("ps -o rss= 1")) - helper_before < 16 * 1024
    assert tried.text("echo fine") == "fine\n"


def test_a_box_that_runs_out_of_memory_died_by_the_agents_doing(grouped: None, start: Start) -> None:
    tried = start(memory_bytes=64 * MIB, workspace_bytes=40 * MIB, tmp_bytes=16 * MIB, shm_bytes=7 * MIB)
    result = tried.run("echo begin; for f in /workspace/a /tmp/b /dev/shm/c; do head -c 60M /dev/zero > $f; done")
    for _ in range(20):  # the helper is the last one to be taken
        if result.ending == "box_died":
            break
        result = tried.run("python3 -c 'x = bytearray(64 << 20)'")
    assert result.ending == "box_died"
    assert "oom" in result.evidence
    assert tried.box.collect().status == "missing"
    assert tried.run("echo again").ending == "box_died"


def test_a_silent_helper_is_our_failure(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = start()
    monkeypatch.setattr("tbmm_env.sandbox.session.GRACE_S", 0.5)
    monkeypatch.setattr(tried.box._channel, "send", lambda data: None)
    with pytest.raises(BoxLost, match="did not answer in time"):
        tried.run("true", 0.1)
    with pytest.raises(BoxLost):
        tried.box.collect()


def test_gaps_that_doctor_shows_are_those_of_the_suite() -> None:
    assert any(gap.startswith("inodes:") for gap in BubblewrapSandbox.known_gaps)
    assert "storage.inodes" in conformance.known_gaps("bwrap", root=True)
    assert any(gap.startswith("ordinary user: memory") for gap in BubblewrapSandbox.known_gaps)
    assert "limits.memory-of-all-processes" in conformance.known_gaps("bwrap", root=False)
