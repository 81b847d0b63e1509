"""User ids for the boxes of a root owner: one a box, so that boxes share no per-user limit and no file access.

An id is claimed by binding an abstract socket; the kernel frees it when the owner ends, however that happens.
"""

from __future__ import annotations

import socket
from functools import cache
from pathlib import Path

from tbmm_env.errors import SandboxUnavailable

FIRST = 1_879_048_192
"""Above what systemd gives to containers, below what may be taken for negative."""
COUNT = 4096


@cache
def _pool() -> range:
    """Return ids that exist in this user namespace."""
    best = range(0)
    for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
        inside, _, count = map(int, line.split())
        if inside <= FIRST and inside + count >= FIRST + COUNT:
            return range(FIRST, FIRST + COUNT)
        last = range(max(inside, 1024, inside + count - COUNT), inside + count - 1)
        best = max(best, last, key=len)
    return best


class BoxUid:
    """A claimed user id; also used as group id."""

    def __init__(self) -> None:
        """Claim a free id.

        Raises:
            SandboxUnavailable: if all are taken, or this user namespace has none to give.
        """
        for number in _pool():
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            try:
                claim.bind(f"\0tbmm-uid-{number}")
            except OSError:
                claim.close()
                continue
            self.number, self._claim = number, claim
            return
        raise SandboxUnavailable(
            f"no free user id for a box: {len(_pool())} exist and all are taken;"
            " close boxes, or run as an ordinary user"
        )

    def release(self) -> None:
        """Give the id back."""
        self._claim.close()
