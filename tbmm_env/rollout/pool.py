"""Where jobs are played: what every pool of workers does, and the one that is this process itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tbmm_env.rollout.worker import Attempt, Report, Setting, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What became of an attempt; without a report it came back untried, its worker having been lost before it."""

    attempt: Attempt
    report: Report | None
    lost: str = ""


class Pool(Protocol):
    """Where jobs are played."""

    def has_room(self) -> bool:
        """Whether another job may be given."""
        ...

    def give(self, attempt: Attempt) -> None:
        """Have a job played."""
        ...

    def wait(self, timeout_s: float) -> list[Ended]:
        """Return what has ended, waiting for it at most about ``timeout_s`` seconds."""
        ...

    def close(self, *, now: bool) -> None:
        """End the workers; ``now`` for those in the middle of a job too."""
        ...


class Inline:
    """One worker in this process; :meth:`wait` plays.

    Args:
        setting: what the episodes have in common.
    """

    def __init__(self, setting: Setting) -> None:
        self._worker = Worker(setting)
        self._given: Attempt | None = None

    def has_room(self) -> bool:
        """Whether no job waits."""
        return self._given is None

    def give(self, attempt: Attempt) -> None:
        """Keep a job for :meth:`wait`."""
        self._given = attempt

    def wait(self, timeout_s: float) -> list[Ended]:
        """Play the job to its end, however long that takes."""
        attempt, self._given = self._given, None
        return [Ended(attempt=attempt, report=self._worker.play(attempt))] if attempt else []

    def close(self, *, now: bool) -> None:
        """End the worker."""
        self._worker.close()
