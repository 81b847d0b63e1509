"""Bounded child processes of the judge: the only file beside the sandboxes that starts any.

A child runs in its own session and process group, under limits it sets on itself before anything else runs, and dies
with the thread that started it. It is never given a terminal or a descriptor besides its three pipes.
"""

from __future__ import annotations

import json
import os
import select
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tbmm_env.errors import ReplayFailed

_CHUNK_BYTES = 64 * 1024
_PIPE_BYTES = 1024 * 1024
_POLL_S = 0.05
_OUTPUT_BYTES = 4 * 1024 * 1024

# Runs in the child, standard library only. PR_SET_PDEATHSIG is option 1 of prctl(2). The parent may have died before
# prctl took effect, hence the comparison of parents afterwards.
_PREPARE = """\
import ctypes, json, os, resource, signal, sys
_limits = json.loads(sys.argv[1])
ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != _limits["parent"]:
    os._exit(125)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_CPU, (_limits["cpu_s"], _limits["cpu_s"] + 1))
resource.setrlimit(resource.RLIMIT_AS, (_limits["memory_bytes"], _limits["memory_bytes"]))
"""
_EXECUTE = _PREPARE + "os.execv(sys.argv[2], sys.argv[2:])\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a child ended.

    Attributes:
        exit_status: of a child that exited; None when a signal ended it.
        signal: number of the signal that ended it; None when it exited.
        timed_out: whether it was killed because ``wall_s`` ran out.
        stdout: what it wrote, cut at the output limit.
        stderr: what it wrote, cut at the output limit.
        cut: whether more was written than is kept.
        wall_s: seconds from start to end.
    """

    exit_status: int | None
    signal: int | None
    timed_out: bool
    stdout: bytes
    stderr: bytes
    cut: bool
    wall_s: float

    def __str__(self) -> str:
        """Say how the child ended and the end of what it printed to stderr."""
        how = f"exit status {self.exit_status}"
        if self.signal is not None:
            how = f"signal {self.signal} ({signal.Signals(self.signal).name})"
        if self.timed_out:
            how = "killed at the wall limit"
        tail = self.stderr[-400:].decode("utf-8", "replace").strip()
        return f"{how} after {self.wall_s:.1f} s" + (f": {tail}" if tail else "")


def run_bounded(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    wall_s: float,
    cpu_s: int,
    memory_bytes: int,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    output_bytes: int = _OUTPUT_BYTES,
) -> Finished:
    """Run a program to its end within limits.

    Args:
        argv: absolute path of the program, then its arguments.
        stdin: bytes given on standard input, which is closed after them.
        wall_s: wall time after which the whole process group is killed.
        cpu_s: processor time of the child (RLIMIT_CPU: SIGXCPU, a second later SIGKILL).
        memory_bytes: address space of the child (RLIMIT_AS), reserved but untouched memory included.
        env: its whole environment; empty by default.
        cwd: working directory; ``/`` by default.
        output_bytes: bytes kept of each output stream; the rest is read and dropped.

    Raises:
        OSError: the Python interpreter that applies the limits could not be started. A program that cannot be
            executed ends with exit status 1 and a message in ``stderr``.
    """
    return _run(_EXECUTE, argv, stdin, wall_s, cpu_s, memory_bytes, env, cwd, output_bytes)


def run_python(
    code: str,
    args: Sequence[str],
    *,
    stdin: bytes = b"",
    wall_s: float,
    cpu_s: int,
    memory_bytes: int,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    output_bytes: int = _OUTPUT_BYTES,
) -> Finished:
    """Run Python code (standard library only) to its end within limits; see ``run_bounded``.

    Args:
        code: source; finds ``args`` in ``sys.argv[2:]``.
        args: arguments.
        stdin: bytes given on standard input, which is closed after them.
        wall_s: wall time after which the whole process group is killed.
        cpu_s: processor time of the child.
        memory_bytes: address space of the child.
        env: its whole environment; empty by default.
        cwd: working directory; ``/`` by default.
        output_bytes: bytes kept of each output stream; the rest is read and dropped.

    Raises:
        OSError: the interpreter could not be started.
    """
    return _run(_PREPARE + code, args, stdin, wall_s, cpu_s, memory_bytes, env, cwd, output_bytes)


def _run(
    code: str,
    args: Sequence[str],
    stdin: bytes,
    wall_s: float,
    cpu_s: int,
    memory_bytes: int,
    env: Mapping[str, str] | None,
    cwd: Path | None,
    output_bytes: int,
) -> Finished:
    limits = json.dumps({"parent": os.getpid(), "cpu_s": cpu_s, "memory_bytes": memory_bytes})
    started = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, limits, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env or {}),
        cwd=cwd or "/",
        start_new_session=True,
        bufsize=0,
    ) as process:
        pipes = _Pipes(process, stdin, output_bytes)
        try:
            timed_out = not pipes.pump(started + wall_s)
        finally:
            # The leader is not reaped yet, so its group cannot belong to anybody else.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code_or_signal = process.wait()
        pipes.drain()
    return Finished(
        exit_status=code_or_signal if code_or_signal >= 0 else None,
        signal=-code_or_signal if code_or_signal < 0 else None,
        timed_out=timed_out,
        stdout=bytes(pipes.kept[0]),
        stderr=bytes(pipes.kept[1]),
        cut=pipes.cut,
        wall_s=time.monotonic() - started,
    )


class _Pipes:
    """Feeds and empties the three pipes of a child without blocking."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, output_bytes: int) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.kept = (bytearray(), bytearray())
        self.cut = False
        self._limit = output_bytes
        self._input = memoryview(stdin)
        self._stdin: IO[bytes] = process.stdin
        self._outputs = (process.stdout, process.stderr)
        for pipe in (self._stdin, *self._outputs):
            os.set_blocking(pipe.fileno(), False)

    def pump(self, deadline: float) -> bool:
        """Serve the pipes until the child has ended; False when the deadline came first."""
        with selectors.DefaultSelector() as ready:
            for index, pipe in enumerate(self._outputs):
                ready.register(pipe, selectors.EVENT_READ, index)
            ready.register(self._stdin, selectors.EVENT_WRITE, None)
            while not self._ended(wait=len(ready.get_map()) == 0, deadline=deadline):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                for key, _ in ready.select(min(left, _POLL_S)):
                    finished = self._feed() if key.data is None else self._read(key.data)
                    if finished:
                        ready.unregister(key.fileobj)
        return True

    def drain(self) -> None:
        """Read what is left in the output pipes, at most what a pipe can hold: a stray writer cannot keep us here."""
        for index in range(len(self._outputs)):
            for _ in range(_PIPE_BYTES // _CHUNK_BYTES):
                if self._read(index, at_end=True):
                    break

    def _ended(self, *, wait: bool, deadline: float) -> bool:
        """Whether the child has ended (it is left unreaped); ``wait`` for it when its pipes are closed."""
        while True:
            if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
            if not wait or time.monotonic() >= deadline:
                return False
            time.sleep(0.001)

    def _feed(self) -> bool:
        try:
            if self._input:
                self._input = self._input[os.write(self._stdin.fileno(), self._input[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._input = self._input[:0]
        if self._input:
            return False
        self._stdin.close()
        return True

    def _read(self, index: int, *, at_end: bool = False) -> bool:
        """Read one chunk; True when there is nothing more to come."""
        try:
            chunk = os.read(self._outputs[index].fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return at_end
        kept = self.kept[index]
        room = self._limit - len(kept)
        kept += chunk[:room]
        self.cut = self.cut or len(chunk) > room
        return not chunk


# ---------------------------------------------------------------- a long-lived child

_WORKER_HEAD = """
import os, resource, threading, time
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
owner = {owner}
def watch():
    while os.getppid() == owner:
        time.sleep(0.5)
    os._exit(1)
threading.Thread(target=watch, daemon=True).start()
"""
_MAX_REPLY_BYTES = 64 * 1024 * 1024


class Worker:
    """A long-lived Python child that answers length-prefixed requests, bounded in memory and in wall time a call.

    It starts at the first call, is started anew after a failure, and ends with its owner (it watches its parent, so
    it does not matter which thread started it). Safe to use from several threads; calls are answered one by one.

    Args:
        code: Python statements that serve requests on stdin and stdout; a length is 4 bytes, big-endian.
        memory_bytes: address space of the child.
    """

    def __init__(self, code: str, *, memory_bytes: int) -> None:
        self._code = code
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Process id of the running child, or None."""
        return self._process.pid if self._process else None

    def call(self, request: bytes, wall_s: float) -> bytes:
        """Send one request and return its reply.

        Raises:
            ReplayFailed: the child died or did not answer within ``wall_s``; it is ended then.
        """
        with self._lock:
            process = self._process or self._start()
            deadline = time.monotonic() + wall_s
            try:
                self._write(process, len(request).to_bytes(4, "big") + request, deadline)
                size = int.from_bytes(self._read(process, 4, deadline), "big")
                if size > _MAX_REPLY_BYTES:
                    raise ReplayFailed(f"the reply has {size} bytes; the limit is {_MAX_REPLY_BYTES} bytes")
                return self._read(process, size, deadline)
            except TimeoutError as error:
                self._end()
                raise ReplayFailed(f"no answer within {wall_s:g} s; the child was ended") from error
            except (OSError, EOFError) as error:
                said = self._last_words()
                process.kill()
                status = process.wait()
                self._end()
                raise ReplayFailed(f"the child ended with status {status}: {said}") from error
            except BaseException:
                self._end()  # an interrupted call leaves a reply in the pipe that nobody may read as the next one
                raise

    def _start(self) -> subprocess.Popen[bytes]:
        head = _WORKER_HEAD.format(memory=self._memory_bytes, owner=os.getpid())
        package_root = str(Path(__file__).resolve().parents[2])
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([package_root, *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PYTHONHASHSEED": "0",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        self._process = subprocess.Popen(
            [sys.executable, "-c", head + self._code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            start_new_session=True,
        )
        return self._process

    @staticmethod
    def _wait(stream: IO[bytes], event: int, deadline: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(stream, event)
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError

    def _write(self, process: subprocess.Popen[bytes], data: bytes, deadline: float) -> None:
        assert process.stdin is not None
        view = memoryview(data)
        while view:
            self._wait(process.stdin, selectors.EVENT_WRITE, deadline)
            view = view[os.write(process.stdin.fileno(), view[: select.PIPE_BUF]) :]

    def _read(self, process: subprocess.Popen[bytes], size: int, deadline: float) -> bytes:
        assert process.stdout is not None
        parts = bytearray()
        while len(parts) < size:
            self._wait(process.stdout, selectors.EVENT_READ, deadline)
            chunk = os.read(process.stdout.fileno(), size - len(parts))
            if not chunk:
                raise EOFError
            parts += chunk
        return bytes(parts)

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        return self._errors.read().decode("utf-8", "replace").strip()

    def _end(self) -> None:
        process, self._process = self._process, None
        errors, self._errors = self._errors, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
        if errors is not None:
            errors.close()

    def close(self) -> None:
        """End the child; idempotent."""
        with self._lock:
            self._end()
