"""What chooses the actions: the protocol, and policies that need no model."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tbmm_env.errors import UsageError
from tbmm_env.record import Observation, Turn
from tbmm_env.tasks import Task

NAMES = "oracle, nop, random-template, script:FILE or MODULE:FACTORY"
"""What :func:`named` knows."""

_SEPARATOR = "%%"
_END_MARK = "TBMM_END_OF_SOLUTION"
_FACTORY = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action and, when a model chose it, what the model did to choose it."""

    text: str
    turn: Turn | None = None


Exchange = tuple[Observation, str]
"""What was seen, and the action that was taken then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeStart:
    """What a policy is told before an episode.

    Attributes:
        task: task id.
        instance: as in ``info["instance"]`` after reset: task, version, seed, parameters.
        group_id: names the episodes that are compared with each other; empty outside a rollout.
        group: number of the group of this instance, from 0.
        sample_id: number of the episode in its group, from 0; what makes samples of one instance differ.
    """

    task: str
    instance: Mapping[str, Any]
    group_id: str = ""
    group: int = 0
    sample_id: int = 0


class Policy(Protocol):
    """Chooses actions; one object serves many episodes, one after another."""

    def reset(self, start: EpisodeStart) -> None:
        """Begin an episode; nothing of the one before may be left."""
        ...

    def act(self, history: Sequence[Exchange], observation: Observation) -> Action | str | None:
        """Return the next action.

        Args:
            history: observations and the actions taken on them, oldest first, without the latest observation.
            observation: what was seen last.

        Returns:
            The action; None when there is nothing more to do and the answer is to be submitted.
        """
        ...


PolicyFactory = Callable[[Task], Policy]
"""Makes the policy of a task."""


class Scripted:
    """Plays a fixed list of actions in every episode.

    Args:
        actions: in order; after the last one :meth:`act` returns None.
    """

    def __init__(self, actions: Sequence[str]) -> None:
        self._actions = tuple(actions)

    def reset(self, start: EpisodeStart) -> None:
        """Begin at the first action; there is nothing to forget."""

    def act(self, history: Sequence[Exchange], observation: Observation) -> str | None:
        """Return the action after those of the history."""
        return self._actions[len(history)] if len(history) < len(self._actions) else None


def written(path: str, text: str) -> str:
    """Return the shell command that writes a text to a file in the box, whatever the text holds."""
    mark = _END_MARK
    while mark in text:
        mark += "_"
    return f"cat > {path} <<'{mark}'\n{text}\n{mark}"


def oracle(task: Task) -> Scripted:
    """Return the policy that carries ``solution/solve.py`` into the box, runs it there and submits."""
    source = (task.folder / "solution" / "solve.py").read_text(encoding="utf-8")
    return Scripted([written("/workspace/solve.py", source), "python3 /workspace/solve.py", "check", "submit"])


def script(path: Path) -> Scripted:
    """Return the policy that plays a file.

    A ``.jsonl`` file holds one JSON string a line, each an action. In any other file lines of ``%%`` separate
    actions; without one the whole file is one action.

    Raises:
        UsageError: the file cannot be read, or a line of a ``.jsonl`` file is not a JSON string.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"script {path}: cannot be read: {error}") from error
    if path.suffix == ".jsonl":
        return Scripted([_json_action(path, number, line) for number, line in enumerate(text.splitlines(), 1) if line])
    actions: list[str] = []
    lines: list[str] = []
    for line in [*text.splitlines(), _SEPARATOR]:
        if line.strip() == _SEPARATOR:
            if "".join(lines).strip():
                actions.append("\n".join(lines))
            lines = []
        else:
            lines.append(line)
    return Scripted(actions)


def _json_action(path: Path, number: int, line: str) -> str:
    try:
        action = json.loads(line)
    except ValueError as error:
        raise UsageError(f"script {path}, line {number}: not JSON: {error}") from error
    if not isinstance(action, str):
        raise UsageError(f"script {path}, line {number}: is a {type(action).__name__}; it must be a JSON string")
    return action


def imported(name: str) -> PolicyFactory:
    """Return the factory that ``MODULE:FACTORY`` names; the working folder is searched as well.

    Raises:
        UsageError: there is no such module, or it has no such callable.
    """
    match = _FACTORY.fullmatch(name)
    if match is None:
        raise UsageError(f"policy is {name!r}; it must be {NAMES}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        factory = getattr(importlib.import_module(match[1]), match[2], None)
    except ImportError as error:
        raise UsageError(f"policy {name!r}: module {match[1]} cannot be imported: {error}") from error
    if not callable(factory):
        raise UsageError(f"policy {name!r}: module {match[1]} has no function or class {match[2]}")
    made: PolicyFactory = factory
    return made


def factory(name: str) -> PolicyFactory:
    """Return what makes the policy of a command-line name; the user's own is ``MODULE:FACTORY``.

    Raises:
        UsageError: for a name that is none of ``oracle``, ``nop``, ``random-template``, ``script:FILE`` and
            ``MODULE:FACTORY``, or whose file or module cannot be read.
    """
    if name == "oracle":
        return oracle
    if name == "nop":
        return lambda _: Scripted([])
    if name == "random-template":
        from tbmm_env.rollout.template import RandomTemplate

        return RandomTemplate
    if name.startswith("script:"):
        played = script(Path(name.removeprefix("script:")))
        return lambda _: played
    return imported(name)


def named(name: str, task: Task) -> Policy:
    """Return the policy of a command-line name for a task; raises as :func:`factory` does."""
    return factory(name)(task)
