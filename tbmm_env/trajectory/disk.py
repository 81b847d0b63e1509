"""The few system calls of a store: whole writes, flushes, and opening without surprises."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def on_failure(undo: Callable[[], None]) -> Iterator[None]:
    """Undo when the block does not come to its end, be it by an error or an interrupt."""
    done = False
    try:
        yield
        done = True
    finally:
        if not done:
            undo()


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading without waiting for the other end of a pipe; OSError when it is not a plain file."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{path} is not a plain file")
    return os.fdopen(file, "rb")


def write_all(file: int, data: bytes) -> None:
    """Write all of the bytes at the end of a file."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def write_file(path: Path, data: bytes, durable: bool) -> None:
    """Make a file that must not be there yet; flush its content when it is to be durable."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        write_all(file, data)
        if durable:
            os.fsync(file)
    finally:
        os.close(file)


def flush(path: Path) -> None:
    """Flush a file, or a folder's entries, to disk."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)
