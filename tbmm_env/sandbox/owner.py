"""The process that owns boxes: how it is named, how it starts programs, and what its forked children let go of."""

from __future__ import annotations

import itertools
import os
import subprocess
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol


class Held(Protocol):
    """Something whose open descriptors keep a box alive."""

    def abandon(self) -> None:
        """Close the descriptors without ending the box: this process is a forked copy of the owner."""
        ...


_held: weakref.WeakSet[Any] = weakref.WeakSet()
_spawner: ThreadPoolExecutor | None = None
_numbers = itertools.count(1)


def hold(thing: Held) -> None:
    """Have a thing abandoned in forked children, so that boxes die with their owner and not with its last copy."""
    _held.add(thing)


def release(thing: Held) -> None:
    """Undo :func:`hold`: the thing has closed its descriptors itself."""
    _held.discard(thing)


def _after_fork() -> None:
    global _spawner
    _spawner = None  # its thread is not in this copy
    for thing in list(_held):
        thing.abandon()
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)


def spawn(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program from a thread that lives as long as this process.

    "Die with the parent" means the parent *thread*; a box started from a passing thread would die with that.
    """
    global _spawner
    if _spawner is None:
        _spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tbmm-spawner")
    start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
    return _spawner.submit(start, command, **options).result()


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if there is none."""
    try:
        words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if words[0] in (b"Z", b"X") else int(words[19])


def pid_namespace() -> str:
    """Return the number of this process's pid namespace: pids mean nothing outside of it."""
    return str(Path("/proc/self/ns/pid").readlink()).strip("pid:[]")


def label() -> str:
    """Return this process's name: ``NAMESPACE-PID-START``."""
    return f"{pid_namespace()}-{os.getpid()}-{start_ticks(os.getpid())}"


def new_name(backend: str) -> str:
    """Return the name of a new box of this process: ``LABEL.NUMBER.BACKEND``."""
    return f"{label()}.{next(_numbers)}.{backend}"


def gone(other: str) -> bool:
    """Return whether the process of a label is surely gone; False for labels of other namespaces or shapes."""
    words = other.split("-")
    if len(words) != 3 or not all(word.isdigit() for word in words) or words[0] != pid_namespace():
        return False
    return start_ticks(int(words[1])) != int(words[2])
