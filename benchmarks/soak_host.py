"""Part of soak.py: what an owner has left on this machine, and what the machine holds before and after."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import docker
from sandbox_costs import below, children

from tbmm_env.sandbox import cgroups, folders, reaper
from tbmm_env.sandbox.docker import LABEL

PR_SET_CHILD_SUBREAPER = 36
PAUSE_S = 0.04
DAEMON_PAUSE_S = 0.1
CLEARED_WALL_S = 10.0
WATCHER = b"watch_program"


def adopt_orphans() -> None:
    """Become the parent of every process whose owner dies below this one: so that none can hide."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def orphans(living: set[int]) -> dict[int, bytes]:
    """Return command lines of processes below this one that belong to no living owner; reap those that have ended."""
    found: dict[int, bytes] = {}
    tree = children()
    for child in set(tree.get(os.getpid(), [])) - living:
        with suppress(ChildProcessError):
            if os.waitpid(child, os.WNOHANG)[0] == child:
                continue
        for pid in (child, *below(child, tree)):
            try:
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
    return found


@dataclass(frozen=True, slots=True)
class Gone:
    """How long after its owner's death everything was gone, in s.

    Attributes:
        boxes_s: processes, control groups, folders and containers.
        all_s: and the watcher that has removed them.
        left: what was still there when patience ended, and was cleared away then.
    """

    boxes_s: float
    all_s: float
    left: tuple[str, ...] = ()


@dataclass(slots=True)
class Leftovers:
    """Looks for what owners have left.

    Attributes:
        client: of the Docker daemon, if Docker is in use.
        dead: process ids of all owners that have ended.
    """

    client: docker.DockerClient | None
    dead: set[int] = field(default_factory=set)
    _looked_s: float = 0.0
    _containers: list[str] = field(default_factory=list)

    def _ours(self, label: str) -> bool:
        words = label.partition(".")[0].split("-")
        return len(words) == 3 and words[1].isdigit() and int(words[1]) in self.dead

    def named(self) -> list[str]:
        """Return control groups and folders of dead owners."""
        return [f"group {name}" for name in cgroups.names() if self._ours(name)] + [
            f"folder {name}" for name in folders.names() if self._ours(name)
        ]

    def containers(self, *, now: bool) -> list[str]:
        """Return containers of dead owners; asks the daemon now and then unless ``now``."""
        if self.client and (now or time.monotonic() - self._looked_s > DAEMON_PAUSE_S):
            every = self.client.api.containers(all=True, filters={"label": LABEL})
            self._containers = [
                f"container {one['Id'][:12]} {one['State']} of {one['Labels'][LABEL]}"
                for one in every
                if self._ours(one["Labels"][LABEL])
            ]
            self._looked_s = time.monotonic()
        return self._containers

    def wait(self, living: set[int], patience_s: float, meanwhile: Callable[[], object]) -> Gone:
        """Wait until nothing of the dead owners is left.

        Args:
            living: process ids of the owners that live.
            patience_s: how long at most.
            meanwhile: called again and again, to keep the living served.
        """
        start = time.monotonic()
        boxes_s: float | None = None
        self._looked_s = 0.0
        while True:
            processes = orphans(living)
            boxes = [f"process {pid} {line[:80]!r}" for pid, line in processes.items() if WATCHER not in line]
            boxes += self.named() + self.containers(now=False)
            passed_s = time.monotonic() - start
            if boxes:
                boxes_s = None
            elif boxes_s is None and not self.containers(now=True):
                boxes_s = passed_s
            if boxes_s is not None and not processes:
                return Gone(boxes_s, passed_s)
            if passed_s > patience_s:
                watchers = [f"watcher {pid}" for pid, line in processes.items() if WATCHER in line]
                self._clear(processes)
                return Gone(passed_s if boxes_s is None else boxes_s, passed_s, (*boxes, *watchers))
            meanwhile()
            time.sleep(PAUSE_S)

    def _clear(self, processes: Iterable[int]) -> None:
        """End what dead owners have left, so that it is counted once."""
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + CLEARED_WALL_S
        while (self.named() or self.containers(now=True)) and time.monotonic() < deadline:
            reaper.sweep()
            time.sleep(PAUSE_S)


@dataclass(frozen=True, slots=True)
class Host:
    """What a machine holds that episodes could leave something in.

    Attributes:
        mounts: mount points of this mount namespace.
        volumes: names of Docker's volumes.
        image_bytes: size of the folder of images.
        descriptors: open files of this process.
    """

    mounts: frozenset[str]
    volumes: frozenset[str]
    image_bytes: int
    descriptors: int


def host(client: docker.DockerClient | None, images: Path) -> Host:
    """Look at the machine."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    volumes: list[str] = []
    if client:
        volumes = [str(volume.name) for volume in client.volumes.list()]
    size = 0
    for folder, _, files in os.walk(images):
        for file in files:
            with suppress(OSError):
                size += (Path(folder) / file).lstat().st_blocks * 512
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return Host(frozenset(line.split()[4] for line in lines), frozenset(volumes), size, descriptors)


def new_since(before: Host, look: Callable[[], Host], patience_s: float) -> tuple[list[str], Host]:
    """Return mounts and volumes that are new and stay so for a while; others' boxes come and go meanwhile."""
    deadline = time.monotonic() + patience_s
    now = look()
    fresh = (now.mounts - before.mounts) | (now.volumes - before.volumes)
    while fresh and time.monotonic() < deadline:
        time.sleep(0.5)
        now = look()
        fresh &= now.mounts | now.volumes
    return sorted(fresh), now
