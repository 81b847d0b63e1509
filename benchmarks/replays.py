"""Replays of every task, side by side in one run: its best answer, the largest its schema allows, sampling, reference.

    python benchmarks/replays.py [--repeats 20] [--quick] [--json]

Prints medians in ms, and the slowest of several largest answers beside the replay's limit; exits with 1 when it takes
more than a tenth of that. Everything runs as the judge runs it, in the bounded child, but sampling, which a reset does.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from functools import partial

from measuring import PROGRESS, Bar, arguments, at_most, interleaved, machine, report, timed_ms
from rich.progress import track
from rich.table import Column, Table

from tbmm_env import instances, tasks
from tbmm_env.bench import optimum
from tbmm_env.judge.artifact import parse, validate
from tbmm_env.judge.replay import Replayer
from tbmm_env.labels import ARTIFACT_BYTES
from tbmm_env.leaves import json_bytes
from tbmm_env.limits import JUDGE
from tbmm_env.record import Answer, Instance
from tbmm_env.rollout.template import random_answer
from tbmm_env.tasks import Task

DRAWS, QUICK_DRAWS = 20, 3
SEEDS, QUICK_SEEDS = 10, 2


def largest(task: Task, seed: int) -> Answer:
    """Return an answer whose lists are all as long as the schema allows, of random numbers."""
    raw = random_answer(task.answer_schema, random.Random(seed), full=True)
    data = json_bytes(raw)
    if len(data) > ARTIFACT_BYTES:
        raise SystemExit(f"{task.id}: the largest answer has {len(data)} bytes; the limit is {ARTIFACT_BYTES} bytes")
    answer = validate(parse(data), task.answer_schema)
    if answer.value is None:
        raise SystemExit(f"{task.id}: the largest answer is refused: {answer.problems[0].message}")
    return answer


def replays(task: Task, repeats: int, draws: int) -> tuple[dict[str, float], float]:
    """Return median ms of the best and of a largest answer, and the slowest of ``draws`` largest ones."""
    official, best = instances.official(task), optimum(task)
    assert best.value is not None
    with_child = Replayer()
    try:

        def once(answer: Answer, instance: Instance = official) -> float:
            assert answer.value is not None
            return timed_ms(partial(with_child.replay, task, instance, answer.value))

        drawn = [largest(task, seed) for seed in range(draws)]
        actions: dict[str, Callable[[], float]] = {
            "best answer": partial(once, best),
            "largest answer": partial(once, drawn[0]),
        }
        medians = interleaved(actions, repeats, f"{task.id}: replays")
        return medians, max(once(answer) for answer in track(drawn, description="largest answers", console=PROGRESS))
    finally:
        with_child.close()


def drawing(task: Task, seeds: int) -> dict[str, float]:
    """Return the slowest sampling and reference in ms over the first seeds, each done once."""
    with_child = Replayer()
    sampled_ms, reference_ms = [], []
    try:
        with_child.probe()
        for seed in track(range(seeds), description=f"{task.id}: instances", console=PROGRESS):
            sampled_ms.append(timed_ms(partial(instances.sampled, task, seed)))
            reference_ms.append(timed_ms(partial(with_child.panel, task, instances.sampled(task, seed))))
    finally:
        with_child.close()
    return {"sampling, slowest": max(sampled_ms), "reference, slowest": max(reference_ms)}


def main() -> int:
    """Measure, print and return the exit code."""
    args = arguments(__doc__, 20, "few repeats, answers and seeds").parse_args()
    load = os.getloadavg()
    found: dict[str, dict[str, float]] = {}
    bars: list[Bar] = []
    for task in map(tasks.load, tasks.task_ids()):
        repeats = min(args.repeats, 3) if args.quick else args.repeats
        medians, slowest = replays(task, repeats, QUICK_DRAWS if args.quick else DRAWS)
        seeds = QUICK_SEEDS if args.quick else SEEDS
        found[task.id] = medians | {"largest answer, slowest": slowest} | drawing(task, seeds)
        bars.append(at_most(f"{task.id}: largest / limit", slowest / (1e3 * JUDGE.replay_wall_s), 0.1))
    table = Table(Column("task", no_wrap=True), *next(iter(found.values())))
    for name, values in found.items():
        table.add_row(name, *(f"{value:.1f}" for value in values.values()))
    return report({"machine": machine(load), "ms": found}, {"ms": table}, bars, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
