"""The chain of handles on the incoming spiral.

The spiral is ``r = b * theta`` with ``b = pitch / (2 pi)``; the chain moves clockwise inwards, so ``theta`` falls along
the motion and every follower sits at a larger angle than its leader. All functions are vectorised over positions of
the leader; angles are radians, lengths metres.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

MAX_ITERATIONS = 80
"""Newton steps with bisection as a fallback; 80 halvings of pi reach below one unit in the last place."""


def arc_length(theta: Array, b: Array | float) -> Array:
    """Length of the spiral from its centre to ``theta``.

    Source: integral of ``sqrt(r^2 + r'^2)``, ``b / 2 * (theta * sqrt(1 + theta^2) + asinh(theta))``.

    Args:
        theta: angles >= 0, any shape.
        b: growth of the radius per radian, m.

    Returns:
        Lengths in m, shape of ``theta``.
    """
    return np.asarray(0.5 * b * (theta * np.sqrt(1.0 + theta * theta) + np.arcsinh(theta)))


def angle_at(length_m: Array, b: Array | float) -> Array:
    """Inverse of :func:`arc_length` by Newton steps on a convex function.

    Args:
        length_m: lengths >= 0 from the centre, m, any shape.
        b: growth of the radius per radian, m.

    Returns:
        Angles, shape of ``length_m``.
    """
    theta = np.sqrt(2.0 * length_m / b)
    for _ in range(MAX_ITERATIONS):
        step = (arc_length(theta, b) - length_m) / (b * np.sqrt(1.0 + theta * theta))
        theta = np.maximum(theta - step, 0.0)
        if not np.any(np.abs(step) > 1e-15 * (1.0 + theta)):
            break
    return np.asarray(theta)


def follower(theta: Array, chord: Array | float) -> Array:
    """Angle of the handle that follows at a straight distance ``chord * b`` on the same spiral.

    With ``delta`` the difference of angles, the squared distance over ``b^2`` is
    ``delta^2 + 4 theta (theta + delta) sin^2(delta / 2)`` (law of cosines, written without cancellation). Its
    derivative is positive for ``delta`` in (0, pi], so the nearest handle behind is the only root there.

    Args:
        theta: angles of the leaders, any shape.
        chord: distance of the two handles over ``b``, broadcast against ``theta``.

    Returns:
        Angles of the followers; NaN where the chord is longer than the distance at ``delta = pi``.
    """
    theta = np.asarray(theta, dtype=np.float64)
    square = np.asarray(chord, dtype=np.float64) ** 2
    delta = np.minimum(np.sqrt(square / (1.0 + theta * theta)), np.pi)
    low = np.zeros_like(delta)
    high = np.full_like(delta, np.pi)
    for _ in range(MAX_ITERATIONS):
        sine = np.sin(0.5 * delta)
        value = delta * delta + 4.0 * theta * (theta + delta) * sine * sine - square
        slope = 2.0 * delta + 4.0 * theta * sine * sine + 2.0 * theta * (theta + delta) * np.sin(delta)
        low = np.where(value < 0.0, delta, low)
        high = np.where(value < 0.0, high, delta)
        step = value / slope
        new = delta - step
        outside = (new < low) | (new > high)
        if np.any(outside):
            new = np.where(outside, 0.5 * (low + high), new)
        moved = np.abs(new - delta)
        delta = new
        if not np.any(moved > 4e-16 * (1.0 + theta)):
            break
    reachable = np.pi * np.pi + 4.0 * theta * (theta + np.pi) >= square
    return np.asarray(np.where(reachable, theta + delta, np.nan))


def position(theta: Array, b: Array | float) -> tuple[Array, Array]:
    """Cartesian coordinates of spiral points.

    Args:
        theta: angles, any shape.
        b: growth of the radius per radian, m.

    Returns:
        ``x`` and ``y`` in m, shape of ``theta``.
    """
    radius = b * theta
    return np.asarray(radius * np.cos(theta)), np.asarray(radius * np.sin(theta))


def tangent(theta: Array) -> tuple[Array, Array]:
    """Unit direction of the inward motion at spiral points.

    Args:
        theta: angles, any shape.

    Returns:
        Its ``x`` and ``y`` parts, ``-(e_r + theta e_theta) / sqrt(1 + theta^2)``.
    """
    cosine, sine, norm = np.cos(theta), np.sin(theta), np.sqrt(1.0 + theta * theta)
    return np.asarray(-(cosine - theta * sine) / norm), np.asarray(-(sine + theta * cosine) / norm)
