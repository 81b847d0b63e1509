"""Attack cases: how each folder becomes an artifact, a file, a box, a certificate or a broken part of ours.

A ``case.toml`` holds ``about``, ``outcome`` (an outcome, or the exception's name), ``reason`` (must be part of what is
said), ``reward`` (exact; 0 unless stated) or ``reward_of`` / ``reward_below`` (a labelled submission), and one way in:

- ``[make]``: bytes. ``text``, ``hex`` or ``parts`` ([[text, times], ...]) give them whole; else ``base`` (a labelled
  submission, by default the optimum) is changed: ``set`` puts raw JSON text at a path, ``drop`` removes, ``add``
  appends raw entries. ``before``, ``after`` and ``encoding`` act at the end. ``maker`` names a function below.
- ``[file]``: ``maker`` leaves something on this machine, which ``read_artifact`` reads.
- ``[box]``: ``command`` runs in a real box with the optimum at ``/task/optimum.json``; the box hands over the answer.
- ``[certificate]``: ``edits`` ([[old, new], ...]) change the text of the optimum's certificate before Lean sees it.
- ``[failure]``: what of ours is broken; see ``test_attacks.py``. A script ``lean`` or ``child.py`` lies beside it.
"""

from __future__ import annotations

import functools
import json
import os
import re
import socket
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tbmm_env import instances, tasks
from tbmm_env.judge.artifact import read_artifact, regular
from tbmm_env.judge.judge import Judge
from tbmm_env.problems import module_for
from tbmm_env.problems.cumcm_2024_a.parameters import setting
from tbmm_env.record import Artifact, Judgement

FOLDER = Path(__file__).parent
TASK = tasks.load("cumcm-2024-a")
OFFICIAL = instances.official(TASK)
BYTES = 1 << 20
WAYS = ("make", "file", "box", "certificate", "failure")


@dataclass(frozen=True)
class Case:
    """One folder of the corpus."""

    folder: Path
    spec: dict[str, Any]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def family(self) -> str:
        return self.name.partition("_")[0]


def load(folder: Path) -> Case:
    """Read a case; unknown keys are refused, so that nothing is believed to be checked that is not."""
    spec = tomllib.loads((folder / "case.toml").read_text("utf-8"))
    assert set(spec) <= {"about", "outcome", "reason", "reward", "reward_of", "reward_below", "said", *WAYS}, folder
    assert {"about", "outcome", "reason"} <= set(spec), folder
    assert sum(way in spec for way in WAYS) == 1, folder
    return Case(folder, spec)


CASES = {folder.name: load(folder) for folder in sorted(FOLDER.iterdir()) if (folder / "case.toml").is_file()}


def by(way: str) -> list[Case]:
    """Cases that come in by one way."""
    return [case for case in CASES.values() if way in case.spec]


# ---------------------------------------------------------------- bytes


def submission(name: str) -> bytes:
    """A labelled submission of the task, such as ``scored/optimum``, without its canary."""
    return re.sub(rb'"canary": "[^"]*",', b"", (TASK.folder / "submissions" / f"{name}.json").read_bytes())


def artifact_bytes(make: dict[str, Any]) -> bytes:
    """The bytes that a ``[make]`` table describes."""
    if "hex" in make:
        return bytes.fromhex(make["hex"])
    if "maker" in make:
        text = MAKERS[make["maker"]]()
    else:
        text = _raw(make["text"]) if "text" in make else _raw(make["parts"]) if "parts" in make else _edited(make)
    text = _raw(make.get("before", "")) + text + _raw(make.get("after", ""))
    return text.encode(make.get("encoding", "utf-8"))


def _raw(pieces: str | list[Any]) -> str:
    return pieces if isinstance(pieces, str) else "".join(text * times for text, times in pieces)


def _edited(make: dict[str, Any]) -> str:
    answer = json.loads(submission(make.get("base", "scored/optimum")), parse_float=str, parse_int=str)
    for path in make.get("drop", []):
        parent, last = _parent(answer, path)
        del parent[last]
    for path, value in make.get("set", {}).items():
        parent, last = _parent(answer, path)
        if isinstance(parent, list):
            parent[int(last)] = _raw(value)
        else:
            parent[last] = _raw(value)
    text = _written(answer)
    return text if "add" not in make else f"{text[:-1]}, {_raw(make['add'])}}}"


def _parent(answer: Any, path: str) -> tuple[Any, str]:
    *steps, last = path.split(".")
    for step in steps:
        answer = answer[int(step)] if isinstance(answer, list) else answer[step]
    return answer, last


def _written(value: Any) -> str:
    """JSON text of a tree whose leaves are raw JSON text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return str(value)


def _solution_of_another_instance() -> str:
    parameters = instances.sampled(TASK, 7).parameters
    best, turn = module_for(TASK.id).reference(parameters)["anchor"], setting(parameters).turn
    centres, radii, entry = turn.centres_m, turn.radii_m, turn.entry_m
    path = {
        "entry_m": list(entry),
        "centre1_m": list(centres[0]),
        "radius1_m": radii[0],
        "centre2_m": list(centres[1]),
        "radius2_m": radii[1],
        "exit_m": [-entry[0], -entry[1]],
    }
    answer = {
        "q2": {"termination_time_s": best["q2_termination_time_s"]},
        "q3": {"pitch_m": best["q3_pitch_m"]},
        "q4": {"turn_length_m": best["q4_turn_length_m"], "path": path},
        "q5": {"head_speed_mps": best["q5_head_speed_mps"]},
    }
    return json.dumps(answer)


def _references_as_claims() -> str:
    claims = ", ".join(f'"{key}": {float(value)!r}' for key, value in TASK.anchor.items())
    return f'{{"claims": {{{claims}}}}}'


def _every_leaf(bound: str) -> Callable[[], str]:
    def written(schema: dict[str, Any]) -> str:
        if schema["type"] == "object":
            inside = (f"{json.dumps(key)}: {written(child)}" for key, child in schema["properties"].items())
            return "{" + ", ".join(inside) + "}"
        if schema["type"] == "array":
            return "[" + ", ".join([written(schema["items"])] * schema["maxItems"]) + "]"
        return str(schema[bound])

    return lambda: written(TASK.answer_schema)


MAKERS: dict[str, Callable[[], str]] = {
    "solution_of_another_instance": _solution_of_another_instance,
    "references_as_claims": _references_as_claims,
    "all_minimum": _every_leaf("minimum"),
    "all_maximum": _every_leaf("maximum"),
}


# ---------------------------------------------------------------- files


class SwappedPath(type(Path())):  # type: ignore[misc]
    """A path that is changed between the look at it and its opening."""

    def lstat(self) -> os.stat_result:
        seen = super().lstat()
        self.unlink()
        SWAPS[self.name](Path(self))
        return seen


def _references(path: Path) -> None:
    path.symlink_to(TASK.folder / "references.toml")


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _optimum(path: Path) -> None:
    path.symlink_to(TASK.folder / "submissions" / "scored" / "optimum.json")


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


SWAPS: dict[str, Callable[[Path], None]] = {"to_link": _optimum, "to_fifo": _fifo, "to_nothing": lambda path: None}


def _swapped(to: str) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        path = SwappedPath(folder / to)
        path.write_bytes(b"{}")
        return path

    return made


def _at(make: Callable[[Path], None]) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        make(folder / "answer.json")
        return folder / "answer.json"

    return made


FILES: dict[str, Callable[[Path], Path]] = {
    "nothing": _at(lambda path: None),
    "link_to_references": _at(_references),
    "link_to_optimum": _at(_optimum),
    "link_to_nothing": _at(lambda path: path.symlink_to("nowhere")),
    "link_loop": _at(lambda path: path.symlink_to(path)),
    "fifo": _at(_fifo),
    "socket": _at(_socket),
    "directory": _at(lambda path: path.mkdir()),
    "sparse": _at(_sparse),
    "device_zero": lambda folder: Path("/dev/zero"),
    "device_terminal": lambda folder: Path("/dev/ptmx"),
    "in_a_file": lambda folder: _at(lambda path: path.write_bytes(b"{}") and None)(folder) / "answer.json",
    "name_of_bytes": lambda folder: _named(folder / os.fsdecode(b"answer-\xff.json")),
    "one_byte_too_many": _at(lambda path: path.write_bytes(b"{}" + b" " * (BYTES - 1)) and None),
    "swapped_to_link": _swapped("to_link"),
    "swapped_to_fifo": _swapped("to_fifo"),
    "swapped_to_nothing": _swapped("to_nothing"),
}


def _named(path: Path) -> Path:
    path.symlink_to(TASK.folder / "references.toml")
    return path


def artifact(case: Case, folder: Path) -> Artifact:
    """What a case of the ways ``make`` and ``file`` leaves to the judge."""
    if "file" in case.spec:
        return read_artifact(FILES[case.spec["file"]["maker"]](folder), BYTES)
    return regular(artifact_bytes(case.spec["make"]))


# ---------------------------------------------------------------- what must be so


@functools.cache
def reward_of(judge: Judge, name: str) -> Fraction:
    """The reward of a labelled submission."""
    return judge.judge(OFFICIAL, regular(submission(name))).reward


def complaints(case: Case, judgement: Judgement, judge: Judge) -> Iterator[str]:
    """Every way in which a judgement is not what the case states."""
    spec = case.spec
    if judgement.outcome != spec["outcome"]:
        yield f"outcome is {judgement.outcome}, not {spec['outcome']}: {judgement.reason}"
    if spec["reason"] not in judgement.reason:
        yield f"{spec['reason']!r} is not in {judgement.reason!r}"
    told = "; ".join(problem.message for problem in judgement.problems)
    if spec.get("said", "") not in told:
        yield f"{spec['said']!r} is not in {told!r}"
    reward = judgement.reward
    if "reward_below" in spec:
        best = reward_of(judge, spec["reward_below"])
        if not 0 < reward < best:
            yield f"reward is {reward}; it must be more than 0 and less than {best}"
    else:
        expected = reward_of(judge, spec["reward_of"]) if "reward_of" in spec else Fraction(spec.get("reward", 0))
        if reward != expected:
            yield f"reward is {reward}, not {expected}"
    if judgement.outcome in ("malformed", "missing") and (judgement.certificate or judgement.reward):
        yield "nothing was judged, but there is a certificate or a reward"
    if judgement.outcome in ("scored", "infeasible"):
        if judgement.certificate is None or not judgement.certificate.accepted or judgement.certificate.axioms:
            yield "there is no accepted certificate"
        elif "AGENT" in judgement.certificate.text or "AGENT" in judgement.reason:
            yield "text of the agent entered the certificate"
