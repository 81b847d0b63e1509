"""The independent solver of the smoke screen on the official instance, in a box as an agent's program.

``tests/test_end_to_end.py`` plays it, as every task's, on sampled instances.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tbmm_env.env import ModelingEnv
from tbmm_env.judge.numeral import read_exact
from tbmm_env.rollout import policies
from tbmm_env.rollout.episode import run_episode
from tbmm_env.sandbox.base import Sandbox
from tbmm_env.tasks import load

TASK = load("cumcm-2025-a")
BARS_S = {
    "q2_shield_time_s": 4.58,
    "q3_shield_time_s": 7.5,
    "q4_shield_time_s": 11.5,
    "q5_total_shield_time_s": 44.0,
    "q5_min_missile_shield_time_s": 10.0,
}
pytestmark = [pytest.mark.bwrap, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def env(bwrap_sandbox: Sandbox) -> Iterator[ModelingEnv]:
    made = ModelingEnv(TASK.id, sandbox=bwrap_sandbox, budget="contest")
    yield made
    made.close()


def test_the_official_bars_are_reached(env: ModelingEnv) -> None:
    judgement = dict(run_episode(env, policies.oracle(TASK)).judgement)
    assert judgement["outcome"] == "scored", judgement["reason"]
    values = {entry["key"]: float(read_exact(entry["value_exact"])) for entry in judgement["metrics"]}
    assert values["q1_shield_time_s"] == pytest.approx(1.391643, abs=1e-5)
    for key, bar in BARS_S.items():
        assert values[key] >= bar, key


def test_the_solver_shares_no_code_with_the_judge() -> None:
    source = (Path(TASK.folder) / "solution" / "solve.py").read_text(encoding="utf-8")
    assert "tbmm_env" not in source
