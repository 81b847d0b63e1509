"""The one open segment of a process: created with a random name, appended to, and never left half written."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from tbmm_env.trajectory import segment
from tbmm_env.trajectory.disk import flush, on_failure, write_all


class Writer:
    """The one open segment of a process.

    Args:
        folder: where the segment is made.
        durable: flush to disk before ``append`` returns.
    """

    def __init__(self, folder: Path, durable: bool) -> None:
        self.name = secrets.token_hex(segment.MARKER_BYTES)
        self.path = folder / f"{self.name}.seg"
        self.pid = os.getpid()
        self._marker = bytes.fromhex(self.name)
        self._durable = durable
        self._records = 0
        self._end = 0
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with on_failure(self.close):
            self._write(segment.header_of(self._marker))
            if durable:
                flush(folder)

    def append(self, data: bytes) -> int:
        """Write one record and return its index."""
        self._write(segment.frame_of(self._marker, self._records, data))
        self._records += 1
        return self._records - 1

    def _write(self, data: bytes) -> None:
        with on_failure(self._withdraw):
            write_all(self._file, data)
            if self._durable:
                os.fsync(self._file)
        self._end += len(data)

    def _withdraw(self) -> None:
        """Cut off what was written in part; where even that fails, readers find a torn record."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self._end)

    def close(self) -> None:
        """End the segment."""
        os.close(self._file)
