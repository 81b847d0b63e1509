"""Random damage: every record whose bytes are intact is read, every other one is named with file and offset."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trajectory_samples import episodes_equal, small

from tbmm_env.record import Artifact, Episode, Observation
from tbmm_env.trajectory import Finding, Store, segment
from tbmm_env.trajectory import store as stores

RECORDS = 6
SEED = 20260417
Damage = Callable[[random.Random, bytes], bytes]


def bare(number: int) -> Episode:
    """An episode without blobs, so that a trial reads one file."""
    episode = dataclasses.replace(small(number, steps=1 + number % 3), certificate_text="")
    seen = Observation(terminal="题目：板凳龙\n" * number, figures=())
    return dataclasses.replace(episode, artifact=Artifact(status="missing"), first_observation=seen)


@dataclasses.dataclass(frozen=True)
class Target:
    """One segment: its store, bytes, and the bytes and offset of each record."""

    store: Store
    path: Path
    whole: bytes
    starts: tuple[int, ...]
    frames: tuple[bytes, ...]


@pytest.fixture
def target(tmp_path: Path) -> Target:
    made = Store(tmp_path / "store", durable=False)
    for number in range(RECORDS):
        made.append(bare(number))
    made.close()
    (path,) = (made.path / "segments").iterdir()
    whole = path.read_bytes()
    with path.open("rb") as file:
        starts = [item.offset_bytes for item in segment.scan(file, path) if isinstance(item, segment.Frame)]
    ends = [*starts[1:], len(whole)]
    frames = tuple(whole[start:end] for start, end in zip(starts, ends, strict=True))
    return Target(made, path, whole, tuple(starts), frames)


# ---------------------------------------------------------------- damage


def cut(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data))]


def flip(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def flip_some(draw: random.Random, data: bytes) -> bytes:
    for _ in range(draw.randint(2, 6)):
        data = flip(draw, data)
    return data


def _stretch(draw: random.Random, data: bytes) -> tuple[int, int]:
    start = draw.randrange(len(data))
    return start, min(len(data), start + draw.choice((1, 9, 68, 300, 900)))


def blank(draw: random.Random, data: bytes) -> bytes:
    start, end = _stretch(draw, data)
    return data[:start] + bytes(end - start) + data[end:]


def lose(draw: random.Random, data: bytes) -> bytes:
    start, end = _stretch(draw, data)
    return data[:start] + data[end:]


def add(draw: random.Random, data: bytes) -> bytes:
    start, end = _stretch(draw, data)
    return data[:start] + draw.randbytes(end - start) + data[start:]


def flip_and_cut(draw: random.Random, data: bytes) -> bytes:
    return cut(draw, flip_some(draw, data)) or data[:1]


DAMAGES: tuple[Damage, ...] = (cut, flip, flip_some, blank, lose, add, flip_and_cut)
MOVING = (lose, add)
"""Damage after which records lie elsewhere."""


# ---------------------------------------------------------------- the check


def check_damaged(target: Target, data: bytes, moving: bool) -> None:
    """Demand that exactly the records whose bytes are all there are read, and that the others are named."""
    target.path.write_bytes(data)
    findings: list[Finding] = []
    stored = list(target.store.episodes(findings.append))
    intact = [number for number, frame in enumerate(target.frames) if frame in data]
    assert [item.episode.instance.seed for item in stored] == intact
    assert all(episodes_equal(item.episode, bare(item.episode.instance.seed or 0)) for item in stored)
    for found in findings:
        assert found.path == target.path
        assert found.kind in ("corrupt", "torn")
        assert found.message.startswith(f"{target.path}, offset {found.offset_bytes} bytes: ")
    boundaries = (segment._HEADER.size, *target.starts, len(target.whole))
    silent = data in [target.whole[:end] for end in boundaries]  # records cut off exactly at the end leave no trace
    assert bool(findings) is not silent
    for number in sorted(set(range(RECORDS)) - set(intact)):
        start = target.starts[number]
        if start < len(data) and not moving:
            assert _named(start, [target.starts[other] for other in intact], findings), (number, findings)


def _named(start: int, intact: list[int], findings: list[Finding]) -> bool:
    """Whether a finding lies at a record's offset, or before it with no intact record between."""
    places = [found.offset_bytes for found in findings if found.offset_bytes <= start]
    return bool(places) and not any(max(places) < other < start for other in intact)


def torture(target: Target, trials: int, budget_s: float, damages: tuple[Damage, ...] = DAMAGES) -> Iterator[int]:
    """Damage the segment at random, again and again from the whole one, and check; yield the number of each trial."""
    deadline = time.monotonic() + budget_s
    for trial in range(trials):
        draw = random.Random(SEED + trial)
        damage = damages[trial % len(damages)]
        check_damaged(target, damage(draw, target.whole), damage in MOVING)
        yield trial
        if time.monotonic() > deadline:
            return
    target.path.write_bytes(target.whole)


def test_two_thousand_random_damages(target: Target) -> None:
    assert sum(1 for _ in torture(target, 2000, 120.0)) >= 1000


@pytest.mark.full
def test_ten_thousand_truncations_and_bit_flips(target: Target) -> None:
    assert sum(1 for _ in torture(target, 10_000, 500.0, (cut, flip, flip_some))) == 10_000


# ---------------------------------------------------------------- what the check must reject

REAL_SCAN, REAL_LOAD, REAL_NEXT = segment.scan, segment.load, segment._next_frame


def _silent(file: Any, path: Path) -> Iterator[Any]:
    return (item for item in REAL_SCAN(file, path) if not isinstance(item, Finding))


def _elsewhere(file: Any, path: Path) -> Iterator[Any]:
    for item in REAL_SCAN(file, path):
        yield dataclasses.replace(item, offset_bytes=item.offset_bytes + 1) if isinstance(item, Finding) else item


def _unchecked(file: Any, frame: segment.Frame) -> bytes:
    return segment.inflate(segment._at(file, frame.offset_bytes + segment._FRAME.size, frame.stored_bytes))


MUTANTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "findings are not reported": ("scan", _silent),
    "findings name another offset": ("scan", _elsewhere),
    "bodies are not checked": ("load", _unchecked),
    "nothing behind damage is looked for": ("_next_frame", lambda file, marker, start, size: size),
    "the next record is looked for too late": (
        "_next_frame",
        lambda file, marker, start, size: REAL_NEXT(file, marker, min(start + 100, size), size),
    ),
    "headers are not checked": ("_intact", lambda header: True),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_torture_rejects(name: str, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    function, mutant = MUTANTS[name]
    monkeypatch.setattr(segment, function, mutant)
    with pytest.raises(AssertionError):
        for _ in torture(target, 300, 60.0):
            pass


def test_a_store_object_uses_the_functions_that_the_mutants_replace() -> None:
    assert stores.segment is segment


# ---------------------------------------------------------------- blobs


def test_random_damage_of_blobs_is_named_or_harmless(tmp_path: Path) -> None:
    made = Store(tmp_path / "store", durable=False)
    keys = {made.append(small(number)): number for number in range(3)}
    made.close()
    blobs = sorted(path for name in ("images", "artifacts", "certificates") for path in made.path.rglob(f"{name}/**/*"))
    blobs = [path for path in blobs if path.is_file()]
    for trial in range(150):
        draw = random.Random(SEED + trial)
        path = draw.choice(blobs)
        whole = path.read_bytes()
        path.write_bytes(draw.choice((cut, flip, lose, add))(draw, whole))
        findings: list[Finding] = []
        read = {item.key: item.episode for item in made.episodes(findings.append)}
        assert all(episodes_equal(episode, small(keys[key])) for key, episode in read.items())
        assert len(read) + len(findings) == len(keys)
        assert all(str(path) in found.message and found.kind == "corrupt" for found in findings)
        assert [key for _, key in made.jobs()] == list(keys)
        path.write_bytes(whole)
    assert made.verify() == []
