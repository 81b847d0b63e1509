"""Python's gate and score and the Lean library's are two implementations; they agree on random judgements.

Lean sees them in batches, a namespace for each judgement. Operands are mostly drawn from few small numbers, so that
ties, exact hits of a tolerance and empty bands are frequent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tbmm_env.judge import lean
from tbmm_env.judge.certificate import Draft, draft
from tbmm_env.judge.gate import resolve
from tbmm_env.judge.score import reward, score
from tbmm_env.record import MetricSpec, ObligationSpec, Panel, ReferenceValue

pytestmark = pytest.mark.lean

EXAMPLES = 400
BATCH = 50

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
    assert sum("Type mismatch" in error for error in result.errors) == len(wrong)
