"""The command line: ``tbmm list|show|doctor|image|run|judge|certify|audit|check-task|audit-panel``.

Exit codes: 0 judged or done, whatever the outcome; 1 a failing self-check; 2 wrong usage or bad input, with one clear
sentence; 3 our own failure. People read tables on stdout and progress on stderr; ``--json`` prints one JSON value.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tbmm_env import __version__, audit, contracts, doctor, instances, panel, tasks
from tbmm_env.env import ModelingEnv
from tbmm_env.errors import ImageError, TbmmError, TrajectoryError, UsageError
from tbmm_env.judge.artifact import read_artifact
from tbmm_env.judge.judge import Judge
from tbmm_env.limits import PRESETS
from tbmm_env.record import Instance, Judgement, Observation
from tbmm_env.report import exact, judgement_json, print_judgement, short
from tbmm_env.rollout import policies
from tbmm_env.rollout.episode import run_episode
from tbmm_env.sandbox import image as images
from tbmm_env.trajectory.store import Store

_out = Console()
_progress = Console(stderr=True)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False))


# ---------------------------------------------------------------- list, show, doctor


def _list(args: argparse.Namespace) -> int:
    rows: list[dict[str, Any]] = []
    for name in tasks.task_ids():
        task = tasks.load(name)
        rows.append(
            {
                "task": task.id,
                "gym_id": f"tbmm/{task.id}",
                "version": task.version,
                "contest": task.contest,
                "year": task.year,
                "letter": task.letter,
                "title_en": task.titles["en"],
                "title_zh": task.titles["zh"],
                "metrics": [metric.key for metric in task.metrics],
                "papers": sorted({value.paper for value in task.references}),
            }
        )
    if args.json:
        _print_json(rows)
        return 0
    table = Table("task", "title", "标题", "metrics", "papers")
    for row in rows:
        counts = str(len(row["metrics"])), str(len(row["papers"]))
        table.add_row(row["task"], row["title_en"], row["title_zh"], *counts)
    _out.print(table)
    return 0


def _show(args: argparse.Namespace) -> int:
    task = tasks.load(args.task)
    instance = _instance(task, args.instance, args.seed)
    statement = instances.statement(task, instance, args.language)
    if args.json:
        _print_json(
            {
                "task": task.id,
                "version": task.version,
                "panel_version": task.panel_version,
                "instance": instances.public_instance(instance),
                "statement": statement,
                "schema": instances.json_schema(task),
                "metrics": [
                    {
                        "key": metric.key,
                        "question": metric.question,
                        "unit": metric.unit,
                        "kind": metric.kind,
                        "direction": metric.direction,
                        "shape": metric.shape,
                        "weight": exact(metric.weight),
                        "tolerance": float(metric.tolerance),
                        "requires": list(metric.requires),
                        "reason": metric.reason,
                    }
                    for metric in task.metrics
                ],
                "obligations": [
                    {"id": entry.id, "form": entry.form, "question": entry.question, "text": entry.text}
                    for entry in task.obligations
                ],
            }
        )
        return 0
    _out.print(statement, markup=False, highlight=False)
    table = Table(title="Metrics", title_justify="left")
    for column in ("metric", "unit", "direction", "shape", "weight", "tolerance"):
        table.add_column(column, no_wrap=column == "metric")
    for metric in task.metrics:
        tolerance = short(metric.tolerance)
        table.add_row(metric.key, metric.unit, metric.direction, metric.shape, exact(metric.weight), tolerance)
    _out.print(table)
    gate = Table("obligation", "form", "what must hold", title="Gate", title_justify="left")
    for entry in task.obligations:
        gate.add_row(entry.id, entry.form, escape(entry.text))
    _out.print(gate)
    return 0


def _doctor(args: argparse.Namespace) -> int:
    with _progress.status("checking this machine"):
        checks = doctor.run()
    healthy = doctor.healthy(checks)
    if args.json:
        _print_json({"healthy": healthy, "checks": [doctor.check_json(check) for check in checks]})
    else:
        table = Table("check", "", "detail")
        for check in checks:
            mark = "[green]ok[/]" if check.ok else ("[red]failed[/]" if check.required else "[yellow]absent[/]")
            table.add_row(check.name, mark, escape(check.detail))
        _out.print(table)
        _out.print("[green]An episode can run here.[/]" if healthy else "[red]No episode can run here.[/]")
    return 0 if healthy else 1


# ---------------------------------------------------------------- image


def _image(args: argparse.Namespace) -> int:
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=_progress) as bar:
        line = bar.add_task(f"image {args.action}", total=None)

        def step(number: int, total: int, text: str) -> None:
            bar.update(line, total=total, completed=number - 1, description=escape(text))

        try:
            if args.action == "build":
                image = images.build(step)
            elif args.action == "export":
                image = images.find()
                images.export(args.file, step)
            else:
                image = images.import_(args.file, step)
        except ImageError as error:
            if args.action == "build":
                raise
            raise UsageError(str(error)) from error
    if args.json:
        _print_json({"key": image.key, "path": str(image.path), "docker_tag": image.docker_tag})
    else:
        _out.print(f"image {image.key} at {image.path}", markup=False, highlight=False)
    return 0


# ---------------------------------------------------------------- run, judge


def _instance(task: tasks.Task, which: str, seed: int | None) -> Instance:
    if which == "official":
        if seed is not None:
            raise UsageError("--seed goes with --instance sampled; the official instance has no seed")
        return instances.official(task)
    return instances.sampled(task, 0 if seed is None else seed)


def _run(args: argparse.Namespace) -> int:
    task = tasks.load(args.task)
    policy = policies.named(args.agent, task)
    instance = _instance(task, args.instance, args.seed)
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
        recorder=lambda episode: kept.append(store.append(episode)),
    )
    try:
        with _progress.status("starting the box") as status:

            def on_step(number: int, action: str, observation: Observation) -> None:
                first = action.strip().splitlines()[0][:70] if action.strip() else ""
                status.update(f"step {number}")
                _progress.print(f"[bold]step {number}[/] $ {escape(first)}", highlight=False)
                _progress.print(escape(observation.terminal[-1500:]), highlight=False, style="dim")

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
        _print_json(judgement)
    else:
        print_judgement(_out, judgement)
        _out.print(f"trajectory {paths.trajectory}", markup=False, highlight=False)
    return 0


def _judge(args: argparse.Namespace) -> int:
    task = tasks.load(args.task)
    artifact_bytes = PRESETS["contest"].artifact_bytes
    instance = instances.read_instance(task, args.instance_file) if args.instance_file else instances.official(task)
    with (
        _progress.status("replay, gate, score, certificate"),
        Judge(task, artifact_bytes=artifact_bytes) as judge,
    ):
        judgement = judge.judge(instance, read_artifact(args.answer, artifact_bytes))
    result = judgement_json(judgement)
    path = _write_certificate(judgement, args.certificate)
    if isinstance(result["certificate"], dict):
        result["certificate"]["path"] = path
    if args.json:
        _print_json(result)
    else:
        print_judgement(_out, result)
    return 0


def _write_certificate(judgement: Judgement, path: Path | None) -> str | None:
    if path is None:
        return None
    if judgement.certificate is None:
        _progress.print(
            f"[yellow]a {judgement.outcome} answer has no certificate; {escape(str(path))} is not written[/]"
        )
        return None
    try:
        path.write_text(judgement.certificate.text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--certificate {path}: cannot be written: {error}") from error
    return str(path)


# ---------------------------------------------------------------- certify, audit, check-task, audit-panel


def _certify(args: argparse.Namespace) -> int:
    return audit.certify_command(args.file, args.judgement, as_json=args.json, out=_out)


def _audit(args: argparse.Namespace) -> int:
    return audit.audit_command(args.store, args.workers, as_json=args.json, out=_out, progress=_progress)


def _check_task(args: argparse.Namespace) -> int:
    return contracts.command(
        args.task, sandbox=args.sandbox, oracle=not args.no_oracle, as_json=args.json, out=_out, progress=_progress
    )


def _audit_panel(args: argparse.Namespace) -> int:
    return panel.command(
        args.task, write=args.write, freeze_as=args.freeze, as_json=args.json, out=_out, progress=_progress
    )


# ---------------------------------------------------------------- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tbmm", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--version", action="version", version=f"tbmm-env {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        command.add_argument("--json", action="store_true", help="print one JSON value instead of tables")
        return command

    add("list", _list, "list the tasks")
    show = add("show", _show, "show a task's statement, metrics and gate")
    show.add_argument("task")
    _instance_arguments(show)
    add("doctor", _doctor, "check sandboxes, image and Lean on this machine")

    image = add("image", _image, "build, export or import the root filesystem of the sandboxes")
    actions = image.add_subparsers(dest="action", required=True)
    for name, text in (
        ("build", "build it once"),
        ("export", "write it to a file"),
        ("import", "read it from a file"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
        if name != "build":
            action.add_argument("file", type=Path)

    run = add("run", _run, "run one episode and judge it")
    run.add_argument("task")
    run.add_argument("--agent", required=True, help="oracle, nop or script:FILE")
    run.add_argument("--sandbox", choices=["auto", "docker", "bwrap"], default="auto")
    run.add_argument("--budget", choices=sorted(PRESETS), default="contest")
    run.add_argument("--out", type=Path, default=Path("trajectories"), help="trajectory store")
    _instance_arguments(run)

    judge = add("judge", _judge, "judge an answer file")
    judge.add_argument("task")
    judge.add_argument("answer", type=Path)
    judge.add_argument("--instance-file", type=Path, help="instance.json; default: the official instance")
    judge.add_argument("--certificate", type=Path, help="write the Lean certificate here")

    certify = add("certify", _certify, "re-check a certificate file")
    certify.add_argument("file", type=Path)
    certify.add_argument("--judgement", type=Path, help="what `tbmm judge --json` printed: it must be that one's")
    store = add("audit", _audit, "re-check every certificate of a trajectory store")
    store.add_argument("store", type=Path)
    store.add_argument("--workers", type=int, default=1, help="Lean servers at work at the same time; default 1")

    contract = add("check-task", _check_task, "hold a task to its contracts")
    contract.add_argument("task")
    contract.add_argument("--sandbox", choices=["auto", "docker", "bwrap"], default="auto")
    contract.add_argument("--no-oracle", action="store_true", help="leave out the contract that needs a box")

    panels = add("audit-panel", _audit_panel, "replay every published value and compare it with its status")
    panels.add_argument("task")
    panels.add_argument("--write", action="store_true", help="write the table into the task's README.md")
    panels.add_argument("--freeze", metavar="VERSION", help="freeze the panel under a new version")
    return parser


def _instance_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--instance", choices=["official", "sampled"], default="official")
    parser.add_argument("--seed", type=int, help="seed of a sampled instance; default 0")
    parser.add_argument("--language", choices=["en", "zh"], default="en")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: arguments without the program's name; default: those of the process.

    Returns:
        The exit code.
    """
    args = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = args.run
    try:
        return run(args)
    except UsageError as error:
        return _fail(args, error, 2)
    except TbmmError as error:
        return _fail(args, error, 3)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - the edge of the program: an unknown failure is ours
        traceback.print_exc()
        return _fail(args, error, 3)


def _fail(args: argparse.Namespace, error: Exception, code: int) -> int:
    if args.json:
        _print_json({"error": str(error), "kind": type(error).__name__, "exit_code": code})
    _progress.print(f"[bold red]{type(error).__name__}[/]: {escape(str(error))}", highlight=False, soft_wrap=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
