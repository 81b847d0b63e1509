"""Certified searches over one variable: the least value of a function and its first zero.

The function comes with a bound of its slope at every sample. An interval [a, b] is dismissed only when no value in it
can be below what is looked for: ``(g(a) + g(b) - L (b - a)) / 2`` with L the larger bound of its two ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from .chain import Array
from .collision import CAP_M, Gap

SPACING_M = 0.2
"""First sampling distance."""

MAX_SAMPLES = 40_000
"""Samples of the first scan; longer paths get a wider first spacing, never a weaker certificate."""

FINEST_M = 1e-7
"""Intervals shorter than this are not divided any more; what they could hide is below a micrometre."""

RESOLUTION_M = 5e-7
"""The certified search for a least value stops when nothing can be this much lower, half the tolerance of the gate;
nested samples then refine it further."""

Function = Callable[[Array], Gap]


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals with the function at both ends (value and slope bound)."""

    left: Array
    right: Array
    at_left: Gap
    at_right: Gap

    @classmethod
    def of(cls, at: Array, gap: Gap) -> Intervals:
        """Intervals between neighbouring samples."""
        value, slope = gap.value, gap.slope
        return cls(at[:-1], at[1:], Gap(value[:-1], slope[:-1]), Gap(value[1:], slope[1:]))

    def lowest(self) -> Array:
        """Lower bound of the function on every interval."""
        slope = np.maximum(self.at_left.slope, self.at_right.slope)
        return np.asarray(0.5 * (self.at_left.value + self.at_right.value - slope * (self.right - self.left)))

    def keep(self, chosen: NDArray[np.bool_]) -> Intervals:
        """The chosen intervals."""
        left, right = self.at_left, self.at_right
        return Intervals(
            self.left[chosen],
            self.right[chosen],
            Gap(left.value[chosen], left.slope[chosen]),
            Gap(right.value[chosen], right.slope[chosen]),
        )

    def split(self, function: Function) -> Intervals:
        """Both halves of every interval, in order."""
        middle = 0.5 * (self.left + self.right)
        at = function(middle)

        def weave(one: Array, two: Array) -> Array:
            return np.stack([one, two], axis=1).ravel()

        return Intervals(
            weave(self.left, middle),
            weave(middle, self.right),
            Gap(weave(self.at_left.value, at.value), weave(self.at_left.slope, at.slope)),
            Gap(weave(at.value, self.at_right.value), weave(at.slope, self.at_right.slope)),
        )


def first_scan(function: Function, length_m: float) -> Intervals:
    """Samples the function on [0, ``length_m``] at the first spacing."""
    number = int(min(max(np.ceil(length_m / SPACING_M), 1), MAX_SAMPLES)) + 1
    at = np.linspace(0.0, length_m, number)
    return Intervals.of(at, function(at))


def first_zero(function: Function, length_m: float) -> float | None:
    """First point of [0, ``length_m``] where the function is not positive.

    Args:
        function: value and slope bound at an array of points.
        length_m: end of the domain, m.

    Returns:
        The point, to about 1e-12 m; None when the function stays positive.
    """
    active = first_scan(function, length_m)
    if active.at_left.value[0] <= 0.0:
        return 0.0
    while True:
        low = np.flatnonzero(active.at_right.value <= 0.0)
        order = np.arange(active.left.size)
        active = active.keep((active.lowest() <= 0.0) & (order <= (low[0] if low.size else order.size)))
        if active.left.size == 0:
            return None
        if float(np.max(active.right - active.left)) < FINEST_M:
            break
        active = active.split(function)
    if active.at_right.value[-1] > 0.0:
        return None

    def value(at: float) -> float:
        return float(function(np.array([at])).value[0])

    left, right = float(active.left[-1]), float(active.right[-1])
    return float(brentq(value, left, right, xtol=1e-13)) if value(left) > 0.0 else left


def polish(function: Function, centres: Array, half_width_m: Array, length_m: float) -> tuple[float, float]:
    """Refines several brackets of a least value by nested samples.

    Args:
        function: value and slope bound at an array of points.
        centres: centres of the brackets.
        half_width_m: their half widths.
        length_m: end of the domain [0, ``length_m``].

    Returns:
        The least value found and its point.
    """
    best_value, best_at = np.inf, 0.0
    offsets = np.linspace(-1.0, 1.0, 33)
    for _ in range(11):
        at = np.clip(centres[:, None] + half_width_m[:, None] * offsets, 0.0, length_m)
        value = function(at.ravel()).value.reshape(at.shape)
        index = np.argmin(value, axis=1)
        rows = np.arange(centres.size)
        centres, half_width_m = at[rows, index], half_width_m / 12.0
        row = int(np.argmin(value[rows, index]))
        if value[row, index[row]] < best_value:
            best_value, best_at = float(value[row, index[row]]), float(centres[row])
    return best_value, best_at


def least(function: Function, length_m: float, below: float = np.inf) -> tuple[float, float]:
    """Least value of the function on [0, ``length_m``].

    Branch and bound until nothing can lie much below the least sample. "Much" is ``RESOLUTION_M``, and nested samples
    around what is left then make the value exact; it is two per cent of the depth for a deep negative value, and half
    of what a value has above ``CAP_M / 2``, where nothing is decided.

    Args:
        function: value and slope bound at an array of points.
        length_m: end of the domain, m.
        below: only values below this are of interest; others are certified to be no lower.

    Returns:
        The least value and a point where it is taken; ``below`` and NaN when no value is below it.
    """
    active = first_scan(function, length_m)
    values = np.append(active.at_left.value, active.at_right.value[-1])
    bound, at = below, np.nan
    if float(np.min(values)) < below:
        bound, at = float(np.min(values)), float(np.append(active.left, active.right[-1])[np.argmin(values)])
    close = np.array([at])
    while True:
        spare = max(RESOLUTION_M, -0.02 * bound, 0.5 * (min(bound, CAP_M) - 0.5 * CAP_M))
        active = active.keep((active.lowest() < min(bound, CAP_M) - spare) & (active.right - active.left > FINEST_M))
        if active.left.size == 0:
            break
        active = active.split(function)
        index = int(np.argmin(active.at_left.value))
        if active.at_left.value[index] < bound:
            bound, at = float(active.at_left.value[index]), float(active.left[index])
        close = np.append(active.left[active.at_left.value <= bound + 2.0 * spare], at)
    if np.isnan(at) or spare > RESOLUTION_M:
        return bound, at
    centres, widths = _clusters(close)
    return min(polish(function, centres, widths, length_m), (bound, at))


def _clusters(points: Array, distance_m: float = 0.05) -> tuple[Array, Array]:
    """Centres and half widths of groups of points that lie closer than ``distance_m``."""
    points = np.sort(points)
    cuts = np.flatnonzero(np.diff(points) > distance_m) + 1
    groups = np.split(points, cuts)
    centres = np.array([0.5 * (group[0] + group[-1]) for group in groups])
    return centres, np.array([0.5 * (group[-1] - group[0]) + 1e-3 for group in groups])
