"""Boxes for checks, short ways to use them, and the words in which a violation is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from tbmm_env.errors import BoxLost
from tbmm_env.limits import MIB, TRAIN, Limits
from tbmm_env.record import Artifact, CommandResult, Ending
from tbmm_env.sandbox.base import Box, BoxSpec, Sandbox
from tbmm_env.sandbox.image import Image

LIMITS = replace(
    TRAIN, memory_bytes=512 * MIB, workspace_bytes=32 * MIB, tmp_bytes=16 * MIB, shm_bytes=8 * MIB, no_output_s=0.2
)
"""Of a box for which a check names no others."""
WALL_S = 60.0
"""Wall limit of a command for which a check names no other."""
LATE_S = 30.0
"""How much later than its wall limit a command may end on a busy machine; far below what a check that hangs takes."""
SHOWN = 600


class Violation(AssertionError):
    """A promise that was not kept: what was expected, and what came."""


def same(what: str, found: object, expected: object) -> None:
    """Raise Violation unless two values are equal."""
    if found != expected:
        raise Violation(f"{what}: expected {_short(expected)}, found {_short(found)}")


def holds(what: str, condition: bool, found: object) -> None:
    """Raise Violation unless a condition holds; ``what`` says it, and ``found`` is what it was asked of."""
    if not condition:
        raise Violation(f"{what}: found {_short(found)}")


def lost(what: str, use: Callable[[], object]) -> None:
    """Raise Violation unless a use of a box raises BoxLost."""
    try:
        found = use()
    except BoxLost:
        return
    raise Violation(f"{what}: expected BoxLost, found {_short(found)}")


def output(result: CommandResult) -> bytes:
    """Return what was kept of a command's output."""
    return result.head + result.tail


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} ... {text[-SHOWN // 2 :]}"


@dataclass(slots=True)
class LabBox:
    """A box under test.

    Attributes:
        box: the box itself.
        limits: its limits.
        checked: what each ``check`` in it was answered about.
    """

    box: Box
    limits: Limits
    checked: list[Artifact] = field(default_factory=list)

    def run(self, command: str, wall_s: float = WALL_S) -> CommandResult:
        """Run a command; ``check`` prints status and size of the answer."""

        def on_check(artifact: Artifact) -> str:
            self.checked.append(artifact)
            return f"checked: {artifact.status} {artifact.size_bytes}\n"

        result = self.box.run(command, wall_s=wall_s, on_check=on_check)
        holds(f"{command[:200]!r} ends within its wall limit of {wall_s:g} s", result.wall_s < wall_s + LATE_S, result)
        return result

    def text(self, command: str, wall_s: float = WALL_S) -> str:
        """Run a command that must end by itself, and return what it printed."""
        return output(self.ends(command, "exited", wall_s=wall_s)).decode()

    def ends(
        self, command: str, ending: Ending, exit_status: int | None = None, wall_s: float = WALL_S
    ) -> CommandResult:
        """Run a command that must end in a certain way, with a certain exit status if one is given."""
        result = self.run(command, wall_s)
        same(f"ending of {command[:200]!r}, which printed {_short(output(result))}", result.ending, ending)
        if exit_status is not None:
            same(f"exit status of {command[:200]!r}", result.exit_status, exit_status)
        return result

    def prints(self, command: str, expected: str, wall_s: float = WALL_S) -> None:
        """Run a command that must end by itself and print a certain text."""
        same(f"output of {command[:200]!r}", self.text(command, wall_s), expected)


class Lab:
    """Starts boxes of one backend and closes them all in the end."""

    def __init__(self, sandbox: Sandbox, image: Image) -> None:
        """Start no box yet."""
        self.sandbox, self.image = sandbox, image
        self._stack = ExitStack()
        self._boxes: list[Box] = []
        self._late = ""

    def start(self, files: Mapping[str, bytes] | None = None, **limits: Any) -> LabBox:
        """Start a box with files in ``/task`` and with ``LIMITS``, some of them replaced."""
        chosen = replace(LIMITS, **limits)
        self.still_in_time()
        box = self.sandbox.start(BoxSpec(limits=chosen, files=files or {}, image=self.image))
        self._stack.callback(box.close)
        self._boxes.append(box)
        return LabBox(box, chosen)

    @staticmethod
    def rest(wait_s: float) -> None:
        """Let time pass without an action."""
        time.sleep(wait_s)

    def expire(self, wall_s: float) -> None:
        """Close the boxes from another thread, since the check has used up its wall time."""
        self._late = f"the check ends within {wall_s:g} s: it was still running then"
        for box in tuple(self._boxes):
            box.close()

    def still_in_time(self) -> None:
        """Raise Violation if the check has used up its wall time."""
        if self._late:
            raise Violation(self._late)

    def __enter__(self) -> Self:
        """Return the lab."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Close every box."""
        self._stack.close()
