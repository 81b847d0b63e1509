"""The helper: process 1 of the box. Reaps, runs commands, answers in-box requests, hands out the artifact.

One thread, one poll loop. The owner speaks first (``CONFIGURE``); when its end of stdin closes, the helper exits
and the kernel ends everybody else. Nothing the agent does may make it wait: each wait has a deadline.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Any

from tbmm_env.sandbox.guest import wire
from tbmm_env.sandbox.guest.artifact import count_files, end_everybody, read_artifact
from tbmm_env.sandbox.guest.counted import Counted
from tbmm_env.sandbox.guest.lockdown import shield
from tbmm_env.sandbox.guest.requests import Door, Request
from tbmm_env.sandbox.guest.terminal import MOST_TRIES, Terminal, send
from tbmm_env.sandbox.guest.viewing import Viewing

TICK_S = 0.25
IDLE_TICK_S = 1.0
STOP_TICK_S = 0.05
STOP_PATIENCE_S = 2.0
STOP_AGAIN_S = 0.5
MARK_PATIENCE_S = 1.0
MARK_AGAIN_S = 0.02
EVERYBODY_PATIENCE_S = 20.0
MOST_REAPED = 256
MOST_TERMINALS = 64
"""The kernel has a few thousand for all boxes of a machine together, and no limit for one of them."""
NEW_SHELL = b"\n[the shell had ended and was started anew in /workspace]\n"
NOT_RUNNING = "no action is running; call it within one\n"


class Helper:
    """State of the box; ``phase`` is idle, running, stopping (past the wall limit) or draining (reading to the end)."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Open terminal and socket."""
        self.limits: dict[str, int] = config["limits"]
        self.no_output_s: float = config["no_output_s"]
        self.environment: dict[str, str] = config["environment"]
        self.rlimits: dict[str, int] = config["rlimits"]
        self.terminal = Terminal(self.environment, self.rlimits, self.limits["step_output_bytes"])
        self.counted = Counted()
        self.door = Door()
        self.decoder = wire.Decoder()
        self.wake, wake_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        self.phase = "idle"
        self.program_waits = False
        self.shell_ended: int | None = None
        self.viewing: Viewing | None = None
        self.to_view: list[Request] = []
        self.to_check: list[Request] = []
        self.next_look = 0.0
        self.checking: Request | None = None
        self.note = b""
        self._begin(0.0)

    def _begin(self, wall_s: float) -> None:
        now = time.monotonic()
        self.until = now + wall_s
        self.quiet_since = now
        self.next_stop = 0.0
        self.submitted = False
        self.checks = 0
        self.images = 0
        self.ending = "exited"
        self.exit_status: int | None = None

    # ---------------------------------------------------------------- loop

    def serve(self) -> None:
        """Work until the owner goes away."""
        say(wire.pack(wire.READY))
        while True:
            for descriptor in self._ready():
                if descriptor == 0:
                    chunk = os.read(0, 1 << 16)
                    if not chunk:
                        return
                    for frame in self.decoder.feed(chunk):
                        self._obey(*frame)
                else:
                    self._attend(descriptor)
            self._reap()
            self._tick(time.monotonic())

    def _ready(self) -> list[int]:
        poll = select.poll()
        writing = bool(self.terminal.push())
        poll.register(self.terminal.master, select.POLLIN | (select.POLLOUT if writing else 0))
        reading = [0, self.wake, self.terminal.status, self.door.socket.fileno(), *self.door.requests]
        if self.viewing:
            reading.append(self.viewing.pipe)
        for descriptor in reading:
            poll.register(descriptor, select.POLLIN)
        wait_s = {"stopping": STOP_TICK_S, "draining": MARK_AGAIN_S}.get(self.phase, TICK_S)
        if self.phase == "running":
            wait_s = min(wait_s, max(0.0, self.until - time.monotonic()) + 0.001)
        if self.phase == "idle" and not self.door.requests:
            wait_s = IDLE_TICK_S
        return [descriptor for descriptor, _ in poll.poll(wait_s * 1000)]

    def _attend(self, descriptor: int) -> None:
        if descriptor == self.terminal.master:
            self._read_terminal()
        elif descriptor == self.wake:
            os.read(self.wake, 512)
        elif descriptor == self.door.socket.fileno():
            self.door.accept()
        elif self.viewing and descriptor == self.viewing.pipe:
            if self.viewing.read():
                self._view_done()
        elif descriptor in self.door.requests:
            request = self.door.requests[descriptor]
            if not request.feed():
                self._forget(request)
            elif request.content is not None:
                self._request(request)

    def _read_terminal(self) -> None:
        some, marked = self.terminal.read()
        if some:
            self.quiet_since = time.monotonic()
        if self.phase != "idle":
            head = self.terminal.capture.take_head()
            if head:
                say(wire.pack(wire.OUTPUT, None, head))
        if marked and self.phase == "draining":
            self._end()

    def _reap(self) -> None:
        for _ in range(MOST_REAPED):
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if child == 0:
                return
            if os.WIFSTOPPED(status):  # it made us its tracer
                send(os.kill, child, signal.SIGKILL)
            elif child == self.terminal.shell:
                code = os.waitstatus_to_exitcode(status)
                self.shell_ended = code if code >= 0 else 128 - code

    # ---------------------------------------------------------------- time

    def _tick(self, now: float) -> None:
        self.door.drop_slow()
        if now >= self.next_look:
            self.next_look = now + TICK_S
            self._bound_terminals()
        if self.viewing and now > self.viewing.until:
            self._view_done()
        status = self.terminal.ended_with()
        if self.phase == "running":
            self._tick_running(now, status)
        elif self.phase == "stopping":
            self._tick_stopping(now, status)
        elif self.phase == "draining":
            if now > self.until:
                self._end()
            else:
                self.terminal.push_mark()
        elif self.shell_ended is not None:
            self._new_shell()
            self.program_waits = False
        elif status is not None:
            self.program_waits = False

    def _bound_terminals(self) -> None:
        """End everybody when the box holds too many terminals: other boxes could not get theirs."""
        if len(os.listdir("/dev/pts")) <= MOST_TERMINALS:  # noqa: PTH208 (pathlib would lengthen the start)
            return
        end_everybody(EVERYBODY_PATIENCE_S)
        self.shell_ended = 137
        self.note += b"\n[more than %d terminals were open in the box: all its processes were ended]\n" % MOST_TERMINALS

    def _tick_running(self, now: float, status: int | None) -> None:
        if status is not None:
            self._drain("exited", status)
        elif self.shell_ended is not None:
            ended = self.shell_ended
            if not self._type_again():
                self._new_shell()
                self._drain("shell_restarted", ended)
        elif now >= self.until:
            self.phase, self.until, self.next_stop = "stopping", now + STOP_PATIENCE_S, now + STOP_AGAIN_S
            self.terminal.interrupt()
        elif now - self.quiet_since >= self.no_output_s and self.terminal.waits_for_input():
            status = self.terminal.ended_with()  # looking takes time: it may be bash, the command over, that waits now
            if status is not None:
                self._drain("exited", status)
            elif self.terminal.is_cut_off():
                self.terminal.kill_shell()
            elif not self._type_again():
                self.program_waits = True
                self._drain("awaiting_input", None)

    def _tick_stopping(self, now: float, status: int | None) -> None:
        if status is not None:
            self._drain("wall_limit", None)
        elif self.shell_ended is not None:
            self._new_shell(NEW_SHELL)
            self._drain("wall_limit", None)
        elif now >= self.until:
            self.terminal.kill_shell()
        elif now >= self.next_stop:
            self.next_stop = now + STOP_AGAIN_S
            self.terminal.interrupt()

    def _type_again(self) -> bool:
        """Type a command that no shell has begun once more; the last time nobody is left who could prevent it."""
        if self.terminal.has_begun() or self.terminal.tries >= MOST_TRIES:
            return False
        if self.terminal.tries == MOST_TRIES - 1:
            end_everybody(EVERYBODY_PATIENCE_S)
            self._new_shell(b"\n[no shell could be told the command: all processes of the box were ended]\n")
        elif self.shell_ended is not None:
            self._new_shell(NEW_SHELL)
        self.terminal.type_command()
        return True

    def _new_shell(self, note: bytes = b"") -> None:
        self.shell_ended = None
        self.note += note
        self.terminal.forget_command()
        try:
            self.terminal.start_shell()
        except OSError:  # the process limit is used up: make room
            end_everybody(EVERYBODY_PATIENCE_S)
            self.terminal.start_shell()

    def _drain(self, ending: str, status: int | None) -> None:
        if ending != "awaiting_input":
            self.terminal.forget_command()
            self.program_waits = False
        now = time.monotonic()
        self.phase, self.ending, self.exit_status = "draining", ending, status
        self.until = now + MARK_PATIENCE_S
        self.terminal.mark()

    def _end(self) -> None:
        capture = self.terminal.finish()
        capture.add(self.note)
        self.note = b""
        for request in list(self.door.requests.values()):
            if request.content is not None:
                request.reply(1, "the action has ended\n")
                self._forget(request)
        head, tail = capture.take_head(), capture.take_tail()
        if head:
            say(wire.pack(wire.OUTPUT, None, head))
        result = {
            "ending": self.ending, "exit_status": self.exit_status, "dropped_bytes": capture.dropped_bytes,
            "submitted": self.submitted, "counted": self.counted.now(),
        }  # fmt: skip
        self.phase = "idle"
        say(wire.pack(wire.ENDED, result, tail))

    # ---------------------------------------------------------------- owner

    def _obey(self, kind: bytes, header: dict[str, Any], body: bytes) -> None:
        if kind == wire.RUN and self.phase == "idle":
            if self.shell_ended is not None:
                self._new_shell()
                self.program_waits = False
            if self.terminal.ended_with() is not None:
                self.program_waits = False
            self._begin(header["wall_s"])
            self.phase = "running"
            if not self.program_waits:
                if self.terminal.shell_has_spoken and self.terminal.is_cut_off():
                    self.terminal.kill_shell()
                self.terminal.run(body)
            elif not self.terminal.type(body):
                self.note += b"\n[a line typed to the program was longer than 4095 bytes; a terminal cuts it there]\n"
        elif kind == wire.CHECKED and self.checking:
            self.checking.reply(header["status"], body.decode("utf-8", "replace"))
            self._forget(self.checking)
            self._next_check()
        elif kind == wire.COUNT:
            say(wire.pack(wire.COUNTED, {"files": count_files("/task")}))
        elif kind == wire.COLLECT:
            alone = end_everybody(EVERYBODY_PATIENCE_S)
            self.shell_ended = 137
            self.phase = "idle"
            found, data = (
                read_artifact(header["path"], header["max_bytes"])
                if alone
                else ({"status": "unreadable", "size_bytes": 0}, b"")
            )
            say(wire.pack(wire.ARTIFACT, found, data))

    # ---------------------------------------------------------------- requests of the agent

    def _request(self, request: Request) -> None:
        op = (request.content or {}).get("op")
        if self.phase != "running":
            request.reply(1, f"{op}: {NOT_RUNNING}" if op in ("submit", "check", "view") else NOT_RUNNING)
        elif op == "submit":
            self.submitted = True
            request.reply(0, "submitted; the episode ends when this action does\n")
        elif op == "check":
            self.checks += 1
            if self.checks <= self.limits["checks"]:
                self.to_check.append(request)
                self._next_check()
                return
            request.reply(
                1, f"check: used {self.checks} times in this action; the limit is {self.limits['checks']} times\n"
            )
        elif op == "view" and request.words("files") and len(request.words("files")) == len(request.words("paths")):
            self.to_view.append(request)
            self._next_view()
            return
        self._forget(request)

    def _forget(self, request: Request) -> None:
        self.door.drop(request)
        for waiting in (self.to_view, self.to_check):
            if request in waiting:
                waiting.remove(request)
        if request is self.checking:
            self.checking = None
        if self.viewing and request is self.viewing.request:
            self.viewing.close()
            self.viewing = None

    def _next_check(self) -> None:
        if self.checking is None and self.to_check:
            self.checking = self.to_check.pop(0)
            found, data = read_artifact(self.environment["HOME"] + "/answer.json", self.limits["artifact_bytes"])
            say(wire.pack(wire.CHECK, found, data))

    def _next_view(self) -> None:
        while self.viewing is None and self.to_view:
            request = self.to_view.pop(0)
            room = self.limits["view_files"] - self.images
            try:
                if room > 0:
                    self.viewing = Viewing(request, room, self.limits, self.environment, self.rlimits)
                    return
                request.reply(
                    1,
                    f"view: {self.images} images were shown in this action;"
                    f" the limit is {self.limits['view_files']} images\n",
                )
            except OSError as error:
                request.reply(1, f"view: no process could be started: {error.strerror}\n")
            self._forget(request)

    def _view_done(self) -> None:
        viewing = self.viewing
        if viewing is None:
            return
        images, text, well = viewing.result()
        for name, width, height, pixels in images:
            room = self.images < self.limits["view_files"] and width * height <= self.limits["view_pixels"]
            if room and len(pixels) == 3 * width * height > 0:
                self.images += 1
                say(wire.pack(wire.IMAGE, {"path": name, "width": width, "height": height}, pixels))
        viewing.request.reply(0 if well else 1, text)
        self._forget(viewing.request)
        self._next_view()


def say(data: bytes) -> None:
    """Send bytes to the owner."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main() -> None:
    """Shield this process, take the configuration, serve."""
    shield()
    decoder = wire.Decoder()
    frames: list[wire.Frame] = []
    while not frames:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            return
        frames = decoder.feed(chunk)
    helper = Helper(frames[0][1])
    helper.decoder = decoder
    for frame in frames[1:]:
        helper._obey(*frame)
    try:
        helper.serve()
    except BrokenPipeError:
        return  # the owner went away
