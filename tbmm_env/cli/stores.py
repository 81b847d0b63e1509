"""``tbmm traj|instances``: what is in a trajectory store; private evaluation instances."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tbmm_env import splits, tasks
from tbmm_env.cli.console import Commands, action, command, out, print_json, print_text, progress
from tbmm_env.errors import UsageError
from tbmm_env.record import Episode
from tbmm_env.report import print_judgement
from tbmm_env.splits import split_of
from tbmm_env.trajectory import Finding, Store
from tbmm_env.trajectory.keys import resolve, shorten
from tbmm_env.trajectory.kinds import ppm_header
from tbmm_env.trajectory.plain import episode_json, plain, shown, summary_json, visible

_HEAD_LINES, _STEP_LINES = 12, 20
_JUDGED = {"task", "instance", "outcome", "reward", "problems", "metrics", "obligations", "certificate"}
_HARMLESS = "leftover"


def opened(path: Path) -> Store:
    """Return the store of a folder that is there; UsageError when it is not."""
    if not path.is_dir():
        raise UsageError(f"there is no trajectory store at {path}")
    return Store(path)


def _bar() -> Progress:
    return Progress(TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn(), console=progress)


def _say(findings: Iterable[Finding]) -> None:
    for found in findings:
        progress.print(f"[yellow]{found.kind}[/]: {escape(visible(found.message))}", highlight=False, soft_wrap=True)


# ---------------------------------------------------------------- ls, show


def _ls(args: argparse.Namespace) -> int:
    store = opened(args.store)
    findings: list[Finding] = []
    rows: list[dict[str, Any]] = []
    with _bar() as bar:
        line = bar.add_task("reading records", total=None)
        for stored in store.summaries(findings.append):
            bar.advance(line)
            rows.append({"key": stored.key, "split": split_of(stored.summary.instance)} | summary_json(stored.summary))
    _say(findings)
    if args.json:
        print_json(rows)
        return 0
    out.print(_listing(rows))
    counts = ", ".join(f"{count} {outcome or 'unknown'}" for outcome, count in sorted(_outcomes(rows).items()))
    out.print(f"{len(rows)} episodes" + (f": {counts}" if rows else ""), highlight=False)
    return 0


def _listing(rows: list[dict[str, Any]]) -> Table:
    short = shorten([row["key"] for row in rows])
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "key": lambda row: short[row["key"]],
        "task": lambda row: row["task"],
        "seed": lambda row: "-" if row["seed"] is None else str(row["seed"]),
        "split": lambda row: row["split"],
        "outcome": lambda row: row["outcome"],
        "reward": lambda row: "-" if row["reward"] is None else f"{row['reward']:.6g}",
        "steps": lambda row: str(row["steps"]),
        "policy": lambda row: row["policy"],
        "group, sample": lambda row: f"{row['group_id']}, {row['sample_id']}" if row["group_id"] else "",
    }
    used = {name: cell for name, cell in columns.items() if any(cell(row) for row in rows)} or columns
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in used:
        table.add_column(name, min_width=12 if name in ("key", "task") else len(name), overflow="fold")
    for row in rows:
        table.add_row(*(escape(visible(cell(row))) for cell in used.values()))
    return table


def _outcomes(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(row["outcome"] for row in rows)


def _show(args: argparse.Namespace) -> int:
    store = opened(args.store)
    key = resolve(store, args.key)
    episode = store.read(key)
    if args.json:
        print_json({"key": key} | episode_json(episode, arrays=not args.no_arrays))
        return 0
    _print_episode(key, episode, full=args.full)
    return 0


def _print_episode(key: str, episode: Episode, *, full: bool) -> None:
    instance = episode.instance
    seed = "no seed" if instance.seed is None else f"seed {instance.seed}"
    facts = f"{instance.task} {instance.version}, {seed}, {episode.budget}, {episode.language}, {episode.sandbox}"
    print_text(f"{key}\n{facts}, {episode.wall_s:.1f} s, {len(episode.steps)} steps", "bold")
    if episode.job or episode.policy or episode.group_id:
        print_text(f"job {episode.job}, policy {episode.policy}, group {episode.group_id}, sample {episode.sample_id}")
    print_text(_cut(episode.first_observation.terminal, None if full else _HEAD_LINES), "dim")
    for number, step in enumerate(episode.steps, 1):
        print_text(f"step {number} $ {_cut(step.action, None if full else _STEP_LINES)}", "bold")
        print_text(_cut(step.observation.terminal, None if full else _STEP_LINES), "dim")
        said = [f"exit status {step.exit_status}, {step.ending or 'not run'}, {step.wall_s:.2f} s"]
        if step.observation.figures:
            said.append(f"{len(step.observation.figures)} figures")
        if step.turn is not None:
            prompt, completion = len(step.turn.prompt_token_ids), len(step.turn.completion_token_ids)
            said.append(f"{prompt} prompt and {completion} completion tokens, {step.turn.finish_reason or 'no reason'}")
        print_text("  " + "; ".join(said), "cyan")
    judgement = shown(plain(episode.judgement))
    assert isinstance(judgement, dict)
    if judgement.keys() >= _JUDGED:
        print_judgement(out, judgement)
    else:
        print_text(f"outcome {judgement.get('outcome')}, reward {judgement.get('reward')}", "bold")


def _cut(text: str, lines: int | None) -> str:
    all_lines = text.rstrip("\n").split("\n")
    if lines is None or len(all_lines) <= lines:
        return "\n".join(all_lines)
    return "\n".join([*all_lines[:lines], f"... {len(all_lines) - lines} more lines; --full shows them"])


# ---------------------------------------------------------------- verify, cat


def _verify(args: argparse.Namespace) -> int:
    store, episodes = opened(args.store), 0
    with _bar() as bar:
        line = bar.add_task("reading records and blobs", total=None)
        findings = store.verify(lambda stored: bar.advance(line))
        episodes = int(bar.tasks[line].completed)
    damaged = any(found.kind != _HARMLESS for found in findings)
    if args.json:
        rows = [
            {"kind": one.kind, "file": str(one.path), "offset_bytes": one.offset_bytes, "message": one.message}
            for one in findings
        ]
        print_json({"store": str(store.path), "episodes": episodes, "damaged": damaged, "findings": rows})
        return int(damaged)
    if findings:
        table = Table("kind", "file", "offset (bytes)", "what is wrong", show_lines=True)
        for one in findings:
            where = escape(visible(str(one.path.relative_to(store.path)))), str(one.offset_bytes)
            table.add_row(one.kind, *where, escape(visible(one.message.partition(" bytes: ")[2] or one.message)))
        out.print(table)
    style = "red" if damaged else "green"
    out.print(f"[{style}]{episodes} episodes are whole, {len(findings)} findings[/]", highlight=False)
    return int(damaged)


def _numbered(things: list[Any], number: int | None, first: int, name: str) -> Any:
    last = first + len(things) - 1
    if number is None or not first <= number <= last:
        there = f"{first} to {last}" if things else "none"
        raise UsageError(f"{name} {'without a number' if number is None else number}: this episode has {there}")
    return things[number - first]


def _parts(episode: Episode) -> Mapping[str, Callable[[int | None], bytes]]:
    steps = episode.steps
    observations = [episode.first_observation, *(step.observation for step in steps)]
    figures = [one for observation in observations for one in observation.figures]

    def text(value: str) -> bytes:
        return value.encode("utf-8", "surrogatepass")

    def figure(number: int | None) -> bytes:
        pixels: np.ndarray[Any, Any] = _numbered(figures, number, 1, "figure")
        return ppm_header(pixels) + pixels.tobytes()

    def completion(number: int | None) -> bytes:
        turn = _numbered([step.turn for step in steps], number, 1, "completion")
        if turn is None:
            raise UsageError(f"completion {number}: no model chose this action")
        return text(turn.completion)

    return {
        "artifact": lambda _: episode.artifact.data,
        "certificate": lambda _: text(episode.certificate_text),
        "action": lambda number: text(_numbered([step.action for step in steps], number, 1, "action")),
        "observation": lambda number: text(_numbered(observations, number, 0, "observation").terminal),
        "completion": completion,
        "figure": figure,
    }


_PARTS = ("artifact", "certificate", "action", "observation", "completion", "figure")


def _cat(args: argparse.Namespace) -> int:
    store = opened(args.store)
    key = resolve(store, args.key)
    data = _parts(store.read(key))[args.part](args.number)
    if not data and args.part in ("artifact", "certificate"):
        raise UsageError(f"{key} has no {args.part}")
    if args.json:
        print_json({"key": key, "part": args.part, "number": args.number, "size_bytes": len(data)} | _content(data))
        return 0
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
    return 0


def _content(data: bytes) -> dict[str, Any]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": plain(data)}


# ---------------------------------------------------------------- instances


def _instances(args: argparse.Namespace) -> int:
    secret = splits.read_secret(args.secret_file)
    with _bar() as bar:
        line = bar.add_task("drawing instances", total=None)

        def on_instance(done: int, total: int) -> None:
            bar.update(line, total=total, completed=done)

        if args.action == "make-eval":
            return _made(args, splits.make_evaluation(secret, tasks.load(args.task), args.n, args.out, on_instance))
        task = tasks.load(splits.read_public(args.public)["task"])
        faults = splits.verify_evaluation(secret, task, args.public, on_instance)
    if args.json:
        print_json({"public": str(args.public), "task": task.id, "holds": not faults, "faults": faults})
    else:
        for fault in faults:
            out.print(fault, markup=False, highlight=False, soft_wrap=True, style="red")
        said = f"[red]{len(faults)} faults[/]" if faults else "[green]every commitment holds[/]"
        out.print(f"{task.id}: {said}", highlight=False)
    return 1 if faults else 0


def _made(args: argparse.Namespace, made: splits.EvaluationSet) -> int:
    private = str(made.instances[0].parent)
    if args.json:
        files = [str(path) for path in made.instances]
        print_json({"task": args.task, "count": len(files), "public": str(made.public), "private": files})
    else:
        out.print(f"{len(made.instances)} instances of {args.task}", markup=False, highlight=False)
        out.print(f"publish   {made.public}", markup=False, highlight=False, soft_wrap=True)
        out.print(f"keep      {private}, and the secret", markup=False, highlight=False, soft_wrap=True)
    return 0


def add(commands: Commands) -> None:
    """Add the commands."""
    traj = command(commands, "traj", lambda args: args.act(args), "look into a trajectory store")
    actions = traj.add_subparsers(dest="action", required=True)

    def act(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        added = action(actions, name, text)
        added.set_defaults(act=run)
        added.add_argument("store", type=Path)
        return added

    act("ls", _ls, "list the episodes")
    show = act("show", _show, "show one episode: statement, steps, judgement")
    show.add_argument("key", help="key, the first digits of it, or #INDEX")
    show.add_argument("--full", action="store_true", help="whole texts instead of their first lines")
    show.add_argument("--no-arrays", action="store_true", help="with --json: token ids and logprobs only by length")
    act("verify", _verify, "read everything and name what is damaged; exit 1 when something is")
    cat = act("cat", _cat, "write one part of an episode to stdout, byte for byte; figures as PPM")
    cat.add_argument("key", help="key, the first digits of it, or #INDEX")
    cat.add_argument("part", choices=_PARTS)
    cat.add_argument("number", type=int, nargs="?", help="from 1; observation 0 is the statement")

    drawn = command(commands, "instances", _instances, "make or verify a private evaluation set")
    steps = drawn.add_subparsers(dest="action", required=True)
    make = action(steps, "make-eval", "draw instances from a secret and write their public commitments")
    make.add_argument("task")
    make.add_argument("-n", type=int, required=True, help="how many")
    make.add_argument("--out", type=Path, required=True, help="a new folder")
    check = action(steps, "verify-eval", "derive a set anew from its secret and compare; exit 1 when it does not fit")
    check.add_argument("public", type=Path, help="public.json")
    for one in (make, check):
        one.add_argument("--secret-file", type=Path, required=True, help="at least 16 random bytes, mode 600")
