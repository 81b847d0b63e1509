"""The score of an answer against a panel, in exact rationals. Pure; the Lean library computes the same by itself.

Against a reference O with baseline B, for a value x::

    shortfall = O - x (higher is better), x - O (lower is better), |x - O| (target, exact)
    tol       = max(tolerance of the metric, resolution of the reference)
    e         = max(0, shortfall - tol)
    band b    = |O - B|; 5 % of |O| when that is under 2 % of |O|; when O = B = 0: tol, or one unit when tol = 0
    score     = max(0, 1 - e / b)                  linear
                1 if e = 0 else 0                  exact
                share of thresholds h, e <= h * b  ladder
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from tbmm_env.errors import BadTask
from tbmm_env.judge.numeral import decimal_text
from tbmm_env.record import MetricScore, Obligation, Panel, ReferenceScore, ReferenceValue, Score, State
from tbmm_env.specs import Direction, MetricSpec

ANCHOR = "anchor"
"""Stands where a paper id stands in the score against our own reproduced value."""

NARROW = Fraction(2, 100)
"""A band under this share of the reference is too narrow to tell answers apart ..."""

WIDENED = Fraction(5, 100)
"""... and becomes this share of it."""

_ZERO, _ONE = Fraction(0), Fraction(1)


def score(
    metrics: Sequence[MetricSpec],
    panel: Panel,
    values: Mapping[str, Fraction],
    states: Mapping[str, State],
    claims: Mapping[str, Fraction],
) -> Score:
    """Score values against every paper of a panel and against the anchor.

    A value that is absent, out of its domain, or whose required obligation does not hold scores 0 and keeps its place
    in the denominator. Metrics of kind ``reported`` carry no weight. R of a paper is the weighted mean over the
    metrics it reports; O-Eval the mean of R over papers, or ``verified`` when no paper reports anything.

    Args:
        metrics: as declared.
        panel: references, anchor and baseline; for ``asked`` metrics the anchor is the judge's own number.
        values: by metric key, already on the metric's grid; absent when the answer yields none.
        states: of every obligation, by id.
        claims: what the agent stated, by metric key; kept, never scored.

    Raises:
        BadTask: metrics and panel do not fit each other, or a declaration is not sound.
    """
    _check_metrics(metrics, states)
    by_metric = _references(metrics, panel)
    scored = tuple(
        _metric_score(spec, panel, by_metric[spec.key], values.get(spec.key), states, claims.get(spec.key))
        for spec in metrics
    )
    weighed = [entry for entry in scored if entry.spec.kind != "reported"]
    if not weighed:
        raise BadTask("no metric carries weight: all are of kind 'reported'")
    verified = _mean([(entry.spec.weight, entry.verified.score) for entry in weighed])
    per_reference = {
        paper: _mean(parts)
        for paper in sorted({entry.paper for entry in panel.references})
        if (parts := _parts(weighed, paper))
    }
    o_eval = _mean([(_ONE, mean) for mean in per_reference.values()]) if per_reference else verified
    questions = {
        question: _mean([(e.spec.weight, e.verified.score) for e in weighed if e.spec.question == question])
        for question in dict.fromkeys(entry.spec.question for entry in weighed)
    }
    return Score(metrics=scored, per_reference=per_reference, o_eval=o_eval, verified=verified, questions=questions)


def reward(obligations: Sequence[Obligation], scored: Score) -> Fraction:
    """Return the reward: 0 when any obligation is violated, else O-Eval."""
    violated = any(entry.state == "violated" for entry in obligations)
    return _ZERO if violated else scored.o_eval


def shortfall(direction: Direction, reference: Fraction, value: Fraction) -> Fraction:
    """Return how far a value falls short of a reference; negative beyond it."""
    if direction == "higher_is_better":
        return reference - value
    if direction == "lower_is_better":
        return value - reference
    return abs(value - reference)


def band(reference: Fraction, baseline: Fraction, tolerance: Fraction) -> Fraction:
    """Return the band b, which is positive.

    Args:
        reference: O.
        baseline: B, the value of the declared trivial answer.
        tolerance: tol; the band when reference and baseline are both 0 (one unit when it is 0 too).
    """
    width = abs(reference - baseline)
    if width < NARROW * abs(reference):
        return WIDENED * abs(reference)
    return width or tolerance or _ONE


def shape_score(spec: MetricSpec, excess: Fraction, width: Fraction) -> Fraction:
    """Return the score in [0, 1] of an excess shortfall e >= 0 in a band b > 0."""
    if spec.shape == "linear":
        return max(_ZERO, 1 - excess / width)
    if spec.shape == "exact":
        return _ONE if excess == 0 else _ZERO
    passed = sum(1 for threshold in spec.ladder if excess <= threshold * width)
    return Fraction(passed, len(spec.ladder))


# ---------------------------------------------------------------- parts


def _check_metrics(metrics: Sequence[MetricSpec], states: Mapping[str, State]) -> None:
    keys = [spec.key for spec in metrics]
    for spec in metrics:
        faults = {
            "is declared twice": keys.count(spec.key) > 1,
            f"has weight {decimal_text(spec.weight)}; it must be positive": spec.weight <= 0,
            f"has tolerance {decimal_text(spec.tolerance)}; it must not be negative": spec.tolerance < 0,
            f"has domain {' .. '.join(map(decimal_text, spec.domain))}, which is empty": spec.domain[0]
            > spec.domain[1],
            "has a ladder and another shape": bool(spec.ladder) != (spec.shape == "ladder"),
            "has a negative threshold": any(threshold < 0 for threshold in spec.ladder),
        }
        faults |= {f"requires {name!r}, which is no obligation": name not in states for name in spec.requires}
        for fault, found in faults.items():
            if found:
                raise BadTask(f"metric {spec.key} {fault}")


def _references(metrics: Sequence[MetricSpec], panel: Panel) -> dict[str, list[ReferenceValue]]:
    by_metric: dict[str, list[ReferenceValue]] = {spec.key: [] for spec in metrics}
    seen = set()
    for entry in panel.references:
        if entry.metric not in by_metric:
            raise BadTask(f"paper {entry.paper} reports {entry.metric!r}, which is no metric")
        if (entry.paper, entry.metric) in seen:
            raise BadTask(f"paper {entry.paper} reports {entry.metric} twice")
        if entry.resolution < 0:
            raise BadTask(
                f"paper {entry.paper} reports {entry.metric} with negative resolution {decimal_text(entry.resolution)}"
            )
        seen.add((entry.paper, entry.metric))
        by_metric[entry.metric].append(entry)
    for spec in metrics:
        for name, known in (("anchor", panel.anchor), ("baseline", panel.baseline)):
            if spec.kind != "reported" and spec.key not in known:
                raise BadTask(f"metric {spec.key} has no {name}")
    return by_metric


def _metric_score(
    spec: MetricSpec,
    panel: Panel,
    references: Sequence[ReferenceValue],
    value: Fraction | None,
    states: Mapping[str, State],
    claimed: Fraction | None,
) -> MetricScore:
    lost = _why_not_counted(spec, value, states)
    counting = None if lost else value
    baseline = panel.baseline.get(spec.key, _ZERO)
    anchor = panel.anchor.get(spec.key, _ZERO)
    verified = _against(spec, ANCHOR, anchor, baseline, _ZERO, value, counting)
    return MetricScore(
        spec=spec,
        value=value,
        claimed=claimed,
        counted=not lost,
        verified=verified,
        references=tuple(
            _against(spec, entry.paper, entry.value, baseline, entry.resolution, value, counting)
            for entry in references
        ),
        reason=f"{spec.key}: {lost}; it scores 0" if lost else _sentence(spec, verified, value),
    )


def _against(
    spec: MetricSpec,
    paper: str,
    reference: Fraction,
    baseline: Fraction,
    resolution: Fraction,
    value: Fraction | None,
    counting: Fraction | None,
) -> ReferenceScore:
    tolerance = max(spec.tolerance, resolution)
    width = band(reference, baseline, tolerance)
    missed = _ZERO if value is None else shortfall(spec.direction, reference, value)
    excess = max(_ZERO, missed - tolerance)
    return ReferenceScore(
        paper=paper,
        reference=reference,
        tolerance=tolerance,
        band=width,
        shortfall=missed,
        score=_ZERO if counting is None else shape_score(spec, excess, width),
    )


def _why_not_counted(spec: MetricSpec, value: Fraction | None, states: Mapping[str, State]) -> str:
    if value is None:
        return "there is no value"
    low, high = spec.domain
    if not low <= value <= high:
        return f"{_said(value, spec)} is outside of {decimal_text(low)} .. {_said(high, spec)}"
    unmet = [f"{name} is {states[name]}" for name in spec.requires if states[name] != "holds"]
    return f"of what it requires, {', '.join(unmet)}" if unmet else ""


def _sentence(spec: MetricSpec, against: ReferenceScore, value: Fraction | None) -> str:
    assert value is not None
    if spec.kind == "reported":
        return f"{spec.key} = {_said(value, spec)} is unverified and carries no weight"
    return (
        f"{spec.key} = {_said(value, spec)} against our {_said(against.reference, spec)}: shortfall"
        f" {_said(against.shortfall, spec)}, {_said(against.tolerance, spec)} forgiven, in a band of"
        f" {_said(against.band, spec)} scores {decimal_text(against.score)}"
    )


def _said(number: Fraction, spec: MetricSpec) -> str:
    return f"{decimal_text(number)} {spec.unit}".rstrip()


def _parts(weighed: Sequence[MetricScore], paper: str) -> list[tuple[Fraction, Fraction]]:
    return [(entry.spec.weight, ref.score) for entry in weighed for ref in entry.references if ref.paper == paper]


def _mean(parts: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    total = sum((weight for weight, _ in parts), _ZERO)
    return sum((weight * part for weight, part in parts), _ZERO) / total
