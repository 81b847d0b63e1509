"""Rollouts: what Ray adds to an episode, what workers bring and where their time goes, and the driver's memory.

    python benchmarks/rollouts.py [--quick] [--repeats 40] [--json]

Needs Ray, bubblewrap, the image and Lean. The first measure plays the same 30-step episode in this process and on one
Ray actor, in turns; start-up of Ray and of the judge is left out. The second plays random answers, whose judging is
most of the work. The third plays episodes that cost nothing, to see what the number of jobs does to the driver.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import ray
from measuring import PROGRESS, Bar, arguments, at_most, interleaved, machine, report, rows, timed_ms
from rich.table import Table

from tbmm_env.rollout.jobs import Job, Plan
from tbmm_env.rollout.locks import DriverLock
from tbmm_env.rollout.policies import Policy, Scripted
from tbmm_env.rollout.pool import Inline, Pool
from tbmm_env.rollout.ray_pool import RayPool
from tbmm_env.rollout.run import rollout
from tbmm_env.rollout.tally import Summary
from tbmm_env.rollout.worker import Attempt, Setting
from tbmm_env.sandbox.base import BoxSpec, Sandbox, SandboxName
from tbmm_env.sandbox.scripted import ScriptedBox, ScriptedSandbox
from tbmm_env.tasks import Task

TASK = "cumcm-2024-a"
STEPS = 30
WORKERS = (1, 2, 4, 8)
PARTS = ("reset", "steps", "judge", "store")
OVERHEAD = 0.05
MEMORY_MIB = 16.0


class Forgetful(ScriptedSandbox):
    """Boxes that cost nothing and are not kept."""

    def start(self, spec: BoxSpec) -> ScriptedBox:
        """Return a box."""
        return ScriptedBox(spec, self.results, {})


def thirty_steps(task: Task) -> Policy:
    """Return the policy that acts 29 times and submits."""
    return Scripted([f"echo step {number} > log; cat log" for number in range(STEPS - 1)])


def play(
    plan: Plan,
    policy: str | Callable[[Task], Policy],
    workers: int,
    *,
    sandbox: SandboxName | Sandbox = "bwrap",
    watch: Callable[[Summary], None] | None = None,
) -> Summary:
    """Play a plan into a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        summary = rollout(
            plan, policy, folder, policy_name="bench", workers=workers, sandbox=sandbox, watch=watch, retries=0
        )
    if not summary.complete:
        raise RuntimeError(f"the measure is void: {summary}")
    return summary


def overhead(repeats: int) -> dict[str, float]:
    """Return the median ms of a 30-step episode in this process and on an actor, which play in turns."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        # No box is made ready ahead: it would be made while the other one plays.
        setting = Setting(out=out, policy=thirty_steps, policy_name="bench", sandbox="bwrap", warm=0)
        with DriverLock(out) as lock:
            pools: dict[str, Pool] = {
                "plain loop": Inline(setting),
                "one Ray actor": RayPool(
                    setting, token=lock.token, workers=1, in_flight=1, job_wall_s=600.0, address=None, worker_cpus=0.0
                ),
            }
            number = itertools.count()

            def episode(pool: Pool) -> None:
                pool.give(Attempt(job=Job(task=TASK, seed=0, sample=next(number))))
                while not (ended := pool.wait(10.0)):
                    pass
                if ended[0].report is None or ended[0].report.failure is not None:
                    raise RuntimeError(f"the measure is void: {ended}")

            try:
                turns = {name: partial(timed_ms, partial(episode, pool)) for name, pool in pools.items()}
                return interleaved(turns, repeats, f"{STEPS}-step episode")
            finally:
                for pool in pools.values():
                    pool.close(now=False)


def throughput(episodes: int) -> dict[int, dict[str, float]]:
    """Play random answers with more and more workers; return episodes per hour and the share of each part."""
    found = {}
    for workers in WORKERS:
        PROGRESS.print(f"throughput, {workers} workers")
        starts: list[float] = []

        def watch(summary: Summary, starts: list[float] = starts, least: int = workers) -> None:
            if summary.done >= least and not starts:  # every worker has its judge by then, or nearly
                starts.extend((time.perf_counter(), float(summary.done)))

        total = episodes + workers
        summary = play(Plan([TASK], total, 1), "random-template", workers, watch=watch)
        rate = 3600.0 * (total - starts[1]) / (time.perf_counter() - starts[0])
        busy_s = sum(summary.parts_s.values())
        shares = {part: summary.parts_s[part] / busy_s for part in PARTS}
        found[workers] = {"episodes_per_hour": rate, **shares}
    return found


def table_of(rates: dict[int, dict[str, float]]) -> Table:
    """Return the throughput as people read it."""
    table = Table("workers", "episodes/h", *PARTS)
    for workers, found in rates.items():
        shares = (f"{100 * found[part]:.0f} %" for part in PARTS)
        table.add_row(str(workers), f"{found['episodes_per_hour']:.0f}", *shares)
    return table


def resident_mib() -> float:
    """Return what this process has in memory, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(jobs: int) -> dict[str, float]:
    """Return the driver's memory in MiB after 100 jobs and at the end of many."""
    seen: dict[str, float] = {}

    def watch(summary: Summary) -> None:
        if summary.done >= 100 and not seen:
            seen["driver after 100 jobs"] = resident_mib()

    PROGRESS.print(f"memory, {jobs} jobs")
    summary = play(Plan([TASK], 10, jobs // 10), "nop", 2, sandbox=Forgetful(), watch=watch)
    seen[f"driver after {jobs} jobs"] = resident_mib()
    PROGRESS.print(f"{summary.episodes_per_hour:.0f} episodes/h that cost nothing")
    return seen


def main() -> int:
    """Measure, print, and compare with the bars."""
    parser = arguments(__doc__, 40, "--repeats 10, fewer episodes and jobs")
    args = parser.parse_args()
    before = os.getloadavg()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        medians = overhead(10 if args.quick else args.repeats)
        rates = throughput(8 if args.quick else 24)
        used = memory(1000 if args.quick else 10_000)
    finally:
        ray.shutdown()
    ratio = medians["one Ray actor"] / medians["plain loop"] - 1
    first, last = used.values()
    bars: list[Bar] = [
        at_most(f"Ray's overhead of a {STEPS}-step episode", ratio, OVERHEAD),
        at_most("growth of the driver from 100 jobs on, MiB", last - first, MEMORY_MIB),
    ]
    tables = {
        "median ms of an episode": rows(("30-step episode", "median ms"), medians),
        "random answers in real boxes, and where the workers' time went": table_of(rates),
        "memory": rows(("driver", "MiB"), used, 1),
    }
    facts = {"machine": machine(before), "median_ms": medians, "throughput": rates, "resident_mib": used}
    return report(facts, tables, bars, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
