"""Question 5: the highest speed any handle reaches while the chain passes the turn, for a head speed of 1 m/s.

A board is rigid, so the speeds of its handles agree along it: ``v' (T' . u) = v (T . u)`` with the unit tangents ``T``
and the direction ``u`` of the board. Both the place of a follower and its share of the leader's speed depend on the
place of the leader alone. Two tables over the path therefore give, by stepping through the chain, every handle at every
moment of the whole passage. The highest places of that scan are then computed without tables, by nested samples, since
the speed has kinks where a handle passes from one part of the path to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .chain import Array
from .collision import Boards
from .turn import Turn

SPACING_M = 0.02
"""Distance of table entries and of the scan along the path."""

MARGIN = 0.10
"""Peaks of the scan within this share of the highest excess over 1 are refined."""

STEEPEST = 20.0
"""Peaks and handles that stay this many times the bracket below the best value are dropped, 1/s (speed per metre)."""

MAX_PEAKS = 24
"""At most so many peaks, the highest, are refined."""


@dataclass(frozen=True, slots=True)
class Link:
    """One kind of board on the path: places of followers and their share of the speed, over leaders."""

    turn: Turn
    chord_m: float

    def at(self, q: Array) -> tuple[Array, Array]:
        """Coordinates of the followers of ``q`` and the ratio of their speed to the leader's."""
        behind = self.turn.behind(q, self.chord_m)
        x, y, tx, ty = self.turn.point(q)
        bx, by, bx_t, by_t = self.turn.point(behind)
        ux, uy = x - bx, y - by
        return behind, (tx * ux + ty * uy) / (bx_t * ux + by_t * uy)


def speeds(boards: Boards, turn: Turn, q: Array, handles: int) -> Array:
    """Speeds of the first handles for a head speed of 1 m/s.

    Args:
        boards: dimensions.
        turn: path.
        q: coordinates of the head's front handle, shape (n,).
        handles: number of handles, from the head's front handle on.

    Returns:
        Speeds in m/s, shape (handles, n).
    """
    result = np.ones((handles, q.size))
    head, body = Link(turn, boards.head_chord_m), Link(turn, boards.body_chord_m)
    for index in range(1, handles):
        q, ratio = (head if index == 1 else body).at(q)
        result[index] = result[index - 1] * ratio
    return result


def scan(boards: Boards, turn: Turn) -> tuple[Array, Array, Array]:
    """Highest handle speed over the whole passage, from tables.

    The head goes from the entry until the last handle has left the turn; before that the chain is on the incoming
    spiral alone, where every follower is slower than its leader.

    Returns:
        Path lengths of the head (m), the highest speed at each and the last handle within ``MARGIN`` of it.
    """
    chain = boards.head_chord_m + (boards.count - 1) * boards.body_chord_m
    first = -1.2 * chain - 20.0
    final = turn.length_m + 1.2 * chain + 20.0
    number = int(np.ceil((final - first) / SPACING_M)) + 1
    lengths = first + SPACING_M * np.arange(number, dtype=np.float64)
    coordinates = turn.coordinate_at(lengths)
    tables = []
    for chord in (boards.head_chord_m, boards.body_chord_m):
        start = int(np.searchsorted(lengths, first + 3.0 * chord))
        behind, ratio = Link(turn, chord).at(coordinates[start:])
        place = np.concatenate([np.full(start, lengths[0]), turn.length_at(behind)])
        tables.append((place, np.concatenate([np.ones(start), ratio])))
    at = lengths[lengths >= 0.0]
    here, speed = at.copy(), np.ones_like(at)
    highest, lowest_last = speed.copy(), at.copy()
    everything = [speed]
    for index in range(boards.count):
        place, ratio = tables[0 if index == 0 else 1]
        cell = (here - first) / SPACING_M
        left = np.clip(cell.astype(np.intp), 0, number - 2)
        share = cell - left
        speed = speed * (ratio[left] + share * (ratio[left + 1] - ratio[left]))
        here = place[left] + share * (place[left + 1] - place[left])
        highest = np.maximum(highest, speed)
        lowest_last = here
        everything.append(speed)
    passing = lowest_last <= turn.length_m
    floor = 1.0 + (1.0 - MARGIN) * (float(np.max(highest[passing])) - 1.0)
    last = np.zeros(at.size, dtype=np.float64)
    for index, row in enumerate(everything):
        last = np.where(row >= floor, index, last)
    return np.asarray(at[passing]), np.asarray(highest[passing]), np.asarray(last[passing])


def peak_ratio(boards: Boards, turn: Turn) -> tuple[float, float]:
    """Highest speed of any handle over the whole passage, for a head speed of 1 m/s.

    Args:
        boards: dimensions.
        turn: path.

    Returns:
        The speed (at least 1), to about 1e-12, and the path length of the head there, m.
    """
    at, highest, last = scan(boards, turn)
    floor = 1.0 + (1.0 - MARGIN) * (float(np.max(highest)) - 1.0)
    inner = highest[1:-1]
    peaks = 1 + np.flatnonzero((inner >= highest[:-2]) & (inner >= highest[2:]) & (inner >= floor))
    peaks = peaks[np.argsort(-highest[peaks], kind="stable")][:MAX_PEAKS]
    if peaks.size == 0:
        return 1.0, 0.0
    handles = int(np.max(last[peaks])) + 2
    handles = min(handles, boards.count + 1)
    centres, width = at[peaks], 3.0 * SPACING_M
    offsets = np.linspace(-1.0, 1.0, 41)
    best, place = 1.0, 0.0
    while True:
        samples = centres[:, None] + width * offsets
        q = turn.coordinate_at(samples.ravel())
        table = speeds(boards, turn, q, handles)
        top = np.max(table, axis=0).reshape(samples.shape)
        index = np.argmax(top, axis=1)
        rows = np.arange(centres.size)
        centres = samples[rows, index]
        row = int(np.argmax(top[rows, index]))
        if top[row, index[row]] > best:
            best, place = float(top[row, index[row]]), float(centres[row])
        if width < 1e-13:
            return best, place
        keep = top[rows, index] >= best - STEEPEST * width
        handles = 1 + int(np.flatnonzero(np.max(table, axis=1) >= best - STEEPEST * width)[-1])
        centres, width = centres[keep], width / 12.0
