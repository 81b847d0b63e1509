"""Text of an action as bash takes it, and the exit statuses that come back."""

from __future__ import annotations

from tbmm_env.limits import KIB
from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, same

THEME = Theme("status")

STATUSES = {
    "true": 0, "false": 1, "(exit 7)": 7, "bash -c 'exit 255'": 255, "no-such-program": 127, "/etc/passwd": 126,
    "true | false": 1, "false | true": 0, "false; true": 0, "true && false": 1, "! true": 1, "": 0,
    "# a comment only": 0, "echo 'unbalanced": 2, "if true; then": 2, "echo )": 2, "timeout 0.1 sleep 5": 124,
    "python3 -c 'import sys; sys.exit(3)'": 3, "python3 -c '1/0'": 1,
}  # fmt: skip
SIGNALS = {"HUP": 129, "INT": 130, "QUIT": 131, "ABRT": 134, "KILL": 137, "SEGV": 139, "PIPE": 141, "TERM": 143}


@THEME
def exit_statuses(lab: Lab) -> None:
    """An action has the exit status of its last command."""
    box = lab.start()
    found = {command: box.ends(command, "exited").exit_status for command in STATUSES}
    same("exit statuses", found, STATUSES)


@THEME
def signals(lab: Lab) -> None:
    """A command that signal n has ended has the exit status 128 + n."""
    box = lab.start()
    found = {name: box.ends(f"sh -c 'kill -{name} $$'", "exited").exit_status for name in SIGNALS}
    same("exit statuses", found, SIGNALS)
    box.ends("python3 -c 'import os; os.abort()'", "exited", 134)


@THEME
def default_signals(lab: Lab) -> None:
    """Programs begin with no signal ignored or blocked."""
    box = lab.start()
    box.prints("grep -hE '^Sig(Blk|Ign)' /proc/self/status | cut -f2 | sort -u", "0000000000000000\n")


@THEME
def many_lines(lab: Lab) -> None:
    """Text of several lines is one action: heredocs, loops and continued lines."""
    box = lab.start()
    box.prints("cat <<'END'\n$HOME 'one\ntwo\"\nEND\nfor i in 1 2; do\n  echo $i\ndone", "$HOME 'one\ntwo\"\n1\n2\n")
    box.prints("python3 - <<'END'\nprint('模型' * 3)\nEND", "模型模型模型\n")
    box.prints("x=5; cat <<END\n$x\n\tb\nEND", "5\n\tb\n")
    box.prints("echo 50% \\\n  more", "50% more\n")
    box.ends("true\nfalse\n", "exited", 1)


@THEME
def characters(lab: Lab) -> None:
    """No character of an action means anything to the terminal: marks, tabs, controls and every script arrive."""
    box = lab.start()
    box.prints("echo '!!' \"a!b\" %s \\\\n", "!! a!b %s \\n\n")
    box.prints("printf %s 'a\tb\x03\x04\x1a\x7f\x15c' | od -An -tx1", " 61 09 62 03 04 1a 7f 15 63\n")
    box.prints("echo 'ümlaut 模型 🧮 e\u0301'", "ümlaut 模型 🧮 e\u0301\n")


@THEME
def largest_action(lab: Lab) -> None:
    """An action of ``action_bytes`` bytes runs, and so does one line that is longer than a terminal's."""
    box = lab.start()
    frame, size = "printf %s '' | wc -c", 64 * KIB
    action = frame.replace("''", "'" + "y" * (size - len(frame)) + "'")
    same("action_bytes", len(action), box.limits.action_bytes)
    same("length of the argument", int(box.text(action)), size - len(frame))
    same("length of the line", len(box.text("echo " + "z" * 20_000)), 20_001)
