"""Smoke screen: replay, gate evidence, reference, sampling, trivial answers and figures."""

from __future__ import annotations

import json
import math
import string
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tbmm_env.errors import BadInstance
from tbmm_env.judge import score
from tbmm_env.judge.artifact import parse, validate
from tbmm_env.judge.gate import resolve
from tbmm_env.judge.replay import round_to_grid
from tbmm_env.problems import cumcm_2025_a as smoke
from tbmm_env.problems import module_for
from tbmm_env.problems.cumcm_2025_a import official, sampling
from tbmm_env.problems.cumcm_2025_a.parameters import scene
from tbmm_env.tasks import load

TASK = load("cumcm-2025-a")
OFFICIAL = dict(smoke.OFFICIAL)
QUESTIONS = ("q2", "q3", "q4", "q5")
METRICS = [metric.key for metric in TASK.metrics]
SEEDS = [0, 1, 2, 3, 4, 2**63 - 1]


def best() -> dict[str, Any]:
    return {"q1": {"shield_time_s": 1.391643}} | {
        question: [plan.record() for plan in plans] for question, plans in official.BEST.items()
    }


def states(parameters: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, str]:
    """State of every obligation, as the judge decides it."""
    exact = validate(parse(json.dumps(answer).encode()), TASK.answer_schema).value
    assert exact is not None
    grids = {entry.name: entry.grid for entry in TASK.replay_names}
    replayed = {name: round_to_grid(value, grids[name]) for name, value in smoke.replay(parameters, answer).items()}
    return {entry.spec.id: entry.state for entry in resolve(TASK.obligations, exact, replayed, parameters)}


def violated(answer: Mapping[str, Any]) -> set[str]:
    return {key for key, state in states(OFFICIAL, answer).items() if state == "violated"}


# ---------------------------------------------------------------- known truths


def test_the_bars_are_reached() -> None:
    found = smoke.replay(OFFICIAL, best())
    assert found["q1_shield_time_s"] == pytest.approx(1.391643, abs=5e-7)
    assert found["q2_shield_time_s"] >= 4.58806
    assert found["q3_shield_time_s"] >= 7.6202
    assert found["q4_shield_time_s"] >= 11.7462
    assert found["q5_total_shield_time_s"] >= 49.06
    assert found["q5_min_missile_shield_time_s"] >= 15.13


def test_the_frozen_anchor_is_the_best_answers_worth() -> None:
    found = smoke.replay(OFFICIAL, best())
    for metric in TASK.metrics:
        frozen = round_to_grid(TASK.anchor[metric.key], metric.grid)
        assert abs(round_to_grid(found[metric.key], metric.grid) - frozen) <= metric.grid
    optimum = json.loads((TASK.folder / "submissions/scored/optimum.json").read_text(encoding="utf-8"))
    assert {question: optimum[question] for question in QUESTIONS} == {q: best()[q] for q in QUESTIONS}


def test_the_best_answer_keeps_every_rule() -> None:
    assert set(states(OFFICIAL, best()).values()) == {"holds"}


def test_the_protocol() -> None:
    module = module_for("cumcm-2025-a")
    assert module is smoke
    assert smoke.LEVELS == 5
    assert set(smoke.RANGES) == set(smoke.OFFICIAL)


# ---------------------------------------------------------------- replay


def test_what_is_absent_is_absent() -> None:
    assert smoke.replay(OFFICIAL, {}) == {}
    assert set(smoke.replay(OFFICIAL, {"q1": {}})) == {"q1_shield_time_s"}
    plan = best()["q2"][0]
    for name in plan:
        cut = {key: value for key, value in plan.items() if key != name}
        assert smoke.replay(OFFICIAL, {"q2": [cut]}) == {}
    assert smoke.replay(OFFICIAL, {"q2": [plan | {"bombs": [{"fuse_s": 1.0}]}]}) == {}
    for wrong in (True, "1", None, math.nan, math.inf, 1.5):
        assert smoke.replay(OFFICIAL, {"q2": [plan | {"drone": wrong}]}) == {}


def test_an_empty_plan_hides_nothing() -> None:
    found = smoke.replay(OFFICIAL, {question: [] for question in QUESTIONS})
    assert set(found.values()) == {0.0}
    no_bombs = smoke.replay(OFFICIAL, {"q5": [plan | {"bombs": []} for plan in best()["q5"]]})
    assert no_bombs["q5_total_shield_time_s"] == 0.0


def test_every_replayed_name_is_declared() -> None:
    assert set(smoke.replay(OFFICIAL, best())) == {entry.name for entry in TASK.replay_names}


def test_order_and_whole_turns_do_not_matter() -> None:
    answer = best()
    turned = {
        question: [
            plan | {"heading_deg": plan["heading_deg"] - 360.0, "bombs": plan["bombs"][::-1]}
            for plan in answer[question][::-1]
        ]
        for question in QUESTIONS
    }
    once, again = smoke.replay(OFFICIAL, answer), smoke.replay(OFFICIAL, turned)
    for key, value in again.items():
        assert value == pytest.approx(once[key], abs=1e-9)


def test_more_bombs_never_hide_less() -> None:
    plans = best()["q5"]
    totals = [smoke.replay(OFFICIAL, {"q5": plans[:count]})["q5_total_shield_time_s"] for count in range(6)]
    assert totals == sorted(totals)
    assert totals[0] == 0.0


def test_a_cloud_that_bursts_after_the_arrival_hides_nothing() -> None:
    plan = best()["q2"][0] | {"bombs": [{"release_time_s": 67.0, "fuse_s": 0.0}]}
    assert smoke.replay(OFFICIAL, {"q2": [plan]})["q2_shield_time_s"] == 0.0


@pytest.mark.parametrize("kind", ["random", "best", "target"])
def test_the_largest_answer_is_replayed_in_time(kind: str) -> None:
    """12 plans of 8 bombs in every question, the most the schema allows."""
    generator = np.random.default_rng(3)
    plans = []
    for number in range(12):
        bombs = [
            {"release_time_s": float(generator.uniform(0, 30)), "fuse_s": float(generator.uniform(0, 15))}
            for _ in range(8)
        ]
        plan = {"drone": 1 + number % 5, "heading_deg": float(generator.uniform(0, 360)), "speed_mps": 120.0}
        plans.append(plan | {"bombs": bombs})
    if kind == "best":  # every bomb the same, so that all of them need the finest search
        plans = [best()["q2"][0] | {"bombs": best()["q2"][0]["bombs"] * 8}] * 12
    if kind == "target":  # clouds over the target, from drone 3
        heading = math.degrees(math.atan2(3200.0, -6000.0)) % 360.0
        bombs = [{"release_time_s": 36.0 + 0.1 * k, "fuse_s": 11.7} for k in range(8)]
        plans = [{"drone": 3, "heading_deg": heading, "speed_mps": 140.0 + 0.2 * k, "bombs": bombs} for k in range(12)]
    answer = {question: plans for question in QUESTIONS}
    start = time.process_time()
    found = smoke.replay(OFFICIAL, answer)
    assert time.process_time() - start < 10.0
    assert all(math.isfinite(value) for value in found.values())


@pytest.mark.parametrize("number", [-100.0, 0.0, 100.0, 1e-300])
def test_silly_numbers_give_finite_values(number: float) -> None:
    bombs = [{"release_time_s": number, "fuse_s": number}, {"release_time_s": 1000.0, "fuse_s": -number}]
    plans = [
        {"drone": drone, "heading_deg": number, "speed_mps": speed, "bombs": bombs}
        for drone in (0, 1, 99)
        for speed in (0.0, 1000.0)
    ]
    found = smoke.replay(OFFICIAL, {question: plans for question in QUESTIONS})
    assert all(math.isfinite(value) for value in found.values())


# ---------------------------------------------------------------- the gate


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("field", "inside", "outside", "name"),
    [
        ("speed_mps", 140.000001, 140.0000011, "speed_in_range"),
        ("speed_mps", 69.999999, 69.9999989, "speed_in_range"),
        ("release_time_s", -0.000001, -0.0000011, "release_not_negative"),
        ("fuse_s", -0.000001, -0.0000011, "fuse_not_negative"),
        ("fuse_s", 19.1662, 19.1664, "burst_above_ground"),
    ],
)
def test_limits_from_both_sides(question: str, field: str, inside: float, outside: float, name: str) -> None:
    def moved(value: float) -> dict[str, Any]:
        plan = json.loads(json.dumps(best()[question][0]))
        (plan if field in plan else plan["bombs"][0])[field] = value
        return {question: [plan | {"bombs": plan["bombs"][:1]}]}

    assert violated(moved(inside)) == set()
    assert violated(moved(outside)) == {f"{question}_{name}"}


@pytest.mark.parametrize("question", ["q3", "q5"])
def test_releases_must_be_apart(question: str) -> None:
    plan = best()[question][0]
    for gap, broken in ((0.99999, set()), (0.999989, {f"{question}_releases_apart"})):
        bombs = [{"release_time_s": at, "fuse_s": 1.0} for at in (5.0 + gap, 5.0)]
        assert violated({question: [plan | {"bombs": bombs}]}) == broken


@pytest.mark.parametrize(
    ("question", "drones", "bombs", "broken"),
    [
        ("q2", [2], 1, {"q2_drones_allowed"}),
        ("q2", [1], 2, {"q2_one_bomb"}),
        ("q2", [1, 1], 0, {"q2_drones_once"}),
        ("q3", [1], 4, {"q3_bombs"}),
        ("q3", [5], 1, {"q3_drones_allowed"}),
        ("q4", [1, 4], 1, {"q4_drones_allowed"}),
        ("q4", [2], 2, {"q4_one_bomb_each"}),
        ("q4", [3, 3], 1, {"q4_drones_once"}),
        ("q5", [6], 1, {"q5_drones_allowed"}),
        ("q5", [0], 1, {"q5_drones_allowed"}),
        ("q5", [1], 4, {"q5_bombs"}),
        ("q5", [4, 5, 4], 1, {"q5_drones_once"}),
    ],
)
def test_rules_of_questions(question: str, drones: list[int], bombs: int, broken: set[str]) -> None:
    plans = [
        {"drone": drone, "heading_deg": 10.0 * number, "speed_mps": 100.0,
         "bombs": [{"release_time_s": 2.0 * k + 20.0 * number, "fuse_s": 1.0} for k in range(bombs)]}
        for number, drone in enumerate(drones)
    ]  # fmt: skip
    assert violated({question: plans}) == broken


def test_two_headings_of_one_drone_are_refused() -> None:
    """The fault of the published reproduction: a drone that is listed twice to turn on the way."""
    plans = best()["q5"]
    assert violated({"q5": [*plans, plans[0] | {"heading_deg": 10.0, "bombs": []}]}) == {"q5_drones_once"}


# ---------------------------------------------------------------- parameters and sampling


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bombs": 3.0}, "parameter bombs is 3.0; it must be an integer"),
        ({"bombs": 5}, r"parameter bombs is 5; it must lie in \[2, 4\]"),
        ({"sink_mps": True}, "parameter sink_mps is True; it must be a number"),
        ({"sink_mps": math.nan}, "parameter sink_mps is nan; it must lie in"),
        ({"sink_mps": 3.05}, "parameter sink_mps is 3.05; it may have at most 1 decimals"),
        ({"missiles_m": [[20000, 0, 2000]]}, "it must be a list of 2 to 4 entries"),
        ({"missiles_m": [[20000, 0, 2000]] * 2}, "no two entries may be equal"),
        ({"missiles_m": [[20000, 0], [1, 2, 3]]}, r"missiles_m\[0\] is \[20000, 0\]; it must be a point"),
        ({"missiles_m": [[20000, 0, 2000], [5000, 0, 900]]}, "it must be 8 to 30 km"),
        ({"drones_m": [[1, 2, 300.5], [1, 2, 300]]}, r"drones_m\[0\].z is 300.5; it must be an integer"),
        ({"q4_drones": [2, 1]}, "it must be rising integers"),
        ({"q4_drones": [1, 6]}, r"rising integers in \[1, 5\]"),
        ({"speed_min_mps": 100, "speed_max_mps": 105}, "at least 10 m/s above"),
        ({"q1_speed_mps": 60}, "parameter q1_speed_mps is 60.0; it must lie in"),
        ({"q1_fuse_s": 19.5}, "the bomb reaches the ground after 19.166 s"),
        ({"target_y_m": 0}, "it must be 60 to 500 m"),
        ({"surprise": 1}, "parameter surprise is unknown"),
    ],
)
def test_check_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInstance, match=message):
        smoke.check(OFFICIAL | change)


def test_check_names_what_is_missing() -> None:
    smoke.check(OFFICIAL)
    for name in OFFICIAL:
        with pytest.raises(BadInstance, match=f"parameter {name} is missing"):
            smoke.check({key: value for key, value in OFFICIAL.items() if key != name})


@pytest.mark.parametrize("seed", [-1, 2**63, True, 1.5, "1", None])
def test_sample_refuses_other_seeds(seed: Any) -> None:
    with pytest.raises(BadInstance, match="0 <= seed < 2"):
        smoke.sample(seed)


def test_sampling_is_a_function_of_the_seed_and_levels_differ() -> None:
    drawn = [smoke.sample(seed) for seed in range(15)]
    assert drawn[:5] == [smoke.sample(np.int64(seed)) for seed in range(5)]
    assert json.loads(json.dumps(drawn)) == drawn
    assert len({json.dumps(one) for one in drawn}) == 15
    assert OFFICIAL not in drawn
    for seed, one in enumerate(drawn):
        smoke.check(one)
        shape = sampling.SHAPES[1 + seed % smoke.LEVELS]
        for name, size in (
            ("drones", len(one["drones_m"])),
            ("missiles", len(one["missiles_m"])),
            ("bombs", one["bombs"]),
        ):
            assert shape[name][0] <= size <= shape[name][1]


@pytest.mark.parametrize("seed", SEEDS)
def test_sampled_instances_are_well_posed(seed: int) -> None:
    """The reference is ahead of every trivial answer on every metric, and a trivial answer scores at most 0.3."""
    parameters = smoke.sample(seed)
    reference = smoke.reference(parameters)
    answers = smoke.trivial_answers(parameters)
    assert sorted(answers) == ["greedy", "official_constant", "random", "rule"]
    for key in METRICS[1:]:
        assert reference["anchor"][key] >= 1.2 * reference["baseline"][key]
    for answer in answers.values():
        assert set(states(parameters, answer).values()) == {"holds"}
        replayed = smoke.replay(parameters, answer) | {"q1_shield_time_s": answer["q1"]["shield_time_s"]}
        total = Fraction(0)
        for metric in TASK.metrics:
            anchor, baseline = (Fraction(reference[part][metric.key]) for part in ("anchor", "baseline"))
            missed = score.shortfall(metric.direction, anchor, Fraction(replayed[metric.key])) - metric.tolerance
            width = score.band(anchor, baseline, metric.tolerance)
            total += metric.weight * score.shape_score(metric, max(Fraction(0), missed), width)
        assert total / sum(metric.weight for metric in TASK.metrics) <= Fraction(3, 10)


def test_a_draw_that_gives_nothing_to_earn_is_refused() -> None:
    """Mutants of a good instance: no drone can reach a line of sight; question 1 hides nothing."""
    parameters = smoke.sample(0)
    assert sampling.well_posed(scene(parameters))
    assert not sampling.well_posed(scene(parameters | {"drones_m": [[-20000, 9000, 1900], [-20000, -9000, 1900]]}))
    assert not sampling.well_posed(scene(parameters | {"q1_heading_deg": 90.0}))


def test_the_reference_of_the_official_instance_is_below_the_best_answer() -> None:
    reference = smoke.reference(OFFICIAL)
    found = smoke.replay(OFFICIAL, best())
    for key in METRICS[1:]:
        assert reference["baseline"][key] < reference["anchor"][key] < 1.03 * found[key]
    assert reference["baseline"]["q1_shield_time_s"] == pytest.approx(1.435082, abs=1e-6)
    assert reference == smoke.reference(OFFICIAL)


# ---------------------------------------------------------------- statement and figures


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("seed", [None, 3])
def test_statements_name_every_fact(language: Any, seed: int | None) -> None:
    parameters = OFFICIAL if seed is None else smoke.sample(seed)
    template = string.Template((TASK.folder / f"statement.{language}.md").read_text(encoding="utf-8"))
    facts = smoke.facts(parameters, language)
    text = template.substitute(facts)
    assert "$" not in text
    assert set(template.get_identifiers()) <= set(facts)
    for name, value in parameters.items():
        if isinstance(value, int | float):
            assert name in template.get_identifiers()
            assert float(facts[name]) == value
    for points in (parameters["missiles_m"], parameters["drones_m"]):
        assert all(" | ".join(map(str, point)) in text for point in points)
    for name in smoke.figures(parameters, language):
        assert f"figures/{name}" in text


def test_statements_do_not_tell_the_answers() -> None:
    for language in ("en", "zh"):
        text = (TASK.folder / f"statement.{language}.md").read_text(encoding="utf-8")
        assert not any(digits in text for digits in ("1.39", "4.58", "7.6", "11.7", "49.", "48."))


def test_figures_are_the_same_bytes_each_time() -> None:
    once, again = smoke.figures(OFFICIAL, "en"), smoke.figures(OFFICIAL, "zh")
    assert once == again
    assert sorted(once) == ["heights.png", "map.png", "target.png"]
    assert all(data.startswith(b"\x89PNG") for data in once.values())
    assert smoke.figures(smoke.sample(4), "en") != once
