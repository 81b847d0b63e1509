"""Certificates, side by side in one run: a cold Lean process, the server, two workers, and many obligations.

    python benchmarks/certificates.py [--repeats 20] [--quick] [--json]

Needs Lean. Prints medians, the ratios with their bars, and the curve of time and memory over the number of obligations;
exits with 1 when a bar is missed. The whole judge is shown too, but most of its time is the replay's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial

from measuring import PROGRESS, Bar, arguments, at_least, at_most, interleaved, machine, report, rows, timed_ms
from rich.progress import track
from rich.table import Table

from tbmm_env import instances, tasks
from tbmm_env.judge import judge as pipeline
from tbmm_env.judge import lean
from tbmm_env.judge.artifact import read_artifact
from tbmm_env.judge.certificate import Draft, draft
from tbmm_env.judge.gate import resolve
from tbmm_env.judge.judge import Judge
from tbmm_env.judge.score import reward, score
from tbmm_env.judge.server import LeanServer
from tbmm_env.limits import PRESETS
from tbmm_env.record import Certificate, Panel
from tbmm_env.specs import MetricSpec, ObligationSpec

TASK = "cumcm-2024-a"
SIZES, QUICK_SIZES = (10, 100, 1000, 3000, 10_000), (10, 100, 1000)
BATCH = 40


def turns(actions: dict[str, Callable[[], object]], repeats: int, what: str) -> dict[str, float]:
    """Return the median ms of each action; they take turns."""
    return interleaved({name: partial(timed_ms, action) for name, action in actions.items()}, repeats, what)


# ---------------------------------------------------------------- the reference answer


def judged(repeats: int) -> tuple[dict[str, float], Certificate]:
    """Time the whole judge on the optimum without Lean, with a cold process and with the server."""
    task = tasks.load(TASK)
    size = PRESETS["contest"].artifact_bytes
    instance = instances.official(task)
    artifact = read_artifact(task.folder / "submissions" / "scored" / "optimum.json", size)
    real = pipeline.certify
    with Judge(task, artifact_bytes=size) as judge:
        certificate = judge.judge(instance, artifact).certificate
        assert certificate is not None

        def with_certify(certify: Callable[..., Certificate]) -> Callable[[], object]:
            def run() -> object:
                pipeline.certify = certify  # type: ignore[assignment]
                try:
                    return judge.judge(instance, artifact)
                finally:
                    pipeline.certify = real

            return run

        def cold(*args: object, **keywords: object) -> Certificate:
            return real(*args, **keywords | {"server": None})  # type: ignore[arg-type]

        actions = {
            "judge without Lean": with_certify(lambda *args, **keywords: certificate),
            "judge, cold Lean process": with_certify(
                lambda *args, **keywords: real(*args, **keywords | {"server": None})
            ),
            "judge, Lean server": with_certify(real),
        }
        return turns(actions, max(3, repeats // 4), "judge"), certificate


def checked(certificate: Certificate, repeats: int) -> dict[str, float]:
    """Time the kernel's check of one certificate, and a batch with one worker and with two."""
    text, theorems = certificate.text, certificate.theorems
    with LeanServer() as one, LeanServer(2) as two:

        def batch(server: LeanServer) -> Callable[[], object]:
            return lambda: [require(result) for result in server.check_many([(text, theorems)] * BATCH)]

        times = turns(
            {
                "check, cold Lean process": lambda: require(lean.check(text, theorems)),
                "check, Lean server": lambda: require(one.check(text, theorems)),
                "empty file, cold Lean process": lambda: lean.check("prelude\n", ()),
            },
            repeats,
            "check",
        )
        actions = {f"{BATCH} checks, 1 worker": batch(one), f"{BATCH} checks, 2 workers": batch(two)}
        return times | turns(actions, max(3, repeats // 4), "batch")


def require(result: object) -> None:
    """Stop when a certificate is not accepted: then there is nothing to measure."""
    if not (isinstance(result, lean.CheckResult) and result.accepted):
        raise SystemExit(f"a certificate is not accepted: {result}")


# ---------------------------------------------------------------- many obligations


def certificate_of(obligations: int) -> Draft:
    """Write a certificate of so many obligations on one value each."""
    specs = [
        ObligationSpec(
            id=f"entry_{number}_within_its_bounds",
            form="bound",
            question="q1",
            terms=(f"answer:v{number}",),
            unit="m",
            source="statement",
            text="",
            tolerance=Fraction("0.001"),
            lower="0",
            upper="100000",
        )
        for number in range(obligations)
    ]
    answer = {f"v{number}": number + Fraction(number % 997, 1000) for number in range(obligations)}
    resolved = resolve(specs, answer, {}, {})
    metric = MetricSpec(
        key="x_m",
        question="q1",
        unit="m",
        kind="replayed",
        direction="higher_is_better",
        shape="linear",
        weight=Fraction(1),
        tolerance=Fraction("0.01"),
        grid=Fraction("0.001"),
        value="replay:x",
        domain=(Fraction(0), Fraction(1000)),
        reason="",
    )
    panel = Panel(version="1", references=(), anchor={"x_m": Fraction(900)}, baseline={"x_m": Fraction(0)})
    values = {"x_m": Fraction("812.345")}
    scored = score([metric], panel, values, {entry.spec.id: entry.state for entry in resolved}, {})
    return draft([metric], panel, values, resolved, scored, reward(resolved, scored))


def measure(obligations: int) -> dict[str, float]:
    """Check one certificate in a cold Lean process; its processor time and its peak memory."""
    written = certificate_of(obligations)
    lean.library()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall_ms = timed_ms(lambda: require(lean.check(written.text, written.theorems)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "obligations": obligations,
        "wall_s": wall_ms / 1e3,
        "cpu_s": cpu_s,
        "peak_mib": after.ru_maxrss / 1024,
        "text_kib": len(written.text) / 1024,
    }


def curve(sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """Measure every size in a process of its own, as the peak is that of all children a process ever had."""
    found = []
    for size in track(sizes, description="obligations", console=PROGRESS):
        command = [sys.executable, __file__, "--measure", str(size)]
        found.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    return found


# ---------------------------------------------------------------- bars and output


def bars(times: dict[str, float], found: list[dict[str, float]]) -> list[Bar]:
    """Return every bar with what was measured."""
    cold = times["check, cold Lean process"]
    kept = [
        at_most("server / cold", times["check, Lean server"] / cold, 0.75),
        at_most("cold / empty file", cold / times["empty file, cold Lean process"], 3),
        at_least("one worker / two", times[f"{BATCH} checks, 1 worker"] / times[f"{BATCH} checks, 2 workers"], 1.7),
    ]
    for row in found:
        limit = 200 if row["obligations"] <= 1000 else 300
        kept.append(at_most(f"MiB at {row['obligations']:.0f} obligations", row["peak_mib"], limit))
    first, last = found[-2], found[-1]
    growth = (last["cpu_s"] / first["cpu_s"]) / (last["obligations"] / first["obligations"])
    kept.append(at_most("time an obligation, last / last but one", growth, 1.5))
    return kept


def main() -> int:
    """Measure, print and return the exit code."""
    parser = arguments(__doc__, 20, "few repeats, up to 1,000 obligations")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure is not None:
        print(json.dumps(measure(args.measure)))
        return 0
    repeats = min(args.repeats, 3) if args.quick else args.repeats
    load = os.getloadavg()
    times, certificate = judged(repeats)
    times |= checked(certificate, 4 * repeats)
    found = curve(QUICK_SIZES if args.quick else SIZES)
    facts = {"machine": machine(load) | {"lean": lean.find().version}, "median_ms": times, "curve": found}
    table = Table("obligations", "wall, s", "processor, s", "ms an obligation", "peak, MiB", "text, KiB")
    for row in found:
        each = f"{1e3 * row['cpu_s'] / row['obligations']:.2f}"
        cells = f"{row['obligations']:.0f}", f"{row['wall_s']:.2f}", f"{row['cpu_s']:.2f}", each
        table.add_row(*cells, f"{row['peak_mib']:.0f}", f"{row['text_kib']:.0f}")
    tables = {"one answer": rows(("what", "median, ms"), times, digits=1), "many obligations": table}
    return report(facts, tables, bars(times, found), as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
