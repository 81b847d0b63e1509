"""The gate: operands, the six forms, exactness at the limit, sentences."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbmm_env.errors import BadTask
from tbmm_env.judge.gate import operand, resolve
from tbmm_env.judge.numeral import decimal_text
from tbmm_env.record import Obligation
from tbmm_env.specs import Form, ObligationSpec

ANSWER: dict[str, Any] = {
    "q1": {
        "xs": [Fraction(1), Fraction(5, 2), Fraction(3)],
        "rows": [{"a": Fraction(1)}, {"a": Fraction(2), "b": "x"}],
    },
    "q2": {"end_s": Fraction(500), "yes": True, "word": "seven", "none": [], "odd": [Fraction(1), "2"]},
    "grid": [[Fraction(1), Fraction(2)], [Fraction(3)]],
}
REPLAY = {"first_overlap_time_s": Fraction("412.4738377")}
PARAMETERS: dict[str, Any] = {"pitch_m": 0.55, "rows": [0.1, 0.2], "on": True, "n": 3, "deep": {"x": 1e-7}}


def spec(form: Form, *terms: str, tolerance: str = "0", **fields: Any) -> ObligationSpec:
    return ObligationSpec(
        id="it",
        form=form,
        question="q2",
        terms=terms,
        tolerance=Fraction(tolerance),
        unit=fields.pop("unit", "s"),
        source="physics",
        text="",
        **fields,
    )


def decide(declared: ObligationSpec, answer: Mapping[str, Any] | None = ANSWER) -> Obligation:
    (obligation,) = resolve([declared], answer, REPLAY, PARAMETERS)
    assert obligation.spec is declared
    return obligation


class TestOperands:
    @pytest.mark.parametrize(
        ("text", "values"),
        [
            ("answer:q2.end_s", ["500"]),
            ("answer:q1.xs[1]", ["5/2"]),
            ("answer:q1.xs[*]", ["1", "5/2", "3"]),
            ("answer:q1.rows[*].a", ["1", "2"]),
            ("answer:grid[*][*]", ["1", "2", "3"]),
            ("answer:grid[0][1]", ["2"]),
            ("answer:q2.none[*]", []),
            ("replay:first_overlap_time_s", ["412.4738377"]),
            ("parameter:pitch_m", ["0.55"]),
            ("parameter:rows[*]", ["0.1", "0.2"]),
            ("parameter:deep.x", ["0.0000001"]),
            ("parameter:n", ["3"]),
            ("-1.5e-3", ["-0.0015"]),
            ("7", ["7"]),
        ],
    )
    def test_values_are_exact(self, text: str, values: list[str]) -> None:
        assert operand(text, ANSWER, REPLAY, PARAMETERS) == tuple(map(Fraction, values))

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("answer:q3.x", "q3 is absent"),
            ("answer:q1.xs[3]", "q1.xs[3] is absent"),
            ("answer:q2.end_s.deeper", "q2.end_s.deeper is absent"),
            ("answer:q2.end_s[*]", "q2.end_s is not a list"),
            ("answer:q1.rows[*].b", "q1.rows[0].b is absent"),
            ("answer:q2.yes", "q2.yes is not a number"),
            ("answer:q2.word", "q2.word is not a number"),
            ("answer:q2.odd[*]", "q2.odd[1] is not a number"),
            ("answer:q1", "q1 is not a number"),
            ("replay:speed", "the judge could not compute speed"),
        ],
    )
    def test_absent_evidence_is_unwitnessed(self, text: str, why: str) -> None:
        assert operand(text, ANSWER, REPLAY, PARAMETERS) is None
        found = decide(spec("bound", text, lower="0"))
        assert (found.state, found.reason, found.terms) == ("unwitnessed", f"no evidence: {why}", ())

    def test_no_answer_at_all(self) -> None:
        assert decide(spec("bound", "answer:q1.xs[*]", lower="0"), None).state == "unwitnessed"
        assert decide(spec("bound", "replay:first_overlap_time_s", lower="0"), None).state == "holds"

    @pytest.mark.parametrize(
        "text",
        [
            "answer:",
            "answer:a..b",
            "answer:a[",
            "answer:a[-1]",
            "answer:a[*",
            "answers:a",
            "x",
            "1/2",
            "0x1",
            "1e9999",
            "nan",
        ],
    )
    def test_a_miswritten_operand_is_a_bad_task(self, text: str) -> None:
        with pytest.raises(BadTask, match="operand"):
            operand(text, ANSWER, REPLAY, PARAMETERS)

    @pytest.mark.parametrize("text", ["parameter:missing", "parameter:on", "parameter:rows", "parameter:rows[2]"])
    def test_parameters_are_ours(self, text: str) -> None:
        """An absent parameter is no evidence withheld by the agent, so it must not weaken the gate silently."""
        with pytest.raises(BadTask, match=f"operand {text!r}".replace("[", r"\[")):
            operand(text, ANSWER, REPLAY, PARAMETERS)

    def test_parameters_that_are_not_finite(self) -> None:
        with pytest.raises(BadTask, match="not a finite number"):
            operand("parameter:x", ANSWER, REPLAY, {"x": float("inf")})


class TestForms:
    def test_bound_sentence(self) -> None:
        found = decide(spec("bound", "answer:q2.end_s", upper="replay:first_overlap_time_s", tolerance="0.00001"))
        assert found.state == "violated"
        assert found.reason.startswith("q2.end_s = 500 s must be <= first_overlap_time_s = 412.4738377 s (+ 1e-05 s)")
        assert found.terms == (Fraction(500),)
        assert (found.lower, found.upper) == (None, Fraction("412.4738377"))

    @pytest.mark.parametrize(
        ("upper", "tolerance", "state"),
        [
            ("3", "0", "holds"),
            ("2.9", "0.1", "holds"),
            ("2.9", "0.09999999999999999999", "violated"),
            ("2", "0", "violated"),
        ],
    )
    def test_upper(self, upper: str, tolerance: str, state: str) -> None:
        assert decide(spec("bound", "answer:q1.xs[*]", upper=upper, tolerance=tolerance)).state == state

    @pytest.mark.parametrize(("lower", "state"), [("1", "holds"), ("1.00000000000000000001", "violated")])
    def test_lower(self, lower: str, state: str) -> None:
        assert decide(spec("bound", "answer:q1.xs[*]", lower=lower)).state == state

    def test_bound_names_the_first_value_and_counts(self) -> None:
        found = decide(spec("bound", "answer:q1.xs[*]", lower="0", upper="2"))
        assert found.reason == "q1.xs[1] = 2.5 s must be <= 2 s; it is off by 0.5 s (so for 2 of 3 values)"

    def test_bound_of_nothing_holds(self) -> None:
        assert decide(spec("bound", "answer:q2.none[*]", lower="0")).state == "holds"

    @pytest.mark.parametrize(
        ("y", "tolerance", "state"),
        [
            ("500", "0", "holds"),
            ("499", "1", "holds"),
            ("501", "1", "holds"),
            ("501.1", "1", "violated"),
            ("498", "1", "violated"),
        ],
    )
    def test_equality(self, y: str, tolerance: str, state: str) -> None:
        found = decide(spec("equality", "answer:q2.end_s", y, tolerance=tolerance))
        assert found.state == state
        assert found.terms == (Fraction(500), Fraction(y))

    @pytest.mark.parametrize(
        ("total", "tolerance", "state"), [("6.5", "0", "holds"), ("6.6", "0.1", "holds"), ("6.4", "0.09", "violated")]
    )
    def test_sum(self, total: str, tolerance: str, state: str) -> None:
        found = decide(spec("sum", "answer:q1.xs[*]", total, tolerance=tolerance))
        assert found.state == state
        assert found.terms[-1] == Fraction(total)

    @pytest.mark.parametrize(
        ("terms", "tolerance", "state"),
        [
            (("answer:q1.xs[*]",), "0", "holds"),
            (("answer:q1.xs[*]", "3"), "0", "holds"),
            (("answer:q1.xs[*]", "2.9"), "0.1", "holds"),
            (("answer:q1.xs[*]", "2.9"), "0.05", "violated"),
            (("answer:q2.none[*]",), "0", "holds"),
        ],
    )
    def test_order(self, terms: tuple[str, ...], tolerance: str, state: str) -> None:
        assert decide(spec("order", *terms, tolerance=tolerance)).state == state

    def test_order_sentence(self) -> None:
        found = decide(spec("order", "3", "answer:q1.xs[*]"))
        assert found.reason == "3 s must be <= q1.xs[0] = 1 s; it is off by 2 s (so for 1 of 3 neighbours)"

    @pytest.mark.parametrize(
        ("when", "upper", "state"),
        [(("3", "3", "4"), "3", "holds"), (("3", "3", "4"), "2", "violated"), (("3", "3.1", "4"), "2", "holds")],
    )
    def test_implication(self, when: tuple[str, str, str], upper: str, state: str) -> None:
        assert decide(spec("implication", "answer:q1.xs[*]", when=when, upper=upper)).state == state

    def test_implication_asks_for_nothing_unless_its_condition_is_met(self) -> None:
        asked = spec("implication", "answer:absent", when=("answer:q2.end_s", "0", "500"), lower="0")
        assert decide(asked).state == "unwitnessed"
        unasked = spec("implication", "answer:absent", when=("answer:q2.end_s", "0", "499"), lower="0")
        assert decide(unasked).reason == "nothing is asked: 0 <= q2.end_s = 500 <= 499 is not so"
        unknown = spec("implication", "answer:q1.xs[*]", when=("answer:absent", "0", "499"), lower="0")
        assert decide(unknown).state == "unwitnessed"

    @pytest.mark.parametrize(
        ("term", "lower", "upper", "state"),
        [
            ("answer:q1.xs[*]", "3", "3", "holds"),
            ("answer:q1.xs[*]", "4", None, "violated"),
            ("answer:q1.xs[*]", None, "2", "violated"),
            ("answer:q1.rows[*]", "2", "2", "holds"),
            ("answer:q2.none[*]", "1", None, "violated"),
            ("answer:q9[*]", "0", None, "unwitnessed"),
        ],
    )
    def test_count(self, term: str, lower: str | None, upper: str | None, state: str) -> None:
        found = decide(spec("count", term, lower=lower, upper=upper, unit=""))
        assert found.state == state

    @pytest.mark.parametrize(
        ("declared", "message"),
        [
            (spec("bound", "answer:q2.end_s"), "neither end of the range is given"),
            (spec("bound", lower="0"), "there are no terms"),
            (spec("bound", "7", lower="answer:q1.xs[*]"), "has a wildcard where one value is needed"),
            (spec("equality", "1"), "an equality has two terms, not 1"),
            (spec("equality", "answer:q1.xs[*]", "1"), "has a wildcard where one value is needed"),
            (spec("sum", "1"), "at least one term and the total, not 1"),
            (spec("implication", "1", lower="0"), "an implication needs `when`"),
            (spec("count", "answer:q1.xs[*]", lower="0", tolerance="1"), "a count has no tolerance"),
            (spec("bound", "1", lower="0", tolerance="-1"), "tolerance -1 is negative"),
        ],
    )
    def test_a_misfit_is_a_bad_task(self, declared: ObligationSpec, message: str) -> None:
        with pytest.raises(BadTask, match=f"obligation it: .*{message}"):
            decide(declared)

    def test_ids_are_unique(self) -> None:
        declared = spec("bound", "1", lower="0")
        with pytest.raises(BadTask, match=r"obligations have one id: \['it'\]"):
            resolve([declared, declared], ANSWER, REPLAY, PARAMETERS)

    def test_less_than_a_double_can_tell(self) -> None:
        just_over = {"x": Fraction(1) + Fraction(1, 10**30)}
        found = decide(spec("bound", "answer:x", upper="1"), just_over)
        assert found.state == "violated"
        assert found.reason == "x = 1 s must be <= 1 s; it is off by 1e-30 s"


class TestDecimalText:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("0", "0"),
            ("-0.5", "-0.5"),
            ("412.4738377", "412.4738377"),
            ("0.00001", "1e-05"),
            ("0.0001", "0.0001"),
            ("100", "100"),
            ("123456789012", "123456789012"),
            ("1/3", "0.333333333333"),
            ("2/3", "0.666666666667"),
            ("0.9999999999999", "1"),
            ("999999999999.7", "1000000000000"),
            ("100000000000000", "100000000000000"),
            ("1e15", "1e+15"),
            ("-1.25e20", "-1.25e+20"),
            ("1.5e-30", "1.5e-30"),
        ],
    )
    def test_examples(self, value: str, text: str) -> None:
        assert decimal_text(Fraction(value)) == text

    @given(st.integers(-(10**12) + 1, 10**12 - 1), st.integers(-40, 40))
    def test_exact_up_to_twelve_digits(self, digits: int, exponent: int) -> None:
        value = digits * Fraction(10) ** exponent
        assert Fraction(decimal_text(value)) == value

    @given(st.fractions())
    def test_rounds_as_decimal_does(self, value: Fraction) -> None:
        shown = Fraction(decimal_text(value))
        assert abs(shown - value) * 2 <= abs(value) * Fraction(1, 10**11)
        assert len(Decimal(decimal_text(value)).normalize().as_tuple().digits) <= 12
