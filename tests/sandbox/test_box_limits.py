"""Every limit of a box: what stays under it works, what goes over it is stopped and said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tbmm_env.errors import BoxLost
from tbmm_env.limits import MIB, TRAIN
from tbmm_env.sandbox.base import BoxSpec, Sandbox

Start = Callable[..., Any]


def own_memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def test_wall_limit(tried: Any) -> None:
    assert tried.run("sleep 0.5", 5.0).ending == "exited"
    tried.text("x=kept; cd /tmp; sleep 300 & echo $! > pid")
    for command in (
        "echo before; sleep 60",
        "echo before; while true; do sleep 0.05; done",
        "echo before; while :; do :; done",
        "echo before; python3 -c 'while True: pass'",
        "echo before; python3 -c 'import signal; [signal.signal(s, signal.SIG_IGN) for s in (2, 15)]; signal.pause()'",
        "echo before; (sleep 60; sleep 60) | cat",
        "echo before; kill -STOP $BASHPID; sleep 60",
    ):
        result = tried.run(command, 0.4)
        assert result.ending in ("wall_limit", "exited"), command
        assert result.exit_status is None, command
        assert b"before" in result.head, command
        assert 0.3 < result.wall_s < 5.0, command
    assert tried.text("ps -eo pid,comm --no-headers | awk '$1 > 1 && /sleep|python/' | wc -l") == "1\n"
    assert tried.text("kill -0 $(cat /tmp/pid) && echo job") == "job\n"


def test_wall_limit_keeps_the_shell_where_it_can(tried: Any) -> None:
    tried.text("x=kept; cd /tmp")
    assert tried.run("while true; do sleep 0.1; done", 0.5).ending == "wall_limit"
    assert tried.text("echo $x $PWD") == "kept /tmp\n"
    result = tried.run("trap '' INT; while :; do :; done", 0.5)
    assert result.ending == "wall_limit"
    assert b"started anew in /workspace" in result.head + result.tail
    assert tried.text("echo $x $PWD") == "/workspace\n"


def test_wall_limit_while_waiting_for_input(tried: Any) -> None:
    assert tried.run("read x", 5.0).ending == "awaiting_input"
    assert tried.run("a; b", 5.0).ending == "exited"
    assert tried.run("cat", 0.2).ending == "wall_limit"  # before the silence is long enough
    assert tried.text("echo fine") == "fine\n"


def test_output_limit(start: Start) -> None:
    tried = start(step_output_bytes=1000)
    result = tried.run("head -c 1000 /dev/zero | tr '\\0' a")
    assert (len(result.head + result.tail), result.dropped_bytes) == (1000, 0)
    result = tried.run("printf start; head -c 5000 /dev/zero | tr '\\0' a; printf end")
    assert result.dropped_bytes == 4008
    assert result.head == b"start" + b"a" * 495
    assert result.tail == b"a" * 497 + b"end"


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


def test_memory_limit(grouped: None, tried: Any) -> None:
    assert tried.text("python3 -c 'print(len(bytearray(300 << 20)))'") == f"{300 * MIB}\n"
    result = tried.run("python3 -c 'print(len(bytearray(900 << 20)))'")
    assert result.exit_status == 137  # the kernel took the program, not the shell or the helper
    assert tried.text("echo fine") == "fine\n"


def test_memory_limit_of_all_processes_together(grouped: None, tried: Any) -> None:
    hog = "python3 -c 'x = bytearray(150 << 20); import time; time.sleep(3)'"
    result = tried.run(f"{hog} & {hog} & {hog} & {hog} & {hog} & wait")
    assert b"Killed" in result.head
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


def test_process_limit(start: Start) -> None:
    tried = start(pids=40)
    spawn = (
        "import subprocess, sys\nn = 0\ntry:\n  for n in range(int(sys.argv[1])): subprocess.Popen(['sleep', '30'])\n"
        "except OSError as error: print(error.strerror)\nprint(n > 15)"
    )
    tried.text(f"cat > s.py <<'E'\n{spawn}\nE")
    assert tried.text("python3 s.py 20") == "True\n"
    assert tried.text("python3 s.py 60; kill -9 $(pgrep sleep)").startswith("Resource temporarily unavailable\n")
    assert tried.text("echo fine").endswith("fine\n")
    assert int(tried.text("sleep 0.5; echo /proc/[0-9]* | wc -w")) < 20  # names alone: some may be gone by now


def test_a_fork_bomb_is_held_and_the_answer_still_collected(start: Start) -> None:
    tried = start(pids=60)
    tried.text("echo '{}' > answer.json")
    tried.run(":(){ :|:& };:", 1.0)
    tried.run("echo still", 2.0)
    assert tried.box.collect().data == b"{}\n"
    assert tried.text("echo fine").endswith("fine\n")


def test_tmpfs_sizes(tried: Any) -> None:
    for path, name in (("/workspace", "workspace_bytes"), ("/tmp", "tmp_bytes"), ("/dev/shm", "shm_bytes")):
        size = asdict(tried.limits)[name]
        assert tried.run(f"head -c {size * 3 // 4} /dev/zero > {path}/f").exit_status == 0
        result = tried.run(f"head -c {size + 1} /dev/zero > {path}/f")
        assert b"No space left on device" in result.head, path
        assert 0.9 * size < int(tried.text(f"stat -c %s {path}/f; rm {path}/f")) <= size, path


def test_a_full_disk_does_not_stop_the_shell(tried: Any) -> None:
    tried.run("for d in /workspace /tmp /dev/shm; do head -c 1G /dev/zero > $d/fill; done")
    assert tried.text("echo fine; cat <<'E'\nhere\nE") == "fine\nhere\n"
    assert "submitted" in tried.text("submit")


def test_nothing_else_can_be_written(tried: Any) -> None:
    writable = tried.text(
        "find / -xdev -writable \\( -type d -o -type f \\) 2>/dev/null; for d in /dev /run /var/tmp /home /etc"
        " /usr/local /proc/sys/kernel /sys; do touch $d/x 2>/dev/null && echo $d; done"
    )
    assert set(writable.split()) == {"/workspace", "/tmp"}


@pytest.mark.docker
def test_inode_limit(docker_sandbox: Sandbox, image: Any) -> None:
    limits = replace(TRAIN, inodes=500)
    with docker_sandbox.start(BoxSpec(limits=limits, files={}, image=image)) as box:
        result = box.run("for i in $(seq 400); do : > f$i; done", wall_s=20, on_check=lambda _: "")
        assert result.exit_status == 0
        result = box.run("for i in $(seq 600); do : > g$i || break; done", wall_s=20, on_check=lambda _: "")
        assert b"No space left on device" in result.head


@pytest.mark.bwrap
def test_inodes_are_a_known_gap_of_bubblewrap(bwrap_sandbox: Sandbox, image: Any) -> None:
    limits = replace(TRAIN, inodes=500)
    with bwrap_sandbox.start(BoxSpec(limits=limits, files={}, image=image)) as box:
        result = box.run("for i in $(seq 600); do : > g$i || break; done; ls | wc -l", wall_s=20, on_check=lambda _: "")
    assert result.head == b"600\n"
    assert any(gap.startswith("inodes:") for gap in bwrap_sandbox.known_gaps)  # type: ignore[attr-defined]


def test_cpu_share(grouped: None, start: Start) -> None:
    tried = start(cpus=0.25)
    burn = "python3 -c 'import time; t = time.time()\nwhile time.time() < t + 2: pass\nprint(time.process_time())'"
    assert float(tried.text(burn)) < 1.2


def test_descriptor_exhaustion_and_large_arguments(tried: Any) -> None:
    program = "import os\nn = 0\ntry:\n  while True: os.dup(0); n += 1\nexcept OSError as e: print(n > 100, e.strerror)"
    assert tried.text(f"python3 - <<'E'\n{program}\nE") == "True Too many open files\n"
    assert tried.run("/bin/true $(seq 1000000)").exit_status == 126
    assert tried.text("head -c 50M /dev/zero | wc -c") == f"{50 * MIB}\n"


def test_a_silent_helper_is_our_failure(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = start()
    monkeypatch.setattr("tbmm_env.sandbox.session.GRACE_S", 0.5)
    monkeypatch.setattr(tried.box._channel, "send", lambda data: None)
    with pytest.raises(BoxLost, match="did not answer in time"):
        tried.run("true", 0.1)
    with pytest.raises(BoxLost):
        tried.box.collect()
