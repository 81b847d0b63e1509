"""Separation of the boards while the chain moves along the incoming spiral (questions 2 and 3).

What makes a complete search cheap: on one spiral the chain behind a handle depends on the angle of that handle alone,
and all boards behind the head are alike. Body board ``i`` therefore repeats, later, what body board 1 did when its
front handle was at the same angle. Every configuration of two boards that ever occurs is met by following

* the head board and body board 1 against every later board, from the start to the end (the *leaders*), and
* a body board on the stretch between the handles 1 and last of the start position (the *outer* stretch), where
  board 1 never was. Boards that would follow the tail are counted there too: they are farther out, where there is more
  room, and never decide (tests).

Between samples the separation of two boards changes by at most ``L`` metres for a metre travelled by the leading
handle, ``L`` being bounded from the velocities and turning rates of the boards (:func:`separation_rate`); an interval
is dismissed only when ``(g(a) + g(b) - L (b - a)) / 2`` is above what is looked for (see :mod:`.search`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .chain import Array, angle_at, arc_length, follower, position, tangent

SAFETY = 1.25
"""The bound of the change is taken at the ends of an interval and enlarged by this; within 0.2 m it varies by a few per
cent, and the changes that tests measure stay below a tenth of it."""

CAP_M = 0.5
"""Separations above this are all reported as this; boards farther away need not be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boards:
    """Dimensions of the chain: counts and metres.

    Attributes:
        count: number of boards, head and tail included.
        head_m: length of the head board.
        body_m: length of every other board.
        width_m: width of all boards.
        inset_m: distance of a hole centre from the nearest board end.
    """

    count: int
    head_m: float
    body_m: float
    width_m: float
    inset_m: float

    @property
    def head_chord_m(self) -> float:
        """Distance of the two handles of the head board."""
        return self.head_m - 2.0 * self.inset_m

    @property
    def body_chord_m(self) -> float:
        """Distance of the two handles of every other board."""
        return self.body_m - 2.0 * self.inset_m


@dataclass(frozen=True, slots=True)
class Handle:
    """Handles over the samples: angle, place (m), velocity for a unit speed of the foremost handle."""

    theta: Array
    x: Array
    y: Array
    vx: Array
    vy: Array

    @classmethod
    def foremost(cls, theta: Array, b: Array | float) -> Handle:
        """The handle that leads, at unit speed."""
        return cls(theta, *position(theta, b), *tangent(theta))

    def follower(self, chord_m: float, b: Array | float) -> Handle:
        """The next handle; its speed keeps the board rigid: equal parts of both velocities along the board."""
        theta = follower(self.theta, chord_m / b)
        x, y = position(theta, b)
        tx, ty = tangent(theta)
        dx, dy = self.x - x, self.y - y
        speed = (self.vx * dx + self.vy * dy) / (tx * dx + ty * dy)
        return Handle(theta, x, y, speed * tx, speed * ty)


@dataclass(frozen=True, slots=True)
class Board:
    """Boards over the samples: centre (m), unit vector along, half sizes (m), velocity and turning rate."""

    x: Array
    y: Array
    ux: Array
    uy: Array
    half_length: float
    half_width: float
    vx: Array
    vy: Array
    rate: Array

    @classmethod
    def between(cls, front: Handle, rear: Handle, length: float, width: float) -> Board:
        """Board of given length and width on two handles."""
        dx, dy = front.x - rear.x, front.y - rear.y
        norm = np.hypot(dx, dy)
        ux, uy = dx / norm, dy / norm
        rate = (ux * (front.vy - rear.vy) - uy * (front.vx - rear.vx)) / norm
        x, y = 0.5 * (front.x + rear.x), 0.5 * (front.y + rear.y)
        vx, vy = 0.5 * (front.vx + rear.vx), 0.5 * (front.vy + rear.vy)
        return cls(x, y, ux, uy, 0.5 * length, 0.5 * width, vx, vy, rate)

    def farthest(self) -> Array:
        """Largest distance of a point of the board from the origin."""
        along = np.abs(self.x * self.ux + self.y * self.uy) + self.half_length
        across = np.abs(self.y * self.ux - self.x * self.uy) + self.half_width
        return np.asarray(np.hypot(along, across))

    def nearest(self) -> Array:
        """Smallest distance of a point of the board from the origin."""
        along = np.maximum(np.abs(self.x * self.ux + self.y * self.uy) - self.half_length, 0.0)
        across = np.maximum(np.abs(self.y * self.ux - self.x * self.uy) - self.half_width, 0.0)
        return np.asarray(np.hypot(along, across))


def separation(one: Board, two: Board) -> Array:
    """Signed separation of two rectangles by the separating-axis theorem.

    Args:
        one: first board over the samples.
        two: second board over the samples.

    Returns:
        The largest gap on the four edge directions, m: positive when apart, zero when touching, negative when they
        overlap (then minus the depth). Never above the Euclidean distance.
    """
    dx, dy = two.x - one.x, two.y - one.y
    cosine = np.abs(one.ux * two.ux + one.uy * two.uy)
    sine = np.abs(one.ux * two.uy - one.uy * two.ux)
    gap = np.abs(dx * one.ux + dy * one.uy) - one.half_length - two.half_length * cosine - two.half_width * sine
    across = np.abs(dy * one.ux - dx * one.uy) - one.half_width - two.half_length * sine - two.half_width * cosine
    gap = np.maximum(gap, across)
    along = np.abs(dx * two.ux + dy * two.uy) - two.half_length - one.half_length * cosine - one.half_width * sine
    gap = np.maximum(gap, along)
    across = np.abs(dy * two.ux - dx * two.uy) - two.half_width - one.half_length * sine - one.half_width * cosine
    return np.asarray(np.maximum(gap, across))


def separation_rate(one: Board, two: Board) -> Array:
    """Bound of the change of :func:`separation` per metre of the foremost handle.

    Seen from one board, a corner of the other moves with the velocity of its centre in the frame that moves and turns
    with the first board, plus the difference of the turning rates times its distance from that centre; each of the four
    gaps is the least projection of corners on an axis fixed in one of the boards.
    """
    dx, dy = two.x - one.x, two.y - one.y
    vx, vy = two.vx - one.vx, two.vy - one.vy
    seen_from_one = np.hypot(vx + one.rate * dy, vy - one.rate * dx)
    seen_from_two = np.hypot(vx + two.rate * dy, vy - two.rate * dx)
    corner = max(np.hypot(one.half_length, one.half_width), np.hypot(two.half_length, two.half_width))
    return np.asarray(np.maximum(seen_from_one, seen_from_two) + np.abs(one.rate - two.rate) * corner)


@dataclass(frozen=True, slots=True)
class Gap:
    """Separation over samples: ``value`` (m, at most ``CAP_M``) and ``slope``, the bound L of its change per metre."""

    value: Array
    slope: Array


def leader_gap(boards: Boards, theta: Array, pitch: Array | float, *, head: bool) -> Gap:
    """Least separation of the leading boards from all boards behind them that are not joined to them.

    Args:
        boards: dimensions.
        theta: angles of the foremost handle, one a sample.
        pitch: distance of the turns, m, scalar or one a sample.
        head: True for the head board and body board 1 against all that follow; False for one body board with all
            that follow it (its front handle being the foremost).

    Returns:
        The separation at every sample, and the bound of its change per metre of the foremost handle.
    """
    b = np.asarray(pitch) / (2.0 * np.pi)
    width, body = boards.width_m, boards.body_m
    handle = Handle.foremost(np.asarray(theta), b)
    leaders: list[Board] = []
    for chord, length in ((boards.head_chord_m, boards.head_m), (boards.body_chord_m, body))[0 if head else 1 :]:
        rear = handle.follower(chord, b)
        leaders.append(Board.between(handle, rear, length, width))
        handle = rear
    reach = np.maximum.reduce([leader.farthest() for leader in leaders]) + CAP_M
    value = np.full(handle.theta.shape, CAP_M)
    slope = np.zeros_like(value)
    for behind in range(1, boards.count - len(leaders) + 1):
        rear = handle.follower(boards.body_chord_m, b)
        board = Board.between(handle, rear, body, width)
        handle = rear
        if head:
            value = np.minimum(value, separation(leaders[0], board))
            slope = np.maximum(slope, separation_rate(leaders[0], board))
        if behind >= 2:
            value = np.minimum(value, separation(leaders[-1], board))
            slope = np.maximum(slope, separation_rate(leaders[-1], board))
        if np.all(board.nearest() > reach):
            break
    return Gap(value, SAFETY * slope)


@dataclass(frozen=True, slots=True)
class Approach:
    """The motion of the chain from the start turn inwards on a spiral of given pitch.

    Attributes:
        boards: dimensions.
        pitch_m: distance of the turns, m.
        start_turn: turn on which the head's front handle starts.
        end_radius_m: radius at which the head's front handle ends, m.
    """

    boards: Boards
    pitch_m: float
    start_turn: float
    end_radius_m: float

    @property
    def b(self) -> float:
        """Growth of the radius per radian, m."""
        return self.pitch_m / (2.0 * np.pi)

    @property
    def start_length_m(self) -> float:
        """Length of the spiral from its centre to the start, or to the end radius when that is farther out."""
        theta = max(2.0 * np.pi * self.start_turn, self.end_radius_m / self.b)
        return float(arc_length(np.asarray(theta), self.b))

    @property
    def travel_m(self) -> float:
        """Distance the head's front handle travels."""
        return self.start_length_m - float(arc_length(np.asarray(self.end_radius_m / self.b), self.b))

    def leaders(self, travelled_m: Array) -> Gap:
        """Separation of the leading boards after the head's front handle has travelled so far."""
        theta = angle_at(self.start_length_m - travelled_m, self.b)
        return leader_gap(self.boards, theta, self.pitch_m, head=True)

    def outer(self) -> tuple[Callable[[Array], Gap], float]:
        """The outer stretch: separation of a body board by distance inwards from the last handle, and its length."""
        angles = [angle_at(np.asarray(self.start_length_m), self.b)]
        for index in range(self.boards.count):
            chord = self.boards.head_chord_m if index == 0 else self.boards.body_chord_m
            angles.append(follower(angles[-1], chord / self.b))
        lengths = arc_length(np.asarray(angles), self.b)

        def gap(inwards_m: Array) -> Gap:
            at = angle_at(lengths[-2] - inwards_m, self.b)
            return leader_gap(self.boards, at, self.pitch_m, head=False)

        return gap, float(lengths[-2] - lengths[1])
