"""Policies that do harm to what plays them, each once a folder of marks; Ray's actors import this module."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tbmm_env.record import Observation
from tbmm_env.rollout.policies import EpisodeStart, Exchange
from tbmm_env.tasks import Task


class Once:
    """Submits; the first policy of a folder that acts does harm before.

    Args:
        marks: the folder.
    """

    def __init__(self, marks: str, task: Task) -> None:
        self.marks = Path(marks)

    def reset(self, start: EpisodeStart) -> None:
        self.start = start

    def act(self, history: Sequence[Exchange], observation: Observation) -> str | None:
        if not history:
            return "echo working"
        try:
            (self.marks / type(self).__name__).touch(exist_ok=False)
        except FileExistsError:
            return None
        self.harm()
        return None

    def harm(self) -> None:
        raise NotImplementedError


class KillActor(Once):
    """Kills its own process."""

    def harm(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class KillRaylet(Once):
    """Kills the raylet of its node, and with that the node."""

    def harm(self) -> None:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)


class KillBoxes(Once):
    """Kills every bubblewrap below its process, the box of its episode among them."""

    def harm(self) -> None:
        for pid in descendants(os.getpid()):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended by itself meanwhile
                if b"--unshare-net" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)


class Sleep(Once):
    """Does not answer."""

    def harm(self) -> None:
        time.sleep(600)


class Raise(Once):
    """Fails as a model server may."""

    def harm(self) -> None:
        raise ConnectionResetError("the model server is gone")


class Crowd:
    """Notes how many of its kind play at once."""

    def __init__(self, marks: str, task: Task) -> None:
        self.marks = Path(marks)

    def reset(self, start: EpisodeStart) -> None:
        (self.marks / f"pid-{os.getpid()}").touch()

    def act(self, history: Sequence[Exchange], observation: Observation) -> str | None:
        return None


class Slow:
    """Takes a second to submit, and says when it begins."""

    def __init__(self, task: Task) -> None:
        self.marks = os.environ.get("TBMM_TEST_MARKS")

    def reset(self, start: EpisodeStart) -> None:
        if self.marks:
            seed = start.instance["seed"]
            (Path(self.marks) / f"{seed}-{start.sample_id}").touch()

    def act(self, history: Sequence[Exchange], observation: Observation) -> str | None:
        time.sleep(1.0)
        return None


def descendants(root: int) -> list[int]:
    """Processes below one, itself left out."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]
