"""What ``task.toml`` declares: metrics and obligations; frozen, without behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Direction = Literal["higher_is_better", "lower_is_better", "target_value", "exact_value"]
Shape = Literal["linear", "exact", "ladder"]
MetricKind = Literal["replayed", "asked", "reported"]
Form = Literal["bound", "equality", "sum", "order", "implication", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """One scored number, as declared in ``task.toml``.

    Attributes:
        key: name, with the unit as suffix.
        question: the question it belongs to, for sub-scores.
        unit: unit of value, references, tolerance and band.
        kind: ``replayed``, ``asked`` or ``reported``.
        direction: what is better.
        shape: ``linear``, ``exact`` or ``ladder``.
        ladder: for ``ladder``: thresholds as shares of the band, falling; the score is the share not exceeded.
        weight: positive; renormalised over the metrics a reference reports.
        tolerance: shortfall that is forgiven, in ``unit``.
        grid: power of ten, at most tolerance / 10; replayed values are rounded half-even to it.
        value: operand that yields the value: ``answer:PATH`` or ``replay:NAME``.
        truth: operand of the judge's own number, for ``asked`` metrics; else None.
        domain: inclusive range in ``unit`` outside of which the score is 0.
        requires: ids of obligations that must hold.
        reason: why it is scored so.
    """

    key: str
    question: str
    unit: str
    kind: MetricKind
    direction: Direction
    shape: Shape
    ladder: tuple[Fraction, ...] = ()
    weight: Fraction
    tolerance: Fraction
    grid: Fraction
    value: str
    truth: str | None = None
    domain: tuple[Fraction, Fraction]
    requires: tuple[str, ...] = ()
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObligationSpec:
    """One decidable statement that a feasible answer must satisfy, as declared in ``task.toml``.

    Operands are strings: ``answer:PATH`` (wildcard ``[*]`` allowed), ``replay:NAME``, ``parameter:NAME`` or a decimal.

    Forms, t being the tolerance:
        bound: lower - t <= x <= upper + t for every x of ``terms``; either end may be absent.
        equality: |x - y| <= t for the two ``terms``.
        sum: |x1 + ... + xn - total| <= t, ``total`` being the last of ``terms``.
        order: x1 <= x2 + t, x2 <= x3 + t, ...
        implication: if lower <= x1 <= upper (``when``), then the bound on the other ``terms``.
        count: lower <= number of values that ``terms`` yields <= upper (no tolerance).
    """

    id: str
    form: Form
    question: str
    terms: tuple[str, ...]
    lower: str | None = None
    upper: str | None = None
    when: tuple[str, str, str] | None = None
    tolerance: Fraction = Fraction(0)
    unit: str
    source: Literal["statement", "physics", "arithmetic"]
    text: str
    tolerance_reason: str = ""
