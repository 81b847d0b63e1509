"""The Lean server: the same word as a new Lean process, whatever happens to the server."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tbmm_env.data import data_path
from tbmm_env.errors import JudgeError
from tbmm_env.judge import child, lean
from tbmm_env.judge.server import LeanServer
from tbmm_env.limits import GIB, JUDGE, MIB

pytestmark = pytest.mark.lean

HEAD = f"prelude\nimport TBMM\nnamespace {lean.NAMESPACE}\n"
TRUE = HEAD + "theorem probe : Eq (Signed.le ⟨2, 1⟩ ⟨1, 0⟩) Bool.true := Eq.refl Bool.true\n#print axioms probe\n"
FALSE = TRUE.replace("⟨2, 1⟩", "⟨3, 1⟩")
PROBE = (f"{lean.NAMESPACE}.probe",)
# Text that is let through and keeps Lean busy for long: the same 512 obligations, proved over and over.
SLOW = HEAD + "".join(
    f"noncomputable def held_{number} : Obligations := "
    + (f".join held_{number - 1} held_{number - 1}\n" if number else ".between 1 0 0 9 5 .nil\n")
    for number in range(10)
)
for number in range(1000):
    SLOW += f"theorem holds_{number} : Eq (Obligations.hold held_9) Bool.true := Eq.refl Bool.true\n"


@pytest.fixture
def server() -> Iterator[LeanServer]:
    with LeanServer() as made:
        yield made


def same(one: lean.CheckResult, other: lean.CheckResult) -> bool:
    """Whether two results are the same but for how long they took."""

    def timeless(result: lean.CheckResult) -> lean.CheckResult:
        reasons = tuple(re.sub(r"after \d+\.\d s", "", reason) for reason in result.reasons)
        return dataclasses.replace(result, wall_s=0.0, reasons=reasons)

    return timeless(one) == timeless(other)


def until(condition: object, limit_s: float = 10.0) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


def children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(word) for word in (task / "children").read_text("utf-8").split()]
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class TestAgrees:
    @pytest.mark.parametrize("text", [TRUE, FALSE, TRUE + "x\n", "", TRUE.replace("Signed.le", "Nat.div")])
    def test_with_a_new_process(self, server: LeanServer, text: str) -> None:
        cold = lean.check(text, PROBE)
        assert same(server.check(text, PROBE), cold)
        assert cold.accepted is (text == TRUE)

    @pytest.mark.parametrize("name", ["axiom", "failed_but_listed", "forged_listing", "wrong_division", "sorry"])
    def test_on_attacks(self, server: LeanServer, name: str) -> None:
        text = (data_path("lean", "attacks") / name / "attack.lean").read_text("utf-8")
        names = (f"{lean.NAMESPACE}.reward",)
        cold = lean.check(text, names)
        assert not cold.accepted
        assert same(server.check(text, names), cold)

    def test_one_check_knows_nothing_of_another(self, server: LeanServer) -> None:
        for text, accepted in [(TRUE, True), (FALSE, False)] * 4:
            assert server.check(text, PROBE).accepted is accepted
        bare = HEAD + "#print axioms probe\n"
        assert "is not listed" in " ".join(server.check(bare, PROBE).reasons)
        assert len(server.pids) == 1

    def test_an_executable_is_run_anew(
        self, server: LeanServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        script = tmp_path / "lean"
        call = f"import ctypes, os, sys\nsys.argv.insert(2, {str(lean.find().program)!r})\n" + lean._CALL_LEAN_MAIN
        script.write_text(f"#!{sys.executable}\nimport sys\nsys.argv.insert(1, '')\n{call}")
        script.chmod(0o755)
        monkeypatch.setenv("TBMM_LEAN", str(script))
        monkeypatch.setenv("TBMM_CACHE", str(tmp_path / "cache"))
        assert server.check(TRUE, PROBE).accepted
        assert server.pids == []


class TestMany:
    def test_in_order_from_several_workers(self) -> None:
        texts = [TRUE, FALSE, FALSE, TRUE, TRUE, FALSE, TRUE, TRUE, TRUE, FALSE]
        with LeanServer(2) as server:
            found = list(server.check_many((text, PROBE) for text in texts))
            assert len(server.pids) == 2
        assert [isinstance(one, lean.CheckResult) and one.accepted for one in found] == [text == TRUE for text in texts]

    def test_reads_only_a_little_ahead(self) -> None:
        read = []

        def checks() -> Iterator[tuple[str, tuple[str, ...]]]:
            for number in range(20):
                read.append(number)
                yield TRUE, PROBE

        with LeanServer(2) as server:
            results = server.check_many(checks())
            next(results)
            assert len(read) <= 6
            results.close()  # type: ignore[attr-defined]

    def test_a_check_over_its_limit_does_not_end_the_rest(self) -> None:
        limits = dataclasses.replace(JUDGE, lean_wall_s=2.0)
        with LeanServer(limits=limits) as server:
            found = list(server.check_many([(TRUE, PROBE), (SLOW, PROBE), (TRUE, PROBE)]))
        assert [isinstance(one, JudgeError) for one in found] == [False, True, False]

    def test_from_several_threads(self) -> None:
        wrong: list[str] = []

        def work(server: LeanServer, text: str) -> None:
            for _ in range(4):
                if server.check(text, PROBE).accepted is not (text == TRUE):
                    wrong.append(text)

        with LeanServer(2) as server:
            threads = [threading.Thread(target=work, args=(server, text)) for text in (TRUE, FALSE, TRUE, FALSE)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert wrong == []

    def test_at_least_one_worker(self) -> None:
        with pytest.raises(ValueError, match="at least 1 worker, not 0"):
            LeanServer(0)


class TestBounded:
    def test_wall_time(self, server: LeanServer) -> None:
        with pytest.raises(JudgeError, match="killed at the wall limit"):
            server.check(SLOW, PROBE, limits=dataclasses.replace(JUDGE, lean_wall_s=0.5))
        pid = server.pids
        assert server.check(TRUE, PROBE).accepted
        assert server.pids == pid

    def test_processor_time(self, server: LeanServer) -> None:
        assert server.check(TRUE, PROBE).accepted
        with pytest.raises(JudgeError, match=r"did not end by itself: signal \d+ \((SIGXCPU|SIGKILL)\)"):
            server.check(SLOW, PROBE, limits=dataclasses.replace(JUDGE, lean_cpu_s=1))
        assert server.check(TRUE, PROBE).accepted

    def test_memory(self, server: LeanServer) -> None:
        with pytest.raises(JudgeError):
            server.check(TRUE, PROBE, limits=dataclasses.replace(JUDGE, lean_memory_bytes=600 * MIB))
        assert server.check(TRUE, PROBE, limits=dataclasses.replace(JUDGE, lean_memory_bytes=6 * GIB)).accepted


class TestFailure:
    def test_a_killed_server_is_replaced(self, server: LeanServer, caplog: pytest.LogCaptureFixture) -> None:
        assert server.check(TRUE, PROBE).accepted
        (first,) = server.pids
        os.kill(first, signal.SIGKILL)
        with caplog.at_level(logging.WARNING):
            assert not server.check(FALSE, PROBE).accepted
        assert "the Lean server failed, a new process checks instead" in caplog.text
        assert server.check(TRUE, PROBE).accepted
        assert server.pids != [first]

    def test_killed_in_the_middle_of_a_check(self, server: LeanServer) -> None:
        assert server.check(TRUE, PROBE).accepted
        (first,) = server.pids
        found: list[object] = []

        def work() -> None:
            try:
                found.append(server.check(SLOW, PROBE, limits=dataclasses.replace(JUDGE, lean_wall_s=4.0)))
            except JudgeError as error:
                found.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        assert until(lambda: children(first))
        (check,) = children(first)
        os.kill(first, signal.SIGKILL)
        assert until(lambda: not alive(check))
        thread.join()
        assert len(found) == 1
        assert isinstance(found[0], JudgeError)
        assert server.check(TRUE, PROBE).accepted

    def test_it_dies_with_its_owner(self, tmp_path: Path) -> None:
        note = tmp_path / "pids"
        code = (
            f"import os, sys, threading; sys.path.insert(0, {str(Path(child.__file__).parents[2])!r})\n"
            "from pathlib import Path\n"
            "from tbmm_env.judge.server import LeanServer\n"
            f"server = LeanServer(); server.check({TRUE!r}, {PROBE!r})\n"
            f"threading.Thread(target=server.check, args=({SLOW!r}, {PROBE!r}), daemon=True).start()\n"
            "import time; time.sleep(1)\n"
            f"Path({str(note)!r}).write_text(str(server.pids[0])); os._exit(0)\n"
        )
        environment = {name: os.environ[name] for name in ("HOME", "TBMM_CACHE") if name in os.environ}
        argv = [sys.executable, "-c", code]
        ended = child.run_bounded(argv, wall_s=60, cpu_s=60, memory_bytes=16 * GIB, env=environment)
        assert ended.exit_status == 0, ended
        pid = int(note.read_text("utf-8"))
        assert until(lambda: not alive(pid))

    def test_closing_ends_the_process(self) -> None:
        server = LeanServer()
        assert server.check(TRUE, PROBE).accepted
        (pid,) = server.pids
        server.close()
        server.close()
        assert not alive(pid)
        assert server.check(TRUE, PROBE).accepted
        server.close()
