"""Parameters of an instance: official values, stated ranges, strict checks and sampling.

An instance is well posed when every reference exists and the trivial answers are feasible and score little:

* the start lies outside the circle for every pitch above the board width (``start_turn * board_width >= radius``);
* boards on neighbouring turns are apart at the start;
* no chord is longer than ``CHORD_SHARE`` of the diameter of the smaller arc, so that the distance to a handle grows
  going back along the turn and each follower is unique and moves continuously;
* the turning radius is between ``TURNS`` pitches of the turn, so that half the circle, the trivial answer to question
  4, is at least two per cent off;
* sampled instances further let the head reach the circle at the given pitch with room to spare (``PITCH_ROOM``), and
  have boards overlap later, before the head board outgrows the innermost turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from tbmm_env.errors import BadInstance
from tbmm_env.problems import draws
from tbmm_env.problems.fields import named, number
from tbmm_env.record import JsonValue

from .chain import arc_length
from .collision import Boards, leader_gap
from .spiral import innermost_radius_m, pitch_refused
from .turn import Turn

OFFICIAL: Final[Mapping[str, JsonValue]] = {
    "boards": 223,
    "head_board_m": 3.41,
    "body_board_m": 2.2,
    "board_width_m": 0.3,
    "hole_inset_m": 0.275,
    "spiral_pitch_m": 0.55,
    "start_turn": 16,
    "head_speed_mps": 1.0,
    "turn_diameter_m": 9.0,
    "turn_pitch_m": 1.7,
    "arc_ratio": 2.0,
    "speed_cap_mps": 2.0,
}
"""Source: the statement of CUMCM 2024 problem A (lengths converted from cm)."""

RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "boards": (80, 300),
    "head_board_m": (2.4, 4.4),
    "body_board_m": (1.6, 2.6),
    "board_width_m": (0.24, 0.4),
    "hole_inset_m": (0.2, 0.35),
    "spiral_pitch_m": (0.35, 0.9),
    "start_turn": (10, 26),
    "head_speed_mps": (0.5, 1.5),
    "turn_diameter_m": (7.0, 12.0),
    "turn_pitch_m": (1.0, 3.6),
    "arc_ratio": (0.5, 3.0),
    "speed_cap_mps": (1.5, 3.0),
}
"""Inclusive ranges an instance may have; sampling stays inside them."""

DECIMALS: Final[Mapping[str, int]] = {
    "boards": 0,
    "head_board_m": 2,
    "body_board_m": 2,
    "board_width_m": 2,
    "hole_inset_m": 3,
    "spiral_pitch_m": 3,
    "start_turn": 0,
    "head_speed_mps": 2,
    "turn_diameter_m": 1,
    "turn_pitch_m": 2,
    "arc_ratio": 1,
    "speed_cap_mps": 1,
}
"""Decimals the statement prints; a parameter may not have more."""

CHORD_SHARE: Final = 0.96
"""Longest chord over the diameter of the smaller arc; the official instance has 0.952."""

TURNS: Final = (1.5, 3.4)
"""Turning radius over the pitch of the turn, inclusive."""

PITCH_ROOM: Final = 1.08
"""The given pitch must pass by samples even when divided by this: the band of question 3 is about 8 % or more."""

OVERLAP_ROOM: Final = 1.03
"""The first overlap must come after this multiple of the travel to the circle, and a metre later."""

MAX_DRAWS: Final = 400
"""Draws before sampling gives up; a draw is kept about one time in three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Checked parameters in the shape the physics takes."""

    boards: Boards
    turn: Turn
    spiral_pitch_m: float
    start_turn: int
    head_speed_mps: float
    speed_cap_mps: float


def setting(parameters: Mapping[str, JsonValue]) -> Setting:
    """Checks parameters and arranges them.

    Args:
        parameters: as in ``instance.json``.

    Returns:
        The setting.

    Raises:
        BadInstance: when a field is missing, unknown, not a number, or out of its range or relation.
    """
    numbers = _numbers(parameters)
    boards = Boards(
        count=int(numbers["boards"]),
        head_m=numbers["head_board_m"],
        body_m=numbers["body_board_m"],
        width_m=numbers["board_width_m"],
        inset_m=numbers["hole_inset_m"],
    )
    turn = Turn(numbers["turn_pitch_m"], 0.5 * numbers["turn_diameter_m"], numbers["arc_ratio"])
    result = Setting(
        boards=boards,
        turn=turn,
        spiral_pitch_m=numbers["spiral_pitch_m"],
        start_turn=int(numbers["start_turn"]),
        head_speed_mps=numbers["head_speed_mps"],
        speed_cap_mps=numbers["speed_cap_mps"],
    )
    _relations(result)
    return result


def _numbers(parameters: Mapping[str, JsonValue]) -> dict[str, float]:
    """Field by field: presence, type and range."""
    given = named(parameters, sorted(RANGES))
    return {name: number(name, given[name], limits, DECIMALS[name]) for name, limits in RANGES.items()}


def _relations(given: Setting) -> None:
    """Relations between fields; see the module docstring."""
    boards, turn = given.boards, given.turn
    if given.start_turn * boards.width_m < turn.radius_m - 1e-9:
        raise BadInstance(
            f"parameter start_turn is {given.start_turn}; it must be at least "
            f"{math.ceil(turn.radius_m / boards.width_m - 1e-9)}, so that start_turn * board_width_m reaches the circle"
        )
    bow = boards.body_m**2 / (4.0 * given.start_turn * given.spiral_pitch_m)
    if given.spiral_pitch_m < boards.width_m + bow:
        raise BadInstance(
            f"parameter spiral_pitch_m is {given.spiral_pitch_m}; it must be at least {boards.width_m + bow:.4f} "
            "(board width and bow of the boards), so that the boards are apart at the start"
        )
    longest = max(boards.head_chord_m, boards.body_chord_m)
    limit = CHORD_SHARE * 2.0 * min(turn.radii_m)
    if longest > limit:
        raise BadInstance(
            f"the longest distance of two handles is {longest:.4f} m (head_board_m, body_board_m, hole_inset_m); it "
            f"must not exceed {limit:.4f} m, {CHORD_SHARE} of the diameter of the smaller arc"
        )
    turns = turn.radius_m / turn.pitch_m
    if not TURNS[0] <= turns <= TURNS[1]:
        raise BadInstance(
            f"parameter turn_pitch_m is {turn.pitch_m}; the turning radius over it is {turns:.4f} and must lie in "
            f"[{TURNS[0]}, {TURNS[1]}]"
        )


def sample(seed: int) -> dict[str, JsonValue]:
    """Draws the parameters of a well-posed instance.

    Args:
        seed: 0 <= seed < 2**63.

    Returns:
        Parameters that pass :func:`setting`, never the official ones; a function of the seed alone.

    Raises:
        BadInstance: when the seed is not an integer of that range.
    """
    generator = draws.generator_of(2024, 1, draws.seed_number(seed))
    for _ in range(MAX_DRAWS):
        parameters = _draw(generator)
        try:
            given = setting(parameters)
        except BadInstance:
            continue
        if dict(parameters) != dict(OFFICIAL) and _well_posed(given):
            return parameters
    raise AssertionError(f"no well-posed instance in {MAX_DRAWS} draws for seed {seed}")


def _draw(generator: np.random.Generator) -> dict[str, JsonValue]:
    """One draw, rounded to the decimals the statement prints."""

    step = partial(draws.step, generator)

    width = step(*RANGES["board_width_m"], 0.01, 2)
    diameter = step(*RANGES["turn_diameter_m"], 0.1, 1)
    body = step(*RANGES["body_board_m"], 0.01, 2)
    radius = 0.5 * diameter
    return {
        "boards": int(step(*RANGES["boards"], 1.0, 0)),
        "head_board_m": round(body + step(0.4, 1.8, 0.01, 2), 2),
        "body_board_m": body,
        "board_width_m": width,
        "hole_inset_m": step(*RANGES["hole_inset_m"], 0.005, 3),
        "spiral_pitch_m": round(width * step(1.4, 2.1, 0.01, 2), 3),
        "start_turn": math.ceil(radius / width - 1e-9) + int(generator.integers(0, 4)),
        "head_speed_mps": step(*RANGES["head_speed_mps"], 0.05, 2),
        "turn_diameter_m": diameter,
        "turn_pitch_m": round(radius / step(1.6, 3.3, 0.01, 2), 2),
        "arc_ratio": step(*RANGES["arc_ratio"], 0.1, 1),
        "speed_cap_mps": step(*RANGES["speed_cap_mps"], 0.1, 1),
    }


def _well_posed(given: Setting) -> bool:
    """Cheap sufficient conditions from samples; tests compare them with the full reference on many seeds."""
    boards, pitch, radius = given.boards, given.spiral_pitch_m, given.turn.radius_m
    if pitch_refused(boards, pitch / PITCH_ROOM, radius) or pitch_refused(boards, pitch, radius):
        return False
    b = pitch / (2.0 * np.pi)
    inner = innermost_radius_m(boards, pitch)
    ends = arc_length(np.array([inner / b, radius / b, 2.0 * np.pi * given.start_turn]), b)
    past = np.arange(0.0, float(ends[1] - ends[0]), 0.1)
    radii = np.sqrt(np.maximum(radius**2 - past * pitch / np.pi, inner**2))
    gap = leader_gap(boards, 2.0 * np.pi * radii / pitch, pitch, head=True).value
    touching = np.flatnonzero(gap < -0.01)
    reached = float(ends[2] - ends[1])
    return touching.size > 0 and reached + float(past[touching[0]]) >= OVERLAP_ROOM * reached + 1.0
