"""CUMCM 2024 B, production decisions: instances, facts for the statement, figures, replay and reference.

Lots are accepted or refused by sampling plans (question 1); inspection and dismantling are decided for six small
systems of two parts (question 2) and for a tree of parts and assemblies (question 3). The modules: ``plans`` (exact
risks, least sample size), ``system`` (exact expected profit of a policy), ``optimum`` (best policy), ``trivial``
(trivial answers and baselines), ``parameters``, ``sampling``, ``tables``, ``figures``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tbmm_env.errors import BadInstance
from tbmm_env.record import JsonValue, Language

from .figures import draw
from .optimum import best_policy
from .parameters import OFFICIAL, RANGES, setting
from .plans import MOST_UNITS, Demand, least_plan, risks
from .sampling import LEVELS, sample
from .system import System, expected_profit, policy_from
from .tables import render
from .trivial import answers, baseline_profit, baseline_units

__all__ = [
    "LEVELS",
    "OFFICIAL",
    "RANGES",
    "VERSION",
    "check",
    "facts",
    "figures",
    "reference",
    "replay",
    "sample",
    "trivial_answers",
]

VERSION = "1.0.0"

_CASE_DECISIONS = ("inspect_part1", "inspect_part2", "inspect_product", "dismantle")
_SYSTEM_DECISIONS = ("inspect_parts", "inspect_assemblies", "dismantle_assemblies")


def check(parameters: Mapping[str, JsonValue]) -> None:
    """Checks the parameters of an instance.

    Args:
        parameters: as in ``instance.json``.

    Raises:
        BadInstance: naming field, value and limit.
    """
    setting(parameters)


def facts(parameters: Mapping[str, JsonValue], language: Language) -> dict[str, str]:
    """Placeholders of the statement templates.

    Args:
        parameters: checked or not; they are checked again.
        language: ``en`` or ``zh``; the numbers are the same in both.

    Returns:
        Text by placeholder name: every parameter, tables and the tree included.

    Raises:
        BadInstance: as :func:`check`.
    """
    return render(setting(parameters), language)


def figures(parameters: Mapping[str, JsonValue], language: Language) -> dict[str, bytes]:
    """Figures of the statement, drawn from the parameters.

    Args:
        parameters: of the instance.
        language: accepted for the interface; labels are symbols, numbers and the names of the answer's fields.

    Returns:
        PNG bytes by file name; the same bytes for the same parameters.

    Raises:
        BadInstance: as :func:`check`.
    """
    del language
    return draw(setting(parameters))


def replay(parameters: Mapping[str, JsonValue], answer: Mapping[str, Any]) -> dict[str, float]:
    """Computes what the decisions of an answer are worth, exactly, then to the nearest double.

    Args:
        parameters: of the instance.
        answer: schema-valid answer of plain numbers, lists and dicts; any part may be absent.

    Returns:
        Values by name: risks as probabilities, profits in yuan an order, and beside each profit the largest that any
        policy has. A value whose decisions are absent, or do not fit the instance, is absent.

    Raises:
        BadInstance: as :func:`check`.
    """
    given = setting(parameters)
    values: dict[str, float] = {}
    for name, demand in (("reject", given.reject), ("accept", given.accept)):
        values.update(_plan_risks(name, demand, _part(_part(answer, "q1"), name)))
    listed = _part(answer, "q2").get("cases")
    rows = listed if isinstance(listed, list) and len(listed) == len(given.cases) else [{}] * len(given.cases)
    for number, (case, decisions) in enumerate(zip(given.cases, rows, strict=True), 1):
        four = [_bit(decisions.get(name)) if isinstance(decisions, Mapping) else None for name in _CASE_DECISIONS]
        values.update(_worth(f"q2_case{number}", case, four))
    q3 = _part(answer, "q3")
    system = given.system
    sizes = (len(system.parts), len(system.assemblies), len(system.assemblies))
    bits: list[int | None] = []
    for name, size in zip(_SYSTEM_DECISIONS, sizes, strict=True):
        row = q3.get(name)
        bits += [_bit(item) for item in row] if isinstance(row, list) and len(row) == size else [None]
    values.update(_worth("q3", system, bits))
    return values


def reference(parameters: Mapping[str, JsonValue]) -> dict[str, dict[str, float]]:
    """Best values of all metrics and the best values of trivial answers.

    The official decisions are no trivial answer on the official instance, where they are the best ones.

    Args:
        parameters: of the instance.

    Returns:
        ``anchor`` and ``baseline``, each by metric key: units inspected, and yuan an order.

    Raises:
        BadInstance: as :func:`check`.
    """
    given = setting(parameters)
    anchor: dict[str, float] = {}
    baseline: dict[str, float] = {}
    for name, demand in (("reject", given.reject), ("accept", given.accept)):
        key = f"q1_{name}_sample_size"
        anchor[key], baseline[key] = float(_least_units(demand)), float(baseline_units(demand))
    systems: list[tuple[str, System, int | None]] = [
        (f"q2_case{index + 1}_profit_yuan", case, index) for index, case in enumerate(given.cases)
    ]
    systems.append(("q3_profit_yuan", given.system, None))
    for key, system, index in systems:
        anchor[key] = float(best_policy(system)[1])
        baseline[key] = float(baseline_profit(system, index))
    return {"anchor": anchor, "baseline": baseline}


def trivial_answers(parameters: Mapping[str, JsonValue]) -> dict[str, dict[str, Any]]:
    """Whole schema-valid answers that take no modelling.

    Args:
        parameters: of the instance.

    Returns:
        Answers by name: ``everything``, ``nothing``, ``parts_only``, ``greedy``, ``rule``, ``random`` and
        ``official_constant`` (the best decisions of the official instance, cut or repeated to fit).

    Raises:
        BadInstance: as :func:`check`.
    """
    return answers(parameters)


# ---------------------------------------------------------------- parts


def _least_units(demand: Demand) -> int:
    plan = least_plan(demand)
    if plan is None:
        raise BadInstance(f"no sampling plan of at most {MOST_UNITS} units keeps both risks")
    return plan[0]


def _plan_risks(name: str, demand: Demand, plan: Mapping[str, Any]) -> dict[str, float]:
    """Risks of a sampling plan; empty when it is incomplete or out of the schema's bounds."""
    size, number = _whole(plan.get("sample_size")), _whole(plan.get("acceptance_number"))
    if size is None or number is None or not 1 <= size <= MOST_UNITS:
        return {}
    nominal, alternative = risks(demand, size, number)
    return {f"q1_{name}_nominal_risk": float(nominal), f"q1_{name}_alternative_risk": float(alternative)}


def _worth(name: str, system: System, bits: list[int | None]) -> dict[str, float]:
    """Profit of a policy, and the largest of any; empty when a decision is missing."""
    chosen = [bit for bit in bits if bit is not None]
    if len(chosen) < len(bits):
        return {}
    profit = expected_profit(system, policy_from(system, chosen))
    return {f"{name}_profit_yuan": float(profit), f"{name}_best_yuan": float(best_policy(system)[1])}


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object at a name; empty when there is none."""
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _whole(value: Any) -> int | None:
    """An integer, given as int or float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > 10 * MOST_UNITS:
        return None
    return int(value) if value == int(value) else None


def _bit(value: Any) -> int | None:
    """0 or 1; None for anything else."""
    number = _whole(value)
    return number if number in (0, 1) else None
