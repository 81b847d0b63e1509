"""Is the whole target behind one cloud? Exact for both rims of the cylinder, with a bound in metres.

The points hidden by a ball (centre C, radius R) from P outside of it are those q whose segment Pq meets the ball. They
are a convex set, so the cylinder is hidden when both of its rims are. With w = C - P, u = q - P, L = |w|^2 - R^2,
h = u.w - L (behind the plane of tangent points or not) and k = |q - C|^2 - R^2:

* the line Pq meets the ball when g = R^2 |u|^2 - |u x w|^2 = h^2 - L k >= 0;
* when it does and u.w > 0, the segment ends before the ball exactly when h < 0 and k > 0.

On a rim, q = centre + r (cos, sin), g is a trigonometric polynomial of degree 2. In the horizontal directions along and
across w it has no mixed term, so its least value is a trust-region problem in the plane: one root of a falling function
(Newton's method on the reciprocal norm; Moré and Sorensen, 1983), whatever the number of local minima. h, k and
|u|^2 - u.w have degree 1, and their extremes on arcs are closed forms. Nothing is sampled along a rim.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .parameters import Scene

Array = NDArray[np.float64]
NEWTON_STEPS = 7
"""The value at the minimum is exact to rounding after five."""


@dataclass(frozen=True, slots=True)
class Sight:
    """Everything about the missiles of a scene, one row a missile.

    Attributes:
        start_m: position at time 0, shape (missiles, 3).
        unit: direction of flight, shape (missiles, 3).
        arrival_s: shape (missiles,).
        aside_m: largest distance of a point of the target from the missile's line, shape (missiles,).
    """

    scene: Scene
    start_m: Array
    unit: Array
    arrival_s: Array
    aside_m: Array

    @classmethod
    def of(cls, scene: Scene) -> Sight:
        """The missiles of a scene."""
        start = np.array(scene.missiles_m, dtype=float)
        far = np.linalg.norm(start, axis=1)
        unit = -start / far[:, None]
        x, y, _ = scene.target_m
        rims = np.array([[x, y, 0.0], [x, y, scene.target_height_m]])
        off = rims[None, :, :] - start[:, None, :]
        aside = np.linalg.norm(np.cross(off, unit[:, None, :]), axis=2).max(axis=1) + scene.target_radius_m
        return cls(scene, start, unit, far / scene.missile_speed_mps, aside)

    def at(self, missile: NDArray[np.intp], time_s: Array) -> Array:
        """Positions of missiles at times, m; shape (n, 3)."""
        place: Array = self.start_m[missile] + (self.scene.missile_speed_mps * time_s)[:, None] * self.unit[missile]
        return place

    def rate(self, missile: NDArray[np.intp], time_s: Array) -> Array:
        """How fast the margin may change up to a time, m/s, in the one-sided sense of ``intervals``.

        The line of sight to a point of the target swings by the missile's speed across it, which is speed times
        (distance of the point from the missile's line) / (distance of the point from the missile); as long as the
        whole target lies ahead. The cloud sinks besides. Otherwise both speeds are taken in full.
        """
        given = self.scene
        x, y, _ = given.target_m
        place = self.at(missile, time_s)
        unit = self.unit[missile]
        middle = np.array([x, y, 0.5 * given.target_height_m]) - place
        reach = np.hypot(given.target_radius_m, 0.5 * given.target_height_m)
        nearest = np.linalg.norm(middle, axis=1) - reach
        ahead = np.einsum("ij,ij->i", middle, unit) - reach > 0.0
        swing = np.where(ahead & (nearest > 0.0), self.aside_m[missile] / np.maximum(nearest, 1e-9), 1.0)
        result: Array = given.sink_mps + given.missile_speed_mps * np.minimum(swing, 1.0)
        return result


def margin(scene: Scene, place: Array, cloud: Array) -> Array:
    """Bound on how far the worst segment from a missile to the target dips into the cloud, m.

    Args:
        scene: target and cloud radius.
        place: missile positions, m; shape (n, 3).
        cloud: cloud centres, m; shape (n, 3).

    Returns:
        Values m of shape (n,), continuous where they are 0. m >= 0: the target is hidden, and every segment comes
        within R - m of the centre. m < 0: it is not, and some segment stays R - m away.
    """
    w = cloud - place
    apart2 = np.einsum("ij,ij->i", w, w)
    apart = np.sqrt(apart2)
    radius = scene.cloud_radius_m
    flat = np.hypot(w[:, 0], w[:, 1])
    some = flat > 0.0
    along = np.where(some[:, None], w[:, :2] / np.where(some, flat, 1.0)[:, None], np.array([1.0, 0.0]))
    x, y, _ = scene.target_m
    foot = np.array([x, y, 0.0]) - place
    rims = foot[None, :, :] + np.array([0.0, 0.0, 1.0]) * np.array([[[0.0]], [[scene.target_height_m]]])
    with np.errstate(invalid="ignore", divide="ignore"):
        worst = _rim(scene.target_radius_m, radius, rims, w, along, flat, apart, apart2).min(axis=0)
    result: Array = np.where(apart <= radius, radius - apart, worst)
    return result


def _rim(r: float, radius: float, u: Array, w: Array, along: Array, flat: Array, apart: Array, apart2: Array) -> Array:
    """The bounds for rims, shape (rims, n); ``u`` leads to their centres. Rows with P inside the ball are garbage."""
    u1 = u[..., 0] * along[:, 0] + u[..., 1] * along[:, 1]
    u2 = u[..., 1] * along[:, 0] - u[..., 0] * along[:, 1]
    uz, wz = u[..., 2], w[:, 2]
    size2 = u1 * u1 + u2 * u2 + uz * uz
    # u x w in the axes (along, across, up), in which w = (flat, 0, wz); and those of the two unit vectors
    n1, n2, n3 = u2 * wz, uz * flat - u1 * wz, -u2 * flat
    square = (r * flat) ** 2
    f1 = 2.0 * r * (radius**2 * u1 + n2 * wz)
    f2 = 2.0 * r * (radius**2 * u2 - n1 * wz + n3 * flat)
    fixed = radius**2 * (size2 + r * r) - (n1 * n1 + n2 * n2 + n3 * n3) - r * r * apart2
    c, s = _lowest(square, f1, f2)
    least = fixed + f1 * c + f2 * s + square * c * c
    there2 = size2 + r * r + 2.0 * r * (u1 * c + u2 * s)
    beside = radius - np.sqrt(radius**2 - np.minimum(least, 0.0) / there2)

    # the line meets the ball for the whole rim: where do the segments end?
    dot = u1 * flat + uz * wz
    k0 = size2 - 2.0 * dot + apart2 + r * r - radius**2
    k1, k2 = 2.0 * r * (u1 - flat), 2.0 * r * u2
    short = _highest(k0, k1, k2, dot - (apart2 - radius**2), r * flat, np.zeros_like(flat))
    ends = _highest(k0, k1, k2, size2 + r * r - dot, r * (2.0 * u1 - flat), 2.0 * r * u2)
    farthest2 = size2 + r * r + 2.0 * r * np.hypot(u1, u2)
    within = radius - np.sqrt(np.maximum(radius**2 - np.maximum(least, 0.0) / farthest2, 0.0))
    within = np.minimum(within, radius - np.sqrt(np.maximum(radius**2 + ends, 0.0)))
    met = np.where(short > 0.0, radius - np.sqrt(radius**2 + np.maximum(short, 0.0)), np.maximum(within, 0.0))
    met = np.where(dot > 0.0, met, radius - apart)
    return np.where(least < 0.0, beside, met)


def _lowest(square: Array, f1: Array, f2: Array) -> tuple[Array, Array]:
    """The point (c, s) of the unit circle with the least f1 c + f2 s + square c^2; square >= 0.

    There is one multiplier mu >= 0 with c = -f1 / (2 (square + mu)), s = -f2 / (2 mu) on the circle, and it is the
    least point's.
    """
    tiny = 1e-15 * (square + np.abs(f1)) + 1e-300
    f2 = np.where(f2 >= 0.0, 1.0, -1.0) * np.maximum(np.abs(f2), tiny)
    mu = np.maximum(0.5 * np.abs(f2), 0.5 * np.abs(f1) - square)
    for _ in range(NEWTON_STEPS):
        c, s = -0.5 * f1 / (square + mu), -0.5 * f2 / mu
        norm2 = c * c + s * s
        norm = np.sqrt(norm2)
        mu = mu + (norm - 1.0) * norm2 / (c * c / (square + mu) + s * s / mu)
        mu = np.maximum(mu, 0.5 * np.abs(f2))
    c, s = -0.5 * f1 / (square + mu), -0.5 * f2 / mu
    norm = np.hypot(c, s)
    return c / norm, s / norm


def _highest(k0: Array, k1: Array, k2: Array, j0: Array, j1: Array, j2: Array) -> Array:
    """Highest k0 + k1 cos + k2 sin where j0 + j1 cos + j2 sin <= 0; -inf where that is nowhere."""
    k, j = np.hypot(k1, k2), np.hypot(j1, j2)
    limit = np.where(j > 0.0, -j0 / np.where(j > 0.0, j, 1.0), np.where(j0 <= 0.0, 1.0, -2.0))
    scale = np.where(k * j > 0.0, k * j, 1.0)
    cosine = np.where(k * j > 0.0, (k1 * j1 + k2 * j2) / scale, -1.0)
    sine = np.where(k * j > 0.0, np.abs(k1 * j2 - k2 * j1) / scale, 0.0)
    edge = np.clip(limit, -1.0, 1.0)
    at_edge = cosine * edge + sine * np.sqrt(1.0 - edge * edge)
    best = np.where(cosine <= limit, 1.0, at_edge)
    return np.where(limit >= -1.0, k0 + k * best, -np.inf)
