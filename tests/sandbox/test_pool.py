"""Warm boxes: used once, bounded, refilled, and gone with their pool."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tbmm_env.errors import BoxLost, SandboxUnavailable, UsageError
from tbmm_env.limits import MIB, TRAIN, Limits
from tbmm_env.sandbox.base import Box, BoxSpec, PreparingSandbox, Sandbox
from tbmm_env.sandbox.image import Image
from tbmm_env.sandbox.pool import IDLE_BYTES, Pool
from tbmm_env.sandbox.scripted import ScriptedBox, ScriptedSandbox

WAIT_S = 60.0


@dataclass
class Prepared:
    """A box of the counting sandbox."""

    sandbox: Counting
    limits: Limits
    number: int
    lost: bool = False
    used: int = 0
    closed: bool = False

    def furnish(self, files: Mapping[str, bytes]) -> Box:
        self.used += 1
        if self.lost:
            self.closed = True
            raise BoxLost("it died while it waited")
        return ScriptedBox(BoxSpec(limits=self.limits, files=files, image=IMAGE), {}, {})

    def close(self) -> None:
        self.closed = True


@dataclass
class Counting:
    """A backend that only counts."""

    made: list[Prepared] = field(default_factory=list)
    refusal: Exception | None = None
    name: str = "counting"

    def probe(self) -> None:
        pass

    def prepare(self, limits: Limits, image: Image) -> Prepared:
        if self.refusal:
            raise self.refusal
        self.made.append(Prepared(self, limits, len(self.made)))
        return self.made[-1]

    def start(self, spec: BoxSpec) -> Box:
        return self.prepare(spec.limits, spec.image).furnish(spec.files)


IMAGE = Image(path=Path(os.devnull), key="none", docker_tag="none")
SMALL = replace(
    TRAIN, memory_bytes=512 * MIB, workspace_bytes=32 * MIB, tmp_bytes=16 * MIB, shm_bytes=8 * MIB, no_output_s=0.4
)


def spec(limits: Limits = TRAIN) -> BoxSpec:
    return BoxSpec(limits=limits, files={"a": b"1"}, image=IMAGE)


def settled(pool: Pool, boxes: int) -> bool:
    """Wait until so many boxes wait, and no more come."""
    assert pool.wait(boxes, WAIT_S)
    time.sleep(0.05)
    return pool.waiting() == boxes


def test_a_box_is_used_once_and_replaced() -> None:
    sandbox = Counting()
    with Pool(sandbox, boxes=2) as pool:
        for _ in range(5):
            pool.start(spec())
            assert settled(pool, 2)
        assert all(box.used <= 1 for box in sandbox.made)
        assert sum(box.used for box in sandbox.made) == 5
        assert len(sandbox.made) == 7
    assert [box.closed for box in sandbox.made if not box.used] == [True, True]
    assert pool.waiting() == 0


def test_bounds_hold_and_are_checked() -> None:
    with Pool(Counting(), boxes=9, most_bytes=3 * IDLE_BYTES + 1) as pool:
        assert pool.boxes == 3
        pool.start(spec())
        assert settled(pool, 3)
    with pytest.raises(UsageError, match="it must hold one box"):
        Pool(Counting(), boxes=2, most_bytes=IDLE_BYTES - 1)
    with pytest.raises(UsageError, match="it must hold one box"):
        Pool(Counting(), boxes=0)
    with pytest.raises(UsageError, match=r"has no prepare\(\)"):
        Pool(ScriptedSandbox())  # type: ignore[arg-type]


def test_other_limits_get_their_own_boxes_within_the_bound() -> None:
    sandbox, other = Counting(), replace(TRAIN, steps=7)
    with Pool(sandbox, boxes=2) as pool:
        pool.start(spec())
        assert settled(pool, 2)
        pool.start(spec(other))
        deadline = time.monotonic() + WAIT_S
        while sorted(kind[0].steps for kind, _ in pool._idle) != [7, 30] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert sorted(kind[0].steps for kind, _ in pool._idle) == [7, 30]
        assert sum(not box.used and not box.closed for box in sandbox.made) == 2
        taken = pool.start(spec(other))
        assert isinstance(taken, ScriptedBox)
        assert taken.spec.limits is other


def test_a_box_that_died_while_it_waited_is_nobodys_loss() -> None:
    sandbox = Counting()
    with Pool(sandbox, boxes=2) as pool:
        pool.expect(TRAIN, IMAGE)
        assert settled(pool, 2)
        for box in sandbox.made:
            box.lost = True
        assert isinstance(pool.start(spec()), ScriptedBox)


def test_a_refusal_reaches_who_asks_and_is_tried_again() -> None:
    sandbox = Counting(refusal=SandboxUnavailable("no daemon"))
    with Pool(sandbox, boxes=1) as pool:
        with pytest.raises(SandboxUnavailable, match="no daemon"):
            pool.start(spec())
        deadline = time.monotonic() + WAIT_S
        while pool.refusal is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert pool.waiting() == 0
        sandbox.refusal = None
        pool.start(spec())
        assert settled(pool, 1)


def test_close_in_the_middle_of_a_start_leaves_no_box() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Counting):
        def prepare(self, limits: Limits, image: Image) -> Prepared:
            begun.set()
            assert go_on.wait(WAIT_S)
            return super().prepare(limits, image)

    sandbox = Slow()
    pool = Pool(sandbox)
    pool.expect(TRAIN, IMAGE)
    assert begun.wait(WAIT_S)
    closing = threading.Thread(target=pool.close)
    closing.start()
    go_on.set()
    closing.join(WAIT_S)
    assert [box.closed for box in sandbox.made] == [True]
    pool.close()


def test_many_threads_share_a_pool() -> None:
    sandbox = Counting()
    with Pool(sandbox, boxes=4) as pool:
        boxes: list[Any] = []
        threads = [threading.Thread(target=lambda: boxes.append(pool.start(spec()))) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(box) for box in boxes}) == 32
        assert all(box.used <= 1 for box in sandbox.made)
        assert settled(pool, 4)


def test_a_forked_copy_has_no_boxes() -> None:
    with Pool(Counting(), boxes=1) as pool:
        pool.expect(TRAIN, IMAGE)
        assert settled(pool, 1)
        child = os.fork()
        if child == 0:
            os._exit(pool.waiting())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert pool.waiting() == 1


# ---------------------------------------------------------------- real boxes


@pytest.fixture
def pool(sandbox: Sandbox) -> Iterator[Pool]:
    """A pool of two boxes of the backend under test."""
    assert isinstance(sandbox, PreparingSandbox)
    with Pool(sandbox, boxes=2) as made:
        yield made


def test_a_warm_box_is_as_a_cold_one(pool: Pool, sandbox: Sandbox, image: Image) -> None:
    pool.expect(SMALL, image)
    assert pool.wait(2, WAIT_S)
    files = {"题.md": "好".encode(), "figures/1.png": b"png"}
    look = (
        "find /task -type f | sort; cat /task/题.md; touch /task/x; rm /task/题.md; pwd; env | sort; id; ls -la / /task"
        " /workspace | cut -c1-11; ulimit -a; umask; ps -e --no-headers | wc -l"
    )
    seen = []
    for starter in (pool, sandbox):
        with starter.start(BoxSpec(limits=SMALL, files=files, image=image)) as box:
            result = box.run(look, wall_s=30, on_check=lambda _: "")
            seen.append(result.head.decode().splitlines())
    assert seen[0] == seen[1]
    assert seen[0][:3] == [
        "/task/figures/1.png",
        "/task/题.md",
        "好touch: cannot touch '/task/x': Read-only file system",
    ]


def test_a_warm_box_that_is_killed_is_replaced(pool: Pool, image: Image) -> None:
    pool.expect(SMALL, image)
    assert pool.wait(2, WAIT_S)
    for _, waiting in list(pool._idle):
        waiting._channel.kill()  # type: ignore[attr-defined]
    with pool.start(BoxSpec(limits=SMALL, files={}, image=image)) as box:
        assert box.run("echo $((6 * 7))", wall_s=30, on_check=lambda _: "").head == b"42\n"
