"""The terminal turned against its helper, which shares it with every program of the box."""

from __future__ import annotations

from hostile_case import Case, Step, python

ANY = ("none", "command_failed", "limit_hit")
START = "import fcntl, os, signal, struct, sys, termios as t, time\nsignal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"


def attacked(program: str, wall_s: float = 0.5, start: str = START) -> tuple[Step, ...]:
    """Return an attack, an action that may come to anything, and one that must work."""
    return (
        Step(command=python(start + program), wall_s=wall_s, fault=ANY),
        Step(command="true", wall_s=1.0, fault=ANY),
        Step(command="echo; echo fine", wall_s=6.0, shows=("fine\n",)),
    )


def storm(program: str, for_s: float = 60.0) -> str:
    """Return a program that leaves a process that does something to the terminal all the time."""
    return (
        f"if os.fork(): os._exit(0)\nos.setpgid(0, 0)\n"
        f"end = time.monotonic() + {for_s}\nwhile time.monotonic() < end:\n"
        "  try:\n" + "".join(f"    {line}\n" for line in program.splitlines()) + "  except OSError: pass\n"
    )


def under(program: str) -> tuple[Step, ...]:
    """Return a storm, actions under it, its end by a new shell's kill, and what must work after one more action."""
    return (
        Step(command=python(START + storm(program, 2.0)), wall_s=1.0, fault=ANY),
        *[Step(command="echo under fire", wall_s=0.5, fault=ANY)] * 2,
        Step(command="until [ $(pgrep -xc python3) -le 1 ]; do sleep 0.2; done; echo", wall_s=15.0, fault=ANY),
        Step(command="echo", wall_s=6.0, fault=ANY),
        Step(command="echo; echo fine", wall_s=20.0, shows=("fine\n",)),
    )


CASES = (
    Case(
        name="terminal_modes",
        steps=(
            *attacked("import tty\ntty.setraw(0)"),
            Step(command="stty -icanon -echo raw -isig -opost min 0 time 0; stty ignbrk", fault=ANY),
            Step(command="stty -a", shows=("icanon", "isig"), hides=("-icanon", "-isig")),
            *attacked(
                "m = t.tcgetattr(0)\nm[3] |= t.ECHO | t.TOSTOP | t.NOFLSH\nm[1] |= t.OPOST\nm[4] = m[5] = t.B0\n"
                "t.tcsetattr(0, t.TCSANOW, m)"
            ),
            *attacked("m = t.tcgetattr(0)\nm[6] = [b'\\n'] * len(m[6])\nt.tcsetattr(0, t.TCSANOW, m)"),
        ),
    ),
    Case(
        name="terminal_end_of_input_for_the_shell",
        steps=(
            Step(command="stty -icanon min 0 time 0", fault=ANY),
            Step(command="echo; echo fine", shows=("fine\n",)),
        )
        * 10,
    ),
    Case(
        name="terminal_input_read_by_others",
        steps=(
            Step(
                command=python(
                    START + "signal.signal(signal.SIGTTIN, signal.SIG_IGN)\nshell = os.getppid()\n"
                    "if any(os.fork() == 0 for n in range(20)):\n  os.setpgid(0, shell)\n"
                    "  end = time.monotonic() + 60\n  while time.monotonic() < end:\n"
                    "    try: os.read(0, 4096)\n    except OSError: time.sleep(0.01)\n"
                )
            ),
            Step(command="echo; echo fine", shows=("fine\n",)),
            Step(command="echo; echo fine", shows=("fine\n",)),
        ),
    ),
    Case(
        name="terminal_flow_stopped",
        steps=(
            *attacked("t.tcflow(0, t.TCOOFF)\nos.write(1, b'x')"),
            *attacked("t.tcflow(0, t.TCIOFF)"),
            *attacked("os.write(1, b'\\x13' * 100)\nt.tcflow(0, t.TCIOFF)"),
        ),
    ),
    Case(
        name="terminal_flow_stopped_by_its_character",
        steps=attacked("fcntl.ioctl(0, t.TIOCSTI, b'\\x13')"),
    ),
    Case(
        name="terminal_stop_character_typed",
        steps=(
            Step(command="cat > /dev/null", ending="awaiting_input"),
            Step(command="\x13", wall_s=1.0, fault=ANY),
            Step(command="^C", wall_s=2.0, fault=ANY),
            Step(command="echo; echo fine", wall_s=5.0, shows=("fine\n",)),
        ),
    ),
    Case(
        name="terminal_stolen",
        steps=(
            *attacked("os.setpgid(0, 0)\nos.tcsetpgrp(0, os.getpid())\nos.kill(os.getpid(), 19)"),
            *attacked("os.tcsetpgrp(0, 1)"),
            *attacked("os.setpgid(0, 1)\ntime.sleep(9)"),
            *attacked(
                "if os.fork(): os._exit(0)\nos.setsid()\nfor n in range(4):\n  fd = os.open(f'/dev/pts/{n}', 2)\n"
                "  fcntl.ioctl(fd, t.TIOCSCTTY, 1)"
            ),
            *attacked("fcntl.ioctl(0, t.TIOCNOTTY)"),
            *attacked("fcntl.ioctl(0, 0x5437)"),  # TIOCVHANGUP
            *attacked("os.chmod(os.ttyname(0), 0)"),
        ),
    ),
    Case(
        name="terminal_input_injected",
        steps=(
            *attacked("for c in b'echo injected\\n': fcntl.ioctl(0, t.TIOCSTI, bytes([c]))"),
            *attacked("while True: fcntl.ioctl(0, t.TIOCSTI, b'x')"),
            Step(
                command=python(
                    START + "if os.fork(): os._exit(0)\nos.setsid()\n"
                    "fd = os.open('/dev/pts/0', 1)\nfor n in range(99): os.write(fd, b'x' * 4096)"
                ),
                wall_s=4.0,
                fault=ANY,
            ),
            Step(command="until [ $(pgrep -xc python3) -le 1 ]; do sleep 0.1; done; sleep 0.3", wall_s=15.0, fault=ANY),
            Step(command="echo; echo fine", wall_s=6.0, shows=("fine\n",)),
        ),
    ),
    Case(
        name="terminal_input_that_nobody_has_read",
        steps=(
            Step(
                command="stty raw; python3 -c 'import select; select.select([0], [], []); import time; time.sleep(60)'",
                ending="awaiting_input",
            ),
            Step(command="x" * 60_000, wall_s=1.0, fault="limit_hit"),
            Step(command="echo fine", wall_s=5.0, shows=("fine\n",)),
        ),
    ),
    Case(
        name="terminal_discipline_and_locks",
        steps=(
            *attacked("fcntl.ioctl(0, t.TIOCSETD, struct.pack('i', 27))"),
            *[
                step
                for number in (1, 2, 3, 5, 15, 17, 21, 25)
                for step in attacked(f"fcntl.ioctl(0, t.TIOCSETD, struct.pack('i', {number}))")[::2]
            ],
            *attacked("fcntl.ioctl(0, t.TIOCEXCL)"),
            *attacked("fcntl.flock(0, fcntl.LOCK_EX)\nif os.fork() == 0: time.sleep(30)"),
            *attacked("os.set_blocking(0, False)\nos.set_blocking(1, False)"),
            *attacked("fcntl.ioctl(0, t.TIOCSWINSZ, struct.pack('HHHH', 0, 0, 0, 0))"),
            *attacked("fcntl.fcntl(0, fcntl.F_SETOWN, 1)\nfcntl.fcntl(0, fcntl.F_SETFL, os.O_ASYNC | os.O_RDWR)"),
        ),
    ),
    Case(name="terminal_storm_of_stops", steps=under("t.tcflow(0, t.TCOOFF)\nos.write(1, b'x' * 100)")),
    Case(name="terminal_storm_of_disciplines", steps=under("fcntl.ioctl(0, t.TIOCSETD, struct.pack('i', 27))")),
    Case(name="terminal_storm_of_owners", steps=under("os.tcsetpgrp(0, os.getpid())")),
    Case(name="terminal_storm_of_flushes", steps=under("fcntl.ioctl(0, t.TCFLSH, 2)")),
)
