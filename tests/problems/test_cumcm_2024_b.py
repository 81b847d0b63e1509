"""Production decisions: replay, reference, trivial answers, sampling, statements and figures."""

from __future__ import annotations

import copy
import json
import math
import string
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tbmm_env.errors import BadInstance
from tbmm_env.judge import score
from tbmm_env.judge.artifact import parse, validate
from tbmm_env.judge.replay import round_to_grid
from tbmm_env.problems import cumcm_2024_b as production
from tbmm_env.problems import module_for
from tbmm_env.problems.cumcm_2024_b import sampling
from tbmm_env.problems.cumcm_2024_b.optimum import best_policy
from tbmm_env.problems.cumcm_2024_b.parameters import setting
from tbmm_env.tasks import load

TASK = load("cumcm-2024-b")
OFFICIAL: dict[str, Any] = dict(production.OFFICIAL)
GIVEN = setting(OFFICIAL)
CASES = [f"q2_case{number}_profit_yuan" for number in range(1, 7)]
PROFITS = [*CASES, "q3_profit_yuan"]
TRUTH = [18.841111, 12.0, 16.474444, 14.75, 14.963333, 21.67867, 60.222222]
"""Known beforehand: closed form with enumeration, and a simulation."""

Q3_PARTS = {"inspect_parts": [1] * 8}
Q3: list[tuple[list[int], list[int], float]] = [
    ([1, 1, 1, 0], [1, 1, 1, 1], 60.222222),
    ([1, 1, 1, 1], [1, 1, 1, 1], 58.0),
    ([0, 0, 0, 1], [1, 1, 1, 1], 59.3692),
    ([1, 1, 1, 0], [1, 1, 1, 0], 47.407407),
    ([1, 1, 1, 0], [0, 0, 0, 0], 39.341564),
]


def optimum() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((TASK.folder / "submissions/scored/optimum.json").read_text(encoding="utf-8"))
    return found


def drawn(seed: int) -> dict[str, Any]:
    return dict(production.sample(seed))


# ---------------------------------------------------------------- known truths


def test_the_reference_reproduces_known_values() -> None:
    anchor = production.reference(OFFICIAL)["anchor"]
    assert [anchor[key] for key in PROFITS] == pytest.approx(TRUTH, abs=1e-6)
    assert (anchor["q1_reject_sample_size"], anchor["q1_accept_sample_size"]) == (368, 187)


def test_the_frozen_anchor_is_the_reference() -> None:
    anchor = production.reference(OFFICIAL)["anchor"]
    for metric in TASK.metrics:
        frozen = round_to_grid(TASK.anchor[metric.key], metric.grid)
        assert round_to_grid(anchor[metric.key], metric.grid) == frozen


def test_baselines_are_the_best_trivial_answers() -> None:
    """Values of each trivial answer to the official instance, worked out once by enumeration."""
    found = production.trivial_answers(OFFICIAL)
    worth = {name: [production.replay(OFFICIAL, answer)[key] for key in PROFITS] for name, answer in found.items()}
    assert worth["everything"] == pytest.approx([15.444444, 9.75, 15.444444, 14.75, 9.472222, 16.0, 58.0], abs=1e-6)
    assert worth["nothing"][5] == pytest.approx(21.67867, abs=1e-6)
    assert worth["greedy"][2] == pytest.approx(16.429444, abs=1e-6)
    assert worth["rule"][4] == pytest.approx(14.652222, abs=1e-6)
    assert worth.pop("official_constant") == pytest.approx(TRUTH, abs=1e-6)
    baseline = production.reference(OFFICIAL)["baseline"]
    assert [baseline[key] for key in PROFITS] == np.max(list(worth.values()), axis=0).tolist()
    assert (baseline["q1_reject_sample_size"], baseline["q1_accept_sample_size"]) == (924, 612)


@pytest.mark.parametrize(("inspect", "dismantle", "profit"), Q3)
def test_known_policies_of_question_3(inspect: list[int], dismantle: list[int], profit: float) -> None:
    answer = {"q3": Q3_PARTS | {"inspect_assemblies": inspect, "dismantle_assemblies": dismantle}}
    assert production.replay(OFFICIAL, answer)["q3_profit_yuan"] == pytest.approx(profit, abs=1e-6)


def test_cases_without_recycling() -> None:
    """Known beforehand: the best without dismantling."""
    best = [16.73251, 4.8125, 14.436214, 8.5, 11.987654, 21.67867]
    rows = [[i >> 2 & 1, i >> 1 & 1, i & 1, 0] for i in range(8)]
    names = ("inspect_part1", "inspect_part2", "inspect_product", "dismantle")
    values = []
    for row in rows:
        answer = {"q2": {"cases": [dict(zip(names, row, strict=True))] * 6}}
        replayed = production.replay(OFFICIAL, answer)
        values.append([replayed[key] for key in CASES])
    assert np.max(values, axis=0) == pytest.approx(best, abs=1e-6)


def test_published_values_and_the_exact_optimum() -> None:
    """What is excluded as above the bound is above it, nothing else of the same kind is."""
    for paper in TASK.papers:
        if paper.metric in PROFITS and paper.exclusion_reason != "different_unit_of_analysis":
            above = paper.value - paper.resolution > TASK.anchor[paper.metric]
            assert above == (paper.exclusion_reason == "infeasible_by_bound"), paper
    assert not any(paper.votes for paper in TASK.papers)


# ---------------------------------------------------------------- replay


def test_what_is_absent_is_absent() -> None:
    assert production.replay(OFFICIAL, {}) == {}
    answer = {"q1": {"reject": {"sample_size": 9}}, "q2": {"cases": []}, "q3": Q3_PARTS}
    assert production.replay(OFFICIAL, answer) == {}
    answer = optimum()
    del answer["q2"]["cases"][2]["dismantle"]
    assert set(PROFITS) - set(production.replay(OFFICIAL, answer)) == {"q2_case3_profit_yuan"}
    answer["q2"]["cases"].append({})
    assert set(PROFITS) - set(production.replay(OFFICIAL, answer)) == set(CASES)


def test_every_replayed_name_is_declared() -> None:
    assert set(production.replay(OFFICIAL, optimum())) == {entry.name for entry in TASK.replay_names}


@pytest.mark.parametrize("bad", [0.5, -1, 2, True, "1", None, math.nan, math.inf, [1], {}])
def test_what_is_no_decision_counts_as_absent(bad: Any) -> None:
    answer = optimum()
    answer["q2"]["cases"][0]["dismantle"] = bad
    answer["q3"]["inspect_parts"][3] = bad
    answer["q1"]["reject"]["sample_size"] = bad if bad not in (True, 2) else None
    replayed = production.replay(OFFICIAL, answer)
    assert not {"q2_case1_profit_yuan", "q3_profit_yuan", "q1_reject_nominal_risk"} & set(replayed)
    assert "q2_case2_profit_yuan" in replayed


def test_claims_change_nothing() -> None:
    claims = {"q3_profit_yuan": 99.0, "q2_case1_profit_yuan": 26.374}
    assert production.replay(OFFICIAL, optimum() | {"claims": claims}) == production.replay(OFFICIAL, optimum())


def test_decisions_are_not_mixed_up() -> None:
    """Each decision changes its own value, and only that."""
    base = production.replay(OFFICIAL, optimum())
    for index in range(6):
        answer = optimum()
        answer["q2"]["cases"][index]["inspect_part2"] ^= 1
        changed = production.replay(OFFICIAL, answer)
        assert [key for key in base if base[key] != changed[key]] == [CASES[index]]
        assert changed[CASES[index]] < base[CASES[index]]
    for name in ("inspect_parts", "inspect_assemblies", "dismantle_assemblies"):
        for place in range(len(optimum()["q3"][name])):
            answer = optimum()
            answer["q3"][name][place] ^= 1
            assert production.replay(OFFICIAL, answer)["q3_profit_yuan"] < base["q3_profit_yuan"] - 0.1


def test_the_largest_answers_are_replayed_in_time() -> None:
    start = time.process_time()
    for c in (0, 2499, 4999, 5000):
        plan = {"sample_size": 5000, "acceptance_number": c}
        answer = {
            "q1": {"reject": plan, "accept": plan},
            "q2": {"cases": [{}] * 12},
            "q3": {"inspect_parts": [0] * 12, "inspect_assemblies": [0] * 11, "dismantle_assemblies": [0] * 11},
            "claims": dict.fromkeys([metric.key for metric in TASK.metrics], 1.0),
        }
        assert all(math.isfinite(value) for value in production.replay(OFFICIAL, answer).values())
        assert all(math.isfinite(value) for value in production.replay(drawn(4), answer).values())
    assert time.process_time() - start < 15.0


# ---------------------------------------------------------------- parameters


def changed(path: str, value: Any) -> dict[str, Any]:
    """The official parameters with another value at a path; None takes the field away."""
    parameters = copy.deepcopy(OFFICIAL)
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    node: Any = parameters
    for step in steps:
        node = node[step]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return parameters


PRODUCT = OFFICIAL["system"]["assemblies"][3]
REFUSED = [
    ("surprise", 1, "parameter surprise is unknown"),
    ("nominal_rate", None, "parameter nominal_rate is missing"),
    ("nominal_rate", "0.1", "parameter nominal_rate is '0.1'; it must be a number"),
    ("nominal_rate", True, "parameter nominal_rate is True; it must be a number"),
    ("nominal_rate", math.nan, "parameter nominal_rate is nan; it must lie in"),
    ("nominal_rate", 0.1234, "at most 3 decimals"),
    ("nominal_rate", 0.2, "reject.alternative_rate is 0.15; it must be above nominal_rate = 0.2"),
    ("accept.alternative_rate", 0.1, "it must be below nominal_rate = 0.1"),
    ("accept.alternative_rate", 0.095, "a simple plan takes [0-9]+ units"),
    ("reject.nominal_risk", 0.5, r"must lie in \[0.01, 0.25\]"),
    ("reject", [], "parameter reject is .*; it must be an object"),
    ("cases", [], "parameter cases has 0 entries; it must be a list of 6 to 6"),
    ("cases.2.price_yuan", -1, r"cases\[2\].price_yuan is -1; it must lie in"),
    ("cases.2", OFFICIAL["system"], r"cases\[2\] has 8 parts and 4 assemblies; it must have 2 parts"),
    ("part_count", 7, "parameter part_count is 7; it must be 8"),
    ("assembly_count", 4.0, "parameter assembly_count is 4.0; it must be 4"),
    ("system.parts.1.purchase_yuan", 8.123, "at most 2 decimals"),
    ("system.parts.1.extra", 8, r"parameter system.parts\[1\].extra is unknown"),
    ("system.assemblies.3.components", ["A1", "A2"], "A3 must be a component of one assembly"),
    ("system.assemblies.0.components", ["P1", "P2", "P3", "A2"], "names 'A2'; it must be a part or an earlier"),
    ("system.assemblies.1.components", ["P3", "P4"], "names 'P3'; it must be a part or an earlier"),
    ("system.assemblies.2.components", ["P7"], "has 1 entries; it must be a list of 2 to 5"),
    ("system.assemblies.3", PRODUCT | {"defect_rate": 0.5}, r"must lie in \[0.01, 0.4\]"),
]


@pytest.mark.parametrize(("path", "value", "message"), REFUSED)
def test_check_refuses(path: str, value: Any, message: str) -> None:
    with pytest.raises(BadInstance, match=message):
        production.check(changed(path, value))


def test_check_refuses_trees_that_are_too_high() -> None:
    parameters = copy.deepcopy(OFFICIAL)
    shape = [["P1", "P2"], ["A1", "P3"], ["A2", "P4"], ["A3", "P5"], ["A4", "P6", "P7", "P8"]]
    parameters["system"]["assemblies"] = [PRODUCT | {"components": names} for names in shape]
    with pytest.raises(BadInstance, match="has 5 levels; it may have 4"):
        production.check(parameters | {"assembly_count": 5})
    parameters["system"]["assemblies"][3:] = [PRODUCT | {"components": ["A3", "P5", "P6", "P7", "P8"]}]
    production.check(parameters)


def test_the_official_parameters_pass() -> None:
    production.check(OFFICIAL)
    assert module_for("cumcm-2024-b") is production


# ---------------------------------------------------------------- sampling


@pytest.mark.parametrize("seed", [-1, 2**63, True, 1.5, "1", None])
def test_sample_refuses_other_seeds(seed: Any) -> None:
    with pytest.raises(BadInstance, match="0 <= seed < 2"):
        production.sample(seed)


def test_sampling_is_a_function_of_the_seed() -> None:
    found = [drawn(seed) for seed in range(20)]
    assert found == [drawn(np.int64(seed)) for seed in range(20)]  # type: ignore[arg-type]
    assert json.loads(json.dumps(found)) == found
    assert len({json.dumps(one) for one in found}) == 20
    assert OFFICIAL not in found


def test_levels_set_the_size_of_the_tree() -> None:
    assert production.LEVELS == len(sampling.SIZES) == 5
    shapes = set()
    for seed in [*range(40), 2**62, 2**63 - 1]:
        system = setting(drawn(seed)).system
        (least, most), (low, high) = sampling.SIZES[seed % production.LEVELS]
        assert least <= len(system.parts) <= most
        assert low <= system.depths[-1] <= high
        shapes.add(tuple(made.components for made in system.assemblies))
    assert len(shapes) > 30


def test_a_golden_draw() -> None:
    parameters = drawn(0)
    assert parameters["nominal_rate"] == 0.11
    assert parameters["reject"] == {"nominal_risk": 0.02, "alternative_rate": 0.193, "alternative_risk": 0.15}
    system = parameters["system"]
    parts = [(13.5, 0.06, 8.5), (14.5, 0.08, 13.0), (11.0, 0.06, 7.5)]
    assert [(p["purchase_yuan"], p["defect_rate"], p["inspection_yuan"]) for p in system["parts"]] == parts
    assert system["assemblies"] == [
        {
            "components": ["P1", "P2", "P3"],
            "defect_rate": 0.1,
            "assembly_yuan": 6.0,
            "inspection_yuan": 1.0,
            "dismantling_yuan": 32.0,
        }
    ]
    assert (system["price_yuan"], system["exchange_loss_yuan"]) == (92.0, 34.5)
    assert (parameters["cases"][5]["price_yuan"], parameters["cases"][5]["exchange_loss_yuan"]) == (38.0, 6.5)


def test_sampling_and_reference_are_quick() -> None:
    start = time.process_time()
    for seed in range(20):
        production.reference(drawn(seed))
    assert (time.process_time() - start) / 20 < 1.0


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 9, 276, 2**63 - 1])
def test_trivial_answers_earn_nothing_on_sampled_instances(seed: int) -> None:
    parameters = drawn(seed)
    reference = production.reference(parameters)
    answers = production.trivial_answers(parameters)
    assert set(answers) > {"official_constant", "greedy", "rule", "random"}
    reached = dict.fromkeys(reference["baseline"], 0)
    for name, answer in answers.items():
        assert validate(parse(json.dumps(answer).encode()), TASK.answer_schema).value is not None, name
        replayed = production.replay(parameters, answer)
        values = {key: replayed[key] for key in PROFITS}
        for situation, plan in answer["q1"].items():
            values[f"q1_{situation}_sample_size"] = plan["sample_size"]
            for risk in ("nominal_risk", "alternative_risk"):
                assert replayed[f"q1_{situation}_{risk}"] <= parameters[situation][risk]
        for metric in TASK.metrics:
            if metric.key not in values:
                continue
            best, trivial = (Fraction(reference[part][metric.key]) for part in ("anchor", "baseline"))
            assert abs(best - trivial) >= Fraction(3, 100) * best
            missed = score.shortfall(metric.direction, best, Fraction(values[metric.key]))
            assert missed >= abs(best - trivial) - Fraction(1, 10**9)
            excess = max(Fraction(0), missed - metric.tolerance)
            assert score.shape_score(metric, excess, score.band(best, trivial, metric.tolerance)) < 0.001
            reached[metric.key] += missed == abs(best - trivial)
    assert all(reached.values())


def test_a_poor_draw_is_refused() -> None:
    """The official cases that a trivial policy nearly solves, the official demand, and a price that earns nothing."""
    assert [sampling._good_system(case, index) for index, case in enumerate(GIVEN.cases)][1:] == [False] * 5
    assert not sampling._good_demand(GIVEN.reject)
    parameters = drawn(7)
    assert sampling._good_demand(setting(parameters).reject)
    assert all(sampling._good_system(case, index) for index, case in enumerate(setting(parameters).cases))
    assert sampling._good_system(setting(parameters).system, None)
    cheap = copy.deepcopy(parameters)
    cheap["system"]["price_yuan"] -= int(best_policy(setting(parameters).system)[1]) - 1
    assert not sampling._good_system(setting(cheap).system, None)


# ---------------------------------------------------------------- statement and figures


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("seed", [None, 3, 9])
def test_statements_name_every_number(language: Any, seed: int | None) -> None:
    parameters = OFFICIAL if seed is None else drawn(seed)
    template = string.Template((TASK.folder / f"statement.{language}.md").read_text(encoding="utf-8"))
    facts = production.facts(parameters, language)
    text = template.substitute(facts)
    assert "$" not in text
    assert set(template.get_identifiers()) == set(facts)
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    for index, part in enumerate(parameters["system"]["parts"]):
        cells = [f"{100 * part['defect_rate']:g}%", f"{part['purchase_yuan']:g}", f"{part['inspection_yuan']:g}"]
        assert [f"P{index + 1}", *cells] in rows
    for made in parameters["system"]["assemblies"]:
        costs = [f"{made[key]:g}" for key in ("assembly_yuan", "inspection_yuan", "dismantling_yuan")]
        assert [" + ".join(made["components"]), f"{100 * made['defect_rate']:g}%", *costs] in [row[1:] for row in rows]
    for number, case in enumerate(parameters["cases"], 1):
        made = case["assemblies"][0]
        row = [str(number)]
        for part in case["parts"]:
            row += [f"{100 * part['defect_rate']:g}%", f"{part['purchase_yuan']:g}", f"{part['inspection_yuan']:g}"]
        row += [f"{100 * made['defect_rate']:g}%"]
        row += [f"{made[key]:g}" for key in ("assembly_yuan", "inspection_yuan", "dismantling_yuan")]
        assert [*row, f"{case['price_yuan']:g}", f"{case['exchange_loss_yuan']:g}"] in rows
    for name in production.figures(parameters, language):
        assert f"figures/{name}" in text


def test_statements_do_not_tell_the_answers() -> None:
    for language in ("en", "zh"):
        text = (TASK.folder / f"statement.{language}.md").read_text(encoding="utf-8")
        assert not any(digits in text for digits in ("18.84", "16.47", "14.96", "21.67", "60.22", "368", "187"))


def test_figures_are_the_same_bytes_each_time() -> None:
    once, again = production.figures(OFFICIAL, "en"), production.figures(OFFICIAL, "zh")
    assert once == again
    assert sorted(once) == ["order.png", "system.png"]
    assert production.figures(drawn(1), "en")["system.png"] != once["system.png"]
    for data in once.values():
        assert data.startswith(b"\x89PNG")
        assert data[16:24] == (900).to_bytes(4, "big") + (700).to_bytes(4, "big")
        assert b"tEXt" not in data
        assert b"tIME" not in data
