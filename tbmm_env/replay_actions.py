"""A stored episode played again: the same actions in a fresh box, and what came out otherwise.

Everything that is written into observations is a function of seed and actions, so the same box shows the same texts
and figures, leaves the same answer and is judged the same. What differs is named step by step; programs that print
times, process ids or random numbers differ by their own doing.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tbmm_env import instances
from tbmm_env.env import ModelingEnv
from tbmm_env.errors import BadInstance, SandboxError, UsageError
from tbmm_env.limits import PRESETS, BudgetName, Limits
from tbmm_env.record import Episode, JsonValue, Observation, Step
from tbmm_env.sandbox.base import Sandbox, SandboxName
from tbmm_env.tasks import Task
from tbmm_env.trajectory.plain import plain

DIFF_LINES: Final = 200
"""Lines of one unified diff that are kept."""

_ENDINGS = ("submit", "^C", "submit")
"""Played where the actions do not end the episode: a clock ended it, perhaps while a program waited for input."""

OnStep = Callable[[int, int], None]
"""Is told a step's number and how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that came out otherwise.

    Attributes:
        where: ``start``, ``step N``, ``artifact``, ``judgement`` or ``ending``.
        what: the field, for example ``terminal`` or ``judgement.reward``.
        stored: what the record has, shortened.
        replayed: what came out now.
        diff: unified diff of texts of several lines, without line ends.
    """

    where: str
    what: str
    stored: JsonValue
    replayed: JsonValue
    diff: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a replay came to.

    Attributes:
        differences: in the order of the episode; empty when everything came out the same.
        versions: name, stored and present version of whatever has another version now; a possible cause, no difference.
        steps: number of actions that were played.
        replayed: the episode as it is now.
    """

    differences: tuple[Difference, ...]
    versions: tuple[tuple[str, str, str], ...]
    steps: int
    replayed: Episode

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def json(self) -> dict[str, JsonValue]:
        """Return it as a JSON object."""
        return {
            "same": self.same,
            "steps": self.steps,
            "differences": [
                {name: plain(getattr(one, name)) for name in Difference.__slots__} for one in self.differences
            ],
            "versions": [{"name": name, "stored": old, "present": new} for name, old, new in self.versions],
        }


def replay(
    episode: Episode, *, sandbox: SandboxName | Sandbox = "auto", on_step: OnStep = lambda number, total: None
) -> Comparison:
    """Play an episode's actions again under its instance, limits and language, and compare.

    Args:
        episode: as stored.
        sandbox: where; results of different backends are meant to be the same.
        on_step: is told of each step before it is played.

    Raises:
        UsageError: the present version has no such task, or draws another instance from the seed.
        SandboxUnavailable: no backend can be used.
        BoxLost: the box vanished without evidence of the agent's doing.
        SandboxError: the actions leave a shell that cannot be made to submit.
        JudgeError: the judge failed.
    """
    kept: list[Episode] = []
    env = ModelingEnv(
        episode.instance.task,
        sandbox=sandbox,
        budget=_budget(episode.budget),
        language=episode.language,
        limits=_limits(episode),
        warm=0,
        recorder=kept.append,
    )
    played = 0
    try:
        env.reset(options={"instance": _choice(env.task, episode)})
        for played, step in enumerate(episode.steps, 1):
            on_step(played, len(episode.steps))
            _, _, terminated, truncated, _ = env.step(step.action)
            if terminated or truncated:
                break
        for action in _ENDINGS:
            if kept:
                break
            env.step(action)
        if not kept:
            raise SandboxError(f"episode {episode.episode_id}: after its actions the shell takes no `submit`")
    finally:
        env.close()
    return compare(episode, kept[-1], played)


def _budget(name: str) -> BudgetName:
    return "train" if name == "train" else "contest"


def _limits(episode: Episode) -> Limits:
    """Return the stored limits; what this version has besides comes from the preset."""
    known = {field.name for field in dataclasses.fields(Limits)}
    stated: dict[str, Any] = {name: value for name, value in episode.limits.items() if name in known}
    try:
        return dataclasses.replace(PRESETS[_budget(episode.budget)], **stated)
    except (TypeError, ValueError) as error:
        raise UsageError(f"episode {episode.episode_id}: its limits cannot be used: {error}") from error


def _choice(task: Task, episode: Episode) -> dict[str, Any]:
    instance = episode.instance
    if instance.seed is None:
        return {"parameters": dict(instance.parameters)}
    drawn = instances.sampled(task, instance.seed)
    if dict(drawn.parameters) != dict(instance.parameters):
        raise BadInstance(
            f"seed {instance.seed} of {task.id} {task.version} draws other parameters than the episode's, which is of"
            f" version {instance.version}: replay it with the tbmm-env that recorded it"
        )
    return {"seed": instance.seed}


# ---------------------------------------------------------------- what differs


def compare(stored: Episode, now: Episode, steps: int) -> Comparison:
    """Compare an episode with its replay; durations, ids and times are not looked at."""
    found = _observations("start", stored.first_observation, now.first_observation)
    for number, (old, new) in enumerate(zip(stored.steps, now.steps, strict=False), 1):
        found += _steps(f"step {number}", old, new)
    submitted = len(now.steps) - steps  # ours, where the stored episode was ended by a clock
    if steps < len(stored.steps):
        found.append(Difference(where="ending", what="steps", stored=len(stored.steps), replayed=steps))
    if submitted or (stored.terminated, stored.truncated) != (now.terminated, now.truncated):
        found.append(
            Difference(
                where="ending",
                what="terminated, truncated",
                stored=[stored.terminated, stored.truncated],
                replayed=[now.terminated and not submitted, now.truncated],
            )
        )
    for name in ("status", "sha256", "size_bytes"):
        found += _values("artifact", name, getattr(stored.artifact, name), getattr(now.artifact, name))
    if stored.artifact.sha256 != now.artifact.sha256:
        texts = (one.artifact.data.decode("utf-8", "backslashreplace") for one in (stored, now))
        found += _texts("artifact", "text", *texts)
    found += _trees("judgement", plain(stored.judgement), plain(now.judgement))
    names = sorted({*stored.versions, *now.versions})
    versions = tuple((name, stored.versions.get(name, ""), now.versions.get(name, "")) for name in names)
    return Comparison(
        differences=tuple(found),
        versions=tuple(one for one in versions if one[1] != one[2]),
        steps=steps,
        replayed=now,
    )


def _steps(where: str, old: Step, new: Step) -> list[Difference]:
    found = _observations(where, old.observation, new.observation)
    found += _values(where, "exit_status", old.exit_status, new.exit_status)
    return found + _values(where, "ending", old.ending, new.ending)


def _observations(where: str, old: Observation, new: Observation) -> list[Difference]:
    found = _texts(where, "terminal", old.terminal, new.terminal)
    shapes = [[list(figure.shape[:2]) for figure in one.figures] for one in (old, new)]
    if shapes[0] != shapes[1]:
        found.append(Difference(where=where, what="figures", stored=plain(shapes[0]), replayed=plain(shapes[1])))
        return found
    for number, (left, right) in enumerate(zip(old.figures, new.figures, strict=True), 1):
        changed = int((left != right).any(axis=2).sum())
        if changed:
            said = f"{changed} of {left.shape[0] * left.shape[1]} pixels differ"
            found.append(Difference(where=where, what=f"figure {number}", stored="", replayed=said))
    return found


def _texts(where: str, what: str, old: str, new: str) -> list[Difference]:
    if old == new:
        return []
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "stored", "replayed", lineterm="", n=1)
    diff = tuple(line for _, line in zip(range(DIFF_LINES), lines, strict=False))
    sizes = [f"{len(one)} characters" for one in (old, new)]
    return [Difference(where=where, what=what, stored=sizes[0], replayed=sizes[1], diff=diff)]


def _values(where: str, what: str, old: object, new: object) -> list[Difference]:
    return [] if old == new else [Difference(where=where, what=what, stored=plain(old), replayed=plain(new))]


def _trees(path: str, old: JsonValue, new: JsonValue) -> list[Difference]:
    """Return where two JSON values differ, by path."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = [*old, *(name for name in new if name not in old)]
        return [one for name in names for one in _trees(f"{path}.{name}", old.get(name), new.get(name))]
    if isinstance(old, Sequence) and isinstance(new, Sequence) and not isinstance(old, str) and len(old) == len(new):
        return [
            one for index, pair in enumerate(zip(old, new, strict=True)) for one in _trees(f"{path}[{index}]", *pair)
        ]
    return _values("judgement", path, old, new)
