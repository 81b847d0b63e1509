"""Full-screen programs: an episode gets past each of them."""

from __future__ import annotations

from tbmm_env.sandbox.conformance.check import Theme
from tbmm_env.sandbox.conformance.lab import Lab, LabBox, holds, output

THEME = Theme("screens")

CURSES = "python3 -c \"import curses; curses.wrapper(lambda s: (s.addstr(0, 0, 'menu'), s.refresh(), s.getch()))\""


def _left(box: LabBox, command: str, key: str, shows: bytes) -> None:
    """Run a program that waits on its screen and leave it by an action."""
    found = box.ends(command, "awaiting_input")
    holds(f"{command!r} shows {shows!r}", shows in output(found), found)
    box.ends(key, "exited")
    holds(f"a command runs after {command!r}", (text := box.text("echo fine")).endswith("fine\n"), text)


@THEME
def top(lab: Lab) -> None:
    """``top`` is left by ^C and by q."""
    box = lab.start()
    _left(box, "top", "^C", b"PID")
    _left(box, "TERM=xterm top", "q", b"PID")


@THEME
def less(lab: Lab) -> None:
    """``less`` is left by q, after ^C too."""
    box = lab.start()
    box.text("seq 1000 > f")
    _left(box, "less f", "q", b"RETURN")
    box.ends("TERM=xterm less f", "awaiting_input")
    box.ends("^C", "awaiting_input")
    box.ends("q", "exited", 0)
    box.prints("echo fine", "fine\n")


@THEME
def curses(lab: Lab) -> None:
    """A program that uses curses is left by a key and by ^C."""
    box = lab.start()
    _left(box, CURSES, "x", b"menu")
    _left(box, f"TERM=xterm {CURSES} 2> /dev/null", "^C", b"menu")


@THEME
def tmux(lab: Lab) -> None:
    """A detached ``tmux`` is driven by commands; an attached one holds an action until its wall limit at most."""
    box = lab.start()
    box.text("tmux new-session -d -s a 'echo in tmux; cat'")
    seen = box.text("for i in $(seq 100); do tmux capture-pane -p -t a | grep 'in tmux' && break; sleep 0.1; done")
    holds("the pane shows its program's output", "in tmux\n" in seen, seen)
    found = box.run("TERM=xterm tmux attach -t a", 1.5)
    holds("the action ends", found.ending in ("awaiting_input", "wall_limit"), found)
    if found.ending == "awaiting_input":
        box.run("^C")
    box.ends("tmux kill-server; true", "exited", 0)
    box.prints("echo fine", "fine\n")


@THEME
def tmux_waits_for_input(lab: Lab) -> None:
    """An attached ``tmux`` waits for input: the next action is typed into its pane."""
    box = lab.start()
    box.ends("TERM=xterm tmux new-session -s a", "awaiting_input", wall_s=3.0)
    box.run("tmux kill-session", 10.0)
    box.prints("echo fine", "fine\n")


@THEME
def a_terminal_left_in_raw_mode(lab: Lab) -> None:
    """After a program that dies without putting the terminal back, actions run and show as before."""
    box = lab.start()
    raw = "python3 -c \"import os, tty; tty.setraw(0); os.write(1, b'\\033[?1049h'); os.kill(os.getpid(), 9)\""
    box.ends(raw, "exited", 137)
    box.prints("echo fine; stty -a | grep -co -- '-icanon'", "fine\n0\n")
    box.ends("read x; echo $x", "awaiting_input")
    box.ends("^C", "exited", 130)
