"""Sampling plans of question 1: exact binomial risks, the least sample size, and a simple plan that always holds.

A plan (n, c) inspects n units and counts the bad ones, X. In the situation ``reject`` the lot is refused when X > c, in
the situation ``accept`` it is taken when X <= c; so both decide by X <= c. X is binomial, as the lot is large.

==========  =============================  ==================================
situation   nominal risk, rate p0          alternative risk, rate p1
==========  =============================  ==================================
reject      P(X > c), at most alpha        p1 > p0: P(X <= c), at most beta
accept      P(X <= c), at most alpha       p1 < p0: P(X > c), at most beta
==========  =============================  ==================================

Write ``low`` and ``high`` for the two rates in order. Both situations ask P(X > c | low) <= r and
P(X <= c | high) <= s. For a fixed c the first holds up to some n, as P(X > c) grows with n, and the second from some n
on, as P(X <= c) shrinks. So the feasible n are a range ``least(c) .. most(c)``; ``least`` grows with c, and the first c
whose range is not empty gives the least n (Guenther 1969, Journal of Quality Technology 1, 105-109).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from scipy.special import bdtr, bdtrc

MOST_UNITS: Final = 5000
"""Largest sample size and acceptance number the answer schema takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What a plan must keep: rates and risks in (0, 1); ``rejecting`` tells the situation.

    Attributes:
        nominal: p0, the rate the supplier names.
        nominal_risk: alpha, the most probable wrong decision at p0.
        alternative: p1.
        alternative_risk: beta, the most probable wrong decision at p1.
        rejecting: whether the situation is ``reject``.
    """

    nominal: Fraction
    nominal_risk: Fraction
    alternative: Fraction
    alternative_risk: Fraction
    rejecting: bool

    @property
    def low(self) -> tuple[Fraction, Fraction]:
        """The smaller rate, and the largest probability of X > c at it."""
        if self.rejecting:
            return self.nominal, self.nominal_risk
        return self.alternative, self.alternative_risk

    @property
    def high(self) -> tuple[Fraction, Fraction]:
        """The larger rate, and the largest probability of X <= c at it."""
        if self.rejecting:
            return self.alternative, self.alternative_risk
        return self.nominal, self.nominal_risk


def at_most(c: int, n: int, rate: Fraction) -> Fraction:
    """Return P(X <= c) of a binomial X with n units, exact, whatever integers c and n >= 0 are."""
    if c < 0:
        return Fraction(0)
    if c >= n:
        return Fraction(1)
    bad, good = rate.numerator, rate.denominator - rate.numerator
    if 2 * c > n:  # the other tail is the shorter one
        return 1 - at_most(n - c - 1, n, 1 - rate)
    # Horner over k = c, c - 1, ... 0 of C(n, k) bad^k good^(c - k), all integers
    term, total = 1, 1
    for k in range(1, c + 1):
        term = term * (n - k + 1) * bad // k
        total = total * good + term
    return Fraction(total * good ** (n - c), rate.denominator**n)


def risks(demand: Demand, n: int, c: int) -> tuple[Fraction, Fraction]:
    """Return the probabilities of a wrong decision at the nominal and at the alternative rate, exact."""
    nominal, alternative = at_most(c, n, demand.nominal), at_most(c, n, demand.alternative)
    return (1 - nominal, alternative) if demand.rejecting else (nominal, 1 - alternative)


def keeps(demand: Demand, n: int, c: int) -> bool:
    """Whether a plan keeps both risks."""
    nominal, alternative = risks(demand, n, c)
    return nominal <= demand.nominal_risk and alternative <= demand.alternative_risk


def least_plan(demand: Demand) -> tuple[int, int] | None:
    """Return the plan (n, c) of the least sample size, and of those the least c; None above :data:`MOST_UNITS`.

    Found with doubles (the tails' relative error is about 1e-12); an instance is refused when a risk that decides about
    it is nearly that close to its limit, see :func:`clearance`.
    """
    found = _search(demand)
    return None if found is None else found[:2]


def clearance(demand: Demand) -> float:
    """Return how close a risk that decides about the least plan comes to its limit; 0 when there is no plan."""
    found = _search(demand)
    return 0.0 if found is None else found[2]


@lru_cache(maxsize=256)
def _search(demand: Demand) -> tuple[int, int, float] | None:
    """The least plan, and the least distance of a probability that was compared from what it was compared with."""
    (low, r), (high, s) = demand.low, demand.high
    closest = 1.0
    start = 1
    for c in range(MOST_UNITS):
        n = _least_units(c, max(start, c + 1), float(high), float(s))
        if n is None:
            return None
        above = float(bdtrc(c, n, float(low)))
        compared = [above - float(r), float(bdtr(c, n, float(high))) - float(s)]
        if n > c + 1:
            compared.append(float(bdtr(c, n - 1, float(high))) - float(s))
        closest = min(closest, *map(abs, compared))
        if above <= float(r):
            return n, c, closest
        start = n
    return None


def _least_units(c: int, start: int, rate: float, risk: float) -> int | None:
    """The least n >= start with P(X <= c) <= risk; None above :data:`MOST_UNITS`."""
    step = 1
    while start + step < MOST_UNITS and bdtr(c, start + step, rate) > risk:
        step *= 2
    first, last = start, min(start + step, MOST_UNITS)
    if bdtr(c, last, rate) > risk:
        return None
    while first < last:
        middle = (first + last) // 2
        if bdtr(c, middle, rate) <= risk:
            last = middle
        else:
            first = middle + 1
    return last


def simple_plan(demand: Demand) -> tuple[int, int]:
    """Return a plan by Chernoff's bound at the middle of the two rates; it keeps both risks, with units to spare.

    ``P(X >= n m | low) <= exp(-n D(m, low))`` and ``P(X <= n m | high) <= exp(-n D(m, high))``, D being the
    Kullback-Leibler divergence of two coins (Chernoff 1952, Hoeffding 1963); c is the largest integer below n m.
    """
    (low, r), (high, s) = demand.low, demand.high
    middle = (low + high) / 2
    need = max(
        math.log(1 / float(r)) / _divergence(float(middle), float(low)),
        math.log(1 / float(s)) / _divergence(float(middle), float(high)),
    )
    n = math.ceil(need)
    return n, math.ceil(n * middle) - 1


def _divergence(x: float, p: float) -> float:
    return x * math.log(x / p) + (1 - x) * math.log((1 - x) / (1 - p))
