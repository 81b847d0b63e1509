"""Stored answers scored anew with the present judge, into a store of their own; score versions are never mixed.

The old store is only read. Each new record is the old one with another judgement, certificate and versions; where it
came from and what it was worth before stands in its ``extra["rejudged"]``. What was scored already is passed over, so
that a run that was stopped can be taken up again.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import tbmm_env
from tbmm_env import instances, tasks
from tbmm_env.errors import JudgeError, LeanUnavailable, UsageError
from tbmm_env.judge.judge import JUDGE_VERSION, Judge
from tbmm_env.limits import PRESETS
from tbmm_env.record import Artifact, Episode, Instance, JsonValue, Judgement
from tbmm_env.report import judgement_json
from tbmm_env.tasks import Task
from tbmm_env.trajectory import Finding, Store, StoredEpisode

SCORE_VERSIONS: Final = ("task", "panel", "judge")
"""The versions that decide what an answer is worth; rewards of different ones are never compared."""

_JUDGES = 4  # of different tasks, kept by one worker


class Judging(Protocol):
    """What is asked of a judge; :class:`tbmm_env.judge.judge.Judge` is one."""

    def judge(self, instance: Instance, artifact: Artifact) -> Judgement:
        """Judge one artifact."""
        ...

    def close(self) -> None:
        """End its processes."""
        ...


MakeJudge = Callable[[Task, int], Judging]
"""Makes a judge of a task for answers of at most so many bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """One answer that was scored anew: the old record's key, the new one's, and both verdicts."""

    key: str
    new_key: str
    task: str
    seed: int | None
    old_outcome: str
    old_reward: str
    new_outcome: str
    new_reward: str

    @property
    def changed(self) -> bool:
        """Whether outcome or exact reward are others than before."""
        return (self.old_outcome, self.old_reward) != (self.new_outcome, self.new_reward)


@dataclass(slots=True, kw_only=True)
class Report:
    """What became of a store.

    Attributes:
        rescored: number of answers that were scored anew.
        passed_over: number of those that the new store had already.
        changed: those of both whose outcome or reward changed.
        failed: key of each record that was not scored, and why.
        unreadable: what of the old store could not be read.
        old: number of records by task and old score versions.
        new: present score versions by task.
    """

    rescored: int = 0
    passed_over: int = 0
    changed: list[Rescored] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[Finding] = field(default_factory=list)
    old: collections.Counter[tuple[str, str, str, str]] = field(default_factory=collections.Counter)
    new: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether every record was read and scored; a torn end is no record."""
        return not self.failed and all(found.kind == "torn" for found in self.unreadable)

    def json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        old = [
            {"task": task, "versions": dict(zip(SCORE_VERSIONS, versions, strict=True)), "episodes": count}
            for (task, *versions), count in sorted(self.old.items())
        ]
        return {
            "rescored": self.rescored,
            "passed_over": self.passed_over,
            "changed": [dataclasses.asdict(one) for one in self.changed],
            "failed": [{"key": key, "reason": reason} for key, reason in self.failed],
            "unreadable": [{"kind": one.kind, "message": one.message} for one in self.unreadable],
            "old_versions": old,
            "new_versions": self.new,
        }


def score_versions(task: Task) -> dict[str, str]:
    """Return the versions under which an answer to a task is scored now."""
    return {"task": task.version, "panel": task.panel_version, "judge": JUDGE_VERSION}


def _stated(versions: Mapping[str, str]) -> dict[str, str]:
    return {name: versions.get(name, "unknown") for name in SCORE_VERSIONS}


def refuse_other_versions(out: Store) -> None:
    """Raise UsageError when a store holds a record that was scored under other versions than the present ones."""
    if not out.path.is_dir():
        return
    for stored in out.summaries(lambda _: None):
        name = stored.summary.instance.task
        found, wanted = _stated(stored.summary.versions), score_versions(tasks.load(name))
        if found != wanted:
            raise UsageError(
                f"{out.path} holds {stored.key} of {name}, scored under {version_words(found)}; the present versions"
                f" are {version_words(wanted)} and are never mixed with others: name another folder"
            )


def version_words(versions: Mapping[str, str]) -> str:
    """Return score versions as people read them."""
    return ", ".join(f"{name} {versions[name]}" for name in SCORE_VERSIONS)


class _Judges:
    """The judges of one thread, made when they are needed, the least used closed when there are too many."""

    def __init__(self, make: MakeJudge) -> None:
        self._make = make
        self._all: collections.OrderedDict[tuple[str, int], Judging] = collections.OrderedDict()

    def get(self, task: Task, artifact_bytes: int) -> Judging:
        key = (task.id, artifact_bytes)
        if key not in self._all:
            if len(self._all) == _JUDGES:
                self._all.popitem(last=False)[1].close()
            self._all[key] = self._make(task, artifact_bytes)
        self._all.move_to_end(key)
        return self._all[key]

    def close(self) -> None:
        for judge in self._all.values():
            judge.close()


def _real_judge(task: Task, artifact_bytes: int) -> Judge:
    return Judge(task, artifact_bytes=artifact_bytes)


class _Rejudger:
    def __init__(self, across_task_versions: bool, make_judge: MakeJudge, stack: ExitStack) -> None:
        self._across = across_task_versions
        self._make = make_judge
        self._stack = stack
        self._thread = threading.local()
        self._lock = threading.Lock()

    def __call__(self, stored: StoredEpisode) -> Episode | str:
        """Return the episode scored anew, or why it could not be."""
        try:
            return self._scored(stored)
        except LeanUnavailable:
            raise
        except (JudgeError, UsageError) as error:
            return f"{type(error).__name__}: {error}"

    def _scored(self, stored: StoredEpisode) -> Episode:
        episode = stored.episode
        task = tasks.load(episode.instance.task)
        if episode.instance.version != task.version:
            if not self._across:
                raise UsageError(
                    f"the answer is to version {episode.instance.version} of {task.id}; the present one is"
                    f" {task.version}, which may ask something else: --across-task-versions scores it all the same"
                )
            instances.given(task, episode.instance.parameters)
        size = episode.limits.get("artifact_bytes")
        artifact_bytes = size if isinstance(size, int) and size > 0 else PRESETS["contest"].artifact_bytes
        judgement = self._judges().get(task, artifact_bytes).judge(episode.instance, episode.artifact)
        certificate = judgement.certificate
        versions = score_versions(task) | {
            "tbmm_env": tbmm_env.__version__,
            "lean": certificate.lean_version if certificate else "",
        }
        origin: dict[str, JsonValue] = {
            "key": stored.key,
            "versions": dict(episode.versions),
            "outcome": _outcome(episode.judgement),
            "reward": _reward(episode.judgement),
        }
        return dataclasses.replace(
            episode,
            judgement=judgement_json(judgement),
            certificate_text=certificate.text if certificate else "",
            versions={**episode.versions, **versions},
            extra={**episode.extra, "rejudged": origin},
        )

    def _judges(self) -> _Judges:
        if not hasattr(self._thread, "judges"):
            self._thread.judges = _Judges(self._make)
            with self._lock:
                self._stack.callback(self._thread.judges.close)
        found: _Judges = self._thread.judges
        return found


def _outcome(judgement: Mapping[str, JsonValue]) -> str:
    return str(judgement.get("outcome", "unknown"))


def _reward(judgement: Mapping[str, JsonValue]) -> str:
    return str(judgement.get("reward_exact", judgement.get("reward", "unknown")))


def rejudge(
    source: Store,
    out: Store,
    *,
    workers: int = 1,
    across_task_versions: bool = False,
    make_judge: MakeJudge = _real_judge,
    on_total: Callable[[int], None] = lambda total: None,
    on_done: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Score every stored answer with the present judge and append it to another store, in the same order.

    Args:
        source: the old store.
        out: the new one; it may hold what an earlier run made under the present versions.
        workers: judges at work at the same time.
        across_task_versions: score answers to other versions of a task too, when its parameters are still valid.
        make_judge: makes the judges.
        on_total: is told how many records there are.
        on_done: is given the report after each record.

    Returns:
        The report; a failure of the judge is counted in it and the record is left out.

    Raises:
        UsageError: both stores are the same, or the new one holds records of other score versions.
        LeanUnavailable: Lean cannot be found or started.
        TrajectoryError: a store cannot be read or written.
    """
    if source.path.resolve() == out.path.resolve():
        raise UsageError(f"{out.path} is the store that is read; the new scores need a folder of their own")
    refuse_other_versions(out)
    report = Report()
    before = _made_before(out)
    on_total(sum(1 for _ in source.summaries(lambda _: None)))
    with ExitStack() as stack:
        score = _Rejudger(across_task_versions, make_judge, stack)
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        pending: collections.deque[tuple[StoredEpisode, Future[Episode | str]]] = collections.deque()
        try:
            for stored in source.episodes(report.unreadable.append):
                if stored.key in before:
                    report.passed_over += 1
                    _note(report, stored, before[stored.key])
                    on_done(report)
                    continue
                pending.append((stored, pool.submit(score, stored)))
                if len(pending) > 2 * workers:
                    _take(report, out, *pending.popleft())
                    on_done(report)
            while pending:
                _take(report, out, *pending.popleft())
                on_done(report)
        finally:
            for _, future in pending:
                future.cancel()
    return report


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What is kept of a new record."""

    key: str
    versions: dict[str, str]
    outcome: str
    reward: str


def _verdict(key: str, new: Episode) -> _Verdict:
    return _Verdict(key, _stated(new.versions), _outcome(new.judgement), _reward(new.judgement))


def _made_before(out: Store) -> dict[str, _Verdict]:
    """Return what an earlier run made, by old key."""
    found = {}
    for stored in out.episodes(lambda _: None) if out.path.is_dir() else ():
        origin = stored.episode.extra.get("rejudged")
        if isinstance(origin, dict):
            found[str(origin.get("key"))] = _verdict(stored.key, stored.episode)
    return found


def _take(report: Report, out: Store, stored: StoredEpisode, future: Future[Episode | str]) -> None:
    new = future.result()
    if isinstance(new, str):
        _count_old(report, stored.episode)
        report.failed.append((stored.key, new))
        return
    report.rescored += 1
    _note(report, stored, _verdict(out.append(new), new))


def _count_old(report: Report, old: Episode) -> None:
    was = _stated(old.versions)
    report.old[old.instance.task, was["task"], was["panel"], was["judge"]] += 1


def _note(report: Report, stored: StoredEpisode, new: _Verdict) -> None:
    old = stored.episode
    _count_old(report, old)
    report.new[old.instance.task] = new.versions
    one = Rescored(
        key=stored.key,
        new_key=new.key,
        task=old.instance.task,
        seed=old.instance.seed,
        old_outcome=_outcome(old.judgement),
        old_reward=_reward(old.judgement),
        new_outcome=new.outcome,
        new_reward=new.reward,
    )
    if one.changed:
        report.changed.append(one)
