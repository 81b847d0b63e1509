"""Which episodes of a store may enter an export, and why the others may not.

Training and evaluation are never in one export, nor are scores of different versions. The store is read twice: first
every episode is reduced to an :class:`Entry` and chosen or left out, then the chosen ones are read again, one by one.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Literal, cast, get_args

from tbmm_env.datasets.evaluation import instance_sha256
from tbmm_env.datasets.summary import ExportSummary
from tbmm_env.errors import TrajectoryError, UsageError
from tbmm_env.judge.numeral import read_exact
from tbmm_env.record import Episode, Outcome
from tbmm_env.splits import split_of
from tbmm_env.trajectory.segment import Finding
from tbmm_env.trajectory.store import Store, StoredEpisode

ExportSplit = Literal["training", "evaluation"]
_OUTCOMES: Final = get_args(Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What may enter an export.

    Attributes:
        split: ``training``, or ``evaluation`` for files that nothing is trained on.
        include_official: let official instances in; they are for evaluation, so it must be said.
        evaluation: sha256 of further evaluation instances, see :mod:`tbmm_env.datasets.evaluation`.
        tasks: task ids; empty for all.
        task_version: only this version of the tasks.
        panel: only judgements against this panel version.
        judge: only judgements of this judge version.
        outcomes: only these outcomes.
        min_reward: least reward, in [0, 1].
    """

    split: ExportSplit = "training"
    include_official: bool = False
    evaluation: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()
    task_version: str | None = None
    panel: str | None = None
    judge: str | None = None
    outcomes: frozenset[Outcome] = frozenset(_OUTCOMES)
    min_reward: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreVersion:
    """What a score depends on beside the answer; scores of different ones are not comparable."""

    task: str
    task_version: str
    panel: str
    judge: str

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"{self.task} version {self.task_version}, panel {self.panel}, judge {self.judge}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An episode reduced to what choosing needs.

    Attributes:
        key: of the record in the store.
        instance: sha256 of task, version and parameters.
        seed: of the instance; below 2**63.
        reward: exact.
        steps: number of actions.
        actions_sha256: of the action texts in order.
        kin: what episodes of one group have in common: policy, budget and language.
    """

    key: str
    episode_id: str
    job: str
    instance: str
    seed: int | None
    version: ScoreVersion
    outcome: Outcome
    reward: Fraction
    group_id: str
    sample_id: int
    kin: tuple[str, str, str]
    steps: int
    started_unix_s: float
    artifact_sha256: str
    actions_sha256: str


@dataclass(slots=True)
class Chosen:
    """The episodes of an export: entries in the order of the store, and how to read them."""

    store: Store
    summary: ExportSummary
    entries: list[Entry] = field(default_factory=list)

    def keep(self, kept: Sequence[Entry], reasons: Mapping[str, str]) -> None:
        """Go on with ``kept``; the others are left out for the reason under their key."""
        keys = {entry.key for entry in kept}
        self.summary.left_out.update(reasons[entry.key] for entry in self.entries if entry.key not in keys)
        self.entries = [entry for entry in self.entries if entry.key in keys]
        self.refuse_empty()

    def refuse_empty(self) -> None:
        """Refuse to write an export without episodes.

        Raises:
            UsageError: nothing is left; the message says why.
        """
        if not self.entries:
            reasons = "; ".join(f"{count} x {reason}" for reason, count in sorted(self.summary.left_out.items()))
            raise UsageError(f"no episode of {self.store.path} may enter: {reasons or 'the store is empty'}")

    def episodes(self) -> Iterator[tuple[Entry, Episode]]:
        """Read the chosen episodes, one at a time, in the order of the store.

        Raises:
            TrajectoryError: one of them cannot be read any more.
        """
        wanted = {entry.key: entry for entry in self.entries}
        for stored in self.store.episodes(lambda _: None):
            entry = wanted.pop(stored.key, None)
            if entry is not None:
                yield entry, stored.episode
        if wanted:
            raise TrajectoryError(
                f"{len(wanted)} episodes of {self.store.path} could be read at first and then no more, {min(wanted)}"
                " among them; see `tbmm traj verify`"
            )

    def put_in(self, entry: Entry) -> None:
        """Count an episode that went in."""
        self.summary.put_in(entry.outcome, str(entry.version), entry.reward)


def choose(store: Store, selection: Selection, summary: ExportSummary) -> Chosen:
    """Return the episodes of a store that a selection lets in; the summary says why the others are left out.

    Raises:
        UsageError: there is no store, what is left has scores of different versions, or nothing is left.
    """
    chosen = Chosen(store, summary)

    def damaged(finding: Finding) -> None:
        summary.read += 1
        summary.left_out[f"record cannot be read ({finding.kind}); see `tbmm traj verify`"] += 1

    if not store.path.is_dir():
        raise UsageError(f"there is no trajectory store at {store.path}")
    for stored in store.episodes(damaged):
        summary.read += 1
        found = _entry(stored, selection)
        if isinstance(found, str):
            summary.left_out[found] += 1
        else:
            chosen.entries.append(found)
    _leave_out_repeated(chosen)
    _refuse_mixed(chosen.entries)
    chosen.refuse_empty()
    return chosen


# ---------------------------------------------------------------- one episode


def _entry(stored: StoredEpisode, selection: Selection) -> Entry | str:
    """Return the entry of an episode, or why it is left out."""
    episode = stored.episode
    score = _score(episode)
    if isinstance(score, str):
        return score
    version, outcome, reward = score
    seed = episode.instance.seed
    sha256 = instance_sha256(episode.instance)
    reason = (
        _of_other_split(episode, sha256, selection)
        or _not_asked(version, selection)
        or ("" if outcome in selection.outcomes else f"outcome {outcome}")
        or ("" if reward >= selection.min_reward else f"reward below {float(selection.min_reward):g}")
    )
    if reason:
        return reason
    if not (-(2**63) <= episode.sample_id < 2**63 and (seed is None or 0 <= seed < 2**63)):
        return "a seed or sample id of more than 63 bits"
    return Entry(
        key=stored.key,
        episode_id=episode.episode_id,
        job=episode.job,
        instance=sha256,
        seed=None if seed is None else int(seed),
        version=version,
        outcome=outcome,
        reward=reward,
        group_id=episode.group_id,
        sample_id=int(episode.sample_id),
        kin=(episode.policy, episode.budget, episode.language),
        steps=len(episode.steps),
        started_unix_s=float(episode.started_unix_s),
        artifact_sha256=episode.artifact.sha256,
        actions_sha256=_actions_sha256(episode),
    )


def _actions_sha256(episode: Episode) -> str:
    digest = hashlib.sha256()
    for step in episode.steps:
        action = step.action.encode("utf-8", "surrogatepass")
        digest.update(len(action).to_bytes(8, "big") + action)
    return digest.hexdigest()


def _score(episode: Episode) -> tuple[ScoreVersion, Outcome, Fraction] | str:
    """Return version, outcome and exact reward of an episode, or why it has none that may be used."""
    judgement = episode.judgement
    outcome, number = cast(Outcome, judgement.get("outcome")), judgement.get("reward")
    if outcome not in _OUTCOMES or isinstance(number, bool) or not isinstance(number, int | float):
        return "no judgement"
    try:
        text = judgement.get("reward_exact")
        reward = read_exact(text) if isinstance(text, str) else Fraction(number)
    except (ValueError, OverflowError, ZeroDivisionError):
        return "the reward is not a number"
    if not 0 <= reward <= 1 or float(reward) != number:
        return "the reward is outside [0, 1], or its float is not its exact value rounded"
    certificate: Any = judgement.get("certificate")
    if reward > 0 and not (outcome == "scored" and isinstance(certificate, Mapping) and certificate.get("accepted")):
        return "a reward above 0 without an accepted certificate"
    version = ScoreVersion(
        task=episode.instance.task,
        task_version=episode.instance.version,
        panel=str(judgement.get("panel_version", "")),
        judge=str(judgement.get("judge_version", "")),
    )
    return version, outcome, reward


def _of_other_split(episode: Episode, sha256: str, selection: Selection) -> str:
    split = split_of(episode.instance)
    if episode.extra.get("split") == "evaluation" or sha256 in selection.evaluation:
        split = "evaluation"
    if split == "official":
        return "" if selection.include_official else "official instance: for evaluation, unless --include-official"
    if split == "given":
        return "instance with parameters of somebody's own: not known to be for training"
    if split == selection.split:
        return ""
    if split == "evaluation":
        return "evaluation instance: never in a training export"
    return "training instance: never in an evaluation export"


def _not_asked(version: ScoreVersion, selection: Selection) -> str:
    if selection.tasks and version.task not in selection.tasks:
        return f"task {version.task}, not asked for"
    asked = (
        ("task version", version.task_version, selection.task_version),
        ("panel", version.panel, selection.panel),
        ("judge", version.judge, selection.judge),
    )
    for name, has, wanted in asked:
        if wanted is not None and has != wanted:
            return f"{name} {has}, not {wanted}"
    return ""


# ---------------------------------------------------------------- all of them


def _leave_out_repeated(chosen: Chosen) -> None:
    """Of records of one episode or one job only the first that was begun stays."""
    seen: set[tuple[str, str]] = set()
    kept: list[Entry] = []
    reasons: dict[str, str] = {}
    for entry in sorted(chosen.entries, key=lambda entry: (entry.started_unix_s, entry.episode_id, entry.key)):
        names = {("episode", entry.episode_id)} | ({("job", entry.job)} if entry.job else set())
        if names & seen:
            reasons[entry.key] = "the same episode or job once more"
        else:
            seen |= names
            kept.append(entry)
    chosen.keep(kept, reasons)


def _refuse_mixed(entries: Sequence[Entry]) -> None:
    counts = Counter(entry.version for entry in entries)
    per_task: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for version in counts:
        per_task[version.task].add((version.task_version, version.panel))
    judges = {version.judge for version in counts}
    if len(judges) > 1 or any(len(found) > 1 for found in per_task.values()):
        found = "; ".join(f"{version} ({count} episodes)" for version, count in sorted(counts.items(), key=str))
        raise UsageError(
            f"scores of different versions are never mixed, and the store has {found}. Choose one with"
            " --task-version, --panel or --judge, or score everything anew with `tbmm rejudge`"
        )


def refuse_evaluation(selection: Selection, what: str) -> None:
    """Refuse to make training data of evaluation episodes.

    Raises:
        UsageError: the selection asks for them.
    """
    if selection.split == "evaluation":
        raise UsageError(
            f"{what} is training data and evaluation instances never enter it; export them with parquet or atif"
        )
