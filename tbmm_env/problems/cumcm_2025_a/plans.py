"""Drone plans: reading them from an answer, where their clouds burst, what breaks the rules, what they hide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tbmm_env.problems.fields import finite

from .intervals import RESOLUTION_S, Spans, hidden_spans, union_length
from .parameters import GRAVITY_MPS2, Bomb, Scene
from .shadow import Array, Sight

QUESTIONS: Final = ("q2", "q3", "q4", "q5")
"""Questions that are answered by plans."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one drone does: one heading and one speed for all its bombs.

    Attributes:
        drone: index from 1; may be unknown.
        heading_deg: counter-clockwise from the x axis.
        speed_mps: constant.
        drops: (release, fuse) of each bomb, s.
    """

    drone: int
    heading_deg: float
    speed_mps: float
    drops: tuple[tuple[float, float], ...]

    def bombs(self) -> list[Bomb]:
        """The bombs one by one."""
        return [
            Bomb(drone=self.drone, heading_deg=self.heading_deg, speed_mps=self.speed_mps, release_s=at, fuse_s=fuse)
            for at, fuse in self.drops
        ]

    def record(self) -> dict[str, Any]:
        """The plan as it stands in an answer."""
        return {
            "drone": self.drone,
            "heading_deg": self.heading_deg,
            "speed_mps": self.speed_mps,
            "bombs": [{"release_time_s": at, "fuse_s": fuse} for at, fuse in self.drops],
        }


def drones_of(scene: Scene, question: str) -> tuple[int, ...]:
    """The drones that a question may use, indexes from 1."""
    if question in ("q2", "q3"):
        return (1,)
    return scene.q4_drones if question == "q4" else tuple(range(1, len(scene.drones_m) + 1))


def missiles_of(scene: Scene, question: str) -> tuple[int, ...]:
    """The missiles that count in a question, indexes from 0."""
    return tuple(range(len(scene.missiles_m))) if question == "q5" else (0,)


def bombs_of(scene: Scene, question: str) -> int:
    """How many bombs a drone may drop in a question."""
    return scene.bombs if question in ("q3", "q5") else 1


def read(answer: Mapping[str, Any], question: str) -> list[Plan] | None:
    """The plans of one question; None when the question is absent or a plan lacks a number."""
    entries = answer.get(question)
    if not isinstance(entries, list | tuple):
        return None
    plans = []
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("bombs"), list | tuple):
            return None
        head = [finite(entry.get(name)) for name in ("drone", "heading_deg", "speed_mps")]
        drops = []
        for bomb in entry["bombs"]:
            if not isinstance(bomb, Mapping):
                return None
            at, fuse = finite(bomb.get("release_time_s")), finite(bomb.get("fuse_s"))
            if at is None or fuse is None:
                return None
            drops.append((at, fuse))
        drone, heading, speed = head
        if drone is None or heading is None or speed is None or drone != int(drone):
            return None
        plans.append(Plan(int(drone), heading, speed, tuple(drops)))
    return plans


# ---------------------------------------------------------------- the gate's evidence


def faults(scene: Scene, question: str, plans: Sequence[Plan]) -> dict[str, float]:
    """By how much plans break the rules of a question; 0 where they keep them.

    Returns:
        ``drones_not_allowed`` and ``drones_repeated`` (plans), ``surplus_bombs``, ``below_ground_m`` (depth of the
        deepest burst) and ``release_gap_missing_s`` (what the closest two releases of one drone lack).
    """
    allowed = set(drones_of(scene, question))
    known = [plan for plan in plans if 1 <= plan.drone <= len(scene.drones_m)]
    lowest = [
        scene.drones_m[plan.drone - 1][2] - 0.5 * GRAVITY_MPS2 * fuse**2 for plan in known for _, fuse in plan.drops
    ]
    gaps = [
        later - earlier
        for drone in {plan.drone for plan in plans}
        for earlier, later in _neighbours(at for plan in plans if plan.drone == drone for at, _ in plan.drops)
    ]
    return {
        "drones_not_allowed": float(sum(plan.drone not in allowed for plan in plans)),
        "drones_repeated": float(len(plans) - len({plan.drone for plan in plans})),
        "surplus_bombs": float(sum(max(0, len(plan.drops) - bombs_of(scene, question)) for plan in plans)),
        "below_ground_m": max([0.0, *(-height for height in lowest)]),
        "release_gap_missing_s": max([0.0, *(scene.release_gap_s - gap for gap in gaps)]),
    }


def _neighbours(times: Iterable[float]) -> list[tuple[float, float]]:
    ordered = sorted(times)
    return list(zip(ordered, ordered[1:], strict=False))


# ---------------------------------------------------------------- what plans hide


def bursts(scene: Scene, bombs: Sequence[Bomb]) -> tuple[Array, Array]:
    """Moments, s, and places, m, of bursts: level flight until the release, then a throw without drag."""
    heading = np.radians([bomb.heading_deg for bomb in bombs])
    at = np.array([bomb.release_s + bomb.fuse_s for bomb in bombs])
    run = np.array([bomb.speed_mps for bomb in bombs]) * at
    place = np.array([scene.drones_m[bomb.drone - 1] for bomb in bombs])
    place[:, 0] += run * np.cos(heading)
    place[:, 1] += run * np.sin(heading)
    place[:, 2] -= 0.5 * GRAVITY_MPS2 * np.array([bomb.fuse_s for bomb in bombs]) ** 2
    return at, place


def spans_by_missile(
    sight: Sight, plans: Sequence[Plan], missiles: Sequence[int], resolution_s: float = RESOLUTION_S
) -> list[Spans]:
    """When each missile's view is hidden by the clouds of the plans of known drones; one list a missile."""
    return all_spans(sight, [(plans, missiles)], resolution_s)[0]


def all_spans(
    sight: Sight, jobs: Sequence[tuple[Sequence[Plan], Sequence[int]]], resolution_s: float = RESOLUTION_S
) -> list[list[Spans]]:
    """Several plans and their missiles at once: for each job, one list of intervals a missile."""
    scene = sight.scene
    bombs, which, owner = [], [], []
    for job, (plans, missiles) in enumerate(jobs):
        known = [bomb for plan in plans if 1 <= plan.drone <= len(scene.drones_m) for bomb in plan.bombs()]
        for row, missile in enumerate(missiles):
            bombs += known
            which += [missile] * len(known)
            owner += [(job, row)] * len(known)
    result: list[list[Spans]] = [[[] for _ in missiles] for _, missiles in jobs]
    if not bombs:
        return result
    at, place = bursts(scene, bombs)
    found = hidden_spans(sight, at, place, np.array(which, dtype=np.intp), resolution_s)
    for (job, row), spans in zip(owner, found, strict=True):
        result[job][row] += spans
    return result


def metrics(
    sight: Sight, answers: Sequence[Mapping[str, Sequence[Plan]]], resolution_s: float = RESOLUTION_S
) -> list[dict[str, float]]:
    """The metrics of questions 2 to 5, s, by metric key, as far as an answer has the plans; one entry an answer."""
    jobs = [(plans[q], missiles_of(sight.scene, q)) for plans in answers for q in QUESTIONS if q in plans]
    found = iter(all_spans(sight, jobs, resolution_s))
    result = []
    for plans in answers:
        entry: dict[str, float] = {}
        for question in QUESTIONS:
            if question not in plans:
                continue
            each = [union_length(spans) for spans in next(found)]
            if question == "q5":
                entry |= {"q5_total_shield_time_s": sum(each), "q5_min_missile_shield_time_s": min(each)}
            else:
                entry[f"{question}_shield_time_s"] = each[0]
        result.append(entry)
    return result


def centre_line_s(sight: Sight, bomb: Bomb, samples: int = 20001) -> float:
    """Time for which a cloud meets the line from missile 1 to the middle of the target's axis, s.

    This is the usual shortcut for question 1; fixed samples with linear interpolation at the ends, good to a
    microsecond or so.
    """
    scene = sight.scene
    at, place = bursts(scene, [bomb])
    begin, end = float(at[0]), float(min(at[0] + scene.cloud_life_s, sight.arrival_s[0]))
    if end <= begin:
        return 0.0
    time = np.linspace(begin, end, samples)
    missile = sight.at(np.zeros(samples, dtype=np.intp), time)
    cloud = np.repeat(place, samples, axis=0)
    cloud[:, 2] -= scene.sink_mps * (time - begin)
    x, y, _ = scene.target_m
    line = np.array([x, y, 0.5 * scene.target_height_m]) - missile
    to_cloud = cloud - missile
    share = np.clip(np.einsum("ij,ij->i", to_cloud, line) / np.einsum("ij,ij->i", line, line), 0.0, 1.0)
    depth = scene.cloud_radius_m - np.linalg.norm(to_cloud - share[:, None] * line, axis=1)
    left, right = depth[:-1], depth[1:]
    both = (left >= 0.0) & (right >= 0.0)
    one = (left >= 0.0) != (right >= 0.0)
    inside = np.where(both, 1.0, 0.0)
    inside[one] = np.maximum(left, right)[one] / np.abs(left - right)[one]
    return float(np.sum(inside) * (end - begin) / (samples - 1))
