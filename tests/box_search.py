"""The search that runs inside a box: which files and processes show given bytes to the agent?"""

from __future__ import annotations

import ast

SEARCH = r"""
import os, sys
needles = [bytes.fromhex(word)[::-1] for word in sys.argv[1:]]
longest = max(map(len, needles))
hits, read, files = [], 0, 0
def look(path, most=None):
    global read, files
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb", buffering=0) as file:
            files += 1
            last = b""
            while chunk := file.read(1 << 22):
                read += len(chunk)
                hits.extend((index, path) for index, needle in enumerate(needles) if needle in last + chunk)
                last = chunk[-longest:]
                if most is not None and read > most:
                    return
    except (OSError, ValueError, TypeError):
        pass
for top, folders, names in os.walk("/"):
    if top == "/":
        folders[:] = [name for name in folders if name not in ("proc", "sys", "dev")]
    for name in folders + names:
        path = os.path.join(top, name)
        hits.extend((index, path) for index, needle in enumerate(needles) if needle in os.fsencode(path))
        if name in names and not os.path.islink(path) and os.path.isfile(path):
            look(path)
for process in [name for name in os.listdir("/proc") if name.isdigit()]:
    for name in ("cmdline", "environ", "comm", "mountinfo", "status", "maps"):
        look(f"/proc/{process}/{name}")
for top in ("/proc/sys", "/dev/shm", "/sys"):
    for folder, _, names in os.walk(top):
        for name in names:
            look(os.path.join(folder, name), most=None if top == "/dev/shm" else read + (1 << 16))
for name in ("mounts", "keys", "cmdline", "version", "net/unix", "sysvipc/shm"):
    look("/proc/" + name)
print(files, read, sorted(set(hits)))
"""


def command(*needles: bytes) -> str:
    """Return the action that searches; the bytes travel backwards and in hexadecimal, so it does not find itself."""
    return f"python3 - {' '.join(needle[::-1].hex() for needle in needles)} <<'END'\n{SEARCH}\nEND"


def found(printed: str, which: int = 0) -> list[str]:
    """Return the paths that hold one of the needles, and see to it that the whole root filesystem was read."""
    files, read, hits = printed.partition("[exit status")[0].split(" ", 2)
    assert int(files) > 1000, printed
    assert int(read) > 100_000_000, printed
    return [str(path) for index, path in ast.literal_eval(hits.strip()) if index == which]
