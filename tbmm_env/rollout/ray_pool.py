"""Workers as Ray actors, on this machine or on a cluster; the only module that imports ray.

An actor holds warm environments and has at most ``in_flight`` jobs. When it dies, or its host does, or a job passes
its wall limit, the job at its head counts as failed and another actor takes its place. Actors end with the driver,
however that ends: Ray's own processes watch over it.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import deque
from contextlib import suppress
from typing import Any, Final

from tbmm_env.errors import UsageError
from tbmm_env.rollout.pool import Ended
from tbmm_env.rollout.worker import Attempt, Failure, LockedWorker, Report, Setting

START_WALL_S = 300.0
"""Wall time in which an actor must be at work; a cluster may have to make room for it."""
CLOSE_WALL_S = 30.0
REACH_WALL_S = 10.0
OBJECT_STORE_BYTES: Final = 100 * 1024 * 1024
"""Of a Ray started here; nothing but small reports goes through it."""


def load_ray() -> Any:
    """Import Ray, with its usage statistics off unless the user has them on.

    Raises:
        UsageError: Ray is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            f"Ray cannot be imported ({error}): pip install 'tbmm-env[ray]', or play in this process with --workers 0"
        ) from error
    return ray


async def _reach(host: str, port: int) -> None:
    _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), REACH_WALL_S)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def reach(address: str) -> None:
    """Connect to ``HOST:PORT`` and hang up; Ray itself would try for many minutes. Other addresses are Ray's business.

    Raises:
        UsageError: nobody listens there.
    """
    match = re.fullmatch(r"([\w.-]+):(\d{1,5})", address)
    if match is None:
        return
    try:
        asyncio.run(_reach(match[1], int(match[2])))
    except (OSError, OverflowError, TimeoutError) as error:
        raise UsageError(f"there is no Ray cluster at address {address!r}: {str(error) or 'no answer'}") from error


class _Slot:
    """A place for one actor, and the jobs that it has."""

    def __init__(self, name: str, actor: Any) -> None:
        self.name = name
        self.actor = actor
        self.starting: Any = actor.ready.remote()
        self.since_s = time.monotonic()
        self.jobs: deque[tuple[Attempt, Any]] = deque()

    @property
    def head(self) -> Any:
        """What ends next: the start, then the oldest job; None when there is nothing."""
        if self.starting is not None:
            return self.starting
        return self.jobs[0][1] if self.jobs else None


class RayPool:
    """A pool of actors, see :class:`tbmm_env.rollout.pool.Pool`.

    Args:
        setting: what the episodes have in common.
        token: of the driver's lock on the output folder.
        workers: actors.
        in_flight: most jobs that one actor has.
        job_wall_s: wall time of one job.
        address: of a running cluster; by default Ray is started here. A Ray that this process has initialised
            already is used as it is, and left running.
        worker_cpus: cores that each actor reserves.

    Raises:
        UsageError: Ray is not installed, or there is no cluster at the address.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        token: str,
        workers: int,
        in_flight: int,
        job_wall_s: float,
        address: str | None,
        worker_cpus: float,
    ) -> None:
        self._ray = load_ray()
        self._setting = setting
        self._token = token
        self._in_flight = in_flight
        self._job_wall_s = job_wall_s
        self._made = 0
        self._ours = not self._ray.is_initialized()
        if self._ours:
            self._connect(address)
        self._actors = self._ray.remote(
            num_cpus=worker_cpus, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )(LockedWorker)
        self._slots = [self._slot() for _ in range(workers)]

    def _connect(self, address: str | None) -> None:
        try:
            if address is not None:
                reach(address)
                self._ray.init(address=address, log_to_driver=False, logging_level="ERROR")
            else:
                self._ray.init(
                    address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                    object_store_memory=OBJECT_STORE_BYTES,
                )  # fmt: skip
        except ConnectionError as error:
            raise UsageError(f"there is no Ray cluster at address {address!r}: {error}") from error

    def _slot(self) -> _Slot:
        self._made += 1
        name = f"{self._made}-{self._token[:8]}"
        return _Slot(name, self._actors.remote(self._setting, self._token, name))

    # ---------------------------------------------------------------- jobs

    def has_room(self) -> bool:
        """Whether an actor has fewer than ``in_flight`` jobs."""
        return any(len(slot.jobs) < self._in_flight for slot in self._slots)

    def give(self, attempt: Attempt) -> None:
        """Give a job to the actor that has the fewest."""
        slot = min(self._slots, key=lambda slot: len(slot.jobs))
        if not slot.jobs and slot.starting is None:
            slot.since_s = time.monotonic()
        slot.jobs.append((attempt, slot.actor.play.remote(attempt)))

    def wait(self, timeout_s: float) -> list[Ended]:
        """Return what has ended, with what died or took too long."""
        heads = [slot.head for slot in self._slots if slot.head is not None]
        ready, _ = self._ray.wait(heads, num_returns=1, timeout=timeout_s) if heads else ([], [])
        if ready:
            ready, _ = self._ray.wait(heads, num_returns=len(heads), timeout=0)
        ended: list[Ended] = []
        for index, slot in enumerate(self._slots):
            if slot.head in ready:
                ended += self._taken(index, slot)
            elif slot.head is not None:
                limit_s = START_WALL_S if slot.starting is not None else self._job_wall_s
                spent_s = time.monotonic() - slot.since_s
                if spent_s > limit_s:
                    what = "actor is not at work" if slot.starting is not None else "job has not ended"
                    message = f"{what} after {spent_s:.0f} s; the limit is {limit_s:g} s"
                    ended += self._replaced(index, slot, "JobWallLimit", message)
        return ended

    def _taken(self, index: int, slot: _Slot) -> list[Ended]:
        """Take the result at the head of a slot."""
        try:
            result = self._ray.get(slot.head)
        except self._ray.exceptions.RayTaskError as error:  # a fault in the worker's own code
            return self._replaced(index, slot, type(error.cause).__name__, f"{error.cause}")
        except self._ray.exceptions.RayError as error:
            return self._replaced(index, slot, "ActorDied", f"{error}".strip().splitlines()[0])
        slot.since_s = time.monotonic()
        if slot.starting is not None:
            slot.starting = None
            failure: Failure | None = result
            return [] if failure is None else self._replaced(index, slot, failure.kind, failure.message)
        attempt, _ = slot.jobs.popleft()
        report: Report = result
        return [Ended(attempt=attempt, report=report)]

    def _replaced(self, index: int, slot: _Slot, kind: str, message: str) -> list[Ended]:
        """Put another actor in a slot; its first job has failed, the others come back untried."""
        self._ray.kill(slot.actor)
        self._slots[index] = self._slot()
        ended = []
        for number, (attempt, _) in enumerate(slot.jobs):
            failed = Report(key=attempt.job.key, failure=Failure(kind=kind, message=message))
            ended.append(Ended(attempt=attempt, report=None if number else failed, lost=slot.name))
        return ended

    # ---------------------------------------------------------------- end

    def close(self, *, now: bool) -> None:
        """End the actors, and Ray if it was started or connected to here."""
        if not now:
            ends = [slot.actor.close.remote() for slot in self._slots]
            self._ray.wait(ends, num_returns=len(ends), timeout=CLOSE_WALL_S)
        for slot in self._slots:
            self._ray.kill(slot.actor)
        self._slots = []
        if self._ours:
            self._ray.shutdown()
