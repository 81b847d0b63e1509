# ruff: noqa: PTH110
# (pathlib would lengthen the helper's start)
"""A pseudo-terminal whose session belongs to the helper, and a persistent interactive bash on it. Runs inside the box.

The helper leads the session, so the terminal outlives every bash. A command is put into a memory file that bash
evaluates; only one short line is ever typed. Its end and exit status come over a pipe, with a word that is new for
each command. A mark written to the terminal afterwards tells when all output before it has been read. That bash has
begun the line is told by a redirection, which no function or alias can replace: it empties a memory file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import struct
import termios
import time
from collections.abc import Callable
from contextlib import suppress

from tbmm_env.sandbox.guest.blocked import waits_for_terminal
from tbmm_env.sandbox.guest.capture import Capture
from tbmm_env.sandbox.guest.lockdown import confine, default_signals

COMMAND_FD, STATUS_FD, BEGUN_FD = 250, 251, 252
ROWS, COLUMNS = 40, 120
CHUNK_BYTES = 1 << 16
LINE_BYTES = 4095
"""Longest line a terminal hands to a program."""

BASH = "echo 1000 >/proc/self/oom_score_adj; PS1= PS2= exec /bin/bash --noprofile --norc --noediting +H -i"
NICENESS = 10
"""Of the agent's programs: among many busy ones the helper still gets a share."""
MOST_CHUNKS = 16
MOST_TRIES = 4
"""How often a command is typed, if no shell begins it."""
FORK_PATIENCE_S = 2.0
TERMINAL_PATIENCE_S = 10.0


class Terminal:
    """The terminal and its shell."""

    def __init__(self, environment: dict[str, str], rlimits: dict[str, int], most_bytes: int) -> None:
        """Open the terminal and start bash; the calling process becomes the session leader."""
        self._environment, self._rlimits, self._most_bytes = environment, rlimits, most_bytes
        with suppress(PermissionError):  # it may lead its session already
            os.setsid()
        self.master, self._slave = _open_terminal()
        self.device = os.fstat(self._slave).st_rdev
        os.set_blocking(self.master, False)
        # our own opening: programs share the other one, may stop it and make it wait for ever
        self._own = os.open(os.ttyname(self._slave), os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        fcntl.ioctl(self._slave, termios.TIOCSCTTY, 0)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._sane = self._sane_modes()
        self._command = os.memfd_create("command")
        self._begun = os.memfd_create("begun")
        self.status, self._status_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._status_text = b""
        self._word = b""
        self._last_status = 0
        self._mark = b""
        self._mark_left = b""
        self._carry = b""
        self._later = b""
        self._typing = self._told = b""
        self.tries = 0
        self.capture = Capture(most_bytes)
        self.shell = 0
        self.shell_has_spoken = False
        self.start_shell()

    def _sane_modes(self) -> list[object]:
        modes: list[object] = list(termios.tcgetattr(self._slave))
        modes[0] &= ~(termios.IXON | termios.IXOFF | termios.IXANY)  # type: ignore[operator]
        modes[1] = 0  # output as it is: no carriage returns are put in
        modes[3] = termios.ISIG | termios.ICANON | termios.IEXTEN
        return modes

    def start_shell(self) -> None:
        """Start a new bash in the foreground of the terminal, as it was at first.

        Raises:
            OSError: if no process can be made.
        """
        self._reset_modes()  # else it may end at once as the last one did
        deadline = time.monotonic() + FORK_PATIENCE_S
        child = -1
        while child < 0:
            try:
                child = os.fork()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        if child:
            self.shell, self.shell_has_spoken, self._last_status = child, False, 0
            return
        try:
            os.setpgid(0, 0)
            os.tcsetpgrp(self._slave, os.getpid())
            for target in (0, 1, 2):
                os.dup2(self._slave, target)
            os.set_blocking(0, True)
            os.dup2(self._command, COMMAND_FD)
            os.dup2(self._status_end, STATUS_FD)
            os.dup2(self._begun, BEGUN_FD)
            become("/bin/sh", ["sh", "-c", BASH], self._environment, self._rlimits)
        finally:
            os._exit(127)

    # ---------------------------------------------------------------- commands

    def run(self, command: bytes) -> None:
        """Have bash evaluate a command."""
        self._told, self.tries = command, 0
        self.type_command()

    def type_command(self) -> None:
        """Type the present command, for the first time or because no shell has begun it."""
        command = self._told
        self.tries += 1
        self._word = os.urandom(8).hex().encode()
        os.ftruncate(self._command, 0)
        os.pwrite(self._command, command, 0)
        os.ftruncate(self._begun, 1)
        self._reset_modes()
        report = b'{ printf "%%s %%s\\n" %s "$?" >&%d; } 2>/dev/null' % (self._word, STATUS_FD)
        # in braces, which hide it from `set -x`
        quiet = b"{ >|/dev/fd/%d; unset PS1; PROMPT_COMMAND='%s'; } 2>/dev/null;" % (BEGUN_FD, report)
        asks = self._last_status and (b"$?" in command or b"${?" in command)
        before = b"(exit %d);" % self._last_status if asks else b""  # the status of the action before
        leaves = command.strip() == b"exit"  # typed itself, so that it works in a shell that has lost eval
        self._typing = quiet + (b" exit\n" if leaves else b' eval "%s$(</dev/fd/%d)"\n' % (before, COMMAND_FD))
        self.push()

    def has_begun(self) -> bool:
        """Return whether bash has read the line that was typed for the present command.

        A program may have left the terminal so that the line is lost, or that bash, back from it, reads the end of its
        input and leaves, just when the next command is typed.
        """
        return os.fstat(self._begun).st_size == 0

    def type(self, text: bytes) -> bool:
        """Type text for the program that waits; return whether every line fits the terminal."""
        control = {b"^C": b"\x03", b"^D": b"\x04", b"^Z": b"\x1a", b"^\\": b"\x1c"}.get(text.strip())
        self._typing = control or (text if text.endswith(b"\n") else text + b"\n")
        self.tries = MOST_TRIES  # what waits is the command: it has begun, whatever a process says
        self.push()
        return all(len(line) <= LINE_BYTES for line in text.split(b"\n"))

    def push(self) -> bool:
        """Type on what is left to be typed, as the terminal takes it; return whether something is left."""
        while self._typing:
            try:
                written = os.write(self.master, self._typing[:1024])
            except OSError:
                return True
            self._typing = self._typing[written:]
        return False

    def _reset_modes(self) -> None:
        """Undo what a program has done to the terminal, as far as it can be undone."""
        self._resume()  # first: changing the discipline waits for stopped writers
        with suppress(OSError):
            if fcntl.ioctl(self._own, termios.TIOCGETD, struct.pack("i", 0)) != struct.pack("i", 0):
                fcntl.ioctl(self._own, termios.TIOCSETD, struct.pack("i", 0))
        with suppress(OSError, termios.error):
            self._set_sane_modes()

    def _resume(self) -> None:
        """Let output flow again if a program has stopped it."""
        with suppress(OSError, termios.error):
            termios.tcflow(self._own, termios.TCOOFF)  # TCOON alone leaves what the stop character has stopped
            termios.tcflow(self._own, termios.TCOON)

    def _set_sane_modes(self) -> None:
        self._drop_typed()
        termios.tcsetattr(self._own, termios.TCSANOW, self._sane)  # type: ignore[arg-type]

    def _drop_typed(self) -> None:
        """Drop what was typed and not read: what fits the terminal, and what has not come there yet."""
        with suppress(OSError, termios.error):
            termios.tcflush(self.master, termios.TCOFLUSH)
            termios.tcflush(self._own, termios.TCIFLUSH)

    def ended_with(self) -> int | None:
        """Read the status pipe; return the exit status of the present command if it has come."""
        found = None
        for _ in range(MOST_CHUNKS):
            try:
                chunk = os.read(self.status, CHUNK_BYTES)
            except BlockingIOError:
                return found
            lines = (self._status_text + chunk).split(b"\n")
            self._status_text = lines.pop()[-256:]
            for line in lines:
                word, _, number = line.partition(b" ")
                if word == self._word and number.isdigit() and len(number) <= 3:
                    found = self._last_status = int(number)
                    self.shell_has_spoken = True
        return found

    def forget_command(self) -> None:
        """Take no end of the present command any more."""
        self._word = b""

    # ---------------------------------------------------------------- output

    def mark(self) -> None:
        """Write a mark behind all output so far."""
        self._mark = self._mark_left = os.urandom(16).hex().encode()
        self._typing = b""
        self.push_mark()

    def push_mark(self) -> None:
        """Write what the full terminal did not take of the mark."""
        with suppress(OSError):  # full, or in a state that the agent's program has put it in
            while self._mark_left:
                self._mark_left = self._mark_left[os.write(self._own, self._mark_left) :]

    def read(self) -> tuple[bool, bool]:
        """Read a chunk of output into the capture; return whether there was one, and whether the mark was in it."""
        try:
            chunk = os.read(self.master, CHUNK_BYTES)
        except BlockingIOError:
            return False, False
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False, False
        if not self._mark:
            self.capture.add(chunk)
            return True, False
        chunk = self._carry + chunk
        before, mark, after = chunk.partition(self._mark)
        if mark:
            self._mark, self._carry = b"", b""
            self.capture.add(before)
            self._later = after
            return True, True
        keep = len(self._mark) - 1
        self.capture.add(chunk[:-keep])
        self._carry = chunk[-keep:]
        return True, False

    def finish(self) -> Capture:
        """Return the capture of the action that ends and begin the next one."""
        done, self.capture = self.capture, Capture(self._most_bytes)
        if self._mark:
            done.add(self._carry)
        self.capture.add(self._later)
        self._mark, self._carry, self._later = b"", b"", b""
        return done

    # ---------------------------------------------------------------- processes

    def foreground(self) -> int:
        """Return the process group in the foreground, or 0."""
        try:
            return os.tcgetpgrp(self._own)
        except OSError:
            return 0

    def waits_for_input(self) -> bool:
        """Return whether the foreground sleeps until something is typed."""
        return waits_for_terminal(self.foreground(), self.device)

    def is_cut_off(self) -> bool:
        """Return whether bash itself waits, and can no longer be told a command or tell that one has ended."""
        folder = f"/proc/{self.shell}/fd"
        return self.foreground() == self.shell and not all(
            os.path.exists(f"{folder}/{number}") for number in (COMMAND_FD, STATUS_FD, BEGUN_FD)
        )

    def interrupt(self) -> None:
        """End the foreground: its process group is killed; bash itself is told to drop what it evaluates."""
        self._typing = b""
        self._resume()
        group = self.foreground()
        self._drop_typed()  # else the shell reads it when the program is gone
        send(os.kill, self.shell, signal.SIGINT)
        if group not in (0, 1, self.shell):
            send(os.killpg, group, signal.SIGKILL)

    def kill_shell(self) -> None:
        """End bash and its foreground."""
        group = self.foreground()
        if group not in (0, 1):
            send(os.killpg, group, signal.SIGKILL)
        send(os.kill, self.shell, signal.SIGKILL)


def _open_terminal() -> tuple[int, int]:
    """Open a terminal; another box of the machine may hold all there are, until its helper ends that."""
    deadline = time.monotonic() + TERMINAL_PATIENCE_S
    while True:
        try:
            return os.openpty()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def send(how: Callable[[int, int], None], target: int, number: int) -> None:
    """Send a signal to a process or group that may be gone."""
    with suppress(ProcessLookupError):
        how(target, number)


def become(program: str, words: list[str], environment: dict[str, str], rlimits: dict[str, int]) -> None:
    """Turn this forked child into a program of the agent: default signals, bounded, filtered."""
    default_signals()
    os.umask(0o022)
    with suppress(OSError):
        os.nice(NICENESS)
    try:
        os.chdir(environment["HOME"])
    except OSError:  # the agent has closed it
        os.chdir("/")
    confine(rlimits)
    os.execve(program, words, environment)
