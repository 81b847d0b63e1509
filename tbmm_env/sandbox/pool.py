"""A pool of warm boxes: started ahead of need by a thread of its own, each used once."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from types import TracebackType
from typing import Self

from tbmm_env.errors import BoxLost, UsageError
from tbmm_env.limits import GIB, MIB, Limits
from tbmm_env.sandbox import owner
from tbmm_env.sandbox.base import Box, BoxSpec, PreparedBox, PreparingSandbox
from tbmm_env.sandbox.image import Image

IDLE_BYTES = 32 * MIB
"""What an idle box is counted as; benchmarks/sandbox.py measures what it takes."""
STOP_PATIENCE_S = 120.0

Kind = tuple[Limits, Image]


class Pool:
    """A sandbox that hands out warm boxes of another one; cold ones when none is ready.

    It learns what to keep ready from what is asked for: boxes of the limits and images of the latest starts. Safe for
    several threads, so one pool can serve many environments: ``gym.make(..., sandbox=Pool(select("bwrap"), boxes=8))``.

    Args:
        sandbox: where boxes come from.
        boxes: most boxes that wait at a time.
        most_bytes: bound on the memory of waiting boxes, at ``IDLE_BYTES`` each.

    Raises:
        UsageError: if the bounds leave no box, or the sandbox cannot start boxes before their task is known.
    """

    def __init__(self, sandbox: PreparingSandbox, *, boxes: int = 1, most_bytes: int = 2 * GIB) -> None:
        if not isinstance(sandbox, PreparingSandbox):
            raise UsageError(f"sandbox {sandbox!r} has no prepare(); a pool needs it")
        self.boxes = min(boxes, most_bytes // IDLE_BYTES)
        if self.boxes < 1:
            raise UsageError(f"pool of {boxes} boxes in {most_bytes} bytes: it must hold one box of {IDLE_BYTES} bytes")
        self._sandbox = sandbox
        self._recent: deque[Kind] = deque(maxlen=self.boxes)
        self._begin()
        owner.hold(self)

    def _begin(self) -> None:
        self._idle: list[tuple[Kind, PreparedBox]] = []
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.refusal: Exception | None = None

    @property
    def name(self) -> str:
        """Name of the sandbox that boxes come from."""
        return self._sandbox.name

    def probe(self) -> None:
        """See ``Sandbox.probe``."""
        self._sandbox.probe()

    def start(self, spec: BoxSpec) -> Box:
        """Return a warm box, or start one; see ``Sandbox.start``."""
        kind = (spec.limits, spec.image)
        while (waiting := self._take(kind)) is not None:
            try:
                return waiting.furnish(spec.files)
            except BoxLost:
                continue  # it has died while it waited; it was nobody's yet
        return self._sandbox.start(spec)

    def expect(self, limits: Limits, image: Image) -> None:
        """Begin to make boxes ready, before the first start asks for one."""
        with self._change:
            self._expect((limits, image))

    def waiting(self) -> int:
        """Return how many boxes are ready."""
        with self._change:
            return len(self._idle)

    def wait(self, boxes: int, wait_s: float) -> bool:
        """Wait until so many boxes are ready, at most ``wait_s`` seconds; return whether they are."""
        deadline = time.monotonic() + wait_s
        with self._change:
            return self._change.wait_for(lambda: len(self._idle) >= boxes, deadline - time.monotonic())

    def close(self) -> None:
        """End all waiting boxes; boxes that were handed out are their users'. May be called again."""
        owner.release(self)
        with self._change:
            self._closed = True
            ended, self._idle = self._idle, []
            thread = self._thread
            self._change.notify_all()
        for _, box in ended:
            box.close()
        if thread is not None:
            thread.join(STOP_PATIENCE_S)

    def abandon(self) -> None:
        """Forget all boxes in a forked copy of the owner, whose they are."""
        self._begin()

    # ---------------------------------------------------------------- refilling

    def _take(self, kind: Kind) -> PreparedBox | None:
        """Return a waiting box of a kind, and have others of that kind made ready."""
        with self._change:
            found = next((entry for entry in self._idle if entry[0] == kind), None)
            if found is not None:
                self._idle.remove(found)
            self._expect(kind)
        return found[1] if found else None

    def _expect(self, kind: Kind) -> None:
        self._recent.append(kind)
        self.refusal = None
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._refill, name="tbmm-pool", daemon=True)
            self._thread.start()
        self._change.notify_all()

    def _targets(self) -> Counter[Kind]:
        """Return how many boxes of each kind should wait: as in the latest starts, the last one filling up."""
        targets = Counter(self._recent)
        if self._recent:
            targets[self._recent[-1]] += self.boxes - len(self._recent)
        return targets

    def _missing(self) -> Kind | None:
        """Return a kind of which a box is to be started now."""
        if self.refusal is not None:
            return None  # until somebody asks for a box again, and is told why there is none
        waiting = Counter(kind for kind, _ in self._idle)
        return next((kind for kind, count in self._targets().items() if waiting[kind] < count), None)

    def _surplus(self) -> list[PreparedBox]:
        """Take out the boxes that no target asks for any more."""
        left, ended = self._targets(), []
        for entry in list(self._idle):
            if left[entry[0]] > 0:
                left[entry[0]] -= 1
            else:
                self._idle.remove(entry)
                ended.append(entry[1])
        return ended

    def _refill(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._closed or self._missing() is not None)
                if self._closed:
                    return
                kind, ended = self._missing(), self._surplus()
            for box in ended:
                box.close()
            if kind is None:
                continue
            try:
                box = self._sandbox.prepare(*kind)
            except (OSError, RuntimeError) as refusal:  # sandbox errors, and an interpreter that is ending
                self.refusal = refusal
                continue
            with self._change:
                closed = self._closed
                if not closed:
                    self._idle.append((kind, box))
                    self._change.notify_all()
            if closed:
                box.close()

    def __enter__(self) -> Self:
        """Return the pool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """Close the pool."""
        self.close()
