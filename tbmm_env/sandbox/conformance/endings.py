"""Actions that end their shell or everything: a new shell takes over, files and jobs stay."""

from __future__ import annotations

from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, holds, output, same

THEME = Theme("endings")

ENDS = {
    "exit": 0, "exit 3": 3, "exec false": 1, "exec true": 0, "kill -9 $$": 137, "kill -HUP $$": 129,
    "set -e; false": 1, "bash -c 'kill -9 $PPID'; sleep 30": 137, "logout 2> /dev/null; exit 9": 9,
}  # fmt: skip
"""Actions that end the shell, and the status it ends with."""


@THEME
def the_shell_is_restarted(lab: Lab) -> None:
    """A shell that was left, replaced or killed is started anew, and the result says so with its exit status."""
    box = lab.start()
    for command, status in ENDS.items():
        result = box.ends(command, "shell_restarted", wall_s=20.0)
        same(f"exit status of {command!r}", result.exit_status, status)
        box.prints("echo fine", "fine\n")


@THEME
def what_stays_after_exit(lab: Lab) -> None:
    """After ``exit`` output, files and jobs are there; variables are gone and the folder is /workspace."""
    box = lab.start()
    box.text("x=1; touch kept; cd /tmp; sleep 300 & echo $! > pid")
    result = box.ends("echo last words; exit 3", "shell_restarted", 3)
    holds("the last words are shown", b"last words\n" in output(result), result)
    box.prints("echo [$x] $PWD; ls kept; kill -0 $(cat /tmp/pid) && echo job", "[] /workspace\nkept\njob\n")


@THEME
def everybody_is_killed(lab: Lab) -> None:
    """``kill -9 -1`` costs the shell and the jobs; files stay and the box works on."""
    box = lab.start()
    box.text("echo '{}' > answer.json; sleep 300 &")
    box.ends("bash -c 'kill -9 -1'", "shell_restarted", 137)
    box.prints("pgrep sleep; echo back", "back\n")
    same("answer", box.box.collect().data, b"{}\n")


@THEME
def the_shell_dies_between_actions(lab: Lab) -> None:
    """A shell that its job kills between two actions is there again for the next."""
    box = lab.start()
    box.ends("(sleep 0.3; kill -9 $$) &", "exited", 0)
    box.run("sleep 1")
    box.prints("echo fine; pwd", "fine\n/workspace\n")


@THEME
def deletions(lab: Lab) -> None:
    """An agent that deletes all it can, its working directory too, has a box that works on."""
    box = lab.start({"a": b"1"})
    box.text("mkdir d; cd d; rmdir ../d")
    box.ends(
        "rm -rf / --no-preserve-root 2> /dev/null; rm -rf /workspace/* /tmp/* 2> /dev/null; true", "exited", 0, 200.0
    )
    box.prints("cd /workspace; echo fine > f; cat f /task/a", "fine\n1")
