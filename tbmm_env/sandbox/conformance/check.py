"""What a check is, what came of one, and how a suite of them is run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from tbmm_env.errors import TbmmError, UsageError
from tbmm_env.sandbox.base import Sandbox
from tbmm_env.sandbox.conformance.lab import Lab, Violation
from tbmm_env.sandbox.image import Image

CHECK_WALL_S = 300.0
"""Wall time after which the boxes of a check are closed; a check of a working backend takes seconds."""

Status = Literal["kept", "violated", "known_gap", "unexpectedly_kept"]


@dataclass(frozen=True, slots=True)
class Check:
    """One promise of a sandbox backend.

    Attributes:
        name: ``theme.what-is-promised``; unique.
        theme: part of the contract that it belongs to.
        text: the promise in a sentence.
        run: tries it in boxes of a lab; raises ``Violation`` if it is not kept.
    """

    name: str
    theme: str
    text: str
    run: Callable[[Lab], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of a check.

    Attributes:
        check: the check.
        status: ``kept``; ``violated``; ``known_gap`` if it is violated and was named as known; or
            ``unexpectedly_kept`` if it was named as known and is kept, so the list of known gaps is out of date.
        detail: what was expected and what came, and the reason given for a known gap; empty if ``kept``.
    """

    check: Check
    status: Status
    detail: str


@dataclass(slots=True)
class Theme:
    """Collects checks: a decorator of functions whose docstring is the promise.

    Attributes:
        name: first part of the names of its checks.
        checks: those collected so far.
    """

    name: str
    checks: list[Check] = field(default_factory=list)

    def __call__(self, run: Callable[[Lab], None]) -> Callable[[Lab], None]:
        """Add a check that is named as the function is."""
        name = f"{self.name}.{run.__name__.replace('_', '-')}"
        self.checks.append(Check(name, self.name, (run.__doc__ or "").strip(), run))
        return run


def run(
    suite: Collection[Check],
    sandbox: Sandbox,
    *,
    image: Image,
    known: Mapping[str, str] = MappingProxyType({}),
    only: Collection[str] | None = None,
) -> list[Finding]:
    """Run checks of a suite against a backend, one after the other, each in boxes of its own.

    Args:
        suite: the checks.
        sandbox: the backend.
        image: the root filesystem of the boxes.
        known: why a check is known to be violated, by its name.
        only: names of the checks to run; all by default.

    Returns:
        A finding for each check that was run, in the order of the suite.

    Raises:
        UsageError: if ``known`` or ``only`` names a check that is not there.
        SandboxUnavailable: if the backend cannot start boxes here.
        ImageError: if the root filesystem is absent.
    """
    unknown = sorted({*known, *(only or ())} - {check.name for check in suite})
    if unknown:
        raise UsageError(f"there is no conformance check {unknown[0]!r}; `checks()` returns all {len(suite)} of them")
    sandbox.probe()
    return [_find(check, sandbox, image, known) for check in suite if only is None or check.name in only]


def _find(check: Check, sandbox: Sandbox, image: Image, known: Mapping[str, str]) -> Finding:
    violation, reason = _try(check, sandbox, image), known.get(check.name)
    if reason is None:
        return Finding(check, "violated" if violation else "kept", violation)
    if violation:
        return Finding(check, "known_gap", f"{reason}: {violation}")
    return Finding(check, "unexpectedly_kept", f"it is kept, but was named as a known gap: {reason}")


def _try(check: Check, sandbox: Sandbox, image: Image) -> str:
    """Return how a check is violated, or an empty string."""
    try:
        with Lab(sandbox, image) as lab:
            timer = threading.Timer(CHECK_WALL_S, lab.expire, (CHECK_WALL_S,))
            timer.daemon = True
            timer.start()
            try:
                check.run(lab)
            finally:
                timer.cancel()
            lab.still_in_time()
    except Violation as violation:
        return str(violation)
    except (TbmmError, OSError, ValueError, LookupError) as error:  # a failure, or an answer that makes no sense
        return f"no {type(error).__name__} was expected: {error}"
    return ""
