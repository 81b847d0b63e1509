"""Measures over whole runs, in exact rationals: one task's gain over a baseline run, and headline means. Pure.

With R the O-Eval of an answer, O that of a reference solution, F or f_t that of a named baseline run on task t, and
O_t that of the answer to task t::

    single-reference O-Eval = clamp(R / O, 0, 1)
    Robust BO-Eval          = clip((R - F) / (O - F), -1, 1)            when O - F > 0.10
                              clip(R - F, -1, 1)                        otherwise
    Multi-BO(t)             = 1 + clip((O_t - f_t) / (1 - f_t), -1, 1)  when 1 - f_t >= 0.10
                              1 + clip(O_t - f_t, -0.10, 0.10)          otherwise (low headroom)
                              -1                                        when nothing feasible was left

Every formula and constant is defined here, for this project. The first two are for comparison with scores against one
reference solution; they divide by what one solution reached, so they say less the worse that solution is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from tbmm_env.errors import UsageError
from tbmm_env.judge.numeral import decimal_text
from tbmm_env.record import Outcome, Score

HEADROOM = Fraction(10, 100)
"""Defined here: a baseline with less than this left to gain (Multi-BO), or a reference solution not more than this
above it (Robust BO-Eval), makes a quotient that is mostly noise; the plain difference takes its place."""

NOTHING_FEASIBLE = Fraction(-1)
"""Defined here: what a missing, malformed or infeasible answer counts in BO measures; below every feasible answer's
Multi-BO, and the least Robust BO-Eval."""

MULTI_REFERENCE_PAPERS = 3
"""Defined here: a score is called multi-reference when at least so many papers survive the audit."""

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """What one task adds to headline means.

    Attributes:
        outcome: of the answer.
        o_eval: O-Eval in [0, 1] before the gate; 0 when there is no score.
    """

    outcome: Outcome
    o_eval: Fraction

    @property
    def reward(self) -> Fraction:
        """O-Eval behind the gate: 0 unless the answer is feasible."""
        return self.o_eval if self.outcome == "scored" else _ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """Means over the tasks of a benchmark that are not contested.

    Attributes:
        tasks: the denominator: how many declared tasks are not contested, answered or not.
        reward: mean reward in [0, 1]; a task without a result adds 0.
        multi_bo: mean Multi-BO in [-1, 2]; a task without a result adds -1.
        contested: declared tasks left out, sorted.
        absent: tasks in the denominator without a result, sorted.
        surplus: results that belong to no declared task and were ignored, sorted.
    """

    tasks: int
    reward: Fraction
    multi_bo: Fraction
    contested: tuple[str, ...]
    absent: tuple[str, ...]
    surplus: tuple[str, ...]


def single_reference_o_eval(result: Fraction, reference: Fraction) -> Fraction:
    """Return clamp(R / O, 0, 1), defined here.

    Args:
        result: R, O-Eval of the answer in [0, 1].
        reference: O, O-Eval of the reference solution in (0, 1].

    Raises:
        UsageError: an O-Eval is out of its range.
    """
    _in_range("result", result)
    _in_range("reference", reference)
    if reference == 0:
        raise UsageError("reference is 0; a reference solution must have an O-Eval above 0")
    return clip(result / reference, _ZERO, _ONE)


def robust_bo_eval(outcome: Outcome, result: Fraction, reference: Fraction, baseline: Fraction) -> Fraction:
    """Return Robust BO-Eval in [-1, 1], defined here; -1 when nothing feasible was left.

    Args:
        outcome: of the answer.
        result: R, O-Eval of the answer in [0, 1].
        reference: O, O-Eval of the reference solution in [0, 1].
        baseline: F, O-Eval of the baseline run in [0, 1].

    Raises:
        UsageError: an O-Eval is out of its range.
    """
    for name, value in (("result", result), ("reference", reference), ("baseline", baseline)):
        _in_range(name, value)
    if outcome != "scored":
        return NOTHING_FEASIBLE
    room = reference - baseline
    gain = result - baseline
    return clip(gain / room if room > HEADROOM else gain, -_ONE, _ONE)


def multi_bo(outcome: Outcome, o_eval: Fraction, baseline: Fraction) -> Fraction:
    """Return Multi-BO of one task, defined here: in [0, 2] for a feasible answer, else -1.

    Args:
        outcome: of the answer.
        o_eval: O_t, O-Eval of the answer in [0, 1].
        baseline: f_t, O-Eval of the named baseline run in [0, 1].

    Raises:
        UsageError: an O-Eval is out of its range.
    """
    _in_range("o_eval", o_eval)
    _in_range("baseline", baseline)
    if outcome != "scored":
        return NOTHING_FEASIBLE
    room = 1 - baseline
    gain = o_eval - baseline
    if room < HEADROOM:
        return 1 + clip(gain, -HEADROOM, HEADROOM)
    return 1 + clip(gain / room, -_ONE, _ONE)


def is_multi_reference(score: Score) -> bool:
    """Whether enough papers survive the audit to call a score multi-reference."""
    return len(score.per_reference) >= MULTI_REFERENCE_PAPERS


def headline(
    contested: Mapping[str, bool], results: Mapping[str, TaskResult], baselines: Mapping[str, Fraction]
) -> Headline:
    """Return means over declared tasks, with a denominator that no result can change; defined here.

    Args:
        contested: for every task of the benchmark, whether its papers disagree on the finding itself. Contested tasks
            are in no mean.
        results: by task id; what belongs to no declared task is ignored.
        baselines: f_t of every task that is not contested.

    Raises:
        UsageError: every task is contested, or a baseline is absent or out of its range.
    """
    counted = sorted(task for task, disputed in contested.items() if not disputed)
    if not counted:
        raise UsageError("there is no task that is not contested; a headline mean needs at least one")
    if without := [task for task in counted if task not in baselines]:
        raise UsageError(f"task {without[0]} has no baseline run; {len(without)} of {len(counted)} have none")
    nothing = TaskResult(outcome="missing", o_eval=_ZERO)
    entries = [(results.get(task, nothing), baselines[task]) for task in counted]
    return Headline(
        tasks=len(counted),
        reward=sum((entry.reward for entry, _ in entries), _ZERO) / len(counted),
        multi_bo=sum((multi_bo(entry.outcome, entry.o_eval, base) for entry, base in entries), _ZERO) / len(counted),
        contested=tuple(sorted(task for task, disputed in contested.items() if disputed)),
        absent=tuple(task for task in counted if task not in results),
        surplus=tuple(sorted(set(results) - set(contested))),
    )


def gated_questions(questions: Mapping[str, Fraction], violated: Mapping[str, str]) -> dict[str, Fraction]:
    """Return question scores with each question's own gate; defined here, and never the reward.

    A question with a violated obligation scores 0 and the others keep their score. A violated obligation of a
    question that is not scored concerns the whole answer: every question scores 0.

    Args:
        questions: score in [0, 1] of every scored question.
        violated: the question of every violated obligation, by obligation id.
    """
    closed = set(violated.values())
    everything = bool(closed - set(questions))
    return {name: _ZERO if everything or name in closed else value for name, value in questions.items()}


def clip(value: Fraction, low: Fraction, high: Fraction) -> Fraction:
    """Return the number in [low, high] that is nearest to ``value``."""
    return max(low, min(high, value))


def _in_range(name: str, value: Fraction) -> None:
    if not 0 <= value <= 1:
        raise UsageError(f"{name} is {decimal_text(value)}; an O-Eval is in [0, 1]")
