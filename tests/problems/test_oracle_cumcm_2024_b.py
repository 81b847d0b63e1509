"""The independent solver of the production decisions against the true values, the reference and the replay."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tbmm_env.problems import cumcm_2024_b

SOLVER = Path(__file__).resolve().parents[2] / "tasks" / "cumcm-2024-b" / "solution" / "solve.py"
SEEDS = range(int(os.environ.get("TBMM_ORACLE_SEEDS", "2")))
TRUTH = {
    "q1_reject_sample_size": 368,
    "q1_accept_sample_size": 187,
    "q2_case1_profit_yuan": 18.841111,
    "q2_case2_profit_yuan": 12.0,
    "q2_case3_profit_yuan": 16.474444,
    "q2_case4_profit_yuan": 14.75,
    "q2_case5_profit_yuan": 14.963333,
    "q2_case6_profit_yuan": 21.67867,
    "q3_profit_yuan": 60.222222,
}


def run_solver(parameters, folder):
    """Answer of the solver, run as a program on an instance file."""
    instance, out = folder / "instance.json", folder / "answer.json"
    text = json.dumps({"task": "cumcm-2024-b", "version": "1", "parameters": parameters})
    instance.write_text(text, encoding="utf-8")
    command = [sys.executable, str(SOLVER), "--instance", str(instance), "--out", str(out)]
    subprocess.run(command, check=True, timeout=240)
    return json.loads(out.read_text(encoding="utf-8"))


def metrics(parameters, answer):
    """What the answer is worth by metric key; its risks keep their limits."""
    replayed = cumcm_2024_b.replay(parameters, answer)
    values = {key: value for key, value in replayed.items() if key.endswith("_profit_yuan")}
    for name in ("reject", "accept"):
        plan = answer["q1"][name]
        values[f"q1_{name}_sample_size"] = plan["sample_size"]
        assert 0 <= plan["acceptance_number"] <= plan["sample_size"]
        for risk in ("nominal_risk", "alternative_risk"):
            assert replayed[f"q1_{name}_{risk}"] <= parameters[name][risk]
    return values


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    return run_solver(dict(cumcm_2024_b.OFFICIAL), tmp_path_factory.mktemp("official"))


def test_official_true_values(official):
    assert metrics(dict(cumcm_2024_b.OFFICIAL), official) == pytest.approx(TRUTH, abs=1e-6)


def test_official_decisions(official):
    rows = [tuple(case.values()) for case in official["q2"]["cases"]]
    assert rows == [(1, 0, 0, 1), (1, 1, 0, 1), (1, 0, 1, 1), (1, 1, 1, 1), (0, 1, 0, 1), (0, 0, 0, 0)]
    assert official["q3"] == {
        "inspect_parts": [1] * 8,
        "inspect_assemblies": [1, 1, 1, 0],
        "dismantle_assemblies": [1, 1, 1, 1],
    }


def test_another_answer_is_worth_less(official):
    """The values tell a changed decision from the solver's."""
    parameters = dict(cumcm_2024_b.OFFICIAL)
    official = json.loads(json.dumps(official))
    official["q3"]["inspect_parts"][7] = 0
    official["q2"]["cases"][5]["inspect_part1"] = 1
    values = metrics(parameters, official)
    assert values["q3_profit_yuan"] < TRUTH["q3_profit_yuan"] - 0.1
    assert values["q2_case6_profit_yuan"] < TRUTH["q2_case6_profit_yuan"] - 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_solver_and_reference_agree(seed, tmp_path):
    parameters = cumcm_2024_b.sample(seed)
    answer = run_solver(parameters, tmp_path)
    anchor = cumcm_2024_b.reference(parameters)["anchor"]
    assert metrics(parameters, answer) == pytest.approx(anchor, abs=1e-9, rel=0)


def test_the_largest_trees(tmp_path):
    """Twelve parts in pairs, four levels: the most combinations the parameters allow."""
    pairs = [["P1", "P2"], ["P3", "P4"], ["A1", "A2"], ["P5", "P6"], ["P7", "P8"], ["A4", "A5"], ["A3", "A6"]]
    pairs += [["P9", "P10"], ["P11", "P12"], ["A8", "A9"], ["A7", "A10"]]
    parts = [
        {"defect_rate": 0.05 + 0.01 * (i % 7), "purchase_yuan": 4 + i, "inspection_yuan": 1 + 0.5 * (i % 4)}
        for i in range(12)
    ]
    assemblies = [
        {
            "components": names,
            "defect_rate": 0.05,
            "assembly_yuan": 6,
            "inspection_yuan": 2 + i % 5,
            "dismantling_yuan": 3 + i,
        }
        for i, names in enumerate(pairs)
    ]
    parameters = dict(cumcm_2024_b.OFFICIAL) | {"part_count": 12, "assembly_count": 11}
    parts = [part | {"defect_rate": round(part["defect_rate"], 2)} for part in parts]
    parameters["system"] = {"parts": parts, "assemblies": assemblies, "price_yuan": 400, "exchange_loss_yuan": 60}
    answer = run_solver(parameters, tmp_path)
    anchor = cumcm_2024_b.reference(parameters)["anchor"]
    assert metrics(parameters, answer) == pytest.approx(anchor, abs=1e-9, rel=0)
