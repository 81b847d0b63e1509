"""The independent solver of the bench dragon against the true values, the reference and the replay."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tbmm_env.problems import cumcm_2024_a

SOLVER = Path(__file__).resolve().parents[2] / "tasks" / "cumcm-2024-a" / "solution" / "solve.py"
SEEDS = range(int(os.environ.get("TBMM_ORACLE_SEEDS", "2")))
TRUTH = {
    "q2_termination_time_s": 412.4738376821147,
    "q3_pitch_m": 0.450337393027,
    "q4_turn_length_m": 13.621244906821122,
    "q5_head_speed_mps": 1.246266358157483,
}
CLOSE = 1e-8


def run_solver(parameters, folder):
    """Answer of the solver, run as a program on an instance file."""
    instance, out = folder / "instance.json", folder / "answer.json"
    text = json.dumps({"task": "cumcm-2024-a", "version": "1", "parameters": parameters})
    instance.write_text(text, encoding="utf-8")
    command = [sys.executable, str(SOLVER), "--instance", str(instance), "--out", str(out)]
    subprocess.run(command, check=True, timeout=240)
    return json.loads(out.read_text(encoding="utf-8"))


def metrics(answer):
    """The answer's four values by metric key."""
    return {
        "q2_termination_time_s": answer["q2"]["termination_time_s"],
        "q3_pitch_m": answer["q3"]["pitch_m"],
        "q4_turn_length_m": answer["q4"]["turn_length_m"],
        "q5_head_speed_mps": answer["q5"]["head_speed_mps"],
    }


def check_replay(parameters, answer, close):
    """The replay finds every value of the answer feasible, and as good as it can be to within `close`."""
    replay = cumcm_2024_a.replay(parameters, answer)
    values = metrics(answer)
    assert 0 <= replay["first_overlap_time_s"] - values["q2_termination_time_s"] < close
    assert 0 <= replay["q3_min_gap_m"] < close
    assert replay["turn_length_m"] == pytest.approx(values["q4_turn_length_m"], abs=close)
    assert 0 <= parameters["speed_cap_mps"] - replay["peak_speed_mps"] < close
    errors = [name for name in replay if name.endswith("_error_m")]
    assert errors
    assert all(abs(replay[name]) < close for name in errors)


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    return run_solver(dict(cumcm_2024_a.OFFICIAL), tmp_path_factory.mktemp("official"))


def test_official_true_values_from_the_feasible_side(official):
    values = metrics(official)
    assert values == pytest.approx(TRUTH, abs=CLOSE, rel=0)
    assert values["q2_termination_time_s"] <= TRUTH["q2_termination_time_s"]
    assert values["q3_pitch_m"] >= TRUTH["q3_pitch_m"]
    assert values["q5_head_speed_mps"] <= TRUTH["q5_head_speed_mps"]


def test_official_path_is_the_turn_asked_for(official):
    path = official["q4"]["path"]
    assert path["radius1_m"] == pytest.approx(3.005417667789, abs=CLOSE)
    assert path["radius2_m"] == pytest.approx(1.502708833895, abs=CLOSE)
    assert path["entry_m"] == pytest.approx([-2.711856, -3.591078], abs=1e-6)
    assert path["centre1_m"] == pytest.approx([-0.760009, -1.305726], abs=1e-6)
    assert path["centre2_m"] == pytest.approx([1.735932, 2.448402], abs=1e-6)
    assert path["exit_m"] == pytest.approx([2.711856, 3.591078], abs=1e-6)


def test_official_replay_agrees(official):
    check_replay(dict(cumcm_2024_a.OFFICIAL), official, CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_solver_reference_and_replay_agree(seed, tmp_path):
    parameters = cumcm_2024_a.sample(seed)
    answer = run_solver(parameters, tmp_path)
    anchor = cumcm_2024_a.reference(parameters)["anchor"]
    values = metrics(answer)
    assert values == pytest.approx({name: anchor[name] for name in values}, abs=CLOSE, rel=0)
    check_replay(parameters, answer, CLOSE)

    # The reference's own values, taken a hair to the feasible side, pass the replay as well.
    answer["q2"]["termination_time_s"] = anchor["q2_termination_time_s"] - 1e-10
    answer["q3"]["pitch_m"] = anchor["q3_pitch_m"] + 1e-10
    answer["q5"]["head_speed_mps"] = anchor["q5_head_speed_mps"] * (1 - 1e-10)
    check_replay(parameters, answer, CLOSE)
