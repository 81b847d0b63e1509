"""Parameters as text for the statements: numbers in their printed decimals, lists as tables."""

from __future__ import annotations

import math

from tbmm_env.record import Language

from .parameters import GRAVITY_MPS2, Scene

_HEADS = {
    "missiles": {
        "en": ("Missile", "x (m)", "y (m)", "z (m)", "arrives (s)"),
        "zh": ("导弹", "x (m)", "y (m)", "z (m)", "到达时刻 (s)"),
    },
    "drones": {
        "en": ("Drone", "x (m)", "y (m)", "z (m)", "longest fuse (s)"),
        "zh": ("无人机", "x (m)", "y (m)", "z (m)", "最长引信时间 (s)"),
    },
}


def wording(given: Scene, language: Language) -> dict[str, str]:
    """Text by placeholder name."""
    missiles = [
        [f"M{index + 1}", *(f"{part:.0f}" for part in place), f"{given.arrival_s(index):.4f}"]
        for index, place in enumerate(given.missiles_m)
    ]
    drones = [
        [str(index), *(f"{part:.0f}" for part in place), f"{given.longest_fuse_s(index):.4f}"]
        for index, place in enumerate(given.drones_m, 1)
    ]
    x, y, _ = given.target_m
    chosen = [str(drone) for drone in given.q4_drones]
    return {
        "missile_table": _table(_HEADS["missiles"][language], missiles),
        "drone_table": _table(_HEADS["drones"][language], drones),
        "missiles": str(len(missiles)),
        "drones": str(len(drones)),
        "bombs": str(given.bombs),
        "all_bombs": str(given.bombs * len(drones)),
        "missile_speed_mps": f"{given.missile_speed_mps:.0f}",
        "speed_min_mps": f"{given.speed_min_mps:.0f}",
        "speed_max_mps": f"{given.speed_max_mps:.0f}",
        "release_gap_s": f"{given.release_gap_s:.1f}",
        "q4_drones": f"{', '.join(chosen[:-1])} and {chosen[-1]}" if language == "en" else "、".join(chosen),
        "q4_count": str(len(chosen)),
        "target_x_m": f"{x:.0f}",
        "target_y_m": f"{y:.0f}",
        "target_radius_m": f"{given.target_radius_m:.1f}",
        "target_height_m": f"{given.target_height_m:.1f}",
        "cloud_radius_m": f"{given.cloud_radius_m:.1f}",
        "cloud_life_s": f"{given.cloud_life_s:.0f}",
        "sink_mps": f"{given.sink_mps:.1f}",
        "gravity_mps2": f"{GRAVITY_MPS2:.1f}",
        "half_gravity": f"{0.5 * GRAVITY_MPS2:.1f}",
        "q1_heading_deg": f"{given.q1.heading_deg:.2f}",
        "q1_speed_mps": f"{given.q1.speed_mps:.0f}",
        "q1_release_s": f"{given.q1.release_s:.2f}",
        "q1_fuse_s": f"{given.q1.fuse_s:.2f}",
        "target_away_m": f"{math.hypot(x, y):.1f}",
    }


def _table(head: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [head, ("---:",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
