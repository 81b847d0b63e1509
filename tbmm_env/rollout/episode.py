"""One episode: a policy against an environment, until the environment says that it is over."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from tbmm_env.record import Episode, Observation
from tbmm_env.rollout.policies import Action, EpisodeStart, Exchange, Policy

OnStep = Callable[[int, str, Observation], None]


class LastEpisode:
    """A recorder that keeps the latest episode for :func:`run_episode` to complete.

    ``env = gym.make(..., recorder=last)``, then ``run_episode(env, policy, last=last).episode``.
    """

    def __init__(self) -> None:
        self._episode: Episode | None = None

    def __call__(self, episode: Episode) -> None:
        """Keep an episode."""
        self._episode = episode

    def take(self) -> Episode | None:
        """Return the episode that was kept and forget it."""
        episode, self._episode = self._episode, None
        return episode


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeResult:
    """What an episode came to.

    Attributes:
        judgement: ``info["judgement"]`` of the last step.
        reward: of the last step.
        steps: number of actions.
        wall_s: from before reset to after judging.
        parts_s: where that time went, in seconds: ``reset``, ``policy``, ``steps`` and ``judge``.
        episode: the whole record, turns included, when the environment's recorder was given; else None.
    """

    judgement: Mapping[str, Any]
    reward: float
    steps: int
    wall_s: float
    parts_s: Mapping[str, float] = field(default_factory=dict)
    episode: Episode | None = None


def run_episode(
    env: gymnasium.Env[dict[str, Any], str],
    policy: Policy,
    *,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
    on_step: OnStep | None = None,
    last: LastEpisode | None = None,
    labels: Mapping[str, Any] | None = None,
    group: int = 0,
) -> EpisodeResult:
    """Play one episode; a policy that has nothing more to do submits.

    Args:
        env: a task's environment.
        policy: chooses the actions.
        seed: for ``reset``.
        options: for ``reset``.
        on_step: called with step number, action and observation after every step.
        last: the recorder that the environment was made with.
        labels: ``job``, ``group_id``, ``sample_id`` and ``policy`` of the record, as far as known.
        group: number of the group, for the policy.
    """
    labels = labels or {}
    started_s = time.perf_counter()
    seen, info = env.reset(seed=seed, options=options)
    parts_s = {"reset": time.perf_counter() - started_s, "policy": 0.0, "steps": 0.0, "judge": 0.0}
    observation = Observation(terminal=seen["terminal"], figures=seen["figures"])
    policy.reset(
        EpisodeStart(
            task=info["task"],
            instance=info["instance"],
            group_id=labels.get("group_id", ""),
            group=group,
            sample_id=labels.get("sample_id", 0),
        )
    )
    history: list[Exchange] = []
    actions: list[Action] = []
    while True:
        at_s = time.perf_counter()
        action = _action(policy.act(history, observation))
        parts_s["policy"] += time.perf_counter() - at_s
        actions.append(action)
        at_s = time.perf_counter()
        seen, reward, terminated, truncated, info = env.step(action.text)
        step_s = time.perf_counter() - at_s
        history.append((observation, action.text))
        observation = Observation(terminal=seen["terminal"], figures=seen["figures"])
        if on_step is not None:
            on_step(len(history), action.text, observation)
        if not (terminated or truncated):
            parts_s["steps"] += step_s
            continue
        episode = last.take() if last is not None else None
        if episode is not None:
            episode = _completed(episode, actions, labels)
            in_box_s = episode.steps[-1].wall_s
            parts_s["steps"] += in_box_s
            step_s -= in_box_s
        parts_s["judge"] = step_s  # with the box's own last command where there is no record of it
        return EpisodeResult(
            judgement=info["judgement"],
            reward=float(reward),
            steps=len(history),
            wall_s=time.perf_counter() - started_s,
            parts_s=parts_s,
            episode=episode,
        )


def _action(chosen: Action | str | None) -> Action:
    if isinstance(chosen, Action):
        return chosen
    return Action(text="submit" if chosen is None else chosen)


def _completed(episode: Episode, actions: list[Action], labels: Mapping[str, Any]) -> Episode:
    """Return a record with what only the loop knows: the model's turns and where the episode belongs."""
    steps = tuple(
        step if action.turn is None else dataclasses.replace(step, turn=action.turn)
        for step, action in zip(episode.steps, actions, strict=True)
    )
    return dataclasses.replace(episode, steps=steps, **labels)
