"""Control groups of bubblewrap boxes: memory, processes, processor share; version 1 and 2.

A box's group is ``<mount>/tbmm/<name of the box>``. Groups of owners that are gone are removed by the owner's watcher
and by the sweep at the next start.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tbmm_env.limits import Limits
from tbmm_env.sandbox import owner, watch_program
from tbmm_env.sandbox.fault import Counters

PARENT = "tbmm"
PERIOD_US = 100_000
PATIENCE_S = 5.0
SWEEP_PATIENCE_S = 2.0
NEEDED = ("memory", "pids")
COUNTERS = (
    ("oom_kills", "memory.events", "oom_kill"),
    ("oom_kills", "memory.oom_control", "oom_kill"),
    ("memory_hits", "memory.events", "max"),
    ("memory_hits", "memory.failcnt", ""),
    ("pids_hits", "pids.events", "max"),
)
"""Field of ``Counters``, file and the line of it; version 1 has some of the files, version 2 the others."""


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

    def __init__(self, folders: list[tuple[Hierarchy, Path]]) -> None:
        """Take folders that exist."""
        self._folders = folders
        self._counters = [
            (field, folder / file, name)
            for _, folder in folders
            for field, file, name in COUNTERS
            if (folder / file).exists()
        ]

    @property
    def entrances(self) -> list[str]:
        """Files to which a process writes ``0`` to move itself in."""
        return [str(folder / "cgroup.procs") for _, folder in self._folders]

    def counters(self) -> Counters:
        """Return what the kernel counted so far; asked after every action."""
        found: Counter[str] = Counter()
        for field, path, name in self._counters:
            found[field] += _counter(path, name)
        return Counters(**found)

    def remove(self) -> bool:
        """Kill who may be alive in them, and remove the folders; return whether all are gone."""
        return not _left([folder for _, folder in self._folders], PATIENCE_S)


def parents() -> list[Path]:
    """Return the folders that hold the groups of boxes; empty where groups may not be written."""
    usable = [h for h in hierarchies() if os.access(h.mount, os.W_OK)]
    if os.geteuid() != 0 or not set(NEEDED) <= {name for h in usable for name in h.controllers}:
        return []
    return [hierarchy.mount / PARENT for hierarchy in usable]


def create(name: str, limits: Limits) -> Cgroup | None:
    """Make the groups of a new box, or return None where groups may not be written.

    Args:
        name: of the box; it begins with its owner's label.
        limits: of the box.
    """
    usable = set(parents())
    if not usable:
        return None
    folders: list[tuple[Hierarchy, Path]] = []
    try:
        for hierarchy in hierarchies():
            parent = hierarchy.mount / PARENT
            if parent not in usable:
                continue
            if hierarchy.version == 2:
                _enable(hierarchy.mount, hierarchy.controllers)
                parent.mkdir(exist_ok=True)
                _enable(parent, hierarchy.controllers)
            folder = parent / name
            folder.mkdir(parents=True)
            folders.append((hierarchy, folder))
            for file, value in _settings(hierarchy, limits).items():
                (folder / file).write_text(value, encoding="ascii")
    except OSError:
        Cgroup(folders).remove()
        return None
    return Cgroup(folders)


def _enable(folder: Path, controllers: tuple[str, ...]) -> None:
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers), encoding="ascii")


def _settings(hierarchy: Hierarchy, limits: Limits) -> dict[str, str]:
    memory, quota = str(limits.memory_bytes), str(max(1000, round(limits.cpus * PERIOD_US)))
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


def _left(folders: list[Path], patience_s: float) -> list[Path]:
    """Kill who is in groups and remove these; return those that are left after a time."""
    deadline = time.monotonic() + patience_s
    while folders := [folder for folder in folders if watch_program.group_left(str(folder))]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return folders


def names() -> list[str]:
    """Return the names of all boxes that have groups."""
    return sorted({folder.name for h in hierarchies() for folder in (h.mount / PARENT).glob("*.*") if folder.is_dir()})


def sweep() -> int:
    """Remove groups whose owner is gone; return how many were removed.

    Whoever is in them is killed, and may take up to :data:`SWEEP_PATIENCE_S` in all to leave.
    """
    found = [folder for hierarchy in hierarchies() for folder in (hierarchy.mount / PARENT).glob("*.*")]
    ownerless = [folder for folder in found if owner.gone(folder.name.partition(".")[0])]
    return len(ownerless) - len(_left(ownerless, SWEEP_PATIENCE_S))
