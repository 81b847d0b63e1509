"""Where a drone's path crosses a line of sight: the clouds worth looking at, with an estimate of what they hide.

At time t the line of sight from a missile to the middle of the target, seen from above, crosses the straight path of a
drone at most once. The place fixes the moment of the burst (distance over speed); the height of the line there, plus
what the cloud sinks until t, fixes the fuse. So a heading, a speed and t are a whole bomb whose cloud is on the line of
sight at t. The estimate takes the cloud's shadow as a disc and the line of sight as moving evenly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .parameters import GRAVITY_MPS2
from .shadow import Array, Sight


@dataclass(frozen=True, slots=True)
class Crossings:
    """Bombs by heading, speed and time of crossing; arrays of one shape.

    Attributes:
        valid: whether the bomb can be dropped and its cloud is there before the line of sight has left its place.
        burst_s: moment of the burst.
        fuse_s: time from drop to burst.
        begin_s: estimated begin of the hidden stretch.
        end_s: estimated end; not before the begin.
    """

    valid: NDArray[np.bool_]
    burst_s: Array
    fuse_s: Array
    begin_s: Array
    end_s: Array


def crossings(
    sight: Sight,
    drone: NDArray[np.intp],
    heading_rad: Array,
    speed_mps: Array,
    missile: NDArray[np.intp],
    time_s: Array,
    above_m: Array | float = 0.0,
    later_s: Array | float = 0.0,
) -> Crossings:
    """Bombs whose clouds are on a line of sight at a time.

    Args:
        sight: of the scene.
        drone: index from 0.
        heading_rad: of the drone.
        speed_mps: of the drone.
        missile: index from 0.
        time_s: when the cloud is on the line of sight.
        above_m: how far the cloud is above the line then.
        later_s: delay of the burst against the crossing.

    Returns:
        The bombs; all arguments broadcast against each other.
    """
    drone, heading_rad, speed_mps, missile, time_s = np.broadcast_arrays(drone, heading_rad, speed_mps, missile, time_s)
    given = sight.scene
    start = np.array(given.drones_m)[drone]
    place = sight.start_m[missile] + (given.missile_speed_mps * time_s)[..., None] * sight.unit[missile]
    x, y, _ = given.target_m
    line = np.array([x, y, 0.5 * given.target_height_m]) - place
    ex, ey = np.cos(heading_rad), np.sin(heading_rad)
    dx, dy = start[..., 0] - place[..., 0], start[..., 1] - place[..., 1]
    cross = line[..., 0] * ey - line[..., 1] * ex
    safe = np.where(np.abs(cross) > 1e-9, cross, 1e-9)
    share = (dx * ey - dy * ex) / safe
    run = (dx * line[..., 1] - dy * line[..., 0]) / safe
    burst = run / speed_mps + later_s
    height = place[..., 2] + share * line[..., 2] + above_m + given.sink_mps * (time_s - burst)
    fall = start[..., 2] - height
    fuse = np.sqrt(np.maximum(fall, 0.0) / (0.5 * GRAVITY_MPS2))
    valid = (
        (share > 0.0) & (share < 1.0) & (run >= 0.0) & (fall >= 0.0) & (height >= 0.0) & (fuse <= burst)
        & (time_s <= burst + given.cloud_life_s) & (time_s < sight.arrival_s[missile])
    )  # fmt: skip
    far = np.linalg.norm(line, axis=-1)
    reach = np.hypot(given.target_radius_m, 0.5 * given.target_height_m)
    room = given.cloud_radius_m - share * reach
    slide = ((1.0 - share) * given.missile_speed_mps)[..., None] * sight.unit[missile]
    slide[..., 2] += given.sink_mps
    toward = line / far[..., None]
    slide -= np.sum(slide * toward, axis=-1)[..., None] * toward
    half = np.where(valid & (room > 0.0), room / np.maximum(np.linalg.norm(slide, axis=-1), 0.1), 0.0)
    passed = time_s + share * far / given.missile_speed_mps
    begin = np.maximum(time_s - half, burst)
    end = np.minimum(
        np.minimum(time_s + half, burst + given.cloud_life_s), np.minimum(passed, sight.arrival_s[missile])
    )
    return Crossings(valid & (burst <= np.maximum(time_s, end)), burst, fuse, begin, np.maximum(end, begin))
