"""One segment file: a header, then framed records; what is damaged is stepped over and said.

Every frame begins with the segment's own 16 random bytes, the marker. It stands in the header and is the file's
name, so records can be found again after any damage, and nothing inside a record can pass for a frame: whoever
chose the record's content did not know the marker. Checksums find accidents; they do not stop a forger who can
write to the store.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal

import zstandard

from tbmm_env.errors import CorruptTrajectory
from tbmm_env.trajectory.kinds import MAX_RECORD_BYTES

SEGMENT_VERSION: Final = 1
MARKER_BYTES: Final = 16
MAX_STORED_BYTES: Final = MAX_RECORD_BYTES + MAX_RECORD_BYTES // 256 + 64
"""Length of one record or blob after compression, which may add up to 1 byte in 256."""
_HEADER: Final = struct.Struct(">8sI16sI")
_FRAME: Final = struct.Struct(">16sQII32sI")
_MAGIC: Final = b"TBMMSEG\n"
_WINDOW_BYTES: Final = 1024 * 1024
_LEVEL: Final = 3

FindingKind = Literal["torn", "corrupt", "version", "missing", "unreadable", "leftover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing wrong with a store.

    Attributes:
        kind: ``torn`` (a file ends inside a record: its writer died, or is writing right now), ``corrupt`` (bytes
            changed), ``version`` (written by a later tbmm-env), ``missing`` (a blob that a record names is not
            there), ``unreadable`` (the system refused) or ``leftover`` (an unfinished file of a writer that died).
        path: the file.
        offset_bytes: where in the file.
        message: a sentence that names file and offset.
    """

    kind: FindingKind
    path: Path
    offset_bytes: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A record's place in its segment: ``offset_bytes`` of its frame, and what the frame says of its body."""

    index: int
    offset_bytes: int
    stored_bytes: int
    raw_bytes: int
    sha256: bytes


def finding(kind: FindingKind, path: Path, offset_bytes: int, what: str) -> Finding:
    """Return a finding whose message names file and offset."""
    return Finding(
        kind=kind, path=path, offset_bytes=offset_bytes, message=f"{path}, offset {offset_bytes} bytes: {what}"
    )


def _sealed(start: bytes) -> bytes:
    return start + struct.pack(">I", zlib.crc32(start))


def _intact(header: bytes) -> bool:
    return _sealed(header[:-4]) == header


def header_of(marker: bytes) -> bytes:
    """Return the first bytes of a segment."""
    return _sealed(_HEADER.pack(_MAGIC, SEGMENT_VERSION, marker, 0)[:-4])


def frame_of(marker: bytes, index: int, record: bytes) -> bytes:
    """Return the frame of a record: header and compressed body."""
    body = deflate(record)
    header = _FRAME.pack(marker, index, len(body), len(record), hashlib.sha256(body).digest(), 0)
    return _sealed(header[:-4]) + body


def deflate(content: bytes) -> bytes:
    """Return the content as one zstd frame that states its length."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(content)


def inflate(body: bytes, raw_bytes: int | None = None) -> bytes:
    """Return the content of one zstd frame, of a known length or the one it states.

    Raises:
        CorruptTrajectory: when it is another length, over MAX_RECORD_BYTES, not zstd, or followed by other bytes.
    """
    try:
        stated = zstandard.frame_content_size(body)
        if raw_bytes not in (None, stated):
            raise CorruptTrajectory(f"content states {stated} bytes; its frame says {raw_bytes} bytes")
        if not 0 <= stated <= MAX_RECORD_BYTES:
            raise CorruptTrajectory(f"content states {stated} bytes; it must be 0 to {MAX_RECORD_BYTES} bytes")
        return zstandard.ZstdDecompressor().decompress(body, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CorruptTrajectory(f"content cannot be decompressed: {error}") from error


def scan(file: BinaryIO, path: Path) -> Iterator[Frame | Finding]:
    """Yield the frames of a segment in order, and a finding for whatever lies between them.

    Bodies are not read. The end is where the file ended when the scan began, so a segment may be scanned while it
    is written.

    Args:
        file: the segment, open for reading.
        path: its name, for the marker and for findings.
    """
    size = os.fstat(file.fileno()).st_size
    header = _at(file, 0, _HEADER.size)
    marker = _marker_in_name(path)
    if len(header) < _HEADER.size:
        yield finding("torn", path, 0, f"ends inside the segment header, after {len(header)} bytes")
        return
    magic, version, own_marker, _ = _HEADER.unpack(header)
    if magic != _MAGIC or not _intact(header):
        yield finding("corrupt", path, 0, "segment header is damaged; records are looked for by the file's name")
    elif version != SEGMENT_VERSION:
        yield finding("version", path, 0, f"segment version {version}; this tbmm-env reads {SEGMENT_VERSION}")
        return
    else:
        marker = own_marker
    if marker is not None:
        yield from _frames(file, path, marker, size)


def _frames(file: BinaryIO, path: Path, marker: bytes, size: int) -> Iterator[Frame | Finding]:
    # A header is due at ``offset``. When none is there, bytes were changed, lost or added since ``sure``, behind the
    # last header that was read, and the next one is looked for from there.
    offset, sure, due, explained = _HEADER.size, 1, 0, False
    while offset < size:
        header = _at(file, offset, min(_FRAME.size, size - offset))
        whole = len(header) == _FRAME.size and header.startswith(marker) and _intact(header)
        _, index, stored_bytes, raw_bytes, sha256, _ = _FRAME.unpack(header) if whole else _NO_FRAME
        end = offset + _FRAME.size + stored_bytes
        if whole and end <= size:
            if index != due and not explained:
                yield finding("corrupt", path, offset, f"record {due} should be here, not record {index}")
            yield Frame(index=index, offset_bytes=offset, stored_bytes=stored_bytes, raw_bytes=raw_bytes, sha256=sha256)
            offset, sure, due, explained = end, offset + _FRAME.size, index + 1, False
            continue
        following = _next_frame(file, marker, max(sure, offset + 1) if whole else sure, size)
        if following < size:
            what = f"record{'' if whole else ' header'} is damaged; the next record is at offset {following} bytes"
            yield finding("corrupt", path, offset, what)
            offset = sure = following
            explained = True
        elif whole:
            yield finding("torn", path, offset, f"ends inside a record, {end - size} bytes before its end")
            return
        elif len(header) < _FRAME.size and header.startswith(marker[: len(header)]):
            yield finding("torn", path, offset, f"ends inside a record's header, after {len(header)} bytes")
            return
        else:
            yield finding("corrupt", path, offset, "record header is damaged; no record follows")
            return


_NO_FRAME: Final = (b"", 0, 0, 0, b"", 0)


def _next_frame(file: BinaryIO, marker: bytes, start: int, size: int) -> int:
    """Return the offset of the first intact frame header at or after ``start``, or ``size``."""
    while start < size:
        window = _at(file, start, min(_WINDOW_BYTES, size - start))
        place = window.find(marker)
        while place >= 0:
            header = _at(file, start + place, _FRAME.size)
            if len(header) == _FRAME.size and _intact(header):
                return start + place
            place = window.find(marker, place + 1)
        start += max(len(window) - MARKER_BYTES + 1, 1)
    return size


def load(file: BinaryIO, frame: Frame) -> bytes:
    """Return the record in a frame.

    Raises:
        CorruptTrajectory: when its bytes are not those that were written.
    """
    if frame.stored_bytes > MAX_STORED_BYTES:
        raise CorruptTrajectory(f"states {frame.stored_bytes} compressed bytes; the limit is {MAX_STORED_BYTES} bytes")
    body = _at(file, frame.offset_bytes + _FRAME.size, frame.stored_bytes)
    if hashlib.sha256(body).digest() != frame.sha256:
        raise CorruptTrajectory(f"record {frame.index} fails its checksum")
    return inflate(body, frame.raw_bytes)


def _at(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


def _marker_in_name(path: Path) -> bytes | None:
    try:
        marker = bytes.fromhex(path.stem)
    except ValueError:
        return None
    return marker if len(marker) == MARKER_BYTES else None
