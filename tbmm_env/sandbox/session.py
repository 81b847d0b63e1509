"""The owner's end of a box: speaks with the helper over a channel; the same for every backend."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self, get_args

import numpy as np

from tbmm_env.errors import BoxLost
from tbmm_env.limits import Limits
from tbmm_env.record import Artifact, CommandResult, FileStatus, ViewedImage
from tbmm_env.sandbox import fault, recipe
from tbmm_env.sandbox.base import ANSWER_PATH, OnCheck
from tbmm_env.sandbox.fault import Counters
from tbmm_env.sandbox.guest import wire

GRACE_S = 30.0
"""How much later than its own deadline the helper may answer before the box is given up."""
COLLECT_WALL_S = 60.0
DESCRIPTORS = 4096
CHECK_TEXT_BYTES = 32 * 1024


class Channel(Protocol):
    """A pipe to the helper of one box, and what the backend knows about the box."""

    def send(self, data: bytes) -> None:
        """Send all bytes; raises OSError when the box is gone."""
        ...

    def receive(self, wait_s: float) -> bytes | None:
        """Return the next bytes, ``b""`` at the end, or None when nothing came in time; may raise OSError."""
        ...

    def deliver(self, files: Mapping[str, bytes]) -> None:
        """Make files the content of ``/task``; called once."""
        ...

    def counters(self, *, silent: bool) -> Counters:
        """Return what kernel or daemon counted for a box that has ended, or that is there and ``silent``."""
        ...

    def counters_now(self) -> Counters | None:
        """Return what the kernel counted for a box that lives, or None: the helper sees it better."""
        ...

    def diagnosis(self) -> str:
        """Return what is known about the end of the box, for our own error message."""
        ...

    def kill(self) -> None:
        """End the box; what is waiting in ``receive`` returns. Callable from another thread."""
        ...

    def close(self) -> None:
        """End the box and remove everything of it."""
        ...


def artifact(header: dict[str, Any], data: bytes, max_bytes: int) -> Artifact:
    """Build the record of a collected file; refuses what does not fit together."""
    status: FileStatus = header["status"] if header.get("status") in get_args(FileStatus) else "unreadable"
    if status == "regular" and len(data) <= max_bytes:
        return Artifact(status=status, data=data, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    return Artifact(status="too_large" if status == "regular" else status, size_bytes=int(header.get("size_bytes", 0)))


class SessionBox:
    """A ``Box`` over a channel."""

    def __init__(self, channel: Channel, limits: Limits, rlimits: dict[str, int]) -> None:
        """Configure the helper and wait for its first word.

        Raises:
            BoxLost: if it does not come within ``startup_wall_s``.
        """
        self._channel, self._limits = channel, limits
        self._decoder = wire.Decoder()
        self._frames: list[wire.Frame] = []
        self._died = ""
        self._lost = ""
        self._closed = False
        self._counted = Counters()
        self._busy = threading.RLock()
        sizes = {
            k: v
            for k, v in dataclasses.asdict(limits).items()
            if k.endswith(("_bytes", "_files", "_pixels")) or k == "checks"
        }
        config = {
            "limits": sizes,
            "no_output_s": limits.no_output_s,
            "environment": recipe.ENVIRONMENT,
            "rlimits": {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": DESCRIPTORS, **rlimits},
        }
        try:
            self._send(wire.pack(wire.CONFIGURE, config))
            frame = self._next(time.monotonic() + limits.startup_wall_s)
            if frame is None or frame[0] != wire.READY:
                said = "it died" if self._lost or self._died else f"no answer within {limits.startup_wall_s:g} s"
                raise BoxLost(f"the box did not start: {said}; {self._channel.diagnosis()}")
        except BaseException:
            self.close()
            raise

    def count_files(self) -> int:
        """Return how many files the box sees in ``/task``.

        Raises:
            BoxLost: if the box is gone.
        """
        with self._busy:
            self._begin()
            self._send(wire.pack(wire.COUNT))
            while (frame := self._next(time.monotonic() + self._limits.startup_wall_s)) is not None:
                if frame[0] == wire.COUNTED:
                    return int(frame[1]["files"])
            self._begin()
            raise BoxLost(f"the box died before its first command: {self._died}")

    def furnish(self, files: Mapping[str, bytes]) -> Self:
        """See ``PreparedBox.furnish``."""
        try:
            with self._busy:
                self._begin()
                self._channel.deliver(files)
            seen = self.count_files()
            if seen != len(files):
                raise BoxLost(f"the box sees {seen} files in /task, and {len(files)} were delivered")
        except BaseException:
            self.close()
            raise
        return self

    # ---------------------------------------------------------------- frames

    def _send(self, data: bytes) -> None:
        try:
            self._channel.send(data)
        except OSError:
            return  # the reason shows when its answer is read

    def _next(self, deadline: float) -> wire.Frame | None:
        """Return the next frame, or None when the box died or is silent; ``_died`` or ``_lost`` says why then."""
        while not self._frames:
            wait_s = deadline - time.monotonic()
            try:
                chunk = self._channel.receive(wait_s) if wait_s > 0 else None
                if chunk:
                    self._frames = self._decoder.feed(chunk)
                    continue
                self._give_up(
                    "it did not answer in time" if chunk is None else "its helper ended", silent=chunk is None
                )
            except (OSError, wire.WireError) as error:
                self._give_up(f"its connection failed: {error}", silent=False)
            return None
        return self._frames.pop(0)

    def _give_up(self, reason: str, *, silent: bool) -> None:
        if self._closed:
            self._lost = "the box was closed meanwhile"
        else:
            whose, evidence = fault.of_end(self._channel.counters(silent=silent), silent=silent)
            if whose == "agent_broke_box":
                self._died = f"{evidence} ({reason})"
            else:
                self._lost = f"the box was lost: {reason}; {self._channel.diagnosis()}"
        self.close()

    def _evidence(self, counted: Mapping[str, int]) -> str:
        """Return evidence of limits that were hit since the last action; ``counted`` is what the helper saw."""
        before = self._counted
        self._counted = self._channel.counters_now() or Counters(**counted)
        return fault.of_command(before, self._counted)

    # ---------------------------------------------------------------- Box

    def run(self, command: str, *, wall_s: float, on_check: OnCheck) -> CommandResult:
        """See ``Box.run``."""
        started = time.monotonic()
        with self._busy:
            self._begin()
            try:
                head, images = bytearray(), list[ViewedImage]()
                ended = None if self._died else self._follow(command, wall_s, on_check, head, images)
            except BaseException as error:  # what the helper still says would be taken for the next command's
                self._lost = (
                    self._lost or f"the box was given up after {type(error).__name__} in the middle of a command"
                )
                self.close()
                raise
        self._begin()
        header, tail = ended or (
            {"ending": "box_died", "exit_status": None, "dropped_bytes": 0, "submitted": False},
            b"",
        )
        return CommandResult(
            head=bytes(head), tail=tail, dropped_bytes=header["dropped_bytes"], ending=header["ending"],
            exit_status=header["exit_status"], evidence=self._died or self._evidence(header["counted"]),
            submitted=header["submitted"],
            images=tuple(images), wall_s=time.monotonic() - started,
        )  # fmt: skip

    def _follow(
        self, command: str, wall_s: float, on_check: OnCheck, head: bytearray, images: list[ViewedImage]
    ) -> tuple[dict[str, Any], bytes] | None:
        """Run a command; return header and tail of its end, or None when the box died."""
        checks, deadline = 0, time.monotonic() + wall_s + GRACE_S
        self._send(wire.pack(wire.RUN, {"wall_s": wall_s}, command.encode("utf-8", "surrogatepass")))
        while (frame := self._next(deadline)) is not None:
            kind, header, body = frame
            if kind == wire.OUTPUT and len(head) + len(body) <= self._limits.step_output_bytes:
                head += body
            elif kind == wire.IMAGE and len(images) < self._limits.view_files:
                images.append(self._image(header, body))
            elif kind == wire.CHECK and checks < self._limits.checks:
                checks += 1
                text = on_check(artifact(header, body, self._limits.artifact_bytes)).encode("utf-8", "replace")
                self._send(wire.pack(wire.CHECKED, {"status": 0}, text[:CHECK_TEXT_BYTES]))
            elif kind == wire.ENDED:
                return header, body
        return None

    def _begin(self) -> None:
        if self._lost:
            raise BoxLost(self._lost)
        if self._closed and not self._died:
            raise BoxLost("the box is closed")

    def _image(self, header: dict[str, Any], body: bytes) -> ViewedImage:
        width, height = int(header["width"]), int(header["height"])
        if not 0 < width * height <= self._limits.view_pixels or len(body) != 3 * width * height:
            raise BoxLost(f"the helper sent an image of {width} x {height} pixels in {len(body)} bytes")
        pixels = np.frombuffer(body, dtype=np.uint8).reshape(height, width, 3)
        return ViewedImage(path=str(header["path"]).encode("utf-8", "replace").decode(), pixels=pixels)

    def collect(self, path: str = ANSWER_PATH, max_bytes: int | None = None) -> Artifact:
        """See ``Box.collect``."""
        most = self._limits.artifact_bytes if max_bytes is None else max_bytes
        with self._busy:
            self._begin()
            if not self._died:
                self._send(wire.pack(wire.COLLECT, {"path": path, "max_bytes": most}))
                deadline = time.monotonic() + COLLECT_WALL_S
                while (frame := self._next(deadline)) is not None:
                    if frame[0] == wire.ARTIFACT:
                        return artifact(frame[1], frame[2], most)
                self._begin()
        return Artifact(status="missing")

    def close(self) -> None:
        """See ``Box.close``."""
        self._closed = True
        self._channel.kill()
        with self._busy:
            self._channel.close()

    def __enter__(self) -> Self:
        """Return the box."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Close the box."""
        self.close()
