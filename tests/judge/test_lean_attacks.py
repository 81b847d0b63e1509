"""Every known way to a false certificate fails for the stated reason, and Lean alone says what is stated."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tbmm_env.data import data_path
from tbmm_env.errors import JudgeError
from tbmm_env.judge import lean
from tbmm_env.judge.child import Finished
from tbmm_env.limits import JUDGE, JudgeLimits

ATTACKS = sorted(path for path in data_path("lean", "attacks").iterdir() if path.is_dir())

pytestmark = pytest.mark.lean


def load(folder: Path) -> tuple[str, dict[str, Any]]:
    expected = tomllib.loads((folder / "expected.toml").read_text("utf-8"))
    return (folder / "attack.lean").read_text("utf-8"), expected


def as_it_comes(text: str, limits: JudgeLimits) -> Finished:
    """Run Lean without our option to finish each proof before the next command: only so is a failed theorem listed."""
    arguments = (*lean.OPTIONS, "--json", "--stdin")
    return lean.run(lean.find(), arguments, stdin=text.encode(), lean_path=lean.library(limits), limits=limits)


def test_there_are_attacks() -> None:
    names = {path.name for path in ATTACKS}
    assert {"wrong_division", "failed_but_listed", "sorry", "axiom", "native_decide", "forged_listing"} <= names


@pytest.mark.parametrize("folder", ATTACKS, ids=lambda path: path.name)
def test_attack_fails_for_the_stated_reason(folder: Path) -> None:
    text, expected = load(folder)
    if expected["outcome"] == "failed":
        with pytest.raises(JudgeError, match=re.escape(expected["reason"])):
            lean.check(text, expected["theorems"])
        return
    result = lean.check(text, expected["theorems"])
    assert not result.accepted
    assert (result.exit_status is None) == (expected["outcome"] == "refused")
    assert expected["reason"] in result.reasons[0]


@pytest.mark.parametrize("folder", ATTACKS, ids=lambda path: path.name)
def test_what_lean_alone_says(folder: Path) -> None:
    """Where Lean alone accepts, refusing the text beforehand is what protects us."""
    text, expected = load(folder)
    kernel = expected["kernel"]
    limits = dataclasses.replace(JUDGE, lean_cpu_s=kernel.get("cpu_s", JUDGE.lean_cpu_s))
    if "ended" in kernel:
        with pytest.raises(JudgeError, match=re.escape(kernel["ended"])):
            lean.ask_kernel(text, expected["theorems"], limits=limits)
        return
    result = lean.ask_kernel(text, expected["theorems"], limits=limits, run_text=as_it_comes)
    assert result.accepted is kernel["accepted"]
    assert kernel.get("reason", "") in "\n".join(result.reasons)
    if kernel.get("listed_without_axioms"):
        assert result.axioms == dict.fromkeys(expected["theorems"], ())
