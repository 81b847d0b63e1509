"""The score: hand-worked examples, limits of each rule, and properties over random panels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbmm_env.errors import BadTask
from tbmm_env.judge.gate import resolve
from tbmm_env.judge.score import band, reward, score, shape_score, shortfall
from tbmm_env.record import Panel, ReferenceValue, Score, State
from tbmm_env.specs import Direction, MetricSpec, ObligationSpec


def metric(key: str = "a_m", **fields: Any) -> MetricSpec:
    defaults: dict[str, Any] = {
        "question": "q1",
        "unit": "m",
        "kind": "replayed",
        "direction": "higher_is_better",
        "shape": "linear",
        "weight": Fraction(1),
        "tolerance": Fraction(0),
        "grid": Fraction(1, 1000),
        "value": f"replay:{key}",
        "domain": (Fraction(-1000), Fraction(1000)),
        "reason": "",
    }
    return MetricSpec(key=key, **(defaults | fields))


def panel(
    *references: tuple[str, str, str, str],
    anchor: str = "100",
    baseline: str = "50",
    keys: tuple[str, ...] = ("a_m", "b_m"),
) -> Panel:
    return Panel(
        version="1",
        references=tuple(
            ReferenceValue(paper=paper, metric=key, value=Fraction(value), resolution=Fraction(resolution))
            for paper, key, value, resolution in references
        ),
        anchor=dict.fromkeys(keys, Fraction(anchor)),
        baseline=dict.fromkeys(keys, Fraction(baseline)),
    )


def scored(
    value: str | None,
    spec: MetricSpec | None = None,
    against: Panel | None = None,
    states: Mapping[str, State] | None = None,
) -> Score:
    values = {} if value is None else {"a_m": Fraction(value)}
    return score([spec or metric()], against or panel(), values, states or {}, {})


class TestOneValue:
    @pytest.mark.parametrize(
        ("direction", "value", "expected"),
        [
            ("higher_is_better", "75", "25"),
            ("higher_is_better", "110", "-10"),
            ("lower_is_better", "110", "10"),
            ("lower_is_better", "75", "-25"),
            ("target_value", "75", "25"),
            ("target_value", "110", "10"),
            ("exact_value", "110", "10"),
        ],
    )
    def test_shortfall(self, direction: Direction, value: str, expected: str) -> None:
        assert shortfall(direction, Fraction(100), Fraction(value)) == Fraction(expected)

    @pytest.mark.parametrize(
        ("reference", "baseline", "tolerance", "expected"),
        [
            ("100", "50", "1", "50"),
            ("100", "98", "1", "2"),
            ("100", "98.0001", "1", "5"),
            ("100", "100", "1", "5"),
            ("-100", "-99", "1", "5"),
            ("0", "0.001", "1", "0.001"),
            ("0", "0", "0.25", "0.25"),
            ("0", "0", "0", "1"),
        ],
    )
    def test_band(self, reference: str, baseline: str, tolerance: str, expected: str) -> None:
        assert band(Fraction(reference), Fraction(baseline), Fraction(tolerance)) == Fraction(expected)

    @pytest.mark.parametrize(
        ("excess", "linear", "exact", "ladder"),
        [
            ("0", "1", "1", "1"),
            ("0.1", "0.99", "0", "2/3"),
            ("0.11", "0.989", "0", "1/3"),
            ("1", "0.9", "0", "1/3"),
            ("1.01", "0.899", "0", "0"),
            ("10", "0", "0", "0"),
            ("11", "0", "0", "0"),
        ],
    )
    def test_shapes(self, excess: str, linear: str, exact: str, ladder: str) -> None:
        rungs = (Fraction("0.1"), Fraction("0.01"), Fraction("0.001"))
        for shape, expected in (("linear", linear), ("exact", exact), ("ladder", ladder)):
            spec = metric(shape=shape, ladder=rungs if shape == "ladder" else ())
            assert shape_score(spec, Fraction(excess), Fraction(10)) == Fraction(expected)

    @pytest.mark.parametrize(
        ("tolerance", "resolution", "value", "expected"),
        [
            ("1", "0", "99", "1"),
            ("1", "0", "98", "0.98"),
            ("1", "2", "98", "1"),
            ("0", "2", "97", "0.98"),
            ("3", "2", "97", "1"),
        ],
    )
    def test_the_larger_of_tolerance_and_resolution_is_forgiven(
        self, tolerance: str, resolution: str, value: str, expected: str
    ) -> None:
        result = scored(value, metric(tolerance=Fraction(tolerance)), panel(("p", "a_m", "100", resolution)))
        assert result.o_eval == Fraction(expected)
        assert result.metrics[0].references[0].tolerance == max(Fraction(tolerance), Fraction(resolution))


class TestCounting:
    @pytest.mark.parametrize(
        ("value", "state", "reason"),
        [
            (None, "holds", "there is no value"),
            ("-0.001", "holds", "-0.001 m is outside of 0 .. 120 m"),
            ("120.001", "holds", "120.001 m is outside of 0 .. 120 m"),
            ("110", "violated", "of what it requires, g is violated"),
            ("110", "unwitnessed", "of what it requires, g is unwitnessed"),
        ],
    )
    def test_what_does_not_count_scores_nothing_and_says_why(
        self, value: str | None, state: State, reason: str
    ) -> None:
        spec = metric(domain=(Fraction(0), Fraction(120)), requires=("g",))
        against = panel(("p", "a_m", "100", "0"))
        values = {"b_m": Fraction(100)} | ({} if value is None else {"a_m": Fraction(value)})
        result = score([spec, metric("b_m", weight=Fraction(3))], against, values, {"g": state}, {})
        assert not result.metrics[0].counted
        assert result.metrics[0].reason == f"a_m: {reason}; it scores 0"
        assert result.o_eval == 0
        assert result.verified == Fraction(3, 4)

    @pytest.mark.parametrize("value", ["0", "120"])
    def test_the_domain_includes_its_ends(self, value: str) -> None:
        assert scored(value, metric(domain=(Fraction(0), Fraction(120)))).metrics[0].counted

    def test_claims_are_kept_and_not_scored(self) -> None:
        without = score([metric()], panel(), {"a_m": Fraction(80)}, {}, {})
        claimed = score([metric()], panel(), {"a_m": Fraction(80)}, {}, {"a_m": Fraction(100)})
        assert claimed.metrics[0].claimed == 100
        assert claimed.o_eval == without.o_eval


class TestPanel:
    def test_weights_are_renormalised_over_what_a_paper_reports(self) -> None:
        specs = [metric(weight=Fraction(1)), metric("b_m", weight=Fraction(3), question="q2")]
        against = panel(("p", "a_m", "100", "0"), ("p", "b_m", "100", "0"), ("q", "a_m", "150", "0"))
        result = score(specs, against, {"a_m": Fraction(75), "b_m": Fraction(100)}, {}, {})
        assert result.per_reference == {"p": Fraction(7, 8), "q": Fraction(1, 4)}
        assert result.o_eval == Fraction(9, 16)
        assert result.verified == Fraction(7, 8)
        assert result.questions == {"q1": Fraction(1, 2), "q2": Fraction(1)}

    def test_an_empty_panel_falls_back_to_the_anchor(self) -> None:
        result = scored("75")
        assert result.per_reference == {}
        assert result.o_eval == result.verified == Fraction(1, 2)

    def test_reported_metrics_carry_no_weight(self) -> None:
        specs = [metric(), metric("b_m", kind="reported")]
        against = panel(("p", "a_m", "100", "0"), ("q", "b_m", "100", "0"), keys=("a_m",))
        result = score(specs, against, {"a_m": Fraction(75), "b_m": Fraction(0)}, {}, {})
        assert result.per_reference == {"p": Fraction(1, 2)}
        assert result.questions == {"q1": Fraction(1, 2)}
        assert "unverified" in result.metrics[1].reason

    @pytest.mark.parametrize(
        ("specs", "against", "message"),
        [
            ([metric()], panel(("p", "c_m", "1", "0")), "paper p reports 'c_m', which is no metric"),
            ([metric()], panel(("p", "a_m", "1", "0"), ("p", "a_m", "2", "0")), "paper p reports a_m twice"),
            ([metric()], panel(("p", "a_m", "1", "-1")), "negative resolution -1"),
            ([metric("c_m")], panel(), "metric c_m has no anchor"),
            ([metric(), metric()], panel(), "metric a_m is declared twice"),
            ([metric(weight=Fraction(0))], panel(), "has weight 0; it must be positive"),
            ([metric(tolerance=Fraction(-1))], panel(), "has tolerance -1; it must not be negative"),
            ([metric(domain=(Fraction(1), Fraction(0)))], panel(), "has domain 1 .. 0, which is empty"),
            ([metric(shape="ladder")], panel(), "has a ladder and another shape"),
            ([metric(ladder=(Fraction(1),))], panel(), "has a ladder and another shape"),
            ([metric(requires=("g",))], panel(), "requires 'g', which is no obligation"),
            ([metric(kind="reported")], panel(), "no metric carries weight"),
            ([], panel(), "no metric carries weight"),
        ],
    )
    def test_what_does_not_fit_is_a_bad_task(self, specs: list[MetricSpec], against: Panel, message: str) -> None:
        with pytest.raises(BadTask, match=message):
            score(specs, against, {"a_m": Fraction(1)}, {}, {})


def test_reward_is_zero_when_anything_is_violated() -> None:
    def gate(upper: str) -> list[Any]:
        spec = ObligationSpec(
            id="g", form="bound", question="q1", terms=("answer:x",), upper=upper, unit="", source="physics", text=""
        )
        return list(resolve([spec, dataclasses.replace(spec, id="h", terms=("answer:y",))], {"x": Fraction(2)}, {}, {}))

    result = scored("75")
    assert reward(gate("2"), result) == Fraction(1, 2)
    assert reward(gate("1"), result) == 0
    assert reward([], result) == Fraction(1, 2)


numbers = st.fractions(-200, 200, max_denominator=1000)
specs = st.builds(
    lambda direction, shape, tolerance: metric(
        direction=direction,
        shape=shape,
        tolerance=tolerance,
        ladder=(Fraction(1, 10), Fraction(1, 100)) if shape == "ladder" else (),
    ),
    st.sampled_from(["higher_is_better", "lower_is_better", "target_value", "exact_value"]),
    st.sampled_from(["linear", "exact", "ladder"]),
    st.fractions(0, 5, max_denominator=100),
)


def one_reference(value: Fraction, baseline: Fraction) -> Panel:
    return Panel(
        version="1",
        references=(ReferenceValue(paper="p", metric="a_m", value=value, resolution=Fraction(0)),),
        anchor={"a_m": value},
        baseline={"a_m": baseline},
    )


class TestProperties:
    @given(specs, numbers, numbers, numbers)
    def test_between_0_and_1_and_1_at_the_reference(
        self, spec: MetricSpec, reference: Fraction, baseline: Fraction, value: Fraction
    ) -> None:
        against = one_reference(reference, baseline)
        assert 0 <= score([spec], against, {"a_m": value}, {}, {}).o_eval <= 1
        assert score([spec], against, {"a_m": reference}, {}, {}).o_eval == 1

    @given(specs, numbers, numbers, numbers, numbers)
    def test_never_falls_as_the_shortfall_shrinks(
        self, spec: MetricSpec, reference: Fraction, baseline: Fraction, x: Fraction, y: Fraction
    ) -> None:
        against = one_reference(reference, baseline)
        worse, better = sorted((x, y), key=lambda value: shortfall(spec.direction, reference, value), reverse=True)
        low, high = (score([spec], against, {"a_m": value}, {}, {}).o_eval for value in (worse, better))
        assert low <= high
