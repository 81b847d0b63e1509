"""Many episodes with a policy of your own: groups of four on sampled instances, logged, then read back.

    python examples/rollout.py [--instances 2] [--workers 0] [--sandbox auto|docker|bwrap]

The policy here guesses a little differently in each sample. Put a language model in its place: ``act`` may return an
``Action`` with the model's tokens and log-probabilities, which the store keeps. ``--workers 2`` plays on Ray.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tbmm_env.record import Observation
from tbmm_env.rollout.jobs import Plan
from tbmm_env.rollout.policies import EpisodeStart, Exchange, written
from tbmm_env.rollout.run import rollout
from tbmm_env.tasks import Task
from tbmm_env.trajectory.store import Store


class Cautious:
    """Leaves cautious decisions, the bolder the later the sample."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def reset(self, start: EpisodeStart) -> None:
        """Begin an episode."""
        self.start = start

    def act(self, history: Sequence[Exchange], observation: Observation) -> str | None:
        """Write the answer, then submit."""
        if history:
            return None
        parameters, courage = self.start.instance["parameters"], 0.04 * self.start.sample_id
        answer = {
            "q2": {"termination_time_s": 10},
            "q3": {"pitch_m": (1 - courage) * parameters["spiral_pitch_m"]},
            "q5": {"head_speed_mps": 0.4 * parameters["speed_cap_mps"]},
        }
        return written("/workspace/answer.json", json.dumps(answer))


def main() -> None:
    """Play the episodes and show each group."""
    parser = argparse.ArgumentParser(description="Many episodes with a policy of your own.")
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--sandbox", choices=["auto", "docker", "bwrap"], default="auto")
    args = parser.parse_args()

    plan = Plan(["cumcm-2024-a"], args.instances, 4)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        summary = rollout(
            plan, Cautious, out, policy_name="cautious", workers=args.workers, sandbox=args.sandbox, budget="train"
        )
        print(f"{summary.done} episodes, {summary.episodes_per_hour:.0f} an hour; {dict(summary.outcomes)}")
        groups = defaultdict(list)
        for stored in Store(out).episodes():
            groups[stored.episode.group_id].append(stored.episode.judgement["reward"])
        for name, rewards in sorted(groups.items()):
            print(name, [round(reward, 3) for reward in sorted(rewards)])


if __name__ == "__main__":
    main()
