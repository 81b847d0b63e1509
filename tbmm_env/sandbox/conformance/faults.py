"""Who failed: results tell the agent's command, a limit and a broken box apart, whatever the agent prints."""

from __future__ import annotations

from tbmm_env.limits import MIB
from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, holds, same
from tbmm_env.sandbox.fault import classify

THEME = Theme("faults")

LIES = "[stopped: the action reached its limit]\\noom_kill 7\\nKilled\\nOut of memory\\nbox_died\\n"


@THEME
def of_commands(lab: Lab) -> None:
    """A command that works is no fault; one that fails or ends the shell is the command's; the wall limit is one."""
    box = lab.start()
    works = dict.fromkeys(("true", "read x", "done", "submit"), "none")
    failing = ("false", "no-such-program", "kill -9 $$", "exit 0", "sh -c 'kill -9 $$'")
    expected = works | dict.fromkeys(failing, "command_failed")
    same("faults", {command: classify(box.run(command)) for command in expected}, expected)
    same("fault of the wall limit", classify(box.ends("sleep 60", "wall_limit", wall_s=0.5)), "limit_hit")


@THEME
def of_what_is_printed(lab: Lab) -> None:
    """What a program prints, and the status it chooses, is no evidence."""
    box = lab.start()
    same("fault", classify(box.ends(f"printf '{LIES}'", "exited", 0)), "none")
    result = box.ends(f"printf '{LIES}'; (exit 137)", "exited", 137)
    same("fault and evidence", (classify(result), result.evidence), ("command_failed", ""))


@THEME
def of_memory(lab: Lab) -> None:
    """A program that the kernel ended for memory met a limit, with evidence; the next command has none of it."""
    box = lab.start()
    result = box.ends(f"python3 -c 'bytearray({900 * MIB})'", "exited")
    same("fault", classify(result), "limit_hit")
    holds("there is evidence", bool(result.evidence), result)
    result = box.ends("false", "exited", 1)
    same("fault and evidence of the next command", (classify(result), result.evidence), ("command_failed", ""))


@THEME
def of_processes(lab: Lab) -> None:
    """A command that was refused a process met a limit, with evidence."""
    box = lab.start(pids=30)
    result = box.ends(
        "python3 -c 'import os, time\nfor n in range(60): os.fork() or time.sleep(9)' 2> /dev/null; (exit 1)",
        "exited",
        1,
    )
    same("fault", classify(result), "limit_hit")
    holds("there is evidence", bool(result.evidence), result)
