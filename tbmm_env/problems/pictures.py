"""What the figures of all statements share: matplotlib's Agg canvas, and PNG files whose bytes are reproducible."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

__all__ = ["drawn", "new_figure"]

DPI = 100


def new_figure(size_in: tuple[float, float]) -> Figure:
    """Return an empty figure of a size in inches, of 100 pixels each, that no window shows."""
    figure = Figure(figsize=size_in, dpi=DPI)
    FigureCanvasAgg(figure)
    return figure


def drawn(draw: Mapping[str, Callable[[], Figure]]) -> dict[str, bytes]:
    """Draw figures in matplotlib's own style, whatever the user's is.

    Args:
        draw: what draws each, by file name.

    Returns:
        PNG files by name, without metadata, so that equal drawings are equal bytes.
    """
    files = {}
    with matplotlib.style.context("default"):
        for name, one in draw.items():
            stream = io.BytesIO()
            one().savefig(stream, format="png", dpi=DPI, metadata={"Software": None})
            files[name] = stream.getvalue()
    return files
