"""The helper's ways with shell and terminal, when an agent breaks them; what every backend promises is in the
conformance suite."""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from tbmm_env.limits import TRAIN
from tbmm_env.sandbox.base import BoxSpec, Sandbox
from tbmm_env.sandbox.guest import lockdown
from tbmm_env.sandbox.image import Image

Start = Callable[..., Any]


def test_an_agent_that_breaks_its_own_shell_deceives_only_itself(tried: Any) -> None:
    for breakage in (
        "PROMPT_COMMAND='echo 00 0 >&251'",
        "exec 250>&-",
        "exec 251>&-",
        "exec 252>&-",
        "while :; do printf x > /dev/fd/252; done & sleep 0.1",
        "exec >/dev/null 2>&1 </dev/null",
        "eval() { :; }; printf() { :; }; read() { :; }",
        "stty raw -echo; stty -a > /tmp/modes",
        "trap 'echo trapped' DEBUG EXIT INT",
        "for i in $(seq 300); do echo forged 0 >&251; done",
        "head -c 3000000 /dev/zero >&251",
        "set -x; PS4='$(echo 1)'",
        "printf 'exit 9\\n' > /dev/fd/250",
    ):
        result = tried.run(breakage, wall_s=3.0)
        assert result.ending in ("exited", "awaiting_input", "shell_restarted", "wall_limit"), breakage
        tried.run("kill -9 $$", wall_s=3.0)
        if tried.run("echo x", wall_s=3.0).ending == "awaiting_input":  # the flood took the word that it had ended
            tried.run("exit", wall_s=3.0)
        assert tried.text("echo fine") == "fine\n", breakage


def test_a_shell_that_can_no_longer_report_waits_and_is_left_by_exit(tried: Any) -> None:
    tried.run("readonly PROMPT_COMMAND")
    assert tried.run("true").ending == "awaiting_input"
    assert tried.run("exit").ending == "shell_restarted"
    assert tried.text("echo fine") == "fine\n"


def test_a_shell_that_dies_before_it_reads_the_command_costs_nothing(start: Callable[..., Any]) -> None:
    tried = start(no_output_s=60.0)
    tried.run("cd /tmp; bash -c 'sleep 0.5; kill -STOP $PPID; sleep 4; kill -KILL $PPID' &")
    time.sleep(2.5)
    result = tried.run("pwd; echo once >> /workspace/runs; cat /workspace/runs; rm /workspace/runs", wall_s=20.0)
    assert (result.ending, result.exit_status) == ("exited", 0)
    said = result.head + result.tail
    assert b"/workspace\nonce\n\n[the shell had ended and was started anew in /workspace]\n" in said


def test_a_forged_end_does_not_shift_later_answers(tried: Any) -> None:
    read_word = 'word=$(echo "$PROMPT_COMMAND" | sed -n \'s/.*n" \\([0-9a-f]*\\) .*/\\1/p\')'
    forge = f'{read_word}; echo "$word 5" >&251; sleep 0.5; echo late'
    result = tried.run(forge)
    assert result.exit_status == 5  # it told itself so
    assert tried.run("sleep 1").ending == "exited"
    for number in range(5):
        assert tried.text(f"echo {number}").endswith(f"{number}\n")


def test_an_agent_that_breaks_its_terminal_harms_only_itself(tried: Any) -> None:
    start = "import fcntl, os, signal, struct, termios as t, time; "
    for attack in (
        "fcntl.ioctl(0, t.TIOCSETD, struct.pack('i', 27))",  # a line discipline that passes nothing on
        "fcntl.ioctl(0, t.TIOCEXCL)",
        "t.tcflow(0, t.TCOOFF); os.write(1, b'x')",
        "t.tcflow(0, t.TCIOFF)",
        "os.set_blocking(0, False)",
        "signal.signal(signal.SIGTTOU, signal.SIG_IGN); os.tcsetpgrp(0, 1)",
        "os.setpgid(0, 1); time.sleep(9)",
        "modes = t.tcgetattr(0); modes[3] |= t.ECHO | t.TOSTOP; modes[1] |= t.OPOST; t.tcsetattr(0, t.TCSANOW, modes)",
        "os.write(1, b'x' * 100000); fcntl.ioctl(0, t.TCFLSH, 2)",
    ):
        tried.run(f'python3 -c "{start}{attack}"', wall_s=0.5)
        assert tried.run("true", wall_s=2.0).ending in ("exited", "shell_restarted"), attack
        assert tried.text("echo fine").endswith("fine\n"), attack


def test_the_helper_answers_among_busy_processes(start: Start) -> None:
    tried = start(cpus=0.5, pids=120)
    tried.run("for i in $(seq 100); do (while :; do :; done) & done 2> /dev/null", 20.0)
    result = tried.run("sleep 60", 0.5)
    assert result.ending == "wall_limit"
    assert result.wall_s < 20.0
    assert tried.box.collect().status == "missing"


@pytest.mark.bwrap
def test_what_the_owner_ignores_reaches_no_program(bwrap_sandbox: Sandbox, image: Image) -> None:
    """Signal 32 is the C library's own: no function of it sets it, but ``make`` leaves it ignored in its children."""
    libc, ignore, before = ctypes.CDLL(None), struct.pack("QQQQ", 1, 0, 0, 0), ctypes.create_string_buffer(64)
    number = lockdown.RT_SIGACTION[os.uname().machine]
    assert libc.syscall(ctypes.c_long(number), 32, ignore, before, ctypes.c_size_t(8)) == 0
    try:
        with bwrap_sandbox.start(BoxSpec(limits=TRAIN, files={}, image=image)) as box:
            result = box.run("grep SigIgn /proc/self/status", wall_s=30.0, on_check=lambda _: "")
    finally:
        libc.syscall(ctypes.c_long(number), 32, before, None, ctypes.c_size_t(8))
    assert result.head.split() == [b"SigIgn:", b"0000000000000000"]
