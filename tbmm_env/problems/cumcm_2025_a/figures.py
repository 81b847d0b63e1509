"""Figures of the statement, drawn with matplotlib's Agg canvas; labels are symbols and numbers."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from tbmm_env.problems.pictures import drawn, new_figure

from .parameters import Scene

SIZE_IN = (8.0, 6.0)
BLUE = "#1f6fb2"
RED = "#c0392b"
GREEN = "#2e7d32"


def draw(given: Scene) -> dict[str, bytes]:
    """Draws the three figures of an instance.

    Args:
        given: checked parameters.

    Returns:
        PNG bytes (800 x 600 pixels) by file name.
    """
    return drawn(
        {"map.png": lambda: _map(given), "heights.png": lambda: _heights(given), "target.png": lambda: _target(given)}
    )


def _figure() -> tuple[Figure, Axes]:
    figure = new_figure(SIZE_IN)
    return figure, figure.add_axes((0.11, 0.1, 0.84, 0.82))


def _label(axes: Axes, text: str, at: tuple[float, float], color: str) -> None:
    axes.annotate(text, at, (6, 5), textcoords="offset points", fontsize=10, color=color)


def _map(given: Scene) -> Figure:
    """Missiles with their paths, drones, decoy and target seen from above."""
    figure, axes = _figure()
    for index, (x, y, _) in enumerate(given.missiles_m, 1):
        axes.plot([x, 0.0], [y, 0.0], color=RED, lw=0.8, ls="--")
        axes.plot([x], [y], marker="v", color=RED, markersize=8)
        _label(axes, f"M{index}", (x, y), RED)
    for index, (x, y, _) in enumerate(given.drones_m, 1):
        axes.plot([x], [y], marker="o", color=BLUE, markersize=6)
        _label(axes, str(index), (x, y), BLUE)
    axes.plot([0.0], [0.0], marker="x", color="black", markersize=8)
    axes.plot([given.target_m[0]], [given.target_m[1]], marker="s", color=GREEN, markersize=5)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.grid(lw=0.4)
    axes.set_xlabel("x (m)")
    axes.set_ylabel("y (m)")
    axes.set_title("plan: missiles M, drones 1 to n, decoy (x), target (square)", fontsize=12)
    return figure


def _heights(given: Scene) -> Figure:
    """Heights over the distance from the decoy."""
    figure, axes = _figure()
    for index, (x, y, z) in enumerate(given.missiles_m, 1):
        far = math.hypot(x, y)
        axes.plot([far, 0.0], [z, 0.0], color=RED, lw=0.8, ls="--")
        axes.plot([far], [z], marker="v", color=RED, markersize=8)
        _label(axes, f"M{index}", (far, z), RED)
    for index, (x, y, z) in enumerate(given.drones_m, 1):
        axes.plot([math.hypot(x, y)], [z], marker="o", color=BLUE, markersize=6)
        _label(axes, str(index), (math.hypot(x, y), z), BLUE)
    axes.margins(0.08)
    axes.grid(lw=0.4)
    axes.set_xlabel("horizontal distance from the decoy (m)")
    axes.set_ylabel("z (m)")
    axes.set_title(f"heights; missiles fly at {given.missile_speed_mps:.0f} m/s", fontsize=12)
    return figure


def _target(given: Scene) -> Figure:
    """Target and cloud on one scale, seen from the side."""
    figure, axes = _figure()
    radius, height, cloud = given.target_radius_m, given.target_height_m, given.cloud_radius_m
    axes.add_patch(Rectangle((-radius, 0.0), 2.0 * radius, height, facecolor="#a5d6a7", edgecolor="black"))
    middle = (radius + 1.6 * cloud, 1.5 * cloud)
    axes.add_patch(Circle(middle, cloud, facecolor="#d5d8dc", edgecolor="black"))
    arrow = {"arrowstyle": "-|>", "lw": 1.8, "color": "black", "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (middle[0], middle[1] - 0.7 * cloud), middle, arrowprops=arrow)
    size = {"arrowstyle": "<->", "lw": 0.9, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (-radius - 2.0, 0.0), (-radius - 2.0, height), arrowprops=size)
    axes.annotate(f"{height:.1f} m", (-radius - 2.0, 0.5 * height), (-48, 0), textcoords="offset points")
    axes.annotate("", (0.0, height + 2.0), (radius, height + 2.0), arrowprops=size)
    axes.annotate(f"{radius:.1f} m", (0.5 * radius, height + 2.0), (-16, 5), textcoords="offset points")
    axes.annotate("", middle, (middle[0] + cloud, middle[1]), arrowprops=size)
    axes.annotate(f"{cloud:.1f} m", (middle[0] + 0.3 * cloud, middle[1]), (0, 5), textcoords="offset points")
    axes.annotate(f"{given.sink_mps:.1f} m/s", (middle[0], middle[1] - 0.5 * cloud), (6, 0), textcoords="offset points")
    axes.plot(np.array([-4.0, 4.0]) * cloud, [0.0, 0.0], color="black", lw=1.0)
    axes.set_aspect("equal")
    axes.set_xlim(-radius - 1.2 * cloud, middle[0] + 1.4 * cloud)
    axes.set_ylim(-3.0, middle[1] + 1.3 * cloud)
    x, y, _ = given.target_m
    axes.set_title(f"target at ({x:.0f}, {y:.0f}) and a cloud of {given.cloud_life_s:.0f} s", fontsize=12)
    return figure
