"""What every sandbox backend promises, and the choice between them.

The contract, tested for every backend by one suite:

* A box shows the agent one root filesystem, ``/task`` (read-only) and ``/workspace``; no network, nothing of the host.
* ``Box.run`` returns within its wall limit and a few seconds, whatever the command does, with what was printed so far.
* ``Box.collect`` reads a file when nobody else is alive in the box, without following a link.
* What the agent does to its own box is a ``CommandResult`` or an ``Artifact``; an exception is a failure of ours.
* After ``Box.close``, or the death of the owning process, nothing of the box is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import TracebackType
from typing import Literal, Protocol, Self, runtime_checkable

from tbmm_env.errors import ImageError, SandboxUnavailable, UsageError
from tbmm_env.limits import Limits
from tbmm_env.record import Artifact, CommandResult
from tbmm_env.sandbox.image import Image

SandboxName = Literal["auto", "docker", "bwrap"]
ANSWER_PATH = "/workspace/answer.json"
OnCheck = Callable[[Artifact], str]
"""Called with the present answer when the agent calls ``check``; returns what is printed in the box."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSpec:
    """What a box is made of.

    Attributes:
        limits: budgets that the box enforces.
        files: content of ``/task`` by relative path with ``/`` between parts; any language, read-only to the agent.
        image: the root filesystem.
    """

    limits: Limits
    files: Mapping[str, bytes]
    image: Image

    def __post_init__(self) -> None:
        """Raise UsageError for a path that is not a plain relative one."""
        for name in self.files:
            parts = PurePosixPath(name).parts
            if not parts or name.startswith("/") or ".." in parts or "\0" in name or str(PurePosixPath(name)) != name:
                raise UsageError(f"box file {name!r} is not a plain relative path such as 'figures/1.png'")


class Box(Protocol):
    """One running box; not for use by two threads at a time, except ``close``."""

    def run(self, command: str, *, wall_s: float, on_check: OnCheck) -> CommandResult:
        """Have the box's persistent bash run a command, or type it when a program waits for input.

        Args:
            command: any text without NUL, several lines too.
            wall_s: wall time after which the foreground is killed.
            on_check: answers the in-box command ``check``.

        Returns:
            What came of it; a box that died by the agent's doing is ``ending="box_died"`` with evidence.

        Raises:
            BoxLost: if the box is gone and nothing shows that the agent did it.
        """
        ...

    def collect(self, path: str = ANSWER_PATH, max_bytes: int | None = None) -> Artifact:
        """Kill everybody in the box, then read a file; may be called again for other files.

        Args:
            path: absolute path in the box.
            max_bytes: larger files are not read; ``Limits.artifact_bytes`` by default.

        Returns:
            The bytes, or why there are none; ``missing`` for a box that died by the agent's doing.

        Raises:
            BoxLost: if the box is gone and nothing shows that the agent did it.
        """
        ...

    def close(self) -> None:
        """End the box and remove everything of it; may be called again, and from another thread."""
        ...

    def __enter__(self) -> Self:
        """Return the box."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Close the box."""
        ...


class PreparedBox(Protocol):
    """A box that is started and not yet known to be for any task."""

    def furnish(self, files: Mapping[str, bytes]) -> Box:
        """Make files the content of ``/task``, as ``BoxSpec.files`` says, and return the box, to be used once.

        Raises:
            BoxLost: if the box has gone in the meantime.
        """
        ...

    def close(self) -> None:
        """End the box."""
        ...


class Sandbox(Protocol):
    """A backend."""

    @property
    def name(self) -> str:
        """``bwrap``, ``docker`` or ``scripted``."""
        ...

    def probe(self) -> None:
        """Find out whether boxes can be started here.

        Raises:
            SandboxUnavailable: if not; the message names the way out.
            ImageError: if the root filesystem is absent; the message names the command that brings it.
        """
        ...

    def start(self, spec: BoxSpec) -> Box:
        """Start a box and wait for its first answer.

        Raises:
            SandboxUnavailable: if the backend refuses.
            BoxLost: if the box does not answer within ``startup_wall_s``.
        """
        ...


@runtime_checkable
class PreparingSandbox(Sandbox, Protocol):
    """A backend that can start boxes before their task is known; what a pool of warm boxes needs."""

    def prepare(self, limits: Limits, image: Image) -> PreparedBox:
        """Start a box without files and wait for its first answer; raises as ``Sandbox.start`` does."""
        ...


def select(name: SandboxName = "auto") -> Sandbox:
    """Return the backend to use: ``auto`` takes Docker when it can be used, else bubblewrap.

    Raises:
        SandboxUnavailable: if the backend, or with ``auto`` every backend, refuses; the message names the way out.
        ImageError: if bubblewrap was asked for and the image is absent.
        UsageError: if there is no backend of that name.
    """
    from tbmm_env.sandbox.bubblewrap import BubblewrapSandbox
    from tbmm_env.sandbox.docker import DockerSandbox

    known: dict[str, Callable[[], Sandbox]] = {"docker": DockerSandbox, "bwrap": BubblewrapSandbox}
    if name != "auto" and name not in known:
        raise UsageError(f"sandbox is {name!r}; it must be one of 'auto', 'docker', 'bwrap'")
    refusals = []
    for candidate in known if name == "auto" else (name,):
        sandbox = known[candidate]()
        try:
            sandbox.probe()
        except (SandboxUnavailable, ImageError) as refusal:
            if name != "auto":
                raise
            refusals.append(f"{candidate}: {refusal}")
        else:
            return sandbox
    raise SandboxUnavailable("no sandbox can be used, and nothing is run without one:\n  " + "\n  ".join(refusals))
