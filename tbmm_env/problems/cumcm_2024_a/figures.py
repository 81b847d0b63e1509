"""Figures of the statement, drawn with matplotlib's Agg canvas; labels are symbols and numbers."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from tbmm_env.problems.pictures import drawn, new_figure

from .parameters import Setting

SIZE_IN = (8.0, 6.0)
BLUE = "#1f6fb2"
RED = "#c0392b"


def draw(given: Setting) -> dict[str, bytes]:
    """Draws the three figures of an instance.

    Args:
        given: checked parameters.

    Returns:
        PNG bytes (800 x 600 pixels) by file name.
    """
    return drawn(
        {
            "boards.png": lambda: _boards(given),
            "spiral.png": lambda: _spiral(given),
            "turning_circle.png": lambda: _circle(given),
        }
    )


def _double_arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], label: str) -> None:
    axes.annotate("", start, end, arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0, "lw": 0.9})
    middle = (0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1]))
    upright = start[0] == end[0]
    axes.annotate(
        label,
        middle,
        (6, 0) if upright else (0, 4),
        textcoords="offset points",
        fontsize=10,
        ha="left" if upright else "center",
        va="center" if upright else "bottom",
    )


def _boards(given: Setting) -> Figure:
    """Plan of the head board and of a body board with dimensions."""
    figure = new_figure(SIZE_IN)
    boards = given.boards
    longest = max(boards.head_m, boards.body_m)
    for row, (length, name) in enumerate(((boards.head_m, "head board"), (boards.body_m, "body / tail board"))):
        axes = figure.add_axes((0.05, 0.54 - 0.5 * row, 0.9, 0.42))
        axes.set_xlim(-0.08 * longest, 1.12 * longest)
        axes.set_ylim(-1.9 * boards.width_m, 1.9 * boards.width_m)
        axes.set_axis_off()
        half = 0.5 * boards.width_m
        axes.add_patch(Rectangle((0.0, -half), length, boards.width_m, facecolor="#9cc4e4", edgecolor="black"))
        for at, hole in ((boards.inset_m, "hole 2 (rear)"), (length - boards.inset_m, "hole 1 (front)")):
            axes.plot([at], [0.0], marker="o", color=RED, markersize=7)
            axes.annotate(hole, (at, 0.0), (0, 8), textcoords="offset points", fontsize=9, ha="center")
        below, above = -2.1 * half, 1.4 * half
        _double_arrow(axes, (0.0, 1.6 * above), (length, 1.6 * above), f"{length:.2f} m")
        _double_arrow(axes, (0.0, below), (boards.inset_m, below), f"{boards.inset_m:.3f} m")
        _double_arrow(axes, (length - boards.inset_m, below), (length, below), f"{boards.inset_m:.3f} m")
        _double_arrow(
            axes,
            (boards.inset_m, 1.65 * below),
            (length - boards.inset_m, 1.65 * below),
            f"{length - 2.0 * boards.inset_m:.3f} m",
        )
        right = length + 0.03 * longest
        _double_arrow(axes, (right, -half), (right, half), f"{boards.width_m:.2f} m")
        axes.set_title(f"{name} (plan)", fontsize=12)
    return figure


def _frame(figure: Figure, extent: float) -> Axes:
    """Square axes through the origin."""
    axes = figure.add_axes((0.08, 0.04, 0.84, 0.9))
    axes.set_aspect("equal")
    axes.set_xlim(-extent, extent)
    axes.set_ylim(-extent, extent)
    axes.set_axis_off()
    for end in ((extent, 0.0), (0.0, extent)):
        axes.annotate("", end, (-end[0], -end[1]), arrowprops={"arrowstyle": "->", "lw": 0.9})
    axes.annotate("x (m)", (extent, 0.0), (0, 6), textcoords="offset points", ha="right")
    axes.annotate("y (m)", (0.0, extent), (6, -8), textcoords="offset points")
    axes.annotate("O", (0.0, 0.0), (4, -14), textcoords="offset points", fontsize=12)
    return axes


def _spiral(given: Setting) -> Figure:
    """Incoming spiral of question 1 with the start A and the direction of motion."""
    figure = new_figure(SIZE_IN)
    start = given.start_turn * given.spiral_pitch_m
    axes = _frame(figure, 1.15 * start)
    theta = np.linspace(0.0, 2.0 * np.pi * given.start_turn, 240 * given.start_turn)
    radius = given.spiral_pitch_m * theta / (2.0 * np.pi)
    axes.plot(radius * np.cos(theta), radius * np.sin(theta), color=BLUE, lw=0.8)
    axes.plot([start], [0.0], "o", color="black", markersize=5)
    axes.annotate("A", (start, 0.0), (5, -15), textcoords="offset points", fontsize=13)
    arrow = {"arrowstyle": "-|>", "lw": 3.0, "color": "black", "shrinkA": 0, "shrinkB": 3}
    axes.annotate("", (start, 0.0), (start, 0.22 * start), arrowprops=arrow)
    title = f"A = ({start:.3f}, 0): turn {given.start_turn}, pitch {given.spiral_pitch_m:.3f} m, clockwise inwards"
    axes.set_title(title, fontsize=12)
    return figure


def _circle(given: Setting) -> Figure:
    """Turning circle in the middle of an incoming spiral (the turn itself is left to the solver)."""
    figure = new_figure(SIZE_IN)
    turn = given.turn
    turns = 3.0
    outer = turn.radius_m + turns * turn.pitch_m
    axes = _frame(figure, 1.12 * outer)
    theta = np.linspace(turn.theta_in, turn.theta_in + 2.0 * np.pi * turns, 1500)
    x, y = turn.b * theta * np.cos(theta), turn.b * theta * np.sin(theta)
    axes.plot(x, y, color=BLUE, lw=1.2)
    axes.add_patch(Circle((0.0, 0.0), turn.radius_m, facecolor="#ffe680", edgecolor="black", ls="--", lw=1.2))
    at = 1490
    arrow = {"arrowstyle": "-|>", "lw": 2.5, "color": "black", "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (float(x[at - 40]), float(y[at - 40])), (float(x[at]), float(y[at])), arrowprops=arrow)
    axes.annotate("turning space", (0.0, 0.25 * turn.radius_m), fontsize=12, ha="center")
    label = f"D = {2.0 * turn.radius_m:.1f} m"
    axes.annotate(label, (0.0, -0.35 * turn.radius_m), fontsize=12, ha="center")
    axes.set_title(f"incoming spiral of pitch {turn.pitch_m:.2f} m, clockwise, up to the circle", fontsize=12)
    return figure
