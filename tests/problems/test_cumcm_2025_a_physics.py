"""Smoke screen: a second evaluator, slow and from the statement alone, against the replay; and its mutants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tbmm_env.problems import cumcm_2025_a as smoke
from tbmm_env.problems.cumcm_2025_a import official
from tbmm_env.problems.cumcm_2025_a.intervals import hidden_spans, union_length
from tbmm_env.problems.cumcm_2025_a.parameters import Scene, scene
from tbmm_env.problems.cumcm_2025_a.shadow import Sight, margin

OFFICIAL = dict(smoke.OFFICIAL)
ANGLES = np.linspace(0.0, 2.0 * np.pi, 721)[:-1]
Points = np.ndarray


# ---------------------------------------------------------------- the second evaluator


def surface(p: Mapping[str, Any], *, heights: int = 2, rings: int = 1, angles: Points = ANGLES) -> Points:
    """Points of the target: `heights` circles on the wall, `rings` circles on top and base."""
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    layers = [(p["target_radius_m"], z) for z in np.linspace(0.0, p["target_height_m"], heights)]
    layers += [(p["target_radius_m"] * k / rings, z) for k in range(rings) for z in (0.0, p["target_height_m"])]
    parts = [np.column_stack([r * circle, np.full(len(circle), z)]) for r, z in layers]
    return np.concatenate(parts) + np.array([p["target_x_m"], p["target_y_m"], 0.0])


def distances(missile: Points, points: Points, centre: Points) -> Points:
    """Distance of a ball's centre from the segments from the missile to points."""
    line = points - missile
    share = np.clip((line @ (centre - missile)) / np.einsum("ij,ij->i", line, line), 0.0, 1.0)
    return np.linalg.norm(missile + share[:, None] * line - centre, axis=1)


def paths(p: Mapping[str, Any], missile: int, record: Mapping[str, Any], bomb: Mapping[str, Any], g: float) -> Any:
    """Missile and cloud centre as functions of time, with the time from burst to the end."""
    start = np.array(p["missiles_m"][missile], dtype=float)
    far = float(np.linalg.norm(start))
    drone = np.array(p["drones_m"][record["drone"] - 1], dtype=float)
    heading, fuse = math.radians(record["heading_deg"]), bomb["fuse_s"]
    burst = bomb["release_time_s"] + fuse
    velocity = record["speed_mps"] * np.array([math.cos(heading), math.sin(heading), 0.0])
    place = drone + velocity * burst - np.array([0.0, 0.0, 0.5 * g * fuse**2])

    def at(t: float) -> tuple[Points, Points]:
        return start * (1.0 - p["missile_speed_mps"] * t / far), place - np.array(
            [0.0, 0.0, p["sink_mps"] * (t - burst)]
        )

    return at, burst, min(burst + p["cloud_life_s"], far / p["missile_speed_mps"])


def slow_spans(
    p: Mapping[str, Any],
    missile: int,
    record: Mapping[str, Any],
    bomb: Mapping[str, Any],
    points: Points,
    g: float = 9.8,
) -> list[tuple[float, float]]:
    """Hidden stretches by steps of about 0.02 s and halving; a step is thrown out early by one point of the target."""
    at, burst, end = paths(p, missile, record, bomb, g)
    if end <= burst:
        return []
    radius = p["cloud_radius_m"]

    def hidden(t: float) -> bool:
        where, centre = at(t)
        return bool(distances(where, points[:1], centre)[0] <= radius) and bool(
            distances(where, points, centre).max() <= radius
        )

    times = np.linspace(burst, end, max(2, math.ceil((end - burst) / 0.02)))
    shown = [hidden(t) for t in times]
    ends = [burst] if shown[0] else []
    for k in range(len(times) - 1):
        if shown[k] != shown[k + 1]:
            low, high = times[k], times[k + 1]
            for _ in range(30):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if hidden(middle) == shown[k] else (low, middle)
            ends.append(low)
    ends += [end] if shown[-1] else []
    return list(zip(ends[::2], ends[1::2], strict=True))


def slow_total(spans: list[tuple[float, float]]) -> float:
    """Length of a union by sweeping over its ends."""
    total, depth, last = 0.0, 0, 0.0
    for time, step in sorted([(a, 1) for a, _ in spans] + [(b, -1) for _, b in spans]):
        total += (time - last) if depth > 0 else 0.0
        depth, last = depth + step, time
    return total


def slow_metrics(p: Mapping[str, Any], answer: Mapping[str, Any], points: Points, g: float = 9.8) -> dict[str, float]:
    """The metrics of questions 2 to 5."""
    result = {}
    for question in ("q2", "q3", "q4", "q5"):
        missiles = range(len(p["missiles_m"]) if question == "q5" else 1)
        each = [
            slow_total([
                span for record in answer[question] for bomb in record["bombs"]
                for span in slow_spans(p, missile, record, bomb, points, g)
            ])
            for missile in missiles
        ]  # fmt: skip
        if question == "q5":
            result |= {"q5_total_shield_time_s": sum(each), "q5_min_missile_shield_time_s": min(each)}
        else:
            result[f"{question}_shield_time_s"] = each[0]
    return result


def best() -> dict[str, Any]:
    return {question: [plan.record() for plan in plans] for question, plans in official.BEST.items()}


def given(p: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, float]]:
    record = {"drone": 1, "heading_deg": p["q1_heading_deg"], "speed_mps": p["q1_speed_mps"]}
    return record, {"release_time_s": p["q1_release_s"], "fuse_s": p["q1_fuse_s"]}


def compared(p: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """The slow evaluator sees 720 points a rim, so it may hide for a trifle longer, never for less."""
    replayed, slow = smoke.replay(p, answer), slow_metrics(p, answer, surface(p))
    for key, value in slow.items():
        assert -1e-7 <= value - replayed[key] < 1e-3, (key, value, replayed[key])


def test_the_second_evaluator_agrees_on_the_best_official_answer() -> None:
    compared(OFFICIAL, best())


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_the_second_evaluator_agrees_on_every_trivial_answer(seed: int) -> None:
    p = smoke.sample(seed)
    for answer in smoke.trivial_answers(p).values():
        compared(p, answer)


@pytest.mark.parametrize("seed", [1, 3])
def test_the_second_evaluator_agrees_on_the_judges_plans(seed: int | None) -> None:
    p = OFFICIAL if seed is None else smoke.sample(seed)
    plans = {question: [plan.record() for plan in found] for question, found in smoke.reference_plans(scene(p)).items()}
    compared(p, plans)


@pytest.mark.parametrize("seed", [None, *range(10)])
def test_the_second_evaluator_agrees_on_question_1(seed: int | None) -> None:
    p = OFFICIAL if seed is None else smoke.sample(seed)
    slow = slow_total(slow_spans(p, 0, *given(p), surface(p)))
    assert -1e-7 <= slow - smoke.replay(p, {"q1": {}})["q1_shield_time_s"] < 3e-4


def test_question_1_is_what_independent_computations_say() -> None:
    assert smoke.replay(OFFICIAL, {"q1": {}})["q1_shield_time_s"] == pytest.approx(1.391643, abs=5e-7)
    close = surface(OFFICIAL, angles=np.linspace(0.0, 2.0 * np.pi, 36001))
    begin, end = slow_spans(OFFICIAL, 0, *given(OFFICIAL), close)[0]
    assert (begin, end) == pytest.approx((8.056445, 9.448088), abs=1e-6)


# ---------------------------------------------------------------- mutants of the second evaluator


MUTANTS: dict[str, Callable[[], float]] = {
    "g = 9.81 m/s^2": lambda: slow_total(slow_spans(OFFICIAL, 0, *given(OFFICIAL), surface(OFFICIAL), 9.81)),
    "middle of the axis only": lambda: slow_total(
        slow_spans(OFFICIAL, 0, *given(OFFICIAL), np.array([[0.0, 200.0, 5.0]]))
    ),
    "foot of the axis only": lambda: slow_total(
        slow_spans(OFFICIAL, 0, *given(OFFICIAL), np.array([[0.0, 200.0, 0.0]]))
    ),
    "no base": lambda: slow_total(
        slow_spans(OFFICIAL, 0, *given(OFFICIAL), surface(OFFICIAL)[len(ANGLES) : 2 * len(ANGLES)])
    ),
    "eight points a rim": lambda: slow_total(
        slow_spans(OFFICIAL, 0, *given(OFFICIAL), surface(OFFICIAL, angles=np.arange(0.2, 6.3, np.pi / 4)))
    ),
}


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_wrong_criterion_is_told_apart(name: str) -> None:
    truth = smoke.replay(OFFICIAL, {"q1": {}})["q1_shield_time_s"]
    assert abs(MUTANTS[name]() - truth) > 3e-4, name


def test_adding_up_what_overlaps_is_told_apart() -> None:
    record, bomb = given(OFFICIAL)
    record |= {"bombs": [bomb, {"release_time_s": 1.5, "fuse_s": 3.65}]}
    spans = [s for b in record["bombs"] for s in slow_spans(OFFICIAL, 0, record, b, surface(OFFICIAL))]
    replayed = smoke.replay(OFFICIAL, {"q3": [record]})["q3_shield_time_s"]
    assert slow_total(spans) == pytest.approx(replayed, abs=3e-4)
    assert sum(b - a for a, b in spans) > replayed + 0.3


# ---------------------------------------------------------------- the margin


def configurations(p: Scene, generator: np.random.Generator, count: int) -> tuple[Points, Points]:
    """Missiles and clouds of every kind: far, near, inside, behind, beside, around the target."""
    x, y, _ = p.target_m
    target = np.array([x, y, 0.5 * p.target_height_m])
    direction = generator.standard_normal((count, 3))
    direction[:, 2] = np.abs(direction[:, 2]) * generator.choice([0.05, 0.3, 2.0], count)
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    missile = target + direction * (10.0 ** generator.uniform(1.2, 4.3, count))[:, None]
    share = generator.choice([-0.05, 0.0, 0.002, 0.02, 0.3, 0.9, 0.99, 1.0, 1.02], count)[:, None]
    share = share * generator.uniform(0.7, 1.3, (count, 1))
    cloud = missile + share * (target - missile)
    cloud += generator.standard_normal((count, 3)) * p.cloud_radius_m * generator.choice([0.05, 0.3, 0.7], (count, 1))
    return missile, cloud


@pytest.mark.parametrize("seed", [None, 0, 3, 9])
def test_the_margin_bounds_what_points_of_the_rims_show(seed: int | None) -> None:
    p = scene(OFFICIAL if seed is None else smoke.sample(seed))
    generator = np.random.default_rng(seed)
    missile, cloud = configurations(p, generator, 1500)
    found = margin(p, missile, cloud)
    parameters = OFFICIAL if seed is None else smoke.sample(seed)
    rims = surface(parameters)
    solid = surface(parameters, heights=7, rings=4, angles=ANGLES[::8])
    deepest = np.array([distances(m, rims, c).max() for m, c in zip(missile, cloud, strict=True)])
    inside = np.array([distances(m, solid, c).max() for m, c in zip(missile, cloud, strict=True)])
    true = p.cloud_radius_m - deepest  # too high by what lies between the points: less than 0.1 mm
    clear = np.abs(true) > 2e-4
    assert np.array_equal(found[clear] >= 0.0, true[clear] >= 0.0)
    hidden = found >= 0.0
    assert 50 < hidden.sum() < 1450
    assert np.all(true[hidden] >= found[hidden] - 1e-6)
    assert np.all(true[~hidden] <= found[~hidden] + 2e-4)
    assert np.all(inside[hidden] <= p.cloud_radius_m + 1e-6)  # rims are enough: the whole solid is hidden


def test_a_margin_without_the_upper_rim_is_told_apart() -> None:
    """The mutant: a target without height is hidden more often."""
    p = scene(OFFICIAL)
    flat = scene(OFFICIAL | {"target_height_m": 5.0})
    missile, cloud = configurations(p, np.random.default_rng(1), 1500)
    assert np.any((margin(p, missile, cloud) < 0.0) & (margin(flat, missile, cloud) >= 0.0))


# ---------------------------------------------------------------- the certified search


def test_no_stretch_is_missed() -> None:
    """Bursts anywhere near lines of sight, also beside the target: the same stretches as by steps of 1 ms."""
    p = scene(OFFICIAL)
    sight = Sight.of(p)
    generator = np.random.default_rng(5)
    count = 60
    which = generator.integers(0, 3, count)
    time = generator.uniform(0.2, 1.0, count) * sight.arrival_s[which]
    share = generator.choice([0.01, 0.1, 0.5, 0.95, 0.995, 1.0], count)
    place = sight.at(which, time)
    goal = place + share[:, None] * (np.array([0.0, 200.0, 5.0]) - place) + generator.standard_normal((count, 3)) * 3.0
    burst = np.maximum(time - generator.uniform(0.0, 6.0, count), 0.0)
    goal[:, 2] += p.sink_mps * (time - burst)
    found = hidden_spans(sight, burst, goal, which)
    several = 0
    for row in range(count):
        end = min(burst[row] + p.cloud_life_s, sight.arrival_s[which[row]])
        times = np.arange(burst[row], end, 1e-3)
        cloud = np.repeat(goal[row : row + 1], len(times), axis=0)
        cloud[:, 2] -= p.sink_mps * (times - burst[row])
        shown = margin(p, sight.at(np.full(len(times), which[row]), times), cloud) >= 0.0
        begins = times[1:][shown[1:] & ~shown[:-1]].tolist()
        begins = ([burst[row]] if len(shown) and shown[0] else []) + begins
        assert len(found[row]) == len(begins)
        assert [a for a, _ in found[row]] == pytest.approx(begins, abs=1.1e-3)
        assert union_length(found[row]) == pytest.approx(1e-3 * shown.sum(), abs=3e-3)
        several += bool(begins)
    assert several > 20


def test_a_missile_inside_a_cloud_sees_nothing() -> None:
    p = scene(OFFICIAL)
    sight = Sight.of(p)
    none = np.zeros(1, dtype=np.intp)
    place = sight.at(none, np.array([30.0]))
    place[0, 2] += p.sink_mps * 1.0
    (spans,) = hidden_spans(sight, np.array([29.0]), place, none)
    passed = p.cloud_radius_m / p.missile_speed_mps
    assert spans[0][1] > 30.0
    assert spans[-1][1] == pytest.approx(30.0 + passed, abs=0.002)
