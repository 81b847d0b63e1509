"""``tbmm run``: one episode."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.markup import escape

from tbmm_env import tasks
from tbmm_env.cli.console import (
    Commands,
    command,
    instance_arguments,
    instance_of,
    out,
    print_json,
    progress,
    sandbox_argument,
)
from tbmm_env.env import ModelingEnv
from tbmm_env.errors import TrajectoryError, UsageError
from tbmm_env.limits import PRESETS
from tbmm_env.record import Observation
from tbmm_env.report import print_judgement
from tbmm_env.rollout import policies
from tbmm_env.rollout.episode import run_episode
from tbmm_env.trajectory.store import Store


def _run(args: argparse.Namespace) -> int:
    task = tasks.load(args.task)
    policy = policies.named(args.agent, task)
    instance = instance_of(task, args.instance, args.seed)
    store = Store(args.out)
    try:
        store.prepare()
    except TrajectoryError as error:
        raise UsageError(f"--out: {error}") from error
    kept: list[str] = []
    env = ModelingEnv(
        task.id,
        sandbox=args.sandbox,
        instance=args.instance,
        budget=args.budget,
        language=args.language,
        warm=0,
        recorder=lambda episode: kept.append(store.append(episode)),
    )
    try:
        with progress.status("starting the box") as status:

            def on_step(number: int, action: str, observation: Observation) -> None:
                first = action.strip().splitlines()[0][:70] if action.strip() else ""
                status.update(f"step {number}")
                progress.print(f"[bold]step {number}[/] $ {escape(first)}", highlight=False)
                progress.print(escape(observation.terminal[-1500:]), highlight=False, style="dim")

            result = run_episode(env, policy, seed=instance.seed, on_step=on_step)
    finally:
        env.close()
        store.close()
    judgement = dict(result.judgement)
    paths = store.paths(kept[-1])
    certificate = judgement["certificate"]
    if certificate is not None:
        judgement["certificate"] = dict(certificate) | {"path": paths.certificate}
    judgement |= {
        "sandbox": env.backend,
        "artifact": paths.artifact,
        "trajectory": paths.trajectory,
        "steps": result.steps,
        "wall_s": round(result.wall_s, 3),
    }
    if args.json:
        print_json(judgement)
    else:
        print_judgement(out, judgement)
        out.print(f"trajectory {paths.trajectory}", markup=False, highlight=False)
    return 0


def add(commands: Commands) -> None:
    """Add the commands."""
    run = command(commands, "run", _run, "run one episode and judge it")
    run.add_argument("task")
    run.add_argument("--agent", required=True, help="oracle, nop or script:FILE")
    sandbox_argument(run)
    run.add_argument("--budget", choices=sorted(PRESETS), default="contest")
    run.add_argument("--out", type=Path, default=Path("trajectories"), help="trajectory store")
    instance_arguments(run)
