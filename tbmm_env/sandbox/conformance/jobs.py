"""Background jobs: they neither block an action nor end with it."""

from __future__ import annotations

from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, holds, output, same

THEME = Theme("jobs")

STARTS = (
    "sleep 301 &",
    "nohup sleep 302 > /dev/null 2>&1 &",
    "setsid sleep 303 > /dev/null 2>&1",
    "sleep 304 & disown",
    "(setsid sleep 305 &)",
    'python3 -c \'import subprocess; subprocess.Popen(["sleep", "306"])\'',
    "(sleep 307 | cat) &",
)
WORDS = "301 302 303 304 305 306 307"


def _alive(*words: str) -> str:
    """Return a command that prints ``all`` alone if the jobs are there, or will be within seconds."""
    look = 'for t in $(seq 50); do pgrep -fx "sleep $n" > /dev/null && continue 2; sleep 0.1; done; echo gone $n'
    return f"for n in {' '.join(words) or WORDS}; do {look}; done; echo all"


@THEME
def a_job_does_not_hold_an_action(lab: Lab) -> None:
    """An action ends though its background job runs on: &, nohup, setsid, disown, a child left behind."""
    box = lab.start()
    for command in STARTS:
        command = f"{command} &" if command.startswith("setsid") else command
        result = box.ends(command, "exited", 0, wall_s=40.0)
        holds(f"{command!r} ends at once", result.wall_s < 20.0, result)
    box.prints(_alive(), "all\n")


@THEME
def jobs_live_on(lab: Lab) -> None:
    """Jobs outlive later actions, a wall limit, ^C, and the shell that started them."""
    box = lab.start()
    words = ("301", "302", "304", "305", "306")
    for command in STARTS:
        if command.split("sleep ")[-1][:3] in words or "306" in command:
            box.ends(command, "exited", 0)
    box.prints(_alive(*words), "all\n")
    box.ends("sleep 60", "wall_limit", wall_s=0.5)
    box.prints(_alive(*words), "all\n")
    box.ends("cat", "awaiting_input")
    box.ends("^C", "exited")
    box.prints(_alive(*words), "all\n")
    box.ends("exit", "shell_restarted", 0)
    box.prints(_alive(*words), "all\n")


@THEME
def a_job_that_prints_does_not_hold_an_action(lab: Lab) -> None:
    """A job that keeps printing on the terminal does not hold the action that started it, or later ones."""
    box = lab.start()
    found = output(box.ends("while sleep 0.01; do echo noise; done & sleep 0.5; echo done", "exited", 0, 20.0))
    holds("words of both are shown", b"noise" in found and b"done" in found, found)
    holds("a later command is shown", b"later" in output(found2 := box.ends("echo later", "exited", 0, 20.0)), found2)
    box.ends("kill %1", "exited", 0)


@THEME
def job_control(lab: Lab) -> None:
    """``jobs``, ``wait``, ``kill %n``, ``$!`` and ``fg`` work from one action to the next."""
    box = lab.start()
    box.text("sleep 0.8 & (exit 4) & job=$!")
    same("status of a job that is waited for", box.text("wait $job; echo $?").splitlines()[-1], "4")
    box.text("sleep 300 &")
    holds("the job is listed", "sleep 300" in (found := box.text("jobs")), found)
    box.ends("kill %%; wait %%", "exited", 143)
    box.text("sleep 1 &")
    box.ends("fg", "exited", 0)


@THEME
def a_result_in_the_background(lab: Lab) -> None:
    """A long computation started with ``&`` and a log file is read by later actions."""
    box = lab.start()
    box.ends("(for i in 1 2 3; do sleep 0.2; echo step $i; done; echo end) > log 2>&1 &", "exited", 0)
    seen = box.text("until grep -q end log; do sleep 0.1; done; cat log")
    holds("the log is whole", "step 1\nstep 2\nstep 3\nend\n" in seen, seen)
