"""Clouds made to graze the line of sight for as long as they can: the search stays within time and memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tbmm_env.problems import cumcm_2025_a as smoke
from tbmm_env.problems.cumcm_2025_a.intervals import MOST_AT_ONCE, RESOLUTION_S, hidden_spans
from tbmm_env.problems.cumcm_2025_a.parameters import OFFICIAL, scene
from tbmm_env.problems.cumcm_2025_a.shadow import Sight, margin

GIVEN = scene(OFFICIAL)
SIGHT = Sight.of(GIVEN)
MISSILE, MEETING_S, BURST_S = 0, 47.0, 45.0


def cloud_at(offset_m: float) -> NDArray[np.float64]:
    """Burst of a cloud that sinks as fast as the sight of missile 1 does there, so far beside the sight at 47 s."""
    place = SIGHT.at(np.array([MISSILE]), np.array([MEETING_S]))[0]
    target = np.array([*GIVEN.target_m[:2], 0.5 * GIVEN.target_height_m])
    falling_mps = -SIGHT.unit[MISSILE, 2] * GIVEN.missile_speed_mps
    middle = place + (1.0 - GIVEN.sink_mps / falling_mps) * (target - place)
    across = np.cross(target - place, [0.0, 0.0, 1.0])
    found: NDArray[np.float64] = middle + offset_m * across / np.linalg.norm(across)
    found[2] += GIVEN.sink_mps * (MEETING_S - BURST_S)
    return found


def highest_margin_m(offset_m: float) -> float:
    """Highest margin of such a cloud over its life, by grids that close in on it."""
    begin, end = BURST_S, BURST_S + GIVEN.cloud_life_s
    for _ in range(6):
        times = np.linspace(begin, end, 401)
        clouds = np.repeat(cloud_at(offset_m)[None], len(times), axis=0)
        clouds[:, 2] -= GIVEN.sink_mps * (times - BURST_S)
        margins = margin(GIVEN, SIGHT.at(np.full(len(times), MISSILE), times), clouds)
        best = int(margins.argmax())
        begin, end = times[max(best - 1, 0)], times[min(best + 1, 400)]
    return float(margins.max())


@pytest.fixture(scope="module")
def grazing_m() -> float:
    """The largest offset with which such a cloud still touches the last line of sight."""
    inside, outside = 0.0, 40.0
    assert highest_margin_m(inside) > 0.0 > highest_margin_m(outside)
    for _ in range(50):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if highest_margin_m(middle) >= 0.0 else (inside, middle)
    return inside


def test_many_grazing_clouds_take_bounded_memory(grazing_m: float) -> None:
    pairs = 100
    place = np.repeat(cloud_at(grazing_m)[None], pairs, axis=0)
    tracemalloc.start()
    try:
        found = hidden_spans(SIGHT, np.full(pairs, BURST_S), place, np.zeros(pairs, dtype=np.intp))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 4000 * MOST_AT_ONCE
    assert all(spans == found[0] for spans in found)
    assert sum(end - begin for begin, end in found[0]) < 0.01


def test_just_inside_is_hidden_and_just_outside_is_not(grazing_m: float) -> None:
    offsets = grazing_m + np.array([-1e-3, 1e-3])
    place = np.array([cloud_at(offset) for offset in offsets])
    inside, outside = hidden_spans(SIGHT, np.full(2, BURST_S), place, np.zeros(2, dtype=np.intp))
    assert outside == []
    assert len(inside) == 1
    assert inside[0][1] - inside[0][0] > 1000 * RESOLUTION_S


def test_plans_that_break_the_counts_are_not_looked_at() -> None:
    bombs = [{"release_time_s": 1.5, "fuse_s": 3.6}]
    plan: dict[str, Any] = {"drone": 1, "heading_deg": 180.0, "speed_mps": 120.0, "bombs": bombs}
    once = smoke.replay(OFFICIAL, {"q2": [plan]})
    twice = smoke.replay(OFFICIAL, {"q2": [plan, plan]})
    surplus = smoke.replay(OFFICIAL, {"q2": [plan | {"bombs": bombs * 2}]})
    assert once["q2_shield_time_s"] == pytest.approx(1.391643, abs=1e-6)
    assert "q2_shield_time_s" not in twice
    assert "q2_shield_time_s" not in surplus
    assert (twice["q2_drones_repeated"], surplus["q2_surplus_bombs"]) == (1.0, 1.0)
