"""What the kernel has counted for the control groups of this box, where the box can see them. Runs inside the box.

Docker shows a container its own groups, read-only; a bubblewrap box has no ``/sys``, its owner looks from outside.
"""

from __future__ import annotations

import os
from contextlib import suppress

FILES = (
    ("oom_kills", "/sys/fs/cgroup/memory/memory.oom_control", b"oom_kill"),
    ("oom_kills", "/sys/fs/cgroup/memory.events", b"oom_kill"),
    ("pids_hits", "/sys/fs/cgroup/pids/pids.events", b"max"),
    ("pids_hits", "/sys/fs/cgroup/pids.events", b"max"),
)
MOST_BYTES = 4096


class Counted:
    """Open counter files."""

    def __init__(self) -> None:
        """Open what is there."""
        self._open: list[tuple[str, int, bytes]] = []
        for name, path, word in FILES:
            with suppress(OSError):
                self._open.append((name, os.open(path, os.O_RDONLY | os.O_CLOEXEC), word))

    def now(self) -> dict[str, int]:
        """Return the counters by name; empty where the box has no groups to see."""
        found: dict[str, int] = {}
        for name, descriptor, word in self._open:
            with suppress(OSError, ValueError):
                for line in os.pread(descriptor, MOST_BYTES, 0).splitlines():
                    key, _, number = line.partition(b" ")
                    if key == word:
                        found[name] = int(number)
        return found
