"""The independent solver of the smoke screen, in a box as an agent's program, against the bars and the reference."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tbmm_env.env import ModelingEnv
from tbmm_env.judge.numeral import read_exact
from tbmm_env.rollout import policies
from tbmm_env.rollout.episode import run_episode
from tbmm_env.sandbox.base import Sandbox
from tbmm_env.tasks import load

TASK = load("cumcm-2025-a")
SEEDS = range(int(os.environ.get("TBMM_ORACLE_SEEDS", "2")))
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


def judged(env: ModelingEnv, options: dict[str, Any] | None) -> tuple[dict[str, Any], dict[str, float]]:
    """Judgement of the oracle on an instance, and its metrics."""
    judgement = dict(run_episode(env, policies.oracle(TASK), options=options).judgement)
    assert judgement["outcome"] == "scored", judgement["reason"]
    return judgement, {entry["key"]: float(read_exact(entry["value_exact"])) for entry in judgement["metrics"]}


def test_the_official_bars_are_reached(env: ModelingEnv) -> None:
    _, values = judged(env, None)
    assert values["q1_shield_time_s"] == pytest.approx(1.391643, abs=1e-5)
    for key, bar in BARS_S.items():
        assert values[key] >= bar, key


@pytest.mark.parametrize("seed", SEEDS)
def test_the_oracle_reaches_the_reference(env: ModelingEnv, seed: int) -> None:
    judgement, _ = judged(env, {"instance": {"seed": seed}})
    assert read_exact(judgement["reward_exact"]) >= TASK.oracle.sampled, judgement["metrics"]


def test_the_solver_shares_no_code_with_the_judge() -> None:
    source = (Path(TASK.folder) / "solution" / "solve.py").read_text(encoding="utf-8")
    assert "tbmm_env" not in source
