"""One module a task: parameters, sampling, statement facts, figures, replay and reference; pure and judge-side.

The module of task ``cumcm-2024-a`` is ``tbmm_env.problems.cumcm_2024_a``; there is no other register.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Mapping
from typing import Any, Protocol, cast

from tbmm_env.errors import UnknownTask
from tbmm_env.record import JsonValue, Language

__all__ = ["ProblemModule", "module_for"]

TASK_ID = re.compile(r"[a-z]+-[0-9]{4}-[a-z]")


class ProblemModule(Protocol):
    """What every problem module offers; all functions are deterministic.

    Attributes:
        VERSION: version of the physics, recorded with every score.
        OFFICIAL: parameters of the official instance.
        RANGES: stated ranges of the parameters.
        LEVELS: number of difficulty levels; a seed draws an instance of level ``1 + seed % LEVELS``.
    """

    VERSION: str
    LEVELS: int
    OFFICIAL: Mapping[str, JsonValue]
    RANGES: Mapping[str, Any]

    def check(self, parameters: Mapping[str, JsonValue]) -> None:
        """Raises ``BadInstance`` naming field, value and limit."""

    def sample(self, seed: int) -> dict[str, JsonValue]:
        """Parameters of a well-posed instance for a seed in [0, 2**63)."""

    def facts(self, parameters: Mapping[str, JsonValue], language: Language) -> dict[str, str]:
        """Placeholders of the statement templates."""

    def figures(self, parameters: Mapping[str, JsonValue], language: Language) -> dict[str, bytes]:
        """PNG bytes by file name."""

    def replay(self, parameters: Mapping[str, JsonValue], answer: Mapping[str, Any]) -> dict[str, float]:
        """Values by name from the decisions of an answer; absent when their decisions are."""

    def reference(self, parameters: Mapping[str, JsonValue]) -> dict[str, dict[str, float]]:
        """``anchor`` and ``baseline`` by metric key."""

    def trivial_answers(self, parameters: Mapping[str, JsonValue]) -> dict[str, dict[str, Any]]:
        """Whole answers that take no thought, by name: a constant, a rule of three lines, random decisions."""


def module_for(task_id: str) -> ProblemModule:
    """The problem module of a task.

    Args:
        task_id: contest, year and letter, as in ``cumcm-2024-a``.

    Returns:
        The module.

    Raises:
        UnknownTask: when there is no module of that task.
    """
    name = f"{__name__}.{task_id.replace('-', '_')}"
    if not TASK_ID.fullmatch(task_id) or importlib.util.find_spec(name) is None:
        raise UnknownTask(f"no problem module for task {task_id!r}; a task id looks like cumcm-2024-a")
    return cast(ProblemModule, importlib.import_module(name))
