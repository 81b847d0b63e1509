"""Answers that cost no thought: what they reach is the baseline of every metric."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tbmm_env.problems.draws import generator_of

from .intervals import hidden_spans, union_length
from .official import BEST
from .parameters import GRAVITY_MPS2, Bomb, Scene
from .plans import QUESTIONS, Plan, bombs_of, bursts, centre_line_s, drones_of, missiles_of
from .shadow import Array, Sight

HEADINGS: Final = 8
RELEASES_S: Final = (0.0, 3.0, 8.0, 15.0, 25.0)
FUSES_S: Final = (1.0, 3.0, 6.0, 10.0)

OFFICIAL_Q1_S: Final = 1.391643
"""Question 1 of the official instance, s."""


def answers(scene: Scene) -> dict[str, dict[str, Any]]:
    """The trivial answers by name, all feasible.

    * ``official_constant``: the plans that are best on the official instance, cut and padded to fit.
    * ``greedy``: one bomb a drone, the best of a coarse grid for that drone alone.
    * ``rule``: what question 1 prescribes, by every drone: that speed, that first release and that fuse, further bombs
      one gap apart, drone 1 on the given heading and the others towards the decoy.
    * ``random``: random decisions from a generator that is seeded by the scene.
    """
    grid = {drone: _grid(scene, drone) for drone in range(1, len(scene.drones_m) + 1)}
    seed = int.from_bytes(hashlib.sha256(json.dumps(repr(scene)).encode()).digest()[:8], "big")
    generator = generator_of(2025, 7, seed)
    makers: dict[str, Callable[[str], list[Plan]]] = {
        "official_constant": lambda q: _official(scene, q),
        "greedy": lambda q: _greedy(scene, q, grid),
        "rule": lambda q: _rule(scene, q),
        "random": lambda q: _random(scene, q, generator),
    }
    found: dict[str, dict[str, Any]] = {}
    for name, make in makers.items():
        plans = {question: [plan.record() for plan in make(question)] for question in QUESTIONS}
        found[name] = {"q1": {"shield_time_s": 0.0}} | plans
    found["official_constant"]["q1"]["shield_time_s"] = min(OFFICIAL_Q1_S, scene.cloud_life_s)
    found["greedy"]["q1"]["shield_time_s"] = scene.cloud_life_s
    found["rule"]["q1"]["shield_time_s"] = round(min(centre_line_s(Sight.of(scene), scene.q1), scene.cloud_life_s), 6)
    found["random"]["q1"]["shield_time_s"] = round(float(generator.uniform(0.0, scene.cloud_life_s)), 3)
    return found


def fitted(scene: Scene, question: str, drone: int, heading_deg: float, speed_mps: float,
           drops: Sequence[tuple[float, float]]) -> Plan:  # fmt: skip
    """A plan made feasible: cut or padded to the number of bombs, spread to the gap, kept above ground and in range."""
    count, longest = bombs_of(scene, question), math.floor(1e4 * scene.longest_fuse_s(drone)) / 1e4
    kept: list[tuple[float, float]] = []
    for number in range(count):
        at, fuse = drops[min(number, len(drops) - 1)]
        at = at if not kept else max(at, round(kept[-1][0] + scene.release_gap_s, 6))
        kept.append((at, min(fuse, longest)))
    return Plan(drone, heading_deg, min(max(speed_mps, scene.speed_min_mps), scene.speed_max_mps), tuple(kept))


def _official(scene: Scene, question: str) -> list[Plan]:
    best = BEST[question]
    return [
        fitted(scene, question, drone, plan.heading_deg, plan.speed_mps, plan.drops)
        for drone, plan in zip(drones_of(scene, question), [*best, *best, *best], strict=False)
    ]


def _rule(scene: Scene, question: str) -> list[Plan]:
    plans = []
    for drone in drones_of(scene, question):
        x, y, _ = scene.drones_m[drone - 1]
        heading = scene.q1.heading_deg if drone == 1 else round(math.degrees(math.atan2(-y, -x)) % 360.0, 2) % 360.0
        plans.append(fitted(scene, question, drone, heading, scene.q1.speed_mps,
                            [(scene.q1.release_s, scene.q1.fuse_s)]))  # fmt: skip
    return plans


def _random(scene: Scene, question: str, generator: np.random.Generator) -> list[Plan]:
    plans = []
    for drone in drones_of(scene, question):
        heading = round(float(generator.uniform(0.0, 360.0)), 2) % 360.0
        speed = round(float(generator.uniform(scene.speed_min_mps, scene.speed_max_mps)), 2)
        count = bombs_of(scene, question)
        at = np.sort(generator.uniform(0.0, 30.0, count)).round(2)
        fuse = generator.uniform(0.0, scene.longest_fuse_s(drone), count).round(2)
        drops = list(zip(at.tolist(), fuse.tolist(), strict=True))
        plans.append(fitted(scene, question, drone, heading, speed, drops))
    return plans


def _grid(scene: Scene, drone: int) -> tuple[list[Bomb], Array]:
    """Bombs on a coarse grid and how long each hides the target from each missile, s; shape (bombs, missiles)."""
    x, y, z = scene.drones_m[drone - 1]
    to_decoy = math.degrees(math.atan2(-y, -x)) % 360.0
    headings = [round((to_decoy + 360.0 * turn / HEADINGS) % 360.0, 2) % 360.0 for turn in range(HEADINGS)]
    bombs = [
        Bomb(drone=drone, heading_deg=heading, speed_mps=speed, release_s=at, fuse_s=fuse)
        for heading in headings
        for speed in (scene.speed_min_mps, scene.speed_max_mps)
        for at in RELEASES_S
        for fuse in FUSES_S
        if 0.5 * GRAVITY_MPS2 * fuse**2 <= z
    ]
    at_, place = bursts(scene, bombs)
    count, missiles = len(bombs), len(scene.missiles_m)
    which = np.repeat(np.arange(missiles, dtype=np.intp), count)
    spans = hidden_spans(Sight.of(scene), np.tile(at_, missiles), np.tile(place, (missiles, 1)), which, 1e-3)
    hidden = np.array([union_length(entry) for entry in spans]).reshape(missiles, count)
    return bombs, hidden.T


def _greedy(scene: Scene, question: str, grid: Mapping[int, tuple[list[Bomb], Array]]) -> list[Plan]:
    plans = []
    for drone in drones_of(scene, question):
        bombs, hidden = grid[drone]
        best = bombs[int(hidden[:, list(missiles_of(scene, question))].sum(axis=1).argmax())]
        plans.append(Plan(drone, best.heading_deg, best.speed_mps, ((best.release_s, best.fuse_s),)))
    return plans
