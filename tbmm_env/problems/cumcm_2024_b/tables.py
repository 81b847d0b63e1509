"""Facts of the statement: numbers and tables as text, from the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from tbmm_env.record import Language

from .parameters import Setting
from .plans import Demand
from .system import System

_CASES: Final = {
    "en": (
        ("Case", "Part 1", "", "", "Part 2", "", "", "Product", "", "", "", "", ""),
        ("", "rate", "buy", "inspect", "rate", "buy", "inspect",
         "rate", "assemble", "inspect", "dismantle", "price", "exchange loss"),
    ),
    "zh": (
        ("情况", "零件 1", "", "", "零件 2", "", "", "成品", "", "", "", "", ""),
        ("", "次品率", "购买", "检测", "次品率", "购买", "检测", "次品率", "装配", "检测", "拆解", "售价", "调换损失"),
    ),
}  # fmt: skip
_PARTS: Final = {
    "en": ("Part", "Defect rate", "Purchase", "Inspection"),
    "zh": ("零件", "次品率", "购买单价", "检测成本"),
}
_ASSEMBLIES: Final = {
    "en": ("Assembly", "Components", "Defect rate", "Assembly cost", "Inspection", "Dismantling"),
    "zh": ("装配件", "组成", "次品率", "装配成本", "检测成本", "拆解费用"),
}
_PRODUCT: Final = {"en": "the product", "zh": "成品"}


def percent(rate: Fraction) -> str:
    """A rate as text, such as ``12.5%``."""
    return f"{float(100 * rate):g}%"


def money(amount: Fraction) -> str:
    """An amount in yuan as text, without trailing zeros."""
    return f"{float(amount):g}"


def node_name(system: System, node: int) -> str:
    """``P3`` or ``A2``."""
    parts = len(system.parts)
    return f"P{node + 1}" if node < parts else f"A{node - parts + 1}"


def render(given: Setting, language: Language) -> dict[str, str]:
    """Placeholders of the statement templates.

    Args:
        given: checked parameters.
        language: of the tables' headings; the numbers are the same in both.

    Returns:
        Text by placeholder name; money in yuan, rates in per cent.
    """
    system = given.system
    return {
        "nominal_rate": percent(given.reject.nominal),
        **_demand("reject", given.reject),
        **_demand("accept", given.accept),
        "cases_table": _cases_table(given.cases, language),
        "part_count": str(len(system.parts)),
        "assembly_count": str(len(system.assemblies)),
        "semi_count": str(len(system.assemblies) - 1),
        "last_part": f"P{len(system.parts)}",
        "product": f"A{len(system.assemblies)}",
        "parts_table": _parts_table(system, language),
        "assemblies_table": _assemblies_table(system, language),
        "tree": _tree(system),
        "price_yuan": money(system.price),
        "exchange_loss_yuan": money(system.exchange_loss),
    }


def _demand(where: str, demand: Demand) -> dict[str, str]:
    return {
        f"{where}_nominal_risk": percent(demand.nominal_risk),
        f"{where}_confidence": percent(1 - demand.nominal_risk),
        f"{where}_alternative_rate": percent(demand.alternative),
        f"{where}_alternative_risk": percent(demand.alternative_risk),
    }


def _table(heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a second line of headings is its first row."""
    lines = [heads[0], ["---"] * len(heads[0]), *heads[1:], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cases_table(cases: Sequence[System], language: Language) -> str:
    rows = []
    for number, case in enumerate(cases, 1):
        cells = [str(number)]
        for part in case.parts:
            cells += [percent(part.rate), money(part.purchase), money(part.inspection)]
        made = case.assemblies[0]
        cells += [percent(made.rate), money(made.assembly), money(made.inspection), money(made.dismantling)]
        cells += [money(case.price), money(case.exchange_loss)]
        rows.append(cells)
    return _table(_CASES[language], rows)


def _parts_table(system: System, language: Language) -> str:
    rows = [
        (node_name(system, index), percent(part.rate), money(part.purchase), money(part.inspection))
        for index, part in enumerate(system.parts)
    ]
    return _table([_PARTS[language]], rows)


def _assemblies_table(system: System, language: Language) -> str:
    rows = []
    last = len(system.assemblies) - 1
    for index, made in enumerate(system.assemblies):
        name = f"A{index + 1}" + (f" ({_PRODUCT[language]})" if index == last else "")
        components = " + ".join(node_name(system, node) for node in made.components)
        costs = (money(made.assembly), money(made.inspection), money(made.dismantling))
        rows.append((name, components, percent(made.rate), *costs))
    return _table([_ASSEMBLIES[language]], rows)


def _tree(system: System) -> str:
    """The tree, one assembly a line below what contains it, indented."""
    lines: list[str] = []

    def write(node: int, indent: int) -> None:
        made = system.assemblies[node - len(system.parts)]
        names = [node_name(system, child) for child in made.components]
        lines.append(f"{'    ' * indent}{node_name(system, node)} = {' + '.join(names)}")
        for child in made.components:
            if child >= len(system.parts):
                write(child, indent + 1)

    write(len(system.parts) + len(system.assemblies) - 1, 0)
    return "\n".join(lines)
