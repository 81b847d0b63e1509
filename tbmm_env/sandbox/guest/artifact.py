"""Read a file of the agent without following a link, blocking, or reading more than is allowed. Runs inside the box."""

from __future__ import annotations

import errno
import os
import signal
import stat
import time
from contextlib import suppress

STATUS_OF_ERRNO = {
    errno.ENOENT: "missing",
    errno.ELOOP: "link",
    errno.ENXIO: "not_regular",
    errno.EISDIR: "not_regular",
}


def _open(path: str) -> int:
    """Open each component without following a link; the last one for reading, without waiting."""
    *folders, name = [part for part in path.split("/") if part]
    here = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            if folder == "..":
                raise OSError(errno.ELOOP, "a path may not go up")
            below = os.open(folder, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
            mode = os.fstat(here).st_mode
            if stat.S_ISLNK(mode):
                raise OSError(errno.ELOOP, "a folder is a link")
            if not stat.S_ISDIR(mode):
                raise OSError(errno.ENOENT, "a folder is not one")
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def read_artifact(path: str, most_bytes: int) -> tuple[dict[str, object], bytes]:
    """Return status and size, and the bytes when the status is ``regular``.

    Args:
        path: absolute path in the box.
        most_bytes: larger files are ``too_large`` and not read.
    """
    try:
        descriptor = _open(path)
    except OSError as error:
        return {"status": STATUS_OF_ERRNO.get(error.errno or 0, "unreadable"), "size_bytes": 0}, b""
    try:
        found = os.fstat(descriptor)
        header: dict[str, object] = {"size_bytes": found.st_size}
        if not stat.S_ISREG(found.st_mode):
            return header | {"status": "not_regular"}, b""
        if found.st_nlink != 1:
            return header | {"status": "hard_link"}, b""
        data = bytearray()
        while found.st_size <= most_bytes and len(data) <= most_bytes:
            chunk = os.read(descriptor, min(1 << 20, most_bytes + 1 - len(data)))
            if not chunk:
                return {"status": "regular", "size_bytes": len(data)}, bytes(data)
            data += chunk
        return {"status": "too_large", "size_bytes": max(found.st_size, len(data))}, b""
    except OSError:
        return {"status": "unreadable", "size_bytes": 0}, b""
    finally:
        os.close(descriptor)


def count_files(folder: str) -> int:
    """Return the number of files in a folder and those below."""
    return sum(len(names) for _, _, names in os.walk(folder))


def end_everybody(wait_s: float) -> bool:
    """Kill every other process of the box and reap it; return whether nobody is left.

    Only process 1 may call this: all others are its descendants, so having no child left means being alone.
    """
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            return True
        time.sleep(0.002)
    return False
