"""What is printed of exact numbers: exact at any size, finite as floats, short in tables."""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tbmm_env import instances, tasks
from tbmm_env.judge.numeral import DECIMAL_BITS, decimal_text, exact_text, read_exact
from tbmm_env.judge.score import score
from tbmm_env.record import Judgement, Panel
from tbmm_env.report import exact, judgement_json, number, print_judgement, short

TASK = tasks.load("cumcm-2024-a")
HUGE = Fraction(10**5000 + 1, 10**5000 + 3)


def judgement_of(result: Fraction) -> Judgement:
    """Return a judgement whose every exact result is ``result``."""
    panel = official_panel()
    values = dict(panel.anchor)
    states: dict[str, Any] = {spec.id: "holds" for spec in TASK.obligations}
    scored = score(TASK.metrics, panel, values, states, {})
    metrics = tuple(
        dataclasses.replace(entry, verified=dataclasses.replace(entry.verified, score=result))
        for entry in scored.metrics
    )
    scored = dataclasses.replace(
        scored, metrics=metrics, o_eval=result, verified=result, questions=dict.fromkeys(scored.questions, result)
    )
    return Judgement(
        task=TASK.id,
        instance=instances.official(TASK),
        panel_version="1",
        judge_version="1",
        outcome="scored",
        reward=result,
        reason="",
        artifact_sha256="",
        score=scored,
        o_eval_without_exclusions=result,
        questions_gated=scored.questions,
    )


def official_panel() -> Panel:
    """Return the official panel, with baselines that need no replay."""
    baseline = {key: value / 2 for key, value in TASK.anchor.items()}
    return Panel(version="1", references=TASK.references, anchor=TASK.anchor, baseline=baseline)


@pytest.mark.parametrize(
    ("value", "text"),
    [(Fraction(0), "0"), (Fraction(-3), "-3"), (Fraction(1, 3), "1/3"), (Fraction(-7, 2), "-7/2")],
)
def test_small_numbers_are_written_as_ever(value: Fraction, text: str) -> None:
    assert exact_text(value) == text == str(value)


def test_decimal_up_to_the_limit_and_hexadecimal_above() -> None:
    under, over = (1 << DECIMAL_BITS) - 1, 1 << DECIMAL_BITS
    assert exact_text(Fraction(under)) == str(under)
    assert exact_text(Fraction(over)) == hex(over)
    assert exact_text(Fraction(1, over)) == f"1/{over:#x}"


def test_the_size_at_which_python_gives_up() -> None:
    with pytest.raises(ValueError, match="4300 digits"):
        str(HUGE)
    assert read_exact(exact_text(HUGE)) == HUGE
    assert len(exact_text(HUGE)) < 2 * (5000 * 4 // 4)
    assert read_exact(exact_text(-HUGE)) == -HUGE


@given(st.fractions(), st.integers(0, 20_000))
def test_exact_text_is_read_back(value: Fraction, shift: int) -> None:
    for scaled in (value, value * 2**shift, value / 2**shift):
        assert read_exact(exact_text(scaled)) == scaled


@pytest.mark.parametrize("text", ["", "1/", "/2", "1.5", "x", "1/2/3", "0x"])
def test_what_is_not_exact_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        read_exact(text)


def test_every_number_is_a_finite_float() -> None:
    assert number(Fraction(10**5000)) == sys.float_info.max
    assert number(-Fraction(10**5000)) == -sys.float_info.max
    assert number(HUGE) == 1.0
    assert (number(None), exact(None), short(None)) == (None, None, "-")
    assert short(Fraction(10**5000)) == "1.797693135e+308"
    assert decimal_text(Fraction(10**5000)) == "1e+5000"


@pytest.mark.parametrize("result", [Fraction(1, 3), HUGE])
def test_a_judgement_with_results_of_any_size(result: Fraction) -> None:
    value = judgement_json(judgement_of(result))
    names = ("reward", "o_eval", "verified", "o_eval_without_exclusions")
    assert [read_exact(str(value[f"{name}_exact"])) for name in names] == [result] * 4
    assert [value[name] for name in names] == [float(result)] * 4
    assert json.loads(json.dumps(value, allow_nan=False)) == value
    console = Console(file=io.StringIO(), width=160)
    print_judgement(console, value)
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert max(map(len, printed.splitlines())) <= 160
    assert "all, no exclusions" in printed
    assert f"{float(result):.6f}" in printed


def test_multi_reference_is_said() -> None:
    value = judgement_json(judgement_of(Fraction(1)))
    assert isinstance(value["papers"], dict)
    assert value["multi_reference"] is (len(value["papers"]) >= 3)
