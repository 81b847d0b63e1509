"""The filter of system calls, held against Docker's own default policy on the same kernel."""

from __future__ import annotations

import ast
import errno
import os
from dataclasses import replace

import pytest

from tbmm_env.limits import MIB, TRAIN
from tbmm_env.sandbox.base import BoxSpec, Sandbox
from tbmm_env.sandbox.guest import lockdown
from tbmm_env.sandbox.image import Image

MOST = 470
PROBE = r"""
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
seen = {}
for number in range(%d):
    for name, words in (("minus", [-1] * 6), ("zero", [0] * 6)):
        end, start = os.pipe()
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            got = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(word) for word in words])
            os.write(start, str(ctypes.get_errno() if got == -1 else 0).encode() + b"\n")
            os._exit(0)
        os.close(start)
        os.waitpid(child, 0)
        os.set_blocking(end, False)
        try:
            text = os.read(end, 64).split(b"\n")[0]
        except BlockingIOError:
            text = b""
        os.close(end)
        seen[number, name] = int(text) if text.isdigit() else -1
print(seen)
"""


def answers(sandbox: Sandbox, image: Image) -> dict[tuple[int, str], int]:
    """Return the error number of every system call with two sets of arguments; 0 for success, -1 if none came."""
    limits = replace(TRAIN, memory_bytes=512 * MIB, workspace_bytes=32 * MIB, tmp_bytes=16 * MIB, shm_bytes=8 * MIB)
    with sandbox.start(BoxSpec(limits=limits, files={"probe.py": (PROBE % MOST).encode()}, image=image)) as box:
        result = box.run("python3 /task/probe.py", wall_s=100.0, on_check=lambda _: "")
    assert result.exit_status == 0, result
    found: dict[tuple[int, str], int] = ast.literal_eval((result.head + result.tail).decode())
    return found


@pytest.mark.docker
@pytest.mark.bwrap
@pytest.mark.skipif(os.uname().machine not in lockdown.ARCHITECTURES, reason="no filter for this processor")
def test_bubblewrap_refuses_what_docker_refuses(bwrap_sandbox: Sandbox, docker_sandbox: Sandbox, image: Image) -> None:
    theirs, ours = answers(docker_sandbox, image), answers(bwrap_sandbox, image)
    # refused whatever the arguments are: by policy, not for the values
    refused = {number for number in range(MOST) if {theirs[number, "minus"], theirs[number, "zero"]} == {errno.EPERM}}
    assert len(refused) > 20
    open_here = {
        number: (ours[number, "minus"], ours[number, "zero"])
        for number in refused
        if not {ours[number, "minus"], ours[number, "zero"]} <= {errno.EPERM, errno.ENOSYS}
    }
    assert open_here == {}
    column = ("x86_64", "aarch64").index(os.uname().machine)
    for name, numbers in lockdown.DENIED.items():
        if numbers[column] < MOST:
            assert ours[numbers[column], "zero"] in (errno.EPERM, errno.ENOSYS), name
    assert ours[lockdown.CLONE3[column], "zero"] == errno.ENOSYS
    getpid = (39, 172)[column]
    assert ours[getpid, "zero"] == 0
