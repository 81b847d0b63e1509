"""Who is at work on an output folder: one driver, and its workers; told by locks that die with their processes.

``OUT/locks/driver`` is locked by the driver for its life and holds its token. Each worker process has a file of its
own there. A new driver first waits until all workers of earlier ones are gone, so a finished job that it does not
see in the store will not come to be stored later on. Where several hosts write to one folder, its file system must
support ``flock`` across them, as NFS 4 does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tbmm_env.errors import TrajectoryError, UsageError

REMAINS_WAIT_S = 60.0
"""How long the remains of a killed rollout are waited for."""
_POLL_S = 0.05


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise TrajectoryError(f"lock {path} cannot be opened: {error}; name another folder") from error


def _lock(file: int, wait_s: float, on_wait: Callable[[], object] | None = None) -> bool:
    """Take a lock, waiting at most ``wait_s``; return whether it was had."""
    deadline_s = time.monotonic() + wait_s
    told = False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline_s:
                return False
        if on_wait is not None and not told:
            on_wait()
            told = True
        time.sleep(_POLL_S)


class DriverLock:
    """Held by the one driver of an output folder.

    Args:
        out: the folder; it is made if need be.
        wait_s: how long to wait for the remains of an earlier driver.
        on_wait: called once when there is something to wait for.

    Raises:
        UsageError: another rollout is at work on the folder.
        TrajectoryError: the folder cannot be written.
    """

    def __init__(
        self, out: Path, *, wait_s: float = REMAINS_WAIT_S, on_wait: Callable[[], object] | None = None
    ) -> None:
        self._folder = out / "locks"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TrajectoryError(f"{out} cannot be written: {error}; name another folder") from error
        self.token = secrets.token_hex(16)
        self._file = _open(self._folder / "driver")
        deadline_s = time.monotonic() + wait_s
        try:
            self._take(self._file, deadline_s, out, on_wait)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, self.token.encode(), 0)
            for path in sorted(self._folder.glob("worker-*")):
                worker = _open(path)
                try:
                    self._take(worker, deadline_s, out, on_wait)
                    path.unlink(missing_ok=True)
                finally:
                    os.close(worker)
        except BaseException:
            os.close(self._file)
            raise

    def _take(self, file: int, deadline_s: float, out: Path, on_wait: Callable[[], object] | None) -> None:
        if not _lock(file, deadline_s - time.monotonic(), on_wait):
            raise UsageError(
                f"another rollout is at work on {out}: its processes still hold {self._folder}; wait for its end, stop"
                " it, or name another folder"
            )

    def close(self) -> None:
        """Let another driver at the folder."""
        os.close(self._file)

    def __enter__(self) -> Self:
        """Return the lock."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()


class WorkerLock:
    """Held by a worker process for its life.

    Args:
        out: the output folder.
        token: of the driver that the worker works for.
        name: of this worker; no two workers of a driver have the same.

    Raises:
        UsageError: the folder has another driver by now.
        TrajectoryError: the folder cannot be written from here.
    """

    def __init__(self, out: Path, token: str, name: str) -> None:
        self._path = out / "locks" / f"worker-{name}"
        self._file = _open(self._path)
        try:
            _lock(self._file, REMAINS_WAIT_S)
            # Read after the lock is held: a later driver changes the token first and then waits for this lock.
            if (self._path.parent / "driver").read_text(encoding="ascii") != token:
                raise UsageError(f"{out} has another driver by now")
        except BaseException:
            os.close(self._file)
            raise

    def close(self) -> None:
        """Give the lock up."""
        self._path.unlink(missing_ok=True)
        os.close(self._file)


def await_gone(out: Path, name: str, wait_s: float = REMAINS_WAIT_S) -> None:
    """Wait until a worker is gone, so that what it had not stored by then it never will.

    Raises:
        TrajectoryError: it is still there after ``wait_s`` seconds.
    """
    path = out / "locks" / f"worker-{name}"
    with contextlib.suppress(FileNotFoundError):
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if not _lock(file, wait_s):
                raise TrajectoryError(f"worker {name} is lost, but still holds {path} after {wait_s:g} s")
            path.unlink(missing_ok=True)
        finally:
            os.close(file)
