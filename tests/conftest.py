"""Fixtures for tests that need real boxes. A missing backend is a skip, and a failure with ``TBMM_REQUIRE_ALL=1``."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from tbmm_env.errors import ImageError, SandboxUnavailable
from tbmm_env.sandbox import image as images
from tbmm_env.sandbox.base import Box, Sandbox
from tbmm_env.sandbox.bubblewrap import BubblewrapSandbox
from tbmm_env.sandbox.docker import DockerSandbox, connect
from tbmm_env.sandbox.image import Image

SEARCH = r"""
import os, sys
needle = bytes.fromhex(sys.argv[1])[::-1]
hits, read, files = [], 0, 0
def look(path, most=None):
    global read, files
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb", buffering=0) as file:
            files += 1
            last = b""
            while chunk := file.read(1 << 22):
                read += len(chunk)
                if needle in last + chunk:
                    hits.append(path)
                    return
                last = chunk[-len(needle):]
                if most is not None and read > most:
                    return
    except (OSError, ValueError, TypeError):
        pass
for top, folders, names in os.walk("/"):
    if top == "/":
        folders[:] = [name for name in folders if name not in ("proc", "sys", "dev")]
    for name in folders + names:
        path = os.path.join(top, name)
        if needle in os.fsencode(path):
            hits.append(path)
        if name in names and not os.path.islink(path) and os.path.isfile(path):
            look(path)
for process in [name for name in os.listdir("/proc") if name.isdigit()]:
    for name in ("cmdline", "environ", "comm", "mountinfo", "status", "maps"):
        look(f"/proc/{process}/{name}")
for top in ("/proc/sys", "/dev/shm", "/sys"):
    for folder, _, names in os.walk(top):
        for name in names:
            look(os.path.join(folder, name), most=None if top == "/dev/shm" else read + (1 << 16))
for name in ("mounts", "keys", "cmdline", "version", "net/unix", "sysvipc/shm"):
    look("/proc/" + name)
print(files, read, sorted(set(hits)))
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--full``."""
    parser.addoption("--full", action="store_true", help="run the slow tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the slow tests unless they are asked for, and say so in the summary."""
    if not config.getoption("--full"):
        slow = [item for item in items if item.get_closest_marker("full")]
        if slow:
            config.hook.pytest_deselected(items=slow)
            items[:] = [item for item in items if item not in slow]


def missing(why: object) -> NoReturn:
    """Skip the test, or fail it where everything must be there."""
    if os.environ.get("TBMM_REQUIRE_ALL") == "1":
        pytest.fail(f"TBMM_REQUIRE_ALL is set and {why}", pytrace=False)
    pytest.skip(str(why))


@pytest.fixture(scope="session")
def image() -> Image:
    """The root filesystem; it is not built by tests."""
    try:
        return images.find()
    except ImageError as error:
        missing(error)


@pytest.fixture(scope="session")
def bwrap_sandbox(image: Image) -> Sandbox:
    """A working bubblewrap backend."""
    sandbox = BubblewrapSandbox()
    try:
        sandbox.probe()
    except SandboxUnavailable as error:
        missing(error)
    return sandbox


@pytest.fixture(scope="session")
def docker_sandbox(image: Image) -> Iterator[Sandbox]:
    """A working Docker backend that has the image."""
    try:
        client = connect()
    except SandboxUnavailable as error:
        missing(error)
    images.ensure_docker(image, client)
    yield DockerSandbox(client)
    client.close()


@pytest.fixture(
    params=[pytest.param("bwrap", marks=pytest.mark.bwrap), pytest.param("docker", marks=pytest.mark.docker)]
)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Each real backend in turn."""
    found: Sandbox = request.getfixturevalue(f"{request.param}_sandbox")
    return found


@pytest.fixture
def search_box() -> Callable[[Box, bytes], list[str]]:
    """A function that reads every byte an agent can read in a box and returns the paths that hold the given bytes.

    The bytes reach the box backwards and in hexadecimal, so that the search does not find itself.
    """

    def search(box: Box, needle: bytes) -> list[str]:
        command = f"python3 - {needle[::-1].hex()} <<'END'\n{SEARCH}\nEND"
        result = box.run(command, wall_s=120.0, on_check=lambda _: "")
        printed = (result.head + result.tail).decode()
        assert result.exit_status == 0, printed
        files, read, paths = printed.split(" ", 2)
        assert int(files) > 1000, printed
        assert int(read) > 100_000_000, printed
        return [str(path) for path in ast.literal_eval(paths)]

    return search
