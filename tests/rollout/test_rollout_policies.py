"""Policies and the loop of one episode, without boxes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tbmm_env import tasks
from tbmm_env.env import ModelingEnv
from tbmm_env.errors import UsageError
from tbmm_env.judge.artifact import parse, validate
from tbmm_env.record import Observation, Turn
from tbmm_env.rollout import policies
from tbmm_env.rollout.episode import LastEpisode, run_episode
from tbmm_env.rollout.policies import Action, EpisodeStart, Exchange
from tbmm_env.rollout.template import RandomTemplate, random_answer
from tbmm_env.sandbox.scripted import ScriptedSandbox

TASK = tasks.load("cumcm-2024-a")
NOTHING = Observation(terminal="", figures=())


def start(seed: int = 1, group: int = 0, sample: int = 0) -> EpisodeStart:
    return EpisodeStart(task=TASK.id, instance={"seed": seed}, group=group, sample_id=sample)


def played(policy: policies.Policy, begin: EpisodeStart) -> list[str]:
    policy.reset(begin)
    history: list[Exchange] = []
    while (action := policy.act(history, NOTHING)) is not None:
        assert isinstance(action, str)
        history.append((NOTHING, action))
    return [action for _, action in history]


def test_one_scripted_policy_serves_many_episodes() -> None:
    policy = policies.oracle(TASK)
    assert played(policy, start(1)) == played(policy, start(2))
    assert played(policy, start())[-2:] == ["check", "submit"]
    assert played(policies.named("nop", TASK), start()) == []


def test_random_template_is_a_function_of_instance_group_and_sample() -> None:
    policy = policies.named("random-template", TASK)
    assert isinstance(policy, RandomTemplate)
    first = played(policy, start(1))
    assert first == played(RandomTemplate(TASK), start(1))
    others = [start(2), start(1, group=1), start(1, sample=1)]
    assert len({first[0], *(played(policy, other)[0] for other in others)}) == 4


def test_random_answers_fit_every_schema() -> None:
    for name in tasks.task_ids():
        task = tasks.load(name)
        for seed in range(5):
            policy = RandomTemplate(task)
            text = played(policy, start(seed))[0]
            answer = text.split("\n", 1)[1].rsplit("\n", 1)[0]
            checked = validate(parse(answer.encode()), task.answer_schema)
            assert checked.value is not None, checked.problems
            assert checked.problems == ()


def test_random_answer_of_every_kind() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "list": {
                "type": "array", "minItems": 2, "maxItems": 100_000,
                "items": {"type": "integer", "minimum": "-3", "maximum": "3"},
            },
            "flag": {"type": "boolean"},
            "text": {"type": "string"},
            "claims": {"type": "object", "properties": {}},
        },
    }  # fmt: skip
    for seed in range(50):
        answer = random_answer(schema, random.Random(seed))
        assert set(answer) == {"list", "flag", "text"}
        assert 2 <= len(answer["list"]) <= 8
        assert all(isinstance(item, int) and -3 <= item <= 3 for item in answer["list"])
        assert isinstance(answer["flag"], bool)
    schema["properties"]["list"]["maxItems"] = 20
    assert len(random_answer(schema, random.Random(0), full=True)["list"]) == 20


def test_written_text_may_hold_its_own_end_mark() -> None:
    command = policies.written("f", "a\nTBMM_END_OF_SOLUTION\nb")
    assert command.endswith("\nTBMM_END_OF_SOLUTION_")


def test_a_policy_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_policy.py").write_text(
        "from tbmm_env.rollout.policies import Scripted\nnumber = 3\ndef make(task): return Scripted([task.id])\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    assert played(policies.named("own_policy:make", TASK), start()) == [TASK.id]
    for name, message in (
        ("own_policy:absent", "no function or class absent"),
        ("own_policy:number", "no function or class number"),
        ("no_such_module:make", "cannot be imported"),
        ("gpt", "must be oracle, nop"),
        ("a b:c", "must be oracle, nop"),
    ):
        with pytest.raises(UsageError, match=message):
            policies.named(name, TASK)


def test_scripts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('"one"\n\n"two\\nlines"\n', encoding="utf-8")
    assert played(policies.named(f"script:{path}", TASK), start()) == ["one", "two\nlines"]
    path.write_text('"one"\n3\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"line 2: is a int"):
        policies.script(path)
    path.write_text("one\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"line 1: not JSON"):
        policies.script(path)
    with pytest.raises(UsageError, match="cannot be read"):
        policies.script(tmp_path / "absent")


# ---------------------------------------------------------------- the loop


class Model:
    """Acts as a language model does: with turns, and on what it saw."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    def reset(self, start: EpisodeStart) -> None:
        self.start = start

    def act(self, history: Sequence[Exchange], observation: Observation) -> Action | str | None:
        self.seen.append((len(history), observation.terminal))
        if len(history) == 0:
            tokens = np.arange(3)
            turn = Turn(completion="<think/>look", completion_token_ids=tokens, finish_reason="stop",
                        sampling={"temperature": 1.0}, weight_version="w7")  # fmt: skip
            return Action(text="look", turn=turn)
        return "again" if len(history) == 1 else None


def test_episode_with_turns_and_labels() -> None:
    last = LastEpisode()
    env = ModelingEnv(TASK.id, sandbox=ScriptedSandbox(results={"look": "a view"}), budget="train", recorder=last)
    model, seen = Model(), []
    labels = {"job": "j", "group_id": "g", "sample_id": 2, "policy": "model"}
    try:
        result = run_episode(
            env, model, options={"instance": {"seed": 4}}, last=last, labels=labels, group=1,
            on_step=lambda number, action, observation: seen.append((number, action)),
        )  # fmt: skip
    finally:
        env.close()
    assert seen == [(1, "look"), (2, "again"), (3, "submit")]
    assert [number for number, _ in model.seen] == [0, 1, 2]
    assert "a view" in model.seen[1][1]
    assert (model.start.group_id, model.start.group, model.start.sample_id) == ("g", 1, 2)
    assert model.start.instance["seed"] == 4
    episode = result.episode
    assert episode is not None
    assert (episode.job, episode.group_id, episode.sample_id, episode.policy) == ("j", "g", 2, "model")
    assert [step.turn is None for step in episode.steps] == [False, True, True]
    turn = episode.steps[0].turn
    assert turn is not None
    assert (turn.weight_version, turn.finish_reason, list(turn.completion_token_ids)) == ("w7", "stop", [0, 1, 2])
    assert set(result.parts_s) == {"reset", "policy", "steps", "judge"}
    assert 0 < sum(result.parts_s.values()) <= result.wall_s
    assert last.take() is None


def test_episode_without_a_recorder() -> None:
    env = ModelingEnv(TASK.id, sandbox=ScriptedSandbox(), budget="train")
    try:
        result = run_episode(env, policies.named("nop", TASK), options={"instance": {"seed": 4}})
    finally:
        env.close()
    assert (result.episode, result.reward, result.steps) == (None, 0.0, 1)
    assert result.judgement["outcome"] == "missing"
