"""Bench dragon: the physics against independent computations, and mutants that must differ.

The second opinion here shares nothing with the package: handles by bracketed roots on a path walked in small steps,
polygons by shapely, speeds by differences, the turn by solving its landing conditions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, root

from tbmm_env.problems import cumcm_2024_a as dragon
from tbmm_env.problems.cumcm_2024_a.chain import angle_at, arc_length, follower, position
from tbmm_env.problems.cumcm_2024_a.collision import Approach, Board, Boards, Gap, Handle, leader_gap, separation
from tbmm_env.problems.cumcm_2024_a.parameters import setting
from tbmm_env.problems.cumcm_2024_a.peak import Link, peak_ratio, scan, speeds
from tbmm_env.problems.cumcm_2024_a.search import first_zero, least
from tbmm_env.problems.cumcm_2024_a.spiral import PITCH_SLOPE, approach_gap_m, least_pitch_m
from tbmm_env.problems.cumcm_2024_a.turn import Turn

OFFICIAL = setting(dragon.OFFICIAL)
BOARDS, TURN = OFFICIAL.boards, OFFICIAL.turn
Point = tuple[float, float]
Path = Callable[[float], Point]

# ---------------------------------------------------------------- the second opinion


def spiral_point(theta: float, pitch: float) -> Point:
    radius = pitch * theta / (2.0 * math.pi)
    return radius * math.cos(theta), radius * math.sin(theta)


def handles_on(path: Path, start: float, sign: float, step: float, count: int) -> list[float]:
    """Path coordinates of the first handles: walk back until the chord is reached, then bracket the root."""
    places = [start]
    for index in range(count):
        chord = 2.86 if index == 0 else 1.65
        x, y = path(places[-1])

        def off(at: float, x: float = x, y: float = y, chord: float = chord) -> float:
            px, py = path(at)
            return math.hypot(px - x, py - y) - chord

        low = places[-1]
        high = low + sign * step
        while off(high) < 0.0:
            low, high = high, high + sign * step
        places.append(float(brentq(off, low, high, xtol=1e-15, rtol=1e-15)))
    return places


def polygons(theta: float, pitch: float, count: int) -> list[shapely.Polygon]:
    """Full rectangles of the first boards on a spiral."""

    def path(at: float) -> Point:
        return spiral_point(at, pitch)

    points = [path(at) for at in handles_on(path, theta, 1.0, 0.01, count)]
    result = []
    for (fx, fy), (rx, ry) in zip(points[:-1], points[1:], strict=True):
        norm = math.hypot(fx - rx, fy - ry)
        ux, uy = (fx - rx) / norm, (fy - ry) / norm
        ends = ((fx + 0.275 * ux, fy + 0.275 * uy), (rx - 0.275 * ux, ry - 0.275 * uy))
        corners = [
            (x + side * 0.15 * -uy, y + side * 0.15 * ux)
            for (x, y), sides in zip(ends, ((1, -1), (-1, 1)), strict=True)
            for side in sides
        ]
        result.append(shapely.Polygon(corners))
    return result


def overlaps(boards: list[shapely.Polygon]) -> set[tuple[int, int]]:
    """Pairs of boards, not joined to each other, with a common area."""
    tree = shapely.STRtree(boards)
    pairs = tree.query(boards, predicate="intersects")
    return {
        (int(i), int(j)) for i, j in pairs.T if j >= i + 2 and boards[int(i)].intersection(boards[int(j)]).area > 0.0
    }


def theta_at(time_s: float, pitch: float = 0.55) -> float:
    """Polar angle of the head by a root of the arc length formula."""
    b = pitch / (2.0 * math.pi)

    def length(theta: float) -> float:
        return 0.5 * b * (theta * math.sqrt(1.0 + theta * theta) + math.asinh(theta))

    return float(brentq(lambda theta: length(32.0 * math.pi) - length(theta) - time_s, 1.0, 32.0 * math.pi, xtol=1e-14))


# ---------------------------------------------------------------- questions 2 and 3


def test_polygons_confirm_the_first_overlap() -> None:
    best = dragon.reference(dragon.OFFICIAL)["anchor"]["q2_termination_time_s"]
    assert overlaps(polygons(theta_at(best - 1e-6), 0.55, 223)) == set()
    assert overlaps(polygons(theta_at(best + 1e-6), 0.55, 223)) == {(0, 8)}


def test_polygons_find_no_earlier_overlap() -> None:
    for time_s in np.linspace(0.0, 412.4737, 60):
        assert overlaps(polygons(theta_at(float(time_s)), 0.55, 60)) == set()


def test_polygons_confirm_the_least_pitch() -> None:
    best = dragon.reference(dragon.OFFICIAL)["anchor"]["q3_pitch_m"]
    contact = 63.797752
    below, above = best - 2e-6, best + 2e-6
    touching = set()
    for theta in contact + np.linspace(-2e-3, 2e-3, 21):
        touching |= overlaps(polygons(float(theta), below, 60))
        assert overlaps(polygons(float(theta), above, 60)) == set()
    assert touching == {(0, 19)}
    for radius in np.linspace(4.5, 5.5, 80):
        assert overlaps(polygons(2.0 * math.pi * radius / above, above, 60)) == set()


def test_a_test_on_the_circle_alone_would_pass_a_pitch_that_fails() -> None:
    """The mutant behind 0.4171 and the like: it sees nothing where the whole approach overlaps."""
    for pitch, passes in ((0.4171, False), (0.4203, True), (0.43, True), (0.4503, True)):
        theta = np.array([2.0 * math.pi * 4.5 / pitch])
        on_circle = float(leader_gap(BOARDS, theta, pitch, head=True).value[0])
        assert (on_circle >= 0.0) == passes
        assert approach_gap_m(BOARDS, pitch, 16, 4.5)[0] < -3e-5


def test_distances_of_handles_instead_of_rectangles_would_be_late() -> None:
    """The mutant behind 464 s: when the rectangles first touch, no handle is within a board width of another chain."""
    places = handles_on(lambda at: spiral_point(at, 0.55), theta_at(412.4738377), 1.0, 0.01, 60)
    points = np.array([spiral_point(at, 0.55) for at in places])
    away = np.hypot(*(points[:, None] - points[None, :]).transpose(2, 0, 1))
    assert np.min(away[np.triu_indices(len(points), 2)]) > 0.45


def test_smaller_pitches_are_all_refused() -> None:
    for pitch in np.arange(0.30, 0.4503, 0.01):
        assert approach_gap_m(BOARDS, float(pitch), 16, 4.5)[0] < -3e-5


@pytest.mark.parametrize("seed", range(3))
def test_sampled_least_pitches_are_least(seed: int) -> None:
    given = setting(dragon.sample(seed))
    radius, start = given.turn.radius_m, given.start_turn
    best = least_pitch_m(given.boards, start, radius, given.spiral_pitch_m)
    assert best is not None
    assert abs(approach_gap_m(given.boards, best, start, radius)[0]) < 1e-10
    for pitch in np.linspace(given.boards.width_m, best - 1e-5, 12):
        assert approach_gap_m(given.boards, float(pitch), start, radius)[0] < 0.0


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("narrow", [False, True])
def test_separations_change_no_faster_than_their_bound(seed: int | None, narrow: bool) -> None:
    """The slope bound of the certified searches, against differences of samples 1 cm apart."""
    given = OFFICIAL if seed is None else setting(dragon.sample(seed))
    pitch = given.boards.width_m * 1.1 if narrow else given.spiral_pitch_m
    end = given.turn.radius_m if narrow else 0.52 * given.boards.head_chord_m
    approach = Approach(given.boards, pitch, given.start_turn, end)
    at = np.linspace(0.0, approach.travel_m, int(approach.travel_m / 0.01))
    for gap, places in ((approach.leaders(at), at), (approach.outer()[0](at[:4000]), at[:4000])):
        change = np.abs(np.diff(gap.value)) / np.diff(places)
        ends = np.maximum(gap.slope[1:], gap.slope[:-1])
        assert np.max(change / ends) < 0.1


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_separations_change_with_the_pitch_no_faster_than_assumed(seed: int | None) -> None:
    """The slope bound of the scan over pitches, at fixed radii of the head on the last stretch before the circle."""
    given = OFFICIAL if seed is None else setting(dragon.sample(seed))
    radii = np.linspace(given.turn.radius_m, given.turn.radius_m + 1.5, 400)
    step = 1e-5
    for pitch in np.linspace(given.boards.width_m, given.spiral_pitch_m, 40):
        one, two = (
            leader_gap(given.boards, 2.0 * np.pi * radii / p, float(p), head=True).value for p in (pitch, pitch + step)
        )
        assert np.max(np.abs(two - one)) / step < 0.8 * PITCH_SLOPE


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_the_outer_stretch_never_decides(seed: int | None) -> None:
    given = OFFICIAL if seed is None else setting(dragon.sample(seed))
    anchor = dragon.reference(dragon.OFFICIAL if seed is None else dragon.sample(seed))["anchor"]
    for pitch in (anchor["q3_pitch_m"], given.spiral_pitch_m):
        gap, length = Approach(given.boards, pitch, given.start_turn, given.turn.radius_m).outer()
        assert least(gap, length, below=0.01)[0] == 0.01


def test_every_board_behind_the_head_repeats_board_one() -> None:
    """The reduction to leading boards: no pair of the whole chain is ever closer than the leaders were up to then."""
    approach = Approach(BOARDS, 0.55, 16, 1.5)
    outer, length = approach.outer()
    floor = least(outer, length)[0]
    earlier = np.inf
    for travelled in np.linspace(0.0, 412.0, 12):
        earlier = min(earlier, float(np.min(approach.leaders(np.linspace(0.0, travelled, 4000)).value)))
        handle = Handle.foremost(angle_at(np.array(approach.start_length_m - travelled), approach.b), approach.b)
        chain = []
        for index in range(BOARDS.count):
            rear = handle.follower(BOARDS.head_chord_m if index == 0 else BOARDS.body_chord_m, approach.b)
            size = BOARDS.head_m if index == 0 else BOARDS.body_m
            chain.append(Board.between(handle, rear, size, BOARDS.width_m))
            handle = rear
        pairs = [float(separation(chain[i], chain[j])) for i in range(BOARDS.count) for j in range(i + 2, BOARDS.count)]
        assert min(pairs) >= min(earlier, floor) - 2e-3


rectangles = st.tuples(
    st.floats(-2.0, 2.0), st.floats(-2.0, 2.0), st.floats(0.0, 2.0 * math.pi), st.floats(0.2, 2.0), st.floats(0.1, 0.5)
)


@settings(deadline=None, max_examples=200)
@given(one=rectangles, two=rectangles)
def test_separation_agrees_with_polygon_clipping(one: tuple[float, ...], two: tuple[float, ...]) -> None:
    shapes, boards = [], []
    for x, y, angle, length, width in (one, two):
        ux, uy = math.cos(angle), math.sin(angle)
        zero = np.array(0.0)
        boards.append(Board(*(np.array(v) for v in (x, y, ux, uy)), 0.5 * length, 0.5 * width, zero, zero, zero))
        corners = [
            (x + 0.5 * (s * length * ux - t * width * uy), y + 0.5 * (s * length * uy + t * width * ux))
            for s, t in ((1, 1), (1, -1), (-1, -1), (-1, 1))
        ]
        shapes.append(shapely.Polygon(corners))
    gap = float(separation(*boards))
    if gap > 1e-9:
        assert not shapes[0].intersects(shapes[1])
        assert gap <= shapes[0].distance(shapes[1]) + 1e-9
    elif gap < -1e-9:
        assert shapes[0].intersection(shapes[1]).area > 0.0


@settings(deadline=None, max_examples=100)
@given(theta=st.floats(3.0, 400.0), chord=st.floats(0.1, 6.0))
def test_followers_are_the_first_point_at_the_chord(theta: float, chord: float) -> None:
    b = 0.1
    behind = float(follower(np.array(theta), chord * 1.0))
    if math.isnan(behind):
        assert 2.0 * theta + math.pi < chord
        return
    x, y = position(np.linspace(theta, behind, 200), b)
    away = np.hypot(x - x[0], y - y[0])
    assert away[-1] == pytest.approx(chord * b, abs=1e-11)
    assert np.all(np.diff(away) > 0.0)


@settings(deadline=None, max_examples=100)
@given(theta=st.floats(0.0, 5000.0), b=st.floats(1e-4, 1.0))
def test_arc_length_has_an_inverse(theta: float, b: float) -> None:
    assert float(angle_at(arc_length(np.array(theta), b), b)) == pytest.approx(theta, rel=1e-12, abs=1e-7)


# ---------------------------------------------------------------- the searches, on functions with known answers


def wave(at: np.ndarray) -> Gap:
    """A narrow dip to 0.01 at 3.3217 among values near 0.2; slope at most 3.1."""
    value = 0.2 + 0.05 * np.sin(2.0 * at)
    dip = 0.01 + 3.0 * np.abs(at - 3.3217)
    return Gap(np.minimum(value, dip), np.full_like(at, 3.1))


def test_the_search_finds_a_dip_between_samples() -> None:
    value, place = least(wave, 10.0)
    assert value == pytest.approx(0.01, abs=1e-12)
    assert place == pytest.approx(3.3217, abs=1e-12)
    grid = wave(np.arange(0.0, 10.0, 0.2)).value
    assert np.min(grid) > 0.05


def test_the_search_for_a_zero_finds_a_narrow_first_one() -> None:
    def shifted(at: np.ndarray) -> Gap:
        gap = wave(at)
        return Gap(gap.value - 0.0100003, gap.slope)

    found = first_zero(shifted, 10.0)
    assert found == pytest.approx(3.3217 - 1e-7, abs=1e-9)
    assert first_zero(wave, 10.0) is None
    assert first_zero(lambda at: Gap(0.0 * at - 1.0, 0.0 * at), 1.0) == 0.0
    assert first_zero(lambda at: Gap(0.5 - at, 0.0 * at + 1.0), 3.0) == pytest.approx(0.5, abs=1e-12)


# ---------------------------------------------------------------- question 4


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize(("pitch", "radius"), [(1.7, 4.5), (1.21, 3.75), (3.5, 6.0)])
def test_the_closed_form_lands_on_the_outgoing_spiral(ratio: float, pitch: float, radius: float) -> None:
    """Length and radii from the landing conditions alone: turn clockwise, then back, end at -E facing as before."""
    turn = Turn(pitch, radius, ratio)
    theta = 2.0 * math.pi * radius / pitch
    ex, ey = radius * math.cos(theta), radius * math.sin(theta)
    heading = theta + math.pi + math.atan(theta)  # -(e_r + theta e_theta) turned into an angle

    def landing(unknown: np.ndarray) -> list[float]:
        small, angle = unknown
        x, y, way = ex, ey, heading
        for size, side in ((ratio * small, -1.0), (small, 1.0)):
            cx, cy = x - side * size * math.sin(way), y + side * size * math.cos(way)
            way += side * angle
            x, y = cx + side * size * math.sin(way), cy - side * size * math.cos(way)
        return [x + ex, y + ey]

    small, angle = root(landing, [radius / (1.0 + ratio), 3.0], tol=1e-11).x
    assert turn.radii_m == pytest.approx((ratio * small, small), rel=1e-9)
    assert turn.length_m == pytest.approx((1.0 + ratio) * small * angle, rel=1e-9)
    assert turn.length_m == pytest.approx(Turn(pitch, radius, 1.0).length_m, rel=1e-14)


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3, 4])
def test_the_path_is_smooth_and_as_long_as_it_says(seed: int | None) -> None:
    turn = TURN if seed is None else setting(dragon.sample(seed)).turn
    lengths = np.linspace(-20.0, turn.length_m + 20.0, 400_001)
    q = turn.coordinate_at(lengths)
    assert np.max(np.abs(turn.length_at(q) - lengths)) < 1e-12
    x, y, tx, ty = turn.point(q)
    step = lengths[1] - lengths[0]
    assert np.max(np.abs(np.diff(x) / step - 0.5 * (tx[1:] + tx[:-1]))) < 5e-5
    assert np.max(np.abs(np.diff(y) / step - 0.5 * (ty[1:] + ty[:-1]))) < 5e-5
    inside = (lengths > 0.0) & (lengths < turn.length_m)
    assert np.max(np.hypot(x, y)[inside]) <= turn.radius_m + 1e-12
    back_x, back_y, _, _ = turn.point(turn.coordinate_at(np.array([-7.0])))
    out_x, out_y, _, _ = turn.point(turn.coordinate_at(np.array([turn.length_m + 7.0])))
    assert (float(out_x[0]), float(out_y[0])) == pytest.approx((-float(back_x[0]), -float(back_y[0])), abs=1e-12)


# ---------------------------------------------------------------- question 5


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_followers_on_the_turn_are_the_first_point_at_the_chord(seed: int | None) -> None:
    given = OFFICIAL if seed is None else setting(dragon.sample(seed))
    turn = given.turn
    lengths = np.linspace(-3.0, turn.length_m + 60.0, 1500)
    q = turn.coordinate_at(lengths)
    x, y, _, _ = turn.point(q)
    for chord in (given.boards.head_chord_m, given.boards.body_chord_m):
        behind = turn.behind(q, chord)
        places = turn.length_at(behind)
        assert np.all(np.diff(places) > 0.0)
        bx, by, _, _ = turn.point(behind)
        assert np.max(np.abs(np.hypot(x - bx, y - by) - chord)) < 1e-12
        between = places[:, None] + (lengths - places)[:, None] * np.linspace(0.02, 1.0, 50)
        mx, my, _, _ = turn.point(turn.coordinate_at(between.ravel()))
        away = np.hypot(mx.reshape(between.shape) - x[:, None], my.reshape(between.shape) - y[:, None])
        assert np.all(away < chord)


def test_differences_confirm_the_peak() -> None:
    """Speeds at the peak by moving the head a little, on handles found by walking along the path."""

    def path(at: float) -> Point:
        x, y, _, _ = TURN.point(TURN.coordinate_at(np.array([at])))
        return float(x[0]), float(y[0])

    step = 1e-6
    before, after = (
        [path(at) for at in handles_on(path, 14.479969607 + sign * step, -1.0, 0.02, 8)] for sign in (-2.0, -1.0)
    )
    moved = [math.dist(one, two) / step for one, two in zip(before, after, strict=True)]
    assert max(moved) == pytest.approx(1.6047933789666442, abs=2e-5)
    assert moved[0] == pytest.approx(1.0, abs=1e-6)


def test_the_peak_is_found_where_it_is_known() -> None:
    ratio, place = peak_ratio(BOARDS, TURN)
    assert ratio == pytest.approx(1.6047933789666442, abs=1e-12)
    assert place == pytest.approx(14.479969607, abs=1e-8)


def test_steps_of_one_second_would_miss_the_peak() -> None:
    """The mutant behind 1.4063 m/s."""
    q = TURN.coordinate_at(np.arange(-100.0, 101.0))
    on_grid = float(np.max(speeds(BOARDS, TURN, q, BOARDS.count + 1)))
    assert on_grid == pytest.approx(1.422195262637, abs=1e-11)
    assert 2.0 / on_grid * peak_ratio(BOARDS, TURN)[0] > 2.25


@pytest.mark.parametrize("seed", [None, 0, 4, 5])
def test_a_fine_scan_without_tables_is_below_the_peak(seed: int | None) -> None:
    """Exact speeds, every 10 mm while the head turns and every 0.5 m afterwards, reach the peak and never pass it."""
    given = OFFICIAL if seed is None else setting(dragon.sample(seed))
    turn, boards = given.turn, given.boards
    ratio, _ = peak_ratio(boards, turn)
    tops = []
    later, end = turn.length_m + 12.0, scan(boards, turn)[0][-1]
    for start, stop, step in ((0.0, later, 0.01), (later, end, 0.5)):
        q = turn.coordinate_at(np.arange(start, stop, step))
        tops.append(float(np.max(speeds(boards, turn, q, boards.count + 1))))
    assert max(tops) <= ratio + 1e-12
    assert max(tops) >= ratio - 0.02


def test_the_table_scan_follows_the_exact_speeds() -> None:
    at, highest, _ = scan(BOARDS, TURN)
    chosen = slice(0, at.size, 97)
    exact = np.max(speeds(BOARDS, TURN, TURN.coordinate_at(at[chosen]), BOARDS.count + 1), axis=0)
    assert np.max(np.abs(exact - highest[chosen])) < 2e-3


def test_followers_are_slower_on_the_incoming_spiral() -> None:
    q = TURN.coordinate_at(np.linspace(-400.0, 0.0, 500))
    for chord in (BOARDS.head_chord_m, BOARDS.body_chord_m):
        assert np.all(Link(TURN, chord).at(q)[1] < 1.0)


def test_boards_are_what_their_dimensions_say() -> None:
    boards = Boards(count=3, head_m=3.41, body_m=2.2, width_m=0.3, inset_m=0.275)
    assert (boards.head_chord_m, boards.body_chord_m) == pytest.approx((2.86, 1.65))
