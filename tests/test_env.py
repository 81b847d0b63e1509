"""The environment as its users see it: spaces, budgets, endings, determinism, records."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import tbmm_env
from tbmm_env import instances, tasks
from tbmm_env.env import ModelingEnv
from tbmm_env.errors import BadInstance, UnknownTask, UsageError
from tbmm_env.limits import TRAIN
from tbmm_env.problems import cumcm_2024_a
from tbmm_env.record import Episode
from tbmm_env.sandbox.base import Sandbox
from tbmm_env.sandbox.scripted import ScriptedSandbox
from tbmm_env.trajectory.store import Store

TASK = "cumcm-2024-a"
FIVE_PERCENT = tasks.load(TASK).folder / "submissions" / "scored" / "five_percent_worse.json"


@pytest.fixture
def env(sandbox: Sandbox) -> Iterator[ModelingEnv]:
    made = ModelingEnv(TASK, sandbox=sandbox, budget="train")
    yield made
    made.close()


def leave(text: str) -> str:
    return f"cat > /workspace/answer.json <<'END_OF_ANSWER'\n{text}\nEND_OF_ANSWER"


# ---------------------------------------------------------------- Gymnasium's contract


@pytest.mark.parametrize("task_id", tasks.task_ids())
def test_check_env_without_warnings(sandbox: Sandbox, task_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(f"tbmm/{task_id}", sandbox=sandbox.name, budget="train", disable_env_checker=True)
        try:
            check_env(env.unwrapped)
        finally:
            env.close()


@pytest.mark.bwrap
@pytest.mark.parametrize("name", [f"tbmm/{TASK}", f"tbmm_env:tbmm/{TASK}"])
def test_gym_make(name: str, bwrap_sandbox: Sandbox) -> None:
    env = gymnasium.make(name, sandbox="bwrap", instance="sampled", budget="train")
    try:
        observation, info = env.reset(seed=5)
        assert observation in env.observation_space
        assert info["instance"]["seed"] == 5
        assert "statement" in str(env.unwrapped) or env.spec is not None
    finally:
        env.close()


def test_every_task_is_registered() -> None:
    registered = {name for name in gymnasium.registry if name.startswith("tbmm/")}
    assert registered == {f"tbmm/{name}" for name in tasks.task_ids()}
    assert tbmm_env.__version__


def test_first_observation_holds_statement_contract_budget_and_figures(env: ModelingEnv) -> None:
    observation, info = env.reset(seed=1)
    text = observation["terminal"]
    assert text.startswith(instances.statement(env.task, instances.official(env.task), "en").rstrip())
    assert "/workspace/answer.json" in text
    assert "30 actions" in text
    assert len(observation["figures"]) >= 2
    assert all(figure.dtype == np.uint8 and figure.shape[2] == 3 for figure in observation["figures"])
    assert info["instance"]["seed"] is None


def test_files_in_the_box(env: ModelingEnv) -> None:
    env.reset(seed=1)
    observation, *_ = env.step("cd /task; find . -type f | sort; python3 -m json.tool schema.json >/dev/null; echo $?")
    listed = observation["terminal"]
    for name in ("./figures/", "./instance.json", "./schema.json", "./statement.md"):
        assert name in listed
    observation, *_ = env.step("cat /task/instance.json; touch /task/x; echo y > /task/statement.md")
    assert "seed" not in observation["terminal"]
    assert "Read-only file system" in observation["terminal"] or "Permission denied" in observation["terminal"]


def test_sampled_instances_follow_the_seed(env: ModelingEnv, bwrap_sandbox: Sandbox) -> None:
    sampled = ModelingEnv(TASK, sandbox=bwrap_sandbox, instance="sampled", budget="train")
    try:
        first, info = sampled.reset(seed=11)
        again, _ = sampled.reset(seed=11)
        assert first["terminal"] == again["terminal"]
        assert all(np.array_equal(a, b) for a, b in zip(first["figures"], again["figures"], strict=True))
        other, other_info = sampled.reset(options={"instance": {"seed": 12}})
        assert other_info["instance"]["seed"] == 12
        assert other["terminal"] != first["terminal"]
        parameters = info["instance"]["parameters"]
        given, given_info = sampled.reset(options={"instance": {"parameters": parameters}})
        assert given["terminal"] == first["terminal"]
        assert given_info["instance"]["seed"] is None
        drawn = [sampled.reset(seed=None)[1]["instance"]["seed"] for _ in range(2)]
        assert drawn[0] != drawn[1]
    finally:
        sampled.close()


@pytest.mark.parametrize(
    "options",
    [
        {"instance": 3},
        {"instance": {}},
        {"instance": {"seed": 1, "parameters": {}}},
        {"instance": {"seed": -1}},
        {"instance": {"seed": True}},
        {"instance": {"seed": 2**63}},
        {"instance": {"seed": "7"}},
        {"instance": {"parameters": {"pitch_m": 1}}},
    ],
)
def test_bad_options_are_refused_before_a_box_is_made(options: dict[str, Any]) -> None:
    env = ModelingEnv(TASK, sandbox="bwrap", instance="sampled")
    with pytest.raises(BadInstance):
        env.reset(options=options)
    env.close()


def test_levels_are_a_matter_of_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cumcm_2024_a, "LEVELS", 5)
    env = ModelingEnv(TASK, sandbox=ScriptedSandbox(), instance="sampled", level=3)
    try:
        drawn = {env.reset(seed=None)[1]["instance"]["seed"] for _ in range(3)}
        assert len(drawn) == 3
        assert {seed % 5 for seed in drawn} == {2}
        assert env.reset(seed=10)[1]["instance"]["seed"] == 52
        assert env.reset(options={"instance": {"seed": 10}})[1]["instance"]["seed"] == 10
        for seed in (2**31 // 5, 2**62):
            with pytest.raises(BadInstance, match=f"seed is {seed}; with a level it must be an integer in"):
                env.reset(seed=seed)
    finally:
        env.close()
    for level in (0, 6, True, "1"):
        with pytest.raises(UsageError, match=f"level is {level!r}; {TASK} has levels 1 to 5"):
            ModelingEnv(TASK, instance="sampled", level=level)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="only sampled instances have levels"):
        ModelingEnv(TASK, level=1)


@pytest.mark.parametrize(
    "keyword",
    [
        {"sandbox": "podman"}, {"instance": "training"}, {"budget": "huge"}, {"language": "fr"},
        {"render_mode": "human"},
    ],
)  # fmt: skip
def test_bad_keywords_name_value_and_choices(keyword: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be one of"):
        ModelingEnv(TASK, **keyword)


def test_unknown_task_lists_what_there_is() -> None:
    with pytest.raises(UnknownTask, match=TASK):
        ModelingEnv("cumcm-1999-z")


# ---------------------------------------------------------------- endings


def test_submit_terminates_and_judges(env: ModelingEnv) -> None:
    env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(leave(FIVE_PERCENT.read_text(encoding="utf-8")))
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert "judgement" not in info
    observation, *_ = env.step("check")
    assert "well formed" in observation["terminal"]
    observation, reward, terminated, truncated, info = env.step("submit")
    assert (terminated, truncated) == (True, False)
    assert info["judgement"]["outcome"] == "scored"
    assert 0 < reward < 1
    assert observation in env.observation_space
    with pytest.raises(ResetNeeded):
        env.step("ls")


def test_step_before_reset_is_refused() -> None:
    env = ModelingEnv(TASK)
    with pytest.raises(ResetNeeded):
        env.step("ls")
    env.close()
    env.close()


def test_submit_without_an_answer_is_missing(env: ModelingEnv) -> None:
    env.reset(seed=1)
    _, reward, terminated, _, info = env.step("submit")
    assert terminated
    assert reward == 0
    assert info["judgement"]["outcome"] == "missing"
    assert info["judgement"]["certificate"] == {}
    assert "there is no answer file" in info["judgement"]["reason"]


def test_steps_run_out_and_the_answer_is_judged(sandbox: Sandbox) -> None:
    env = ModelingEnv(TASK, sandbox=sandbox, limits=replace(TRAIN, steps=2))
    try:
        env.reset(seed=1)
        env.step(leave("{}"))
        _, reward, terminated, truncated, info = env.step("true")
        assert (terminated, truncated) == (False, True)
        assert reward == 0
        assert info["judgement"]["outcome"] == "scored"
        assert all(entry["status"] == "unwitnessed" for entry in info["judgement"]["obligations"])
    finally:
        env.close()


def test_submit_in_the_last_step_is_termination(sandbox: Sandbox) -> None:
    env = ModelingEnv(TASK, sandbox=sandbox, limits=replace(TRAIN, steps=1))
    try:
        env.reset(seed=1)
        assert env.step("submit")[2:4] == (True, False)
    finally:
        env.close()


def test_wall_time_runs_out(sandbox: Sandbox) -> None:
    env = ModelingEnv(TASK, sandbox=sandbox, limits=replace(TRAIN, episode_wall_s=3.0))
    try:
        env.reset(seed=1)
        _, _, terminated, truncated, info = env.step("sleep 60")
        assert (terminated, truncated) == (False, True)
        assert info["ending"] == "wall_limit"
        assert info["judgement"]["outcome"] == "missing"
    finally:
        env.close()


def test_a_long_or_nul_action_gets_a_notice(env: ModelingEnv) -> None:
    env.reset(seed=1)
    for action in ("x" * (TRAIN.action_bytes + 1), "echo \x00 hi"):
        observation, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert info["ending"] == "refused"
        assert observation in env.observation_space
    observation, *_ = env.step("echo still here")
    assert "still here" in observation["terminal"]


def test_everybody_killed_then_submit_is_still_judged(env: ModelingEnv) -> None:
    env.reset(seed=1)
    env.step(leave(FIVE_PERCENT.read_text(encoding="utf-8")))
    env.step("kill -9 -1")
    _, reward, terminated, _, info = env.step("submit")
    assert terminated
    assert info["judgement"]["outcome"] == "scored"
    assert reward > 0


def test_reset_in_mid_episode_starts_anew(env: ModelingEnv) -> None:
    env.reset(seed=1)
    env.step("echo old > /workspace/mark")
    env.reset(seed=1)
    observation, *_ = env.step("cat /workspace/mark")
    assert "No such file" in observation["terminal"]


@pytest.mark.parametrize(
    ("make", "outcome", "said"),
    [
        ("ln -s /etc/passwd answer.json", "malformed", "symbolic link"),
        ("mkfifo answer.json", "malformed", "not a regular file"),
        ("mkdir answer.json", "malformed", "not a regular file"),
        ("echo '{}' > a; ln a answer.json", "malformed", "hard link"),
        ("truncate -s 1T answer.json", "malformed", "the limit is 4194304 bytes"),
        ("echo '{\"q2\": NaN}' > answer.json", "malformed", "NaN is not a JSON number"),
        ("echo '{\"q2\": 5}' > answer.json", "malformed", "q2 is a number (5); it must be an object"),
        ("echo '{' > answer.json", "malformed", "line 2, column 1"),
    ],
)
def test_bad_answers_have_an_outcome_and_a_sentence(env: ModelingEnv, make: str, outcome: str, said: str) -> None:
    env.reset(seed=1)
    env.step(f"cd /workspace; {make}")
    _, reward, _, _, info = env.step("submit")
    assert reward == 0
    assert info["judgement"]["outcome"] == outcome
    assert said in info["judgement"]["reason"]


# ---------------------------------------------------------------- language, render, records


def test_chinese_statement(bwrap_sandbox: Sandbox) -> None:
    env = ModelingEnv(TASK, sandbox=bwrap_sandbox, language="zh", budget="train", render_mode="ansi")
    try:
        observation, _ = env.reset(seed=1)
        assert "## 答案" in observation["terminal"]
        observation, *_ = env.step("head -1 /task/statement.md; echo 中文 > 文件.txt; cat 文件.txt")
        assert "中文" in observation["terminal"]
        assert env.render() == observation["terminal"]
    finally:
        env.close()


def test_episode_is_recorded(sandbox: Sandbox, tmp_path: Path) -> None:
    env = ModelingEnv(TASK, sandbox=sandbox, budget="train", recorder=tmp_path / "轨迹")
    try:
        env.reset(seed=1)
        env.step("echo 你好")
        env.step(leave("{}"))
        env.step("submit")
    finally:
        env.close()
    (stored,) = list(Store(tmp_path / "轨迹").episodes())
    episode = stored.episode
    assert [step.action for step in episode.steps][0::2] == ["echo 你好", "submit"]
    assert "你好" in episode.steps[0].observation.terminal
    assert episode.artifact.data == b"{}\n"
    assert episode.terminated
    assert episode.judgement["outcome"] == "scored"
    assert episode.sandbox == sandbox.name
    assert "theorem" in episode.certificate_text


def test_same_actions_give_the_same_texts_and_judgement(sandbox: Sandbox) -> None:
    def play() -> tuple[list[str], Any]:
        kept: list[Episode] = []
        env = ModelingEnv(TASK, sandbox=sandbox, budget="train", recorder=kept.append)
        try:
            first, _ = env.reset(seed=1)
            texts = [first["terminal"]]
            for action in ("pwd; ls -la /task | wc -l; date +%Z; hostname", leave("{}"), "submit"):
                observation, *_, info = env.step(action)
                texts.append(observation["terminal"])
        finally:
            env.close()
        return texts, info

    assert play() == play()


def test_our_own_failure_is_an_exception_and_no_reward(env: ModelingEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    from tbmm_env.errors import ReplayFailed
    from tbmm_env.judge import replay

    env.reset(seed=1)
    env.step(leave("{}"))
    monkeypatch.setattr(replay.Replayer, "replay", lambda *_: (_ for _ in ()).throw(ReplayFailed("on purpose")))
    with pytest.raises(ReplayFailed, match="on purpose"):
        env.step("submit")
    with pytest.raises(ResetNeeded):
        env.step("ls")


def test_missing_lean_is_said_at_the_first_reset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tbmm_env.errors import LeanUnavailable

    monkeypatch.setenv("TBMM_LEAN", str(tmp_path / "no-lean"))
    env = ModelingEnv(TASK, sandbox="bwrap")
    with pytest.raises(LeanUnavailable, match="no-lean"):
        env.reset(seed=1)
    env.close()


def test_missing_image_is_said_at_the_first_reset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tbmm_env.errors import SandboxError

    monkeypatch.setenv("TBMM_IMAGE_DIR", str(tmp_path))
    env = ModelingEnv(TASK, sandbox="bwrap")
    with pytest.raises(SandboxError, match="tbmm image build"):
        env.reset(seed=1)
    env.close()
