"""Where commands print, and what they have in common."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from rich.console import Console

from tbmm_env import instances, tasks
from tbmm_env.errors import UsageError
from tbmm_env.record import Instance
from tbmm_env.trajectory.plain import visible

out = Console()
progress = Console(stderr=True)

Commands = Any
"""What ``ArgumentParser.add_subparsers`` returns; its class is private to argparse."""


def print_json(value: Any) -> None:
    """Print one JSON value for machines."""
    print(json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False))


def print_text(text: str, style: str = "") -> None:
    """Print a text that came from a store, without anything that a terminal obeys."""
    out.print(visible(text), style=style, markup=False, highlight=False, soft_wrap=True)


def command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    """Add a command with ``--json``; ``run`` returns its exit code."""
    added: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    added.set_defaults(run=run)
    added.add_argument("--json", action="store_true", help="print one JSON value instead of tables")
    return added


def action(actions: Commands, name: str, text: str) -> argparse.ArgumentParser:
    """Add an action of a command that has several; ``--json`` may come before or after it."""
    added: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text)
    added.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
    return added


def instance_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--instance``, ``--seed`` and ``--language``."""
    parser.add_argument("--instance", choices=["official", "sampled"], default="official")
    parser.add_argument("--seed", type=int, help="seed of a sampled instance; default 0")
    parser.add_argument("--language", choices=["en", "zh"], default="en")


def sandbox_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--sandbox``."""
    parser.add_argument("--sandbox", choices=["auto", "docker", "bwrap"], default="auto")


def instance_of(task: tasks.Task, which: str, seed: int | None) -> Instance:
    """Return the instance that ``--instance`` and ``--seed`` name.

    Raises:
        UsageError: a seed was given for the official instance.
    """
    if which == "official":
        if seed is not None:
            raise UsageError("--seed goes with --instance sampled; the official instance has no seed")
        return instances.official(task)
    return instances.sampled(task, 0 if seed is None else seed)
