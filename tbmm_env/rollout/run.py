"""A rollout: every job of a plan is played once, failures of ours are retried, and what is stored stays stored."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from tbmm_env import tasks
from tbmm_env.errors import TrajectoryError, UsageError
from tbmm_env.limits import JUDGE, PRESETS, BudgetName, Limits
from tbmm_env.record import Language
from tbmm_env.rollout.jobs import Job, Plan, stored
from tbmm_env.rollout.locks import DriverLock
from tbmm_env.rollout.policies import PolicyFactory, factory
from tbmm_env.rollout.pool import Ended, Inline, Pool
from tbmm_env.rollout.tally import Summary, Tally
from tbmm_env.rollout.worker import Attempt, Failure, Setting
from tbmm_env.sandbox.base import Sandbox, SandboxName, select

INTERRUPTED = "interrupted"
FAILURES_IN_A_ROW = 20
"""So many failures of ours without an episode in between stop a rollout (more with more than 5 workers)."""
MARGIN_S = 300.0
"""Added to the budgets of box and judge for a job's default wall limit: the judge's start, the policy, the store."""
_POLL_S = 0.25

Watch = Callable[[Summary], None]
"""Is told how a rollout stands, several times a second."""


def default_job_wall_s(limits: Limits) -> float:
    """Return the wall limit of a job: all budgets of box and judge, and ``MARGIN_S``."""
    return limits.startup_wall_s + limits.episode_wall_s + JUDGE.wall_s + MARGIN_S


def rollout(
    plan: Plan,
    policy: str | PolicyFactory,
    out: str | os.PathLike[str],
    *,
    policy_name: str = "",
    workers: int = 2,
    resume: bool = False,
    retries: int = 2,
    job_wall_s: float | None = None,
    in_flight: int = 1,
    address: str | None = None,
    worker_cpus: float = 0.0,
    sandbox: SandboxName | Sandbox = "auto",
    budget: BudgetName = "train",
    language: Language = "en",
    limits: Limits | None = None,
    warm: int = 1,
    watch: Watch | None = None,
    on_wait: Callable[[], object] | None = None,
) -> Summary:
    """Play every job of a plan and log each episode once.

    The first Ctrl-C lets running episodes finish and starts no others; the second stops at once. A failure of ours
    (a lost box, a judge that failed, a dead worker, an exception of the policy) is no episode: it is counted, and the
    job is tried again.

    Args:
        plan: the jobs.
        policy: a name, see :func:`tbmm_env.rollout.policies.named`, or a function of a task that makes a policy.
        out: folder of the trajectory store; on a cluster, one that all hosts share.
        policy_name: name in records and group ids; by default ``policy``, which must be a name then.
        workers: Ray actors; 0 plays in this process, without Ray and without a wall limit of jobs.
        resume: leave out jobs that the store has; otherwise there must be none.
        retries: tries of a job after its first one.
        job_wall_s: wall time of one try, after which its actor is killed; by default all budgets and a margin.
        in_flight: most jobs given to one actor at a time; more than 1 hides the way to a distant host.
        address: of a running Ray cluster, or ``auto``; by default Ray is started here and ended again.
        worker_cpus: cores that each actor reserves in Ray. With 0 it takes none from other Ray work, ``ray.data``
            for one, which would otherwise wait for a free core for ever.
        sandbox: as for :class:`tbmm_env.env.ModelingEnv`; an object must be picklable to be used by Ray.
        budget: preset of the limits.
        language: of statement and contract.
        limits: of the user's own instead of the preset.
        warm: boxes that each worker keeps ready.
        watch: is told how things stand.
        on_wait: called once when the remains of an earlier rollout on ``out`` are waited for.

    Raises:
        UsageError: an argument is out of range, Ray is absent, ``out`` holds other things than this plan's, or
            another rollout is at work on it.
        SandboxUnavailable: there is no sandbox here (asked only when no cluster is named).
        TrajectoryError: ``out`` cannot be written.
    """
    _check(workers, retries, in_flight, job_wall_s, worker_cpus)
    name = policy_name or (policy if isinstance(policy, str) else "")
    if not name:
        raise UsageError("a policy that is a function needs policy_name")
    setting = Setting(
        out=Path(out).absolute(), policy=policy, policy_name=name, sandbox=sandbox, budget=budget, language=language,
        limits=limits, warm=warm,
    )  # fmt: skip
    versions = _checked_tasks(plan, setting)
    if isinstance(sandbox, str) and address is None:
        select(sandbox)
    with DriverLock(setting.out, on_wait=on_wait) as lock:
        _claim(setting, versions)
        finished = set(stored(setting.out))
        skipped = sum(job.key in finished for job in plan) if finished else 0
        if skipped and not resume:
            raise UsageError(
                f"{out} holds {skipped} of the {len(plan)} episodes of this plan already; go on with --resume, or name"
                " another folder"
            )
        tally = Tally(planned=len(plan), skipped=skipped)
        if skipped == len(plan):
            return tally.summary()
        if workers == 0:
            pool: Pool = Inline(setting)
        else:
            from tbmm_env.rollout.ray_pool import RayPool

            pool = RayPool(
                setting,
                token=lock.token,
                workers=min(workers, len(plan) - skipped),
                in_flight=in_flight,
                job_wall_s=job_wall_s or default_job_wall_s(limits or PRESETS[budget]),
                address=address,
                worker_cpus=worker_cpus,
            )
        _drive(
            (job for job in plan if job.key not in finished),
            pool,
            tally,
            retries,
            max(FAILURES_IN_A_ROW, 4 * workers),
            watch or (lambda _: None),
        )
    return tally.summary()


def _check(workers: int, retries: int, in_flight: int, job_wall_s: float | None, worker_cpus: float) -> None:
    for name, value, least in (("workers", workers, 0), ("retries", retries, 0), ("in_flight", in_flight, 1)):
        if value < least:
            raise UsageError(f"{name} is {value}; it must be at least {least}")
    if job_wall_s is not None and not job_wall_s > 0:
        raise UsageError(f"job_wall_s is {job_wall_s} s; it must be greater than 0")
    if worker_cpus < 0:
        raise UsageError(f"worker_cpus is {worker_cpus}; it must be a number of cores, 0 or more")


def _checked_tasks(plan: Plan, setting: Setting) -> dict[str, str]:
    """Return the version of each task; what is wrong with tasks or policy is said now, not by every worker."""
    loaded = [tasks.load(task) for task in plan.tasks]
    if isinstance(setting.policy, str):
        factory(setting.policy)
    return {task.id: task.version for task in loaded}


def _claim(setting: Setting, versions: dict[str, str]) -> None:
    """Write down in ``OUT/rollout.json`` what the folder's episodes have in common, or compare with what is there.

    Raises:
        UsageError: the folder's episodes were played under other conditions, under the same keys.
        TrajectoryError: the file cannot be read or written.
    """
    path = setting.out / "rollout.json"
    conditions: dict[str, Any] = {
        "policy": setting.policy_name,
        "budget": "own" if setting.limits is not None else setting.budget,
        "language": setting.language,
    }
    try:
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {**conditions, "tasks": {}}
        known: dict[str, str] = before["tasks"]
        for field, value in conditions.items():
            if before[field] != value:
                raise UsageError(f"{setting.out} has episodes of {field} {before[field]!r}, not {value!r};"
                                 " name another folder")  # fmt: skip
        for task, version in versions.items():
            if known.get(task, version) != version:
                raise UsageError(
                    f"{setting.out} has episodes of {task} version {known[task]}, which is version {version} now; name"
                    " another folder"
                )
        unfinished = path.with_suffix(".unfinished")
        text = json.dumps({**conditions, "tasks": {**known, **versions}}, ensure_ascii=False, indent=1)
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(path)
    except UsageError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise TrajectoryError(f"{path}: cannot be read or written: {type(error).__name__}: {error}") from error


# ---------------------------------------------------------------- the loop


class _Drain:
    """Whether the user wants no further job to be started."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def _draining() -> Iterator[_Drain]:
    """Have the first Ctrl-C ask for an end and the second one make it; only the main thread can be told."""
    drain = _Drain()
    if threading.current_thread() is not threading.main_thread():
        yield drain
        return
    before = signal.signal(signal.SIGINT, drain)
    try:
        yield drain
    finally:
        signal.signal(signal.SIGINT, before)


def _drive(jobs: Iterator[Job], pool: Pool, tally: Tally, retries: int, most_failures: int, watch: Watch) -> None:
    """Hand out jobs as there is room for them, and count what comes back."""
    again: deque[Attempt] = deque()
    now = True
    try:
        with _draining() as drain:
            while True:
                if drain.asked and not tally.stopped:
                    tally.stopped = INTERRUPTED
                while not tally.stopped and pool.has_room() and (attempt := _next(again, jobs)) is not None:
                    pool.give(attempt)
                    tally.running += 1
                    tally.retries += attempt.number > 0
                watch(tally.summary())
                if tally.running == 0:
                    break
                for ended in pool.wait(_POLL_S):
                    tally.running -= 1
                    _count(ended, tally, again, retries)
                if tally.in_a_row >= most_failures and not tally.stopped:
                    tally.stopped = f"{tally.in_a_row} failures in a row"
        now = False
    except KeyboardInterrupt:
        tally.stopped, tally.running = INTERRUPTED, 0
    finally:
        pool.close(now=now)
    watch(tally.summary())


def _next(again: deque[Attempt], jobs: Iterator[Job]) -> Attempt | None:
    """Return what to play next: jobs that are to be tried again come first."""
    if again:
        return again.popleft()
    job = next(jobs, None)
    return None if job is None else Attempt(job=job)


def _count(ended: Ended, tally: Tally, again: deque[Attempt], retries: int) -> None:
    attempt, report = ended.attempt, ended.report
    if report is None:
        again.appendleft(Attempt(job=attempt.job, number=attempt.number, lost=ended.lost))
    elif report.failure is None:
        tally.finished(report)
    else:
        failure: Failure = report.failure
        if failure.usage:
            raise UsageError(f"job {report.key}: {failure.message}")
        tally.failed(failure)
        if attempt.number < retries:
            again.append(Attempt(job=attempt.job, number=attempt.number + 1, lost=ended.lost))
        else:
            tally.gave_up(attempt.job)
