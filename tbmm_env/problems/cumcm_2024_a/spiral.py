"""Questions 2 and 3: the first overlap on the given spiral and the least pitch that lets the head reach the circle."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from .chain import Array, arc_length
from .collision import Approach, Boards, leader_gap
from .search import first_zero, least, polish

PITCH_STEP_M = 0.005
"""First step of the scan over pitches."""

PITCH_SLOPE = 5.0
"""Bound of the change of a separation per metre of pitch at a fixed radius of the head. The next turn moves outwards by
one metre and along itself by pi metres; both together with the turn of the boards stay below this. Tests measure it."""

NEAR_M = 30.0
"""Last stretch before the circle, about a turn, on which a pitch is first tried, m of head travel."""


def first_overlap_m(boards: Boards, pitch_m: float, start_turn: float) -> float | None:
    """Distance the head travels from the start turn until two boards touch for the first time.

    Args:
        boards: dimensions.
        pitch_m: pitch of the spiral, m.
        start_turn: turn on which the head's front handle starts.

    Returns:
        The distance in m; None when no boards touch before the head board no longer fits on the innermost turn.
    """
    end = innermost_radius_m(boards, pitch_m)
    approach = Approach(boards, pitch_m, start_turn, end)
    gap, length = approach.outer()
    if least(gap, length, below=0.0)[0] < 0.0:
        return 0.0
    return first_zero(approach.leaders, approach.travel_m)


def innermost_radius_m(boards: Boards, pitch_m: float) -> float:
    """Smallest radius of the head's front handle considered.

    Up to half a turn back the distance of two spiral points grows with their difference of angle (see
    :func:`.chain.follower`); the chord must be reached there: ``2 r + pitch / 2 >= chord``. Two per cent are added.
    """
    chord = max(boards.head_chord_m, boards.body_chord_m)
    return max(0.51 * chord - 0.25 * pitch_m, 0.25 * pitch_m)


def approach_gap_m(boards: Boards, pitch_m: float, start_turn: float, radius_m: float) -> tuple[float, float]:
    """Least separation of any two boards while the head goes from the start turn to the circle.

    Args:
        boards: dimensions.
        pitch_m: pitch of the spiral, m.
        start_turn: turn on which the head's front handle starts; when that lies inside the circle the only position
            is the one with the front handle on the circle.
        radius_m: radius of the circle.

    Returns:
        The separation in m (at most ``CAP_M``) and the travel of the head there (NaN on the outer stretch).
    """
    approach = Approach(boards, pitch_m, start_turn, radius_m)
    value, at = least(approach.leaders, approach.travel_m)
    gap, length = approach.outer()
    other, _ = least(gap, length, below=value)
    return (other, np.nan) if other < value else (value, at)


def least_pitch_m(boards: Boards, start_turn: float, radius_m: float, highest_m: float) -> float | None:
    """Smallest pitch at which no boards overlap from the start turn to the circle.

    Pitches from the board width upwards are refused by samples of the separation on the last stretch; between two
    sampled pitches by the bound ``PITCH_SLOPE``. The first pitch that is not refused is made exact by root finding at
    the place of the least separation, and confirmed by the search over the whole approach.

    Args:
        boards: dimensions.
        start_turn: turn on which the head's front handle starts.
        radius_m: radius of the circle.
        highest_m: pitch at which the scan ends.

    Returns:
        The pitch in m, to about 1e-12; None when there is none up to ``highest_m``.
    """
    candidate = _first_not_refused(boards, radius_m, boards.width_m, highest_m)
    for _ in range(12):
        if candidate is None or candidate > highest_m:
            return None
        value, at = approach_gap_m(boards, candidate, start_turn, radius_m)
        if abs(value) < 1e-11:
            return candidate
        if np.isnan(at):
            candidate += max(-value, 1e-6)
            continue
        candidate = _local_root(boards, candidate, start_turn, radius_m, at)
    return None


def pitch_refused(boards: Boards, pitch_m: float, radius_m: float) -> bool:
    """Whether samples of the last stretch before the circle already show an overlap at this pitch."""
    return bool(_samples(boards, np.array([pitch_m]), radius_m)[0] < 0.0)


def _samples(boards: Boards, pitch_m: Array, radius_m: float) -> Array:
    """Least sampled separation on the last stretch, for every pitch."""
    lengths = np.arange(0.0, NEAR_M, 0.15)
    radii = np.sqrt(radius_m**2 + lengths[None, :] * pitch_m[:, None] / np.pi)
    theta = 2.0 * np.pi * radii / pitch_m[:, None]
    pitches = np.broadcast_to(pitch_m[:, None], radii.shape)
    gap = leader_gap(boards, theta.ravel(), pitches.ravel(), head=True)
    return np.asarray(np.min(gap.value.reshape(radii.shape), axis=1))


def _first_not_refused(boards: Boards, radius_m: float, low_m: float, high_m: float) -> float | None:
    """First pitch from ``low_m`` on that neither samples nor the slope bound refuse; None when there is none."""
    pitches = np.append(np.arange(low_m, high_m, PITCH_STEP_M), high_m)
    values = _samples(boards, pitches, radius_m)
    while True:
        good = np.flatnonzero(values >= 0.0)
        if good.size == 0 and pitches.size == 1:
            return None
        stop = int(good[0]) if good.size else pitches.size - 1
        pitches, values = pitches[: stop + 1], values[: stop + 1]
        widths = np.diff(pitches)
        open_ = np.flatnonzero((values[:-1] + values[1:] + PITCH_SLOPE * widths >= 0.0) & (widths > 1e-5))
        if open_.size == 0:
            return float(pitches[-1]) if good.size else None
        middle = 0.5 * (pitches[open_] + pitches[open_ + 1])
        pitches = np.insert(pitches, open_ + 1, middle)
        values = np.insert(values, open_ + 1, _samples(boards, middle, radius_m))


def _local_root(boards: Boards, pitch_m: float, start_turn: float, radius_m: float, at_m: float) -> float:
    """Pitch at which the least separation near the place ``at_m`` (head travel at ``pitch_m``) is zero."""
    approach = Approach(boards, pitch_m, start_turn, radius_m)
    before_circle = approach.travel_m - at_m

    def value(pitch: float) -> float:
        here = Approach(boards, pitch, start_turn, radius_m)
        centre = np.array([max(here.travel_m - before_circle, 0.0)])
        return polish(here.leaders, centre, np.array([0.1]), here.travel_m)[0]

    now = value(pitch_m)
    width = 2.0 * abs(now) + 1e-9
    while value(pitch_m - np.copysign(width, now)) * now > 0.0:
        width *= 2.0
    low, high = sorted((pitch_m, pitch_m - float(np.copysign(width, now))))
    return float(brentq(value, low, high, xtol=1e-13))


def time_to_radius_s(pitch_m: float, start_turn: float, radius_m: float, speed_mps: float) -> float:
    """Time at which the head's front handle, started on the start turn, passes a radius."""
    b = pitch_m / (2.0 * np.pi)
    lengths = arc_length(np.array([2.0 * np.pi * start_turn, radius_m / b]), b)
    return float(lengths[0] - lengths[1]) / speed_mps
