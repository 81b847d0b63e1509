"""CUMCM 2024 A, the bench dragon: instances, facts for the statement, figures, replay and reference.

A chain of boards winds inwards along a spiral (question 2: when do boards first touch; question 3: which pitch lets
the head reach a circle) and turns on two arcs inside that circle (question 4: how long is the turn; question 5: how
fast may the head go). The modules: ``chain`` (handles on the spiral), ``collision`` and ``search`` (separation of
boards, certified searches), ``spiral`` (questions 2 and 3), ``turn`` and ``peak`` (questions 4 and 5), ``parameters``,
``figures``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tbmm_env.errors import BadInstance
from tbmm_env.problems.fields import finite
from tbmm_env.record import JsonValue, Language

from .collision import Boards
from .figures import draw
from .parameters import OFFICIAL, RANGES, Setting, sample, setting
from .peak import peak_ratio
from .spiral import approach_gap_m, first_overlap_m, least_pitch_m, time_to_radius_s
from .turn import Turn, spiral_normal

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

LEVELS = 1
"""All sampled instances are alike in structure, and so in difficulty."""

PITCH_LIMITS_M = (0.001, 3.0)
"""Pitches the replay of question 3 accepts; the answer schema has the same limits."""


def check(parameters: Mapping[str, JsonValue]) -> None:
    """Checks the parameters of an instance.

    Args:
        parameters: as in ``instance.json``.

    Raises:
        BadInstance: naming field, value and limit.
    """
    setting(parameters)


def facts(parameters: Mapping[str, JsonValue], language: Language) -> dict[str, str]:
    """Placeholders of the statement templates.

    Args:
        parameters: checked or not; they are checked again.
        language: ``en`` or ``zh``; the numbers are the same in both.

    Returns:
        Text by placeholder name: every parameter in its printed decimals, and what follows from them directly.

    Raises:
        BadInstance: as :func:`check`.
    """
    given = setting(parameters)
    boards, turn = given.boards, given.turn
    return {
        "boards": str(boards.count),
        "body_boards": str(boards.count - 2),
        "handles": str(boards.count + 1),
        "head_board_m": f"{boards.head_m:.2f}",
        "body_board_m": f"{boards.body_m:.2f}",
        "board_width_m": f"{boards.width_m:.2f}",
        "hole_inset_m": f"{boards.inset_m:.3f}",
        "head_chord_m": f"{boards.head_chord_m:.3f}",
        "body_chord_m": f"{boards.body_chord_m:.3f}",
        "spiral_pitch_m": f"{given.spiral_pitch_m:.3f}",
        "start_turn": str(given.start_turn),
        "start_angle_pi": str(2 * given.start_turn),
        "start_x_m": f"{given.start_turn * given.spiral_pitch_m:.3f}",
        "head_speed_mps": f"{given.head_speed_mps:.2f}",
        "turn_diameter_m": f"{2.0 * turn.radius_m:.1f}",
        "turn_radius_m": f"{turn.radius_m:.2f}",
        "turn_pitch_m": f"{turn.pitch_m:.2f}",
        "arc_ratio": f"{turn.ratio:.1f}",
        "speed_cap_mps": f"{given.speed_cap_mps:.1f}",
        "language": {"en": "English", "zh": "中文"}[language],
    }


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
    return draw(setting(parameters))


def replay(parameters: Mapping[str, JsonValue], answer: Mapping[str, Any]) -> dict[str, float]:
    """Computes what the decisions of an answer are worth.

    Args:
        parameters: of the instance.
        answer: schema-valid answer of plain numbers, lists and dicts; any part may be absent.

    Returns:
        Values by name, units in the names. A value whose decisions are absent is absent.

    Raises:
        BadInstance: as :func:`check`.
    """
    given = setting(parameters)
    values: dict[str, float] = {}
    if _number(answer, "q2", "termination_time_s") is not None:
        overlap = _first_overlap_s(given)
        if overlap is not None:
            values["first_overlap_time_s"] = overlap
    pitch = _number(answer, "q3", "pitch_m")
    if pitch is not None and PITCH_LIMITS_M[0] <= pitch <= PITCH_LIMITS_M[1]:
        values["q3_min_gap_m"] = approach_gap_m(given.boards, pitch, given.start_turn, given.turn.radius_m)[0]
    if isinstance(answer.get("q4"), Mapping):
        values["turn_length_m"] = given.turn.length_m
    values.update(_path_residuals(given.turn, answer))
    speed = _number(answer, "q5", "head_speed_mps")
    if speed is not None:
        values["peak_speed_mps"] = speed * _peak_ratio(given.boards, given.turn)
    return values


def reference(parameters: Mapping[str, JsonValue]) -> dict[str, dict[str, float]]:
    """Best values of all metrics and the values of the trivial answers.

    Args:
        parameters: of the instance.

    Returns:
        ``anchor`` and ``baseline``, each by metric key.

    Raises:
        BadInstance: as :func:`check`, and when a best value does not exist or a trivial answer is not feasible.
    """
    given = setting(parameters)
    radius = given.turn.radius_m
    overlap = _first_overlap_s(given)
    reached = time_to_radius_s(given.spiral_pitch_m, given.start_turn, radius, given.head_speed_mps)
    if overlap is None or overlap <= reached:
        raise BadInstance(
            f"the first overlap is at {overlap} s; it must come after the head reaches the turning circle ({reached} s)"
        )
    pitch = least_pitch_m(given.boards, given.start_turn, radius, given.spiral_pitch_m)
    if pitch is None:
        raise BadInstance(f"no pitch up to {given.spiral_pitch_m} m lets the head reach the turning circle")
    ratio = _peak_ratio(given.boards, given.turn)
    if ratio >= 2.0:
        raise BadInstance(f"a handle is {ratio} times as fast as the head; it must be less than 2 times")
    return {
        "anchor": {
            "q2_termination_time_s": overlap,
            "q3_pitch_m": pitch,
            "q4_turn_length_m": given.turn.length_m,
            "q5_head_speed_mps": given.speed_cap_mps / ratio,
        },
        "baseline": {
            "q2_termination_time_s": reached,
            "q3_pitch_m": given.spiral_pitch_m,
            "q4_turn_length_m": math.pi * radius,
            "q5_head_speed_mps": 0.5 * given.speed_cap_mps,
        },
    }


def trivial_answers(parameters: Mapping[str, JsonValue]) -> dict[str, dict[str, Any]]:
    """Whole answers that take no thought.

    Args:
        parameters: of the instance.

    Returns:
        ``official_constant`` (the best numbers of the official instance), ``rule`` (stop at the turning circle, the
        pitch of question 1, half the circle, half the cap) and ``random`` (uniform around the rule), lengths in m,
        times in s, speeds in m/s; none gives a path, for which there is no rule of three lines.

    Raises:
        BadInstance: as :func:`check`.
    """
    given = setting(parameters)
    radius = given.turn.radius_m
    rule = (
        time_to_radius_s(given.spiral_pitch_m, given.start_turn, radius, given.head_speed_mps),
        given.spiral_pitch_m,
        math.pi * radius,
        0.5 * given.speed_cap_mps,
    )
    rng = random.Random(repr(sorted(parameters.items())))
    answers = {
        "official_constant": (412.473837, 0.4503374, 13.621244907, 1.246266358),
        "rule": rule,
        "random": tuple(value * rng.uniform(0.5, 1.5) for value in rule),
    }
    return {
        name: {
            "q2": {"termination_time_s": time_s},
            "q3": {"pitch_m": pitch_m},
            "q4": {"turn_length_m": length_m},
            "q5": {"head_speed_mps": speed_mps},
        }
        for name, (time_s, pitch_m, length_m, speed_mps) in answers.items()
    }


@lru_cache(maxsize=64)
def _first_overlap_s(given: Setting) -> float | None:
    """Time of the first overlap on the spiral of questions 1 and 2."""
    travelled = first_overlap_m(given.boards, given.spiral_pitch_m, given.start_turn)
    return None if travelled is None else travelled / given.head_speed_mps


@lru_cache(maxsize=64)
def _peak_ratio(boards: Boards, turn: Turn) -> float:
    """Highest handle speed on the path for a head speed of 1 m/s."""
    return peak_ratio(boards, turn)[0]


def _path_residuals(turn: Turn, answer: Mapping[str, Any]) -> dict[str, float]:
    """How far the answer's path is from the construction, m; only what can be computed."""
    values: dict[str, float] = {}
    entry, leave = _point(answer, "entry_m"), _point(answer, "exit_m")
    centre1, centre2 = _point(answer, "centre1_m"), _point(answer, "centre2_m")
    radius1, radius2 = _number(answer, "q4", "path", "radius1_m"), _number(answer, "q4", "path", "radius2_m")
    if radius1 is not None and radius2 is not None:
        values["radius_ratio_error_m"] = abs(radius1 - turn.ratio * radius2)
    if centre1 is not None and centre2 is not None:
        values["centre_distance_m"] = math.dist(centre1, centre2)
    if entry is None:
        return values
    far, polar = math.hypot(*entry), math.atan2(entry[1], entry[0])
    values["entry_radius_m"] = far
    values["entry_spiral_error_m"] = turn.b * abs(math.remainder(far / turn.b - polar, 2.0 * math.pi))
    nx, ny = spiral_normal(far / turn.b, polar)
    if centre1 is not None and radius1 is not None:
        values["arc1_tangency_error_m"] = math.dist(centre1, (entry[0] + radius1 * nx, entry[1] + radius1 * ny))
    if leave is not None:
        values["exit_reflection_error_m"] = math.dist(leave, (-entry[0], -entry[1]))
        if centre2 is not None and radius2 is not None:
            values["arc2_tangency_error_m"] = math.dist(centre2, (leave[0] - radius2 * nx, leave[1] - radius2 * ny))
    return values


def _number(answer: Mapping[str, Any], *path: str) -> float | None:
    """The finite number at a path of the answer; None when there is none."""
    value: Any = answer
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return finite(value)


def _point(answer: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    """A point of the answer's path; None when it is absent or not two finite numbers."""
    part = answer.get("q4")
    path = part.get("path") if isinstance(part, Mapping) else None
    value = path.get(name) if isinstance(path, Mapping) else None
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    x, y = finite(value[0]), finite(value[1])
    return None if x is None or y is None else (x, y)
