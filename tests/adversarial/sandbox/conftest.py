"""The host that the hostile suite looks at, with what a box must not find or reach."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from host_state import TOKEN, UNIX_NAME, Host
from hostile_case import SMALL

from tbmm_env.sandbox.base import BoxSpec, Sandbox
from tbmm_env.sandbox.image import Image

WARM_UPS = 3
FAMILIES = ("answer", "memory", "network", "output", "privileges", "processes", "secrets", "shell", "terminal")
pytest.register_assert_rewrite(*(f"cases_{name}" for name in FAMILIES))


@pytest.fixture(scope="session")
def listeners() -> Iterator[dict[str, socket.socket]]:
    """Sockets of this host, bound to the loopback interface; nothing of a box may arrive at them."""
    with ExitStack() as stack:
        found = {}
        for name, family, kind, address in (
            ("TCP", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            ("UDP", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("UNIX", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{UNIX_NAME}"),
        ):
            found[name] = stack.enter_context(socket.socket(family, kind))
            found[name].bind(address)
            found[name].setblocking(False)
            if kind == socket.SOCK_STREAM:
                found[name].listen()
        yield found


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A token in this process's environment and in descriptors of every kind, inheritable ones too."""
    file = tmp_path_factory.mktemp("planted") / "token"
    file.write_text(TOKEN, encoding="ascii")
    opened = [os.memfd_create("token"), os.open(file, os.O_RDWR), *os.pipe()]
    for descriptor in (opened[0], opened[3]):
        os.write(descriptor, TOKEN.encode())
    for descriptor in opened[::2]:
        os.set_inheritable(descriptor, True)
    os.environ["TBMM_TEST_TOKEN"] = TOKEN
    yield TOKEN
    del os.environ["TBMM_TEST_TOKEN"]
    for descriptor in opened:
        os.close(descriptor)


@pytest.fixture(scope="session")
def warmed() -> set[str]:
    """Backends that have made boxes, so that what one process keeps for all its boxes is there."""
    return set()


@pytest.fixture
def host(
    sandbox: Sandbox,
    image: Image,
    listeners: dict[str, socket.socket],
    planted: str,
    warmed: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Host:
    """The host, with a folder of temporary files for this process alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = Host(
        client=sandbox._connected() if sandbox.name == "docker" else None,  # type: ignore[attr-defined]
        root=image.path,
        listeners=listeners,
    )
    if sandbox.name not in warmed:
        for _ in range(WARM_UPS):
            with sandbox.start(BoxSpec(limits=SMALL, files={}, image=image)) as box:
                box.run("true", wall_s=20.0, on_check=lambda _: "")
                found.state()
        warmed.add(sandbox.name)
    return found
