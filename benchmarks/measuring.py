"""What the benchmarks share: turns, medians, the machine's name, and bars."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

PROGRESS = Console(stderr=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A promise beside what was measured.

    Attributes:
        name: what is compared, with the bound as people read it: ``server / cold <= 0.75``.
        value: what was measured.
        kept: whether the bound holds.
    """

    name: str
    value: float
    kept: bool


def at_most(name: str, value: float, bound: float) -> Bar:
    """Return the bar of a value that must not be above a bound."""
    return Bar(name=f"{name} <= {bound:g}", value=value, kept=value <= bound)


def at_least(name: str, value: float, bound: float) -> Bar:
    """Return the bar of a value that must not be below a bound."""
    return Bar(name=f"{name} >= {bound:g}", value=value, kept=value >= bound)


def timed_ms(action: Callable[[], object]) -> float:
    """Return the wall time of one call in ms."""
    start = time.perf_counter()
    action()
    return 1e3 * (time.perf_counter() - start)


def interleaved(
    actions: Mapping[str, Callable[[], float]], repeats: int, what: str, *, pause_s: float = 0.0, in_a_row: int = 1
) -> dict[str, float]:
    """Return the median of what each action returns; they take turns, so that a busy moment hits all alike.

    Args:
        actions: by name.
        repeats: turns, after one that warms caches.
        what: shown beside the progress.
        pause_s: before each action's turn, so that none pays for what a daemon still does for the one before.
        in_a_row: how often an action is done in one turn; with more than 1 the first of a turn does not count.
    """
    samples: dict[str, list[float]] = {name: [] for name in actions}
    for number in track(range(repeats + 1), description=what, console=PROGRESS):
        for name, action in actions.items():
            time.sleep(pause_s)
            values = [action() for _ in range(in_a_row)]
            if number:  # the first round warms caches
                samples[name] += values[in_a_row > 1 :]
    return {name: statistics.median(values) for name, values in samples.items()}


def machine(before: tuple[float, float, float]) -> dict[str, object]:
    """Return processor, cores, memory, kernel, Python, and the load before and now."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {
        "processor": model,
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "load_before": [round(value, 2) for value in before],
        "load_after": [round(value, 2) for value in os.getloadavg()],
    }


def arguments(doc: str | None, repeats: int, quick: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has; ``quick`` says what ``--quick`` does."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    parser.add_argument("--repeats", type=int, default=repeats, help=f"turns of each thing; {repeats} by default")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", action="store_true")
    return parser


def report(facts: Mapping[str, object], tables: Mapping[str, Table], bars: list[Bar], *, as_json: bool) -> int:
    """Print everything and return the exit code: 1 when a bar is missed.

    Args:
        facts: what ``--json`` prints, ``machine`` among it; the bars are added.
        tables: what is printed otherwise, by title.
        bars: the promises.
        as_json: print JSON.
    """
    status = 0 if all(bar.kept for bar in bars) else 1
    if as_json:
        print(json.dumps({**facts, "bars": [asdict(bar) for bar in bars]}, indent=1))
        return status
    out = Console()
    named = facts["machine"]
    assert isinstance(named, dict)
    out.print(", ".join(f"{name} {value}" for name, value in named.items()), highlight=False)
    for title, table in tables.items():
        table.title = title
        out.print(table)
    table = Table("bar", "measured", "")
    for bar in bars:
        table.add_row(bar.name, f"{bar.value:.4g}", "[green]kept[/]" if bar.kept else "[red]missed[/]")
    out.print(table)
    return status


def rows(head: tuple[str, ...], values: Mapping[str, float], digits: int = 2) -> Table:
    """Return a table of names and numbers."""
    table = Table(*head)
    for name, value in values.items():
        table.add_row(name, f"{value:.{digits}f}")
    return table
