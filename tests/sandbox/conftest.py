"""Boxes of the backend under test, for what goes beyond the conformance suite; they are those of its checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tbmm_env.sandbox.base import Sandbox
from tbmm_env.sandbox.conformance.lab import Lab, LabBox
from tbmm_env.sandbox.image import Image


@pytest.fixture
def start(sandbox: Sandbox, image: Image) -> Iterator[Callable[..., LabBox]]:
    """Start a box of the backend under test; it is closed afterwards."""
    with Lab(sandbox, image) as lab:
        yield lab.start


@pytest.fixture
def grouped(sandbox: Sandbox) -> None:
    """Skip a test of what only control groups can do where bubblewrap has none."""
    if sandbox.name == "bwrap" and os.geteuid() != 0:
        pytest.skip("a known gap of bubblewrap as an ordinary user: no control groups")


@pytest.fixture
def tried(start: Callable[..., Any]) -> Any:
    """A small box."""
    return start()
