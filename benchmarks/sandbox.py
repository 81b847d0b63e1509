"""The sandbox, side by side in one run with what people would otherwise use.

    python benchmarks/sandbox.py [--repeats 100] [--quick] [--json]

Needs Docker, bubblewrap, the image and Lean, and installs SWE-ReX once into a virtual environment of its own in the
user's cache. Measures steps, output, resets cold and warm, resets of many at once, memory of idle boxes, a flood of
1 GiB, and verified episodes a core-hour. Prints medians and the ratios with their bars; exits with 1 when one is
missed. ``--quick`` shows that everything runs: few turns, and no SWE-ReX.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack

import docker
import sandbox_costs as costs
import sandbox_speed as speed
from measuring import PROGRESS, Bar, arguments, at_least, at_most, machine, report, rows
from rivals import Plain, SweRex

from tbmm_env.limits import GIB, MIB, TRAIN
from tbmm_env.sandbox import image as images
from tbmm_env.sandbox.docker import connect

AT_ONCE = 16
Found = dict[str, dict[str, float]]


def measured(repeats: int, client: docker.DockerClient, *, quick: bool) -> Found:
    """Measure everything, by title; each part is told as soon as it is there."""
    found: Found = {}

    def note(title: str, values: dict[str, float]) -> None:
        found[title] = values
        PROGRESS.print(f"{title}:", {name: round(value, 2) for name, value in values.items()}, highlight=False)

    with ExitStack() as stack:
        plain = stack.enter_context(Plain(client, images.find()))
        swe_rex = None if quick else stack.enter_context(SweRex())
        note("step of `true`, ms", speed.steps(repeats, plain, swe_rex))
        note("output, MiB/s", speed.output(repeats, 1 if quick else 64, plain, swe_rex))
        note("reset, ms", speed.resets(repeats, plain))
    at_once = 2 if quick else AT_ONCE
    cores = 1 if quick else len(os.sched_getaffinity(0))
    note(f"resets a second, {at_once} at once", speed.parallel(1 if quick else 10, at_once, client))
    note("idle bubblewrap boxes", costs.idle_bwrap(2 if quick else 100))
    note("idle Docker boxes", costs.idle_docker(1 if quick else 10, client))
    for name in speed.BACKENDS:
        note(f"flood, {name}", costs.flood(name, 16 * MIB if quick else GIB))  # type: ignore[arg-type]
    for name in speed.BACKENDS[:1] if quick else speed.BACKENDS:
        note(f"scripted episodes of 30 steps, {name}", costs.verified_episodes(name, 1 if quick else 50, cores))
    return found


def bars(found: Found) -> list[Bar]:
    """Return every bar with what was measured."""
    step, reset = found["step of `true`, ms"], found["reset, ms"]
    kept = []
    for name in speed.BACKENDS:
        own = step[f"{name} step"]
        kept.append(at_least(f"docker exec / {name} step", step["docker exec"] / own, 40))
        kept.append(at_least(f"tmux / {name} step", step["tmux, as Terminal-Bench"] / own, 100))
    start = reset["docker create+start"]
    kept.append(at_most("docker warm reset / create+start", reset["docker reset, warm"] / start, 1 / 5))
    kept.append(at_most("bwrap warm reset / create+start", reset["bwrap reset, warm"] / start, 1 / 15))
    idle = found["idle bubblewrap boxes"]
    taken = max(idle["processes (PSS), MiB"], idle["charged to boxes, MiB"])
    kept.append(at_most(f"MiB of {idle['boxes']:.0f} idle bubblewrap boxes", taken, 2048))
    for name in speed.BACKENDS:
        printed = found[f"flood, {name}"]
        kept.append(at_most(f"flood on {name}: growth of the owner, MiB", printed["growth of the owner, MiB"], 64))
        ended = printed["seconds"] if printed["ended well"] else float("inf")
        kept.append(at_most(f"flood on {name}: seconds", ended, TRAIN.step_wall_s))
    return kept


def main() -> int:
    """Measure, print and return the exit code."""
    parser = arguments(__doc__, 100, "3 turns of everything, small sizes, no SWE-ReX")
    args = parser.parse_args()
    repeats = min(args.repeats, 3) if args.quick else args.repeats
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # then everything is closed
    load = os.getloadavg()
    client, image = connect(), images.find()
    images.ensure_docker(image, client)
    found = measured(repeats, client, quick=args.quick)
    facts = {"machine": machine(load), "repeats": repeats, "measured": found}
    tables = {title: rows(("what", "value"), values) for title, values in found.items()}
    return report(facts, tables, bars(found), as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
