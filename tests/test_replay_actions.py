"""Stored actions played again: the same comes out the same, and whatever does not is named."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tbmm_env import instances, replay_actions, tasks
from tbmm_env.cli import main
from tbmm_env.env import ModelingEnv
from tbmm_env.errors import BadInstance, SandboxError, UsageError
from tbmm_env.record import Artifact, CommandResult, Episode, Observation, ViewedImage
from tbmm_env.replay_actions import compare, replay
from tbmm_env.sandbox.base import Sandbox
from tbmm_env.sandbox.scripted import ScriptedSandbox, printed
from tbmm_env.trajectory import Store

TASK = tasks.load("cumcm-2024-a")
PICTURE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
Capture = pytest.CaptureFixture[str]
Results = Mapping[str, Any]


def viewed(pixels: np.ndarray) -> CommandResult:
    return dataclasses.replace(printed("1 image\n"), images=(ViewedImage(path="a.png", pixels=pixels),))


RESULTS: Results = {"echo 一": "一\n二\n三\n", "view a.png": viewed(PICTURE), "false": printed("", exit_status=1)}
ACTIONS = ("echo 一", "view a.png", "false", "submit")


def sandbox(results: Results = RESULTS, answer: bytes = b'{"q2": 1}') -> ScriptedSandbox:
    return ScriptedSandbox(results=results, files={"/workspace/answer.json": answer})


def recorded(where: Sandbox, actions: tuple[str, ...] = ACTIONS, seed: int | None = 3, **options: Any) -> Episode:
    """An episode as the environment records it."""
    kept: list[Episode] = []
    which = "official" if seed is None else "sampled"
    env = ModelingEnv(TASK.id, sandbox=where, instance=which, budget="train", recorder=kept.append, warm=0, **options)
    try:
        env.reset(seed=seed)
        for action in actions:
            env.step(action)
    finally:
        env.close()
    return kept[0]


@pytest.fixture(scope="module")
def episode() -> Episode:
    return recorded(sandbox(), language="zh")


# ---------------------------------------------------------------- replay


@pytest.mark.lean
def test_the_same_box_gives_the_same(episode: Episode) -> None:
    numbers: list[tuple[int, int]] = []
    result = replay(episode, sandbox=sandbox(), on_step=lambda *pair: numbers.append(pair))
    assert result.same, result.differences
    assert (result.steps, result.versions) == (4, ())
    assert numbers == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert result.replayed.language == "zh"
    assert result.replayed.limits == episode.limits
    assert result.replayed.episode_id != episode.episode_id


@pytest.mark.lean
def test_what_the_box_does_otherwise_is_named_step_by_step(episode: Episode) -> None:
    other = PICTURE.copy()
    other[1, 2, 0] ^= 1
    results = {"echo 一": "一\n贰\n三\n", "view a.png": viewed(other), "false": printed("", exit_status=2)}
    result = replay(episode, sandbox=sandbox(results, b'{"q2": "x"}'))
    found = {(one.where, one.what): one for one in result.differences}
    assert set(found) >= {
        ("step 1", "terminal"),
        ("step 2", "figure 1"),
        ("step 3", "terminal"),
        ("step 3", "exit_status"),
        ("artifact", "sha256"),
        ("artifact", "text"),
        ("judgement", "judgement.reason"),
    }
    assert found["step 1", "terminal"].diff[3:] == (" 一", "-二", "+贰", " 三")
    assert found["step 2", "figure 1"].replayed == "1 of 8 pixels differ"
    assert (found["step 3", "exit_status"].stored, found["step 3", "exit_status"].replayed) == (1, 2)
    assert not any(one.where in ("start", "step 4", "ending") for one in result.differences)


@pytest.mark.lean
def test_an_episode_that_ends_sooner_is_named(episode: Episode) -> None:
    results = {**RESULTS, "view a.png": printed("", submitted=True)}
    result = replay(episode, sandbox=sandbox(results))
    (ending,) = [one for one in result.differences if one.where == "ending"]
    assert (ending.what, ending.stored, ending.replayed) == ("steps", 4, 2)


@pytest.mark.lean
def test_an_episode_that_a_clock_ended_is_submitted_and_said_to_differ(episode: Episode) -> None:
    stopped = dataclasses.replace(episode, steps=episode.steps[:-1], terminated=False, truncated=True)
    result = replay(stopped, sandbox=sandbox())
    assert [(one.where, one.stored, one.replayed) for one in result.differences] == [
        ("ending", [False, True], [False, False])
    ]
    waiting = {**RESULTS, "submit": "typed\n"}
    with pytest.raises(SandboxError, match="the shell takes no `submit`"):
        replay(stopped, sandbox=sandbox(waiting))


@pytest.mark.lean
def test_official_and_given_instances_are_replayed() -> None:
    official = recorded(sandbox(), ("submit",), seed=None)
    assert replay(official, sandbox=sandbox()).same
    parameters = instances.sampled(TASK, 8).parameters
    given = dataclasses.replace(official, instance=instances.given(TASK, parameters))
    result = replay(given, sandbox=sandbox())
    assert result.replayed.instance == given.instance
    assert {one.where for one in result.differences} == {"start", "judgement"}


def test_another_draw_of_the_seed_is_refused(episode: Episode) -> None:
    other = dataclasses.replace(episode.instance, parameters=dict(episode.instance.parameters) | {"boards": 99})
    with pytest.raises(BadInstance, match="seed 3 of cumcm-2024-a .* draws other parameters"):
        replay(dataclasses.replace(episode, instance=other), sandbox=sandbox())


def test_limits_that_cannot_be_used_are_refused(episode: Episode) -> None:
    assert replay_actions._limits(dataclasses.replace(episode, limits={"steps": 7, "later": 1})).steps == 7
    for limits in ({"steps": 0}, {"steps": "many"}):
        with pytest.raises(UsageError, match="its limits cannot be used"):
            replay(dataclasses.replace(episode, limits=limits), sandbox=sandbox())


# ---------------------------------------------------------------- compare

CHANGES: dict[str, Callable[[Episode], Episode]] = {
    "start": lambda one: dataclasses.replace(
        one, first_observation=Observation(terminal="", figures=one.first_observation.figures)
    ),
    "figures": lambda one: dataclasses.replace(
        one, first_observation=dataclasses.replace(one.first_observation, figures=())
    ),
    "ending": lambda one: dataclasses.replace(one, terminated=False, truncated=True),
    "artifact": lambda one: dataclasses.replace(one, artifact=Artifact(status="link")),
    "judgement": lambda one: dataclasses.replace(one, judgement=dict(one.judgement) | {"reward": 0.125}),
    "a number in a list": lambda one: dataclasses.replace(one, judgement=dict(one.judgement) | {"notes": ["x"]}),
    "step ending": lambda one: dataclasses.replace(
        one, steps=(dataclasses.replace(one.steps[0], ending="wall_limit"), *one.steps[1:])
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_part_is_compared(name: str, episode: Episode) -> None:
    same = dataclasses.replace(episode, episode_id="x", wall_s=9.0, started_unix_s=1.0, sandbox="y", extra={"z": 1})
    assert compare(episode, same, 4).same
    changed = CHANGES[name](episode)
    assert compare(episode, changed, 4).differences
    assert compare(changed, episode, 4).differences


def test_other_versions_are_named_and_are_no_difference(episode: Episode) -> None:
    now = dataclasses.replace(episode, versions={**episode.versions, "image": "new", "more": "1"})
    result = compare(episode, now, 4)
    assert result.same
    assert result.versions == (("image", episode.versions["image"], "new"), ("more", "", "1"))


def test_a_long_diff_is_cut(episode: Episode) -> None:
    lines = "\n".join(str(number) for number in range(1000))
    (one,) = replay_actions._texts("step 1", "terminal", "", lines)
    assert len(one.diff) == replay_actions.DIFF_LINES


# ---------------------------------------------------------------- the command


@pytest.mark.bwrap
@pytest.mark.lean
def test_the_command_plays_in_a_real_box(bwrap_sandbox: Sandbox, tmp_path: Path, capsys: Capture) -> None:
    actions = ("cd /tmp; 变量=3; echo 中文 | tee a.txt", "pwd; cat a.txt; python3 -c 'print(1/3)'; exit 3", "submit")
    played = recorded(bwrap_sandbox, actions)
    store = Store(tmp_path / "轨迹", durable=False)
    store.append(played)
    command = ["replay-actions", str(store.path), "#0", "--sandbox", "bwrap"]
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same"] is True
    first = dataclasses.replace(played.steps[0], observation=Observation(terminal="别的\n", figures=()))
    with Store(tmp_path / "other", durable=False) as other:
        other.append(dataclasses.replace(played, steps=(first, *played.steps[1:])))
    command[1] = str(other.path)
    assert main(command) == 1
    said = capsys.readouterr().out
    assert "step 1, terminal" in said
    assert "-别的" in said
    assert "+中文" in said
    assert "1 differences" in said


def test_the_command_refuses(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "segments").mkdir()
    for arguments, message in (([str(tmp_path), "x"], "is not a key"), ([str(tmp_path / "no"), "#0"], "no trajectory")):
        assert main(["replay-actions", *arguments]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
