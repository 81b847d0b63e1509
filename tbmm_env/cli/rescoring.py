"""``tbmm rejudge|replay-actions``: stored answers scored anew, stored actions played again."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tbmm_env.cli.console import Commands, command, out, print_json, print_text, progress, sandbox_argument
from tbmm_env.cli.stores import opened
from tbmm_env.errors import UsageError
from tbmm_env.rejudge import SCORE_VERSIONS, Report, rejudge, version_words
from tbmm_env.replay_actions import replay
from tbmm_env.trajectory import Store
from tbmm_env.trajectory.keys import resolve


def _scored_anew(source: Store, made: Store, *, workers: int, across_task_versions: bool) -> Report:
    columns = (
        TextColumn("judging"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[said]}"),
    )
    with Progress(*columns, console=progress) as bar:
        line = bar.add_task("judging", total=None, said="")

        def on_done(report: Report) -> None:
            done = report.rescored + report.passed_over + len(report.failed)
            said = f"{len(report.changed)} changed, {len(report.failed)} failed"
            bar.update(line, completed=done, said=said)

        return rejudge(
            source,
            made,
            workers=workers,
            across_task_versions=across_task_versions,
            on_total=lambda total: bar.update(line, total=total),
            on_done=on_done,
        )


def _print_report(report: Report) -> None:
    for (task, *versions), count in sorted(report.old.items()):
        old = version_words(dict(zip(SCORE_VERSIONS, versions, strict=True)))
        new = f"now {version_words(report.new[task])}" if task in report.new else "not scored now"
        out.print(f"{task}: {count} episodes of {old}; {new}", markup=False, highlight=False, soft_wrap=True)
    if report.changed:
        table = Table("key", "task", "seed", "before", "now", title="Changed", title_justify="left")
        for one in report.changed:
            old, new = f"{one.old_outcome} {_short(one.old_reward)}", f"{one.new_outcome} {_short(one.new_reward)}"
            seed = "-" if one.seed is None else str(one.seed)
            table.add_row(one.key, escape(one.task), seed, escape(old), escape(new))
        out.print(table)
    for key, reason in report.failed:
        print_text(f"not scored: {key}: {reason}", "red")
    for finding in report.unreadable:
        print_text(f"{finding.kind}: {finding.message}", "red")
    style = "green" if report.whole else "red"
    said = f"{report.rescored} scored anew, {len(report.changed)} changed, {report.passed_over} were there already"
    bad = f"{len(report.failed)} failed, {len(report.unreadable)} findings in the old store"
    out.print(f"[{style}]{said}, {bad}[/]", highlight=False)


def _short(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:20]}..."


def _rejudge(args: argparse.Namespace) -> int:
    if not 1 <= args.workers <= 64:
        raise UsageError(f"--workers is {args.workers}; it must be 1 to 64")
    with Store(args.out) as made:
        report = _scored_anew(
            opened(args.store), made, workers=args.workers, across_task_versions=args.across_task_versions
        )
    if args.json:
        print_json({"store": str(args.store), "out": str(args.out)} | report.json())
    else:
        _print_report(report)
    return 0 if report.whole else 1


def _replay_actions(args: argparse.Namespace) -> int:
    store = opened(args.store)
    key = resolve(store, args.key)
    with progress.status("starting the box") as status:
        result = replay(
            store.read(key),
            sandbox=args.sandbox,
            on_step=lambda number, total: status.update(f"step {number} of {total}"),
        )
    if args.json:
        print_json({"key": key} | result.json())
        return 0 if result.same else 1
    for name, old, new in result.versions:
        print_text(f"{name}: recorded with {old or 'none'}, now {new or 'none'}", "yellow")
    for one in result.differences:
        print_text(f"{one.where}, {one.what}: stored {one.stored}, replayed {one.replayed}", "bold red")
        for line in one.diff:
            print_text(f"  {line}", "green" if line.startswith("+") else "red" if line.startswith("-") else "dim")
    style = "green" if result.same else "red"
    said = "everything came out the same" if result.same else f"{len(result.differences)} differences"
    out.print(f"[{style}]{result.steps} steps: {said}[/]", highlight=False)
    return 0 if result.same else 1


def add(commands: Commands) -> None:
    """Add the commands."""
    rescore = command(commands, "rejudge", _rejudge, "score every stored answer anew, into another store")
    rescore.add_argument("store", type=Path)
    rescore.add_argument("out", type=Path, help="new store; one of the same score versions is gone on with")
    rescore.add_argument("--workers", type=int, default=1, help="judges at work at the same time; default 1")
    rescore.add_argument(
        "--across-task-versions", action="store_true", help="score answers to other versions of a task too"
    )

    again = command(commands, "replay-actions", _replay_actions, "play a stored episode again and show what differs")
    again.add_argument("store", type=Path)
    again.add_argument("key", help="key, the first digits of it, or #INDEX")
    sandbox_argument(again)
