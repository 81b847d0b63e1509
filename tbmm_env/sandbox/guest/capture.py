"""Keep the head and the tail of a stream of any length in bounded memory. Runs inside the box."""

from __future__ import annotations


class Capture:
    """Head and tail halves of at most ``most_bytes`` together; what lies between is counted."""

    def __init__(self, most_bytes: int) -> None:
        """Start empty."""
        self._head_room = (most_bytes + 1) // 2
        self._tail_bytes = most_bytes // 2
        self._tail = bytearray()
        self._unsent = bytearray()
        self.dropped_bytes = 0

    def add(self, chunk: bytes) -> None:
        """Take a chunk of the stream."""
        room = self._head_room
        if room:
            self._unsent += chunk[:room]
            self._head_room -= min(room, len(chunk))
            chunk = chunk[room:]
        self._tail += chunk
        excess = len(self._tail) - self._tail_bytes
        if excess > self._tail_bytes or excess > 1 << 16:
            self._cut(excess)

    def _cut(self, excess: int) -> None:
        self.dropped_bytes += excess
        del self._tail[:excess]

    def take_head(self) -> bytes:
        """Return what of the head was not taken yet."""
        taken = bytes(self._unsent)
        self._unsent.clear()
        return taken

    def take_tail(self) -> bytes:
        """Return the tail, cut to its length; ``dropped_bytes`` is final then."""
        excess = len(self._tail) - self._tail_bytes
        if excess > 0:
            self._cut(excess)
        return bytes(self._tail)
