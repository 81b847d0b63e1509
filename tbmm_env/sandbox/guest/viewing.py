"""Children that decode what ``view`` names, one at a time, bounded. Runs inside the box."""

from __future__ import annotations

import os
import signal
import struct
import time

from tbmm_env.sandbox.guest.requests import Request
from tbmm_env.sandbox.guest.terminal import become, send

PROGRAM = "/usr/local/lib/tbmm/decode.py"
WALL_S = 30.0
RLIMITS = {"RLIMIT_CPU": 20, "RLIMIT_AS": 1 << 30, "RLIMIT_FSIZE": 0}
MOST_TEXT_BYTES = 1 << 16


class Viewing:
    """One decoding child and what it has said so far."""

    def __init__(
        self,
        request: Request,
        images: int,
        limits: dict[str, int],
        environment: dict[str, str],
        rlimits: dict[str, int],
    ) -> None:
        """Start the child.

        Raises:
            OSError: if no process can be made.
        """
        self.request = request
        self.files = request.words("files")
        self.until = time.monotonic() + WALL_S
        self._most_bytes = images * (3 * limits["view_pixels"] + 64) + MOST_TEXT_BYTES
        self._said = bytearray()
        self.pipe, end = os.pipe2(os.O_CLOEXEC)
        numbers = [str(images), str(limits["view_pixels"]), str(limits["view_file_bytes"])]
        try:
            self.child = os.fork()
        except OSError:
            os.close(self.pipe)
            os.close(end)
            raise
        if self.child == 0:
            try:
                nothing = os.open("/dev/null", os.O_RDWR)
                for source, target in ((nothing, 0), (end, 1), (nothing, 2)):
                    os.dup2(source, target)
                words = ["python3", "-I", PROGRAM, *numbers, *request.words("paths")]
                bounds = {name: min(value, rlimits.get(name, value)) for name, value in RLIMITS.items()}
                become("/usr/bin/python3", words, environment, rlimits | bounds)
            finally:
                os._exit(127)
        os.close(end)
        os.set_blocking(self.pipe, False)

    def read(self) -> bool:
        """Read what the child says; return whether it has finished or said too much."""
        try:
            chunk = os.read(self.pipe, 1 << 20)
        except BlockingIOError:
            return False
        self._said += chunk
        return not chunk or len(self._said) > self._most_bytes

    def close(self) -> None:
        """End the child."""
        send(os.kill, self.child, signal.SIGKILL)
        os.close(self.pipe)

    def result(self) -> tuple[list[tuple[str, int, int, bytes]], str, bool]:
        """Return images (name, width, height, RGB bytes), text for the terminal, and whether all went well."""
        images: list[tuple[str, int, int, bytes]] = []
        lines: list[str] = []
        well, told, at = True, set(), 0
        while at + 5 <= len(self._said):
            tag, length = struct.unpack_from(">cI", self._said, at)
            payload = bytes(self._said[at + 5 : at + 5 + length])
            at += 5 + length
            if len(payload) < length or length < (12 if tag == b"I" else 4):
                break
            (index,) = struct.unpack_from(">I", payload)
            name = self.files[index] if index < len(self.files) else "?"
            told.add(index)
            if tag == b"I":
                _, width, height = struct.unpack_from(">III", payload)
                images.append((name, width, height, payload[12:]))
                lines.append(f"view: {name}: {width} x {height} pixels")
            else:
                well = well and tag != b"E"
                lines.append(f"view: {name}: {payload[4:].decode(errors='replace')}")
        for index, name in enumerate(self.files):
            if index not in told:
                well = False
                lines.append(f"view: {name}: decoding took more than {WALL_S:.0f} s or more memory than is allowed")
        return images, "".join(line + "\n" for line in lines), well
