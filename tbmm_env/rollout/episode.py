"""One episode: a policy against an environment, until the environment says that it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium

from tbmm_env.record import Observation
from tbmm_env.rollout.policies import Policy

OnStep = Callable[[int, str, Observation], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeResult:
    """What an episode came to.

    Attributes:
        judgement: ``info["judgement"]`` of the last step.
        reward: of the last step.
        steps: number of actions.
        wall_s: from before reset to after judging.
    """

    judgement: Mapping[str, Any]
    reward: float
    steps: int
    wall_s: float


def run_episode(
    env: gymnasium.Env[dict[str, Any], str],
    policy: Policy,
    *,
    seed: int | None = None,
    options: dict[str, Any] | None = None,
    on_step: OnStep | None = None,
) -> EpisodeResult:
    """Play one episode; a policy that has nothing more to do submits.

    Args:
        env: a task's environment.
        policy: chooses the actions.
        seed: for ``reset``.
        options: for ``reset``.
        on_step: called with step number, action and observation after every step.
    """
    started_s = time.monotonic()
    seen, _ = env.reset(seed=seed, options=options)
    observation = Observation(terminal=seen["terminal"], figures=seen["figures"])
    steps = 0
    while True:
        action = policy.act(observation)
        action = "submit" if action is None else action
        seen, reward, terminated, truncated, info = env.step(action)
        observation = Observation(terminal=seen["terminal"], figures=seen["figures"])
        steps += 1
        if on_step is not None:
            on_step(steps, action, observation)
        if terminated or truncated:
            return EpisodeResult(
                judgement=info["judgement"],
                reward=float(reward),
                steps=steps,
                wall_s=time.monotonic() - started_s,
            )
