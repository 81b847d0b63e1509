"""What plays jobs one after another: warm environments, a policy a task, and a store that each episode is logged to.

The same code runs in the driver's process and in a Ray actor.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tbmm_env import tasks
from tbmm_env.env import ModelingEnv
from tbmm_env.errors import TbmmError, UsageError
from tbmm_env.limits import BudgetName, Limits
from tbmm_env.record import Language
from tbmm_env.rollout.episode import LastEpisode, run_episode
from tbmm_env.rollout.jobs import Job, label, stored
from tbmm_env.rollout.locks import WorkerLock, await_gone
from tbmm_env.rollout.policies import Policy, PolicyFactory, named
from tbmm_env.sandbox.base import Sandbox, SandboxName
from tbmm_env.trajectory.store import Store

PARENT_POLL_S = 1.0
"""How often a worker looks whether the process that started it is alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all episodes of a rollout have in common.

    Attributes:
        out: folder of the trajectory store; with several hosts, one that all of them share.
        policy: a name that :func:`tbmm_env.rollout.policies.named` knows, or a factory.
        policy_name: what the policy is called in records and group ids.
        sandbox: as for the environment; an object must be picklable to be used by Ray.
        budget: preset of the limits.
        language: of statement and contract.
        limits: of the user's own instead of the preset.
        warm: boxes that each worker keeps ready.
    """

    out: Path
    policy: str | PolicyFactory
    policy_name: str
    sandbox: SandboxName | Sandbox = "auto"
    budget: BudgetName = "train"
    language: Language = "en"
    limits: Limits | None = None
    warm: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a job has no episode, though the agent did nothing wrong.

    Attributes:
        kind: name of the exception, or ``ActorDied`` or ``JobWallLimit``.
        message: its text.
        usage: whether the caller gave something wrong, so that every job would fail.
    """

    kind: str
    message: str
    usage: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a job came to.

    Attributes:
        key: of the job.
        record: key of the record in the store; empty on failure.
        outcome: of the judgement.
        reward: of the episode.
        steps: number of actions.
        parts_s: where the time went, in seconds: ``reset``, ``policy``, ``steps``, ``judge`` and ``store``.
        failure: set when there is no episode.
    """

    key: str
    record: str = ""
    outcome: str = ""
    reward: float = 0.0
    steps: int = 0
    parts_s: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a job.

    Attributes:
        job: the job.
        number: of the try, from 0.
        lost: name of the worker that the job was given to and that was lost; it must be gone first. In this case, and
            from the second try on, the store is searched for the job before it is played.
    """

    job: Job
    number: int = 0
    lost: str = ""


class Worker:
    """Plays jobs, each in a fresh box; environment and judge of a task stay warm.

    Args:
        setting: what the episodes have in common.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._store = Store(setting.out)
        self._environments: dict[str, tuple[ModelingEnv, LastEpisode]] = {}
        self._policies: dict[str, Policy] = {}

    def play(self, attempt: Attempt) -> Report:
        """Play one job and log it. What goes wrong on our side comes back as a failure, and nothing is logged."""
        job = attempt.job
        try:
            if attempt.lost:
                await_gone(self._setting.out, attempt.lost)
            again = attempt.number > 0 or attempt.lost
            return (self._found(job) if again else None) or self._played(job)
        except Exception as error:  # noqa: BLE001 - the rollout's edge: a policy of the user's may raise anything
            self._give_up(job.task)
            message = str(error) if isinstance(error, TbmmError) else f"{type(error).__name__}: {error}"
            usage = isinstance(error, UsageError)
            return Report(key=job.key, failure=Failure(kind=type(error).__name__, message=message, usage=usage))

    def _found(self, job: Job) -> Report | None:
        """Return what an earlier try stored though its end was never heard of."""
        record = stored(self._setting.out).get(job.key)
        if record is None:
            return None
        episode = self._store.read(record)
        outcome, reward = episode.judgement["outcome"], episode.judgement["reward"]
        assert isinstance(outcome, str)
        assert isinstance(reward, int | float)
        return Report(key=job.key, record=record, outcome=outcome, reward=float(reward), steps=len(episode.steps))

    def _played(self, job: Job) -> Report:
        setting = self._setting
        env, last = self._environment(job.task)
        if job.task not in self._policies:
            made = setting.policy
            self._policies[job.task] = named(made, env.task) if isinstance(made, str) else made(env.task)
        result = run_episode(
            env,
            self._policies[job.task],
            options=None if job.seed is None else {"instance": {"seed": job.seed}},
            last=last,
            labels=label(job, env.task, setting.policy_name),
            group=job.group,
        )
        assert result.episode is not None
        started_s = time.perf_counter()
        record = self._store.append(result.episode)
        return Report(
            key=job.key,
            record=record,
            outcome=result.judgement["outcome"],
            reward=result.reward,
            steps=result.steps,
            parts_s={**result.parts_s, "store": time.perf_counter() - started_s},
        )

    def _environment(self, task: str) -> tuple[ModelingEnv, LastEpisode]:
        if task not in self._environments:
            setting, last = self._setting, LastEpisode()
            env = ModelingEnv(
                tasks.load(task).id,
                sandbox=setting.sandbox,
                instance="official",  # what reset() without options gives; sampled ones are asked for by seed
                budget=setting.budget,
                language=setting.language,
                limits=setting.limits,
                warm=setting.warm,
                recorder=last,
            )
            self._environments[task] = env, last
        return self._environments[task]

    def _give_up(self, task: str) -> None:
        """Begin anew with a task: after a failure nothing of it is trusted."""
        self._policies.pop(task, None)
        env, _ = self._environments.pop(task, (None, None))
        if env is not None:
            env.close()

    def close(self) -> None:
        """End environments and store."""
        for task in list(self._environments):
            self._give_up(task)
        self._store.close()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    os._exit(1)


class LockedWorker(Worker):
    """A worker in a process of its own, which holds its lock on the output folder for its life.

    It ends with the process that started it: a Ray actor would outlive a killed raylet by minutes, and go on with a
    job that is being tried again elsewhere.

    Args:
        setting: what the episodes have in common.
        token: of the driver.
        name: of this worker.
    """

    def __init__(self, setting: Setting, token: str, name: str) -> None:
        super().__init__(setting)
        self._token = token
        self._name = name
        self._lock: WorkerLock | None = None

    def ready(self) -> Failure | None:
        """Take the lock; to be called before any job. Returns why it cannot work, if it cannot."""
        threading.Thread(target=_end_with, args=(os.getppid(),), name="tbmm-parent", daemon=True).start()
        try:
            self._lock = WorkerLock(self._setting.out, self._token, self._name)
        except (TbmmError, OSError) as error:
            return Failure(kind=type(error).__name__, message=str(error))
        return None

    def close(self) -> None:
        """End environments and store, then give the lock up."""
        super().close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None
