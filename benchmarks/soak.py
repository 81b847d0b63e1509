"""Soak: thousands of scripted episodes whose owners are killed at random moments, and a count of what is left.

    python benchmarks/soak.py [--episodes 2000] [--kills 100] [--sandbox both|bwrap|docker] [--seed 0] [--limit-s 3600]
        [--json]

Two owners run at a time, with warm pools, hostile commands and a store of trajectories. Owners are killed by SIGKILL
during start, reset, refill, step or collect; then everything of theirs must go by itself, within 2 s on bubblewrap and
5 s on Docker, and every episode that they reported must be in the store. The last owner of each place is not killed:
its memory, descriptors and processes must stay flat from its 100th episode on. Exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from measuring import PROGRESS, Bar, at_least, at_most, machine, report, rows
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from soak_host import Gone, Leftovers, adopt_orphans, host, new_since

from tbmm_env.sandbox import image as images
from tbmm_env.sandbox.docker import connect
from tbmm_env.trajectory.store import Store

PLACES = {"both": ("bwrap", "docker"), "bwrap": ("bwrap", "bwrap"), "docker": ("docker", "docker")}
BARS_S = {"bwrap": 2.0, "docker": 5.0}
MOMENTS = ("start", "reset", "refill", "step", "collect")
KILLED_SHARE = 0.6
"""Share of the episodes during which owners are killed; the rest is for those that live."""
PATIENCE_S = 30.0
SETTLED = 100
WINDOW = 20
END_WALL_S = 60.0


@dataclass(slots=True)
class Owner:
    """A running owner: what it has said, and when it is to be killed."""

    place: int
    backend: str
    process: subprocess.Popen[bytes]
    after: int
    moment: str
    delay_s: float
    text: bytes = b""
    done: int = 0
    phase: str = "start"
    due_s: float | None = None
    states: list[tuple[int, int, int]] = field(default_factory=list)


class Soak:
    """The driver."""

    def __init__(self, args: argparse.Namespace, work: Path) -> None:
        """Plan the run in a folder of its own."""
        self.args, self.work = args, work
        self.dice = random.Random(args.seed)
        self.backends = PLACES[args.sandbox]
        self.client = connect() if "docker" in self.backends else None
        self.left = Leftovers(self.client)
        self.deadline = time.monotonic() + args.limit_s
        self.kills_left = [args.kills - args.kills // 2, args.kills // 2]
        self.owners: dict[int, Owner] = {}
        self.finished: list[str] = []
        self.lost: list[str] = []
        self.gone: dict[str, list[Gone]] = {name: [] for name in set(self.backends)}
        self.moments: Counter[str] = Counter()
        self.survivors: list[Owner] = []
        self.journal = (work / "journal").open("ab", buffering=0)

    # ------------------------------------------------------------ owners

    def begin(self, place: int) -> None:
        """Start an owner; its death is planned now."""
        per_kill = KILLED_SHARE * self.args.episodes / max(1, self.args.kills)
        moment = self.dice.choice(MOMENTS)
        delay_s = self.dice.uniform(0, 3.0 if moment == "start" else self.dice.choice((0.01, 0.3)))
        script = Path(__file__).with_name("soak_owner.py")
        words = [sys.executable, script, self.backends[place], self.work / "store", str(self.dice.random()), "2"]
        temporary = self.work / "tmp"
        temporary.mkdir(exist_ok=True)
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(temporary)},
            stderr=(self.work / "errors").open("ab"),
        )  # fmt: skip
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        after = 0 if moment == "start" else self.dice.randint(0, max(1, round(2 * per_kill)))
        owner = Owner(place, self.backends[place], process, after, moment, delay_s)
        if not self.kills_left[place]:
            owner.moment = "never"
            self.survivors.append(owner)
        self.owners[place] = owner

    def serve(self, wait_s: float = 0.0) -> None:
        """Read what owners have said, for at most so long."""
        pipes = {owner.process.stdout: owner for owner in self.owners.values()}
        ready, _, _ = select.select(list(pipes), [], [], wait_s)
        for pipe in ready:
            self._read(pipes[pipe])

    def _read(self, owner: Owner) -> None:
        assert owner.process.stdout is not None
        owner.text += owner.process.stdout.read() or b""
        *lines, owner.text = owner.text.split(b"\n")
        for line in lines:
            kind, _, text = line.decode("utf-8", "replace").partition(" ")
            if kind == "done":
                self.journal.write(f"{owner.process.pid} {text}\n".encode())
                self.finished.append(text)
                owner.done += 1
            elif kind == "lost":
                self.lost.append(f"{owner.backend}: {text}")
            elif kind == "state":
                rss, descriptors, processes = map(int, text.split())
                owner.states.append((rss, descriptors, processes))
            elif kind == "phase":
                owner.phase = text
                if owner.due_s is None and text == owner.moment and owner.done >= owner.after:
                    owner.due_s = time.monotonic() + owner.delay_s
        if owner.moment == "start" and owner.due_s is None:
            owner.due_s = time.monotonic() + owner.delay_s

    def kill(self, owner: Owner) -> None:
        """Kill an owner and wait until nothing of it is left."""
        owner.process.kill()
        self.kills_left[owner.place] -= 1
        self.moments[f"after {owner.moment}, in {owner.phase}"] += 1
        self.gone[owner.backend].append(self._bury(owner))

    def _bury(self, owner: Owner) -> Gone:
        owner.process.wait()
        self._read(owner)
        del self.owners[owner.place]
        self.left.dead.add(owner.process.pid)
        found = self.left.wait({one.process.pid for one in self.owners.values()}, PATIENCE_S, self.serve)
        assert owner.process.stdin is not None
        assert owner.process.stdout is not None
        owner.process.stdin.close()
        owner.process.stdout.close()
        return found

    # ------------------------------------------------------------ the run

    def run(self, progress: Progress) -> None:
        """Run until there are enough episodes and kills, or time is over."""
        episodes = progress.add_task("episodes", total=self.args.episodes)
        kills = progress.add_task("kills", total=self.args.kills)
        while time.monotonic() < self.deadline and not self._enough():
            for place in range(len(self.backends)):
                if place not in self.owners:
                    self.begin(place)
            self.serve(0.02)
            for owner in list(self.owners.values()):
                if owner.process.poll() is not None:
                    self.lost.append(f"{owner.backend}: an owner ended by itself with {owner.process.returncode}")
                    self._bury(owner)
                elif owner.due_s is not None and time.monotonic() >= owner.due_s:
                    self.kill(owner)
            progress.update(episodes, completed=len(self.finished))
            progress.update(kills, completed=self.args.kills - sum(self.kills_left))

    def _enough(self) -> bool:
        settled = min(SETTLED + 2 * WINDOW, self.args.episodes // 10)
        return (
            len(self.finished) >= self.args.episodes
            and not any(self.kills_left)
            and all(one.done >= settled for one in self.survivors)
        )

    def end(self) -> Gone:
        """Let the living end, kill those that do not, and look for what is left of anybody."""
        for owner in self.owners.values():
            assert owner.process.stdin is not None
            owner.process.stdin.close()
            owner.process.stdin = open(os.devnull, "wb")  # noqa: SIM115, PTH123 (closed when it is buried)
        deadline = time.monotonic() + END_WALL_S
        while any(one.process.poll() is None for one in self.owners.values()) and time.monotonic() < deadline:
            self.serve(0.1)
        last = Gone(0.0, 0.0)
        for owner in list(self.owners.values()):
            if owner.process.poll() is None:
                self.lost.append(f"{owner.backend}: an owner did not end within {END_WALL_S:g} s of being told to")
            owner.process.kill()
            last = self._bury(owner)
        return last

    # ------------------------------------------------------------ findings

    def missing(self) -> tuple[list[str], int, int]:
        """Return episodes that were reported and are not in the store, how many are in it, and damaged records."""
        damaged: list[object] = []
        stored: Counter[str] = Counter()
        if (self.work / "store").is_dir():
            stored.update(one.episode.episode_id for one in Store(self.work / "store").episodes(damaged.append))
        wrong = [name for name in self.finished if stored[name] != 1]
        return wrong, stored.total(), len(damaged)


def growth(owner: Owner) -> dict[str, float]:
    """Return by how much a survivor grew from its 100th episode (half way, if it has few) to its last."""
    window = max(1, min(WINDOW, len(owner.states) // 4))
    first = min(SETTLED, len(owner.states) // 2)

    def median(column: int, start: int) -> float:
        return statistics.median(state[column] for state in owner.states[start : start + window])

    names = ("memory, MiB", "descriptors", "processes")
    grown = {name: median(n, len(owner.states) - window) - median(n, first) for n, name in enumerate(names)}
    grown["memory, MiB"] /= 1024
    return {"episodes": float(owner.done)} | grown


def bars_of(soak: Soak) -> list[Bar]:
    """Return the bars of kills and of the store."""
    kept = [
        at_least("episodes", len(soak.finished), soak.args.episodes),
        at_least("kills", soak.args.kills - sum(soak.kills_left), soak.args.kills),
        at_most("failures of ours", len(soak.lost), 0),
    ]
    left = sum(bool(one.left) for found in soak.gone.values() for one in found)
    kept.append(at_most("kills after which something was left for good", left, 0))
    for name, found in soak.gone.items():
        worst = max((one.all_s for one in found), default=0.0)
        kept.append(at_most(f"{name}: seconds until nothing of a killed owner was left, worst", worst, BARS_S[name]))
    for owner in soak.survivors:
        if len(owner.states) > 3:
            grown = growth(owner)
            kept.append(at_most(f"{owner.backend} survivor: growth of memory, MiB", grown["memory, MiB"], 8))
            kept.append(at_most(f"{owner.backend} survivor: growth of descriptors", grown["descriptors"], 2))
            kept.append(at_most(f"{owner.backend} survivor: growth of processes", grown["processes"], 0))
    return kept


def main() -> int:
    """Run, count, print and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--sandbox", choices=sorted(PLACES), default="both")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit-s", type=float, default=3600.0, help="wall time after which it stops and has failed")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    adopt_orphans()
    load, started = os.getloadavg(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tbmm-soak-") as name:
        soak = Soak(args, Path(name))
        folder = images.find().path.parents[1]
        before = host(soak.client, folder)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        try:
            with Progress(*columns, console=PROGRESS) as progress:
                soak.run(progress)
        finally:
            last = soak.end()
        wall_s = time.monotonic() - started
        fresh, after = new_since(before, lambda: host(soak.client, folder), 10.0)
        files = sorted(path.name for path in (Path(name) / "tmp").glob("*")) if (Path(name) / "tmp").is_dir() else []
        wrong, stored, damaged = soak.missing()
        errors = (Path(name) / "errors").read_text(encoding="utf-8", errors="replace")[-3000:]
        soak.journal.close()
    left = [*last.left, *fresh, *files]
    kept = bars_of(soak) + [
        at_most("reported episodes that are not in the store", len(wrong), 0),
        at_most("left: processes, groups, folders, containers, mounts, volumes, files", len(left), 0),
        at_most("growth of the folder of images, MiB", (after.image_bytes - before.image_bytes) / 2**20, 1),
        at_most("growth of the driver's descriptors", after.descriptors - before.descriptors, 2),
    ]
    times: dict[str, float] = {}
    for backend, found in soak.gone.items():
        for what, values in (("boxes", [one.boxes_s for one in found]), ("all", [one.all_s for one in found])):
            if values:
                times[f"{backend}: {what} gone, median"] = statistics.median(values)
                times[f"{backend}: {what} gone, worst"] = max(values)
    count = {
        "episodes": len(soak.finished), "kills": sum(soak.moments.values()), "in the store": stored,
        "damaged records": damaged, "wall_s": round(wall_s, 1),
    }  # fmt: skip
    never = [line for found in soak.gone.values() for one in found for line in one.left]
    facts = {
        "machine": machine(load), "count": count, "killed_during": dict(soak.moments), "gone_s": times,
        "survivors": {one.backend: growth(one) for one in soak.survivors if len(one.states) > 3},
        "left": left, "left_after_a_kill": never, "failures": soak.lost, "errors": errors,
    }  # fmt: skip
    tables: dict[str, Table] = {
        "soak": rows(("what", "count"), count, digits=0),
        "killed during": rows(("moment", "times"), soak.moments, digits=0),
        "after a kill": rows(("what", "seconds"), times),
    }
    if not args.json:
        for line in [*left, *never, *soak.lost[:20], *errors.splitlines()[-20:]]:
            PROGRESS.print(line, markup=False, highlight=False)
    return report(facts, tables, kept, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
