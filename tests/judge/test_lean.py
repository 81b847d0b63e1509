"""The toolchain: found where it should be, compiled into a private cache, bounded, and heard correctly."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import sys
import threading
from pathlib import Path

import pytest

from tbmm_env.data import data_path
from tbmm_env.errors import JudgeError, LeanUnavailable
from tbmm_env.judge import child, lean, library
from tbmm_env.limits import GIB, JUDGE, MIB, JudgeLimits

pytestmark = pytest.mark.lean

HEAD = f"prelude\nimport TBMM\nnamespace {lean.NAMESPACE}\n"
TRUE = HEAD + "theorem probe : Eq (Signed.le ⟨2, 1⟩ ⟨1, 0⟩) Bool.true := Eq.refl Bool.true\n#print axioms probe\n"
FALSE = HEAD + "theorem probe : Eq (Signed.le ⟨3, 1⟩ ⟨1, 0⟩) Bool.true := Eq.refl Bool.true\n#print axioms probe\n"
PROBE = (f"{lean.NAMESPACE}.probe",)


def sources() -> dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in library.modules()}


class TestKernel:
    def test_accepts_what_is_true(self) -> None:
        result = lean.check(TRUE, PROBE)
        assert result.accepted
        assert result.reasons == ()
        assert result.exit_status == 0
        assert result.axioms == {PROBE[0]: ()}
        assert "4.35.0" in result.version

    def test_rejects_what_is_false(self) -> None:
        result = lean.check(FALSE, PROBE)
        assert not result.accepted
        assert "error: Type mismatch" in result.reasons[0]
        assert result.exit_status == 1
        assert f"theorem {PROBE[0]} is not listed" in result.reasons

    def test_a_missing_theorem_is_named(self) -> None:
        other = f"{lean.NAMESPACE}.reward"
        assert lean.check(TRUE, (*PROBE, other)).reasons == (f"theorem {other} is not listed",)

    def test_expecting_nothing_is_not_acceptance(self) -> None:
        assert lean.check(TRUE, ()).reasons == ("no theorem is expected, so nothing was proved",)

    def test_probe(self) -> None:
        assert lean.probe() == lean.find()


class TestRefusals:
    @pytest.mark.parametrize(
        ("line", "word"),
        [
            ("noncomputable def gate : Obligations := sorry", "sorry"),
            ("noncomputable def gate : Obligations := by exact .nil", "by"),
            ("noncomputable def gate : Obligations := Nat.div", "Nat.div"),
            ('noncomputable def gate : Obligations := "text"', '"'),
            ("theorem probe : Eq (Frac.mk 0 1) Bool.true := Eq.refl Bool.true", "Frac.mk"),
        ],
    )
    def test_a_word_without_use(self, line: str, word: str) -> None:
        assert f"line 4 holds {word!r}, for which a certificate has no use" in lean.refusals(HEAD + line)

    @pytest.mark.parametrize(
        "line",
        [
            "import Lean",
            "#eval 1",
            "set_option maxHeartbeats 0",
            "namespace TBMM",
            "instance : OfNat Obligations 0 := ⟨.nil⟩",
            "noncomputable def oEval : Obligations := .nil",
            "theorem probe : Eq (Signed.le ⟨3, 1⟩ ⟨1, 0⟩) Bool.true := cheat",
            "-- Comment.",
        ],
    )
    def test_a_line_without_use(self, line: str) -> None:
        assert lean.refusals(HEAD + line) == (f"line 4 is none that a certificate needs: {line!r}",)

    def test_what_is_refused_is_not_shown_to_lean(self) -> None:
        result = lean.check(TRUE + "#eval 1\n", PROBE)
        assert not result.accepted
        assert result.exit_status is None


class TestLimits:
    def test_wall(self) -> None:
        with pytest.raises(
            JudgeError, match=r"did not end by itself: killed at the wall limit .* limits are 0\.01 s wall"
        ):
            lean.ask_kernel(TRUE, PROBE, limits=dataclasses.replace(JUDGE, lean_wall_s=0.01))

    def test_processor_time(self) -> None:
        # Each step doubles the work and no two subterms are alike, so neither cache helps.
        text = HEAD + (
            "noncomputable def slow (n : Nat) : Nat → Nat := Nat.rec (motive := fun _ => Nat → Nat) (fun k => k)"
            " (fun _ r k => Nat.add (r (Nat.add k k)) (r (Nat.succ (Nat.add k k)))) n\n"
            "theorem probe : Eq (Nat.beq (slow 24 1) 0) Bool.true := Eq.refl Bool.true\n"
        )
        with pytest.raises(JudgeError, match=r"did not end by itself: signal \d+ \((SIGXCPU|SIGKILL)\)"):
            lean.ask_kernel(text, PROBE, limits=dataclasses.replace(JUDGE, lean_cpu_s=1))

    def test_memory(self) -> None:
        with pytest.raises(JudgeError):
            lean.run(
                lean.find(),
                ("--stdin",),
                stdin=TRUE.encode(),
                lean_path=lean.library(),
                limits=dataclasses.replace(JUDGE, lean_memory_bytes=600 * MIB),
            )
        assert lean.check(TRUE, PROBE, limits=dataclasses.replace(JUDGE, lean_memory_bytes=6 * GIB)).accepted


class TestFinding:
    def test_path_is_not_searched(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        impostor = tmp_path / "lean"
        impostor.write_text("#!/bin/sh\necho 'Lean (version 9)'\n")
        impostor.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert "4.35.0" in lean.find().version

    def test_the_variable_comes_first(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        own = tmp_path / "lean"
        own.write_text("#!/bin/sh\necho 'Lean (version 9)'\n")
        own.chmod(0o755)
        monkeypatch.setenv("TBMM_LEAN", str(own))
        assert lean.find() == lean.Toolchain(program=own, is_library=False, version="Lean (version 9)")

    def test_an_executable_is_run_like_the_library(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        library_path = lean.find().program
        monkeypatch.setenv("TBMM_CACHE", str(tmp_path / "cache"))
        script = tmp_path / "lean"
        call = f"import ctypes, os, sys\nsys.argv.insert(2, {str(library_path)!r})\n" + lean._CALL_LEAN_MAIN
        script.write_text(f"#!{sys.executable}\nimport sys\nsys.argv.insert(1, '')\n{call}")
        script.chmod(0o755)
        monkeypatch.setenv("TBMM_LEAN", str(script))
        assert not lean.find().is_library
        assert lean.check(TRUE, PROBE).accepted
        assert not lean.check(FALSE, PROBE).accepted

    @pytest.mark.parametrize("named", ["lean", "/nowhere/lean"])
    def test_a_wrong_variable_names_the_way_out(self, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
        monkeypatch.setenv("TBMM_LEAN", named)
        with pytest.raises(LeanUnavailable, match=r"TBMM_LEAN = .* is not the absolute path of an executable; install"):
            lean.find()

    def test_something_else_is_not_lean(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TBMM_LEAN", "/bin/true")
        with pytest.raises(LeanUnavailable, match=r"/bin/true does not answer --version"):
            lean.find()

    def test_without_the_wheel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lean.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(LeanUnavailable, match=r"pip install 'tbmm-env\[lean\]'"):
            lean.find()


class TestCache:
    @pytest.fixture(autouse=True)
    def cache(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        folder = tmp_path / "cache"
        monkeypatch.setenv("TBMM_CACHE", str(folder))
        return folder

    def test_is_private_and_reused(self, cache: Path) -> None:
        built = lean.library()
        assert stat.S_IMODE(cache.stat().st_mode) == 0o700
        stamp = (built / "TBMM.olean").stat().st_mtime_ns
        assert lean.library() == built
        assert (built / "TBMM.olean").stat().st_mtime_ns == stamp
        assert sorted(path.name for path in built.parent.iterdir()) == sorted([built.name, "lock"])

    def test_builders_at_once(self) -> None:
        found: list[Path] = []
        threads = [threading.Thread(target=lambda: found.append(lean.library())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert len(set(found)) == 1

    @pytest.mark.parametrize("damage", ["change", "remove", "manifest"])
    def test_damage_is_repaired(self, damage: str) -> None:
        module = lean.library() / "TBMM" / "Score.olean"
        before = module.read_bytes()
        if damage == "change":
            module.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        elif damage == "remove":
            module.unlink()
        else:
            (lean.library() / "manifest.json").write_text("{}")
        lean.library()
        assert module.read_bytes() == before
        assert lean.check(TRUE, PROBE).accepted

    def test_a_folder_others_can_write_is_refused(self, cache: Path) -> None:
        cache.mkdir()
        cache.chmod(0o777)
        with pytest.raises(LeanUnavailable, match=r"has mode 777, so others can write to it; set TBMM_CACHE"):
            lean.library()

    def test_a_parent_everybody_can_change_is_refused(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cache.mkdir()
        cache.chmod(0o777)
        monkeypatch.setenv("TBMM_CACHE", str(cache / "below"))
        with pytest.raises(LeanUnavailable, match=r"everybody can replace what is in .*/cache"):
            lean.library()

    def test_a_link_is_refused(self, cache: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        cache.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(LeanUnavailable, match="is not a folder itself"):
            lean.library()

    def test_a_folder_of_another_user_is_refused(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cache.mkdir(mode=0o700)
        owner = os.geteuid()
        monkeypatch.setattr(library.os, "geteuid", lambda: owner + 1)
        with pytest.raises(LeanUnavailable, match=f"belongs to user {owner}, not to you"):
            lean.library()

    @pytest.mark.parametrize("named", ["here", "/tmp/a:b"])
    def test_a_path_lean_could_not_search_is_refused(self, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
        monkeypatch.setenv("TBMM_CACHE", named)
        with pytest.raises(LeanUnavailable, match="not an absolute path without ':'"):
            lean.library()

    def test_a_library_that_does_not_compile(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "lean").mkdir()
        (tmp_path / "lean" / "TBMM.lean").write_text("prelude\ntheorem wrong : Nat := 1\n")
        monkeypatch.setattr(library, "data_path", lambda *parts: tmp_path.joinpath(*parts))
        with pytest.raises(JudgeError, match=r"TBMM\.lean does not compile with Lean"):
            lean.library()


class TestLibrary:
    def test_every_module_is_standalone(self) -> None:
        for name, text in sources().items():
            assert text.startswith("prelude\n"), name
            assert all(name.startswith("TBMM.") for name in re.findall(r"^import (\S+)", text, re.MULTILINE)), name

    def test_every_file_is_compiled(self) -> None:
        files = {path.relative_to(data_path("lean")) for path in data_path("lean").glob("TBMM/**/*.lean")}
        compiled = {path.relative_to(data_path("lean")) for path in library.modules()}
        assert files | {Path("TBMM.lean")} == compiled

    def test_only_five_names_the_kernel_evaluates_are_defined(self) -> None:
        assert defined_by_name("\n".join(sources().values())) == set(lean.DEFINED_BY_US)

    @pytest.mark.parametrize(
        "text",
        [
            "def Nat.div (m n : Nat) : Nat := m",
            "namespace Nat\ndef x := 1\ndef div (m n : Nat) : Nat := m",
            "protected theorem Nat.pow : True := trivial",
            "noncomputable opaque «Nat».gcd : Nat",
        ],
    )
    def test_a_sixth_name_would_be_found(self, text: str) -> None:
        assert defined_by_name(text)

    def test_axioms_and_options(self) -> None:
        text = "\n".join(sources().values())
        code = re.sub(r"/-.*?-/|--[^\n]*", "", text, flags=re.DOTALL)
        axioms = re.findall(r"^.*\baxiom\b.*$", code, re.MULTILINE)
        assert axioms == ["unsafe axiom lcErased : Type", "unsafe axiom lcAny : Type"]
        assert not re.search(
            r"\b(sorry|native_decide|by|opaque|partial|implemented_by|extern|unsafe(?! axiom lc))\b", code
        )
        assert set(re.findall(r"set_option (.*)", code)) == {
            "genCtorIdx false",
            "genSizeOf false",
            "genInjectivity false",
        }

    def test_every_theorem_is_free_of_axioms(self) -> None:
        names = theorem_names()
        assert len(names) > 15
        listing = "".join(f"#print axioms {name}\n" for name in names)
        result = lean.ask_kernel("prelude\nimport TBMM\n" + listing, names)
        assert result.reasons == ()
        assert set(result.axioms) == set(names)

    def test_the_laws_are_there(self) -> None:
        laws = {
            "infeasible_of_violated",
            "reward_of_infeasible",
            "reward_of_feasible",
            "feasible_cons",
            "feasible_join",
            "reward_is",
            "metric_le_one",
            "paper_le_one",
            "oEval_le_one",
            "reward_le_one",
            "metric_full",
            "shortfall_higher",
            "shortfall_lower",
            "shortfall_self",
            "paper_one",
            "oEval_one",
            "metric_antitone",
            "uncounted_of_unmet",
            "metric_uncounted",
            "paper_uncounted",
            "paper_perm",
            "oEval_perm",
        }
        assert {f"TBMM.{law}" for law in laws} <= set(theorem_names())

    def test_recursion_equations_are_proved_with_variables(self) -> None:
        for function in lean.DEFINED_BY_US:
            stem = function.removeprefix("Nat.")
            proved = [name for name in theorem_names() if re.fullmatch(rf"Nat\.{stem}_(zero|succ)(_zero|_succ)?", name)]
            assert len(proved) >= 2, function


def defined_by_name(text: str) -> set[str]:
    """Return the names evaluated by the kernel that a Lean text might define, erring on the side of finding one."""
    words = set(re.findall(r"(?:def|theorem|opaque|abbrev|axiom|instance|structure|class|inductive)\s+(\S+)", text))
    stems = {word.replace("«", "").replace("»", "").removeprefix("Nat.") for word in words if "TBMM" not in word}
    inside = "namespace Nat" in text
    return {
        name
        for name in lean.EVALUATED_BY_NAME
        if (stem := name.removeprefix("Nat.")) in stems and (inside or re.search(rf"«?Nat»?\.{stem}\b", text))
    }


def theorem_names() -> list[str]:
    """Return the full names of all theorems of the library."""
    names = []
    for text in sources().values():
        spaces: list[str] = []
        for word, name in re.findall(r"^(namespace|end|theorem) (\S+)", text, re.MULTILINE):
            if word == "namespace":
                spaces.append(name)
            elif word == "end":
                assert spaces.pop() == name
            else:
                names.append(".".join([*spaces, name]))
    return names


class TestChild:
    LIMITS = {"wall_s": 20.0, "cpu_s": 10, "memory_bytes": 1 * GIB}

    def test_streams_and_exit_status(self) -> None:
        ended = child.run_bounded(["/bin/sh", "-c", "cat; echo no >&2; exit 3"], stdin=b"x" * 300_000, **self.LIMITS)
        assert (ended.exit_status, ended.signal, ended.timed_out) == (3, None, False)
        assert ended.stdout == b"x" * 300_000
        assert ended.stderr == b"no\n"

    def test_output_is_bounded(self) -> None:
        ended = child.run_bounded(["/bin/sh", "-c", "yes | head -c 500000"], output_bytes=1000, **self.LIMITS)
        assert len(ended.stdout) == 1000
        assert ended.cut
        exact = child.run_bounded(["/bin/echo", "123"], output_bytes=4, **self.LIMITS)
        assert exact.stdout == b"123\n"
        assert not exact.cut

    def test_the_whole_group_dies_at_the_wall_limit(self, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        script = f"(sleep 1.5; touch {mark}) & sleep 30"
        ended = child.run_bounded(["/bin/sh", "-c", script], **(self.LIMITS | {"wall_s": 0.5}))
        assert ended.timed_out
        assert ended.wall_s < 5
        threading.Event().wait(2)
        assert not mark.exists()

    def test_what_a_child_leaves_behind_dies_with_it(self, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        ended = child.run_bounded(["/bin/sh", "-c", f"(sleep 1.5; touch {mark}) & exit 0"], **self.LIMITS)
        assert ended.exit_status == 0
        assert ended.wall_s < 1.4
        threading.Event().wait(2)
        assert not mark.exists()

    def test_processor_time(self) -> None:
        ended = child.run_bounded(["/bin/sh", "-c", "while :; do :; done"], **(self.LIMITS | {"cpu_s": 1}))
        assert ended.signal is not None
        assert not ended.timed_out

    def test_memory(self) -> None:
        code = "bytearray(700 * 2**20)"
        assert child.run_python(code, [], **self.LIMITS).exit_status == 0
        ended = child.run_python(code, [], **(self.LIMITS | {"memory_bytes": 300 * MIB}))
        assert ended.exit_status == 1
        assert b"MemoryError" in ended.stderr

    def test_it_dies_with_its_owner(self, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        code = (
            f"import os, sys, threading; sys.path.insert(0, {str(Path(child.__file__).parents[2])!r})\n"
            "from tbmm_env.judge.child import run_bounded\n"
            "threading.Timer(1, os._exit, (0,)).start()\n"
            f"run_bounded(['/bin/sh', '-c', 'sleep 2.5; touch {mark}'], wall_s=60, cpu_s=9, memory_bytes={GIB})\n"
        )
        ended = child.run_bounded([sys.executable, "-c", code], **(self.LIMITS | {"memory_bytes": 4 * GIB}))
        assert ended.exit_status == 0, ended
        threading.Event().wait(3)
        assert not mark.exists()

    def test_no_environment_leaks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TBMM_SECRET", "1")
        ended = child.run_bounded(["/usr/bin/env"], env={"ONE": "1"}, **self.LIMITS)
        assert b"TBMM_SECRET" not in ended.stdout
        assert b"ONE=1" in ended.stdout


def test_output_that_was_cut_is_no_acceptance() -> None:
    def cut(source: str, limits: JudgeLimits) -> child.Finished:
        return dataclasses.replace(lean.run_cold(source, limits), cut=True)

    assert lean.ask_kernel(TRUE, PROBE).accepted
    refused = lean.ask_kernel(TRUE, PROBE, run_text=cut)
    assert refused.reasons == ("Lean wrote more than is kept, so what it said is not known",)
