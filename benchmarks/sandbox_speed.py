"""Part of sandbox.py: steps, output and resets of both backends beside their rivals, and resets of many at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import docker
from measuring import interleaved, timed_ms
from rivals import Plain, SweRex

from tbmm_env import tasks
from tbmm_env.env import ModelingEnv
from tbmm_env.judge.judge import Judge
from tbmm_env.limits import MIB, TRAIN
from tbmm_env.sandbox import image as images
from tbmm_env.sandbox.base import Box, BoxSpec, PreparingSandbox, Sandbox, select
from tbmm_env.sandbox.pool import Pool

TASK = "cumcm-2024-a"
BACKENDS = ("bwrap", "docker")
READY_WALL_S = 120.0
PAUSE_S = 0.1
"""Before each turn: the daemon is still at work for a while after a `docker exec` has answered."""
IN_A_ROW = 6
"""Steps of a turn. The one after a rest is slower: what slept has to be woken, by whatever means it is reached."""
SWE_REX_MIB = 1
"""SWE-ReX searches its prompt in all that was printed so far: 8 MiB take half a minute."""


def preparing(name: str) -> PreparingSandbox:
    """Return a backend that can make boxes ready."""
    sandbox = select(name)  # type: ignore[arg-type]
    assert isinstance(sandbox, PreparingSandbox)
    return sandbox


def run(box: Box, command: str) -> None:
    """Run a command that must end well."""
    result = box.run(command, wall_s=TRAIN.step_wall_s, on_check=lambda _: "")
    if result.ending != "exited" or result.exit_status != 0:
        raise SystemExit(f"{command!r} in a box: {result.ending}, status {result.exit_status}, {result.evidence}")


@contextmanager
def boxes() -> Iterator[dict[str, Box]]:
    """Give one box of each backend."""
    spec = BoxSpec(limits=TRAIN, files={"statement.md": b"-"}, image=images.find())
    with ExitStack() as stack:
        yield {name: stack.enter_context(select(name).start(spec)) for name in BACKENDS}  # type: ignore[arg-type]


def steps(repeats: int, plain: Plain, swe_rex: SweRex | None) -> dict[str, float]:
    """Return the median ms of ``true`` in each box and by each rival, one after another and after a rest."""
    with boxes() as all_boxes:

        def step(box: Box) -> Callable[[], float]:
            return lambda: timed_ms(lambda: run(box, "true"))

        actions = {f"{name} step": step(box) for name, box in all_boxes.items()}
        actions |= {"docker exec": plain.step_ms, "tmux, as Terminal-Bench": plain.tmux_ms}
        if swe_rex:
            actions["SWE-ReX, local session"] = swe_rex.step_ms
        turns = -(-repeats // (IN_A_ROW - 1))
        rested = interleaved(actions, repeats, "steps after a rest", pause_s=PAUSE_S)
        return interleaved(actions, turns, "steps", pause_s=PAUSE_S, in_a_row=IN_A_ROW) | {
            f"{name}, after a rest": value for name, value in rested.items()
        }


def output(repeats: int, size_mib: int, plain: Plain, swe_rex: SweRex | None) -> dict[str, float]:
    """Return the median MiB/s at which a command's output comes through; boxes keep 64 KiB of it."""

    def rate(take: Callable[[str], object], mib: int) -> Callable[[], float]:
        command = f"yes 0123456789012345678901234567890123456789 | head -c {mib * MIB}"
        return lambda: 1e3 * mib / timed_ms(lambda: take(command))

    with boxes() as all_boxes:

        def into(box: Box) -> Callable[[str], object]:
            return lambda command: run(box, command)

        actions = {f"{name}, {size_mib} MiB": rate(into(box), size_mib) for name, box in all_boxes.items()}
        small_mib = max(1, size_mib // 8)
        actions[f"docker exec, {small_mib} MiB"] = rate(plain.run, small_mib)
        if swe_rex:
            actions[f"SWE-ReX, {SWE_REX_MIB} MiB"] = rate(swe_rex.run, SWE_REX_MIB)
        return interleaved(actions, repeats, "output")


# ---------------------------------------------------------------- resets


@contextmanager
def environments(*sandboxes: Sandbox) -> Iterator[list[ModelingEnv]]:
    """Give an environment of each sandbox, all with one judge: it has no part in a reset."""
    envs = [ModelingEnv(TASK, sandbox=sandbox, budget="train") for sandbox in sandboxes]
    with Judge(tasks.load(TASK), artifact_bytes=TRAIN.artifact_bytes) as judge:
        judge.probe()
        for env in envs:
            env._judge = judge
        try:
            yield envs
        finally:
            for env in envs:
                env._judge = None
                env.close()


def resets(repeats: int, plain: Plain) -> dict[str, float]:
    """Return the median ms of a whole reset, cold and warm, and of a bare create and start of the same image."""
    with ExitStack() as stack:
        actions: dict[str, Callable[[], float]] = {}
        for name in BACKENDS:
            pool = stack.enter_context(Pool(preparing(name)))
            cold, warm = stack.enter_context(environments(preparing(name), pool))
            actions[f"{name} reset, cold"] = partial(_reset_ms, cold)
            actions[f"{name} reset, warm"] = partial(_reset_ms, warm, pool)
        actions["docker create+start"] = plain.create_and_start_ms
        return interleaved(actions, repeats, "resets")


def _reset_ms(env: ModelingEnv, pool: Pool | None = None) -> float:
    """Time one reset; the end of the last episode and the filling of the pool are outside of it."""
    env._close_box()
    if pool:
        pool.expect(TRAIN, images.find())
        _filled(pool, 1)
    spent = timed_ms(env.reset)
    if pool:
        _filled(pool, 1)
    return spent


def _filled(pool: Pool, boxes: int) -> None:
    if not pool.wait(boxes, READY_WALL_S):
        raise SystemExit(f"a pool of {pool.name} has not {boxes} boxes within {READY_WALL_S:g} s: {pool.refusal}")


def parallel(repeats: int, at_once: int, plain_client: docker.DockerClient) -> dict[str, float]:
    """Return resets a second of so many environments at once: each backend cold, and with one shared pool.

    Args:
        repeats: resets of each environment.
        at_once: threads, each with an environment.
        plain_client: client for bare containers, as a measure.
    """
    found: dict[str, float] = {}
    for name in BACKENDS:
        sandbox = preparing(name)
        sandbox.prepare(TRAIN, images.find()).close()  # what a backend finds out once
        found[f"{name}, cold"] = _resets_per_s(sandbox, repeats, at_once)
        with Pool(sandbox, boxes=at_once) as pool:
            pool.expect(TRAIN, images.find())
            _filled(pool, at_once)
            found[f"{name}, all {at_once} warm"] = _resets_per_s(pool, 1, at_once)
            _filled(pool, at_once)
            found[f"{name}, shared pool, sustained"] = _resets_per_s(pool, repeats, at_once)
    tag = images.find().docker_tag

    def bare(_: int) -> None:
        made = plain_client.containers.create(tag, ["sleep", "60"], network_mode="none", auto_remove=True)
        try:
            made.start()
        finally:
            made.remove(force=True)

    found["docker create+start+remove"] = _per_s(bare, repeats, at_once)
    return found


def _resets_per_s(sandbox: PreparingSandbox | Pool, repeats: int, at_once: int) -> float:
    """Reset environments in threads."""
    with environments(*[sandbox] * at_once) as envs:
        return _per_s(lambda number: envs[number].reset(), repeats, at_once)


def _per_s(action: Callable[[int], object], repeats: int, at_once: int) -> float:
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            for _ in range(repeats):
                action(number)
        except (OSError, RuntimeError) as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(at_once)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = time.perf_counter() - start
    if failures:
        raise SystemExit(f"{len(failures)} of {at_once} threads failed, the first one with {failures[0]!r}")
    return at_once * repeats / spent
