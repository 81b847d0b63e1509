"""What a case of the hostile suite is, and how one is played.

A case is data: actions of the agent, what each of them must come to, what its text must and must not show, and what is
collected at the end. ``check`` looks at what data cannot say. Text in ``@...@`` is replaced by facts of the host.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from host_state import Host

from tbmm_env.limits import MIB, TRAIN, Limits
from tbmm_env.record import Artifact, CommandResult, Ending, FileStatus
from tbmm_env.sandbox.base import Box, BoxSpec, Sandbox
from tbmm_env.sandbox.fault import Fault, classify
from tbmm_env.sandbox.image import Image

SMALL = replace(
    TRAIN, memory_bytes=256 * MIB, workspace_bytes=32 * MIB, tmp_bytes=16 * MIB, shm_bytes=8 * MIB, no_output_s=0.3
)
LATE_S = 15.0
"""How much later than its wall limit a step may return on a slow machine."""
CLOSE_S = 20.0


def python(program: str) -> str:
    """Return an action that runs a program with the terminal as its input."""
    return f"python3 -c \"$(cat <<'END_OF_PROGRAM'\n{program.strip()}\nEND_OF_PROGRAM\n)\""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One action.

    Attributes:
        command: its text.
        wall_s: its wall limit.
        fault: what the result must be classified as; several where the kernel decides.
        ending: ending that is asked for beyond the class.
        status: exit status that is asked for beyond the class.
        prints: the whole output, if given.
        shows: what the output must have.
        hides: what the output must not have.
    """

    command: str
    wall_s: float = 20.0
    fault: Fault | tuple[Fault, ...] = "none"
    ending: Ending | None = None
    status: int | None = None
    prints: str | None = None
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()

    def complaints(self, result: CommandResult) -> Iterator[str]:
        """Yield what is wrong with a result."""
        said = result.head + result.tail
        allowed = (self.fault,) if isinstance(self.fault, str) else self.fault
        if classify(result) not in allowed:
            yield f"is {classify(result)}, not {' or '.join(allowed)}"
        if self.ending is not None and result.ending != self.ending:
            yield f"ended by {result.ending}, not {self.ending}"
        if self.status is not None and result.exit_status != self.status:
            yield f"exit status {result.exit_status}, not {self.status}"
        if result.wall_s > self.wall_s + LATE_S:
            yield f"took {result.wall_s:.1f} s; its limit was {self.wall_s:g} s"
        if self.prints is not None and said != self.prints.encode():
            yield f"did not print just {self.prints!r}"
        yield from (f"does not show {text!r}" for text in self.shows if text.encode() not in said)
        yield from (f"shows {text!r}" for text in self.hides if text.encode() in said)


@dataclass(kw_only=True)
class Played:
    """What came of a case."""

    sandbox: Sandbox
    host: Host
    box: Box
    limits: Limits
    started_ns: int
    results: list[CommandResult] = field(default_factory=list)
    checked: list[Artifact] = field(default_factory=list)
    collected: Artifact = field(default_factory=lambda: Artifact(status="missing"))

    def text(self, number: int) -> str:
        """Return the output of a step."""
        return (self.results[number].head + self.results[number].tail).decode("utf-8", "replace")


Check = Callable[[Played], None]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One attack.

    Attributes:
        name: family and attack.
        steps: actions, in order.
        limits: what differs from ``SMALL``.
        files: content of ``/task``.
        collected: status of the answer at the end, or its bytes; None leaves that to ``check``.
        again: whether the box must be usable after the answer was collected; a box that died is not.
        check: looks at what came of it; raises AssertionError.
        gap: backend to the first word of the entry of its table that says why less is promised there.
    """

    name: str
    steps: tuple[Step, ...]
    limits: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    collected: FileStatus | bytes | None = "missing"
    again: bool = True
    check: Check | None = None
    gap: Mapping[str, str] = field(default_factory=dict)


def act(played: Played, step: Step) -> list[str]:
    """Have a box run an action; return complaints."""

    def on_check(artifact: Artifact) -> str:
        played.checked.append(artifact)
        return f"checked: {artifact.status} {artifact.size_bytes}\n"

    result = played.box.run(played.host.told(step.command), wall_s=step.wall_s, on_check=on_check)
    played.results.append(result)
    wrong = [f"{step.command[:200]!r}: {text}" for text in step.complaints(result)]
    return [*wrong, f"came of it: {result!r:.2000}"] if wrong else []


def play(case: Case, sandbox: Sandbox, image: Image, host: Host) -> list[str]:
    """Play a case in a box of its own; return complaints. The host is looked at while the box is alive."""
    limits = replace(SMALL, **case.limits)
    wrong: list[str] = []
    started_ns = time.time_ns()
    box = sandbox.start(BoxSpec(limits=limits, files=case.files, image=image))
    try:
        host.mark()
        played = Played(sandbox=sandbox, host=host, box=box, limits=limits, started_ns=started_ns)
        for step in case.steps:
            wrong += act(played, step)
        played.collected = box.collect()
        wrong += _uncollected(case, played.collected)
        if case.again:
            wrong += act(played, Step(command="echo fine", shows=("fine",)))
        if case.check:
            case.check(played)
    finally:
        started = time.monotonic()
        box.close()
    if time.monotonic() - started > CLOSE_S:
        wrong.append(f"closing took {time.monotonic() - started:.1f} s")
    return wrong


def _uncollected(case: Case, found: Artifact) -> Iterator[str]:
    if case.collected is None:
        return
    if isinstance(case.collected, bytes):
        if (found.status, found.data) != ("regular", case.collected):
            yield f"collected {found!r:.300}, not {case.collected!r:.100}"
    elif found.status != case.collected or (found.status != "regular" and found.data):
        yield f"collected {found!r:.300}, not status {case.collected}"


NEXT = Case(
    name="the next one",
    steps=(
        Step(command="ls -A /workspace /tmp /dev/shm; pwd", prints="/dev/shm:\n\n/tmp:\n\n/workspace:\n/workspace\n"),
        Step(command="echo '{\"next\": 1}' > answer.json; check", prints="checked: regular 12\n"),
    ),
    collected=b'{"next": 1}\n',
    again=False,
)
"""A normal episode, which must go well after every attack."""


def ordinary_bwrap(sandbox: Sandbox) -> bool:
    """Return whether boxes have no control groups here (bubblewrap as an ordinary user)."""
    return sandbox.name == "bwrap" and os.geteuid() != 0
