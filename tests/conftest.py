"""Fixtures for tests that need real boxes. A missing backend is a skip, and a failure with ``TBMM_REQUIRE_ALL=1``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tbmm_env.errors import ImageError, SandboxUnavailable
from tbmm_env.sandbox import image as images
from tbmm_env.sandbox.base import Sandbox
from tbmm_env.sandbox.bubblewrap import BubblewrapSandbox
from tbmm_env.sandbox.docker import DockerSandbox, connect
from tbmm_env.sandbox.image import Image


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
