"""A rollout as people watch it: a bar and a line of figures on stderr."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tbmm_env.rollout.run import INTERRUPTED
from tbmm_env.rollout.tally import Summary

PLAIN_EVERY_S = 30.0
"""How often a line is printed where there is no terminal to draw on."""


def figures(summary: Summary) -> str:
    """Return a summary in one line."""
    parts = [f"running {summary.running}"]
    if summary.skipped:
        parts.append(f"{summary.skipped} from before")
    if summary.reward_mean is not None:
        parts.append(f"reward {summary.reward_mean:.3f}")
    parts += [f"{name} {count}" for name, count in summary.outcomes.items()]
    parts += [f"{name} x{count}" for name, count in summary.failures.items()]
    if summary.done:
        parts.append(f"{summary.episodes_per_hour:.0f} episodes/h")
    if summary.eta_s:
        parts.append(f"{_duration(summary.eta_s)} left")
    if summary.stopped:
        finishing = "finishing what runs; Ctrl-C again stops now" if summary.running else "stopped"
        parts.append(finishing if summary.stopped == INTERRUPTED else f"stopped: {summary.stopped}")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


class Display:
    """Shows how a rollout stands; a call takes the summary, as ``rollout(watch=...)`` wants it.

    Each failure of ours is printed when it is counted, with its reason.

    Args:
        console: where to draw; lines are printed now and then where it is no terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False),
            console=console, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._progress.add_task("starting", total=None)
        self._failures: dict[str, int] = {}
        self._plain_s = time.monotonic()

    def __call__(self, summary: Summary) -> None:
        """Show a summary."""
        for kind, count in summary.failures.items():
            if count > self._failures.get(kind, 0):
                message = f"[yellow]{kind}[/] {escape(summary.reasons[kind])}"
                self._console.print(message, highlight=False, soft_wrap=True)
        self._failures = dict(summary.failures)
        completed = summary.done + summary.skipped
        self._progress.update(self._task, total=summary.planned, completed=completed, description=figures(summary))
        if not self._console.is_terminal and time.monotonic() - self._plain_s >= PLAIN_EVERY_S:
            self._plain_s = time.monotonic()
            line = f"{completed}/{summary.planned}, {figures(summary)}"
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last state standing."""
        self._progress.stop()
