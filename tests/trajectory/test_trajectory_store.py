"""The store: what was appended is read back whole, and damage costs what it touches, never more and never silently."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import logging
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from trajectory_samples import artifact, encode, episodes_equal, golden, golden_2, image, small, values_equal

from tbmm_env import record
from tbmm_env.errors import CorruptTrajectory, TrajectoryError
from tbmm_env.trajectory import Finding, Store, StoredEpisode, kinds, schema, segment, store

HERE = Path(__file__).parent
GOLDEN = HERE.parents[1] / "trajectories" / "golden"


def filled(path: Path, count: int = 3) -> tuple[Store, list[str]]:
    """A store with ``count`` small episodes in one segment, and their keys."""
    made = Store(path, durable=False)
    keys = [made.append(small(number, steps=1)) for number in range(count)]
    made.close()
    return made, keys


def read_all(made: Store) -> tuple[list[StoredEpisode], list[Finding]]:
    findings: list[Finding] = []
    return list(made.episodes(findings.append)), findings


def only_segment(made: Store) -> Path:
    (path,) = (made.path / "segments").iterdir()
    return path


def frames(path: Path) -> list[segment.Frame]:
    with path.open("rb") as file:
        return [item for item in segment.scan(file, path) if isinstance(item, segment.Frame)]


# ---------------------------------------------------------------- all is well


def test_episodes_come_back_in_order_under_their_keys(tmp_path: Path) -> None:
    made, keys = filled(tmp_path / "store")
    stored, findings = read_all(made)
    assert [item.key for item in stored] == keys
    assert all(episodes_equal(item.episode, small(number, steps=1)) for number, item in enumerate(stored))
    assert all(episodes_equal(made.read(key), small(number, steps=1)) for number, key in enumerate(keys))
    assert findings == made.verify() == []
    assert all(re.fullmatch(r"[0-9a-f]{32}#\d", key) for key in keys)
    assert {item.path for item in stored} == {only_segment(made)}
    assert [item.offset_bytes for item in stored] == [item.offset_bytes for item in frames(only_segment(made))]


def test_nothing_is_made_before_the_first_append(tmp_path: Path) -> None:
    made = Store(tmp_path / "store")
    assert not made.path.exists()
    with pytest.raises(TrajectoryError, match="there is no trajectory store at"):
        list(made.episodes())
    with pytest.raises(TrajectoryError, match="there is no trajectory store at"):
        made.verify()
    made.path.mkdir()
    assert read_all(made) == ([], [])


def test_chinese_paths_and_every_kind_of_value_survive(tmp_path: Path) -> None:
    with Store(tmp_path / "轨迹 库" / "训练集") as made:
        key = made.append(golden())
        assert episodes_equal(made.read(key), golden())
        assert made.verify() == []


def test_the_same_image_and_artifact_lie_there_once(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "store"), Store(tmp_path / "store")
    for made in (first, second, first):
        made.append(small(1))
    first.append(dataclasses.replace(small(2), artifact=small(1).artifact))
    pictures = list((tmp_path / "store" / "images").glob("*/*"))
    assert len(pictures) == 1
    content = zstandard.ZstdDecompressor().decompress(pictures[0].read_bytes())
    assert pictures[0].name == f"{hashlib.sha256(content).hexdigest()}.ppm.zst"
    assert len(list((tmp_path / "store" / "artifacts").iterdir())) == 1
    assert len(list((tmp_path / "store" / "segments").iterdir())) == 2
    assert list((tmp_path / "store" / "unfinished").iterdir()) == []


def test_the_kept_answer_has_a_path(tmp_path: Path) -> None:
    made = Store(tmp_path / "store")
    made.append(small(5))
    assert made.artifact_path(small(5).artifact.sha256).read_bytes() == b'{"n": 5}'
    assert made.artifact_path(small(5).artifact.sha256).name == f"{small(5).artifact.sha256}.json"
    with pytest.raises(TrajectoryError, match="no artifact 0{64} in"):
        made.artifact_path("0" * 64)
    for name in ("../../etc/passwd", "", "A" * 64):
        with pytest.raises(TrajectoryError, match="is not a sha256 of 64 lower-case hex digits"):
            made.artifact_path(name)


def test_the_files_of_an_episode_are_named(tmp_path: Path) -> None:
    made = Store(tmp_path / "store")
    paths = made.paths(key := made.append(small(5)))
    assert paths.trajectory == str(made.path / "segments" / f"{key.split('#')[0]}.seg")
    assert paths.artifact == str(made.artifact_path(small(5).artifact.sha256))
    assert paths.certificate is not None
    assert Path(paths.certificate).read_text(encoding="utf-8") == small(5).certificate_text
    assert Path(paths.certificate).name == f"{hashlib.sha256(small(5).certificate_text.encode()).hexdigest()}.lean"
    with pytest.raises(TrajectoryError, match="no record 1 in"):
        made.paths(key.replace("#0", "#1"))


def test_an_episode_without_artifact_and_certificate_keeps_none(tmp_path: Path) -> None:
    made = Store(tmp_path / "store")
    episode = dataclasses.replace(small(1), artifact=record.Artifact(status="missing"), certificate_text="")
    key = made.append(episode)
    assert episodes_equal(made.read(key), episode)
    assert not (made.path / "artifacts").exists()
    assert not (made.path / "certificates").exists()
    paths = made.paths(key)
    assert Path(paths.trajectory).is_file()
    assert (paths.artifact, paths.certificate) == (None, None)


def test_an_unstorable_episode_leaves_the_segment_open(tmp_path: Path) -> None:
    made = Store(tmp_path / "store")
    first = made.append(small(1))
    with pytest.raises(TrajectoryError, match="a object is not storable"):
        made.append(dataclasses.replace(small(2), extra={"x": object()}))
    assert made.append(small(3)).split("#")[0] == first.split("#")[0]
    assert made.verify() == []


@pytest.mark.parametrize("key", ["", "#0", f"{'0' * 32}#", f"{'0' * 32}#-1", f"{'0' * 32}#00", f"../{'0' * 29}#0"])
def test_what_is_not_a_key_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError, match="is not a record's key"):
        filled(tmp_path / "store")[0].read(key)


def test_a_key_without_record_is_refused(tmp_path: Path) -> None:
    made, keys = filled(tmp_path / "store")
    with pytest.raises(TrajectoryError, match="no record 3 in"):
        made.read(keys[0].replace("#0", "#3"))
    with pytest.raises(TrajectoryError, match="No such file"):
        made.read(f"{'0' * 32}#0")


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_any_order_of_writers_keeps_everything(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], writers: int
) -> None:
    path = tmp_path_factory.mktemp("store")
    stores = [Store(path, durable=False) for _ in range(writers)]
    keys = [stores[index % writers].append(small(number)) for index, number in enumerate(numbers)]
    for key, number in zip(keys, numbers, strict=True):
        assert episodes_equal(stores[0].read(key), small(number))
    assert sorted(item.key for item in stores[0].episodes()) == sorted(keys)
    for made in stores:
        made.close()


def check_summaries(made: Store) -> None:
    """Demand that summaries and jobs say what the whole episodes say."""
    stored, summaries = list(made.episodes()), list(made.summaries())
    assert [(item.key, item.path, item.offset_bytes) for item in summaries] == [
        (item.key, item.path, item.offset_bytes) for item in stored
    ]
    for short, whole in zip(summaries, stored, strict=True):
        summary, episode = short.summary, whole.episode
        for name in {field.name for field in dataclasses.fields(summary)} & set(record.Episode.__slots__) - {"steps"}:
            assert values_equal(getattr(summary, name), getattr(episode, name)), name
        assert summary.steps == len(episode.steps)
        assert summary.artifact_sha256 == episode.artifact.sha256
        assert (summary.outcome, summary.reward) == (episode.judgement.get("outcome", ""), episode.judgement["reward"])
    assert list(made.jobs()) == [(item.episode.job, item.key) for item in stored]


def test_summaries_and_jobs_agree_with_the_episodes(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store")
    made.append(golden_2())
    made.append(dataclasses.replace(small(1), judgement={"reward": None}, artifact=record.Artifact(status="missing")))
    check_summaries(made)
    check_summaries(Store(GOLDEN))
    assert {job for job, key in Store(GOLDEN).jobs() if key.startswith(b"golden-sample-v1".hex())} == {""}


@pytest.mark.parametrize("changed", ["job", "steps", "reward", "artifact_sha256", "group_id"])
def test_the_summary_check_rejects(changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = filled(tmp_path / "store")
    summarise = schema.summarise
    monkeypatch.setattr(schema, "summarise", lambda data: dataclasses.replace(summarise(data), **{changed: 7}))
    with pytest.raises(AssertionError):
        check_summaries(made)


def test_summaries_need_no_blobs_and_report_damage(tmp_path: Path) -> None:
    made, keys = filled(tmp_path / "store")
    for name in ("images", "artifacts", "certificates"):
        shutil.rmtree(made.path / name)
    assert [key for _, key in made.jobs()] == keys
    assert read_all(made)[0] == []
    path, frame = only_segment(made), frames(only_segment(made))[1]
    changed = bytearray(path.read_bytes())
    changed[frame.offset_bytes + segment._FRAME.size] ^= 1
    path.write_bytes(changed[:-1])
    append_raw(made, b"\x81\xaeschema_version\x02")
    findings: list[Finding] = []
    assert [key for _, key in made.jobs(findings.append)] == keys[:1]
    assert sorted(item.kind for item in findings) == ["corrupt", "corrupt", "torn"]


# ---------------------------------------------------------------- torn tails


def check_torn_tail(made: Store, whole: bytes, length: int) -> None:
    """Cut the segment to ``length`` bytes and demand every record before the cut and a word about the rest."""
    path = only_segment(made)
    path.write_bytes(whole)
    ends = [item.offset_bytes + segment._FRAME.size + item.stored_bytes for item in frames(path)]
    path.write_bytes(whole[:length])
    kept = sum(end <= length for end in ends)
    stored, findings = read_all(made)
    assert [item.episode.episode_id for item in stored] == [f"episode-{number}" for number in range(kept)]
    if length in (segment._HEADER.size, *ends):
        assert findings == []
    else:
        start = max([0, *(end for end in (segment._HEADER.size, *ends) if end <= length)])
        assert [(item.kind, item.path, item.offset_bytes) for item in findings] == [("torn", path, start)]
        assert f"{path}, offset {start} bytes: ends inside" in findings[0].message


def test_a_torn_tail_loses_only_what_it_tears(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store")
    whole = only_segment(made).read_bytes()
    last = frames(only_segment(made))[-1].offset_bytes
    for length in (*range(0, last, 7), *range(last, len(whole) + 1)):
        check_torn_tail(made, whole, length)


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("scan", lambda file, path: iter([item for item in segment_scan(file, path) if not isinstance(item, Finding)])),
        ("scan", lambda file, path: iter([item for item in segment_scan(file, path)][:1])),
    ],
    ids=["a scan that is silent", "a scan that stops early"],
)
def test_the_torn_tail_check_rejects(name: str, mutant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = filled(tmp_path / "store")
    whole = only_segment(made).read_bytes()
    monkeypatch.setattr(store.segment, name, mutant)
    with pytest.raises(AssertionError):
        check_torn_tail(made, whole, len(whole) - 1)


segment_scan = segment.scan


# ---------------------------------------------------------------- flipped bits


def check_flips(made: Store, whole: bytes, places: Sequence[tuple[int, int]], count: int = 3) -> None:
    """Flip one bit at a time: it is reported with file and offset, and every other record is read unchanged."""
    path = only_segment(made)
    path.write_bytes(whole)
    starts = [item.offset_bytes for item in frames(path)]
    for place, bit in places:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        path.write_bytes(flipped)
        hit = sum(start <= place for start in starts) - 1
        stored, findings = read_all(made)
        expected = [number for number in range(count) if number != hit]
        assert [item.episode.episode_id for item in stored] == [f"episode-{number}" for number in expected]
        assert all(
            episodes_equal(item.episode, small(number, steps=1)) for item, number in zip(stored, expected, strict=True)
        )
        (found,) = findings
        assert (found.kind, found.path, found.offset_bytes) == ("corrupt", path, starts[hit] if hit >= 0 else 0)
        assert found.message.startswith(f"{path}, offset {found.offset_bytes} bytes: ")
    path.write_bytes(whole)


def test_every_flipped_byte_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store")
    whole = only_segment(made).read_bytes()
    draw = random.Random(20240905)
    check_flips(made, whole, [(place, draw.randrange(8)) for place in range(len(whole))])


def _load_unchecked(file: Any, frame: segment.Frame) -> bytes:
    return segment.inflate(segment._at(file, frame.offset_bytes + segment._FRAME.size, frame.stored_bytes))


@pytest.mark.parametrize(
    ("name", "mutant"),
    [("_intact", lambda header: True), ("load", _load_unchecked), ("_next_frame", lambda f, m, s, size: size)],
    ids=["headers unchecked", "bodies unchecked", "no search for the next record"],
)
def test_the_flip_check_rejects(
    name: str, mutant: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = filled(tmp_path / "store")
    whole = only_segment(made).read_bytes()
    monkeypatch.setattr(segment, name, mutant)
    with pytest.raises((AssertionError, TrajectoryError)):
        check_flips(made, whole, [(place, 3) for place in range(len(whole))])


def test_a_damaged_record_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    made, keys = filled(tmp_path / "store")
    path, frame = only_segment(made), frames(only_segment(made))[1]
    changed = bytearray(path.read_bytes())
    changed[frame.offset_bytes + segment._FRAME.size] ^= 1
    path.write_bytes(changed)
    with pytest.raises(CorruptTrajectory, match=f"offset {frame.offset_bytes} bytes: record 1 fails its checksum"):
        made.read(keys[1])
    assert episodes_equal(made.read(keys[2]), small(2, steps=1))


def test_lost_and_added_bytes_in_the_middle_cost_one_record(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store")
    path = only_segment(made)
    whole, second = path.read_bytes(), frames(path)[1]
    cut = second.offset_bytes + segment._FRAME.size + 5
    for changed in (whole[:cut] + whole[cut + 9 :], whole[:cut] + b"\xff" * 9 + whole[cut:]):
        path.write_bytes(changed)
        stored, findings = read_all(made)
        assert {item.episode.episode_id for item in stored} >= {"episode-0"}
        assert {item.kind for item in findings} == {"corrupt"}
    path.write_bytes(whole[: second.offset_bytes + 3] + whole[second.offset_bytes + 30 :])
    stored, findings = read_all(made)
    assert [item.episode.episode_id for item in stored] == ["episode-0", "episode-2"]
    assert [(item.kind, item.offset_bytes) for item in findings] == [("corrupt", second.offset_bytes)]


def test_a_record_taken_out_whole_is_missed(tmp_path: Path) -> None:
    made, keys = filled(tmp_path / "store")
    path = only_segment(made)
    whole, starts = path.read_bytes(), [item.offset_bytes for item in frames(path)]
    path.write_bytes(whole[: starts[1]] + whole[starts[2] :])
    stored, findings = read_all(made)
    assert [item.key for item in stored] == [keys[0], keys[2]]
    assert [(item.kind, item.offset_bytes) for item in findings] == [("corrupt", starts[1])]
    assert "record 1 should be here, not record 2" in findings[0].message


def test_bytes_lost_inside_a_record_do_not_cost_the_next(tmp_path: Path) -> None:
    made, keys = filled(tmp_path / "store")
    path, second = only_segment(made), frames(only_segment(made))[1]
    whole, cut = path.read_bytes(), second.offset_bytes + segment._FRAME.size + 5
    for lost in (1, 9, 70, second.stored_bytes - 10):
        path.write_bytes(whole[:cut] + whole[cut + lost :])
        stored, findings = read_all(made)
        assert [item.key for item in stored] == [keys[0], keys[2]]
        assert second.offset_bytes in [item.offset_bytes for item in findings]


def test_a_long_damaged_stretch_is_stepped_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "_WINDOW_BYTES", 64)
    made, _ = filled(tmp_path / "store")
    path = only_segment(made)
    whole, starts = path.read_bytes(), [item.offset_bytes for item in frames(path)]
    for junk in range(64):
        path.write_bytes(whole[: starts[0]] + b"\x00" * (200 + junk) + whole[starts[1] :])
        stored, findings = read_all(made)
        assert [item.episode.episode_id for item in stored] == ["episode-1", "episode-2"]
        assert len(findings) == 1


def scanned(tmp_path: Path, data: bytes, marker: bytes) -> list[int]:
    path = tmp_path / f"{marker.hex()}.seg"
    path.write_bytes(data)
    return [item.index for item in frames(path)]


def test_content_cannot_pass_for_a_record(tmp_path: Path) -> None:
    marker, guess = bytes(range(1, 17)), bytes(range(2, 18))

    def with_content(forged: bytes) -> bytes:
        body = random.Random(1).randbytes(5000) + forged
        frame = segment.frame_of(marker, 0, body)
        assert forged in frame
        return segment.header_of(marker) + b"\x00" + frame[1:] + segment.frame_of(marker, 1, b"real")

    assert scanned(tmp_path, with_content(segment.frame_of(guess, 7, b"forged")), marker) == [1]
    assert scanned(tmp_path, with_content(segment.frame_of(marker, 7, b"forged")), marker) == [7, 1]


# ---------------------------------------------------------------- versions, hostile frames, blobs


def sealed(data: bytes) -> bytes:
    return data + struct.pack(">I", zlib.crc32(data))


def test_a_later_segment_version_is_left_alone(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store")
    path = only_segment(made)
    whole = path.read_bytes()
    path.write_bytes(sealed(struct.pack(">8sI16s", b"TBMMSEG\n", 2, bytes.fromhex(path.stem))) + whole[32:])
    made.append(small(9))
    stored, findings = read_all(made)
    assert [item.episode.episode_id for item in stored] == ["episode-9"]
    assert [item.kind for item in findings] == ["version"]
    assert "segment version 2; this tbmm-env reads 1" in findings[0].message


def append_raw(made: Store, data: bytes) -> str:
    """Append any bytes as a record, correctly framed."""
    opened = made._open_writer()
    return f"{opened.name}#{opened.append(data)}"


def test_a_later_record_version_is_left_alone(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store")
    data = encode(small(4))[0].replace(b"schema_version\x02", b"schema_version\x03")
    key = append_raw(made, data)
    made.append(small(9))
    stored, findings = read_all(made)
    assert len(stored) == 4
    assert [item.kind for item in findings] == ["version"]
    with pytest.raises(TrajectoryError, match="schema version 3") as caught:
        made.read(key)
    assert not isinstance(caught.value, CorruptTrajectory)


def test_a_record_of_nonsense_is_corrupt(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store", 1)
    append_raw(made, b"\xdd\x7f\xff\xff\xff")
    made.append(small(1, steps=1))
    stored, findings = read_all(made)
    assert len(stored) == 2
    assert [item.kind for item in findings] == ["corrupt"]
    assert "record is damaged: not msgpack" in findings[0].message


def stream(content: bytes) -> bytes:
    writer = zstandard.ZstdCompressor().compressobj()
    return writer.compress(content) + writer.flush()


@pytest.mark.parametrize(
    ("body", "raw_bytes", "message"),
    [
        (segment.deflate(b"abc") + b"x", 3, "cannot be decompressed"),
        (segment.deflate(b"abc") * 2, 3, "cannot be decompressed"),
        (segment.deflate(b"abc")[:-1], 3, "cannot be decompressed"),
        (segment.deflate(b"abc"), 4, "content states 3 bytes; its frame says 4 bytes"),
        (stream(b"abc"), 3, "content states -1 bytes; its frame says 3 bytes"),
        (stream(b"abc"), None, "content states -1 bytes; it must be 0 to 268435456 bytes"),
        (b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 7 + b"\x00" * 9, None, "content states 72057594037927935 bytes"),
        (b"\x28\xb5\x2f\xfd\xa0" + b"\xff" * 9, None, "content states 4294967295 bytes"),
        (b"", None, "cannot be decompressed"),
        (b"not zstd at all", None, "cannot be decompressed"),
    ],
)
def test_compressed_content_that_lies_is_refused(body: bytes, raw_bytes: int | None, message: str) -> None:
    with pytest.raises(CorruptTrajectory, match=message):
        segment.inflate(body, raw_bytes)


def test_the_content_limit_is_inclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "MAX_RECORD_BYTES", 3)
    assert segment.inflate(segment.deflate(b"abc")) == b"abc"
    with pytest.raises(CorruptTrajectory, match="content states 4 bytes; it must be 0 to 3 bytes"):
        segment.inflate(segment.deflate(b"abcd"))


def test_a_frame_longer_than_any_record_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, keys = filled(tmp_path / "store", 1)
    monkeypatch.setattr(segment, "MAX_STORED_BYTES", frames(only_segment(made))[0].stored_bytes)
    made.read(keys[0])
    monkeypatch.setattr(segment, "MAX_STORED_BYTES", frames(only_segment(made))[0].stored_bytes - 1)
    with pytest.raises(CorruptTrajectory, match="compressed bytes; the limit is"):
        made.read(keys[0])


def blob_of(made: Store, kind: str) -> Path:
    (path,) = made.path.glob({"image": "images/*/*", "artifact": "artifacts/*", "certificate": "certificates/*"}[kind])
    return path


@pytest.mark.parametrize("kind", ["image", "artifact", "certificate"])
def test_a_damaged_blob_is_reported_and_healed_by_the_next_append(kind: str, tmp_path: Path) -> None:
    made, keys = filled(tmp_path / "store", 1)
    path = blob_of(made, kind)
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x10
        path.write_bytes(changed)
        stored, findings = read_all(made)
        if kind == "image" and place == 4:  # a bit of zstd's frame header that means nothing
            assert episodes_equal(stored[0].episode, small(0, steps=1))
            continue
        assert (stored, [item.kind for item in findings]) == ([], ["corrupt"])
        assert f"{path}, offset 0 bytes: " in findings[0].message
    assert [item.path for item in made.verify()] == [only_segment(made), path]
    with Store(made.path, durable=False) as again:
        again.append(small(0, steps=1))
    assert made.verify() == []
    assert episodes_equal(made.read(keys[0]), small(0, steps=1))


@pytest.mark.parametrize("kind", ["image", "artifact", "certificate"])
def test_a_missing_blob_costs_the_records_that_name_it(kind: str, tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store", 1)
    path = blob_of(made, kind)
    other = record.Observation(terminal="", figures=(image(8),))
    made.append(dataclasses.replace(small(1), first_observation=other, certificate_text="theorem other"))
    path.unlink()
    stored, findings = read_all(made)
    assert [item.episode.episode_id for item in stored] == ["episode-1"]
    assert [item.kind for item in findings] == ["missing"]
    assert str(path) in findings[0].message


def test_strange_files_are_reported_and_cost_nothing_else(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store")
    os.mkfifo(made.path / "segments" / f"{'0' * 32}.seg")
    (made.path / "segments" / f"{'1' * 32}.seg").mkdir()
    (made.path / "segments" / f"{'2' * 32}.seg").write_bytes(b"something else altogether, and longer")
    (made.path / "segments" / "notes.seg").write_bytes(b"")
    (made.path / "artifacts" / "notes.txt").write_bytes(b"")
    (made.path / "artifacts" / f"{'3' * 64}.json").mkdir()
    (made.path / "unfinished" / "half").write_bytes(b"half")
    assert len(read_all(made)[0]) == 3
    found = {(item.kind, item.path.name[:4]) for item in made.verify()}
    assert found == {
        ("unreadable", "0000"),
        ("unreadable", "1111"),
        ("corrupt", "2222"),
        ("torn", "note"),
        ("corrupt", "note"),
        ("unreadable", "3333"),
        ("leftover", "half"),
    }


def test_a_renamed_segment_is_read_by_its_header(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store")
    only_segment(made).rename(made.path / "segments" / f"{'a' * 32}.seg")
    assert len(read_all(made)[0]) == 3
    assert made.verify() == []


def test_what_is_skipped_is_logged_when_nobody_asks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made, _ = filled(tmp_path / "store")
    path = only_segment(made)
    path.write_bytes(path.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING):
        assert len(list(made.episodes())) == 2
    assert [entry.getMessage().split(":")[0] for entry in caplog.records] == ["torn"]


# ---------------------------------------------------------------- a disk that refuses


class Disk:
    """Stands for ``os.write``; has ``room_bytes`` left."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes

    def write(self, file: int, data: Any) -> int:
        length = min(len(data), self.room_bytes, 100)
        if data and not length:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room_bytes -= length
        return REAL_WRITE(file, bytes(data[:length]))


REAL_WRITE, REAL_TRUNCATE = os.write, os.ftruncate


def check_full_disk(path: Path, monkeypatch: pytest.MonkeyPatch, room_bytes: int) -> bool:
    """Fill the disk during the second append; return whether it went through."""
    made = Store(path, durable=False)
    first = made.append(small(1))
    other = dataclasses.replace(small(2), first_observation=record.Observation(terminal="", figures=(image(3),)))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Disk(room_bytes).write)
        failure = ""
        try:
            made.append(other)
        except TrajectoryError as error:
            failure = str(error)
    went_through = not failure
    assert went_through or "No space left on device; the episode is not stored, earlier ones are" in failure
    assert made.verify() == []
    assert [item.episode.episode_id for item in made.episodes()] == ["episode-1", "episode-2"][: 1 + went_through]
    later = made.append(small(3))
    assert (later.split("#")[0] == first.split("#")[0]) or not went_through
    assert made.verify() == []
    assert {item.episode.episode_id for item in made.episodes()} >= {"episode-1", "episode-3"}
    assert episodes_equal(made.read(first), small(1))
    made.close()
    return went_through


def test_a_full_disk_fails_the_append_and_leaves_the_store_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [check_full_disk(tmp_path / f"{room}", monkeypatch, room) for room in range(0, 1500, 11)]
    assert not results[0]
    assert results[-1]


def test_the_full_disk_check_rejects_a_writer_that_leaves_its_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.Writer, "_withdraw", lambda self: None)
    with pytest.raises(AssertionError, match="torn"):
        [check_full_disk(tmp_path / f"{room}", monkeypatch, room) for room in range(0, 1500, 11)]


def test_a_half_that_cannot_be_withdrawn_is_a_torn_tail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = filled(tmp_path / "store", 1)
    made.append(small(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", Disk(50).write)
        patch.setattr(os, "ftruncate", lambda file, length: (_ for _ in ()).throw(OSError(errno.EIO, "I/O error")))
        with pytest.raises(TrajectoryError, match="No space left"):
            made.append(small(1))
    made.append(small(2))
    assert [item.kind for item in made.verify()] == ["torn"]
    assert {item.episode.episode_id for item in made.episodes(lambda _: None)} == {
        "episode-0",
        "episode-1",
        "episode-2",
    }


def test_a_file_size_limit_of_the_system_is_no_different(tmp_path: Path) -> None:
    program = f"""
import resource, sys
sys.path.insert(0, {str(HERE)!r})
from trajectory_samples import small
from tbmm_env.errors import TrajectoryError
from tbmm_env.trajectory import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
made, done = Store({str(tmp_path / "store")!r}), 0
try:
    while done < 50:
        made.append(small(done))
        done += 1
except TrajectoryError as error:
    assert "File too large" in str(error), error
print(done, len(list(made.episodes())), made.verify())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    count, kept, findings = done.stdout.split()
    assert 1 < int(count) < 50
    assert (kept, findings) == (count, "[]")


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, OSError])
def test_an_interrupt_in_the_middle_withdraws_the_half(
    interrupt: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = filled(tmp_path / "store", 1)
    made.append(small(1))

    def write(file: int, data: Any) -> int:
        if len(data) < 200:
            raise interrupt
        return REAL_WRITE(file, bytes(data[:30]))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises((KeyboardInterrupt, TrajectoryError)):
            made.append(small(1))
    made.append(small(2))
    assert made.verify() == []
    assert len(list((made.path / "segments").iterdir())) == 3


def test_a_store_deleted_under_a_writer_begins_again(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store", 1)
    made.append(small(1))
    made.close()
    shutil.rmtree(made.path)
    with pytest.raises(TrajectoryError, match="No such file or directory"):
        made.append(small(2))
    made.append(small(3))
    assert [item.episode.episode_id for item in made.episodes()] == ["episode-3"]
    assert made.verify() == []


def test_a_folder_that_refuses_is_our_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TrajectoryError, match="cannot append to the trajectory store"):
        Store(tmp_path / "file" / "store").append(small(1))


def test_an_append_is_flushed_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append(str(Path(f"/proc/self/fd/{file}").readlink())))
    root = tmp_path / "store"
    made = Store(root)
    key = made.append(small(1))
    path = str(root / "segments" / f"{key.split('#')[0]}.seg")
    assert flushed[-1] == path
    folders = ("images", "segments", "artifacts", "certificates")
    expected = {str(item) for item in (tmp_path, root, *(root / name for name in folders))}
    assert {*expected, str(blob_of(made, "image").parent), path} <= set(flushed)
    assert sum("/unfinished/" in name for name in flushed) == 3
    flushed.clear()
    made.append(small(1))
    assert flushed == [path]
    flushed.clear()
    Store(root).append(small(1))
    assert {*expected, str(blob_of(made, "image")), str(blob_of(made, "artifact"))} <= set(flushed)
    flushed.clear()
    Store(tmp_path / "fast", durable=False).append(small(1))
    assert flushed == []


# ---------------------------------------------------------------- many at once

WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from trajectory_samples import small
from tbmm_env.trajectory import Store
made = Store(sys.argv[2])
for number in range(int(sys.argv[3]), int(sys.argv[4])):
    print(made.append(small(number)), flush=True)
"""


def start_writer(path: Path, first: int, end: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(HERE), str(path), str(first), str(end)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_eight_writers_and_a_reader_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "store"
    path.mkdir()
    writers = [start_writer(path, 100 * index, 100 * index + 15) for index in range(8)]
    made, seen, deadline = Store(path), 0, time.monotonic() + 120
    while any(writer.poll() is None for writer in writers) and time.monotonic() < deadline:
        stored, findings = read_all(made)
        assert {item.kind for item in findings} <= {"torn"}
        assert len(stored) >= seen
        assert all(episodes_equal(item.episode, small(item.episode.instance.seed or 0)) for item in stored)
        seen = len(stored)
        jobs = [key for _, key in made.jobs(lambda _: None)]
        assert len(set(jobs)) == len(jobs) >= seen
    keys = []
    for writer in writers:
        output, _ = writer.communicate(timeout=60)
        assert writer.returncode == 0
        keys += output.split()
    assert len(set(keys)) == 120
    assert sorted(item.key for item in made.episodes()) == sorted(keys)
    assert len({key.split("#")[0] for key in keys}) == 8
    assert made.verify() == []


def test_a_killed_writer_loses_at_most_the_running_episode(tmp_path: Path) -> None:
    path = tmp_path / "store"
    writer = start_writer(path, 0, 10**6)
    assert writer.stdout is not None
    keys = [writer.stdout.readline().strip() for _ in range(20)]
    writer.kill()
    keys += writer.communicate(timeout=60)[0].split("\n")[:-1]
    made = Store(path)
    assert {item.kind for item in made.verify()} <= {"torn", "leftover"}
    assert {item.key for item in made.episodes(lambda _: None)} >= {key for key in keys if re.search(r"#\d+$", key)}


def test_a_reader_sees_no_record_before_it_is_whole(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store", 1)
    path = only_segment(made)
    rest = segment.frame_of(bytes.fromhex(path.stem), 1, encode(small(1))[0])
    with Store(tmp_path / "other", durable=False) as other:
        other.append(small(1))
    blob_of(other, "artifact").rename(made.path / "artifacts" / blob_of(other, "artifact").name)
    for part in (rest[:10], rest[10:100], rest[100:-1]):
        with path.open("ab") as file:
            file.write(part)
        stored, findings = read_all(made)
        assert (len(stored), [item.kind for item in findings]) == (1, ["torn"])
    with path.open("ab") as file:
        file.write(rest[-1:])
    assert len(read_all(made)[0]) == 2
    assert made.verify() == []


def test_a_reading_begun_before_an_append_is_not_disturbed(tmp_path: Path) -> None:
    made, _ = filled(tmp_path / "store", 2)
    reading = made.episodes()
    next(reading)
    Store(made.path, durable=False).append(small(9))
    assert len(list(reading)) == 1
    assert len(list(made.episodes())) == 3


def test_threads_share_a_store(tmp_path: Path) -> None:
    made, keys = Store(tmp_path / "store", durable=False), []
    threads = [
        threading.Thread(target=lambda start=start: keys.extend(made.append(small(start + n)) for n in range(10)))
        for start in (0, 10, 20, 30)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(keys)) == 40
    assert {item.episode.episode_id for item in made.episodes()} == {f"episode-{number}" for number in range(40)}
    assert made.verify() == []


def test_a_forked_child_writes_its_own_segment(tmp_path: Path) -> None:
    program = f"""
import os, sys
sys.path.insert(0, {str(HERE)!r})
from trajectory_samples import small
from tbmm_env.trajectory import Store
made = Store({str(tmp_path / "store")!r})
made.append(small(0))
if os.fork() == 0:
    made.append(small(1))
    os._exit(0)
os.wait()
made.append(small(2))
print(len(list(made.episodes())), len(list(made.path.glob("segments/*"))), made.verify())
"""
    arguments = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["3", "2", "[]"], done.stderr


# ---------------------------------------------------------------- size


def test_a_large_episode_is_stored_and_read(tmp_path: Path) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (600, 800, 3), dtype=np.uint8)
    data = b'{"x": "' + b"a" * 4_000_000 + b'"}'
    episode = dataclasses.replace(
        small(1),
        first_observation=record.Observation(terminal="x" * 65536, figures=(picture,) * 8),
        artifact=artifact(data),
        extra={"turns": [{"completion_token_ids": list(range(50_000)), "logprobs": [-0.5] * 50_000}] * 4},
    )
    made = Store(tmp_path / "store")
    assert episodes_equal(made.read(made.append(episode)), episode)
    assert len(list(made.path.glob("images/*/*"))) == 1


def test_limits_agree() -> None:
    header = b"P6\n%d 1\n255\n" % (kinds.MAX_FIGURE_BYTES // 3)
    assert kinds.MAX_FIGURE_BYTES + len(header) <= kinds.MAX_RECORD_BYTES < segment.MAX_STORED_BYTES < 2**32


# ---------------------------------------------------------------- known before an episode


def test_prepare_makes_the_folder_and_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path / "轨迹" / "a")
    store.prepare()
    assert [path for path in store.path.rglob("*") if path.is_file()] == []
    assert store.verify() == []


def test_prepare_refuses_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TrajectoryError, match="file.* cannot be written.*name another folder"):
        Store(tmp_path / "file").prepare()
