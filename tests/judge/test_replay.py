"""The replay child: bounded, restarted after a failure, dead with its owner; rounding to grids."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from tbmm_env.errors import ReplayFailed
from tbmm_env.judge.child import Worker
from tbmm_env.judge.replay import round_to_grid, serve

ECHO = """
import sys
while True:
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        break
    data = sys.stdin.buffer.read(int.from_bytes(head, "big"))
    if data == b"hang":
        import time; time.sleep(60)
    if data == b"die":
        sys.exit("these are the last words")
    if data == b"eat":
        data = bytes(1 << 30)
    sys.stdout.buffer.write(len(data).to_bytes(4, "big") + data)
    sys.stdout.buffer.flush()
"""


def test_round_to_grid_is_half_even() -> None:
    grid = Fraction(1, 10)
    assert round_to_grid(Fraction(5, 100), grid) == 0
    assert round_to_grid(Fraction(15, 100), grid) == Fraction(2, 10)
    assert round_to_grid(-0.26, grid) == Fraction(-3, 10)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_round_to_grid_refuses_what_is_not_finite(value: float) -> None:
    with pytest.raises(ReplayFailed, match="must be a finite number"):
        round_to_grid(value, Fraction(1, 10))


def test_worker_answers_and_survives_large_messages() -> None:
    worker = Worker(ECHO, memory_bytes=1 << 30)
    try:
        assert worker.call(b"hello", 30) == b"hello"
        first = worker.pid
        large = os.urandom(3_000_000)
        assert worker.call(large, 30) == large
        assert worker.pid == first
    finally:
        worker.close()
    worker.close()
    assert worker.pid is None


@pytest.mark.parametrize(
    ("request_", "wall_s", "said"),
    [(b"hang", 0.5, "no answer within 0.5 s"), (b"die", 30, "these are the last words"), (b"eat", 30, "MemoryError")],
)
def test_worker_failures_are_ours_and_the_next_call_works(request_: bytes, wall_s: float, said: str) -> None:
    worker = Worker(ECHO, memory_bytes=512 << 20)
    try:
        with pytest.raises(ReplayFailed, match=said):
            worker.call(request_, wall_s)
        assert worker.call(b"again", 30) == b"again"
    finally:
        worker.close()


def test_worker_dies_with_its_owner(tmp_path: Path) -> None:
    program = (
        "import time\nfrom tbmm_env.judge.child import Worker\n"
        f"worker = Worker({ECHO!r}, memory_bytes=1 << 30)\n"
        "worker.call(b'x', 30)\nprint(worker.pid, flush=True)\ntime.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    try:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert owner.stdout is not None
        owner.stdout.close()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()


def _frames(*requests: dict[str, object]) -> io.BytesIO:
    data = b""
    for request in requests:
        text = json.dumps(request).encode()
        data += len(text).to_bytes(4, "big") + text
    return io.BytesIO(data)


def test_serve_reports_a_crash_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # serve() points stdout elsewhere; restored afterwards

    def answer(request: dict[str, object]) -> dict[str, object]:
        if request["op"] == "crash":
            raise ZeroDivisionError("on purpose")
        print("a stray print")
        return {"x": 1.5}

    sink = io.BytesIO()
    serve(_frames({"op": "crash"}, {"op": "fine"}), sink, answer)
    data, replies = sink.getvalue(), []
    while data:
        size = int.from_bytes(data[:4], "big")
        replies.append(json.loads(data[4 : 4 + size]))
        data = data[4 + size :]
    assert "ZeroDivisionError: on purpose" in replies[0]["error"]
    assert replies[1] == {"ok": {"x": 1.5}}
