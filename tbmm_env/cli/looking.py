"""``tbmm list|show|doctor|image``: what there is, and whether it works here."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tbmm_env import doctor, instances, tasks
from tbmm_env.cli.console import Commands, action, command, instance_arguments, instance_of, out, print_json, progress
from tbmm_env.errors import ImageError, UsageError
from tbmm_env.report import exact, short
from tbmm_env.sandbox import image as images


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
                "levels": instances.levels(task),
                "metrics": [metric.key for metric in task.metrics],
                "papers": sorted({value.paper for value in task.references}),
            }
        )
    if args.json:
        print_json(rows)
        return 0
    table = Table("task", "title", "标题", "levels", "metrics", "papers")
    for row in rows:
        counts = str(row["levels"]), str(len(row["metrics"])), str(len(row["papers"]))
        table.add_row(row["task"], row["title_en"], row["title_zh"], *counts)
    out.print(table)
    return 0


def _show(args: argparse.Namespace) -> int:
    task = tasks.load(args.task)
    instance = instance_of(task, args.instance, args.seed)
    statement = instances.statement(task, instance, args.language)
    if args.json:
        print_json(
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
    out.print(statement, markup=False, highlight=False)
    table = Table(title="Metrics", title_justify="left")
    for column in ("metric", "unit", "direction", "shape", "weight", "tolerance"):
        table.add_column(column, no_wrap=column == "metric")
    for metric in task.metrics:
        tolerance = short(metric.tolerance)
        table.add_row(metric.key, metric.unit, metric.direction, metric.shape, exact(metric.weight), tolerance)
    out.print(table)
    gate = Table("obligation", "form", "what must hold", title="Gate", title_justify="left")
    for entry in task.obligations:
        gate.add_row(entry.id, entry.form, escape(entry.text))
    out.print(gate)
    return 0


def _doctor(args: argparse.Namespace) -> int:
    with progress.status("checking this machine"):
        checks = doctor.run()
    healthy = doctor.healthy(checks)
    if args.json:
        print_json({"healthy": healthy, "checks": [doctor.check_json(check) for check in checks]})
    else:
        table = Table("check", "", "detail")
        for check in checks:
            mark = "[green]ok[/]" if check.ok else ("[red]failed[/]" if check.required else "[yellow]absent[/]")
            table.add_row(check.name, mark, escape(check.detail))
        out.print(table)
        out.print("[green]An episode can run here.[/]" if healthy else "[red]No episode can run here.[/]")
    return 0 if healthy else 1


def _image(args: argparse.Namespace) -> int:
    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=progress) as bar:
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
        print_json({"key": image.key, "path": str(image.path), "docker_tag": image.docker_tag})
    else:
        out.print(f"image {image.key} at {image.path}", markup=False, highlight=False)
    return 0


def add(commands: Commands) -> None:
    """Add the commands."""
    command(commands, "list", _list, "list the tasks")
    show = command(commands, "show", _show, "show a task's statement, metrics and gate")
    show.add_argument("task")
    instance_arguments(show)
    command(commands, "doctor", _doctor, "check sandboxes, image and Lean on this machine")
    image = command(commands, "image", _image, "build, export or import the root filesystem of the sandboxes")
    actions = image.add_subparsers(dest="action", required=True)
    action(actions, "build", "build it once")
    action(actions, "export", "write it to a file").add_argument("file", type=Path)
    action(actions, "import", "read it from a file").add_argument("file", type=Path)
