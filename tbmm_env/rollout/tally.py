"""What a rollout has come to so far."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tbmm_env.rollout.jobs import Job
from tbmm_env.rollout.worker import Failure, Report

NAMED_JOBS = 100
"""Most job keys that a summary lists; the rest is only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a rollout came to, or has come to so far.

    Attributes:
        planned: jobs of the plan.
        skipped: jobs that were in the store already, from an earlier run.
        done: jobs finished by this run; each is in the store once.
        running: jobs being played at this moment.
        outcomes: finished jobs by outcome.
        reward_mean: of the jobs finished by this run; None while there is none.
        failures: failures of ours by kind, retried ones included. None of them is an episode.
        reasons: the latest message of each kind.
        retries: tries beyond the first ones.
        unfinished: number of jobs given up after their last try.
        unfinished_jobs: keys of them, at most ``NAMED_JOBS``.
        stopped: why jobs were left out; empty when none was.
        wall_s: since the start.
        episodes_per_hour: finished by this run.
        parts_s: where the workers' time went, in seconds: reset, policy, steps, judge, store.
    """

    planned: int
    skipped: int
    done: int
    running: int
    outcomes: Mapping[str, int]
    reward_mean: float | None
    failures: Mapping[str, int]
    reasons: Mapping[str, str]
    retries: int
    unfinished: int
    unfinished_jobs: tuple[str, ...]
    stopped: str
    wall_s: float
    episodes_per_hour: float
    parts_s: Mapping[str, float]

    @property
    def complete(self) -> bool:
        """Whether every job of the plan is in the store."""
        return self.done + self.skipped == self.planned

    @property
    def eta_s(self) -> float | None:
        """Seconds until the rest is finished at the present rate; None while that is unknown."""
        left = self.planned - self.skipped - self.done - self.unfinished
        return self.wall_s / self.done * left if self.done else None


@dataclass(kw_only=True)
class Tally:
    """Counts reports; memory does not grow with their number."""

    planned: int
    skipped: int = 0
    done: int = 0
    running: int = 0
    retries: int = 0
    unfinished: int = 0
    in_a_row: int = 0
    stopped: str = ""
    reward_sum: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    parts_s: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    unfinished_jobs: list[str] = field(default_factory=list)
    started_s: float = field(default_factory=time.monotonic)

    def finished(self, report: Report) -> None:
        """Count an episode."""
        self.done += 1
        self.in_a_row = 0
        self.reward_sum += report.reward
        self.outcomes[report.outcome] += 1
        self.parts_s.update(report.parts_s)

    def failed(self, failure: Failure) -> None:
        """Count a failure of ours."""
        self.in_a_row += 1
        self.failures[failure.kind] += 1
        self.reasons[failure.kind] = failure.message

    def gave_up(self, job: Job) -> None:
        """Count a job that will have no episode."""
        self.unfinished += 1
        if len(self.unfinished_jobs) < NAMED_JOBS:
            self.unfinished_jobs.append(job.key)

    def summary(self) -> Summary:
        """Return the present state."""
        wall_s = time.monotonic() - self.started_s
        return Summary(
            planned=self.planned,
            skipped=self.skipped,
            done=self.done,
            running=self.running,
            outcomes=dict(sorted(self.outcomes.items())),
            reward_mean=self.reward_sum / self.done if self.done else None,
            failures=dict(sorted(self.failures.items())),
            reasons=dict(self.reasons),
            retries=self.retries,
            unfinished=self.unfinished,
            unfinished_jobs=tuple(self.unfinished_jobs),
            stopped=self.stopped,
            wall_s=wall_s,
            episodes_per_hour=3600.0 * self.done / wall_s if wall_s > 0 else 0.0,
            parts_s=dict(self.parts_s),
        )
