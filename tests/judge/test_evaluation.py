"""Measures over runs: hand-worked tables with both sides of every threshold, and properties."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbmm_env.errors import UsageError
from tbmm_env.judge.evaluation import (
    HEADROOM,
    TaskResult,
    clip,
    gated_questions,
    headline,
    is_multi_reference,
    multi_bo,
    robust_bo_eval,
    single_reference_o_eval,
)
from tbmm_env.record import Outcome, Score

shares = st.fractions(0, 1, max_denominator=1000)
FAILED: list[Outcome] = ["infeasible", "malformed", "missing"]


def score_of(papers: int) -> Score:
    return Score(
        metrics=(),
        per_reference={f"p{index}": Fraction(1) for index in range(papers)},
        o_eval=Fraction(1),
        verified=Fraction(1),
        questions={},
    )


class TestSingleReference:
    @pytest.mark.parametrize(
        ("result", "reference", "expected"),
        [
            ("0", "0.8", "0"),
            ("0.4", "0.8", "1/2"),
            ("0.799", "0.8", "799/800"),
            ("0.8", "0.8", "1"),
            ("0.9", "0.8", "1"),
        ],
    )
    def test_table(self, result: str, reference: str, expected: str) -> None:
        assert single_reference_o_eval(Fraction(result), Fraction(reference)) == Fraction(expected)

    @pytest.mark.parametrize(
        ("result", "reference", "said"),
        [
            ("0.5", "0", "reference is 0; a reference solution must have"),
            ("-0.1", "1", "result is -0.1"),
            ("0.5", "1.1", "reference is 1.1"),
        ],
    )
    def test_out_of_range(self, result: str, reference: str, said: str) -> None:
        with pytest.raises(UsageError, match=said):
            single_reference_o_eval(Fraction(result), Fraction(reference))


class TestRobustBo:
    @pytest.mark.parametrize(
        ("result", "reference", "baseline", "expected"),
        [
            ("0.6", "0.9", "0.5", "1/4"),
            ("0.9", "0.9", "0.5", "1"),
            ("1", "0.9", "0.5", "1"),
            ("0.5", "0.9", "0.5", "0"),
            ("0.1", "0.9", "0.5", "-1"),
            ("0", "0.9", "0.5", "-1"),
            # room of exactly 0.10: the plain difference; a little more: the quotient
            ("0.55", "0.6", "0.5", "0.05"),
            ("0.55", "0.6001", "0.5", "500/1001"),
            # a reference solution below the baseline
            ("0.9", "0.4", "0.5", "0.4"),
            ("0", "0.4", "1", "-1"),
        ],
    )
    def test_table(self, result: str, reference: str, baseline: str, expected: str) -> None:
        assert robust_bo_eval("scored", Fraction(result), Fraction(reference), Fraction(baseline)) == Fraction(expected)

    @pytest.mark.parametrize("outcome", FAILED)
    def test_nothing_feasible_is_the_least(self, outcome: Outcome) -> None:
        assert robust_bo_eval(outcome, Fraction(1), Fraction(1), Fraction(0)) == -1

    @given(shares, shares, shares)
    def test_range(self, result: Fraction, reference: Fraction, baseline: Fraction) -> None:
        assert -1 <= robust_bo_eval("scored", result, reference, baseline) <= 1


class TestMultiBo:
    @pytest.mark.parametrize(
        ("o_eval", "baseline", "expected"),
        [
            ("0.5", "0.5", "1"),
            ("0.75", "0.5", "3/2"),
            ("1", "0.5", "2"),
            ("0.25", "0.5", "1/2"),
            ("0", "0.5", "0"),
            ("0", "0.6", "0"),
            ("0", "0", "1"),
            # headroom of exactly 0.10: the quotient
            ("0.95", "0.9", "3/2"),
            ("1", "0.9", "2"),
            ("0", "0.9", "0"),
            # just under: the plain difference, at most 0.10 either way
            ("0.95", "0.9001", "1.0499"),
            ("1", "0.9001", "1.0999"),
            ("0.8001", "0.9001", "0.9"),
            ("0.8002", "0.9001", "0.9001"),
            ("0", "0.9001", "0.9"),
            # no headroom at all
            ("1", "1", "1"),
            ("0.9", "1", "0.9"),
        ],
    )
    def test_table(self, o_eval: str, baseline: str, expected: str) -> None:
        assert multi_bo("scored", Fraction(o_eval), Fraction(baseline)) == Fraction(expected)

    @pytest.mark.parametrize("outcome", FAILED)
    @pytest.mark.parametrize("baseline", ["0", "0.5", "1"])
    def test_nothing_feasible_counts_minus_one(self, outcome: Outcome, baseline: str) -> None:
        assert multi_bo(outcome, Fraction(1), Fraction(baseline)) == -1

    @given(shares, shares, shares)
    def test_in_range_rising_and_above_nothing(self, x: Fraction, y: Fraction, baseline: Fraction) -> None:
        low, high = (multi_bo("scored", value, baseline) for value in sorted((x, y)))
        assert multi_bo("missing", Fraction(0), baseline) < 0 <= low <= high <= 2
        assert multi_bo("scored", baseline, baseline) == 1
        if 1 - baseline < HEADROOM:
            assert abs(low - 1) <= HEADROOM

    @pytest.mark.parametrize(
        ("o_eval", "baseline", "said"), [("1.1", "0", "o_eval is 1.1"), ("1", "-1", "baseline is")]
    )
    def test_out_of_range(self, o_eval: str, baseline: str, said: str) -> None:
        with pytest.raises(UsageError, match=said):
            multi_bo("scored", Fraction(o_eval), Fraction(baseline))


class TestHeadline:
    TASKS = {"a": False, "b": False, "c": True}
    BASELINES = {"a": Fraction(1, 2), "b": Fraction(1, 2)}

    def test_means_over_what_is_not_contested(self) -> None:
        results = {
            "a": TaskResult(outcome="scored", o_eval=Fraction(1)),
            "b": TaskResult(outcome="infeasible", o_eval=Fraction(1)),
            "c": TaskResult(outcome="scored", o_eval=Fraction(1, 3)),
        }
        found = headline(self.TASKS, results, self.BASELINES)
        assert (found.tasks, found.reward, found.multi_bo) == (2, Fraction(1, 2), Fraction(1, 2))
        assert (found.contested, found.absent, found.surplus) == (("c",), (), ())

    def test_an_absent_result_stays_in_the_denominator(self) -> None:
        results = {"a": TaskResult(outcome="scored", o_eval=Fraction(3, 4))}
        found = headline(self.TASKS, results, self.BASELINES)
        assert (found.tasks, found.reward, found.multi_bo) == (2, Fraction(3, 8), Fraction(1, 4))
        assert found.absent == ("b",)

    @given(st.dictionaries(st.sampled_from(["c", "d", "e"]), shares), shares)
    def test_surplus_and_contested_results_change_no_mean(self, more: dict[str, Fraction], value: Fraction) -> None:
        own = {"a": TaskResult(outcome="scored", o_eval=value)}
        surplus = {task: TaskResult(outcome="scored", o_eval=share) for task, share in more.items()}
        plain, padded = (headline(self.TASKS, entries, self.BASELINES) for entries in (own, own | surplus))
        assert (plain.tasks, plain.reward, plain.multi_bo) == (padded.tasks, padded.reward, padded.multi_bo)
        assert padded.surplus == tuple(sorted(set(more) - {"c"}))

    @pytest.mark.parametrize(
        ("tasks", "baselines", "said"),
        [
            ({"c": True}, {}, "there is no task that is not contested"),
            ({}, {}, "there is no task that is not contested"),
            ({"a": False, "b": False}, {"b": Fraction(0)}, "task a has no baseline run; 1 of 2 have none"),
        ],
    )
    def test_refusals(self, tasks: dict[str, bool], baselines: dict[str, Fraction], said: str) -> None:
        with pytest.raises(UsageError, match=said):
            headline(tasks, {}, baselines)


@pytest.mark.parametrize(("papers", "expected"), [(0, False), (2, False), (3, True), (4, True)])
def test_multi_reference_is_said_of_three_papers_or_more(papers: int, expected: bool) -> None:
    assert is_multi_reference(score_of(papers)) is expected


class TestGatedQuestions:
    SCORES = {"q1": Fraction(1), "q2": Fraction(1, 2), "q3": Fraction(0)}

    @pytest.mark.parametrize(
        ("violated", "expected"),
        [
            ({}, ("1", "1/2", "0")),
            ({"x": "q1"}, ("0", "1/2", "0")),
            ({"x": "q1", "y": "q1"}, ("0", "1/2", "0")),
            ({"x": "q1", "y": "q2"}, ("0", "0", "0")),
            ({"x": "all"}, ("0", "0", "0")),
        ],
    )
    def test_table(self, violated: dict[str, str], expected: tuple[str, ...]) -> None:
        assert tuple(gated_questions(self.SCORES, violated).values()) == tuple(map(Fraction, expected))


@given(shares, shares, st.fractions())
def test_clip_is_nearest(x: Fraction, y: Fraction, value: Fraction) -> None:
    low, high = sorted((x, y))
    clipped = clip(value, low, high)
    assert low <= clipped <= high
    assert clipped == value or abs(clipped - value) == min(abs(low - value), abs(high - value))
