"""The conformance suite: what every sandbox backend promises, tried out in real boxes; for any backend, yours too.

    from tbmm_env.sandbox import conformance, image
    for finding in conformance.run(MySandbox(), image=image.find()):
        print(finding.status, finding.check.name, finding.detail)

A promise that a backend is known not to keep is named with the reason in ``known``; if it is kept after all, the
finding says so. The whole suite takes about a minute.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from tbmm_env.sandbox.base import Sandbox
from tbmm_env.sandbox.conformance import (
    check,
    collect,
    endings,
    faults,
    files,
    jobs,
    lifetime,
    limits,
    output,
    requests,
    screens,
    state,
    status,
    storage,
    terminal,
    view,
)
from tbmm_env.sandbox.conformance.check import Check, Finding
from tbmm_env.sandbox.conformance.known import known_gaps
from tbmm_env.sandbox.conformance.lab import Violation
from tbmm_env.sandbox.image import Image

__all__ = ["Check", "Finding", "Violation", "checks", "known_gaps", "run"]

_MODULES = (
    files, state, status, terminal, screens, output, jobs, endings, limits, storage, faults, requests, view, collect,
    lifetime,
)  # fmt: skip


def checks() -> tuple[Check, ...]:
    """Return every check, by theme."""
    return tuple(one for module in _MODULES for one in module.THEME.checks)


def run(
    sandbox: Sandbox,
    *,
    image: Image,
    known: Mapping[str, str] = MappingProxyType({}),
    only: Collection[str] | None = None,
) -> list[Finding]:
    """Run the suite against a backend, one check after the other, each in boxes of its own.

    Args:
        sandbox: the backend.
        image: the root filesystem of the boxes.
        known: why a check is known to be violated, by its name; ``known_gaps`` has those of our own backends.
        only: names of the checks to run; all by default.

    Returns:
        A finding for each check that was run.

    Raises:
        UsageError: if ``known`` or ``only`` names a check that is not there.
        SandboxUnavailable: if the backend cannot start boxes here.
        ImageError: if the root filesystem is absent.
    """
    return check.run(checks(), sandbox, image=image, known=known, only=only)
