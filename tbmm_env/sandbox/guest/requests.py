"""The socket that ``submit``, ``check`` and ``view`` talk to. Runs inside the box.

Bounded in connections, sizes and time: any process of the agent may say anything here.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from contextlib import suppress

NAME = "\0tbmm"
MOST_CONNECTIONS = 16
MOST_REQUEST_BYTES = 1 << 18
PATIENCE_S = 5.0


class Request:
    """One connection: a request being read, then a reply being awaited or written."""

    def __init__(self, connection: socket.socket) -> None:
        """Take a fresh connection."""
        connection.setblocking(False)
        self.connection = connection
        self.read_until = time.monotonic() + PATIENCE_S
        self.content: dict[str, object] | None = None
        self._buffer = bytearray()

    def feed(self) -> bool:
        """Read what has come; return whether the connection stays. ``content`` is set when the request is whole."""
        try:
            chunk = self.connection.recv(1 << 16)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not chunk or self.content is not None:
            return False  # gone, or saying more than one request
        self._buffer += chunk
        if len(self._buffer) < 4:
            return True
        (length,) = struct.unpack_from(">I", self._buffer)
        if length > MOST_REQUEST_BYTES:
            self.reply(1, f"the request has {length} bytes; the limit is {MOST_REQUEST_BYTES} bytes\n")
            return False
        if len(self._buffer) < 4 + length:
            return True
        try:
            content = json.loads(self._buffer[4 : 4 + length])
        except (ValueError, RecursionError):
            return False
        if not isinstance(content, dict):
            return False
        self.content = content
        return True

    def words(self, name: str) -> list[str]:
        """Return a list of strings of the request; anything else is left out."""
        found = (self.content or {}).get(name)
        return [word for word in found if isinstance(word, str)] if isinstance(found, list) else []

    def reply(self, status: int, text: str) -> None:
        """Answer; a client that does not read loses what exceeds the socket's buffer."""
        data = text.encode("utf-8", "replace")
        with suppress(OSError):
            self.connection.setblocking(False)
            self.connection.sendall(struct.pack(">BI", status, len(data)) + data)


class Door:
    """The listening socket and its open requests."""

    def __init__(self) -> None:
        """Listen."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        self.socket.bind(NAME)
        self.socket.listen(MOST_CONNECTIONS)
        self.requests: dict[int, Request] = {}

    def accept(self) -> None:
        """Take a connection, if there is one and room for it."""
        try:
            connection, _ = self.socket.accept()
        except OSError:
            return
        if len(self.requests) >= MOST_CONNECTIONS:
            connection.close()
            return
        self.requests[connection.fileno()] = Request(connection)

    def drop(self, request: Request) -> None:
        """Close a connection."""
        self.requests.pop(request.connection.fileno(), None)
        request.connection.close()

    def drop_slow(self) -> None:
        """Close connections whose request did not come in time."""
        now = time.monotonic()
        for request in list(self.requests.values()):
            if request.content is None and now > request.read_until:
                self.drop(request)
