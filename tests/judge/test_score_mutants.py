"""Whoever changes a definition of the score or the band rule hears of it: from a theorem, or from the other side.

Lean mutants are compiled in a copy of the library; a theorem must fail to compile. Python mutants are judged by Lean on
random cases; the two must disagree.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tbmm_env.data import data_path
from tbmm_env.judge import lean, library
from tbmm_env.judge import score as score_module
from tbmm_env.limits import JUDGE

pytestmark = pytest.mark.lean

LEAN_MUTANTS = {
    "score/shortfall_swapped": (
        "(Signed.excess reference x) (Signed.excess x reference)",
        "(Signed.excess x reference) (Signed.excess reference x)",
        "shortfall_higher",
    ),
    "score/shortfall_of_target_one_sided": (
        "(Signed.excess x reference)\n    (Signed.gap reference x) d",
        "(Signed.excess x reference)\n    (Signed.size x) d",
        "shortfall_self",
    ),
    "score/tolerance_smaller_of_two": (
        "Bool.pick (Nat.ble m n) n m",
        "Bool.pick (Nat.ble m n) m n",
        "larger_second",
    ),
    "band/threshold_of_two_percent": ("(Nat.mul 50 (Signed.gap", "(Nat.mul 51 (Signed.gap", "band_wide"),
    "band/five_percent": (
        "        (Signed.gap reference baseline)))\n    (Signed.size reference)",
        "        (Signed.gap reference baseline)))\n    (Nat.mul 2 (Signed.size reference))",
        "band_narrow",
    ),
    "band/twenty": (
        "    (Nat.mul 20\n      (Bool.pick (Nat.beq (Signed",
        "    (Nat.mul 19\n      (Bool.pick (Nat.beq (Signed",
        "band_wide",
    ),
    "band/both_zero": (
        "(Nat.beq tolerance 0) scale tolerance",
        "(Nat.beq tolerance 0) tolerance scale",
        "band_tolerance",
    ),
    "score/linear_without_excess": ("(Nat.sub b e) (one", "b (one", "shape_linear"),
    "score/linear_above_one": ("(Nat.sub b e) (one", "(Nat.add b e) (one", "shape_linear"),
    "score/exact_forgives": ("(one (Nat.beq e 0))", "(one (Nat.ble e 1))", "shape_exact"),
    "score/rung_turned": (
        "(fun threshold => one (Nat.ble (Nat.mul e unit) (Nat.mul threshold b)))",
        "(fun threshold => one (Nat.ble (Nat.mul threshold b) (Nat.mul e unit)))",
        "rung_passed",
    ),
    "score/domain_open_below": ("Bool.and (Signed.le low x) (Signed.le x high)", "Signed.le x high", "uncounted_below"),
    "score/requirements_not_asked": (
        "(Signed.le x high)) (Obligations.hold needs)",
        "(Signed.le x high)) Bool.true",
        "counted_all",
    ),
    "score/absent_counts": (
        "(motive := fun _ => Bool) Bool.false\n    (fun x => Bool.and (Bool.and",
        "(motive := fun _ => Bool) Bool.true\n    (fun x => Bool.and (Bool.and",
        "uncounted_absent",
    ),
    "score/nothing_forgiven": (
        "Nat.sub (Direction.shortfall d reference x) forgiven",
        "Direction.shortfall d reference x",
        "miss_forgiven",
    ),
    "score/points_of_what_does_not_count": (
        "Bool.pick c (Shape.num shape (Nat.mul 20 e) b) 0",
        "Shape.num shape (Nat.mul 20 e) b",
        "metric_uncounted",
    ),
    "score/infeasible_is_paid": ("Frac.mk (Bool.pick c num 0) den", "Frac.mk num den", "behind_false"),
}

PYTHON_MUTANTS = {
    "narrow_at_the_threshold_too": ("if width < NARROW", "if reference and width <= NARROW"),
    "threshold_of_one_percent": ("NARROW = Fraction(2, 100)", "NARROW = Fraction(1, 100)"),
    "widened_to_four_percent": ("WIDENED = Fraction(5, 100)", "WIDENED = Fraction(4, 100)"),
    "band_of_one_unit_too_early": ("width or tolerance or _ONE", "width or _ONE"),
    "smaller_tolerance": ("max(spec.tolerance, resolution)", "min(spec.tolerance, resolution)"),
    "tolerance_not_forgiven": ("max(_ZERO, missed - tolerance)", "max(_ZERO, missed)"),
    "lower_is_higher": ("return value - reference\n", "return reference - value\n"),
    "exact_within_the_band": ("_ONE if excess == 0 else", "_ONE if excess < width else"),
    "rungs_exclusive": ("excess <= threshold * width", "excess < threshold * width"),
    "domain_exclusive": ("not low <= value <= high", "not low < value < high"),
    "unwitnessed_is_good_enough": ('states[name] != "holds"', 'states[name] == "violated"'),
    "weights_forgotten": ("(weight * part for", "(part for"),
}


SEED, CASES = 5, 1000


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the library's sources that ``library.modules`` finds, after the real library was compiled."""
    lean.library()
    shutil.copytree(data_path("lean"), tmp_path / "lean")
    monkeypatch.setattr(library, "data_path", lambda *parts: tmp_path.joinpath(*parts))
    return tmp_path / "lean"


def failing(root: Path, changed: Path, compiled: Path, into: Path) -> set[str]:
    """Compile a copied library from the changed module on; return the theorems of the first module that fails.

    Args:
        root: the copied sources.
        changed: the module that was changed.
        compiled: the real library's compiled modules; those before the changed one are taken from there.
        into: where to compile.
    """
    modules = library.modules()
    for source in modules:
        target = into / source.relative_to(root).with_suffix(".olean")
        target.parent.mkdir(parents=True, exist_ok=True)
        if modules.index(source) < modules.index(changed):
            shutil.copy(compiled / target.relative_to(into), target)
            continue
        arguments = (*lean.OPTIONS, "--json", "-R", str(root), "-o", str(target), str(source))
        finished = lean.run(lean.find(), arguments, stdin=b"", lean_path=into, limits=JUDGE)
        messages = [json.loads(line) for line in finished.stdout.decode().splitlines()]
        lines = [message["pos"]["line"] for message in messages if message["severity"] == "error"]
        if lines or finished.exit_status:
            text = source.read_text("utf-8").splitlines()
            return {name for line in lines if (name := enclosing(text, line))}
    return set()


def enclosing(text: list[str], line: int) -> str:
    """Return the name of the theorem or definition that a line (counted from 1) belongs to."""
    for earlier in reversed(text[:line]):
        if match := re.match(r"(?:theorem|def) (\S+)", earlier):
            return match[1]
    return ""


@pytest.mark.parametrize("name", LEAN_MUTANTS)
def test_a_changed_definition_breaks_a_theorem(name: str, copied: Path, tmp_path: Path) -> None:
    old, new, theorem = LEAN_MUTANTS[name]
    changed = copied / "TBMM" / "Score.lean"
    text = changed.read_text("utf-8")
    assert text.count(old) == 1
    changed.write_text(text.replace(old, new), "utf-8")
    compiled = tmp_path / "compiled"
    assert theorem in failing(copied, changed, real_library(), compiled)


def test_the_copy_itself_compiles(copied: Path, tmp_path: Path) -> None:
    changed = copied / "TBMM" / "Score.lean"
    assert failing(copied, changed, real_library(), tmp_path / "compiled") == set()


def real_library() -> Path:
    """Return the folder of the real library, although ``library.data_path`` may point to a copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "data_path", data_path)
        return lean.library()


# ---------------------------------------------------------------- Python


@pytest.fixture(scope="module")
def score_cases() -> Iterator[ModuleType]:
    """The generator of random cases, which lies beside the property tests."""
    folder = str(Path(__file__).parents[1] / "property")
    sys.path.insert(0, folder)
    import score_cases as module

    yield module
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def right(score_cases: ModuleType) -> list[Any]:
    """Random families as the real score judges them."""
    found: list[Any] = score_cases.families(SEED, CASES)
    return found


def mutated(old: str, new: str) -> ModuleType:
    """Return the score module with a piece of its text replaced."""
    text = Path(str(score_module.__file__)).read_text("utf-8")
    assert text.count(old) == 1
    made = ModuleType("mutated_score")
    exec(compile(text.replace(old, new), "mutated_score.py", "exec"), made.__dict__)
    return made


@pytest.mark.parametrize("name", PYTHON_MUTANTS)
def test_lean_disagrees_with_a_changed_score(name: str, score_cases: ModuleType, right: list[Any]) -> None:
    wrong = score_cases.families(SEED, CASES, mutated(*PYTHON_MUTANTS[name]).score)
    differing = [(ours, other) for ours, other in zip(right, wrong, strict=True) if ours != other]
    assert differing, "no random case tells the mutant from the score"
    ours, other = differing[0]
    assert lean.ask_kernel(*score_cases.lean_text([ours])).accepted
    refused = lean.ask_kernel(*score_cases.lean_text([other]))
    assert "Type mismatch" in refused.reasons[0]
