"""``tbmm export rs|sft|grpo|turns|parquet|atif``: a trajectory store as files that trainers read."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import get_args

from rich.markup import escape
from rich.table import Table

from tbmm_env.cli.console import Commands, action, command, out, print_json, progress
from tbmm_env.datasets.atif import export_atif
from tbmm_env.datasets.chat import ArgumentMode
from tbmm_env.datasets.chats import ChatOptions, export_rs, export_sft
from tbmm_env.datasets.evaluation import read_evaluation
from tbmm_env.datasets.grpo import export_grpo
from tbmm_env.datasets.output import ImageMode
from tbmm_env.datasets.parquet import ROWS_PER_FILE, export_parquet
from tbmm_env.datasets.selection import ExportSplit, Selection
from tbmm_env.datasets.summary import ExportSummary
from tbmm_env.datasets.turns import LogprobMode, TurnShape, export_turns
from tbmm_env.errors import UsageError
from tbmm_env.trajectory.store import Store

Export = Callable[[argparse.Namespace, Store, Selection], ExportSummary]


def _rs(args: argparse.Namespace, store: Store, selection: Selection) -> ExportSummary:
    return export_rs(store, args.out, selection, top_k=args.top_k, options=_chat_options(args), force=args.force)


def _sft(args: argparse.Namespace, store: Store, selection: Selection) -> ExportSummary:
    return export_sft(store, args.out, selection, options=_chat_options(args), force=args.force)


def _grpo(args: argparse.Namespace, store: Store, selection: Selection) -> ExportSummary:
    options = _chat_options(args)
    return export_grpo(store, args.out, selection, group_size=args.group_size, options=options, force=args.force)


def _turns(args: argparse.Namespace, store: Store, selection: Selection) -> ExportSummary:
    return export_turns(
        store,
        args.out,
        selection,
        shape=args.shape,
        logprobs=args.logprobs,
        group_size=args.group_size,
        force=args.force,
    )


def _parquet(args: argparse.Namespace, store: Store, selection: Selection) -> ExportSummary:
    return export_parquet(store, args.out, selection, rows_per_file=args.rows_per_file, force=args.force)


def _atif(args: argparse.Namespace, store: Store, selection: Selection) -> ExportSummary:
    return export_atif(store, args.out, selection, force=args.force)


def _chat_options(args: argparse.Namespace) -> ChatOptions:
    return ChatOptions(arguments=args.arguments, images=args.images)


# ---------------------------------------------------------------- running and telling


def _run(args: argparse.Namespace) -> int:
    export: Export = args.export
    selection = _selection(args)
    with progress.status("reading the store"):
        summary = export(args, Store(args.store), selection)
    if args.json:
        print_json(summary.json() | {"out": str(args.out)})
    else:
        _print(summary, args.out)
    return 0


def _selection(args: argparse.Namespace) -> Selection:
    splits = set(args.split or ["training"])
    if len(splits) > 1:
        raise UsageError("training and evaluation episodes are never in one export; give one --split")
    evaluation: frozenset[str] = frozenset().union(*(read_evaluation(path) for path in args.evaluation))
    return Selection(
        split=splits.pop(),
        include_official=args.include_official,
        evaluation=evaluation,
        tasks=frozenset(args.task),
        task_version=args.task_version,
        panel=args.panel,
        judge=args.judge,
        min_reward=args.min_reward,
    )


def _print(summary: ExportSummary, path: Path) -> None:
    mean = summary.mean_reward
    out.print(
        f"{summary.format}: {summary.episodes} of {summary.read} episodes went in, {summary.rows} rows,"
        f" mean reward {'-' if mean is None else format(float(mean), '.6f')}",
        highlight=False,
        markup=False,
    )
    for title, counts in (
        ("Went in", summary.outcomes),
        ("Scored by", summary.versions),
        ("Left out", summary.left_out),
        ("Notes", summary.notes),
    ):
        if not any(counts.values()):
            continue
        table = Table(title=title, title_justify="left", show_header=False)
        table.add_column(justify="right")
        table.add_column(overflow="fold")
        for name, count in sorted(counts.items()):
            if count:
                table.add_row(str(count), escape(name))
        out.print(table, highlight=False)
    out.print(f"written to {path}", markup=False, highlight=False)


def _reward(text: str) -> Fraction:
    """Read a decimal or ``p/q`` in [0, 1]."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a decimal or p/q") from error
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is outside [0, 1]")
    return value


# ---------------------------------------------------------------- arguments


def add(commands: Commands) -> None:
    """Add the commands."""
    parser = command(commands, "export", _run, "write a trajectory store in a format that trainers read")
    actions = parser.add_subparsers(dest="format", required=True)
    formats: tuple[tuple[str, Export, str], ...] = (
        ("rs", _rs, "the best accepted episodes of each instance as chats (rejection sampling)"),
        ("sft", _sft, "every accepted episode as a chat"),
        ("grpo", _grpo, "groups with rewards and advantages"),
        ("turns", _turns, "token ids, masks and logprobs as a trainer takes them"),
        ("parquet", _parquet, "one typed row an episode"),
        ("atif", _atif, "one ATIF 1.8 trajectory file an episode"),
    )
    for name, export, text in formats:
        added = action(actions, name, text)
        added.set_defaults(export=export)
        added.add_argument("store", type=Path, metavar="STORE", help="trajectory store")
        added.add_argument("out", type=Path, metavar="OUT", help="folder that is made")
        _selection_arguments(added)
        if name in ("rs", "sft", "grpo"):
            added.add_argument("--arguments", choices=get_args(ArgumentMode), default="object", help="of tool calls")
            added.add_argument("--images", choices=get_args(ImageMode), default="files")
        if name in ("grpo", "turns"):  # a group without its low rewards would have another mean
            added.set_defaults(min_reward=Fraction(0))
            added.add_argument("--group-size", type=int, help="of a whole group; default: the greatest there is")
        else:
            added.add_argument("--min-reward", type=_reward, default=Fraction(0), help="least reward, decimal or p/q")
        if name == "rs":
            added.add_argument("--top-k", type=int, default=1, help="episodes of an instance; default 1")
        if name == "turns":
            added.add_argument("--shape", choices=get_args(TurnShape), default="verl")
            added.add_argument("--logprobs", choices=get_args(LogprobMode), default="require")
        if name == "parquet":
            added.add_argument("--rows-per-file", type=int, default=ROWS_PER_FILE)


def _selection_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", action="append", default=[], help="only this task; may be repeated")
    parser.add_argument("--task-version", help="only this version of the tasks")
    parser.add_argument("--panel", help="only judgements against this panel version")
    parser.add_argument("--judge", help="only judgements of this judge version")
    parser.add_argument("--split", choices=get_args(ExportSplit), action="append", help="default: training")
    parser.add_argument(
        "--evaluation",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="instance.json, or a folder of them, to keep out as evaluation instances; may be repeated",
    )
    parser.add_argument("--include-official", action="store_true", help="let official instances in")
    parser.add_argument("--force", action="store_true", help="replace an earlier export")
