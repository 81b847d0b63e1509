"""CUMCM 2025 A, the smoke screen: instances, facts for the statement, figures, replay and reference.

Drones drop smoke bombs so that clouds hide a cylinder from missiles. The modules: ``shadow`` (is the cylinder behind a
cloud, exactly), ``intervals`` (when, certified), ``plans`` (decisions, rules, metrics), ``crossing`` and ``solver``
(the judge's own search), ``trivial`` and ``official`` (answers that cost no thought), ``parameters``, ``sampling``,
``wording``, ``figures``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from tbmm_env.record import JsonValue, Language

from . import sampling, trivial
from .figures import draw
from .parameters import OFFICIAL, RANGES, Scene, scene
from .plans import QUESTIONS, Plan, faults, metrics, read
from .sampling import LEVELS, sample
from .shadow import Sight
from .solver import TOTAL_WEIGHT, WORST_WEIGHT, Effort, solve
from .wording import wording

__all__ = [
    "LEVELS",
    "OFFICIAL",
    "RANGES",
    "VERSION",
    "check",
    "facts",
    "figures",
    "reference",
    "replay",
    "sample",
    "trivial_answers",
]

VERSION = "1.0.0"

EFFORTS: Final[Mapping[str, tuple[int, Effort]]] = {
    "q2": (1, Effort(pairs=400, times=200, kept=8, rounds=40, offspring=24)),
    "q3": (1, Effort(pairs=800, times=400, kept=16, rounds=60, offspring=24)),
    "q4": (2, Effort(pairs=400, times=120, kept=6, rounds=24, offspring=24)),
    "q5": (2, Effort(pairs=1200, times=80, kept=6, rounds=24, offspring=20)),
}
"""Rounds over the drones, and the effort of each block, of the reference; about 3 s on one core."""

TOLERANCE_S: Final = 0.0001
"""Tolerance of the metrics of questions 2 to 5, as in task.toml."""


def check(parameters: Mapping[str, JsonValue]) -> None:
    """Checks the parameters of an instance.

    Args:
        parameters: as in ``instance.json``.

    Raises:
        BadInstance: naming field, value and limit.
    """
    scene(parameters)


def facts(parameters: Mapping[str, JsonValue], language: Language) -> dict[str, str]:
    """Placeholders of the statement templates.

    Args:
        parameters: checked or not; they are checked again.
        language: ``en`` or ``zh``; the numbers are the same in both.

    Returns:
        Text by placeholder name: every parameter in its printed decimals, tables of missiles and drones, and what
        follows from them directly.

    Raises:
        BadInstance: as :func:`check`.
    """
    return wording(scene(parameters), language)


def figures(parameters: Mapping[str, JsonValue], language: Language) -> dict[str, bytes]:
    """Figures of the statement, drawn from the parameters.

    Args:
        parameters: of the instance.
        language: accepted for the interface; labels are symbols and numbers.

    Returns:
        PNG bytes by file name; the same bytes for the same parameters.

    Raises:
        BadInstance: as :func:`check`.
    """
    del language
    return draw(scene(parameters))


def replay(parameters: Mapping[str, JsonValue], answer: Mapping[str, Any]) -> dict[str, float]:
    """Computes what the decisions of an answer are worth.

    Args:
        parameters: of the instance.
        answer: schema-valid answer of plain numbers, lists and dicts; any part may be absent.

    Returns:
        Values by name, units in the names. A question whose plans are absent or lack a number has no values; one whose
        drones or bombs are not those it allows is refused by the gate, and has no times.

    Raises:
        BadInstance: as :func:`check`.
    """
    given = scene(parameters)
    values: dict[str, float] = {}
    if isinstance(answer.get("q1"), Mapping):
        values["q1_shield_time_s"] = sampling.q1_truth_s(given)
    plans = {question: found for question in QUESTIONS if (found := read(answer, question)) is not None}
    counted: dict[str, list[Plan]] = {}
    for question, entries in plans.items():
        broken = faults(given, question, entries)
        values |= {f"{question}_{name}": value for name, value in broken.items()}
        if not any(broken[name] for name in ("drones_not_allowed", "drones_repeated", "surplus_bombs")):
            counted[question] = entries
    return values | metrics(Sight.of(given), [counted])[0]


def trivial_answers(parameters: Mapping[str, JsonValue]) -> dict[str, dict[str, Any]]:
    """Whole feasible answers that cost no thought, by name; see ``trivial``.

    Args:
        parameters: of the instance.

    Returns:
        ``official_constant``, ``greedy``, ``rule`` and ``random``.

    Raises:
        BadInstance: as :func:`check`.
    """
    return trivial.answers(scene(parameters))


def reference(parameters: Mapping[str, JsonValue]) -> dict[str, dict[str, float]]:
    """Values of the judge's own plans and of the trivial answers.

    Args:
        parameters: of the instance.

    Returns:
        ``anchor`` and ``baseline``, each by metric key. Anchors of questions 2 to 5 are rounded down to a
        millisecond and baselines up, by the tolerance at least; so a trivial answer scores 0 and not tolerance / band.

    Raises:
        BadInstance: as :func:`check`.
    """
    given = scene(parameters)
    truth = sampling.q1_truth_s(given)
    worthless = {"official_constant"} if dict(parameters) == dict(OFFICIAL) else set()
    answers = [answer for name, answer in trivial.answers(given).items() if name not in worthless]
    base = sampling.baselines(given, answers, truth)
    baseline = {key: math.ceil(1000.0 * (value + TOLERANCE_S)) / 1000.0 for key, value in base.items()}
    best = {key: math.floor(1000.0 * value) / 1000.0 for key, value in reached(given, reference_plans(given)).items()}
    return {
        "anchor": {"q1_shield_time_s": truth} | best,
        "baseline": baseline | {"q1_shield_time_s": base["q1_shield_time_s"]},
    }


def reached(given: Scene, plans: Mapping[str, list[Plan]]) -> dict[str, float]:
    """The metrics of questions 2 to 5 that plans reach, s, by metric key."""
    return metrics(Sight.of(given), [plans])[0]


def reference_plans(given: Scene) -> dict[str, list[Plan]]:
    """The judge's own plans: the better of two searches for each question, a smaller question's plan being one more."""
    sight = Sight.of(given)
    long = {question: solve(given, question, 1, *EFFORTS[question]) for question in QUESTIONS}
    quick = sampling.quick_plans(given)
    chosen: dict[str, list[Plan]] = {}
    for question in QUESTIONS:
        tried = [long[question], quick[question]]
        if question == "q3" or (question == "q4" and 1 in given.q4_drones):
            tried.append(chosen["q2"])
        found = metrics(sight, [{question: plans} for plans in tried])
        chosen[question] = max(zip(found, tried, strict=True), key=lambda pair: _worth(given, pair[0]))[1]
    return chosen


def _worth(given: Scene, values: Mapping[str, float]) -> float:
    """What plans of one question are worth; question 5 weighs its two metrics as the search does."""
    worst = WORST_WEIGHT * len(given.missiles_m) / TOTAL_WEIGHT
    return sum(worst * value if key.startswith("q5_min") else value for key, value in values.items())
