"""``tbmm run``: one episode; ``tbmm rollout``: many."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from tbmm_env import instances, tasks
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
from tbmm_env.rollout.display import Display
from tbmm_env.rollout.episode import run_episode
from tbmm_env.rollout.jobs import Plan
from tbmm_env.rollout.run import INTERRUPTED, rollout
from tbmm_env.rollout.tally import Summary
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
    if certificate:
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


def _rollout(args: argparse.Namespace) -> int:
    official = args.instance == "official"
    named = [name.strip().removeprefix("tbmm/") for name in args.tasks.split(",") if name.strip()]
    first_seed, stride = _seeds(named, args.level, args.first_seed, official)
    plan = Plan(
        named,
        1 if official else args.instances,
        args.group_size,
        groups=args.groups,
        first_seed=first_seed,
        stride=stride,
        official=official,
    )
    with Display(progress) as display:
        try:
            summary = rollout(
                plan,
                args.policy,
                args.out,
                policy_name=args.policy_name,
                workers=0 if args.no_ray else args.workers,
                resume=args.resume,
                retries=args.retries,
                job_wall_s=args.job_wall_s,
                in_flight=args.in_flight,
                address=args.address,
                worker_cpus=args.worker_cpus,
                sandbox=args.sandbox,
                budget=args.budget,
                language=args.language,
                watch=display,
                on_wait=lambda: progress.print("waiting for the remains of an earlier rollout on this folder to end"),
            )
        except TrajectoryError as error:
            raise UsageError(f"--out: {error}") from error
    if args.json:
        print_json(_summary_json(summary) | {"out": str(args.out)})
    else:
        _print_summary(summary, args.out)
    if summary.stopped == INTERRUPTED:
        return 130
    return 0 if summary.complete else 1


def _seeds(named: list[str], level: int | None, first_seed: int, official: bool) -> tuple[int, int]:
    """First seed, ``first_seed`` or later, and stride that keep to a level, which all tasks must have alike."""
    if level is None or not named:
        return first_seed, 1
    if official:
        raise UsageError(f"--level is {level}; the official instance has no level")
    counts = {name: instances.levels(tasks.load(name)) for name in named}
    if len(set(counts.values())) > 1:
        raise UsageError(f"--level needs tasks with the same number of levels; they have {counts}")
    instances.check_level(tasks.load(named[0]), level)
    return first_seed + (level - 1 - first_seed) % counts[named[0]], counts[named[0]]


def _summary_json(summary: Summary) -> dict[str, Any]:
    rounded = {"wall_s": round(summary.wall_s, 3), "episodes_per_hour": round(summary.episodes_per_hour, 1)}
    parts = {name: round(spent_s, 3) for name, spent_s in summary.parts_s.items()}
    return dataclasses.asdict(summary) | rounded | {"complete": summary.complete, "parts_s": parts}


def _print_summary(summary: Summary, store: Path) -> None:
    table = Table("rollout", "", show_header=False)
    table.add_row("episodes", f"{summary.done + summary.skipped} of {summary.planned}")
    if summary.skipped:
        table.add_row("from an earlier run", str(summary.skipped))
    for name, count in summary.outcomes.items():
        table.add_row(name, str(count))
    if summary.reward_mean is not None:
        table.add_row("mean reward", f"{summary.reward_mean:.4f}")
    table.add_row("wall time", f"{summary.wall_s:.1f} s, {summary.episodes_per_hour:.0f} episodes/h")
    for kind, count in summary.failures.items():
        table.add_row(f"{kind} (ours, not stored)", f"{count}, the last: {escape(summary.reasons[kind])}")
    if summary.retries:
        table.add_row("retries", str(summary.retries))
    if summary.unfinished:
        table.add_row("given up", f"{summary.unfinished}: {', '.join(summary.unfinished_jobs[:5])} ...")
    if summary.stopped:
        table.add_row("stopped", summary.stopped)
    out.print(table)
    out.print(f"store {store}", markup=False, highlight=False)
    if not summary.complete:
        out.print("go on with the same command and --resume", highlight=False)


def add(commands: Commands) -> None:
    """Add the commands."""
    run = command(commands, "run", _run, "run one episode and judge it")
    run.add_argument("task")
    run.add_argument("--agent", required=True, help=policies.NAMES)
    sandbox_argument(run)
    run.add_argument("--budget", choices=sorted(PRESETS), default="contest")
    run.add_argument("--out", type=Path, default=Path("trajectories"), help="trajectory store")
    instance_arguments(run)
    many = command(commands, "rollout", _rollout, "play many episodes and log each once")
    many.add_argument("--tasks", required=True, help="task ids, separated by commas")
    many.add_argument("--instances", type=int, default=1, metavar="N", help="instances a task; training seeds from 0")
    many.add_argument(
        "--instance", choices=["official", "sampled"], default="sampled", help="official: evaluation only"
    )
    many.add_argument("--level", type=int, metavar="L", help="only instances of this difficulty, see tbmm list")
    many.add_argument("--first-seed", type=int, default=0, metavar="SEED")
    many.add_argument("--group-size", type=int, default=1, metavar="G", help="episodes a group")
    many.add_argument("--groups", type=int, default=1, help="groups an instance")
    many.add_argument("--policy", required=True, help=policies.NAMES)
    many.add_argument("--policy-name", default="", metavar="NAME", help="name in the records; default: --policy")
    many.add_argument("--workers", type=int, default=2, metavar="W", help="Ray actors; 0: this process, without Ray")
    many.add_argument("--no-ray", action="store_true", help="the same as --workers 0")
    many.add_argument("--out", type=Path, default=Path("trajectories"), metavar="DIR", help="trajectory store")
    many.add_argument("--resume", action="store_true", help="leave out the episodes that DIR has")
    many.add_argument("--retries", type=int, default=2, help="tries of a job after a failure of ours")
    many.add_argument("--job-wall-s", type=float, metavar="S", help="wall limit of a job; default: all its budgets")
    many.add_argument("--in-flight", type=int, default=1, metavar="K", help="most jobs an actor has at a time")
    many.add_argument("--address", help="of a running Ray cluster, or auto; default: Ray is started here")
    many.add_argument("--worker-cpus", type=float, default=0.0, metavar="C", help="cores each actor reserves in Ray")
    sandbox_argument(many)
    many.add_argument("--budget", choices=sorted(PRESETS), default="train")
    many.add_argument("--language", choices=["en", "zh"], default="en")
