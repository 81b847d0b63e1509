"""Who failed: the one place that decides between the agent's command, a limit, the agent's box and our sandbox.

Only facts of the kernel, of the daemon and of our own helper count; nothing that a program has printed is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tbmm_env.record import CommandResult

Fault = Literal["none", "command_failed", "limit_hit", "agent_broke_box", "sandbox_failed"]
"""``sandbox_failed`` is ours and always an exception; the others are data about the agent."""

FULL = 0.95
"""Share of a limit from which on a box that does not answer is taken to be stuck at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What kernel or daemon counted for one box since its start.

    Attributes:
        oom_kills: processes that the kernel killed for memory.
        memory_hits: how often the memory limit was hit, with or without a kill.
        pids_hits: how often a process was refused for the limit of processes.
        memory_share: memory in use, as a share of the limit.
        pids_share: processes, as a share of the limit.
    """

    oom_kills: int = 0
    memory_hits: int = 0
    pids_hits: int = 0
    memory_share: float = 0.0
    pids_share: float = 0.0


def of_end(counters: Counters, *, silent: bool) -> tuple[Fault, str]:
    """Decide whose failure it is that a box is gone, or is there and does not answer.

    Args:
        counters: as they are now.
        silent: the box is there; limits that were hit without a kill explain that too.

    Returns:
        ``agent_broke_box`` with the evidence, or ``sandbox_failed`` with ``""``.
    """
    found = [f"oom_kill {counters.oom_kills}"] if counters.oom_kills else []
    if silent:
        found += [f"memory_limit_hits {counters.memory_hits}"] if counters.memory_hits else []
        found += [f"pids_limit_hits {counters.pids_hits}"] if counters.pids_hits else []
        found += [f"memory at {counters.memory_share:.0%} of its limit"] if counters.memory_share >= FULL else []
        found += [f"processes at {counters.pids_share:.0%} of their limit"] if counters.pids_share >= FULL else []
    return ("agent_broke_box", ", ".join(found)) if found else ("sandbox_failed", "")


def of_command(before: Counters, after: Counters) -> str:
    """Return evidence of limits that were hit while a command ran in a box that lives on; ``""`` if none."""
    kills, refusals = after.oom_kills - before.oom_kills, after.pids_hits - before.pids_hits
    found = [f"oom_kill {kills}"] if kills > 0 else []
    found += [f"pids_limit_hits {refusals}"] if refusals > 0 else []
    return ", ".join(found)


def classify(result: CommandResult) -> Fault:
    """Return who failed in an action that has a result.

    A limit counts when it ended the action, or when the kernel recorded it and the command did not exit with 0; output
    that was cut is no failure.
    """
    if result.ending == "box_died":
        return "agent_broke_box"
    if result.ending == "wall_limit":
        return "limit_hit"
    if result.ending == "awaiting_input" or (result.ending == "exited" and result.exit_status == 0):
        return "none"
    return "limit_hit" if result.evidence else "command_failed"
