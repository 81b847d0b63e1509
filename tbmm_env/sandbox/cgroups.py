"""Control groups of bubblewrap boxes: memory, processes, processor share; version 1 and 2.

A box's group is ``<mount>/tbmm/<owner label>.<number>``. Groups of owners that are gone are swept when a box is
started, and at once by a small watcher that waits for its owner's end; it is there while there are boxes.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tbmm_env.limits import Limits
from tbmm_env.sandbox import owner

PARENT = "tbmm"
PERIOD_US = 100_000
PATIENCE_S = 5.0
NEEDED = ("memory", "pids")
WATCHER = (
    'read nothing; n=0; while [ $n -lt 100 ]; do n=$((n+1)); left=; for d in "$@"; do for g in "$d"/*; do'
    ' case "$g" in "$d/$OWNER".*) rmdir "$g" 2>/dev/null || left=1;; esac; done; done;'
    ' [ -z "$left" ] && exit 0; sleep 0.1; done'
)
"""Waits until its stdin closes, then removes the owner's groups as they become empty."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted hierarchy: where, which version, which of our controllers it has."""

    mount: Path
    version: int
    controllers: tuple[str, ...]


@cache
def hierarchies() -> tuple[Hierarchy, ...]:
    """Return the hierarchies that hold memory, pids and cpu; version 2 only where it has the controllers."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        before, _, after = line.partition(" - ")
        mount, (kind, _, options) = Path(before.split()[4]), after.split()[:3]
        if kind == "cgroup":
            has = options.split(",")
        elif kind == "cgroup2":
            try:
                has = (mount / "cgroup.controllers").read_text(encoding="ascii").split()
            except OSError:
                continue
        else:
            continue
        ours = tuple(name for name in ("memory", "pids", "cpu") if name in has)
        if ours:
            found.append(Hierarchy(mount, 1 if kind == "cgroup" else 2, ours))
    return tuple(found)


class Cgroup:
    """The groups of one box, one folder a hierarchy."""

    def __init__(self, name: str, folders: list[tuple[Hierarchy, Path]]) -> None:
        """Take folders that exist; ``name`` is theirs."""
        self._name = name
        self._folders = folders

    @property
    def entrances(self) -> list[str]:
        """Files to which a process writes ``0`` to move itself in."""
        return [str(folder / "cgroup.procs") for _, folder in self._folders]

    def evidence(self, alive: bool) -> str:
        """Return what the kernel counted: processes killed for memory; empty if nothing.

        Args:
            alive: whether the box is there but silent; then limits that were hit without a kill explain it too.
        """
        counted = []
        kills = (("memory.events", "oom_kill", "oom_kill"), ("memory.oom_control", "oom_kill", "oom_kill"))
        hits = (
            ("memory.failcnt", "", "memory_limit_hits"),
            ("memory.events", "max", "memory_limit_hits"),
            ("pids.events", "max", "pids_limit_hits"),
        )
        for _, folder in self._folders:
            for file, name, text in (*kills, *(hits if alive else ())):
                number = _counter(folder / file, name)
                if number:
                    counted.append(f"{text} {number}")
        return ", ".join(counted)

    def remove(self) -> bool:
        """Remove the folders; return whether all are gone. Nobody may be alive in them."""
        deadline = time.monotonic() + PATIENCE_S
        for _, folder in self._folders:
            while not _removed(folder):
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.005)
        _forget(self._name)
        return True


def create(limits: Limits, extra_bytes: int) -> Cgroup | None:
    """Make the groups of a new box, or return None where groups may not be written.

    Args:
        limits: of the box.
        extra_bytes: memory that the box's own files take, on top of ``memory_bytes``.
    """
    usable = [h for h in hierarchies() if os.access(h.mount, os.W_OK)]
    if os.geteuid() != 0 or not set(NEEDED) <= {name for h in usable for name in h.controllers}:
        return None
    name = f"{owner.label()}.{next(_numbers)}"
    folders: list[tuple[Hierarchy, Path]] = []
    _watch(name)  # before there is a folder: a watcher on its way out would take an empty one with it
    try:
        for hierarchy in usable:
            parent = hierarchy.mount / PARENT
            if hierarchy.version == 2:
                _enable(hierarchy.mount, hierarchy.controllers)
                parent.mkdir(exist_ok=True)
                _enable(parent, hierarchy.controllers)
            folder = parent / name
            folder.mkdir(parents=True)
            folders.append((hierarchy, folder))
            for file, value in _settings(hierarchy, limits, extra_bytes).items():
                (folder / file).write_text(value, encoding="ascii")
    except OSError:
        Cgroup(name, folders).remove()
        return None
    return Cgroup(name, folders)


def _enable(folder: Path, controllers: tuple[str, ...]) -> None:
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers), encoding="ascii")


def _settings(hierarchy: Hierarchy, limits: Limits, extra_bytes: int) -> dict[str, str]:
    memory, quota = str(limits.memory_bytes + extra_bytes), str(max(1000, round(limits.cpus * PERIOD_US)))
    settings: dict[str, str] = {}
    if "memory" in hierarchy.controllers:
        if hierarchy.version == 2:
            settings |= {"memory.max": memory, "memory.swap.max": "0"}
        else:
            settings |= {
                "memory.limit_in_bytes": memory,
                "memory.swappiness": "0",
                "memory.memsw.limit_in_bytes": memory,
            }
    if "pids" in hierarchy.controllers:
        settings["pids.max"] = str(limits.pids)
    if "cpu" in hierarchy.controllers:
        if hierarchy.version == 2:
            settings["cpu.max"] = f"{quota} {PERIOD_US}"
        else:
            settings |= {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": quota}
    optional = ("memory.swap.max", "memory.memsw.limit_in_bytes", "memory.swappiness")  # absent without swap accounting
    return {file: value for file, value in settings.items() if file not in optional or _has_swap_files(hierarchy, file)}


def _has_swap_files(hierarchy: Hierarchy, file: str) -> bool:
    parent = hierarchy.mount / PARENT
    return (parent / file).exists()


def _counter(file: Path, name: str) -> int:
    try:
        lines = [line.split() for line in file.read_text(encoding="ascii").splitlines()]
        return sum(int(line[-1]) for line in lines if not name or line[0] == name)
    except (OSError, ValueError, IndexError):
        return 0


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def sweep() -> int:
    """Remove groups whose owner is gone; return how many were removed."""
    count = 0
    for hierarchy in hierarchies():
        for folder in (hierarchy.mount / PARENT).glob("*.*"):
            if owner.gone(folder.name.partition(".")[0]):
                count += _removed(folder)
    return count


class _Watcher:
    """The small process that removes our groups when we are gone; its stdin is a pipe that only we hold."""

    def __init__(self) -> None:
        read_end, self._write_end = os.pipe()
        parents = [str(h.mount / PARENT) for h in hierarchies()]
        self._pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", WATCHER, "tbmm-watcher", *parents],
            {"OWNER": owner.label(), "PATH": "/usr/bin:/bin"},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, read_end, 0),
                (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
            ],
            setsid=True,
        )
        os.close(read_end)
        owner.hold(self)

    def end(self) -> None:
        """Let it go and wait for it: there is no group left that it could be needed for."""
        owner.release(self)
        os.close(self._write_end)
        with suppress(ChildProcessError):  # somebody reaps all children of this process
            os.waitpid(self._pid, 0)

    def abandon(self) -> None:
        """Close the pipe in a forked copy of the owner, which has no groups."""
        global _watcher, _lock
        os.close(self._write_end)
        _watcher, _lock = None, threading.Lock()
        _living.clear()


_watcher: _Watcher | None = None
_living: set[str] = set()
_lock = threading.Lock()


def _watch(name: str) -> None:
    """Note a group that is about to be made; the first one starts the watcher."""
    global _watcher
    with _lock:
        _living.add(name)
        if _watcher is None:
            _watcher = _Watcher()


def _forget(name: str) -> None:
    """Note that a group is gone; the last one ends the watcher."""
    global _watcher
    with _lock:
        _living.discard(name)
        if not _living and _watcher is not None:
            _watcher.end()
            _watcher = None
