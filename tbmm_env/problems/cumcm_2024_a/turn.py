"""The path of questions 4 and 5: incoming spiral, two tangent arcs, outgoing spiral.

The path has one coordinate ``q`` (radians, growing along the motion): ``theta_in - theta`` on the incoming spiral
(negative), the angle turned on the first arc, ``phi`` plus the angle turned on the second, and
``2 phi + theta - theta_in`` on the outgoing spiral, ``theta`` being the polar angle before the reflection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .chain import MAX_ITERATIONS, Array, angle_at, arc_length

Points = tuple[Array, Array]


@dataclass(frozen=True)
class Turn:
    """The pinned construction.

    With ``T`` the direction of motion at the entry ``E`` and ``n`` the unit normal on the side of the centre, the
    centres are ``E + r1 n`` and ``-E - r2 n``; ``|C1 - C2| = r1 + r2`` then gives
    ``r1 + r2 = -R^2 / (E . n) = R sqrt(1 + theta^2) / theta`` whatever the ratio, and both arcs turn by
    ``phi = 2 atan(theta)`` (tests confirm it by geometry and by integration).

    Attributes:
        pitch_m: pitch of both spirals, m.
        radius_m: radius R of the turning circle, m.
        ratio: radius of the first arc over that of the second.
    """

    pitch_m: float
    radius_m: float
    ratio: float

    @cached_property
    def b(self) -> float:
        """Growth of the radius per radian, m."""
        return self.pitch_m / (2.0 * np.pi)

    @cached_property
    def theta_in(self) -> float:
        """Polar angle of the entry along the spiral."""
        return self.radius_m / self.b

    @cached_property
    def phi(self) -> float:
        """Angle turned on each arc, below pi."""
        return 2.0 * float(np.arctan(self.theta_in))

    @cached_property
    def radii_m(self) -> tuple[float, float]:
        """Radii of the two arcs."""
        both = self.radius_m * float(np.hypot(1.0, self.theta_in)) / self.theta_in
        return both * self.ratio / (1.0 + self.ratio), both / (1.0 + self.ratio)

    @cached_property
    def length_m(self) -> float:
        """Length of the two arcs together."""
        return sum(self.radii_m) * self.phi

    @cached_property
    def entry_m(self) -> tuple[float, float]:
        """Point where the incoming spiral meets the circle; the exit is its negative."""
        return self.radius_m * float(np.cos(self.theta_in)), self.radius_m * float(np.sin(self.theta_in))

    @cached_property
    def normal(self) -> tuple[float, float]:
        """Unit normal of the spiral at the entry, towards the first centre: to the right of the motion."""
        return spiral_normal(self.theta_in, self.theta_in)

    @cached_property
    def centres_m(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Centres of the two arcs."""
        (ex, ey), (nx, ny), (r1, r2) = self.entry_m, self.normal, self.radii_m
        return (ex + r1 * nx, ey + r1 * ny), (-ex - r2 * nx, -ey - r2 * ny)

    @cached_property
    def junctions(self) -> tuple[Points, ...]:
        """Entry, junction of the arcs and exit."""
        return tuple(self.point(np.array([q]))[:2] for q in (0.0, self.phi, 2.0 * self.phi))

    def part(self, q: Array) -> NDArray[np.intp]:
        """Part of the path: 0 incoming spiral, 1 and 2 the arcs, 3 outgoing spiral."""
        return np.asarray(np.searchsorted(np.array([0.0, self.phi, 2.0 * self.phi]), q, side="right"))

    def point(self, q: Array) -> tuple[Array, Array, Array, Array]:
        """Position (m) and unit direction of motion at the coordinates ``q``: x, y, tx, ty."""
        x, y, tx, ty = (np.empty_like(q) for _ in range(4))
        part = self.part(q)
        for outgoing in (False, True):
            on = part == (3 if outgoing else 0)
            theta = self.theta_in + (q[on] - 2.0 * self.phi if outgoing else -q[on])
            cosine, sine, norm = np.cos(theta), np.sin(theta), np.sqrt(1.0 + theta * theta)
            sign = -1.0 if outgoing else 1.0
            x[on], y[on] = sign * self.b * theta * cosine, sign * self.b * theta * sine
            tx[on], ty[on] = -(cosine - theta * sine) / norm, -(sine + theta * cosine) / norm
        nx, ny = self.normal
        for number, sign in ((1, -1.0), (2, 1.0)):
            # from its centre the first arc starts at -n and runs clockwise, the second ends at +n, anticlockwise
            on = part == number
            (cx, cy), radius = self.centres_m[number - 1], self.radii_m[number - 1]
            angle = -q[on] if number == 1 else q[on] - 2.0 * self.phi
            ox = sign * (nx * np.cos(angle) - ny * np.sin(angle))
            oy = sign * (nx * np.sin(angle) + ny * np.cos(angle))
            x[on], y[on] = cx + radius * ox, cy + radius * oy
            tx[on], ty[on] = -sign * oy, sign * ox
        return x, y, tx, ty

    def length_at(self, q: Array) -> Array:
        """Path length from the entry (negative before it), m."""
        q = np.asarray(q, dtype=np.float64)
        r1, r2 = self.radii_m
        at_entry = arc_length(np.asarray(self.theta_in), self.b)
        before = at_entry - arc_length(self.theta_in + np.maximum(-q, 0.0), self.b)
        after = arc_length(self.theta_in + np.maximum(q - 2.0 * self.phi, 0.0), self.b) - at_entry
        first, second = np.clip(q, 0.0, self.phi), np.clip(q - self.phi, 0.0, self.phi)
        return np.asarray(before + r1 * first + r2 * second + after)

    def coordinate_at(self, length_m: Array) -> Array:
        """Inverse of :meth:`length_at`."""
        r1, r2 = self.radii_m
        end1, end2 = r1 * self.phi, self.length_m
        at_entry = float(arc_length(np.asarray(self.theta_in), self.b))
        before = self.theta_in - angle_at(at_entry + np.maximum(-length_m, 0.0), self.b)
        after = angle_at(at_entry + np.maximum(length_m - end2, 0.0), self.b) - self.theta_in
        arcs = np.clip(length_m, 0.0, end1) / r1 + np.clip(length_m - end1, 0.0, end2 - end1) / r2
        return np.asarray(np.where(length_m < 0.0, before, np.where(length_m > end2, 2.0 * self.phi + after, arcs)))

    def behind(self, q: Array, chord_m: float) -> Array:
        """Coordinate of the nearest handle behind at the straight distance ``chord_m``.

        The distance grows going back until the chord is reached (checked by tests on the sampled ranges), so the root
        lies on the first part, going back, whose earlier end is at least a chord away.

        Args:
            q: coordinates of the leaders, shape (n,).
            chord_m: distance of the two handles, m.

        Returns:
            Coordinates of the followers, shape (n,).
        """
        q = np.asarray(q, dtype=np.float64)
        x, y, _, _ = self.point(q)
        part = self.part(q)
        target = part.copy()
        recent = q < 2.0 * self.phi + np.pi  # a full turn later the leader comes near the exit again
        for number in (3, 2, 1):
            jx, jy = self.junctions[number - 1]
            near = (np.hypot(x - jx, y - jy) < chord_m) & recent
            target = np.where((target == number) & near, number - 1, target)
        result = np.empty_like(q)
        for number in range(4):
            on = target == number
            if not np.any(on):
                continue
            if number == 3:
                result[on] = self._on_outgoing(q[on], chord_m)
            elif number == 0:
                result[on] = self._on_incoming(q[on], x[on], y[on], part[on] == 0, chord_m)
            else:
                result[on] = self._on_arc(number, q[on], x[on], y[on], part[on] == number, chord_m)
        return result

    def _on_arc(self, number: int, q: Array, x: Array, y: Array, same: NDArray[np.bool_], chord_m: float) -> Array:
        """Follower on an arc: closed form, on the same arc or by the law of cosines at its centre."""
        (cx, cy), radius = self.centres_m[number - 1], self.radii_m[number - 1]
        nx, ny = self.normal
        dx, dy = x - cx, y - cy
        far = np.hypot(dx, dy)
        beta = np.arccos(np.clip((far * far + radius * radius - chord_m**2) / (2.0 * far * radius), -1.0, 1.0))
        angle = np.arctan2(nx * dy - ny * dx, nx * dx + ny * dy)
        if number == 1:  # clockwise from -n
            ahead, start = np.mod(np.pi - angle, 2.0 * np.pi), 0.0
        else:  # anticlockwise, ending at +n
            ahead, start = 2.0 * self.phi + np.mod(angle + 0.5 * np.pi, 2.0 * np.pi) - 0.5 * np.pi, self.phi
        across = q - 2.0 * np.arcsin(np.clip(chord_m / (2.0 * radius), -1.0, 1.0))
        return np.asarray(np.clip(np.where(same, across, ahead - beta), start, start + self.phi))

    def _on_outgoing(self, q: Array, chord_m: float) -> Array:
        """Follower on the outgoing spiral, the leader being on it too."""
        theta = self.theta_in + q - 2.0 * self.phi

        def function(delta: Array) -> tuple[Array, Array]:
            sine = np.sin(0.5 * delta)
            value = delta * delta + 4.0 * theta * (theta - delta) * sine * sine
            slope = 2.0 * delta - 4.0 * theta * sine * sine + 2.0 * theta * (theta - delta) * np.sin(delta)
            return value, slope

        guess = (chord_m / self.b) / theta
        return q - _rise(function, (chord_m / self.b) ** 2, guess, q - 2.0 * self.phi)

    def _on_incoming(self, q: Array, x: Array, y: Array, same: NDArray[np.bool_], chord_m: float) -> Array:
        """Follower on the incoming spiral, the leader on it or beyond the entry."""
        start = np.where(same, self.theta_in - q, self.theta_in)
        px, py = x / self.b, y / self.b

        def function(delta: Array) -> tuple[Array, Array]:
            theta = start + delta
            cosine, sine = np.cos(theta), np.sin(theta)
            dx, dy = theta * cosine - px, theta * sine - py
            slope = 2.0 * (dx * (cosine - theta * sine) + dy * (sine + theta * cosine))
            return dx * dx + dy * dy, slope

        guess = (chord_m / self.b) / start
        delta = _rise(function, (chord_m / self.b) ** 2, guess, np.full_like(q, np.pi))
        return np.asarray(np.minimum(self.theta_in - (start + delta), 0.0))


def _rise(function: Callable[[Array], Points], target: float, guess: Array, high: Array) -> Array:
    """Root of a rising function on [0, ``high``] by Newton steps inside a shrinking bracket."""
    low = np.zeros_like(high)
    delta = np.minimum(guess, high)
    for _ in range(MAX_ITERATIONS):
        value, slope = function(delta)
        below = value < target
        low, high = np.where(below, delta, low), np.where(below, high, delta)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = delta - (value - target) / slope
        new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        moved = np.abs(new - delta)
        delta = new
        if not np.any(moved > 2e-15):
            break
    return delta


def spiral_normal(theta: float, polar: float) -> tuple[float, float]:
    """Unit normal, to the right of the inward motion, of the spiral at radius ``b * theta`` and polar angle ``polar``.

    Source: the motion is ``-(e_r + theta e_polar) / sqrt(1 + theta^2)``; turned by a right angle clockwise it is
    ``(e_polar - theta e_r) / sqrt(1 + theta^2)``.
    """
    norm, cosine, sine = float(np.hypot(1.0, theta)), float(np.cos(polar)), float(np.sin(polar))
    return (-sine - theta * cosine) / norm, (cosine - theta * sine) / norm
