"""Parameters of an instance: official values, stated ranges and strict checks.

An instance has a nominal rate and two demands on sampling plans (question 1), six small systems of two parts and one
product (question 2), and one larger system (question 3). All systems have one format: parts ``P1``, ``P2`` ...;
assemblies ``A1``, ``A2`` ..., each after its components, the last one the product; every part and every assembly but
the product is a component of exactly one assembly. Rates have at most 3 decimals, money at most 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from tbmm_env.errors import BadInstance
from tbmm_env.problems.fields import named, number
from tbmm_env.record import JsonValue

from .plans import MOST_UNITS, Demand, clearance, simple_plan
from .system import Assembly, Part, System

CASES: Final = 6
"""Small systems of question 2."""

RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "nominal_rate": (0.02, 0.3),
    "alternative_rate": (0.005, 0.6),
    "nominal_risk": (0.01, 0.25),
    "alternative_risk": (0.01, 0.25),
    "part_count": (2, 12),
    "assembly_count": (1, 11),
    "components": (2, 5),
    "depth": (1, 4),
    "defect_rate": (0.01, 0.4),
    "purchase_yuan": (0.5, 100),
    "assembly_yuan": (0.5, 100),
    "inspection_yuan": (0.1, 200),
    "dismantling_yuan": (0, 500),
    "price_yuan": (1, 5000),
    "exchange_loss_yuan": (0, 1000),
}
"""Inclusive ranges an instance may have, by the name of the field wherever it stands; sampling stays inside them.

``components`` is the number of components of an assembly, ``depth`` the number of levels of assembly.
"""

RATES: Final = ("nominal_rate", "alternative_rate", "nominal_risk", "alternative_risk", "defect_rate")
"""Fields with at most 3 decimals; money has at most 2."""

CLEARANCE: Final = 1e-8
"""How far every probability that decides about the least sample size is from its limit, at least."""


def _part(rate: float, purchase: float, inspection: float) -> dict[str, JsonValue]:
    return {"defect_rate": rate, "purchase_yuan": purchase, "inspection_yuan": inspection}


def _assembly(
    components: Sequence[str], rate: float, assembly: float, inspection: float, dismantling: float
) -> dict[str, JsonValue]:
    return {
        "components": list(components),
        "defect_rate": rate,
        "assembly_yuan": assembly,
        "inspection_yuan": inspection,
        "dismantling_yuan": dismantling,
    }


def _system(
    parts: Sequence[dict[str, JsonValue]], assemblies: Sequence[dict[str, JsonValue]], price: float, loss: float
) -> dict[str, JsonValue]:
    return {
        "parts": list(parts),
        "assemblies": list(assemblies),
        "price_yuan": price,
        "exchange_loss_yuan": loss,
    }


def _case(part1: Sequence[float], part2: Sequence[float], product: Sequence[float]) -> dict[str, JsonValue]:
    """A small system; ``product`` is rate, assembly, inspection, price, exchange loss, dismantling, as in table 1."""
    rate, assembly, inspection, price, loss, dismantling = product
    made = _assembly(("P1", "P2"), rate, assembly, inspection, dismantling)
    return _system([_part(*part1), _part(*part2)], [made], price, loss)


OFFICIAL: Final[Mapping[str, JsonValue]] = {
    "nominal_rate": 0.1,
    "reject": {"nominal_risk": 0.05, "alternative_rate": 0.15, "alternative_risk": 0.1},
    "accept": {"nominal_risk": 0.1, "alternative_rate": 0.05, "alternative_risk": 0.1},
    "cases": [
        _case((0.1, 4, 2), (0.1, 18, 3), (0.1, 6, 3, 56, 6, 5)),
        _case((0.2, 4, 2), (0.2, 18, 3), (0.2, 6, 3, 56, 6, 5)),
        _case((0.1, 4, 2), (0.1, 18, 3), (0.1, 6, 3, 56, 30, 5)),
        _case((0.2, 4, 1), (0.2, 18, 1), (0.2, 6, 2, 56, 30, 5)),
        _case((0.1, 4, 8), (0.2, 18, 1), (0.1, 6, 2, 56, 10, 5)),
        _case((0.05, 4, 2), (0.05, 18, 3), (0.05, 6, 3, 56, 10, 40)),
    ],
    "part_count": 8,
    "assembly_count": 4,
    "system": _system(
        [_part(0.1, *costs) for costs in ((2, 1), (8, 1), (12, 2), (2, 1), (8, 1), (12, 2), (8, 1), (12, 2))],
        [
            _assembly(("P1", "P2", "P3"), 0.1, 8, 4, 6),
            _assembly(("P4", "P5", "P6"), 0.1, 8, 4, 6),
            _assembly(("P7", "P8"), 0.1, 8, 4, 6),
            _assembly(("A1", "A2", "A3"), 0.1, 8, 6, 10),
        ],
        200,
        40,
    ),
}
"""Source: the statement of CUMCM 2024 problem B, tables 1 and 2 and figure 1; the alternative rates and their risks in
``reject`` and ``accept`` are our own convention, without which question 1 has no unique answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Checked parameters in the shape the computations take."""

    reject: Demand
    accept: Demand
    cases: tuple[System, ...]
    system: System


def setting(parameters: Mapping[str, JsonValue]) -> Setting:
    """Checks parameters and arranges them.

    Args:
        parameters: as in ``instance.json``.

    Returns:
        The setting.

    Raises:
        BadInstance: when a field is missing, unknown, of the wrong type, or out of its range or relation.
    """
    top = named(parameters, tuple(OFFICIAL))
    rate = _number(top["nominal_rate"], "nominal_rate")
    result = Setting(
        reject=demand_of(top["reject"], "reject", rate),
        accept=demand_of(top["accept"], "accept", rate),
        cases=tuple(_systems(top["cases"])),
        system=read_system(top["system"], "system"),
    )
    for name, items in (("part_count", result.system.parts), ("assembly_count", result.system.assemblies)):
        count = top[name]
        if isinstance(count, bool) or not isinstance(count, int) or count != len(items):
            raise BadInstance(f"parameter {name} is {count!r}; it must be {len(items)}, as the system has so many")
    return result


# ---------------------------------------------------------------- fields


def _list(value: Any, where: str, low: int, high: int) -> list[Any]:
    if not isinstance(value, list) or not low <= len(value) <= high:
        said = f"has {len(value)} entries" if isinstance(value, list) else f"is {str(value)[:60]!r}"
        raise BadInstance(f"parameter {where} {said}; it must be a list of {low} to {high}")
    return value


def _number(value: Any, where: str) -> Fraction:
    """The exact decimal at a place, in the range of its field's name."""
    name = where.rpartition(".")[2]
    return Fraction(str(number(where, value, RANGES[name], 3 if name in RATES else 2)))


def demand_of(value: Any, where: str, rate: Fraction) -> Demand:
    """Reads one demand on sampling plans.

    Args:
        value: object with ``nominal_risk``, ``alternative_rate`` and ``alternative_risk``.
        where: ``reject`` or ``accept``, the situation; named in errors.
        rate: nominal rate.

    Raises:
        BadInstance: as :func:`setting`; also when no plan of at most ``MOST_UNITS`` units keeps it, or only just.
    """
    names = ("nominal_risk", "alternative_rate", "alternative_risk")
    fields = named(value, names, where)
    numbers = {name: _number(fields[name], f"{where}.{name}") for name in names}
    rejecting = where == "reject"
    alternative = numbers["alternative_rate"]
    if rejecting != (alternative > rate) or alternative == rate:
        relation = "above" if rejecting else "below"
        raise BadInstance(
            f"parameter {where}.alternative_rate is {float(alternative)}; it must be {relation} nominal_rate"
            f" = {float(rate)}"
        )
    demand = Demand(
        nominal=rate,
        nominal_risk=numbers["nominal_risk"],
        alternative=alternative,
        alternative_risk=numbers["alternative_risk"],
        rejecting=rejecting,
    )
    simple = simple_plan(demand)[0]
    if not 10 <= simple <= 4000:
        raise BadInstance(f"parameter {where}: a simple plan takes {simple} units; it must take 10 to 4000")
    if clearance(demand) < CLEARANCE:
        raise BadInstance(
            f"parameter {where}: no plan of at most {MOST_UNITS} units, or a risk within {CLEARANCE} of its"
            " limit; change a rate or a risk"
        )
    return demand


# ---------------------------------------------------------------- systems


def _systems(value: Any) -> list[System]:
    cases = []
    for index, item in enumerate(_list(value, "cases", CASES, CASES)):
        system = read_system(item, f"cases[{index}]")
        if (len(system.parts), len(system.assemblies)) != (2, 1):
            raise BadInstance(
                f"parameter cases[{index}] has {len(system.parts)} parts and {len(system.assemblies)} assemblies; it"
                " must have 2 parts and the product"
            )
        cases.append(system)
    return cases


def read_system(value: Any, where: str) -> System:
    """Reads one production system.

    Args:
        value: object with ``parts``, ``assemblies``, ``price_yuan`` and ``exchange_loss_yuan``.
        where: its place in the parameters, named in errors.

    Raises:
        BadInstance: as :func:`setting`.
    """
    fields = named(value, ("parts", "assemblies", "price_yuan", "exchange_loss_yuan"), where)
    low, high = (int(end) for end in RANGES["part_count"])
    parts = []
    for index, item in enumerate(_list(fields["parts"], f"{where}.parts", low, high)):
        place = f"{where}.parts[{index}]"
        names = ("defect_rate", "purchase_yuan", "inspection_yuan")
        given = named(item, names, place)
        rate, purchase, inspection = (_number(given[name], f"{place}.{name}") for name in names)
        parts.append(Part(rate=rate, purchase=purchase, inspection=inspection))
    low, high = (int(end) for end in RANGES["assembly_count"])
    assemblies: list[Assembly] = []
    free = {f"P{index + 1}": index for index in range(len(parts))}
    for index, item in enumerate(_list(fields["assemblies"], f"{where}.assemblies", low, high)):
        assemblies.append(_read_assembly(item, f"{where}.assemblies[{index}]", free))
        free[f"A{index + 1}"] = len(parts) + index
    if len(free) != 1 or f"A{len(assemblies)}" not in free:
        left = sorted(set(free) - {f"A{len(assemblies)}"})
        raise BadInstance(f"parameter {where}.assemblies: {', '.join(left)} must be a component of one assembly")
    system = System(
        parts=tuple(parts),
        assemblies=tuple(assemblies),
        price=_number(fields["price_yuan"], f"{where}.price_yuan"),
        exchange_loss=_number(fields["exchange_loss_yuan"], f"{where}.exchange_loss_yuan"),
    )
    deepest = int(RANGES["depth"][1])
    if system.depths[-1] > deepest:
        raise BadInstance(f"parameter {where}.assemblies has {system.depths[-1]} levels; it may have {deepest}")
    return system


def _read_assembly(value: Any, where: str, free: dict[str, int]) -> Assembly:
    """One assembly; its components are taken out of the nodes that are still free."""
    names = ("defect_rate", "assembly_yuan", "inspection_yuan", "dismantling_yuan")
    fields = named(value, ("components", *names), where)
    low, high = (int(end) for end in RANGES["components"])
    components = []
    for name in _list(fields["components"], f"{where}.components", low, high):
        if not isinstance(name, str) or name not in free:
            raise BadInstance(
                f"parameter {where}.components names {str(name)[:20]!r}; it must be a part or an earlier assembly that"
                " is in no other assembly"
            )
        components.append(free.pop(name))
    rate, assembly, inspection, dismantling = (_number(fields[name], f"{where}.{name}") for name in names)
    return Assembly(
        components=tuple(components), rate=rate, assembly=assembly, inspection=inspection, dismantling=dismantling
    )
