"""Policies that need no model: the task's own oracle, one that does nothing, and a script of actions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from tbmm_env.errors import UsageError
from tbmm_env.record import Observation
from tbmm_env.tasks import Task

_SEPARATOR = "%%"
_END_MARK = "TBMM_END_OF_SOLUTION"


class Policy(Protocol):
    """Chooses the next action; None means that it has nothing more to do and the answer is to be submitted."""

    def act(self, observation: Observation) -> str | None:
        """Return the next action text for what was seen last."""
        ...


class Scripted:
    """Plays a fixed list of actions.

    Args:
        actions: in order; after the last one :meth:`act` returns None.
    """

    def __init__(self, actions: list[str]) -> None:
        self._actions: Iterator[str] = iter(actions)

    def act(self, observation: Observation) -> str | None:
        """Return the next action of the list."""
        return next(self._actions, None)


def oracle(task: Task) -> Scripted:
    """Return the policy that carries ``solution/solve.py`` into the box, runs it there and submits."""
    source = (task.folder / "solution" / "solve.py").read_text(encoding="utf-8")
    write = f"cat > /workspace/solve.py <<'{_END_MARK}'\n{source}\n{_END_MARK}"
    return Scripted([write, "python3 /workspace/solve.py", "check", "submit"])


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


def named(name: str, task: Task) -> Scripted:
    """Return the policy of a command-line name: ``oracle``, ``nop`` or ``script:FILE``.

    Raises:
        UsageError: for any other name.
    """
    if name == "oracle":
        return oracle(task)
    if name == "nop":
        return Scripted([])
    if name.startswith("script:"):
        return script(Path(name.removeprefix("script:")))
    raise UsageError(f"agent is {name!r}; it must be oracle, nop or script:FILE")
