"""Bench dragon: replay, reference, sampling and figures."""

from __future__ import annotations

import json
import math
import string
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tbmm_env.errors import BadInstance, UnknownTask
from tbmm_env.judge import score
from tbmm_env.judge.replay import round_to_grid
from tbmm_env.problems import cumcm_2024_a as dragon
from tbmm_env.problems import module_for
from tbmm_env.tasks import load

TASK = load("cumcm-2024-a")
OFFICIAL = dict(dragon.OFFICIAL)
SUBMISSIONS = TASK.folder / "submissions"
LABELLED = sorted(path for path in SUBMISSIONS.glob("*/*.json"))
SEEDS = [0, 1, 3, 7, 2**62, 2**63 - 1]

BEST = {
    "q2_termination_time_s": 412.4738376821147,
    "q3_pitch_m": 0.450337393027,
    "q4_turn_length_m": 13.621244906821122,
    "q5_head_speed_mps": 1.246266358157483,
}
"""Published by independent computations; see references.toml."""

EXACT_PATH = {
    "entry_m": [-2.7118558637066594, -3.591077522761074],
    "centre1_m": [-0.7600091166555296, -1.3057264263462565],
    "radius1_m": 3.0054176677890356,
    "centre2_m": [1.7359324901810944, 2.448401974553665],
    "radius2_m": 1.5027088338945178,
    "exit_m": [2.7118558637066594, 3.591077522761074],
}


@pytest.fixture(scope="module")
def official() -> dict[str, dict[str, float]]:
    return dragon.reference(OFFICIAL)


# ---------------------------------------------------------------- known truths


def test_the_reference_reproduces_published_values(official: dict[str, dict[str, float]]) -> None:
    assert official["anchor"] == pytest.approx(BEST, rel=0, abs=2e-12)


def test_the_frozen_anchor_is_the_reference(official: dict[str, dict[str, float]]) -> None:
    for metric in TASK.metrics:
        frozen = round_to_grid(TASK.anchor[metric.key], metric.grid)
        assert round_to_grid(official["anchor"][metric.key], metric.grid) == frozen


def test_baselines_are_the_trivial_answers(official: dict[str, dict[str, float]]) -> None:
    # arc length of the spiral from turn 16 to radius 4.5 m, by the midpoint rule
    b = 0.55 / (2.0 * math.pi)
    edges = np.linspace(4.5 / b, 32.0 * math.pi, 200_001)
    middle = 0.5 * (edges[1:] + edges[:-1])
    length = float(np.sum(b * np.sqrt(1.0 + middle**2)) * (edges[1] - edges[0]))
    assert official["baseline"] == pytest.approx(
        {
            "q2_termination_time_s": length,
            "q3_pitch_m": 0.55,
            "q4_turn_length_m": 4.5 * math.pi,
            "q5_head_speed_mps": 1.0,
        },
        rel=1e-9,
    )


def test_published_values_replay_as_the_audit_says() -> None:
    tolerances = {entry.id: float(entry.tolerance) for entry in TASK.obligations}
    for paper in TASK.papers:
        value = float(paper.value)
        match paper.metric:
            case "q2_termination_time_s":
                replayed = dragon.replay(OFFICIAL, {"q2": {"termination_time_s": value}})
                feasible = value <= replayed["first_overlap_time_s"] + tolerances["q2_ends_before_overlap"]
            case "q3_pitch_m":
                replayed = dragon.replay(OFFICIAL, {"q3": {"pitch_m": value}})
                feasible = replayed["q3_min_gap_m"] >= -tolerances["q3_no_overlap_on_approach"]
            case "q5_head_speed_mps":
                replayed = dragon.replay(OFFICIAL, {"q5": {"head_speed_mps": value}})
                feasible = replayed["peak_speed_mps"] <= 2.0 + tolerances["q5_no_handle_too_fast"]
            case _:
                continue
        assert feasible == (paper.status != "contradicted"), paper
        if paper.status == "confirmed":
            off = abs(paper.value - TASK.anchor[paper.metric])
            assert off <= max(paper.resolution, Fraction("0.000001")), paper
    assert {paper.paper for paper in TASK.papers if paper.votes} >= {"A163", "dynamic-search", "walker4869"}


# ---------------------------------------------------------------- the path of question 4


def residuals(path: dict[str, Any]) -> dict[str, float]:
    values = dragon.replay(OFFICIAL, {"q4": {"path": path}})
    values["entry_radius_m"] -= 4.5
    values["centre_distance_m"] -= path["radius1_m"] + path["radius2_m"]
    del values["turn_length_m"]
    return {name: abs(value) for name, value in values.items()}


def test_the_exact_path_has_no_residuals() -> None:
    found = residuals(EXACT_PATH)
    assert len(found) == 7
    assert max(found.values()) < 1e-12


def test_a_path_of_six_decimals_is_within_the_tolerance() -> None:
    rounded = {
        name: [round(x, 6) for x in value] if isinstance(value, list) else round(value, 6)
        for name, value in EXACT_PATH.items()
    }
    assert max(residuals(rounded).values()) < 5e-6


@pytest.mark.parametrize(
    ("field", "change", "moved"),
    [
        ("entry_m", [1e-4, 0.0], {"entry_radius_m", "exit_reflection_error_m", "arc1_tangency_error_m"}),
        ("exit_m", [0.0, 1e-4], {"exit_reflection_error_m", "arc2_tangency_error_m"}),
        ("centre1_m", [0.0, 1e-4], {"arc1_tangency_error_m", "centre_distance_m"}),
        ("centre2_m", [1e-4, 0.0], {"arc2_tangency_error_m", "centre_distance_m"}),
        ("radius1_m", 1e-4, {"arc1_tangency_error_m", "centre_distance_m", "radius_ratio_error_m"}),
        ("radius2_m", 1e-4, {"arc2_tangency_error_m", "centre_distance_m", "radius_ratio_error_m"}),
    ],
)
def test_a_changed_path_shows_in_its_residuals(field: str, change: Any, moved: set[str]) -> None:
    value: Any = EXACT_PATH[field]
    changed = [a + d for a, d in zip(value, change, strict=True)] if isinstance(value, list) else value + change
    found = residuals(EXACT_PATH | {field: changed})
    assert moved <= {name for name, off in found.items() if off > 2e-5}


def test_a_path_that_turns_the_wrong_way_is_not_tangent() -> None:
    """Both centres mirrored at the tangents: every distance fits, the direction of motion does not."""
    e, c1, c2 = (np.array(EXACT_PATH[name]) for name in ("entry_m", "centre1_m", "centre2_m"))
    wrong = EXACT_PATH | {"centre1_m": list(2 * e - c1), "centre2_m": list(-2 * e - c2)}
    found = residuals(wrong)
    assert found["arc1_tangency_error_m"] > 6.0
    assert found["arc2_tangency_error_m"] > 3.0


# ---------------------------------------------------------------- replay


def test_what_is_absent_is_absent() -> None:
    assert dragon.replay(OFFICIAL, {}) == {}
    assert set(dragon.replay(OFFICIAL, {"q4": {"turn_length_m": 1.0}})) == {"turn_length_m"}
    assert set(dragon.replay(OFFICIAL, {"q5": {"head_speed_mps": 1.0}})) == {"peak_speed_mps"}
    assert dragon.replay(OFFICIAL, {"q2": {}, "q3": {}, "q5": {}}) == {}
    path = {"entry_m": [1.0, 2.0], "radius2_m": 1.0}
    found = dragon.replay(OFFICIAL, {"q4": {"path": path}})
    assert set(found) == {"turn_length_m", "entry_radius_m", "entry_spiral_error_m"}


def test_every_replayed_name_is_declared() -> None:
    answer = {
        "q2": {"termination_time_s": 1.0},
        "q3": {"pitch_m": 0.5},
        "q4": {"turn_length_m": 1.0, "path": EXACT_PATH},
        "q5": {"head_speed_mps": 1.0},
    }
    assert set(dragon.replay(OFFICIAL, answer)) == {entry.name for entry in TASK.replay_names}


@pytest.mark.parametrize("pitch", [0.001, 0.0123, 0.28124999, 0.3, 0.30001, 0.417, 0.4503373930, 0.9, 1.7, 3.0])
def test_any_pitch_is_replayed_in_time(pitch: float) -> None:
    start = time.process_time()
    gap = dragon.replay(OFFICIAL, {"q3": {"pitch_m": pitch}})["q3_min_gap_m"]
    assert time.process_time() - start < 15.0
    assert math.isfinite(gap)
    assert (gap >= -1e-6) == (pitch >= 0.45033)


@pytest.mark.parametrize("number", [0.0, -1000.0, 1000.0, 1e-300, -1e-300, 4.5])
def test_silly_numbers_give_finite_values(number: float) -> None:
    point = [number, -number]
    path = {name: point if isinstance(EXACT_PATH[name], list) else number for name in EXACT_PATH}
    answer = {
        "q2": {"termination_time_s": number},
        "q3": {"pitch_m": max(number, 0.001)},
        "q4": {"turn_length_m": number, "path": path},
        "q5": {"head_speed_mps": number},
    }
    assert all(math.isfinite(value) for value in dragon.replay(OFFICIAL, answer).values())


@pytest.mark.parametrize(
    "answer",
    [
        {"q2": {"termination_time_s": True}, "q3": {"pitch_m": "0.5"}, "q5": None},
        {"q4": []},
        {"q4": {"path": {"entry_m": [1.0], "centre1_m": "x", "radius1_m": math.nan}}},
        {"q5": {"head_speed_mps": math.inf}},
    ],
)
def test_what_is_no_number_counts_as_absent(answer: dict[str, Any]) -> None:
    assert set(dragon.replay(OFFICIAL, answer)) <= {"turn_length_m"}


def test_the_peak_is_linear_in_the_head_speed() -> None:
    one, two = (dragon.replay(OFFICIAL, {"q5": {"head_speed_mps": v}})["peak_speed_mps"] for v in (1.0, 1.25))
    assert two == pytest.approx(1.25 * one, rel=1e-15)
    assert one == pytest.approx(1.6047933789666442, abs=1e-12)


# ---------------------------------------------------------------- parameters and sampling


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"boards": 223.0}, "parameter boards is 223.0; it must be an integer"),
        ({"boards": True}, "parameter boards is True; it must be a number"),
        ({"boards": 301}, r"parameter boards is 301; it must lie in \[80, 300\]"),
        ({"head_board_m": "3.41"}, "parameter head_board_m is '3.41'; it must be a number"),
        ({"spiral_pitch_m": math.nan}, "parameter spiral_pitch_m is nan; it must lie in"),
        ({"spiral_pitch_m": 0.5501234}, "at most 3 decimals"),
        ({"speed_cap_mps": 3.1}, r"must lie in \[1.5, 3.0\]"),
        ({"start_turn": 14}, "parameter start_turn is 14; it must be at least 15"),
        ({"spiral_pitch_m": 0.4}, "parameter spiral_pitch_m is 0.4; it must be at least 0.4"),
        ({"arc_ratio": 2.2}, "must not exceed 2.7"),
        ({"turn_pitch_m": 3.1}, "parameter turn_pitch_m is 3.1; the turning radius over it is 1.45"),
        ({"surprise": 1}, "parameter surprise is unknown"),
    ],
)
def test_check_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInstance, match=message):
        dragon.check(OFFICIAL | change)


def test_check_names_what_is_missing() -> None:
    dragon.check(OFFICIAL)
    for name in OFFICIAL:
        with pytest.raises(BadInstance, match=f"parameter {name} is missing"):
            dragon.check({key: value for key, value in OFFICIAL.items() if key != name})


@pytest.mark.parametrize("name", sorted(dragon.RANGES))
def test_check_refuses_what_is_just_outside(name: str) -> None:
    low, high = dragon.RANGES[name]
    for value in (low - 1, high + 1):
        with pytest.raises(BadInstance, match=f"parameter {name} is"):
            dragon.check(OFFICIAL | {name: value})


@pytest.mark.parametrize("seed", [-1, 2**63, True, 1.5, "1", None])
def test_sample_refuses_other_seeds(seed: Any) -> None:
    with pytest.raises(BadInstance, match="0 <= seed < 2"):
        dragon.sample(seed)


def test_sampling_is_a_function_of_the_seed() -> None:
    drawn = [dragon.sample(seed) for seed in range(40)]
    assert drawn == [dragon.sample(np.int64(seed)) for seed in range(40)]
    assert json.loads(json.dumps(drawn)) == drawn
    assert len({json.dumps(one) for one in drawn}) == 40
    assert OFFICIAL not in drawn
    for one in drawn:
        dragon.check(one)
    for name in OFFICIAL:
        assert len({one[name] for one in drawn}) > 5


def test_a_golden_draw() -> None:
    assert dragon.sample(0) == {
        "boards": 169,
        "head_board_m": 2.56,
        "body_board_m": 1.63,
        "board_width_m": 0.4,
        "hole_inset_m": 0.285,
        "spiral_pitch_m": 0.58,
        "start_turn": 11,
        "head_speed_mps": 0.8,
        "turn_diameter_m": 7.5,
        "turn_pitch_m": 1.21,
        "arc_ratio": 2.2,
        "speed_cap_mps": 2.3,
    }


def test_sampling_is_quick() -> None:
    start = time.process_time()
    for seed in range(20):
        dragon.sample(seed)
    assert (time.process_time() - start) / 20 < 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_sampled_instances_are_well_posed(seed: int) -> None:
    """The reference exists, the trivial answers are feasible and score at most one half, and so does the best hold."""
    parameters = dragon.sample(seed)
    reference = dragon.reference(parameters)
    for values, holds in ((reference["baseline"], 0.0), (reference["anchor"], 1e-9)):
        replayed = dragon.replay(
            parameters,
            {
                "q2": {"termination_time_s": values["q2_termination_time_s"]},
                "q3": {"pitch_m": values["q3_pitch_m"]},
                "q4": {},
                "q5": {"head_speed_mps": values["q5_head_speed_mps"]},
            },
        )
        assert values["q2_termination_time_s"] <= replayed["first_overlap_time_s"] + holds
        assert replayed["q3_min_gap_m"] >= -holds
        assert replayed["peak_speed_mps"] <= parameters["speed_cap_mps"] + holds
    for metric in TASK.metrics:
        best, trivial = (Fraction(reference[part][metric.key]) for part in ("anchor", "baseline"))
        assert abs(best - trivial) >= Fraction(2, 100) * best
        missed = score.shortfall(metric.direction, best, trivial)
        excess = max(Fraction(0), missed - metric.tolerance)
        assert score.shape_score(metric, excess, score.band(best, trivial, metric.tolerance)) == 0


# ---------------------------------------------------------------- statement and figures


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("seed", [None, 3])
def test_statements_name_every_fact(language: Any, seed: int | None) -> None:
    parameters = OFFICIAL if seed is None else dragon.sample(seed)
    template = string.Template((TASK.folder / f"statement.{language}.md").read_text(encoding="utf-8"))
    facts = dragon.facts(parameters, language)
    text = template.substitute(facts)
    assert "$" not in text
    for name in parameters:
        assert name in template.get_identifiers()
        assert float(facts[name]) == parameters[name]
    for name in dragon.figures(parameters, language):
        assert f"figures/{name}" in text


def test_statements_do_not_tell_the_answers() -> None:
    for language in ("en", "zh"):
        text = (TASK.folder / f"statement.{language}.md").read_text(encoding="utf-8")
        assert not any(digits in text for digits in ("412.4", "0.4503", "13.62", "1.2462", "1.6047", "14.47"))


def test_both_statements_use_the_same_facts() -> None:
    used = [
        set(string.Template((TASK.folder / f"statement.{lang}.md").read_text(encoding="utf-8")).get_identifiers())
        for lang in ("en", "zh")
    ]
    assert used[0] == used[1] <= set(dragon.facts(OFFICIAL, "en"))


def test_figures_are_the_same_bytes_each_time() -> None:
    once, again = dragon.figures(OFFICIAL, "en"), dragon.figures(OFFICIAL, "zh")
    assert once == again
    assert sorted(once) == ["boards.png", "spiral.png", "turning_circle.png"]
    other = dragon.figures(dragon.sample(1), "en")
    for name, data in once.items():
        assert data.startswith(b"\x89PNG")
        assert data[16:24] == (800).to_bytes(4, "big") + (600).to_bytes(4, "big")
        assert b"tEXt" not in data
        assert b"tIME" not in data
        assert other[name] != data


# ---------------------------------------------------------------- the register


def test_the_register_finds_the_module() -> None:
    assert module_for("cumcm-2024-a") is dragon
    for name in ("cumcm-2024-z", "cumcm_2024_a", "../x", "", "mcm-1999-a"):
        with pytest.raises(UnknownTask, match="no problem module"):
            module_for(name)
