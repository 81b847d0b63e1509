"""Frames between owner and helper, on the helper's stdin and stdout; the same code at both ends.

A frame is: kind (1 byte), lengths of header and body (4 bytes each), header (JSON object, ASCII), body (raw bytes).
Standard library only: this file also runs inside the box.
"""

from __future__ import annotations

import json
import struct
from typing import Any

PREFIX = struct.Struct(">cII")
MOST_HEADER_BYTES = 1 << 20
MOST_BODY_BYTES = 1 << 30

# owner -> helper
CONFIGURE = b"C"
RUN = b"R"
CHECKED = b"K"
COLLECT = b"A"
COUNT = b"N"

# helper -> owner
READY = b"r"
OUTPUT = b"o"
ENDED = b"e"
IMAGE = b"i"
CHECK = b"k"
ARTIFACT = b"a"
COUNTED = b"n"

Frame = tuple[bytes, dict[str, Any], bytes]


class WireError(ValueError):
    """Raised when the other end does not speak this protocol."""


def pack(kind: bytes, header: dict[str, Any] | None = None, body: bytes = b"") -> bytes:
    """Return the bytes of one frame."""
    head = json.dumps(header or {}).encode("ascii")
    return PREFIX.pack(kind, len(head), len(body)) + head + body


class Decoder:
    """Turns chunks of a stream into frames."""

    def __init__(self) -> None:
        """Start with an empty buffer."""
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take bytes as they come; return the frames that are whole now.

        Raises:
            WireError: if the stream is not one of frames.
        """
        self._buffer += chunk
        frames: list[Frame] = []
        while len(self._buffer) >= PREFIX.size:
            kind, header_bytes, body_bytes = PREFIX.unpack_from(self._buffer)
            if header_bytes > MOST_HEADER_BYTES or body_bytes > MOST_BODY_BYTES:
                raise WireError(f"frame {kind!r} announces {header_bytes} + {body_bytes} bytes")
            end = PREFIX.size + header_bytes + body_bytes
            if len(self._buffer) < end:
                break
            start = PREFIX.size + header_bytes
            try:
                header = json.loads(self._buffer[PREFIX.size : start])
            except ValueError as error:
                raise WireError(f"frame {kind!r} has a header that is not JSON") from error
            frames.append((kind, header, bytes(self._buffer[start:end])))
            del self._buffer[:end]
        return frames
