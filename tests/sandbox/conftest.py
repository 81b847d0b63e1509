"""A factory of boxes for the suite that every backend must pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tbmm_env.limits import MIB, TRAIN, Limits
from tbmm_env.record import Artifact, CommandResult
from tbmm_env.sandbox.base import Box, BoxSpec, Sandbox
from tbmm_env.sandbox.image import Image

SMALL = replace(
    TRAIN, memory_bytes=512 * MIB, workspace_bytes=32 * MIB, tmp_bytes=16 * MIB, shm_bytes=8 * MIB, no_output_s=0.4
)


@dataclass
class Tried:
    """A box with a short way to run a command and see its text."""

    box: Box
    limits: Limits
    seen: list[Artifact]

    def run(self, command: str, wall_s: float = 20.0) -> CommandResult:
        """Run a command; ``check`` prints the status of the answer."""

        def on_check(artifact: Artifact) -> str:
            self.seen.append(artifact)
            return f"checked: {artifact.status} {artifact.size_bytes}\n"

        return self.box.run(command, wall_s=wall_s, on_check=on_check)

    def text(self, command: str, wall_s: float = 20.0) -> str:
        """Run a command that must exit, and return what it printed."""
        result = self.run(command, wall_s)
        assert result.ending == "exited", result
        return (result.head + result.tail).decode()


@pytest.fixture
def start(sandbox: Sandbox, image: Image) -> Iterator[Callable[..., Tried]]:
    """Start a box of the backend under test; it is closed afterwards."""
    with ExitStack() as stack:

        def start_box(files: Mapping[str, bytes] | None = None, **limits: Any) -> Tried:
            chosen = replace(SMALL, **limits)
            box = stack.enter_context(sandbox.start(BoxSpec(limits=chosen, files=files or {}, image=image)))
            return Tried(box, chosen, [])

        yield start_box


@pytest.fixture
def grouped(sandbox: Sandbox) -> None:
    """Skip a test of what only control groups can do where bubblewrap has none."""
    if sandbox.name == "bwrap" and os.geteuid() != 0:
        pytest.skip("a known gap of bubblewrap as an ordinary user: no control groups")


@pytest.fixture
def tried(start: Callable[..., Tried]) -> Tried:
    """A small box."""
    return start()
