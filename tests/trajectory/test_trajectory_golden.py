"""The samples in ``trajectories/golden`` read for ever, one segment a schema version.

``python tests/trajectory/test_trajectory_golden.py`` wrote them. When a schema version is added, its sample is added
beside the old ones; none is ever written anew.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from trajectory_samples import encode, episodes_equal, golden, golden_2, small

from tbmm_env.record import Artifact, Episode
from tbmm_env.trajectory import SCHEMA_VERSION, Store, segment

GOLDEN = Path(__file__).parents[2] / "trajectories" / "golden"
SAMPLES: dict[int, Callable[[], Episode]] = {1: golden, 2: golden_2}
"""The first episode of each schema version's segment; the second is small and has no answer."""


def name_of(version: int) -> str:
    """The name of a version's segment: ``golden-sample-v1`` in hexadecimal digits."""
    return f"golden-sample-v{version}".encode().hex()


def without_answer() -> Episode:
    return dataclasses.replace(small(8), artifact=Artifact(status="missing"))


def write_golden(path: Path) -> None:
    """Add the sample of the present schema version, which must have none."""
    marker = name_of(SCHEMA_VERSION)
    if (path / "segments" / f"{marker}.seg").exists():
        sys.exit(f"{path} has a sample of version {SCHEMA_VERSION}; it is never written anew")
    with tempfile.TemporaryDirectory() as folder:
        with Store(folder, durable=False) as store:
            records = [encode(item)[0] for item in (SAMPLES[SCHEMA_VERSION](), without_answer())]
            for item in (SAMPLES[SCHEMA_VERSION](), without_answer()):
                store.append(item)
        shutil.rmtree(Path(folder) / "segments")
        (Path(folder) / "unfinished").rmdir()
        shutil.copytree(folder, path, dirs_exist_ok=True)
    frames = [segment.frame_of(bytes.fromhex(marker), *item) for item in enumerate(records)]
    content = segment.header_of(bytes.fromhex(marker)) + b"".join(frames)
    (path / "segments").mkdir(exist_ok=True)
    (path / "segments" / f"{marker}.seg").write_bytes(content)


def check_golden(path: Path) -> None:
    store = Store(path)
    assert store.verify() == []
    expected = [f"{name_of(version)}#{index}" for version in SAMPLES for index in (0, 1)]
    assert [item.key for item in store.episodes()] == expected
    for version, sample in SAMPLES.items():
        assert episodes_equal(store.read(f"{name_of(version)}#0"), sample())
        assert episodes_equal(store.read(f"{name_of(version)}#1"), without_answer())
    assert store.artifact_path(golden().artifact.sha256).read_bytes() == b'{"n": 7}'


def test_the_golden_sample_reads() -> None:
    check_golden(GOLDEN)


def test_every_schema_version_has_a_sample() -> None:
    assert sorted(SAMPLES) == list(range(1, SCHEMA_VERSION + 1))


def test_the_golden_samples_are_small() -> None:
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 40_000


def test_the_writer_still_writes_the_newest_golden_record() -> None:
    """A change of what is written, even a readable one, needs a new SCHEMA_VERSION and a new sample."""
    path = GOLDEN / "segments" / f"{name_of(SCHEMA_VERSION)}.seg"
    with path.open("rb") as file:
        first = next(item for item in segment.scan(file, path) if isinstance(item, segment.Frame))
        assert segment.load(file, first) == encode(SAMPLES[SCHEMA_VERSION]())[0]


@pytest.mark.parametrize("version", SAMPLES)
def test_the_golden_check_rejects_another_sample(version: int, tmp_path: Path) -> None:
    copy = tmp_path / "golden"
    shutil.copytree(GOLDEN, copy)
    check_golden(copy)
    path = copy / "segments" / f"{name_of(version)}.seg"
    marker = bytes.fromhex(path.stem)
    others = dataclasses.replace(SAMPLES[version](), wall_s=12.75), without_answer()
    frames = [segment.frame_of(marker, index, encode(item)[0]) for index, item in enumerate(others)]
    path.write_bytes(segment.header_of(marker) + b"".join(frames))
    with pytest.raises(AssertionError, match="episodes_equal"):
        check_golden(copy)


def test_an_old_record_has_the_defaults_of_the_new_fields() -> None:
    old = Store(GOLDEN).read(f"{name_of(1)}#0")
    assert (old.job, old.group_id, old.sample_id, old.policy) == ("", "", 0, "")
    assert [step.turn for step in old.steps] == [None, None]


if __name__ == "__main__":
    write_golden(GOLDEN)
