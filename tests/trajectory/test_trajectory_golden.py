"""The sample in ``trajectories/golden`` reads for ever; ``python tests/trajectory/test_trajectory_golden.py`` made it.

When a schema version is added, its sample is added beside the old one; no sample is ever written anew.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path

import pytest
from trajectory_samples import encode, episodes_equal, golden, small

from tbmm_env.record import Artifact
from tbmm_env.trajectory import SCHEMA_VERSION, Store, segment

GOLDEN = Path(__file__).parents[2] / "trajectories" / "golden"
KEY = "676f6c64656e2d73616d706c652d7631"
"""The name of its segment: ``golden-sample-v1`` in hexadecimal digits."""


def write_golden(path: Path) -> None:
    """Write the sample; only for a schema version that has none."""
    store = Store(path, durable=False)
    store.append(golden())
    store.append(dataclasses.replace(small(8), artifact=Artifact(status="missing")))
    store.close()
    (written,) = (path / "segments").iterdir()
    (path / "unfinished").rmdir()
    with written.open("rb") as file:
        records = [segment.load(file, item) for item in segment.scan(file, written) if isinstance(item, segment.Frame)]
    marker = bytes.fromhex(KEY)
    content = segment.header_of(marker) + b"".join(segment.frame_of(marker, *item) for item in enumerate(records))
    (path / "segments" / f"{KEY}.seg").write_bytes(content)
    written.unlink()


def check_golden(path: Path) -> None:
    store = Store(path)
    assert store.verify() == []
    assert [item.key for item in store.episodes()] == [f"{KEY}#0", f"{KEY}#1"]
    assert episodes_equal(store.read(f"{KEY}#0"), golden())
    assert store.read(f"{KEY}#1").artifact == Artifact(status="missing")
    assert store.artifact_path(golden().artifact.sha256).read_bytes() == b'{"n": 7}'


def test_the_golden_sample_reads() -> None:
    check_golden(GOLDEN)


def test_the_golden_sample_is_small() -> None:
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 30_000


def test_the_writer_still_writes_the_golden_record() -> None:
    """A change of what is written, even a readable one, needs a new SCHEMA_VERSION and a new sample."""
    assert SCHEMA_VERSION == 1
    path = GOLDEN / "segments" / f"{KEY}.seg"
    with path.open("rb") as file:
        first = next(item for item in segment.scan(file, path) if isinstance(item, segment.Frame))
        assert segment.load(file, first) == encode(golden())[0]


def test_the_golden_check_rejects_another_sample(tmp_path: Path) -> None:
    copy = tmp_path / "golden"
    shutil.copytree(GOLDEN, copy)
    check_golden(copy)
    path = copy / "segments" / f"{KEY}.seg"
    marker = bytes.fromhex(KEY)
    others = (
        dataclasses.replace(golden(), wall_s=12.75),
        dataclasses.replace(small(8), artifact=Artifact(status="missing")),
    )
    frames = [segment.frame_of(marker, index, encode(item)[0]) for index, item in enumerate(others)]
    path.write_bytes(segment.header_of(marker) + b"".join(frames))
    with pytest.raises(AssertionError, match="episodes_equal"):
        check_golden(copy)


if __name__ == "__main__":
    if GOLDEN.exists():
        sys.exit(f"{GOLDEN} exists; it is never written anew")
    write_golden(GOLDEN)
