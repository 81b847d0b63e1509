# ruff: noqa: PTH116, PTH123, PTH208
# (pathlib would lengthen the helper's start)
"""Find out whether a program waits for terminal input. Runs inside the box.

The kernel tells which system call each thread sleeps in, and with which arguments.
"""

from __future__ import annotations

import os
import struct
import time

CALLS = {
    "x86_64": {
        0: "read",
        19: "read",
        7: "poll",
        271: "poll",
        23: "select",
        270: "select",
        232: "epoll",
        281: "epoll",
        441: "epoll",
    },
    "aarch64": {63: "read", 65: "read", 73: "poll", 72: "select", 22: "epoll", 441: "epoll"},
}
CALL_OF = CALLS.get(os.uname().machine, {})
DEV_TTY = os.makedev(5, 0)
POLLIN = 1
MOST_DESCRIPTORS = 4096
LOOK_S = 0.3
"""A box may hold very many threads that wait for very many files; the helper has other things to do."""


def waits_for_terminal(group: int, terminal: int) -> bool:
    """Return whether a process of the foreground group sleeps until the terminal has input.

    A process of another session counts too: the server of a terminal multiplexer reads for its client in front.

    Args:
        group: process group id.
        terminal: device number of the terminal.
    """
    own, deadline = os.getsid(0), time.monotonic() + LOOK_S
    for name in os.listdir("/proc"):
        if not name.isdigit() or name == "1":
            continue
        its_group, session = _group_and_session(name)
        if its_group == group or session not in (own, -1):
            try:
                threads = os.listdir(f"/proc/{name}/task")
            except OSError:
                continue
            for thread in threads:
                if time.monotonic() > deadline:
                    return False
                try:
                    if _thread_waits(f"/proc/{name}", thread, terminal):
                        return True
                except (OSError, ValueError, IndexError, OverflowError, struct.error):
                    continue
    return False


def _group_and_session(process: str) -> tuple[int, int]:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            group, session = file.read().rpartition(b")")[2].split()[2:4]
            return int(group), int(session)
    except (OSError, ValueError, IndexError):
        return -1, -1


def _thread_waits(process: str, thread: str, terminal: int) -> bool:
    with open(f"{process}/task/{thread}/syscall", "rb") as file:
        words = file.read().split()
    if len(words) < 7:
        return False
    call = CALL_OF.get(int(words[0]))
    arguments = [int(word, 16) for word in words[1:7]]
    if call == "read":
        waiting = {arguments[0] & 0xFFFFFFFF}
    elif call == "poll":
        waiting = _polled(process, arguments[0], arguments[1])
    elif call == "select":
        waiting = _selected(process, arguments[0] & 0xFFFFFFFF, arguments[1])
    elif call == "epoll":
        waiting = _watched(process, arguments[0] & 0xFFFFFFFF)
    else:
        return False
    return any(_is_terminal(process, descriptor, terminal) for descriptor in waiting)


def _is_terminal(process: str, descriptor: int, terminal: int) -> bool:
    try:
        return os.stat(f"{process}/fd/{descriptor}").st_rdev in (terminal, DEV_TTY)
    except OSError:
        return False


def _memory(process: str, address: int, length: int) -> bytes:
    with open(f"{process}/mem", "rb", buffering=0) as file:
        file.seek(address)
        return file.read(length)


def _polled(process: str, address: int, count: int) -> set[int]:
    data = _memory(process, address, 8 * min(count, MOST_DESCRIPTORS))
    return {
        descriptor for descriptor, events, _ in struct.iter_unpack("=ihh", data) if events & POLLIN and descriptor >= 0
    }


def _selected(process: str, count: int, address: int) -> set[int]:
    if not address:
        return set()
    bits = int.from_bytes(_memory(process, address, (min(count, MOST_DESCRIPTORS) + 7) // 8), "little")
    return {descriptor for descriptor in range(min(count, MOST_DESCRIPTORS)) if bits >> descriptor & 1}


def _watched(process: str, descriptor: int) -> set[int]:
    with open(f"{process}/fdinfo/{descriptor}", encoding="ascii") as file:
        lines = [line.split() for line in file if line.startswith("tfd:")]
    return {int(words[1]) for words in lines if int(words[3], 16) & POLLIN}
