"""Figures of the statement, drawn with matplotlib's Agg canvas; labels are symbols, numbers and a few English words."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from tbmm_env.problems.pictures import drawn, new_figure

from .parameters import Setting
from .system import System
from .tables import money, node_name, percent

SIZE_IN = (9.0, 7.0)
PART = "#dcebf7"
SEMI = "#fdebc8"
PRODUCT = "#d8f0d3"
STEP = "#f3f3f3"
ASK = "#fff7c2"


def draw(given: Setting) -> dict[str, bytes]:
    """Draws the two figures of an instance.

    Args:
        given: checked parameters.

    Returns:
        PNG bytes (900 x 700 pixels) by file name.
    """
    return drawn({"order.png": _order, "system.png": lambda: _system(given.system)})


def _page() -> tuple[Figure, Axes]:
    figure = new_figure(SIZE_IN)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.0)
    axes.set_axis_off()
    return figure, axes


def _box(axes: Axes, at: tuple[float, float], text: str, colour: str) -> Text:
    frame = {"boxstyle": "round,pad=0.4", "facecolor": colour, "edgecolor": "black", "linewidth": 0.8}
    return axes.text(*at, text, fontsize=9, ha="center", va="center", bbox=frame, zorder=3)


def _order() -> Figure:
    """One order of a case: where decisions are taken and what a bad product costs."""
    figure, axes = _page()
    axes.set_title("one order: until one good product is delivered", y=0.955, fontsize=12)
    boxes = {
        "parts": _box(axes, (0.2, 0.88), "buy the parts; inspect_part = 1:\ninspect, replace bad ones", PART),
        "make": _box(axes, (0.52, 0.88), "assemble (bad if a part is bad,\nelse bad with its rate)", SEMI),
        "ask": _box(axes, (0.85, 0.88), "inspect_product?", ASK),
        "sell": _box(axes, (0.3, 0.68), "sell unseen", STEP),
        "look": _box(axes, (0.64, 0.68), "inspect", STEP),
        "done": _box(axes, (0.3, 0.46), "good product delivered:\nearn the price, once", PRODUCT),
        "bad": _box(axes, (0.64, 0.46), "bad product\n(sold: pay the exchange loss):\ndismantle?", ASK),
        "scrap": _box(axes, (0.3, 0.24), "scrap, start anew", STEP),
        "apart": _box(
            axes, (0.64, 0.24), "dismantle; inspect the parts never\ninspected so far, replace bad ones", PART
        ),
        "again": _box(axes, (0.64, 0.08), "assemble again, all parts known to be good", SEMI),
    }
    figure.canvas.draw()  # the frames have their places from here on

    def arrow(start: str, end: str, label: str = "", bend: float = 0.0) -> None:
        one, two = boxes[start], boxes[end]
        style = {
            "arrowstyle": "-|>",
            "linewidth": 1.1,
            "color": "#444444",
            "connectionstyle": f"arc3,rad={bend}",
            "patchA": one.get_bbox_patch(),
            "patchB": two.get_bbox_patch(),
        }
        (x1, y1), (x2, y2) = one.get_position(), two.get_position()
        axes.annotate("", (x2, y2), (x1, y1), arrowprops=style)
        axes.text(x1 + 0.34 * (x2 - x1) + 0.012, y1 + 0.34 * (y2 - y1), label, fontsize=9, color="#a03020", zorder=4)

    arrow("parts", "make")
    arrow("make", "ask")
    arrow("ask", "look", "1")
    arrow("ask", "sell", "0")
    arrow("sell", "done", "good")
    arrow("sell", "bad", "bad")
    arrow("look", "done", "good")
    arrow("look", "bad", "bad")
    arrow("bad", "scrap", "0")
    arrow("bad", "apart", "1")
    arrow("apart", "again")
    arrow("scrap", "parts", bend=-0.35)
    arrow("again", "ask", bend=0.55)
    return figure


def _system(system: System) -> Figure:
    """The tree with its numbers: parts on the left, the product on the right."""
    figure, axes = _page()
    parts = len(system.parts)
    levels = system.depths[-1]
    order: list[int] = []

    def collect(node: int) -> None:
        if node < parts:
            order.append(node)
        else:
            for child in system.assemblies[node - parts].components:
                collect(child)

    collect(parts + len(system.assemblies) - 1)
    columns = {node: system.depths[node] for node in range(parts, parts + len(system.assemblies))}
    for index, made in enumerate(system.assemblies):  # a part stands just before what it goes into
        columns |= {child: columns[parts + index] - 1 for child in made.components if child < parts}
    across = {node: 0.12 + 0.74 * column / levels for node, column in columns.items()}
    place: dict[int, tuple[float, float]] = {}
    for row, node in enumerate(order):
        place[node] = (across[node], 0.93 - 0.86 * (row + 0.5) / parts)
    for index, made in enumerate(system.assemblies):
        node = parts + index
        middle = sum(place[child][1] for child in made.components) / len(made.components)
        place[node] = (across[node], middle)
    for index, made in enumerate(system.assemblies):
        end = place[parts + index]
        for child in made.components:
            start = place[child]
            axes.plot([start[0], end[0]], [start[1], end[1]], color="#777777", linewidth=1.2, zorder=1)
    for node in order:
        part = system.parts[node]
        text = f"{node_name(system, node)}: {percent(part.rate)}, {money(part.purchase)}, {money(part.inspection)}"
        _box(axes, place[node], text, PART)
    for index, made in enumerate(system.assemblies):
        node = parts + index
        last = index == len(system.assemblies) - 1
        costs = f"{money(made.assembly)}, {money(made.inspection)}, {money(made.dismantling)}"
        text = f"{node_name(system, node)}: {percent(made.rate)}\n{costs}"
        if last:
            text += f"\nprice {money(system.price)}\nexchange loss {money(system.exchange_loss)}"
        _box(axes, place[node], text, PRODUCT if last else SEMI)
    head = "P: rate, purchase, inspection     A: rate; assembly, inspection, dismantling (yuan)"
    axes.set_title(head, y=0.955, fontsize=11)
    return figure
