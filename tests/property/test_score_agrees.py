"""Python's gate and score and the Lean library's are two implementations; they agree on random judgements.

Some are written as the certificates they would get, a namespace for each; their operands are mostly drawn from few
small numbers, so that ties, exact hits of a tolerance and empty bands are frequent. Thousands more, with huge, tiny and
neighbouring decimals, are written by ``score_cases``, which shares no code with the certificate. ``--full`` draws
20,000; ``TBMM_AGREE_CASES`` and ``TBMM_AGREE_SEED`` choose otherwise. Number and seed are printed.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
import score_cases
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tbmm_env.judge import lean
from tbmm_env.judge.certificate import Draft, draft
from tbmm_env.judge.gate import resolve
from tbmm_env.judge.score import reward, score
from tbmm_env.limits import JUDGE
from tbmm_env.record import Panel, ReferenceValue
from tbmm_env.specs import MetricSpec, ObligationSpec

pytestmark = pytest.mark.lean

EXAMPLES = 160
BATCH = 40
CASES = int(os.environ.get("TBMM_AGREE_CASES", "2000"))
FULL_CASES = max(CASES, 20_000)
SEED = int(os.environ.get("TBMM_AGREE_SEED", "2024"))
FAMILIES_A_FILE = 80
PATIENT = dataclasses.replace(JUDGE, lean_wall_s=600.0, lean_cpu_s=600)

small = st.integers(-6, 6).map(lambda n: Fraction(n, 2))
wide = st.one_of(small, st.fractions(-1000, 1000, max_denominator=10**6), st.decimals(-50, 50, places=3).map(Fraction))
natural = st.one_of(
    st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1)]), st.fractions(0, 3, max_denominator=1000)
)


@st.composite
def obligation_specs(draw: st.DrawFn, index: int) -> ObligationSpec:
    form = draw(st.sampled_from(["bound", "equality", "sum", "order", "implication", "count"]))
    listed = draw(st.sampled_from(["answer:xs[*]", "answer:ys[*]", "answer:zs[*]"]))
    one = st.sampled_from([f"answer:{name}" for name in ("a", "b", "c", "d", "absent")])
    ends = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    fields: dict[str, Any] = {}
    terms: tuple[str, ...] = (listed,)
    if form in {"bound", "implication", "count"}:
        fields = {end: draw(one) for end, given_ in zip(("lower", "upper"), ends, strict=True) if given_}
    if form == "equality":
        terms = (draw(one), draw(one))
    elif form == "sum":
        terms = (listed, draw(one), draw(one))
    elif form == "implication":
        fields["when"] = (draw(one), draw(one), draw(one))
    tolerance = Fraction(0) if form == "count" else draw(natural)
    return ObligationSpec(
        id=f"o{index}",
        form=form,
        question="q",
        terms=terms,
        tolerance=tolerance,
        unit="",
        source="arithmetic",
        text="",
        **fields,
    )


@st.composite
def metric_specs(draw: st.DrawFn, index: int, obligations: int) -> MetricSpec:
    shape = draw(st.sampled_from(["linear", "exact", "ladder"]))
    rungs = st.lists(
        st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(1, 10)]), min_size=1, max_size=4
    )
    low, high = draw(st.sampled_from([(-2000, 2000), (-2000, 0), (0, 3)]))
    return MetricSpec(
        key=f"m{index}",
        question=draw(st.sampled_from(["q1", "q2"])),
        unit="",
        kind=draw(st.sampled_from(["replayed", "asked", "replayed", "reported"])) if index else "replayed",
        direction=draw(st.sampled_from(["higher_is_better", "lower_is_better", "target_value", "exact_value"])),
        shape=shape,
        ladder=tuple(draw(rungs)) if shape == "ladder" else (),
        weight=draw(st.sampled_from([Fraction(1), Fraction(3, 10), Fraction(2, 7), Fraction(5)])),
        tolerance=draw(natural),
        grid=Fraction(1, 1000),
        value="replay:x",
        domain=(Fraction(low), Fraction(high)),
        requires=tuple(f"o{k}" for k in draw(st.sets(st.integers(0, obligations - 1), max_size=2)))
        if obligations
        else (),
        reason="",
    )


@st.composite
def judgements(draw: st.DrawFn) -> tuple[Draft, Fraction]:
    specs = [draw(obligation_specs(index)) for index in range(draw(st.integers(0, 6)))]
    answer: Mapping[str, Any] = {
        **{name: draw(wide) for name in "abcd"},
        "xs": draw(st.lists(small, max_size=3)),
        "ys": sorted(draw(st.lists(small, max_size=12))),
        "zs": draw(st.lists(wide, max_size=12)),
    }
    obligations = resolve(specs, answer, {}, {})
    metrics = [draw(metric_specs(index, len(specs))) for index in range(draw(st.integers(1, 4)))]
    keys = [spec.key for spec in metrics]
    votes = draw(st.sets(st.tuples(st.sampled_from(["p", "q", "r"]), st.sampled_from(keys)), max_size=8))
    panel = Panel(
        version="1",
        references=tuple(
            ReferenceValue(paper=paper, metric=key, value=draw(wide), resolution=draw(natural))
            for paper, key in sorted(votes)
        ),
        anchor={key: draw(wide) for key in keys},
        baseline={key: draw(wide) for key in keys},
    )
    values = {key: draw(wide) for key in keys if draw(st.integers(0, 9))}
    result = score(metrics, panel, values, {entry.spec.id: entry.state for entry in obligations}, {})
    final = reward(obligations, result)
    return draft(metrics, panel, values, obligations, result, final), final


def together(drafts: list[Draft]) -> tuple[str, list[str]]:
    """Put certificates into one text, each in its own namespace."""
    lines, theorems = ["prelude", "import TBMM"], []
    for index, one in enumerate(drafts):
        space = f"TBMM.Case{index}"
        head, *body = one.text.splitlines()[2:]
        assert head == f"namespace {lean.NAMESPACE}"
        lines += [f"namespace {space}", *body, f"end {space}"]
        theorems += [name.replace(lean.NAMESPACE, space) for name in one.theorems]
    return "\n".join([*lines, ""]), theorems


def drawn(examples: int) -> list[tuple[Draft, Fraction]]:
    """Draw judgements."""
    found: list[tuple[Draft, Fraction]] = []

    @settings(max_examples=examples, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(judgements())
    def collect(judgement: tuple[Draft, Fraction]) -> None:
        found.append(judgement)

    collect()
    return found


def test_lean_computes_what_python_computes() -> None:
    drafts = [one for one, _ in drawn(EXAMPLES)]
    assert len(drafts) >= EXAMPLES * 9 // 10
    states = "".join(one.text for one in drafts)
    assert all(word in states for word in ("holds_0", "violated_", ".unwitnessed", ".ladder", ".exact", ".implication"))
    for start in range(0, len(drafts), BATCH):
        batch = drafts[start : start + BATCH]
        assert all(lean.refusals(one.text) == () for one in batch)
        result = lean.ask_kernel(*together(batch))
        assert result.accepted, (result.reasons[:3], together(batch)[0])


def test_a_reward_that_is_a_little_off_is_noticed_in_every_case() -> None:
    wrong = []
    for one, final in drawn(20):
        right = f"TBMM.reward gate anchor papers) {final.numerator} {final.denominator})"
        off = final + Fraction(1, 10**30)
        assert right in one.text
        text = one.text.replace(right, f"TBMM.reward gate anchor papers) {off.numerator} {off.denominator})")
        wrong.append(dataclasses.replace(one, text=text))
    result = lean.ask_kernel(*together(wrong))
    assert sum("ype mismatch" in error for error in result.errors) == len(wrong)


# ---------------------------------------------------------------- in volume


def agree(seed: int, cases: int) -> str:
    """Have Lean recompute random cases, thousands a file; return what was seen."""
    drawn = score_cases.families(seed, cases)
    for start in range(0, len(drawn), FAMILIES_A_FILE):
        batch = drawn[start : start + FAMILIES_A_FILE]
        result = lean.ask_kernel(*score_cases.lean_text(batch), limits=PATIENT)
        assert result.accepted, (f"seed {seed}, families from {start}", result.reasons[:3])
    judged = [case for family in drawn for case in family.cases]
    seen = Counter(f"{entry.spec.form} {entry.state}" for case in judged for entry in case.obligations)
    seen.update(f"{spec.shape} {spec.direction}" for family in drawn for spec in family.metrics for _ in family.cases)
    seen["O-Eval 0"] = sum(case.o_eval == 0 for case in judged)
    seen["O-Eval 1"] = sum(case.o_eval == 1 for case in judged)
    seen["O-Eval between"] = len(judged) - seen["O-Eval 0"] - seen["O-Eval 1"]
    seen["reward above 0"] = sum(case.reward > 0 for case in judged)
    for form in score_cases.FORMS:
        assert all(seen[f"{form} {state}"] for state in score_cases.CODES), (form, seen)
    for shape in ("linear", "exact", "ladder"):
        assert all(seen[f"{shape} {direction}"] for direction in score_cases.DIRECTIONS), (shape, seen)
    assert min(seen["O-Eval 0"], seen["O-Eval 1"], seen["O-Eval between"], seen["reward above 0"]) > len(judged) // 20
    return f"{len(judged)} cases, seed {seed}, no disagreement; {dict(sorted(seen.items()))}"


def test_lean_agrees_in_volume(capsys: pytest.CaptureFixture[str]) -> None:
    said = agree(SEED, CASES)
    with capsys.disabled():
        print(f"\nPython and Lean: {said}")


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_lean_agrees_on_twenty_thousand(capsys: pytest.CaptureFixture[str]) -> None:
    said = agree(SEED + 1, FULL_CASES)
    with capsys.disabled():
        print(f"\nPython and Lean: {said}")


def test_one_result_that_is_a_little_off_fails_its_family() -> None:
    drawn = [score_cases.a_little_off(family, index) for index, family in enumerate(score_cases.families(SEED, 150))]
    result = lean.ask_kernel(*score_cases.lean_text(drawn), limits=PATIENT)
    assert sum("Type mismatch" in error for error in result.errors) == len(drawn)


def test_a_case_is_a_function_of_its_seed() -> None:
    first, second = (score_cases.lean_text(score_cases.families(7, 50)) for _ in range(2))
    assert first == second
    assert first != score_cases.lean_text(score_cases.families(8, 50))
