"""The trajectory store beside JSON lines, plain and gzip: the same episodes appended and read, and their size.

An episode has 30 steps with a model's turns (completion text, token ids, logprobs), the statement's three figures,
which the eight episodes of a group share, one figure of its own, an answer, a judgement and a certificate. Text and
numbers are drawn at random from what real episodes hold, sizes as in real ones.

JSON lines hold the same content, one object a line, figures as PNG in base64, token ids and logprobs as lists. Gzip
(level 6) makes each line a member of its own, so that a crash costs no earlier line, as in the store. Durability is
the same on all sides: by default nobody asks the system to flush; with --durable everybody does so, with fsync, before
the next episode. An append goes from the episode in memory to the file, so the JSON lines' appends encode the figures;
what remains when the PNG files are there already and cost nothing is shown beside it.

    python benchmarks/store.py [--quick] [--durable] [--json]

The exit code is 1 when a bar is missed: size at most 1/5 of plain JSON lines, and, without --durable, appends at least
5 times as fast as gzip.
"""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import measuring
import numpy as np
from PIL import Image
from rich.progress import track
from rich.table import Table

from tbmm_env import instances, tasks
from tbmm_env.env import decode_png
from tbmm_env.limits import TRAIN
from tbmm_env.record import Artifact, Episode, Instance, Observation, Step, Turn
from tbmm_env.trajectory import Store

STEPS, GROUP, BATCH = 30, 8, 100
ENCODED = 5  # episodes of a batch whose figures are encoded while they are appended
SIZE_BAR, APPEND_BAR = 0.2, 5.0
TASK = tasks.load("cumcm-2024-a")

Figure = np.ndarray[Any, np.dtype[np.uint8]]


# ---------------------------------------------------------------- episodes


class Source:
    """Draws episodes; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.code = (TASK.folder / "solution" / "solve.py").read_text(encoding="utf-8").splitlines()
        self.lean = (
            (Path(__file__).parents[1] / "lean" / "TBMM" / "Score.lean").read_text(encoding="utf-8").splitlines()
        )
        official = instances.official(TASK)
        self.statement = instances.opening(TASK, official, "zh", TRAIN)
        files = instances.figures(TASK, official, "zh")
        self.drawn = [decode_png(files[name]) for name in sorted(files)]

    def group(self, number: int) -> list[Episode]:
        """Eight episodes of one instance."""
        figures = tuple(np.roll(one, (number * 7, number * 13), (0, 1)) for one in self.drawn)
        parameters = {name: round(self.draw.random(), 3) for name in TASK_PARAMETERS}
        instance = Instance(task=TASK.id, version=TASK.version, seed=number, parameters=parameters)
        text = self.statement.replace("0.55", f"{self.draw.random():.3f}")
        first = Observation(terminal=text, figures=figures)
        return [self.episode(instance, first, number, sample) for sample in range(GROUP)]

    def episode(self, instance: Instance, first: Observation, number: int, sample: int) -> Episode:
        """One episode of a group."""
        answer = json.dumps({"q2": self.values(4), "q3": self.values(1), "q4": self.values(12)}).encode()
        return Episode(
            episode_id=f"{number:08x}{sample:024x}",
            instance=instance,
            budget="train",
            language="zh",
            sandbox="bwrap",
            limits=dataclasses.asdict(TRAIN),
            versions={"tbmm_env": "0.1.0", "task": TASK.version, "panel": TASK.panel_version, "judge": "1"},
            first_observation=first,
            steps=tuple(self.step(index, sample) for index in range(STEPS)),
            artifact=Artifact(
                status="regular", data=answer, size_bytes=len(answer), sha256=hashlib.sha256(answer).hexdigest()
            ),
            judgement=self.judgement(),
            certificate_text="\n".join(self.lines(self.lean, 120)),
            terminated=True,
            truncated=False,
            started_unix_s=1.7e9 + self.draw.random() * 1e6,
            wall_s=self.draw.random() * 600,
            job=f"{TASK.id}/{number}/{sample}",
            group_id=f"{TASK.id}/{number}",
            sample_id=sample,
            policy="model",
        )

    def values(self, count: int) -> list[float]:
        """Numbers as an answer has them."""
        return [round(self.draw.uniform(-100, 100), 6) for _ in range(count)]

    def lines(self, text: list[str], count: int) -> list[str]:
        """Lines of a text from a random place on, a number changed here and there."""
        start = self.draw.randrange(len(text))
        taken = (text[start:] + text)[:count]
        return [f"{line}  # {self.draw.random():.6f}" if self.draw.random() < 0.2 else line for line in taken]

    def step(self, index: int, sample: int) -> Step:
        """A program that is written and run, and what it prints: a table of numbers, sometimes a picture."""
        code = "\n".join(self.lines(self.code, self.draw.randint(5, 40)))
        action = f"cat > a{index}.py <<'E'\n{code}\nE\npython3 a{index}.py"
        table = "\n".join(" ".join(f"{x:12.6f}" for x in self.values(5)) for _ in range(self.draw.randint(1, 25)))
        figures = (self.picture(),) if index == sample else ()
        return Step(
            action=action,
            observation=Observation(terminal=f"{table}\n[exit status 0]\n", figures=figures),
            exit_status=0,
            ending="exited",
            started_s=index * 3.5,
            wall_s=self.draw.random(),
            turn=self.turn(action),
        )

    def turn(self, action: str) -> Turn:
        """What a model tells of such an action: a thought, tokens and their logprobs."""
        thought = " ".join(self.draw.choice(self.statement.split()) for _ in range(60))
        count = (len(thought) + len(action)) // 4
        return Turn(
            completion=f"<think>{thought}</think>{action}",
            completion_token_ids=(self.numbers.zipf(1.3, count) % 151_643).astype(np.int64),
            logprobs=-self.numbers.exponential(0.3, count).astype(np.float32),
            finish_reason="tool_calls",
            sampling={"temperature": 1.0, "top_p": 0.95},
            weight_version="120",
        )

    def picture(self) -> Figure:
        """A plot of 480 x 640 pixels: curves on white."""
        pixels = np.full((480, 640, 3), 255, np.uint8)
        across = np.arange(640)
        for colour in self.numbers.integers(0, 200, (3, 3)):
            heights = 240 + np.cumsum(self.numbers.normal(0, 3, 640))
            for thick in range(3):
                pixels[np.clip(heights.astype(int) + thick, 0, 479), across] = colour
        return pixels

    def judgement(self) -> dict[str, Any]:
        """Four metrics with ten references each and thirty obligations."""
        references = [
            {"paper": f"A{paper:03}", "reference": value, "tolerance": 1e-6, "score": value, "score_exact": f"{value}"}
            for paper, value in enumerate(self.values(10))
        ]
        metric = {"key": "q2_termination_time_s", "unit": "s", "references": references, "reason": "feasible"}
        obligations = [
            {"id": f"q{n % 5}_obligation_{n}", "form": "bound", "status": "holds", "reason": f"x = {value} m is >= 0 m"}
            for n, value in enumerate(self.values(30))
        ]
        reward = self.draw.random()
        return {
            "outcome": "scored",
            "reward": reward,
            "reward_exact": f"{int(reward * 10**9)}/{10**9}",
            "metrics": [metric | {"value": value} for value in self.values(4)],
            "obligations": obligations,
        }


TASK_PARAMETERS = tuple(instances.official(TASK).parameters)


# ---------------------------------------------------------------- writers


class Lines:
    """JSON lines, plain or gzip."""

    def __init__(self, path: Path, *, gzipped: bool, durable: bool, png: Callable[[Figure], str]) -> None:
        self.path, self.gzipped, self.durable, self.png = path, gzipped, durable, png
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append(self, episode: Episode) -> None:
        line = json.dumps(self.record(episode), ensure_ascii=False).encode() + b"\n"
        rest = memoryview(gzip.compress(line, 6) if self.gzipped else line)
        while rest:
            rest = rest[os.write(self.file, rest) :]
        if self.durable:
            os.fsync(self.file)

    def record(self, episode: Episode) -> dict[str, Any]:
        def seen(one: Observation) -> dict[str, Any]:
            return {"terminal": one.terminal, "figures": [self.png(figure) for figure in one.figures]}

        def turn(one: Turn | None) -> dict[str, Any] | None:
            if one is None:
                return None
            fields = {name: getattr(one, name) for name in Turn.__slots__}
            arrays = ("prompt_token_ids", "completion_token_ids", "logprobs")
            return fields | {name: fields[name].tolist() for name in arrays}

        fields = {name: getattr(episode, name) for name in Episode.__slots__}
        text, sha256 = episode.artifact.data.decode(), episode.artifact.sha256
        return fields | {
            "artifact": {"status": "regular", "text": text, "sha256": sha256},
            "instance": dataclasses.asdict(episode.instance),
            "first_observation": seen(episode.first_observation),
            "steps": [
                {name: getattr(step, name) for name in ("action", "exit_status", "ending", "started_s", "wall_s")}
                | {"observation": seen(step.observation), "turn": turn(step.turn)}
                for step in episode.steps
            ],
        }

    def read(self) -> Iterator[Any]:
        with (gzip.open if self.gzipped else open)(self.path, "rt", encoding="utf-8") as file:
            for line in file:
                record = json.loads(line)
                pictures = [record["first_observation"], *(step["observation"] for step in record["steps"])]
                for one in pictures:
                    one["figures"] = [decode_png(base64.b64decode(text)) for text in one["figures"]]
                yield record

    def close(self) -> None:
        os.close(self.file)


def encoded(figure: Figure) -> str:
    """Return a figure as PNG in base64."""
    data = io.BytesIO()
    Image.fromarray(figure).save(data, "PNG")
    return base64.b64encode(data.getvalue()).decode()


class Kept:
    """PNG texts made beforehand, by figure."""

    def __init__(self) -> None:
        self.texts: dict[int, tuple[Figure, str]] = {}

    def fill(self, episodes: list[Episode]) -> None:
        self.texts.clear()
        for episode in episodes:
            for one in (episode.first_observation, *(step.observation for step in episode.steps)):
                for figure in one.figures:
                    if id(figure) not in self.texts:
                        self.texts[id(figure)] = (figure, encoded(figure))

    def get(self, figure: Figure) -> str:
        return self.texts[id(figure)][1]


def size_bytes(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder."""
    return sum(item.stat().st_size for item in ([path] if path.is_file() else path.rglob("*")) if item.is_file())


def _append(writer: Store | Lines, episodes: list[Episode]) -> float:
    """Append episodes and return the seconds of one."""
    start = time.perf_counter()
    for episode in episodes:
        writer.append(episode)
    return (time.perf_counter() - start) / len(episodes)


def measure(folder: Path, count: int, durable: bool) -> dict[str, dict[str, float]]:
    """Append and read; return rates in episodes/s and sizes in bytes by writer."""
    kept, source = Kept(), Source(20240905)
    store = Store(folder / "store", durable=durable)

    def lines(name: str, png: Callable[[Figure], str]) -> Lines:
        return Lines(folder / name, gzipped=name.endswith(".gz"), durable=durable, png=png)

    writers = {"store": store, "jsonl": lines("plain.jsonl", kept.get), "jsonl.gz": lines("gzip.jsonl.gz", kept.get)}
    encoding = {"jsonl": lines("again.jsonl", encoded), "jsonl.gz": lines("again.jsonl.gz", encoded)}
    times: dict[str, list[float]] = {name: [] for name in writers}
    whole: dict[str, list[float]] = {name: [] for name in encoding}
    for batch in track(range(0, count, BATCH), description="appending", console=measuring.PROGRESS):
        groups = range(batch // GROUP, -(-(batch + BATCH) // GROUP))
        episodes = [one for group in groups for one in source.group(group)][:BATCH]
        kept.fill(episodes)
        turn = batch // BATCH % 3  # who goes first changes, so that a busy moment hits all alike
        for name in [*writers][turn:] + [*writers][:turn]:
            times[name].append(_append(writers[name], episodes))
        for name, writer in encoding.items():
            whole[name].append(_append(writer, episodes[:ENCODED]))
    result: dict[str, dict[str, float]] = {name: {"append_per_s": 1 / median(times[name])} for name in writers}
    for name, writer in encoding.items():
        result[name]["append_without_png_per_s"] = result[name]["append_per_s"]
        result[name]["append_per_s"] = 1 / median(whole[name])
        writer.close()
    for name, writer in writers.items():
        writer.close()
        result[name]["bytes"] = size_bytes(writer.path)
    readers: dict[str, Callable[[], Iterator[Any]]] = {
        "store": store.episodes,
        "jsonl": writers["jsonl"].read,
        "jsonl.gz": writers["jsonl.gz"].read,
    }
    for name, read in readers.items():
        start = time.perf_counter()
        found = sum(1 for _ in read())
        if found != count:
            sys.exit(f"{name}: {found} of {count} episodes came back")
        result[name]["read_per_s"] = count / (time.perf_counter() - start)
    start = time.perf_counter()
    assert sum(1 for _ in store.summaries()) == count
    result["store"]["summaries_per_s"] = count / (time.perf_counter() - start)
    return result


def main() -> int:
    """Measure, print, and say whether the bars are kept."""
    parser = measuring.arguments(__doc__, 1, "200 episodes instead of 2,000")
    parser.add_argument("--durable", action="store_true", help="fsync after every episode, on all sides")
    args = parser.parse_args()
    before = os.getloadavg()
    count = 200 if args.quick else 2000
    folder = Path(tempfile.mkdtemp(prefix="tbmm-bench-"))
    try:
        result = measure(folder, count, args.durable)
    finally:
        shutil.rmtree(folder)
    table = Table("", "size (MB)", "append (1/s)", "without PNG (1/s)", "read (1/s)", "summaries (1/s)")
    for name, one in result.items():
        rates = ("append_per_s", "append_without_png_per_s", "read_per_s", "summaries_per_s")
        table.add_row(name, f"{one['bytes'] / 1e6:.1f}", *(f"{one[rate]:.1f}" if rate in one else "" for rate in rates))
    ours, lines, gzipped = result.values()
    bars = [measuring.at_most("size, store / plain JSON lines", ours["bytes"] / lines["bytes"], SIZE_BAR)]
    if not args.durable:
        faster = ours["append_per_s"] / gzipped["append_per_s"]
        bars.append(measuring.at_least("append, store / gzip JSON lines", faster, APPEND_BAR))
    facts = {
        "machine": measuring.machine(before),
        "episodes": count,
        "steps": STEPS,
        "durable": args.durable,
        "append_ratio_without_png": ours["append_per_s"] / gzipped["append_without_png_per_s"],
        "results": result,
    }
    title = (
        f"{count} episodes of {STEPS} steps, {'fsync after each' if args.durable else 'flushing left to the system'}"
    )
    return measuring.report(facts, {title: table}, bars, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
