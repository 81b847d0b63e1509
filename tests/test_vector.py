"""Vector environments: ours, with its seeds, groups and lost workers, and Gymnasium's own two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers.vector import DictInfoToList

from tbmm_env import tasks
from tbmm_env.errors import BadInstance, BoxLost, SandboxUnavailable, UsageError
from tbmm_env.sandbox.base import Sandbox
from tbmm_env.sandbox.scripted import ScriptedSandbox
from tbmm_env.trajectory.store import Store
from tbmm_env.vector import ModelingVectorEnv
from tbmm_env.vector_schedule import schedules

TASK = "cumcm-2024-a"
ANSWER = (tasks.load(TASK).folder / "submissions" / "scored" / "empty.json").read_text(encoding="utf-8")


def scripted() -> ScriptedSandbox:
    """Boxes without processes, where ``lose`` loses the box."""
    return ScriptedSandbox(results={"lose": BoxLost("the daemon is gone")})


def made(mode: AutoresetMode = AutoresetMode.NEXT_STEP, **keywords: Any) -> ModelingVectorEnv:
    settings = {"sandbox": scripted(), "budget": "train", "instance": "sampled"} | keywords
    return ModelingVectorEnv(2, TASK, autoreset_mode=mode, **settings)


@pytest.fixture(scope="module")
def shared() -> Iterator[ModelingVectorEnv]:
    """One vector of two environments for many tests; workers take seconds to start."""
    env = made()
    yield env
    env.close()


@pytest.fixture(scope="module")
def same_step() -> Iterator[ModelingVectorEnv]:
    env = made(AutoresetMode.SAME_STEP)
    yield env
    env.close()


def seeds(infos: dict[str, Any]) -> list[int | None]:
    return [None if info is None else info["seed"] for info in infos["instance"]]


# ---------------------------------------------------------------- schedules, without processes


def played(count: int, *arguments: Any) -> list[list[int]]:
    found = []
    for schedule in schedules(*arguments):
        row = []
        for _ in range(count):
            row.append(schedule.arguments["seed"])
            schedule.advance()
        found.append(row)
    return found


def test_seeds_never_meet_and_groups_always_do() -> None:
    assert played(3, 3, 10, {}) == [[10, 13, 16], [11, 14, 17], [12, 15, 18]]
    assert played(2, 4, 0, {"group_size": 2}) == [[0, 2], [0, 2], [1, 3], [1, 3]]
    assert played(2, 2, [7, 90], {}) == [[7, 9], [90, 92]]
    assert [one.place for one in schedules(4, 0, {"group_size": 2})] == [
        {"group": 0, "sample": 0}, {"group": 0, "sample": 1}, {"group": 1, "sample": 0}, {"group": 1, "sample": 1},
    ]  # fmt: skip


def test_a_lost_episode_is_played_again() -> None:
    (schedule,) = schedules(1, 4, {"instances": [[{"seed": 1}, {"seed": 2}]]})
    schedule.repeat()
    schedule.advance()
    assert schedule.arguments == {"seed": 4, "options": {"instance": {"seed": 1}}}
    schedule.advance()
    assert schedule.arguments == {"seed": 5, "options": {"instance": {"seed": 2}}}
    schedule.advance()
    assert schedule.arguments["options"] == {"instance": {"seed": 1}}


@pytest.mark.parametrize(
    ("seed", "options", "message"),
    [
        (0, {"group_size": 3}, "must divide the 4"),
        (0, {"group_size": 0}, "must divide"),
        (0, {"group_size": True}, "must divide"),
        (0, {"instances": [{"seed": 1}]}, "list of 4 instances"),
        (0, {"instances": [[], 1, 2, 3]}, "empty list"),
        (0, {"instance": {"seed": 1}}, "unknown"),
        ([1, 2], {}, "2 seeds"),
        (1.5, {}, "seed is 1.5"),
    ],
)
def test_bad_schedules(seed: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        schedules(4, seed, options)


# ---------------------------------------------------------------- ours


def test_next_step_autoreset_goes_on_with_each_seed(shared: ModelingVectorEnv) -> None:
    observations, infos = shared.reset(seed=np.int64(5))  # type: ignore[arg-type]
    assert shared.observation_space.contains(observations)
    assert seeds(infos) == [5, 6]
    assert list(infos["group"]) == [0, 1]
    _, rewards, terminations, truncations, infos = shared.step(["true", "submit"])
    assert (list(rewards), list(terminations), list(truncations)) == ([0, 0], [False, True], [False, False])
    assert infos["judgement"][0] is None
    assert infos["judgement"][1]["outcome"] == "missing"
    assert infos["judgement"][1]["instance"]["seed"] == 6
    observations, _, terminations, _, infos = shared.step(["true", "ignored"])
    assert not terminations.any()
    assert seeds(infos) == [None, 8]
    assert "/workspace/answer.json" in observations["terminal"][1]
    assert list(infos["_exit_status"]) == [True, False]


def test_same_step_autoreset_keeps_the_final_observation_and_info(same_step: ModelingVectorEnv) -> None:
    first, _ = same_step.reset(seed=5)
    observations, _, terminations, _, infos = same_step.step(["true", "submit"])
    assert list(terminations) == [False, True]
    assert seeds(infos) == [None, 8]
    assert list(infos["_final_obs"]) == [False, True]
    assert infos["final_obs"][1]["terminal"] != observations["terminal"][1]
    assert infos["final_info"]["judgement"][1]["outcome"] == "missing"
    assert list(infos["final_info"]["_judgement"]) == [False, True]
    assert "/workspace/answer.json" in observations["terminal"][1]
    _, _, terminations, _, infos = same_step.step(["submit", "submit"])
    assert list(terminations) == [True, True]
    assert seeds(infos) == [7, 10]


def test_instances_and_groups(shared: ModelingVectorEnv) -> None:
    _, infos = shared.reset(seed=1, options={"group_size": 2})
    assert seeds(infos) == [1, 1]
    assert (list(infos["group"]), list(infos["sample"])) == ([0, 0], [0, 1])
    _, infos = shared.reset(seed=1, options={"instances": [{"seed": 40}, [{"seed": 50}, {"seed": 60}]]})
    assert seeds(infos) == [40, 50]
    shared.step(["submit", "submit"])
    *_, infos = shared.step(["", ""])
    assert seeds(infos) == [40, 60]
    _, infos = shared.reset()
    assert seeds(infos) == [40, 50]
    with pytest.raises(BadInstance):
        shared.reset(options={"instances": [{"seed": -1}, {"seed": 2}]})
    _, infos = shared.reset(seed=[3, 30])
    assert seeds(infos) == [3, 30]


def test_reset_without_a_seed_draws_from_np_random(shared: ModelingVectorEnv) -> None:
    shared.reset(seed=77)
    shared._schedules = []
    _, first = shared.reset()
    shared.reset(seed=77)
    shared._schedules = []
    _, again = shared.reset()
    assert seeds(first) == seeds(again)


def test_a_dead_worker_is_replaced_and_its_episode_is_lost(shared: ModelingVectorEnv) -> None:
    shared.reset(seed=20)
    killed = shared._workers[0].process
    os.kill(killed.pid or 0, signal.SIGKILL)
    observations, rewards, terminations, truncations, infos = shared.step(["true", "true"])
    assert (rewards[0], terminations[0], truncations[0]) == (0, False, True)
    assert infos["lost"][0] == "worker died with exit code -9"
    assert list(infos["infrastructure_failure"]) == [True, False]
    assert "judgement" not in infos
    assert list(infos["_exit_status"]) == [False, True]
    assert shared.observation_space.contains(observations)
    *_, infos = shared.step(["", "true"])
    assert seeds(infos) == [20, None]
    assert shared._workers[0].process.pid != killed.pid


def test_a_lost_box_is_no_scored_episode(same_step: ModelingVectorEnv) -> None:
    same_step.reset(seed=20)
    _, rewards, terminations, truncations, infos = same_step.step(["true", "lose"])
    assert (rewards[1], terminations[1], truncations[1]) == (0, False, True)
    assert infos["final_info"]["lost"][1] == "BoxLost: the daemon is gone"
    assert infos["final_info"]["infrastructure_failure"][1]
    assert "judgement" not in infos["final_info"]
    assert seeds(infos) == [None, 21]


def test_a_worker_that_does_not_answer_is_replaced() -> None:
    env = made()
    try:
        env.reset(seed=0)
        os.kill(env._workers[1].process.pid or 0, signal.SIGSTOP)
        env._workers[1]._answer_wall_s = 1.0
        *_, truncations, infos = env.step(["true", "true"])
        assert list(truncations) == [False, True]
        assert infos["lost"][1] == "worker gave no answer within 1 s"
    finally:
        env.close()
    assert all(worker.process.exitcode is not None for worker in env._workers)
    with pytest.raises(UsageError, match="closed"):
        env.reset()
    env.close()


def test_a_sandbox_that_never_starts_is_the_callers() -> None:
    sandbox = scripted()
    sandbox.unavailable = SandboxUnavailable("no namespaces here")
    env = ModelingVectorEnv(1, TASK, sandbox=sandbox, instance="sampled")
    try:
        with pytest.raises(SandboxUnavailable, match=r"in 3 tries: SandboxUnavailable: no namespaces here"):
            env.reset(seed=0)
        with pytest.raises(ResetNeeded):
            env.step(["true"])
    finally:
        env.close()


def test_wrong_arguments(shared: ModelingVectorEnv) -> None:
    with pytest.raises(UsageError, match="num_envs is 0"):
        ModelingVectorEnv(0, TASK)
    with pytest.raises(UsageError, match="autoreset_mode"):
        ModelingVectorEnv(1, TASK, autoreset_mode=AutoresetMode.DISABLED)
    with pytest.raises(UsageError, match="budget"):
        ModelingVectorEnv(1, TASK, budget="huge")
    shared.reset(seed=1)
    with pytest.raises(UsageError, match="there are 1 actions; it must be 2"):
        shared.step(["true"])


SCRIPT = """
import gymnasium, sys, time, tbmm_env
from tbmm_env.sandbox.scripted import ScriptedSandbox
if __name__ == "__main__":
    env = gymnasium.make_vec("tbmm/cumcm-2024-a", num_envs=2, sandbox=ScriptedSandbox(), instance="sampled")
    env.reset(seed=1)
    print(*(worker.process.pid for worker in env.unwrapped._workers), flush=True)
    time.sleep(float(sys.argv[1]))
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "never closed"])
def test_workers_end_with_their_owner(killed: bool, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-W", "error", str(script), "600" if killed else "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        pids = [int(word) for word in program.stdout.readline().split()]
        assert len(pids) == 2
        if killed:
            program.kill()
        assert program.wait(120) == (-signal.SIGKILL if killed else 0)
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "a worker outlives its owner"
        time.sleep(0.1)


@pytest.mark.bwrap
def test_make_vec_with_real_boxes(bwrap_sandbox: Sandbox, tmp_path: Path) -> None:
    """What users write, with a store that all workers log to."""
    env = gymnasium.make_vec(
        f"tbmm/{TASK}", num_envs=2, vectorization_mode="vector_entry_point", sandbox="bwrap", budget="train",
        instance="sampled", recorder=tmp_path, render_mode="ansi",
    )  # fmt: skip
    try:
        listed = DictInfoToList(env)
        listed.reset(seed=3)
        leave = f"cat > answer.json <<'E'\n{ANSWER}\nE"
        listed.step((leave, "echo é"))
        assert "é" in env.render()[1]  # type: ignore[index]
        _, rewards, terminations, _, infos = listed.step(("submit", "submit"))
        assert terminations.all()
        assert [info["judgement"]["outcome"] for info in infos] == ["scored", "missing"]
        assert env.spec is not None
        assert env.spec.kwargs["num_envs"] == 2
    finally:
        env.close()
    assert sorted(stored.episode.instance.seed or 0 for stored in Store(tmp_path).episodes()) == [3, 4]


# ---------------------------------------------------------------- Gymnasium's


@pytest.mark.bwrap
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_gymnasiums_own_vectors(kind: str, bwrap_sandbox: Sandbox) -> None:
    def one() -> gymnasium.Env[Any, Any]:
        return gymnasium.make(f"tbmm/{TASK}", sandbox="bwrap", budget="train", instance="sampled", warm=0)

    env: VectorEnv[Any, Any, Any] = (
        SyncVectorEnv([one, one], copy=False) if kind == "sync" else AsyncVectorEnv([one, one], shared_memory=False)
    )
    try:
        observations, infos = env.reset(seed=3)
        assert env.observation_space.contains(observations)
        assert list(infos["instance"]["seed"]) == [3, 4]
        leave = f"cat > answer.json <<'E'\n{ANSWER}\nE"
        env.step((leave, "true"))
        _, rewards, terminations, _, infos = env.step(("submit", "true"))
        assert list(terminations) == [True, False]
        assert infos["judgement"]["outcome"][0] == "scored"
        _, _, terminations, _, infos = env.step(("true", leave))
        assert not terminations.any()
        _, _, terminations, _, infos = env.step(("submit", "submit"))  # both end, with judgements of different shapes
        assert terminations.all()
        assert list(infos["judgement"]["outcome"]) == ["missing", "scored"]
    finally:
        env.close()
