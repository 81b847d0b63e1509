"""Latency, side by side in one run: boxes, steps and certificates, each beside what people would otherwise use.

    python benchmarks/latency.py [--repeats 40] [--json]

Needs Docker, bubblewrap, the image and Lean. Prints medians in ms and the ratios with their bars; exits with 1 when a
bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import docker
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tbmm_env import instances, tasks
from tbmm_env.env import ModelingEnv
from tbmm_env.judge import lean
from tbmm_env.judge.artifact import regular
from tbmm_env.judge.judge import Judge
from tbmm_env.limits import TRAIN
from tbmm_env.sandbox import image as images
from tbmm_env.sandbox.base import Box, BoxSpec, select

TASK = "cumcm-2024-a"
_progress = Console(stderr=True)


def timed_ms(action: Callable[[], object]) -> float:
    """Return the wall time of one call in ms."""
    start = time.perf_counter()
    action()
    return 1e3 * (time.perf_counter() - start)


def interleaved(actions: dict[str, Callable[[], float]], repeats: int, what: str) -> dict[str, float]:
    """Return the median ms of each action; they take turns, so that a busy moment hits all alike."""
    samples: dict[str, list[float]] = {name: [] for name in actions}
    for number in track(range(repeats + 1), description=what, console=_progress):
        for name, action in actions.items():
            value = action()
            if number:  # the first round warms caches
                samples[name].append(value)
    return {name: statistics.median(values) for name, values in samples.items()}


def resets(repeats: int, client: docker.DockerClient, image: images.Image) -> dict[str, float]:
    """Time a whole reset on each box, and a bare Docker create + start of the same image."""
    environments = {name: ModelingEnv(TASK, sandbox=name, budget="train") for name in ("bwrap", "docker")}

    def bare() -> float:
        made = []

        def create_and_start() -> None:
            made.append(client.containers.create(image.docker_tag, ["sleep", "60"], network_mode="none"))
            made[0].start()

        spent = timed_ms(create_and_start)
        made[0].remove(force=True)
        return spent

    def reset(name: str) -> Callable[[], float]:
        def run() -> float:
            environments[name]._close_box()  # the last episode's end is not the next one's start
            return timed_ms(environments[name].reset)

        return run

    try:
        return interleaved(
            {"bwrap reset": reset("bwrap"), "docker reset": reset("docker"), "docker create+start": bare},
            repeats,
            "reset",
        )
    finally:
        for env in environments.values():
            env.close()


def steps(repeats: int, client: docker.DockerClient, image: images.Image) -> dict[str, float]:
    """Time one step of ``true`` on each box beside docker exec and tmux in a container of the same image."""
    spec = BoxSpec(limits=TRAIN, files={"statement.md": b"-"}, image=image)
    container = client.containers.run(image.docker_tag, ["sleep", "3600"], network_mode="none", detach=True)
    boxes: dict[str, Box] = {}

    def step(box: Box) -> Callable[[], float]:
        return lambda: timed_ms(lambda: box.run("true", wall_s=60, on_check=lambda _: ""))

    def tmux() -> float:
        def three() -> None:
            container.exec_run(["tmux", "send-keys", "-t", "b", "true", "Enter"])
            container.exec_run(["tmux", "capture-pane", "-p", "-t", "b"])

        return timed_ms(three)

    try:
        for name in ("bwrap", "docker"):
            boxes[name] = select(name).start(spec)
        container.exec_run(["tmux", "new-session", "-d", "-s", "b"])
        return interleaved(
            {
                "bwrap step": step(boxes["bwrap"]),
                "docker step": step(boxes["docker"]),
                "docker exec": lambda: timed_ms(lambda: container.exec_run(["true"])),
                "tmux send+capture": tmux,
            },
            repeats,
            "step",
        )
    finally:
        for box in boxes.values():
            box.close()
        container.remove(force=True)


def certificates(repeats: int) -> dict[str, float]:
    """Time the check of a real certificate beside the same Lean on an empty file."""
    task = tasks.load(TASK)
    answer = (task.folder / "submissions" / "scored" / "optimum.json").read_bytes()
    with Judge(task, artifact_bytes=TRAIN.artifact_bytes) as judge:
        certificate = judge.judge(instances.official(task), regular(answer)).certificate
    assert certificate is not None
    return interleaved(
        {
            "certificate": lambda: timed_ms(lambda: lean.check(certificate.text, certificate.theorems)),
            "empty file": lambda: timed_ms(lambda: lean.check("prelude\n", ())),
        },
        repeats,
        "certificate",
    )


def machine() -> str:
    """Return processor, cores, memory and kernel."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    memory_gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, Linux {platform.release()}"


def main() -> int:
    """Measure, print, and compare with the bars."""
    parser = argparse.ArgumentParser(description="Latency of boxes, steps and certificates.")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    client, image = docker.from_env(), images.find()
    images.ensure_docker(image, client)
    medians = resets(args.repeats, client, image) | steps(args.repeats, client, image) | certificates(args.repeats)
    ratios = [
        ("bwrap step / docker exec", medians["bwrap step"] / medians["docker exec"], 1 / 20),
        ("docker step / docker exec", medians["docker step"] / medians["docker exec"], 1 / 20),
        ("bwrap reset / docker create+start", medians["bwrap reset"] / medians["docker create+start"], 1 / 2),
        ("certificate / empty file", medians["certificate"] / medians["empty file"], 3.0),
    ]
    met = all(ratio <= bar for _, ratio, bar in ratios)
    if args.json:
        named = [{"ratio": name, "value": ratio, "bar": bar} for name, ratio, bar in ratios]
        result = {"machine": machine(), "repeats": args.repeats, "median_ms": medians, "ratios": named, "met": met}
        print(json.dumps(result, indent=1))
    else:
        out = Console()
        out.print(f"{machine()}; load {os.getloadavg()[0]:.1f}; medians of {args.repeats}", highlight=False)
        table = Table("what", "median ms")
        for name, value in medians.items():
            table.add_row(name, f"{value:.2f}")
        out.print(table)
        bars = Table("ratio", "measured", "bar", "")
        for name, ratio, bar in ratios:
            bars.add_row(name, f"{ratio:.4f}", f"{bar:.4f}", "met" if ratio <= bar else "MISSED")
        out.print(bars)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
