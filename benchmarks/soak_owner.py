"""Part of soak.py: one owner of boxes, which runs scripted episodes until it is told to stop, or is killed.

    python benchmarks/soak_owner.py BACKEND STORE SEED WARM

It writes one line for what it does to stdout: ``label`` of the owner, ``phase`` that begins, ``done`` with the id of an
episode that is in the store, ``lost`` with a failure of ours, and ``state`` with its memory, descriptors and processes
between two episodes. A line on its stdin, or the end of it, ends it after the present episode.
"""

from __future__ import annotations

import ctypes
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

from tbmm_env import tasks
from tbmm_env.env import ModelingEnv
from tbmm_env.errors import TbmmError
from tbmm_env.limits import MIB, Limits
from tbmm_env.record import Episode
from tbmm_env.sandbox import owner
from tbmm_env.sandbox.base import PreparingSandbox
from tbmm_env.sandbox.base import select as backend
from tbmm_env.sandbox.pool import Pool
from tbmm_env.trajectory.store import Store

TASK = "cumcm-2024-a"
LIMITS = Limits(
    episode_wall_s=120.0, steps=12, step_wall_s=20.0, cpus=1.0, memory_bytes=256 * MIB, workspace_bytes=64 * MIB,
    tmp_bytes=16 * MIB, shm_bytes=8 * MIB, pids=64, no_output_s=2.0,
)  # fmt: skip
PR_SET_PDEATHSIG = 1
ORDINARY = (
    "mkdir -p d && for i in $(seq 50); do echo $i > d/$i; done; ls d | wc -l",
    "sleep 300 & setsid nohup sleep 300 > /dev/null 2>&1 & echo up",
    "(trap '' HUP TERM INT; sleep 300) & disown; jobs",
    "yes | head -c 8M",
    "for i in $(seq 20); do (sleep 0.05) & done; wait",
    "python3 -c 'print(sum(range(10 ** 6)))'",
    "head -c 4M /dev/zero > big; check",
    "cat /task/statement.md | wc -c; pwd; ls -la",
)
HOSTILE = (
    "kill -9 -1",
    "exit 7",
    "head -c 1G /dev/zero | tail -c 1G | wc -c",
    "head -c 1G /dev/zero > fill",
    "(sleep 0.1; kill -CONT $$) & kill -STOP $$",
    "exec 1>&- 2>&-; echo nobody reads this",
    "python3 -c 'import os, time\nfor _ in range(99): os.fork() or (time.sleep(9), os._exit(0))' 2>&1 | tail -c 100 &",
)


def say(kind: str, text: object = "") -> None:
    """Write a line at once."""
    os.write(1, f"{kind} {text}\n".encode())


def answers() -> list[tuple[int, str]]:
    """Return commands that leave an answer, with weights: most are judged quickly."""
    folder = tasks.load(TASK).folder / "submissions" / "scored"

    def write(text: str) -> str:
        return f"cat > answer.json <<'END'\n{text}\nEND"

    stored = {name: write((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("optimum", "empty")}
    return [(1, stored["optimum"]), (12, stored["empty"]), (4, write("{")), (3, "true")]


def state() -> str:
    """Return resident memory in KiB, open descriptors and children of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    processes = sum(
        len((task / "children").read_text(encoding="ascii").split()) for task in Path("/proc/self/task").iterdir()
    )
    return f"{pages * os.sysconf('SC_PAGE_SIZE') // 1024} {descriptors} {processes}"


def episode(env: ModelingEnv, dice: random.Random, kinds: list[tuple[int, str]]) -> None:
    """Run one episode to its end, or until the agent has broken its box."""
    say("phase", "reset")
    env.reset()
    say("phase", "refill")
    actions = [dice.choice(HOSTILE if dice.random() < 0.15 else ORDINARY) for _ in range(dice.randint(2, 4))]
    weights, commands = zip(*kinds, strict=True)
    actions += [f"cd /workspace; {dice.choices(commands, weights)[0]}", "submit"]
    for action in actions:
        say("phase", "collect" if action == "submit" else "step")
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            return
    while not (terminated or truncated):  # a program that waits for input has taken the words
        _, _, terminated, truncated, _ = env.step("submit")


def main() -> None:
    """Run episodes."""
    name, folder, seed, warm = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # nothing of a soak outlives its driver
    say("label", owner.label())
    dice, kinds, store = random.Random(seed), answers(), Store(folder)

    def record(finished: Episode) -> None:
        store.append(finished)
        say("done", finished.episode_id)

    sandbox = backend(name)  # type: ignore[arg-type]
    assert isinstance(sandbox, PreparingSandbox)
    with Pool(sandbox, boxes=int(warm)) as pool:
        env = ModelingEnv(TASK, sandbox=pool, limits=LIMITS, recorder=record)
        while not select.select([sys.stdin], [], [], 0)[0]:
            try:
                episode(env, dice, kinds)
            except TbmmError as error:
                say("lost", f"{type(error).__name__}: {error}".replace("\n", " "))
                time.sleep(0.2)
            say("state", state())
        env.close()
    store.close()


if __name__ == "__main__":
    main()
