"""Our end of the watcher: a small process that is there while we have boxes, and cleans up when we are killed."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Literal

from tbmm_env.sandbox import owner, watch_program

Place = tuple[Literal["group", "tree", "docker"], str]
"""Where something may be left: see :mod:`tbmm_env.sandbox.watch_program`."""


class _Watcher:
    """The process; its stdin is a pipe that only we hold.

    Where Python cannot be started again (a process that has given up its rights), there is none, and leftovers wait
    for the next sweep.
    """

    def __init__(self) -> None:
        read_end, self._write_end = os.pipe()
        self._told: set[Place] = set()
        self._pid: int | None = None
        words = [sys.executable, "-I", "-S", str(watch_program.__file__), owner.label()]
        with suppress(OSError):
            self._pid = os.posix_spawn(
                sys.executable,
                words,
                {"PATH": "/usr/bin:/bin"},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, read_end, 0),
                    (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
                ],
                setsid=True,
            )
        os.close(read_end)
        owner.hold(self)

    def tell(self, place: Place) -> None:
        """Name a place, once."""
        if place not in self._told:
            self._told.add(place)
            with suppress(BrokenPipeError):  # somebody has ended it: leftovers wait for the next sweep
                os.write(self._write_end, os.fsencode(" ".join(place) + "\n"))

    def end(self) -> None:
        """Let it go and wait for it: there is nothing left that it could be needed for."""
        owner.release(self)
        with suppress(BrokenPipeError):
            os.write(self._write_end, b"bye\n")
        os.close(self._write_end)
        if self._pid is not None:
            with suppress(ChildProcessError):  # somebody reaps all children of this process
                os.waitpid(self._pid, 0)

    def abandon(self) -> None:
        """Close the pipe in a forked copy of the owner, which has no boxes."""
        global _watcher, _lock
        os.close(self._write_end)
        _watcher, _lock = None, threading.Lock()
        _living.clear()


_watcher: _Watcher | None = None
_living: set[str] = set()
_lock = threading.Lock()


def watch(name: str, *places: Place) -> None:
    """Note a box before anything of it is made, and where something of it may be left."""
    global _watcher
    with _lock:
        _living.add(name)
        if _watcher is None:
            _watcher = _Watcher()
        for place in places:
            _watcher.tell(place)


def forget(name: str) -> None:
    """Note that nothing of a box is left; the last one ends the watcher."""
    global _watcher
    with _lock:
        _living.discard(name)
        if not _living and _watcher is not None:
            _watcher.end()
            _watcher = None
