"""Instances from a seed: five levels of structure, and the tests that a draw must pass.

Level of a seed: ``1 + seed % LEVELS``. Higher levels have more drones, missiles and bombs, wider angles between the
missiles, and a scene turned to any direction. A draw is kept when a short search by the judge's own solver hides
something on every metric and is ahead of every trivial answer by ``AHEAD``; the reference takes that short search in,
so the band between baseline and reference is at least that wide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from tbmm_env.errors import BadInstance
from tbmm_env.problems import draws
from tbmm_env.record import JsonValue

from .crossing import crossings
from .intervals import RESOLUTION_S, hidden_spans, union_length
from .parameters import OFFICIAL, RANGES, Bomb, Scene, scene
from .plans import QUESTIONS, Plan, bursts, centre_line_s, metrics, read
from .shadow import Sight
from .solver import COARSE_S, Effort, headings_and_speeds, solve
from .trivial import answers

LEVELS: Final = 5

MAX_DRAWS: Final = 200
"""Draws before sampling gives up; a draw is kept about one time in three."""

AHEAD: Final = 1.25
"""A short search must reach this multiple of the best trivial answer on every metric but the first."""

LEAST_S: Final = 0.8
"""And at least this many seconds."""

Q1_APART: Final = 0.04
"""Question 1: every trivial number is off by this share of the truth or more."""

QUICK: Final = Effort(pairs=60, times=48, kept=2, rounds=4, offspring=12)

SHAPES: Final[dict[int, dict[str, tuple[int, int]]]] = {
    1: {"drones": (2, 2), "missiles": (2, 2), "bombs": (2, 2), "fan_deg": (1, 3)},
    2: {"drones": (2, 3), "missiles": (2, 2), "bombs": (2, 3), "fan_deg": (2, 5)},
    3: {"drones": (3, 4), "missiles": (2, 3), "bombs": (3, 3), "fan_deg": (2, 8)},
    4: {"drones": (4, 5), "missiles": (3, 3), "bombs": (2, 4), "fan_deg": (3, 15)},
    5: {"drones": (5, 6), "missiles": (3, 4), "bombs": (3, 4), "fan_deg": (3, 25)},
}
"""Inclusive ranges by level: numbers of drones, missiles and bombs a drone, half the angle the missiles come from."""


def sample(seed: int) -> dict[str, JsonValue]:
    """Draws the parameters of a well-posed instance of level ``1 + seed % LEVELS``.

    Args:
        seed: 0 <= seed < 2**63.

    Returns:
        Parameters that pass :func:`scene`; a function of the seed alone.

    Raises:
        BadInstance: when the seed is not an integer of that range.
    """
    number = draws.seed_number(seed)
    level = 1 + number % LEVELS
    generator = draws.generator_of(2025, 1, number)
    for _ in range(MAX_DRAWS):
        drawn = _draw(generator, level)
        try:
            given = scene(drawn)
        except BadInstance:
            continue
        bomb = _given_bomb(given, generator)
        if bomb is None:
            continue
        drawn |= {
            "q1_heading_deg": bomb.heading_deg,
            "q1_speed_mps": int(bomb.speed_mps),
            "q1_release_s": bomb.release_s,
            "q1_fuse_s": bomb.fuse_s,
        }
        if drawn != dict(OFFICIAL) and well_posed(scene(drawn)):
            return drawn
    raise AssertionError(f"no well-posed instance in {MAX_DRAWS} draws for seed {seed}")


def _draw(generator: np.random.Generator, level: int) -> dict[str, Any]:
    """One draw, rounded to the decimals the statement prints; the strategy of question 1 is still the official one."""

    step = partial(draws.step, generator, decimals=1)

    def count(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    shape = SHAPES[level]
    turn = 0.0 if level == 1 else 90.0 * count(0, 3) if level == 2 else float(count(0, 359))
    fan, slope = count(*shape["fan_deg"]), generator.uniform(0.08, 0.13)
    missiles = []
    for index in range(count(*shape["missiles"])):
        far = generator.uniform(15000.0, 22000.0)
        aside = turn + generator.uniform(-1.0, 1.0) * (fan if index else 1.0)
        missiles.append(_turned(far, 0.0, far * slope * generator.uniform(0.9, 1.1), aside))
    drones = []
    for index in range(count(*shape["drones"])):
        chosen = missiles[0] if index == 0 else missiles[count(0, len(missiles) - 1)]
        along = generator.uniform(0.55, 0.95) if index == 0 else generator.uniform(0.25, 0.9)
        wide = 0.03 if index == 0 else 0.16
        x, y, z = (along * float(part) for part in chosen)
        off = generator.uniform(-wide, wide)
        drones.append(
            [round(x - off * y / along), round(y + off * x / along), round(z + generator.uniform(20.0, 600.0))]
        )
    aside = turn + (generator.uniform(60.0, 120.0) if level < 4 else generator.uniform(25.0, 155.0)) * (
        1.0 if generator.random() < 0.5 else -1.0
    )
    target = _turned(generator.uniform(120.0, 350.0), 0.0, 0.0, aside)
    least = 10 * count(5, 8)
    size = min(len(drones), count(2, 4 if level == 5 else 3))
    chosen_drones = sorted(generator.permutation(len(drones))[:size].tolist())
    return dict(OFFICIAL) | {
        "missiles_m": [[round(part) for part in missile] for missile in missiles],
        "missile_speed_mps": int(step(240, 360, 10)),
        "drones_m": drones,
        "speed_min_mps": least,
        "speed_max_mps": least + 10 * count(5, 8),
        "bombs": count(*shape["bombs"]),
        "release_gap_s": 1.0 if level == 1 else step(0.5, 2.0, 0.5),
        "q4_drones": [drone + 1 for drone in chosen_drones],
        "target_x_m": round(target[0]),
        "target_y_m": round(target[1]),
        "target_radius_m": step(5.0, 8.0, 0.5),
        "target_height_m": step(6.0, 12.0, 0.5),
        "cloud_radius_m": step(9.0, 14.0, 0.5),
        "cloud_life_s": count(14, 25),
        "sink_mps": step(2.0, 5.0, 0.5),
        "q1_heading_deg": 0.0,
        "q1_speed_mps": least,
        "q1_release_s": 0.0,
        "q1_fuse_s": 0.0,
    }


def _turned(x: float, y: float, z: float, angle_deg: float) -> tuple[float, float, float]:
    """A point turned about the z axis."""
    c, s = math.cos(math.radians(angle_deg)), math.sin(math.radians(angle_deg))
    return c * x - s * y, s * x + c * y, z


def _given_bomb(given: Scene, generator: np.random.Generator) -> Bomb | None:
    """A middling strategy of drone 1 for question 1: it hides the target for a while, but not centred on the line."""
    sight = Sight.of(given)
    heading, speed = headings_and_speeds(sight, 0, (0,), 24)
    if not len(heading):
        return None
    pick = generator.integers(0, len(heading), 64)
    time = generator.uniform(0.05, 0.95, 64) * sight.arrival_s[0]
    above = generator.uniform(-0.7, 0.7, 64) * given.cloud_radius_m
    none = np.zeros(64, dtype=np.intp)
    found = crossings(sight, none, heading[pick], speed[pick].round(), none, time, above)
    bombs = [
        Bomb(
            drone=1,
            heading_deg=round(math.degrees(heading[pick[row]]) % 360.0, 2) % 360.0,
            speed_mps=float(speed[pick[row]].round()),
            release_s=round(max(0.0, float(found.burst_s[row] - found.fuse_s[row])), 2),
            fuse_s=math.floor(100.0 * float(found.fuse_s[row])) / 100.0,
        )
        for row in np.flatnonzero(found.valid)
    ]
    bombs = [bomb for bomb in bombs if bomb.release_s <= RANGES["q1_release_s"][1] and bomb.fuse_s <= 20.0]
    if not bombs:
        return None
    at, place = bursts(given, bombs)
    spans = hidden_spans(sight, at, place, np.zeros(len(bombs), dtype=np.intp), COARSE_S)
    lengths = np.array([union_length(entry) for entry in spans])
    good = np.flatnonzero((lengths >= LEAST_S) & (lengths <= 0.7 * lengths.max()))
    for row in good[:4].tolist():
        bomb: Bomb = bombs[row]
        if centre_line_s(sight, bomb, 2001) >= (1.0 + 1.5 * Q1_APART) * lengths[row]:
            return bomb
    return None


def quick_plans(given: Scene) -> dict[str, list[Plan]]:
    """Plans of a short search; the reference of the instance is never worse."""
    return {question: solve(given, question, 0, 1, QUICK) for question in QUESTIONS}


def baselines(
    given: Scene, trivial: Sequence[dict[str, Any]], q1_truth_s: float, resolution_s: float = RESOLUTION_S
) -> dict[str, float]:
    """The best value that trivial answers reach, by metric key; for question 1 the nearest number."""
    stated = [float(answer["q1"]["shield_time_s"]) for answer in trivial]
    plans = [{question: read(answer, question) or [] for question in QUESTIONS} for answer in trivial]
    reached = metrics(Sight.of(given), plans, resolution_s)
    best = {key: max(entry[key] for entry in reached) for key in reached[0]}
    return {"q1_shield_time_s": min(stated, key=lambda number: abs(number - q1_truth_s))} | best


def q1_truth_s(given: Scene) -> float:
    """Time for which the given strategy hides the target from missile 1, s."""
    at, place = bursts(given, [given.q1])
    return union_length(hidden_spans(Sight.of(given), at, place, np.zeros(1, dtype=np.intp))[0])


def well_posed(given: Scene) -> bool:
    """Whether every metric can be earned, and is not earned by a trivial answer."""
    truth = q1_truth_s(given)
    if truth < LEAST_S:
        return False
    first = replace(given, missiles_m=given.missiles_m[:1])
    for drone in {1, *given.q4_drones}:
        if not len(headings_and_speeds(Sight.of(first), drone - 1, (0,), 5)[0]):
            return False
    sight = Sight.of(given)
    reached: dict[str, float] = {}
    for question in QUESTIONS:
        found = metrics(sight, [{question: solve(given, question, 0, 1, QUICK)}], COARSE_S)[0]
        if min(found.values()) < LEAST_S:
            return False
        reached |= found
        if question == "q3" and reached["q3_shield_time_s"] < reached["q2_shield_time_s"] + LEAST_S:
            return False
    base = baselines(given, list(answers(given).values()), truth, COARSE_S)
    if abs(base.pop("q1_shield_time_s") - truth) < Q1_APART * truth:
        return False
    return all(reached[key] >= AHEAD * base[key] and reached[key] >= base[key] + 0.3 for key in base)
