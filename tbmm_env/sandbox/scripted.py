"""A public fake: boxes whose answers are written down beforehand; no process is started."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tbmm_env.errors import BoxLost
from tbmm_env.record import Artifact, CommandResult
from tbmm_env.sandbox.base import ANSWER_PATH, BoxSpec, OnCheck

Scripted = CommandResult | str | BaseException | Callable[["ScriptedBox"], CommandResult]
"""What a command does: a result, text that it prints with exit status 0, an error that is raised, or a function."""


def printed(text: str, *, exit_status: int = 0, submitted: bool = False) -> CommandResult:
    """Return the result of a command that prints a text and exits."""
    return CommandResult(
        head=text.encode("utf-8"), tail=b"", dropped_bytes=0, ending="exited", exit_status=exit_status,
        submitted=submitted, wall_s=0.0,
    )  # fmt: skip


def regular(data: bytes) -> Artifact:
    """Return the artifact of a file that was found as it should be."""
    return Artifact(status="regular", data=data, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


@dataclass
class ScriptedBox:
    """A box that answers from a script.

    Attributes:
        spec: what it was started with.
        results: what each command does. Unknown commands print nothing and exit with 0, ``submit`` submits,
            ``check`` prints what ``on_check`` says.
        files: what ``collect`` finds, by absolute path; functions may change it.
        commands: every command so far.
        closed: whether ``close`` was called.
    """

    spec: BoxSpec
    results: Mapping[str, Scripted]
    files: dict[str, bytes | Artifact]
    commands: list[str] = field(default_factory=list)
    closed: bool = False

    def run(self, command: str, *, wall_s: float, on_check: OnCheck) -> CommandResult:
        """See ``Box.run``."""
        if self.closed:
            raise BoxLost("the box is closed")
        self.commands.append(command)
        scripted = self.results.get(command)
        if isinstance(scripted, BaseException):
            raise scripted
        if isinstance(scripted, str):
            return printed(scripted)
        if isinstance(scripted, CommandResult):
            return scripted
        if scripted is not None:
            return scripted(self)
        if command == "check":
            try:
                return printed(on_check(self._found(ANSWER_PATH, self.spec.limits.artifact_bytes)))
            except BaseException:  # a box is given up in the middle of a command
                self.close()
                raise
        return printed("", submitted=command == "submit")

    def collect(self, path: str = ANSWER_PATH, max_bytes: int | None = None) -> Artifact:
        """See ``Box.collect``."""
        if self.closed:
            raise BoxLost("the box is closed")
        return self._found(path, self.spec.limits.artifact_bytes if max_bytes is None else max_bytes)

    def _found(self, path: str, max_bytes: int) -> Artifact:
        found = self.files.get(path, Artifact(status="missing"))
        if isinstance(found, Artifact):
            return found
        return regular(found) if len(found) <= max_bytes else Artifact(status="too_large", size_bytes=len(found))

    def close(self) -> None:
        """See ``Box.close``."""
        self.closed = True

    def __enter__(self) -> Self:
        """Return the box."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Close the box."""
        self.close()


@dataclass
class ScriptedSandbox:
    """A backend that starts scripted boxes and keeps them in ``boxes``.

    Attributes:
        results: see ``ScriptedBox``.
        files: see ``ScriptedBox``; each box begins with a copy.
        unavailable: raised by ``probe`` and ``start`` if set.
        boxes: every box that was started.
    """

    results: Mapping[str, Scripted] = field(default_factory=dict)
    files: Mapping[str, bytes | Artifact] = field(default_factory=dict)
    unavailable: Exception | None = None
    boxes: list[ScriptedBox] = field(default_factory=list)
    name: str = "scripted"

    def probe(self) -> None:
        """See ``Sandbox.probe``."""
        if self.unavailable is not None:
            raise self.unavailable

    def start(self, spec: BoxSpec) -> ScriptedBox:
        """See ``Sandbox.start``."""
        self.probe()
        box = ScriptedBox(spec, self.results, dict(self.files))
        self.boxes.append(box)
        return box
