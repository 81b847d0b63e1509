"""A second reader, written from ``trajectories/README.md`` alone, reads the golden sample to the same episode."""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
import zstandard
from trajectory_samples import golden, golden_2, values_equal

from tbmm_env.trajectory import codec, kinds, schema, segment

FOLDER = Path(__file__).parents[2] / "trajectories"
README = (FOLDER / "README.md").read_text(encoding="utf-8")


VERSION_2 = {"episode": ("job", "group_id", "sample_id", "policy"), "step": ("turn",)}
"""What the page says that records of version 1 do not have."""


class Reader:
    """Reads a store as the page says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def records(self) -> list[list[dict[str, Any]]]:
        return [self.segment(path) for path in sorted((self.folder / "segments").iterdir())]

    def segment(self, path: Path) -> list[dict[str, Any]]:
        data = path.read_bytes()
        assert (data[:8], data[8:12]) == (b"TBMMSEG\n", b"\0\0\0\1")
        assert data[12:28].hex() == path.stem
        assert struct.unpack(">I", data[28:32])[0] == zlib.crc32(data[:28])
        found, offset = [], 32
        while offset < len(data):
            header = data[offset : offset + 68]
            marker, index, length, size, sha256, crc32 = struct.unpack(">16sQII32sI", header)
            body = data[offset + 68 : offset + 68 + length]
            assert (marker, index, crc32) == (data[12:28], len(found), zlib.crc32(header[:64]))
            assert hashlib.sha256(body).digest() == sha256
            record = zstandard.ZstdDecompressor().decompress(body)
            assert len(record) == size
            found.append(msgpack.unpackb(record, ext_hook=self.extension))
            offset += 68 + length
        return found

    def extension(self, code: int, data: bytes) -> Any:
        if code == 1:
            return int.from_bytes(data, "big", signed=True)
        if code == 3:
            return data.decode("utf-8", "surrogatepass")
        if code == 7:
            content = zstandard.ZstdDecompressor().decompress(
                (self.folder / "images" / data.hex()[:2] / f"{data.hex()}.ppm.zst").read_bytes()
            )
            assert hashlib.sha256(content).digest() == data
            kind, size, depth, pixels = content.split(b"\n", 3)
            width, height = map(int, size.split())
            assert (kind, depth) == (b"P6", b"255")
            return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)
        if code == 8:
            return (self.folder / "artifacts" / f"{data.hex()}.json").read_bytes()
        if code == 9:
            return (self.folder / "certificates" / f"{data.hex()}.lean").read_text(encoding="utf-8")
        parts = msgpack.unpackb(data, ext_hook=self.extension)
        if code == 2:
            return Fraction(*parts)
        if code == 4:
            return np.frombuffer(parts[2], parts[0]).reshape(parts[1])
        if code == 5:
            return np.frombuffer(parts[1], parts[0])[0]
        assert code == 6
        return tuple(parts)


def plain(value: Any) -> Any:
    """A dataclass as nested dicts, its tuples of records as lists: what a record's fields hold."""
    names = getattr(type(value), "__slots__", None)
    if names and hasattr(type(value), "__dataclass_fields__"):
        return {name: _field(getattr(value, name)) for name in names}
    return value


def _field(value: Any) -> Any:
    return [plain(item) for item in value] if isinstance(value, tuple) else plain(value)


def test_a_reader_written_from_the_page_agrees() -> None:
    old, new = (records[0] for records in Reader(FOLDER / "golden").records())
    assert (old.pop("schema_version"), new.pop("schema_version")) == (1, 2)
    assert values_equal(new, plain(golden_2()))
    expected = plain(golden())
    for name in VERSION_2["episode"]:
        del expected[name]
    for step in expected["steps"]:
        for name in VERSION_2["step"]:
            del step[name]
    assert values_equal(old, expected)


def check_page(page: str) -> None:
    """Demand that the page states every field, extension type, dtype and constant of the code."""
    for table in (
        schema._EPISODE,
        schema._STEP,
        schema._TURN,
        schema._OBSERVATION,
        schema._ARTIFACT,
        schema._INSTANCE,
    ):
        for name, kind in table.fields.items():
            assert f"`{name}`" in page, name
            words = re.findall(r"one of ([a-z_, ]+?)(?: or nothing)?$", getattr(kind, "meaning", ""))
            for word in words[0].split(", ") if words else []:
                assert f"`{word}`" in page, word
    for name in (*VERSION_2["episode"], *VERSION_2["step"]):
        assert re.search(rf"since version 2[^.]*`{name}`", page), name
    for code in codec._OPENERS:
        assert re.search(rf"^\| {code} \| ", page, re.MULTILINE), f"extension {code}"
    for dtype in codec.DTYPES:
        assert re.search(rf"[`| ]{dtype[1:]}[` ]", page), dtype
    for number in (kinds.MAX_RECORD_BYTES, codec.MAX_INTEGER_BYTES, codec.MAX_DEPTH, segment._FRAME.size):
        assert re.search(rf"\b{number}\b", page), number
    assert f"segment version: {segment.SEGMENT_VERSION} " in page
    assert f"`schema_version` (now {schema.SCHEMA_VERSION})" in page


def test_the_page_states_every_name_and_number() -> None:
    check_page(README)


@pytest.mark.parametrize(
    "word",
    [
        "`exit_status`",
        "`logprobs`",
        "`group_id`",
        "since version 2",
        "`hard_link`",
        "| 6 | tuple",
        "c16",
        "268435456",
        "8192",
    ],
)
def test_the_page_check_rejects_an_omission(word: str) -> None:
    with pytest.raises(AssertionError):
        check_page(README.replace(word, ""))
