"""Part of sandbox.py: what boxes cost the machine: memory of idle ones, a flood, and whole verified episodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import docker
from measuring import PROGRESS
from rich.progress import track
from sandbox_speed import TASK, preparing

from tbmm_env import tasks
from tbmm_env.env import ModelingEnv
from tbmm_env.limits import GIB, MIB, TRAIN
from tbmm_env.record import Judgement
from tbmm_env.sandbox import image as images
from tbmm_env.sandbox.base import BoxSpec, PreparedBox, SandboxName, select

COMMANDS = (
    "ls -la /task", "head -c 400 /task/schema.json", "python3 -c 'print(2 ** 0.5)'", "pwd", "export N=3; cd /workspace",
    "echo $N > notes.txt", "cat notes.txt",
)  # fmt: skip
"""What the scripted agent does, again and again, before it writes its answer and submits."""


# ---------------------------------------------------------------- memory


def children() -> dict[int, list[int]]:
    """Return the processes of the machine by their parents."""
    found: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        found.setdefault(int(words[1]), []).append(int(folder.name))
    return found


def below(pid: int, tree: dict[int, list[int]]) -> list[int]:
    """Return all descendants of a process."""
    found, left = [], [pid]
    while left:
        left += (new := tree.get(left.pop(), []))
        found += new
    return found


def pss_bytes(pids: Iterable[int]) -> int:
    """Return the proportional memory of processes that are there."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def idle_bwrap(count: int) -> dict[str, float]:
    """Start so many idle boxes at once; return their memory in MiB, by processes and by control groups."""
    sandbox = preparing("bwrap")
    with ExitStack() as stack:
        before = set(below(os.getpid(), children()))
        boxes = []
        for _ in track(range(count), description="idle bubblewrap boxes", console=PROGRESS):
            boxes.append(sandbox.prepare(TRAIN, images.find()))
            stack.callback(boxes[-1].close)
        processes = set(below(os.getpid(), children())) - before
        return _memory(count, processes, sum(_group_bytes(box) for box in boxes))


def _group_bytes(box: PreparedBox) -> int:
    """Return what the kernel charges to a box, page cache and kernel memory included; 0 without control groups."""
    group = box._channel.group  # type: ignore[attr-defined]
    for entrance in group.entrances if group else []:
        for name in ("memory.usage_in_bytes", "memory.current"):
            file = Path(entrance).parent / name
            if file.exists():
                return int(file.read_text(encoding="ascii"))
    return 0


def _memory(count: int, processes: set[int], charged: int) -> dict[str, float]:
    pss = pss_bytes(processes)
    return {
        "boxes": count,
        "processes": len(processes),
        "processes (PSS), MiB": pss / MIB,
        "charged to boxes, MiB": charged / MIB,
        "MiB a box": max(pss, charged) / MIB / count,
    }


def idle_docker(count: int, client: docker.DockerClient) -> dict[str, float]:
    """Start so many idle boxes; containerd's shims are counted among their processes. The daemon must run here."""
    sandbox = preparing("docker")
    with ExitStack() as stack:
        shims, charged = set(), 0
        boxes = []
        for _ in track(range(count), description="idle Docker boxes", console=PROGRESS):
            boxes.append(sandbox.prepare(TRAIN, images.find()))
            stack.callback(boxes[-1].close)
        for box in boxes:
            container = box._channel._container  # type: ignore[attr-defined]
            inside = int(client.api.inspect_container(container.id)["State"]["Pid"])
            try:
                stat = Path(f"/proc/{inside}/stat").read_bytes()
            except OSError:
                raise SystemExit("the Docker daemon runs elsewhere: its boxes cannot be measured from here") from None
            shims.add(int(stat.rpartition(b")")[2].split()[1]))
            charged += int(container.stats(stream=False, one_shot=True)["memory_stats"]["usage"])
        tree = children()
        processes = shims | {pid for shim in shims for pid in below(shim, tree)}
        return _memory(count, processes, charged)


# ---------------------------------------------------------------- flood


def flood(name: SandboxName, size_bytes: int = GIB) -> dict[str, float]:
    """Have a box print so much; return the time, and by how much this process grew at its largest, in MiB."""
    spec = BoxSpec(limits=TRAIN, files={}, image=images.find())
    with select(name).start(spec) as box:
        box.run("true", wall_s=TRAIN.step_wall_s, on_check=lambda _: "")
        before = _status_bytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
        start = time.perf_counter()
        result = box.run(f"yes | head -c {size_bytes}", wall_s=TRAIN.step_wall_s, on_check=lambda _: "")
        spent = time.perf_counter() - start
        grown = _status_bytes("VmHWM") - before
    kept = len(result.head) + len(result.tail)
    return {
        "MiB printed": (kept + result.dropped_bytes) / MIB,
        "KiB kept": kept / 1024,
        "seconds": spent,
        "ended well": float(result.ending == "exited"),
        "growth of the owner, MiB": grown / MIB,
    }


def _status_bytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


# ---------------------------------------------------------------- verified episodes


def worker(name: SandboxName, episodes: int) -> dict[str, Any]:
    """Run scripted episodes of 30 steps, after one that warms up; return times in s."""
    answer = (tasks.load(TASK).folder / "submissions" / "scored" / "optimum.json").read_text(encoding="utf-8")
    write = f"cat > answer.json <<'END'\n{answer}\nEND"
    actions = [COMMANDS[number % len(COMMANDS)] for number in range(TRAIN.steps - 2)] + [write]
    spent = dict.fromkeys(("reset", "steps", "judge", "end of the box"), 0.0)
    env = ModelingEnv(TASK, sandbox=name, budget="train")
    judge = env._ready_judge()
    real = judge.judge

    def judged(*args: Any) -> Judgement:
        start = time.perf_counter()
        try:
            return real(*args)
        finally:
            spent["judge"] += time.perf_counter() - start

    judge.judge = judged  # type: ignore[method-assign]

    def episode() -> None:
        marks = [time.perf_counter()]
        env.reset()
        marks.append(time.perf_counter())
        for action in actions:
            env.step(action)
        marks.append(time.perf_counter())
        judge_before = spent["judge"]
        _, reward, terminated, _, _ = env.step("submit")
        if not (terminated and reward == 1.0):
            raise SystemExit(f"the stored optimum got {reward} on {name}")
        spent["reset"] += marks[1] - marks[0]
        spent["steps"] += marks[2] - marks[1]
        spent["end of the box"] += time.perf_counter() - marks[2] - (spent["judge"] - judge_before)

    episode()
    spent.update(dict.fromkeys(spent, 0.0))
    print("ready", flush=True)
    sys.stdin.readline()  # all workers begin together
    start = time.perf_counter()
    for _ in range(episodes):
        episode()
    wall_s = time.perf_counter() - start
    env.close()
    return {"wall_s": wall_s, "spent_s": spent}


def verified_episodes(name: str, episodes: int, cores: int) -> dict[str, float]:
    """Run one worker a core, all at once; return episodes a core-hour and where the time of one goes, in ms."""
    words = [sys.executable, __file__, name, str(episodes)]
    with ExitStack() as stack:
        workers = []
        for _ in range(cores):
            made = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            workers.append(stack.enter_context(made))
            stack.callback(made.kill)
        for one in workers:
            assert one.stdout is not None
            if one.stdout.readline() != b"ready\n":
                raise SystemExit(f"a worker of {name} ended with status {one.wait()}")
        done = []
        for one in workers:
            assert one.stdin is not None
            one.stdin.write(b"go\n")
            one.stdin.flush()
        for one in workers:
            assert one.stdout is not None
            done.append(json.loads(one.stdout.read()))
    wall_s = max(found["wall_s"] for found in done)
    parts = {
        f"{part}, ms": 1e3 * sum(found["spent_s"][part] for found in done) / (cores * episodes)
        for part in done[0]["spent_s"]
    }
    return {"verified episodes a core-hour": 3600 * episodes / wall_s, "workers": cores} | parts


if __name__ == "__main__":
    print(json.dumps(worker(sys.argv[1], int(sys.argv[2]))))  # type: ignore[arg-type]
