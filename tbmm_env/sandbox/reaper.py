"""Which boxes are on this machine, whose they are, and the removal of those whose owner is surely gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tbmm_env.errors import SandboxUnavailable
from tbmm_env.sandbox import cgroups, docker, folders, owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A box, or what is left of one.

    Attributes:
        name: ``NAMESPACE-PID-START.NUMBER.BACKEND``.
        backend: ``bwrap`` or ``docker``.
        owner_pid: process id of its owner, in the pid namespace of the owner.
        ownerless: the owner is surely gone; False when it lives or cannot be seen from here.
        parts: what there is of it: ``folder``, ``group``, ``container STATE``.
    """

    name: str
    backend: str
    owner_pid: int
    ownerless: bool
    parts: tuple[str, ...]


def boxes() -> list[Found]:
    """Return the boxes of this user, and of everybody at the Docker daemon if there is one, in order of their names."""
    parts: dict[str, list[str]] = {}
    for name in folders.names():
        parts.setdefault(name, []).append("folder")
    for name in cgroups.names():
        parts.setdefault(name, []).append("group")
    for container in _containers():
        name = container["Labels"].get(docker.BOX_LABEL, "")
        parts.setdefault(name, []).append(f"container {container['State']}")
    found = []
    for name, has in sorted(parts.items()):
        label, _, rest = name.partition(".")
        words = label.split("-")
        if len(words) == 3 and words[1].isdigit():
            backend, pid = rest.partition(".")[2], int(words[1])
            found.append(
                Found(name=name, backend=backend, owner_pid=pid, ownerless=owner.gone(label), parts=tuple(has))
            )
    return found


def _containers() -> list[dict[str, Any]]:
    try:
        client = docker.connect()
    except SandboxUnavailable:
        return []
    try:
        return docker.containers(client)
    finally:
        client.close()


def sweep() -> int:
    """Remove what is left of boxes whose owner is surely gone; return of how many boxes."""
    before = {found.name for found in boxes() if found.ownerless}
    cgroups.sweep()
    folders.sweep()
    try:
        client = docker.connect()
    except SandboxUnavailable:
        client = None
    if client is not None:
        docker.sweep(client)
        client.close()
    return len(before - {found.name for found in boxes()})
