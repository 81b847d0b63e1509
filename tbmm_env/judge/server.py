"""A certificate server: Lean is loaded and initialised once, and every check is a fork of that process.

What holds for Lean 4.35.0, and what does not:

- ``lean_main`` exits the process it is called in, so it cannot be called twice; in a fork it can.
- ``lean_initialize`` returns at once when it has been called before. Called before the fork, it takes all of Lean's own
  start out of a check; what is left of a check that only imports our library is about a sixth of a new process.
- The rest of a check is Lean reading the certificate's text, and no server saves that.
- ``lean --server`` and ``--worker`` are of no use here: they speak of documents, not of exit statuses, and keep one
  check's state for the next.

A check has a process of its own with files of its own for input and output, made for it and read after its end, so
nothing of one check can be taken for another's. It is bounded from outside: wall time by the server, processor time and
address space by the kernel. It dies with the server and the server with its owner. A server that fails is started anew
for the next check, and the check in hand is done by a new Lean process, as is every check when Lean is an executable
named by ``TBMM_LEAN``. What is refused, what is read from Lean's output and what is accepted is ``lean.check`` itself.
"""

from __future__ import annotations

import collections
import json
import logging
import os
import queue
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from tbmm_env.errors import JudgeError, LeanUnavailable, ReplayFailed
from tbmm_env.judge import child, lean
from tbmm_env.limits import JUDGE, JudgeLimits

_GRACE_S = 10.0  # the server keeps the wall limit; its owner only sees to it that the server answers
_OUTPUT_BYTES = 4 * 1024 * 1024

# Runs in the server, standard library only. A request is limits as JSON, a line feed and Lean text; a reply is how Lean
# ended as JSON, a line feed, and what it wrote. PR_SET_PDEATHSIG is option 1 of prctl(2).
_SERVE = """
import ctypes, json, select, signal, sys, warnings
warnings.simplefilter("ignore")  # Python warns of forking beside threads; those of Lean are idle
os.environ.clear()
os.environ.update({env})
prctl = ctypes.CDLL(None, use_errno=True).prctl
lean = ctypes.CDLL({program})
lean.lean_initialize()
arguments = [b"lean", *map(os.fsencode, {arguments})]
argv = (ctypes.c_char_p * (len(arguments) + 1))(*arguments, None)
server = os.getpid()

def become_lean(limits, files):
    prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != server:
        os._exit(125)
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu_s"], limits["cpu_s"] + 1))
    resource.setrlimit(resource.RLIMIT_AS, (limits["memory_bytes"], limits["memory_bytes"]))
    resource.setrlimit(resource.RLIMIT_FSIZE, ({output}, {output}))
    os._exit(lean.lean_main(len(arguments), argv))

def check(limits, text):
    files = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    with os.fdopen(os.dup(files[0]), "wb") as stdin:
        stdin.write(text)
    os.lseek(files[0], 0, os.SEEK_SET)
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            become_lean(limits, files)
        finally:
            os._exit(125)
    ended = os.pidfd_open(pid)
    timed_out = not select.select([ended], [], [], limits["wall_s"])[0]
    for kill in (os.kill, os.killpg):  # it is not reaped yet, so neither it nor its group can be anybody else
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    wall_s = time.monotonic() - started
    said = []
    for file in files[1:]:
        said.append(os.pread(file, {output}, 0))
        os.close(file)
    os.close(files[0])
    os.close(ended)
    how = dict(code=code, timed_out=timed_out, wall_s=wall_s, stdout_bytes=len(said[0]))
    return json.dumps(how).encode() + b"\\n" + said[0] + said[1]

def read(size):
    data = bytearray()
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            os._exit(0)
        data += part
    return bytes(data)

while True:
    head, _, text = read(int.from_bytes(read(4), "big")).partition(b"\\n")
    reply = check(json.loads(head), text)
    rest = memoryview(len(reply).to_bytes(4, "big") + reply)
    while rest:
        rest = rest[os.write(1, rest):]
"""


class _Server:
    """One process that serves one check at a time; started by its first check."""

    def __init__(self) -> None:
        self._made_for: tuple[str, str, int] | None = None
        self._owner = os.getpid()
        self._worker: child.Worker | None = None

    @property
    def pid(self) -> int | None:
        return self._worker.pid if self._worker else None

    def run_text(self, text: str, limits: JudgeLimits) -> child.Finished:
        """Run Lean in a fork, or in a new process when there is none to fork; see ``lean.RunText``."""
        toolchain = lean.find()
        if not toolchain.is_library:
            return lean.run_cold(text, limits)
        worker = self._worker_for(str(toolchain.program), str(lean.library(limits)), limits.lean_memory_bytes)
        budget = {
            "wall_s": limits.lean_wall_s,
            "cpu_s": limits.lean_cpu_s,
            "memory_bytes": limits.lean_memory_bytes,
        }
        try:
            reply = worker.call(json.dumps(budget).encode() + b"\n" + text.encode(), limits.lean_wall_s + _GRACE_S)
        except ReplayFailed as error:
            logging.getLogger(__name__).warning("the Lean server failed, a new process checks instead: %s", error)
            return lean.run_cold(text, limits)
        return lean.ended_by_itself(_finished(reply), limits)

    def _worker_for(self, program: str, lean_path: str, memory_bytes: int) -> child.Worker:
        if self._owner != os.getpid():  # a forked owner must not read what its parent's server answers
            self._worker, self._owner = None, os.getpid()
        if self._worker is None or self._made_for != (program, lean_path, memory_bytes):
            self.close()
            code = _SERVE.format(
                env={"LC_ALL": "C.UTF-8", "LEAN_PATH": lean_path},
                program=repr(program),
                arguments=list(lean.CHECK_ARGUMENTS),
                output=_OUTPUT_BYTES,
            )
            self._worker = child.Worker(code, memory_bytes=memory_bytes)
            self._made_for = (program, lean_path, memory_bytes)
        return self._worker

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


class LeanServer:
    """Checks certificates as ``lean.check`` does, without loading Lean each time; safe to use from several threads.

    Args:
        workers: processes, each of which serves one check at a time; they start when they are first needed.
        limits: budgets of each check.
    """

    def __init__(self, workers: int = 1, *, limits: JudgeLimits = JUDGE) -> None:
        if workers < 1:
            raise ValueError(f"a Lean server has at least 1 worker, not {workers}")
        self.workers = workers
        self._limits = limits
        self._all = [_Server() for _ in range(workers)]
        self._idle: queue.LifoQueue[_Server] = queue.LifoQueue()
        for server in reversed(self._all):
            self._idle.put(server)

    @property
    def pids(self) -> list[int]:
        """Process ids of the running servers."""
        return [server.pid for server in self._all if server.pid is not None]

    def check(self, text: str, theorems: Sequence[str], *, limits: JudgeLimits | None = None) -> lean.CheckResult:
        """Let the kernel check a text; the same result and the same errors as ``lean.check``.

        Args:
            text: Lean source.
            theorems: full names of the expected theorems.
            limits: budgets of this check; default: those of the server.

        Raises:
            LeanUnavailable: Lean or its library cannot be found, started or compiled.
            JudgeError: Lean was killed or exceeded its limits.
        """
        server = self._idle.get()
        try:
            return lean.check(text, theorems, limits=limits or self._limits, run_text=server.run_text)
        finally:
            self._idle.put(server)

    def check_many(self, checks: Iterable[tuple[str, Sequence[str]]]) -> Iterator[lean.CheckResult | JudgeError]:
        """Check many texts with all workers and yield each one's result, in order.

        Args:
            checks: text and expected theorems of each; read only a little ahead of the results.

        Yields:
            The result, or the error of a check that exceeded its limits.

        Raises:
            LeanUnavailable: Lean or its library cannot be found, started or compiled.
        """
        with ThreadPoolExecutor(self.workers) as pool:
            pending: collections.deque[Future[lean.CheckResult | JudgeError]] = collections.deque()
            try:
                for text, theorems in checks:
                    pending.append(pool.submit(self._result, text, theorems))
                    if len(pending) > 2 * self.workers:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for future in pending:
                    future.cancel()

    def _result(self, text: str, theorems: Sequence[str]) -> lean.CheckResult | JudgeError:
        try:
            return self.check(text, theorems)
        except LeanUnavailable:
            raise
        except JudgeError as error:
            return error

    def close(self) -> None:
        """End the processes; idempotent, and a later check starts them again."""
        for server in self._all:
            server.close()

    def __enter__(self) -> Self:
        """Return the server itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()


def _finished(reply: bytes) -> child.Finished:
    head, _, said = reply.partition(b"\n")
    how = json.loads(head)
    code, cut = how["code"], how["stdout_bytes"]
    return child.Finished(
        exit_status=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        timed_out=how["timed_out"],
        stdout=said[:cut],
        stderr=said[cut:],
        cut=len(said[:cut]) == _OUTPUT_BYTES,
        wall_s=how["wall_s"],
    )
