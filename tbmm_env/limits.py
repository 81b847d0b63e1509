"""Every budget of an episode and of the judge, unit in the name, and the two presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BudgetName = Literal["contest", "train"]

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Budgets of one episode.

    Attributes:
        episode_wall_s: wall time from the end of reset to truncation.
        steps: number of actions.
        step_wall_s: wall time of one action; the foreground process group is killed at the end.
        step_output_bytes: bytes of terminal output kept of one action (head and tail halves).
        no_output_s: silence after which a program that *waits for terminal input* gives the turn back.
        cpus: processor cores (a share; enforced by Docker and, where cgroups may be written, by bubblewrap).
        memory_bytes: memory of all processes and tmpfs of the box together.
        pids: processes and threads in the box.
        workspace_bytes: size of the tmpfs at /workspace.
        tmp_bytes: size of the tmpfs at /tmp.
        shm_bytes: size of the tmpfs at /dev/shm.
        inodes: files on each tmpfs (enforced by Docker).
        action_bytes: UTF-8 length of an action; a longer one is not run.
        artifact_bytes: size of /workspace/answer.json.
        view_files: images shown for one action.
        view_pixels: pixels of one image after decoding; larger ones are scaled down.
        view_file_bytes: size of a file given to ``view``.
        checks: uses of ``check`` within one action.
        startup_wall_s: wall time in which a box must answer its first ping.
    """

    episode_wall_s: float
    steps: int
    step_wall_s: float
    step_output_bytes: int = 64 * KIB
    no_output_s: float = 10.0
    cpus: float
    memory_bytes: int
    pids: int = 256
    workspace_bytes: int
    tmp_bytes: int = 128 * MIB
    shm_bytes: int = 64 * MIB
    inodes: int = 50_000
    action_bytes: int = 64 * KIB
    artifact_bytes: int = 4 * MIB
    view_files: int = 8
    view_pixels: int = 1024 * 1024
    view_file_bytes: int = 32 * MIB
    checks: int = 50
    startup_wall_s: float = 60.0

    def __post_init__(self) -> None:
        """Raise ValueError for a budget that is not positive, or tmpfs sizes that do not fit in memory."""
        for name in self.__slots__:
            value = getattr(self, name)
            if not value > 0:
                raise ValueError(f"limit {name} is {value!r}; it must be greater than 0")
        tmpfs = self.workspace_bytes + self.tmp_bytes + self.shm_bytes
        if tmpfs >= self.memory_bytes:
            raise ValueError(
                f"workspace_bytes + tmp_bytes + shm_bytes = {tmpfs} bytes; they are charged to memory_bytes"
                f" = {self.memory_bytes} bytes and must be smaller"
            )


CONTEST = Limits(
    episode_wall_s=4 * 3600.0, steps=200, step_wall_s=900.0, cpus=2.0, memory_bytes=8 * GIB, workspace_bytes=1 * GIB
)
TRAIN = Limits(
    episode_wall_s=600.0, steps=30, step_wall_s=120.0, cpus=1.0, memory_bytes=2 * GIB, workspace_bytes=256 * MIB
)
PRESETS: dict[BudgetName, Limits] = {"contest": CONTEST, "train": TRAIN}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeLimits:
    """Budgets of the judge.

    Attributes:
        replay_wall_s: wall time of one replay in the bounded child.
        reference_wall_s: wall time for the reference and baseline of a sampled instance.
        replay_memory_bytes: address space of the replay child.
        lean_wall_s: wall time of one certificate.
        lean_cpu_s: processor time of one certificate.
        lean_memory_bytes: address space of the Lean process.
        json_depth: nesting of the answer.
        json_digits: digits of one number, exponent included as shifted digits.
        json_strings_bytes: UTF-8 length of one string.
        json_nodes: values in the answer, all levels together.
    """

    replay_wall_s: float = 30.0
    reference_wall_s: float = 60.0
    replay_memory_bytes: int = 2 * GIB
    lean_wall_s: float = 60.0
    lean_cpu_s: int = 60
    lean_memory_bytes: int = 8 * GIB
    json_depth: int = 32
    json_digits: int = 60
    json_strings_bytes: int = 64 * KIB
    json_nodes: int = 200_000

    @property
    def wall_s(self) -> float:
        """Most wall time of one judgement: replay, reference and certificate."""
        return self.replay_wall_s + self.reference_wall_s + self.lean_wall_s


JUDGE = JudgeLimits()
