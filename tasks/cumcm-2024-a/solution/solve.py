# tbmm-canary-7f1c2e9a-53d4-4c0e-9b86-1a0d5e8f2b47
"""Bench dragon (CUMCM 2024 A): solves questions 2 to 5 and writes the answer file.

Question 2 and 3 (spiral). Everything is a function of how far the head has travelled. The gap between two boards is
the smallest signed distance of a corner of one to the other, measured in the other board's own frame; it cannot change
faster than a constant times the head's travel, so a sampled gap proves a whole neighbourhood free. Halving the unproved
intervals finds the first overlap without a chance of stepping over a short one.

Question 4 (turn). Two tangent arcs with parallel end tangents: the sum of the radii follows from one linear equation.

Question 5 (speed). The path has one angular coordinate over all four pieces. Each handle is placed behind its
predecessor by steps that cannot pass the nearest solution, speeds follow from the rigid boards, and the peaks of the
fastest handle are found by a scan over the whole passage and closed in by repeated finer sampling.
"""

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import brentq

SAFETY = 5e-10  # how far the reported values stay on the feasible side
TWO_PI = 2 * math.pi


@dataclass(frozen=True)
class Dragon:
    """The boards, and the run they make in every question (lengths in metres, speeds in metres per second)."""

    pitch: float
    turn_pitch: float
    head_board: float
    body_board: float
    width: float
    inset: float
    boards: int
    diameter: float
    ratio: float
    cap: float
    start_turn: float
    speed: float

    @classmethod
    def load(cls, parameters):
        """Read the instance's parameters."""
        names = {
            "pitch": "spiral_pitch_m",
            "turn_pitch": "turn_pitch_m",
            "head_board": "head_board_m",
            "body_board": "body_board_m",
            "width": "board_width_m",
            "inset": "hole_inset_m",
            "boards": "boards",
            "diameter": "turn_diameter_m",
            "ratio": "arc_ratio",
            "cap": "speed_cap_mps",
            "start_turn": "start_turn",
            "speed": "head_speed_mps",
        }
        return cls(**{field: parameters[name] for field, name in names.items()})

    @property
    def head_span(self):
        """Distance between the two handles of the head board."""
        return self.head_board - 2 * self.inset

    @property
    def body_span(self):
        """Distance between the two handles of every other board."""
        return self.body_board - 2 * self.inset

    @property
    def radius(self):
        """Radius of the turning circle."""
        return self.diameter / 2


# ---------------------------------------------------------------------------------------------- the dragon on a spiral


class Spiral:
    """The curve r = b * angle, with its length measured from the centre."""

    def __init__(self, pitch):
        self.b = pitch / TWO_PI

    def length(self, angle):
        """Length of the curve from the centre to `angle`."""
        return self.b / 2 * (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle))

    def angle(self, length):
        """Angle at which the curve has the given length: the inverse of `length`."""
        length = np.asarray(length, dtype=float)
        angle = np.sqrt(2 * length / self.b)  # never below the answer; `length` is convex, so Newton comes down to it
        for _ in range(6):
            angle = angle - (self.length(angle) - length) / (self.b * np.sqrt(1 + angle**2))
        return angle

    def outer(self, angle, span):
        """Angle of the next handle outwards, at distance `span` from the handle at `angle`.

        With the difference of angles x, (span / b)^2 = x^2 + 4 angle (angle + x) sin^2(x / 2), which grows with x up to
        half a turn. Newton's method, kept inside half a turn.
        """
        target = (span / self.b) ** 2
        x = np.minimum(span / (self.b * np.sqrt(1 + angle**2)), math.pi)
        for _ in range(30):
            half = np.sin(x / 2)
            value = x**2 + 4 * angle * (angle + x) * half**2 - target
            slope = 2 * x + 4 * angle * half**2 + 2 * angle * (angle + x) * np.sin(x)
            step = value / slope
            x = np.clip(x - step, 0.0, math.pi)
            if np.max(np.abs(step)) < 1e-13:
                return angle + x
        if np.all(np.abs(value) < 1e-10 * target):
            return angle + x
        raise ArithmeticError("a board is longer than the spiral is wide")

    def narrowest(self, span):
        """Smallest angle for which the next handle lies within half a turn."""
        return max((span / self.b - math.pi) / 2, 0.0)


class SpiralRun:
    """The dragon coming in along a spiral; `travel` is how far the head has moved from the start turn."""

    FAR = 0.25  # gaps above this are all reported as this

    def __init__(self, dragon, pitch):
        self.dragon = dragon
        self.spiral = Spiral(pitch)
        self.start = self.spiral.length(TWO_PI * dragon.start_turn)
        # A board's end points move no faster than the head, so its turning rate is at most 2 / span and no corner,
        # beyond a handle by at most the inset and half a width, is faster than the bracket. Two boards: twice that.
        span = min(dragon.head_span, dragon.body_span)
        self.rate = 2 * (1 + 2 * (dragon.inset + dragon.width / 2) / span)
        self.all_pairs_until = 2 * dragon.body_span

    def travel_to(self, angle):
        """Travel at which the head is at `angle`."""
        return self.start - self.spiral.length(angle)

    def handles(self, travel, turns):
        """Handle positions (samples, handles, 2), from the head to `turns` beyond the second board (None: all)."""
        angles = [self.spiral.angle(self.start - travel)]
        for board in range(self.dragon.boards):
            if turns and board > 2 and np.all(angles[-1] > angles[2] + TWO_PI * turns):
                break
            angles.append(self.spiral.outer(angles[-1], self.dragon.body_span if board else self.dragon.head_span))
        angles = np.stack(angles, axis=1)
        return self.spiral.b * angles[..., None] * np.stack((np.cos(angles), np.sin(angles)), axis=-1)

    def gap(self, travel):
        """Smallest gap between two boards that are not neighbours, for each travel; negative where boards overlap.

        Past `all_pairs_until` each body board has reached where its predecessor started, so two boards behind the
        second one repeat what the second board and one behind it, or two boards in that first stretch, did before:
        only the head and the second board need looking at, and only against boards up to a turn and a bit further out.
        """
        travel = np.atleast_1d(np.asarray(travel, dtype=float))
        gap = np.full(travel.shape, self.FAR)
        early = travel <= self.all_pairs_until
        for chosen, leading, turns, block in ((early, None, None, 64), (~early, 2, 1.25, 1024)):
            rows = np.flatnonzero(chosen)
            for at in range(0, rows.size, block):
                part = rows[at : at + block]
                gap[part] = self._gap(self.handles(travel[part], turns), leading)
        return gap

    def _gap(self, handles, leading):
        """Smallest gap of the first `leading` boards (all if None) to the boards at least two places behind them."""
        dragon = self.dragon
        front, rear = handles[:, :-1], handles[:, 1:]
        centre = (front + rear) / 2
        axis = rear - front
        span = np.full(axis.shape[1], dragon.body_span)
        span[0] = dragon.head_span
        axis = axis / span[:, None]
        half = span / 2 + dragon.inset
        reach = np.hypot(half, dragon.width / 2)
        gap = np.full(handles.shape[0], self.FAR)
        for first in range(min(axis.shape[1] - 2, leading or axis.shape[1])):
            away = centre[:, first + 2 :] - centre[:, first, None]
            near = np.hypot(away[..., 0], away[..., 1]) < reach[first] + reach[first + 2 :] + self.FAR
            row, second = np.nonzero(near)
            if not row.size:
                continue
            second = second + first + 2
            one = (centre[row, first], axis[row, first], half[first])
            two = (centre[row, second], axis[row, second], half[second])
            np.minimum.at(gap, row, board_gap(one, two, dragon.width / 2))
        return gap


def board_gap(one, two, half_width):
    """Gap between boards given as (centre, unit axis, half length), negative when they overlap.

    Disjoint boards are closest at a corner of one of them, and boards that overlap have a corner of one inside the
    other, or cross like a plus sign; then their centre lines cross.
    """
    gap = np.minimum(corner_gap(one, two, half_width), corner_gap(two, one, half_width))
    (c1, u1, l1), (c2, u2, l2) = one, two
    between = c2 - c1
    sine = cross(u1, u2)
    safe = np.where(sine == 0, 1.0, sine)
    crossing = (sine != 0) & (np.abs(cross(between, u2) / safe) < l1) & (np.abs(cross(between, u1) / safe) < l2)
    return np.where(crossing, np.minimum(gap, -half_width), gap)


def corner_gap(board, other, half_width):
    """Smallest signed distance of a corner of `other` to `board`, in the frame of `board`."""
    centre, axis, half = board
    other_centre, other_axis, other_half = other
    best = np.full(centre.shape[0], math.inf)
    between = other_centre - centre
    x0, y0 = dot(between, axis), cross(axis, between)
    cosine, sine = dot(axis, other_axis), cross(axis, other_axis)
    for along in (other_half, -other_half):
        for aside in (half_width, -half_width):
            x = np.abs(x0 + along * cosine - aside * sine) - half
            y = np.abs(y0 + along * sine + aside * cosine) - half_width
            outside = np.hypot(np.maximum(x, 0), np.maximum(y, 0))
            best = np.minimum(best, outside + np.minimum(np.maximum(x, y), 0))
    return best


def dot(a, b):
    """Inner products of arrays of plane vectors."""
    return a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1]


def cross(a, b):
    """The plane cross products of arrays of plane vectors."""
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def first_overlap(run, begin, end, finest=1e-9, step=0.04):
    """First travel in [begin, end] with overlapping boards as a bracket (free, overlapping), or None if there is none.

    Intervals between samples are proved free by how fast the gap can change, or halved. What is still unproved when
    `finest` wide counts as free.
    """
    block = 1000 * step
    at = begin
    while at < end:
        stop = min(at + block, end)
        bracket = _first_overlap(run, np.linspace(at, stop, max(2, math.ceil((stop - at) / step) + 1)), finest)
        if bracket is not None:
            return bracket
        at = stop
    return None


def _first_overlap(run, x, finest):
    gap = run.gap(x)
    a, b, gap_a, gap_b = x[:-1], x[1:], gap[:-1], gap[1:]
    found = None
    while a.size:
        if np.any(gap_b <= 0) or np.any(gap_a <= 0):
            hits = np.concatenate((a[gap_a <= 0], b[gap_b <= 0]))
            found = hits.min() if found is None else min(found, hits.min())
            keep = a < found
            a, b, gap_a, gap_b = a[keep], b[keep], gap_a[keep], gap_b[keep]
        keep = gap_a + gap_b < run.rate * (b - a)
        a, b, gap_a, gap_b = a[keep], b[keep], gap_a[keep], gap_b[keep]
        if not a.size or b[0] - a[0] < finest:
            break
        middle = (a + b) / 2
        gap_m = run.gap(middle)
        a, b = np.stack((a, middle), 1).ravel(), np.stack((middle, b), 1).ravel()
        gap_a, gap_b = np.stack((gap_a, gap_m), 1).ravel(), np.stack((gap_m, gap_b), 1).ravel()
    return None if found is None else (found - finest, found)


def smallest_gap(run, begin, end, step=0.1):
    """Smallest gap over the travel [begin, end], by sampling and closing in on every dip that may hold it."""
    x = np.linspace(begin, end, max(3, math.ceil((end - begin) / step) + 1))
    gap = run.gap(x)
    padded = np.concatenate(([math.inf], gap, [math.inf]))
    dip = (padded[1:-1] <= padded[:-2]) & (padded[1:-1] <= padded[2:])
    spacing = x[1] - x[0]
    return minimum(run.gap, x[dip & (gap - run.rate * spacing / 2 < gap.min())], spacing, run.rate, begin, end)


def minimum(function, centres, radius, rate, low, high):
    """Least value of a function within `radius` of any of the centres.

    Each neighbourhood is sampled and shrunk around its least sample; it is dropped once its samples show that a
    function changing by at most `rate` per unit cannot get below the best value there.
    """
    offsets = np.linspace(-1, 1, 13)
    best = math.inf
    while radius > 1e-13:
        points = np.clip(centres[:, None] + radius * offsets, low, high)
        values = function(points.ravel()).reshape(points.shape)
        pick = np.argmin(values, axis=1)
        least = values[np.arange(centres.size), pick]
        best = min(best, least.min())
        promising = least - rate * radius / 12 <= best
        centres = points[np.arange(centres.size), pick][promising]
        radius /= 4
    return best


# -------------------------------------------------------------------------------------------------- questions 2 and 3


def question2(dragon):
    """Latest time before which no two boards overlap."""
    run = SpiralRun(dragon, dragon.pitch)
    end = run.travel_to(run.spiral.narrowest(dragon.head_span))
    bracket = first_overlap(run, 0.0, end)
    if bracket is None:
        return end / dragon.speed
    free, overlapping = bracket
    travel = brentq(lambda s: run.gap(s)[0], free, overlapping, xtol=1e-13) if run.gap(free)[0] > 0 else free
    return travel / dragon.speed


def approach_gap(dragon, pitch, stretch=math.inf):
    """Smallest gap while the head comes in from the start turn to the turning circle, or on the last stretch of it."""
    run = SpiralRun(dragon, pitch)
    end = run.travel_to(dragon.radius / run.spiral.b)
    return smallest_gap(run, max(0.0, end - stretch), end)


def question3(dragon):
    """Smallest pitch with which the head reaches the turning circle without an overlap.

    A pitch that cannot do for the last stretch cannot do for the whole approach, so the search climbs from the hopeless
    pitches with a short stretch first and then goes on, if need be, with all of it.
    """
    pitch = max(dragon.width, dragon.radius / dragon.start_turn) * (1 + 1e-9)
    for stretch in (8 * dragon.radius, math.inf):
        pitch = climb(lambda p, stretch=stretch: approach_gap(dragon, p, stretch), pitch)
    return pitch


def climb(gap_at, pitch):
    """First pitch from `pitch` upwards with no overlap; the gap grows nearly as much as the pitch, or less."""
    gap = gap_at(pitch)
    if gap > -1e-12:
        return pitch
    while gap <= 0:
        low, low_gap = pitch, gap
        pitch = low + max(-0.7 * low_gap, 1e-3)
        gap = gap_at(pitch)
    known = {low: low_gap, pitch: gap}
    return brentq(lambda p: known[p] if p in known else gap_at(p), low, pitch, xtol=1e-12)


# -------------------------------------------------------------------------------------------------- questions 4 and 5
class TurnPath:
    """Spiral in, two arcs, and the spiral out, with one coordinate: the angle gone through about the piece's centre.

    The coordinate is 0 at the entry, `phi` where the arcs meet and 2 phi at the exit. On each piece a point is
    centre + reach * (cos, sin)(direction), where reach and direction are linear in the coordinate.
    """

    def __init__(self, dragon):
        self.dragon = dragon
        self.spiral = Spiral(dragon.turn_pitch)
        self.edge = edge = dragon.radius / self.spiral.b  # angle of the entry on the spiral
        self.entry = dragon.radius * np.array([math.cos(edge), math.sin(edge)])
        outward = np.array([math.cos(edge) - edge * math.sin(edge), math.sin(edge) + edge * math.cos(edge)])
        heading = -outward / np.hypot(*outward)
        right = np.array([heading[1], -heading[0]])
        # The heading is the same at the exit, -entry. The centres are entry + r1 right and -entry - r2 right, and
        # r1 + r2 apart: |2 entry + (r1 + r2) right| = r1 + r2.
        total = -(self.entry @ self.entry) / (self.entry @ right)
        self.r1, self.r2 = total * dragon.ratio / (1 + dragon.ratio), total / (1 + dragon.ratio)
        self.c1 = self.entry + self.r1 * right
        self.c2 = -self.entry - self.r2 * right
        joining = (self.c2 - self.c1) / total
        self.phi = math.acos(np.clip(-right @ joining, -1, 1))
        if cross(-right, joining) > 0:  # the first arc runs clockwise
            self.phi = TWO_PI - self.phi
        self.from1 = math.atan2(-right[1], -right[0])
        self.from2 = math.atan2(-joining[1], -joining[0])
        self.turn_length = total * self.phi

    def coordinate(self, length):
        """Coordinate at a distance along the path behind (negative) or past the entry."""
        length = np.asarray(length, dtype=float)
        edge_length = self.spiral.length(self.edge)
        before = self.edge - self.spiral.angle(edge_length + np.maximum(-length, 0))
        after = 2 * self.phi - self.edge + self.spiral.angle(edge_length + np.maximum(length - self.turn_length, 0))
        first, second = length / self.r1, self.phi + (length - self.r1 * self.phi) / self.r2
        choice = np.searchsorted([0, self.r1 * self.phi, self.turn_length], length)
        return np.choose(choice, [before, first, second, after])

    def point(self, q):
        """Positions (complex), derivatives by the coordinate, and the path's length per unit of coordinate."""
        piece = (q > 0).astype(np.int8) + (q > self.phi) + (q > 2 * self.phi)
        b, edge = self.spiral.b, self.edge
        centre = np.array([0, complex(*self.c1), complex(*self.c2), 0])[piece]
        slope = np.array([-b, 0.0, 0.0, -b])[piece]
        reach = np.array([b * edge, self.r1, self.r2, -b * edge + 2 * self.phi * b])[piece] + slope * q
        sense = np.array([-1.0, -1.0, 1.0, 1.0])[piece]
        turned = np.array([edge, self.from1, self.from2 - self.phi, edge - 2 * self.phi])[piece] + sense * q
        along = np.cos(turned) + 1j * np.sin(turned)
        return centre + reach * along, (slope + 1j * sense * reach) * along, np.hypot(slope, reach)

    def back(self, q, distance, rate):
        """Coordinate not further back from `q` than `distance` along the path; `rate` is the path length per unit."""
        after, before = q > 2 * self.phi, q <= 0
        floor = np.where(after, 2 * self.phi, np.where(q > self.phi, self.phi, np.where(before, -math.inf, 0.0)))
        # Going out along the incoming spiral the rate grows: divide by its value after too long a step.
        longer = rate + self.spiral.b * distance / rate
        return np.maximum(q - distance / np.where(before, longer, rate), floor)

    def behind(self, q, span):
        """Coordinate of the nearest point behind `q` at distance `span`, and the speed there relative to that at `q`.

        The distance grows by at most the length gone back, so going back by what is missing cannot pass the nearest
        solution. After some such steps Newton's method takes over, from below and at most a few times as fast.
        """
        here, tangent, rate = self.point(q)
        unit_here = tangent / rate
        behind, missing = q, np.full(q.shape, span)
        for iteration in range(200):
            new = np.where(missing > 0, self.back(behind, missing, rate), behind - missing / rate)
            behind = np.where(np.abs(missing) > 2e-13 * span, new, behind)
            there, tangent, rate = self.point(behind)
            board = here - there
            apart = np.abs(board)
            unit = tangent / rate
            growth = (unit.real * board.real + unit.imag * board.imag) / np.maximum(apart, 1e-300)
            missing = span - apart
            if iteration > 3 and np.max(np.abs(missing)) < 5e-13 * span:
                break
            if iteration >= 5:
                missing = missing / np.maximum(growth, 0.3 if iteration < 12 else 1e-3)
        ahead = (unit_here.real * board.real + unit_here.imag * board.imag) / apart
        return behind, ahead / growth

    def fastest(self, length):
        """Speed of the fastest handle relative to the head's, with the head at each distance past the entry.

        From a handle on the incoming spiral outwards the handles get slower, so the chain is followed that far only.
        """
        q = self.coordinate(length)
        speed = fastest = np.ones(q.shape)
        for board in range(self.dragon.boards):
            if np.all(q <= 0):
                break
            q, ratio = self.behind(q, self.dragon.body_span if board else self.dragon.head_span)
            speed = speed * ratio
            fastest = np.maximum(fastest, speed)
        return fastest

    def peak(self, step=0.02):
        """Largest speed of any handle relative to the head's, over the whole passage through the turn.

        The head goes from the entry until the tail has come out; before that nobody is faster than the head, and
        afterwards the excess only fades. Peaks may be kinks, where a handle passes from one piece to the next.
        """
        dragon = self.dragon
        chain = dragon.head_span + (dragon.boards - 1) * dragon.body_span
        end = self.turn_length + 1.02 * chain + dragon.diameter
        length = np.linspace(0, end, math.ceil(end / step) + 1)
        fastest = np.concatenate([self.fastest(part) for part in np.array_split(length, len(length) // 2000 + 1)])
        top = np.pad(fastest, 1, constant_values=1.0)
        before, here, after = top[:-2], top[1:-1], top[2:]
        rise = np.maximum(here - np.minimum(before, after), 0.005)
        chosen = length[(here >= before) & (here >= after) & (here + 4 * rise >= here.max())]
        return -minimum(lambda x: -self.fastest(x), chosen, length[1], math.inf, 0.0, end)


def question4(path):
    """The turn: its length and its geometry."""
    return {
        "turn_length_m": path.turn_length,
        "path": {
            "entry_m": path.entry.tolist(),
            "centre1_m": path.c1.tolist(),
            "radius1_m": path.r1,
            "centre2_m": path.c2.tolist(),
            "radius2_m": path.r2,
            "exit_m": (-path.entry).tolist(),
        },
    }


def solve(parameters):
    """Answer of one instance."""
    dragon = Dragon.load(parameters)
    path = TurnPath(dragon)
    return {
        "q2": {"termination_time_s": question2(dragon) - SAFETY},
        "q3": {"pitch_m": question3(dragon) + SAFETY},
        "q4": question4(path),
        "q5": {"head_speed_mps": dragon.cap / path.peak() * (1 - SAFETY)},
    }


def main():
    """Read the instance, write the answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instance", type=Path, default=Path("/task/instance.json"))
    parser.add_argument("--out", type=Path, default=Path("/workspace/answer.json"))
    options = parser.parse_args()
    instance = json.loads(options.instance.read_text(encoding="utf-8"))
    options.out.write_text(json.dumps(solve(instance["parameters"]), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
