"""Parameters of an instance: official values, stated ranges and strict checks.

Missiles fly to the decoy at the origin; the target is an upright cylinder beside it. Distances in metres, times in
seconds, speeds in metres per second, headings in degrees counter-clockwise from the x axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tbmm_env.errors import BadInstance
from tbmm_env.problems.fields import named, number
from tbmm_env.record import JsonValue

GRAVITY_MPS2: Final = 9.8
"""Pinned by the statement; a metre per second squared."""

OFFICIAL: Final[Mapping[str, JsonValue]] = {
    "missiles_m": [[20000, 0, 2000], [19000, 600, 2100], [18000, -600, 1900]],
    "missile_speed_mps": 300,
    "drones_m": [[17800, 0, 1800], [12000, 1400, 1400], [6000, -3000, 700], [11000, 2000, 1800], [13000, -2000, 1300]],
    "speed_min_mps": 70,
    "speed_max_mps": 140,
    "bombs": 3,
    "release_gap_s": 1.0,
    "q4_drones": [1, 2, 3],
    "target_x_m": 0,
    "target_y_m": 200,
    "target_radius_m": 7.0,
    "target_height_m": 10.0,
    "cloud_radius_m": 10.0,
    "cloud_life_s": 20,
    "sink_mps": 3.0,
    "q1_heading_deg": 180.0,
    "q1_speed_mps": 120,
    "q1_release_s": 1.5,
    "q1_fuse_s": 3.6,
}
"""Source: the statement of CUMCM 2025 problem A."""

RANGES: Final[Mapping[str, Any]] = {
    "missiles_m": {"count": (2, 4), "decimals": 0, "x": (-30000, 30000), "y": (-30000, 30000), "z": (800, 3500)},
    "missile_speed_mps": (200, 400),
    "drones_m": {"count": (2, 6), "decimals": 0, "x": (-30000, 30000), "y": (-30000, 30000), "z": (200, 3500)},
    "speed_min_mps": (40, 100),
    "speed_max_mps": (100, 200),
    "bombs": (2, 4),
    "release_gap_s": (0.5, 2.0),
    "q4_drones": {"count": (2, 4)},
    "target_x_m": (-400, 400),
    "target_y_m": (-400, 400),
    "target_radius_m": (4.0, 9.0),
    "target_height_m": (5.0, 15.0),
    "cloud_radius_m": (8.0, 16.0),
    "cloud_life_s": (10, 30),
    "sink_mps": (1.0, 6.0),
    "q1_heading_deg": (0.0, 359.99),
    "q1_speed_mps": (40, 200),
    "q1_release_s": (0.0, 60.0),
    "q1_fuse_s": (0.0, 20.0),
}
"""Inclusive ranges an instance may have; sampling stays inside them.

There are at least two missiles (with one, the total of question 5 is its worst missile), two bombs a drone (with one,
question 3 is question 2) and two drones in question 4.
"""

DECIMALS: Final[Mapping[str, int]] = {
    "missile_speed_mps": 0,
    "speed_min_mps": 0,
    "speed_max_mps": 0,
    "bombs": 0,
    "release_gap_s": 1,
    "target_x_m": 0,
    "target_y_m": 0,
    "target_radius_m": 1,
    "target_height_m": 1,
    "cloud_radius_m": 1,
    "cloud_life_s": 0,
    "sink_mps": 1,
    "q1_heading_deg": 2,
    "q1_speed_mps": 0,
    "q1_release_s": 2,
    "q1_fuse_s": 2,
}
"""Decimals the statement prints; a parameter may not have more, and 0 asks for an integer."""

Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bomb:
    """One drop of one drone.

    Attributes:
        drone: index from 1.
        heading_deg: direction of flight.
        speed_mps: of the drone.
        release_s: moment of the drop.
        fuse_s: time from drop to burst.
    """

    drone: int
    heading_deg: float
    speed_mps: float
    release_s: float
    fuse_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Checked parameters in the shape the physics takes; names as in the parameters."""

    missiles_m: tuple[Point, ...]
    missile_speed_mps: float
    drones_m: tuple[Point, ...]
    speed_min_mps: float
    speed_max_mps: float
    bombs: int
    release_gap_s: float
    q4_drones: tuple[int, ...]
    target_m: Point
    target_radius_m: float
    target_height_m: float
    cloud_radius_m: float
    cloud_life_s: float
    sink_mps: float
    q1: Bomb

    def arrival_s(self, missile: int) -> float:
        """Moment at which a missile (index from 0) reaches the decoy, s."""
        return math.hypot(*self.missiles_m[missile]) / self.missile_speed_mps

    def longest_fuse_s(self, drone: int) -> float:
        """Time a bomb of a drone (index from 1) needs to fall to the ground, s."""
        return math.sqrt(2.0 * self.drones_m[drone - 1][2] / GRAVITY_MPS2)


def scene(parameters: Mapping[str, JsonValue]) -> Scene:
    """Checks parameters and arranges them.

    Args:
        parameters: as in ``instance.json``.

    Returns:
        The scene.

    Raises:
        BadInstance: when a field is missing, unknown, of another type, or out of its range or relation.
    """
    named(parameters, sorted(RANGES))
    numbers = {name: number(name, parameters[name], RANGES[name], DECIMALS[name]) for name in DECIMALS}
    missiles = _points("missiles_m", parameters["missiles_m"])
    drones = _points("drones_m", parameters["drones_m"])
    result = Scene(
        missiles_m=missiles,
        missile_speed_mps=numbers["missile_speed_mps"],
        drones_m=drones,
        speed_min_mps=numbers["speed_min_mps"],
        speed_max_mps=numbers["speed_max_mps"],
        bombs=int(numbers["bombs"]),
        release_gap_s=numbers["release_gap_s"],
        q4_drones=_chosen(parameters["q4_drones"], len(drones)),
        target_m=(numbers["target_x_m"], numbers["target_y_m"], 0.0),
        target_radius_m=numbers["target_radius_m"],
        target_height_m=numbers["target_height_m"],
        cloud_radius_m=numbers["cloud_radius_m"],
        cloud_life_s=numbers["cloud_life_s"],
        sink_mps=numbers["sink_mps"],
        q1=Bomb(
            drone=1,
            heading_deg=numbers["q1_heading_deg"],
            speed_mps=numbers["q1_speed_mps"],
            release_s=numbers["q1_release_s"],
            fuse_s=numbers["q1_fuse_s"],
        ),
    )
    _relations(result)
    return result


def _list(name: str, value: JsonValue) -> Sequence[JsonValue]:
    low, high = RANGES[name]["count"]
    if not isinstance(value, list | tuple) or not low <= len(value) <= high:
        raise BadInstance(f"parameter {name} is {value!r}; it must be a list of {low} to {high} entries")
    return value


def _points(name: str, value: JsonValue) -> tuple[Point, ...]:
    """A list of points with integer coordinates."""
    points = []
    for index, entry in enumerate(_list(name, value)):
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            raise BadInstance(f"parameter {name}[{index}] is {entry!r}; it must be a point [x, y, z]")
        x, y, z = (
            number(f"{name}[{index}].{axis}", item, RANGES[name][axis], 0)
            for axis, item in zip("xyz", entry, strict=True)
        )
        points.append((x, y, z))
    if len(set(points)) != len(points):
        raise BadInstance(f"parameter {name} is {value!r}; no two entries may be equal")
    return tuple(points)


def _chosen(value: JsonValue, drones: int) -> tuple[int, ...]:
    """The drones of question 4: rising indexes from 1."""
    entries = _list("q4_drones", value)
    chosen = tuple(entry for entry in entries if isinstance(entry, int) and not isinstance(entry, bool))
    if len(chosen) != len(entries) or list(chosen) != sorted(set(chosen)) or not 1 <= chosen[0] <= chosen[-1] <= drones:
        raise BadInstance(f"parameter q4_drones is {value!r}; it must be rising integers in [1, {drones}]")
    return chosen


def _relations(given: Scene) -> None:
    """Relations between fields, so that every quantity of the physics exists."""
    if given.speed_max_mps < given.speed_min_mps + 10:
        raise BadInstance(
            f"parameter speed_max_mps is {given.speed_max_mps}; it must be at least 10 m/s above speed_min_mps"
        )
    if not given.speed_min_mps <= given.q1.speed_mps <= given.speed_max_mps:
        raise BadInstance(
            f"parameter q1_speed_mps is {given.q1.speed_mps}; it must lie in "
            f"[{given.speed_min_mps}, {given.speed_max_mps}], the range of the drones"
        )
    if given.q1.fuse_s > given.longest_fuse_s(1):
        longest = given.longest_fuse_s(1)
        raise BadInstance(
            f"parameter q1_fuse_s is {given.q1.fuse_s}; the bomb reaches the ground after {longest:.3f} s"
        )
    reach = math.hypot(given.target_m[0], given.target_m[1])
    if not 60.0 <= reach <= 500.0:
        raise BadInstance(
            f"target_x_m and target_y_m put the target {reach:.1f} m from the decoy; it must be 60 to 500 m"
        )
    for index, missile in enumerate(given.missiles_m):
        away = math.hypot(*missile)
        if not 8000.0 <= away <= 30000.0:
            raise BadInstance(f"parameter missiles_m[{index}] is {away:.1f} m from the decoy; it must be 8 to 30 km")
