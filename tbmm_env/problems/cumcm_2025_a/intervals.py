"""Intervals of time in which a cloud hides the target from a missile: certified bisection, unions, lengths.

With the margin m of ``shadow`` and the rate v of ``Sight.rate`` at b, for a <= t <= b:

* m(a) < -v (b - a): not hidden in [a, b]. A segment from P(a) stays R - m(a) away from the cloud; P(t) is not farther
  than v (t - a), less what the cloud sinks, from that segment, so the segment from P(t) to the same point cannot reach.
* m(b) > v (b - a): hidden in [a, b], by the same argument backwards.

Other intervals are cut down to the resolution; so no hidden stretch and no gap longer than that is missed.
Then each change of sign is closed in by false position.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .shadow import Array, Sight, margin

RESOLUTION_S = 1e-6
"""Longest stretch that the search may miss, s."""

MOST_AT_ONCE = 20_000
"""Most intervals looked at together: bounds the memory where a cloud is made to graze the sight for long."""

PARTS = 8
"""Parts that an undecided interval is cut into; more than two, as small arrays cost as much as smaller ones."""

_SHARES = np.arange(1, PARTS) / PARTS

CLOSING_STEPS = 4
"""Steps of false position (Illinois) in an interval of a millisecond or less; three reach rounding."""

Spans = list[tuple[float, float]]
Intervals = tuple[NDArray[np.intp], Array, Array, Array, Array]
"""Pair, begin, end, and the margins there; one entry an interval."""


def hidden_spans(
    sight: Sight,
    burst_s: Array,
    burst_m: Array,
    missile: NDArray[np.intp],
    resolution_s: float = RESOLUTION_S,
) -> list[Spans]:
    """When each cloud hides the whole target from its missile.

    Args:
        sight: of the scene.
        burst_s: moments of the bursts, s; shape (n,).
        burst_m: places of the bursts, m; shape (n, 3).
        missile: index from 0 of the missile looked at; shape (n,).
        resolution_s: longest stretch that may be missed, s.

    Returns:
        n lists of disjoint rising (begin, end), s, from burst to the end of the cloud or the missile's arrival.
    """
    given = sight.scene
    end = np.minimum(burst_s + given.cloud_life_s, sight.arrival_s[missile])

    def value(pair: NDArray[np.intp], time_s: Array) -> Array:
        cloud = burst_m[pair].copy()
        cloud[:, 2] -= given.sink_mps * (time_s - burst_s[pair])
        return margin(given, sight.at(missile[pair], time_s), cloud)

    pair: NDArray[np.intp] = np.flatnonzero(end > burst_s)
    a, b = burst_s[pair], end[pair]
    m_a, m_b = value(pair, a), value(pair, b)
    first = dict(zip(pair.tolist(), (m_a >= 0.0).tolist(), strict=True))
    found: list[Intervals] = []
    waiting: list[Intervals] = [(pair, a, b, m_a, m_b)]
    while waiting:
        pair, a, b, m_a, m_b = waiting.pop()
        if len(pair) > MOST_AT_ONCE:
            now, later = slice(None, MOST_AT_ONCE), slice(MOST_AT_ONCE, None)
            waiting.append((pair[later], a[later], b[later], m_a[later], m_b[later]))
            pair, a, b, m_a, m_b = pair[now], a[now], b[now], m_a[now], m_b[now]
        length = b - a
        slack = sight.rate(missile[pair], b) * length
        open_ = (m_a >= -slack) & (m_b <= slack)
        pair, a, b, m_a, m_b = pair[open_], a[open_], b[open_], m_a[open_], m_b[open_]
        small = b - a <= resolution_s
        change = small & ((m_a >= 0.0) != (m_b >= 0.0))
        found.append((pair[change], a[change], b[change], m_a[change], m_b[change]))
        pair, a, b, m_a, m_b = pair[~small], a[~small], b[~small], m_a[~small], m_b[~small]
        if not len(pair):
            continue
        inner = a[:, None] + (b - a)[:, None] * _SHARES
        m = value(np.repeat(pair, PARTS - 1), inner.ravel()).reshape(inner.shape)
        cuts, margins = np.column_stack([a, inner, b]), np.column_stack([m_a, m, m_b])
        pair = np.repeat(pair, PARTS)
        a, b, m_a, m_b = (part.ravel() for part in (cuts[:, :-1], cuts[:, 1:], margins[:, :-1], margins[:, 1:]))
        waiting.append((pair, a, b, m_a, m_b))
    pair, a, b, m_a, m_b = (np.concatenate([part[column] for part in found]) for column in range(5))
    roots = _close_in(value, pair, a, b, m_a, m_b)
    changes: dict[int, list[float]] = {}
    for index, root in zip(pair.tolist(), roots.tolist(), strict=True):
        changes.setdefault(index, []).append(root)
    result: list[Spans] = []
    for index in range(len(burst_s)):
        if index not in first:
            result.append([])
            continue
        times = sorted(changes.get(index, []))
        if first[index]:
            times.insert(0, float(burst_s[index]))
        if len(times) % 2:
            times.append(float(end[index]))
        result.append(list(zip(times[::2], times[1::2], strict=True)))
    return result


def _close_in(
    value: Callable[[NDArray[np.intp], Array], Array],
    pair: NDArray[np.intp],
    a: Array,
    b: Array,
    m_a: Array,
    m_b: Array,
) -> Array:
    """Roots in brackets by false position (Illinois)."""
    for _ in range(CLOSING_STEPS):
        if not len(pair):
            break
        gap = m_b - m_a
        share = np.where(gap != 0.0, -m_a / np.where(gap != 0.0, gap, 1.0), 0.5)
        middle = np.clip(a + share * (b - a), a, b)
        m = value(pair, middle)
        left = (m >= 0.0) == (m_a >= 0.0)
        m_a, m_b = np.where(left, m, 0.5 * m_a), np.where(left, 0.5 * m_b, m)
        a, b = np.where(left, middle, a), np.where(left, b, middle)
    return 0.5 * (a + b)


def union_length(spans: Spans) -> float:
    """Length of the union of intervals, s."""
    total, reached = 0.0, -np.inf
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return float(total)
