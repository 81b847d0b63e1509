"""One episode by hand: read the statement, leave a cautious answer, submit, and see what it was worth.

    python examples/one_episode.py [--seed 7] [--sandbox auto|docker|bwrap]

The agent here is three rules of thumb. Put a language model in its place and the loop stays as it is.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import gymnasium as gym
from rich.console import Console

import tbmm_env  # noqa: F401 - registers the tasks
from tbmm_env.report import print_judgement


def cautious_answer(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return decisions that are surely feasible and not good."""
    return {
        "q2": {"termination_time_s": 10},
        "q3": {"pitch_m": 0.99 * parameters["spiral_pitch_m"]},
        "q5": {"head_speed_mps": 0.4 * parameters["speed_cap_mps"]},
    }


def main() -> None:
    """Play one episode."""
    parser = argparse.ArgumentParser(description="One episode by hand.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sandbox", choices=["auto", "docker", "bwrap"], default="auto")
    args = parser.parse_args()

    env = gym.make("tbmm/cumcm-2024-a", sandbox=args.sandbox, instance="sampled", budget="train")
    try:
        observation, info = env.reset(seed=args.seed)
        print(observation["terminal"][:600], "...\n")
        answer = json.dumps(cautious_answer(info["instance"]["parameters"]))
        for action in ("ls -R /task", f"echo '{answer}' > /workspace/answer.json; check", "submit"):
            observation, reward, terminated, truncated, info = env.step(action)
            print(f"$ {action}\n{observation['terminal']}\n")
            if terminated or truncated:
                print("reward", reward)
                print_judgement(Console(), info["judgement"])
    finally:
        env.close()


if __name__ == "__main__":
    main()
