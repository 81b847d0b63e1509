"""The watcher: waits for the end of the process that owns boxes, then removes what that has left. A program of its own.

Started by :mod:`tbmm_env.sandbox.watcher` with the owner's label. Standard library only. Each line of its stdin names
a place where something may be left; ``bye`` means that nothing is.

* ``group FOLDER``: control groups named ``LABEL.*`` in it, and whoever is alive in them;
* ``tree FOLDER``: folders named ``LABEL.*`` in it, and a bubblewrap that was to show one of them;
* ``docker SOCKET``: containers labelled with the owner.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

PATIENCE_S = 10.0
DOCKER_PATIENCE_S = 3.0
"""A daemon may still be at work on a request that the owner has sent with its last breath."""
PAUSE_S = 0.1
API_WALL_S = 30.0
LABEL = "tbmm.owner"


def groups_left(folder: str, label: str) -> bool:
    """Kill everybody in the owner's groups and remove these; return whether some are left."""
    left = [group_left(f"{folder}/{name}") for name in _named(folder, label)]  # a list: every one is tried
    return any(left)


def group_left(folder: str) -> bool:
    """Kill everybody in a control group and remove it; return whether it is left.

    A bubblewrap that dies while it starts leaves a child that waits for ever.
    """
    for number in _read(f"{folder}/cgroup.procs").split():
        _kill(int(number))
    try:
        os.rmdir(folder)  # noqa: PTH106 (pathlib would lengthen the start)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def trees_left(folder: str, label: str) -> bool:
    """Kill those who were to show the owner's folders, and remove these; return whether some are left."""
    import shutil

    kill_bubblewrap(f"{folder}/{label}.")
    for name in _named(folder, label):
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)  # noqa: PTH118
    return bool(_named(folder, label))


def kill_bubblewrap(start: str) -> None:
    """Kill the bubblewrap processes that name a path beginning with ``start``, where there are no groups."""
    for number in os.listdir("/proc"):  # noqa: PTH208
        if number.isdigit():
            words = _read(f"/proc/{number}/cmdline").split(b"\0")
            if words[0].startswith(b"/proc/self/fd/") and any(word.startswith(os.fsencode(start)) for word in words):
                _kill(int(number))


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return b""


def _kill(number: int) -> None:
    try:
        if number > 1:  # 0 stands for a process of another pid namespace
            os.kill(number, signal.SIGKILL)
    except OSError:
        return  # it has gone, or is not ours


def _named(folder: str, label: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.startswith(label + ".")]  # noqa: PTH208
    except OSError:
        return []


def containers_left(address: str, label: str) -> bool:
    """Remove the owner's containers; return whether there were some."""
    import http.client
    import json
    import urllib.parse

    class Connection(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(API_WALL_S)
            self.sock.connect(address)

    def ask(method: str, path: str) -> bytes:
        connection = Connection("docker")
        try:
            connection.request(method, path)
            return connection.getresponse().read()
        finally:
            connection.close()

    try:
        filters = urllib.parse.quote(json.dumps({"label": [f"{LABEL}={label}"]}))
        found = json.loads(ask("GET", f"/containers/json?all=1&filters={filters}"))
        for entry in found:
            ask("DELETE", f"/containers/{entry['Id']}?force=1&v=1")
        return bool(found)
    except (OSError, ValueError, TypeError, KeyError, http.client.HTTPException):
        return True  # ask again


def main() -> None:
    """Wait, then remove until nothing is left or patience ends."""
    label, places = sys.argv[1], set[tuple[str, str]]()
    for line in sys.stdin.buffer:
        kind, _, value = os.fsdecode(line.rstrip(b"\n")).partition(" ")
        if kind == "bye":
            return
        places.add((kind, value))
    gone_s = time.monotonic()
    while (passed_s := time.monotonic() - gone_s) < PATIENCE_S:
        looks = {"group": groups_left, "tree": trees_left, "docker": containers_left}
        left = [place for place in sorted(places) if looks[place[0]](place[1], label)]
        if not left and (passed_s > DOCKER_PATIENCE_S or not any(kind == "docker" for kind, _ in places)):
            return
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
