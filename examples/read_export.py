"""From episodes to rows that a trainer reads: play a few, export them as groups, print what a trainer would see.

    python examples/read_export.py [--seed 7] [--sandbox auto|docker|bwrap]

With a model in the place of the three answers below this is one round of GRPO data. Reading needs nothing but JSON; the
folder is also one that ``datasets.load_dataset`` takes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path

import gymnasium as gym

import tbmm_env  # noqa: F401 - registers the tasks
from tbmm_env.datasets.grpo import export_grpo
from tbmm_env.datasets.selection import Selection
from tbmm_env.record import Episode
from tbmm_env.trajectory.store import Store

SHARES = (0.99, 0.9, 0.8)
"""Of the spiral's pitch: a cautious answer, a bolder one, and one that is too bold."""


def play(store: Store, seed: int, sandbox: str) -> None:
    """Play one episode an answer; all of them are samples of one group, what a rollout does with a model's."""
    played: list[Episode] = []
    env = gym.make("tbmm/cumcm-2024-a", sandbox=sandbox, instance="sampled", budget="train", recorder=played.append)
    try:
        for share in SHARES:
            _, info = env.reset(seed=seed)
            pitch_m = share * info["instance"]["parameters"]["spiral_pitch_m"]
            answer = json.dumps({"q3": {"pitch_m": pitch_m}})
            env.step(f"echo '{answer}' > /workspace/answer.json; check")
            env.step("submit")
    finally:
        env.close()
    with store:
        for sample_id, episode in enumerate(played):
            names = {"group_id": f"seed {seed}", "sample_id": sample_id, "policy": "three answers"}
            store.append(dataclasses.replace(episode, **names))


def main() -> None:
    """Play, export, read."""
    parser = argparse.ArgumentParser(description="From episodes to rows that a trainer reads.")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sandbox", choices=["auto", "docker", "bwrap"], default="auto")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        store, out = Store(Path(folder) / "store"), Path(folder) / "grpo"
        play(store, args.seed, args.sandbox)
        summary = export_grpo(store, out, Selection())
        print(f"{summary.episodes} of {summary.read} episodes went in; left out: {dict(summary.left_out)}")
        with (out / "rows.jsonl").open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                print(f"group {row['group_id']!r}: {len(row['images'])} figures, mean reward {row['reward_mean']:.4f}")
                for sample in row["samples"]:
                    actions = sum(message["role"] == "assistant" for message in sample["messages"])
                    print(
                        f"  sample {sample['sample_id']}: {sample['outcome']}, {actions} actions,"
                        f" reward {sample['reward']:.4f}, advantage {sample['advantage']:+.4f}"
                    )


if __name__ == "__main__":
    main()
