"""Which episodes a rollout is to have: task x instance seed x group x sample, each with a key of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tbmm_env.errors import UsageError
from tbmm_env.tasks import Task
from tbmm_env.trajectory.store import Store

OFFICIAL = "official"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One episode that is wanted.

    Attributes:
        task: task id.
        seed: of the instance; None for the official one.
        group: number of the group of this instance, from 0.
        sample: number of the episode in its group, from 0.
    """

    task: str
    seed: int | None
    group: int = 0
    sample: int = 0

    @property
    def key(self) -> str:
        """``task/seed/group/sample``, with ``official`` for the seed of the official instance."""
        return f"{self.task}/{OFFICIAL if self.seed is None else self.seed}/{self.group}/{self.sample}"

    def group_id(self, version: str, policy: str) -> str:
        """Return the name of the episodes that are compared with this one: one instance, group and policy.

        Args:
            version: of the task; groups of different versions are never mixed.
            policy: its name.
        """
        return f"{self.task}@{version}/{OFFICIAL if self.seed is None else self.seed}/{self.group}/{policy}"


class Plan:
    """The jobs of a rollout, made one at a time as they are iterated over; may be iterated over again.

    Samples of a group come one after another, then groups, instances and tasks.

    Args:
        tasks: task ids, each once.
        instances: number of instances a task; training seeds count from ``first_seed``.
        group_size: episodes that are compared with each other, of one instance.
        groups: groups an instance.
        first_seed: first instance seed.
        stride: from one instance seed to the next; a task's number of levels keeps to one level.
        official: the official instance instead of sampled ones; evaluation only.

    Raises:
        UsageError: a number is out of its range, or a task is named twice.
    """

    def __init__(
        self,
        tasks: Sequence[str],
        instances: int,
        group_size: int,
        *,
        groups: int = 1,
        first_seed: int = 0,
        stride: int = 1,
        official: bool = False,
    ) -> None:
        for name, value in (
            ("instances", instances),
            ("group_size", group_size),
            ("groups", groups),
            ("stride", stride),
        ):
            if value < 1:
                raise UsageError(f"{name} is {value}; it must be at least 1")
        if first_seed < 0 or first_seed + instances * stride > 2**63:
            raise UsageError(f"first_seed is {first_seed}; instance seeds must be in [0, 2**63)")
        if not tasks:
            raise UsageError("no task is named")
        for task in tasks:
            if list(tasks).count(task) > 1:
                raise UsageError(f"task {task} is named twice")
        self.tasks = tuple(tasks)
        self._seeds: Sequence[int | None] = (
            [None] if official else range(first_seed, first_seed + instances * stride, stride)
        )
        self._groups = groups
        self._group_size = group_size

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.tasks) * len(self._seeds) * self._groups * self._group_size

    def __iter__(self) -> Iterator[Job]:
        """Yield the jobs."""
        for task in self.tasks:
            for seed in self._seeds:
                for group in range(self._groups):
                    for sample in range(self._group_size):
                        yield Job(task=task, seed=seed, group=group, sample=sample)


def stored(out: Path) -> dict[str, str]:
    """Return the record key of every finished job of a store, by job key; empty where there is no store."""
    if not out.is_dir():
        return {}
    return {job: record for job, record in Store(out).jobs() if job}


def label(job: Job, task: Task, policy: str) -> dict[str, str | int]:
    """Return the fields of ``Episode`` that tell where it came from."""
    return {
        "job": job.key,
        "group_id": job.group_id(task.version, policy),
        "sample_id": job.sample,
        "policy": policy,
    }
