"""The judge's own plans for sampled instances: scan crossings, pick greedily, improve by seeded local search.

One block is one drone: its heading, its speed and its bombs, given what other drones hide already. A scan over
headings, speeds and crossing times with estimated stretches proposes blocks; the best few are improved together by
random steps of many sizes, with true margins sampled around each crossing. Question 5 goes round the drones. All counts
are fixed and all random numbers come from one seed, so the result is a function of the parameters. It need not be
optimal: an answer beyond it scores full marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tbmm_env.problems.draws import generator_of

from .crossing import Crossings, crossings
from .intervals import Spans
from .parameters import GRAVITY_MPS2, Scene
from .plans import Plan, bombs_of, drones_of, missiles_of, spans_by_missile
from .shadow import Array, Sight, margin

SAMPLES: Final = 15
STEPS: Final = np.array([np.radians(4.0), 12.0, 1.5, 2.5, 0.03])
"""Largest random steps: heading (rad), speed (m/s), crossing time (s), height above the line (m), delay (s)."""

COARSE_S: Final = 1e-3
"""Resolution of intervals during the search, s; the ends are as exact as ever."""

TOTAL_WEIGHT: Final = 3.0
WORST_WEIGHT: Final = 1.0
"""Weights of the two metrics of question 5, as in task.toml."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Fixed counts of one block's search.

    Attributes:
        pairs: headings in the scan.
        times: crossing times of each missile in the scan.
        kept: proposals that are improved.
        rounds: rounds of improvement.
        offspring: random changes of each proposal a round.
    """

    pairs: int
    times: int
    kept: int
    rounds: int
    offspring: int


@dataclass(frozen=True, slots=True)
class Aim:
    """What a block is worth: weighted sum over missiles plus a weight on the worst one.

    Attributes:
        missiles: indexes from 0.
        covered: stretches that are hidden already, one merged list a missile.
        worst: weight of the least hidden missile against the sum.
    """

    missiles: tuple[int, ...]
    covered: tuple[Spans, ...]
    worst: float

    def tables(self) -> list[tuple[Array, Array]]:
        """Per missile: times and how much is not hidden before them, both piecewise linear."""
        result = []
        for spans in self.covered:
            times, open_ = [-1e4], [0.0]
            for begin, end in spans:
                free = open_[-1] + begin - times[-1]
                times += [begin, end]
                open_ += [free, free]
            times.append(1e4)
            open_.append(open_[-1] + times[-1] - times[-2])
            result.append((np.array(times), np.array(open_)))
        return result

    def lengths(self) -> Array:
        """What is hidden already, s, per missile."""
        return np.array([sum((end - begin for begin, end in spans), 0.0) for spans in self.covered])

    def value(self, hidden: Array) -> Array:
        """Worth of hidden times; last axis: missiles."""
        result: Array = hidden.sum(axis=-1) + self.worst * hidden.min(axis=-1)
        return result


def merged(spans: Spans) -> Spans:
    """The union of intervals as disjoint rising intervals."""
    result: Spans = []
    for begin, end in sorted(spans):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((begin, end))
    return result


# ---------------------------------------------------------------- proposals


def headings_and_speeds(sight: Sight, drone: int, missiles: Sequence[int], pairs: int) -> tuple[Array, Array]:
    """Pairs that lead a drone (index from 0) to some line of sight in time, from a fixed low-discrepancy sequence.

    Each heading stands with the speed that fits and with the highest one.
    """
    given = sight.scene
    index = np.arange(1, 12 * pairs + 1)
    time_share, line_share, lead = ((index * step) % 1.0 for step in (0.8191725134, 0.6710436067, 0.5497004779))
    missile = np.array(missiles, dtype=np.intp)[index % len(missiles)]
    time = time_share * sight.arrival_s[missile]
    place = sight.at(missile, time)
    x, y, _ = given.target_m
    share = line_share**0.7
    goal = place + share[:, None] * (np.array([x, y, 0.5 * given.target_height_m]) - place)
    start = np.array(given.drones_m[drone])
    dx, dy = goal[:, 0] - start[0], goal[:, 1] - start[1]
    burst = np.maximum(time - lead * 0.4 * given.cloud_life_s, 0.3)
    speed = np.hypot(dx, dy) / burst
    fall = start[2] - goal[:, 2] - given.sink_mps * (time - burst)
    fit = (speed >= given.speed_min_mps) & (speed <= given.speed_max_mps) & (fall >= 0.0)
    fit &= np.sqrt(np.maximum(fall, 0.0) / (0.5 * GRAVITY_MPS2)) <= burst
    chosen = np.flatnonzero(fit)[:pairs]
    heading = np.arctan2(dy, dx)[chosen]
    fastest = np.full(len(chosen), given.speed_max_mps)
    return np.concatenate([heading, heading]), np.concatenate([speed[chosen], fastest])


def propose(sight: Sight, drone: int, count: int, aim: Aim, effort: Effort) -> list[tuple[float, Array, list[int]]]:
    """Blocks by estimate, best first: estimated gain, block, missile (place in ``aim``) of each bomb.

    A block is (heading rad, speed, then per bomb crossing time, height above the line, delay).
    """
    given = sight.scene
    heading, speed = headings_and_speeds(sight, drone, aim.missiles, effort.pairs)
    if not len(heading):
        return []
    which = np.repeat(np.arange(len(aim.missiles)), effort.times)
    missile = np.array(aim.missiles, dtype=np.intp)[which]
    time = np.tile((np.arange(effort.times) + 0.5) / effort.times, len(aim.missiles)) * sight.arrival_s[missile]
    found = crossings(sight, np.array(drone), heading[:, None], speed[:, None], missile[None, :], time[None, :])
    release = found.burst_s - found.fuse_s
    length = np.zeros_like(release)
    for place, (times, open_) in enumerate(aim.tables()):
        mine = which == place
        length[:, mine] = np.interp(found.end_s[:, mine], times, open_) - np.interp(
            found.begin_s[:, mine], times, open_
        )
    hidden = aim.lengths()
    weight = np.ones(len(aim.missiles))
    weight[hidden.argmin()] += aim.worst
    length = np.where(found.valid, length, 0.0) * weight[which]
    rows = np.arange(len(heading))
    gain = np.zeros(len(heading))
    picks = []
    for _ in range(count):
        best = length.argmax(axis=1)
        gain += length[rows, best]
        picks.append(best)
        begin, end = found.begin_s[rows, best][:, None], found.end_s[rows, best][:, None]
        overlap = np.maximum(np.minimum(found.end_s, end) - np.maximum(found.begin_s, begin), 0.0)
        same = which[None, :] == which[best][:, None]
        length = np.where(same, length - overlap * weight[which], length)
        near = np.abs(release - release[rows, best][:, None]) < given.release_gap_s + 1e-3
        length = np.where(near, 0.0, np.maximum(length, 0.0))
    result = []
    for row in np.argsort(-gain, kind="stable")[: effort.kept]:
        chosen = [int(best[row]) for best in picks if found.valid[row, best[row]]]
        steps = [part for column in chosen for part in (time[column], 0.0, 0.0)]
        if chosen:
            block = np.array([heading[row], speed[row], *steps])
            result.append((float(gain[row]), block, [int(which[column]) for column in chosen]))
    return result


# ---------------------------------------------------------------- improvement


def worth(sight: Sight, drone: int, blocks: Array, targets: NDArray[np.intp], aim: Aim) -> tuple[Array, Array, Array]:
    """Worth of blocks by sampled margins, with their bursts and fuses, s.

    Args:
        sight: of the scene.
        drone: index from 0.
        blocks: shape (n, 2 + 3 bombs).
        targets: place in ``aim`` of each bomb's missile, shape (n, bombs).
        aim: what counts.

    Returns:
        Worth, shape (n,), very low where a block breaks a rule; bursts and fuses, shape (n, bombs).
    """
    given = sight.scene
    time, above, later = (blocks[:, 2 + part :: 3] for part in range(3))
    missile = np.array(aim.missiles, dtype=np.intp)[targets]
    heading, speed = blocks[:, :1], blocks[:, 1:2]
    found = crossings(sight, np.array(drone), heading, speed, missile, time, above, later)
    release = np.sort(found.burst_s - found.fuse_s, axis=1)
    fair = found.valid.all(axis=1)
    if release.shape[1] > 1:
        fair &= np.diff(release, axis=1).min(axis=1) >= given.release_gap_s + 1e-5
    begin, end, depth = _stretch(sight, drone, blocks, found, missile)
    hidden = np.tile(aim.lengths(), (len(blocks), 1))
    order = np.argsort(begin, axis=1, kind="stable")
    rows = np.arange(len(blocks))
    for place, (times, open_) in enumerate(aim.tables()):
        reached = np.full(len(blocks), -1e4)
        for column in range(time.shape[1]):
            pick = order[:, column]
            mine = targets[rows, pick] == place
            low = np.maximum(begin[rows, pick], reached)
            high = np.where(mine, np.maximum(end[rows, pick], low), low)
            hidden[:, place] += np.interp(high, times, open_) - np.interp(low, times, open_)
            reached = np.where(mine, np.maximum(reached, high), reached)
    shaped = aim.value(hidden) + 0.01 * np.minimum(depth, 0.0).sum(axis=1)
    return np.where(fair, shaped, -1e6), found.burst_s, found.fuse_s


def _stretch(
    sight: Sight, drone: int, blocks: Array, found: Crossings, missile: NDArray[np.intp]
) -> tuple[Array, Array, Array]:
    """Begin and end of the hidden stretch around each crossing from sampled margins, and the margin in its middle."""
    given = sight.scene
    start = given.drones_m[drone]
    burst, fuse = found.burst_s, found.fuse_s
    time = 0.5 * (found.begin_s + found.end_s)
    offsets = np.linspace(-1.0, 1.0, SAMPLES)
    last = np.minimum(burst + given.cloud_life_s, sight.arrival_s[missile])
    at = time[..., None] + (0.9 * (found.end_s - found.begin_s) + 0.3)[..., None] * offsets
    at = np.clip(at, burst[..., None], np.maximum(last, burst)[..., None])
    run = blocks[:, 1:2] * burst
    place = np.stack([start[0] + run * np.cos(blocks[:, :1]), start[1] + run * np.sin(blocks[:, :1]),
                      start[2] - 0.5 * GRAVITY_MPS2 * fuse**2], axis=-1)  # fmt: skip
    cloud = np.repeat(place[..., None, :], SAMPLES, axis=-2)
    cloud[..., 2] -= given.sink_mps * (at - burst[..., None])
    which = np.broadcast_to(missile[..., None], at.shape)
    m = margin(given, sight.at(which.ravel(), at.ravel()), cloud.reshape(-1, 3)).reshape(at.shape)
    centre = SAMPLES // 2
    shown = m >= 0.0
    right = np.cumprod(shown[..., centre:], axis=-1).sum(axis=-1) + centre  # first sample that is not hidden
    left = centre - np.cumprod(shown[..., centre::-1], axis=-1).sum(axis=-1)
    hidden = shown[..., centre]

    def edge(outer: NDArray[np.intp], step: int) -> Array:
        outside = np.clip(outer, 0, SAMPLES - 1)[..., None]
        inside = np.clip(outer - step, 0, SAMPLES - 1)[..., None]
        m_out, m_in, t_out, t_in = (
            np.take_along_axis(grid, place_, axis=-1)[..., 0]
            for grid in (m, at)
            for place_ in (outside, inside)
        )  # fmt: skip
        drop = m_in - m_out
        share = np.where((m_out < 0.0) & (drop > 0.0), m_in / np.where(drop > 0.0, drop, 1.0), 1.0)
        result: Array = np.where(hidden, t_in + share * (t_out - t_in), time)
        return result

    return edge(left, -1), edge(right, 1), m[..., centre]


def improve(sight: Sight, drone: int, seeds: Sequence[tuple[Array, list[int]]], aim: Aim, effort: Effort,
            generator: np.random.Generator) -> Plan | None:  # fmt: skip
    """Improves blocks of one length together and returns the plan of the best; None when none is fair."""
    given = sight.scene
    bests = np.array([block for block, _ in seeds])
    targets = np.array([missiles for _, missiles in seeds], dtype=np.intp)
    values = worth(sight, drone, bests, targets, aim)[0]
    kept, width = bests.shape
    scale = np.concatenate([STEPS[:2], np.tile(STEPS[2:], (width - 2) // 3)])
    for number in range(effort.rounds):
        if number == effort.rounds // 2 and kept > 1:  # the rest for the best two, with more offspring
            order = np.argsort(-values, kind="stable")[:2]
            bests, targets, values, kept = bests[order], targets[order], values[order], len(order)
        each = effort.offspring * len(seeds) // kept
        size = 10.0 ** (-3.0 * generator.random((kept, each, 1)))
        change = generator.standard_normal((kept, each, width)) * size * scale
        change *= generator.random((kept, each, width)) < 0.5
        tried = bests[:, None, :] + change
        tried[..., 1] = np.clip(tried[..., 1], given.speed_min_mps, given.speed_max_mps)
        flat = tried.reshape(-1, width)
        found = worth(sight, drone, flat, np.repeat(targets, each, axis=0), aim)[0].reshape(kept, each)
        best = found.argmax(axis=1)
        better = found[np.arange(kept), best] > values
        bests = np.where(better[:, None], tried[np.arange(kept), best], bests)
        values = np.where(better, found[np.arange(kept), best], values)
    first = int(values.argmax())
    value, burst, fuse = worth(sight, drone, bests[first : first + 1], targets[first : first + 1], aim)
    if value[0] < -1e5:
        return None
    heading = float(np.degrees(bests[first, 0])) % 360.0
    drops = sorted((max(0.0, round(float(at - fall), 6)), round(float(fall), 6))
                   for at, fall in zip(burst[0], fuse[0], strict=True))  # fmt: skip
    return Plan(drone + 1, round(heading, 6), round(float(bests[first, 1]), 6), tuple(drops))


def best_plan(
    sight: Sight, drone: int, count: int, aim: Aim, effort: Effort, generator: np.random.Generator
) -> Plan | None:
    """A good plan of one drone (index from 0) with up to ``count`` bombs; None when it can hide nothing."""
    proposals = propose(sight, drone, count, aim, effort)
    if not proposals:
        return None
    most = max(len(missiles) for _, _, missiles in proposals)
    return improve(
        sight, drone, [(block, which) for _, block, which in proposals if len(which) == most], aim, effort, generator
    )


# ---------------------------------------------------------------- questions


def solve(scene: Scene, question: str, seed: int, rounds: int, effort: Effort) -> list[Plan]:
    """Plans of one question, improved drone by drone.

    Args:
        scene: the instance.
        question: ``q2`` to ``q5``.
        seed: of all random steps.
        rounds: how often to go round the drones.
        effort: of each block.
    """
    sight = Sight.of(scene)
    generator = generator_of(2025, seed)
    missiles = missiles_of(scene, question)
    worst = WORST_WEIGHT * len(missiles) / TOTAL_WEIGHT if len(missiles) > 1 else 0.0
    plans: dict[int, Plan] = {}
    spans: dict[int, list[Spans]] = {}
    for _ in range(rounds):
        for drone in drones_of(scene, question):
            others = [_joined(spans, place, drone) for place in range(len(missiles))]
            aim = Aim(missiles, tuple(merged(entry) for entry in others), worst)
            plan = best_plan(sight, drone - 1, bombs_of(scene, question), aim, effort, generator)
            if plan is None:
                continue
            mine = spans_by_missile(sight, [plan], missiles, COARSE_S)
            if drone in plans and _value(aim, spans[drone]) >= _value(aim, mine):
                continue
            plans[drone], spans[drone] = plan, mine
    return [plans[drone] for drone in sorted(plans)]


def _joined(spans: Mapping[int, list[Spans]], place: int, without: int) -> Spans:
    """What all drones but one hide from a missile."""
    return [span for drone, lists in spans.items() if drone != without for span in lists[place]]


def _value(aim: Aim, mine: list[Spans]) -> float:
    """Worth of what is covered together with the stretches of one plan."""
    together = [merged([*covered, *added]) for covered, added in zip(aim.covered, mine, strict=True)]
    return float(aim.value(np.array([sum(end - begin for begin, end in spans) for spans in together])))
