"""What boxes could leave on this host, and what of it is ours; other owners work on the same machine."""

from __future__ import annotations

import os
import re
import socket
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tbmm_env.limits import MIB
from tbmm_env.sandbox import owner

TOKEN = "tbmm-token-" + "4b1d70c2"
"""Planted in this process's environment and descriptors."""
UNIX_NAME = f"tbmm-hostile-suite-{os.getpid()}"
PATIENCE_S = 15.0
MOST_GROWTH_BYTES = 64 * MIB
MOST_NEW_SOCKETS = 4
"""The SDK keeps some connections to the daemon open."""
CGROUPS = Path("/sys/fs/cgroup")
SHARED_MOUNTS = re.compile(r" - (overlay|nsfs) |/containers/")
"""Mounts of containers; other owners make such, so ours are told by their marks."""


def _processes() -> dict[int, tuple[int, str]]:
    """Return of every process its parent, and its arguments and groups as one text."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            text = (folder / "cmdline").read_bytes() + (folder / "cgroup").read_bytes()
        except OSError:
            continue
        found[int(folder.name)] = (int(words[1]), text.decode("utf-8", "replace"))
    return found


def _descendants(processes: dict[int, tuple[int, str]], top: int) -> set[int]:
    found, front = set[int](), {top}
    while front:
        front = {pid for pid, (parent, _) in processes.items() if parent in front} - found
        found |= front
    return found


def _temporary_files() -> frozenset[str]:
    found = os.walk(tempfile.gettempdir())
    return frozenset(str(Path(top, name)) for top, folders, names in found for name in (*folders, *names))


def _descriptors() -> list[str]:
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except OSError:
            continue  # the one that lists
    return found


def own_memory_bytes() -> int:
    """Return the resident memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, kw_only=True)
class State:
    """What is there at one moment: of ours, or of the host where nobody else changes it."""

    processes: frozenset[int]
    groups: frozenset[str]
    containers: frozenset[str]
    mounts: frozenset[str]
    marked: frozenset[str]
    ipc: str
    shared_memory: frozenset[str]
    files: frozenset[str]
    open_files: tuple[str, ...]
    sockets: int
    name: str


@dataclass
class Host:
    """The host as this process, an owner of boxes, sees it.

    Attributes:
        client: of the Docker daemon, or None for bubblewrap.
        root: the image's root filesystem.
        listeners: sockets that nothing of a box may reach; their numbers replace ``@TCP@``, ``@UDP@`` in actions.
        marks: names of what belongs to the boxes seen so far: groups, containers, layers, volumes.
    """

    client: Any = None
    root: Path = Path("/nonexistent")
    listeners: dict[str, socket.socket] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)

    def told(self, command: str) -> str:
        """Return an action with the host's facts put in."""
        for name in ("TCP", "UDP"):
            command = command.replace(f"@{name}@", str(self.listeners[name].getsockname()[1]))
        return command.replace("@UNIX@", UNIX_NAME).replace("@TOKEN@", TOKEN)

    def image_changes_ns(self) -> list[int]:
        """Return when each file and folder of the image was last changed."""
        return [path.lstat().st_ctime_ns for path in self.root.rglob("*")]

    def _containers(self) -> list[Any]:
        if self.client is None:
            return []
        ours = {"label": f"tbmm.owner={owner.label()}"}
        return list(self.client.containers.list(all=True, filters=ours, ignore_removed=True))

    def mark(self) -> None:
        """Note the names of the boxes that are alive now; at least one must be."""
        names = [path.name for path in _groups()]
        for container in self._containers():
            attributes = container.attrs
            names.append(container.id)
            names += [Path(mount["Source"]).parent.name for mount in attributes["Mounts"] if mount.get("Name")]
            names += [Path(path).parent.name for key, path in layers(attributes) if key == "MergedDir"]
            names.append(Path(attributes["NetworkSettings"]["SandboxKey"]).name)
        self.marks |= {name for name in names if name}

    def state(self) -> State:
        """Look."""
        processes = _processes()
        ours = _descendants(processes, os.getpid())
        ours |= {pid for pid, (_, text) in processes.items() if self._is_marked(text)}
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        opened = _descriptors()
        return State(
            processes=frozenset(ours),
            groups=frozenset(map(str, _groups())),
            containers=frozenset(container.id for container in self._containers()),
            mounts=frozenset(line for line in mounts if not SHARED_MOUNTS.search(line)),
            marked=frozenset(line for line in (*mounts, *_group_folders(), *self._volumes()) if self._is_marked(line)),
            ipc="".join(Path(f"/proc/sysvipc/{kind}").read_text(encoding="ascii") for kind in ("shm", "msg", "sem")),
            shared_memory=frozenset(path.name for path in Path("/dev/shm").iterdir()),
            files=_temporary_files(),
            open_files=tuple(sorted(text for text in opened if not text.startswith("socket:"))),
            sockets=sum(text.startswith("socket:") for text in opened),
            name=socket.gethostname(),
        )

    def _volumes(self) -> list[str]:
        return [] if self.client is None else [volume.name for volume in self.client.volumes.list()]

    def _is_marked(self, text: str) -> bool:
        return any(mark in text for mark in self.marks)


def layers(attributes: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """Return the folders of a container's root filesystem; a daemon with another storage driver names none."""
    data = (attributes.get("GraphDriver") or {}).get("Data") or {}
    return [(key, value) for key, value in data.items() if isinstance(value, str)]


def _groups() -> list[Path]:
    return [path for pattern in ("*/tbmm/*", "tbmm/*") for path in CGROUPS.glob(f"{pattern[:-1]}{owner.label()}.*")]


def _group_folders() -> list[str]:
    return [str(path) for pattern in ("*/docker/*", "docker/*", "system.slice/*") for path in CGROUPS.glob(pattern)]


def differences(before: State, after: State) -> list[str]:
    """Return what is not as it was."""
    wrong = []
    for one in fields(State):
        old, new = getattr(before, one.name), getattr(after, one.name)
        if one.name == "sockets":
            if new > old + MOST_NEW_SOCKETS:
                wrong.append(f"{new} sockets are open; before it were {old}")
        elif one.name == "marked":
            wrong += [f"left: {text}" for text in sorted(new)]
        elif isinstance(old, frozenset):
            wrong += [f"{one.name}: {text} is new" for text in sorted(map(str, new - old))]
            wrong += [f"{one.name}: {text} is gone" for text in sorted(map(str, old - new))]
        elif old != new:
            wrong.append(f"{one.name}: {new}; before it was {old}")
    return wrong


def settled(host: Host, before: State) -> list[str]:
    """Return what is not as it was after some patience: the kernel and the daemon clean up a little later."""
    deadline = time.monotonic() + PATIENCE_S
    while (wrong := differences(before, host.state())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return wrong
