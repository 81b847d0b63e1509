"""Drawing instances: the level sets the size of the tree, styles set where money is lost; poor draws are refused.

A system is drawn again when a trivial policy comes near its best one, when two different policies are nearly as good as
each other, or when it hardly earns anything; a demand on sampling plans when a simple plan is near the least one. So on
every sampled instance each metric of a trivial answer scores 0 against the best of the trivial answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tbmm_env.errors import BadInstance
from tbmm_env.problems.draws import generator_of, seed_number, step
from tbmm_env.record import JsonValue

from .optimum import best_policy
from .parameters import CASES, OFFICIAL, demand_of, read_system, setting
from .plans import Demand, least_plan
from .system import System, expected_profit, policy_from
from .trivial import baseline_profit, baseline_units, official_demand

LEVELS: Final = 5
"""Difficulty levels; the level of a seed is ``1 + seed % LEVELS``."""

SIZES: Final[tuple[tuple[tuple[int, int], tuple[int, int]], ...]] = (
    ((2, 4), (1, 2)),
    ((4, 6), (2, 2)),
    ((6, 8), (2, 3)),
    ((8, 10), (3, 3)),
    ((10, 12), (3, 4)),
)
"""Inclusive ranges of parts and of levels of assembly, by difficulty level."""

WIDEST: Final = 5
"""Most components of an assembly."""

BAND: Final = Fraction(3, 100)
"""Least distance of the best profit and the best trivial one, as a share of the best."""

BAND_YUAN: Final = Fraction(1, 5)
"""The same in yuan."""

MARGIN: Final = Fraction(6, 100)
"""Least profit of the best policy, as a share of the price."""

APART_YUAN: Final = Fraction(1, 100)
"""Least distance of the best profit and the next lower one: 100 times the tolerance of the metrics."""

PLAN_BAND: Final = Fraction(1, 10)
"""Least share by which the least sample size falls below that of the best trivial plan."""

UNITS: Final = (30, 900)
"""Inclusive range of the least sample size."""

MAX_DRAWS: Final = 400
"""Draws of one system or demand before sampling gives up; about one of three is kept."""


def sample(seed: int) -> dict[str, JsonValue]:
    """Draws the parameters of a well-posed instance.

    Args:
        seed: 0 <= seed < 2**63; its level is ``1 + seed % LEVELS``.

    Returns:
        Parameters that pass ``check``; a function of the seed alone.

    Raises:
        BadInstance: when the seed is not an integer of that range.
    """
    number = seed_number(seed)
    generator = generator_of(2024, 2, number)
    rate, reject, accept = _demands(generator)
    cases = [_case(generator, index) for index in range(CASES)]
    (least, most), depths = SIZES[number % LEVELS]
    system = _tree(generator, int(generator.integers(least, most + 1)), depths)
    parameters: dict[str, JsonValue] = {
        "nominal_rate": rate,
        "reject": reject,
        "accept": accept,
        "cases": list(cases),
        "part_count": len(system["parts"]),
        "assembly_count": len(system["assemblies"]),
        "system": system,
    }
    setting(parameters)
    assert parameters != dict(OFFICIAL)
    return parameters


class _Draw:
    """Numbers on grids of the printed decimals."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def step(self, low: float, high: float, size: float) -> float:
        """A multiple of ``size`` from ``low``, at most ``high``, uniform; 3 decimals at most."""
        return step(self._generator, low, high, size, 3)

    def one_of(self, choices: Sequence[Any]) -> Any:
        """One of several, uniform."""
        return choices[int(self._generator.integers(0, len(choices)))]


# ---------------------------------------------------------------- question 1


def _demands(generator: np.random.Generator) -> tuple[float, dict[str, JsonValue], dict[str, JsonValue]]:
    """Nominal rate and both demands, with least plans of a moderate size that no trivial plan comes near."""
    draw = _Draw(generator)
    for _ in range(MAX_DRAWS):
        rate = draw.step(0.04, 0.2, 0.01)
        found: list[dict[str, JsonValue]] = []
        for where in ("reject", "accept"):
            share = draw.step(1.4, 2.2, 0.05) if where == "reject" else draw.step(0.3, 0.7, 0.05)
            fields: dict[str, JsonValue] = {
                "nominal_risk": draw.one_of((0.01, 0.02, 0.05, 0.1)),
                "alternative_rate": round(rate * share, 3),
                "alternative_risk": draw.one_of((0.05, 0.1, 0.15, 0.2)),
            }
            try:
                demand = demand_of(fields, where, Fraction(str(rate)))
            except BadInstance:
                break
            if not _good_demand(demand):
                break
            found.append(fields)
        if len(found) == 2:
            return rate, found[0], found[1]
    raise AssertionError(f"no well-posed sampling plans in {MAX_DRAWS} draws")


def _good_demand(demand: Demand) -> bool:
    least = least_plan(demand)
    if least is None or not UNITS[0] <= least[0] <= UNITS[1] or demand == official_demand(demand):
        return False
    return baseline_units(demand) >= (1 + PLAN_BAND) * least[0]


# ---------------------------------------------------------------- questions 2 and 3


def _good_system(system: System, case: int | None) -> bool:
    """Whether the best policy earns enough, and clearly more than any trivial and any other policy near it."""
    policy, best = best_policy(system)
    if best < MARGIN * system.price:
        return False
    if best - baseline_profit(system, case) < max(BAND * best, BAND_YUAN):
        return False
    bits = list(policy.bits)
    for place in range(len(bits)):
        other = policy_from(system, [bit ^ (place == at) for at, bit in enumerate(bits)])
        lost = best - expected_profit(system, other)
        if 0 < lost < APART_YUAN:
            return False
    return True


def _costs(draw: _Draw, count: int, assemblies: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A system of given shape: one style each for rates, inspections, dismantling and the exchange loss."""
    rates = draw.one_of(((0.02, 0.1), (0.05, 0.2), (0.1, 0.3)))
    checks = draw.one_of(((0.05, 0.3), (0.15, 0.6), (0.05, 0.9)))
    apart = draw.one_of(((0.05, 0.3), (0.2, 0.8), (0.6, 1.5)))
    hurt = draw.one_of(((0.05, 0.3), (0.2, 0.7), (0.5, 1.5)))
    parts, value = [], {}
    for index in range(count):
        purchase = draw.step(2, 20, 0.5)
        parts.append(
            {
                "defect_rate": draw.step(rates[0], rates[1], 0.01),
                "purchase_yuan": purchase,
                "inspection_yuan": _share(draw, purchase, checks),
            }
        )
        value[f"P{index + 1}"] = purchase
    made = []
    for index, components in enumerate(assemblies):
        assembly = draw.step(2, 10, 0.5)
        bought = sum(value[name] for name in components)
        value[f"A{index + 1}"] = bought + assembly
        made.append(
            {
                "components": list(components),
                "defect_rate": draw.step(rates[0], rates[1], 0.01),
                "assembly_yuan": assembly,
                "inspection_yuan": _share(draw, bought, tuple(0.5 * end for end in checks)),
                "dismantling_yuan": _share(draw, bought, apart),
            }
        )
    whole = value[f"A{len(assemblies)}"]
    return {
        "parts": parts,
        "assemblies": made,
        "price_yuan": float(round(whole * draw.step(1.5, 2.4, 0.05))),
        "exchange_loss_yuan": _share(draw, whole, hurt),
    }


def _share(draw: _Draw, whole: float, shares: Sequence[float]) -> float:
    """A share of an amount, rounded to half a yuan, at least that."""
    return max(0.5, round(2 * whole * draw.step(shares[0], shares[1], 0.005)) / 2)


def _case(generator: np.random.Generator, index: int) -> dict[str, JsonValue]:
    """A small system; the official decisions of the case with the same number are among the trivial policies."""
    draw = _Draw(generator)
    for _ in range(MAX_DRAWS):
        fields = _costs(draw, 2, [("P1", "P2")])
        system = read_system(fields, f"cases[{index}]")
        if _good_system(system, index):
            return fields
    raise AssertionError(f"no well-posed case in {MAX_DRAWS} draws")


def _tree(generator: np.random.Generator, count: int, depths: tuple[int, int]) -> dict[str, Any]:
    """The larger system, of a shape drawn anew each time."""
    draw = _Draw(generator)
    for _ in range(MAX_DRAWS):
        assemblies = _shape(generator, count, int(generator.integers(depths[0], depths[1] + 1)))
        if assemblies is None:
            continue
        fields = _costs(draw, count, assemblies)
        system = read_system(fields, "system")
        if _good_system(system, None):
            return fields
    raise AssertionError(f"no well-posed system in {MAX_DRAWS} draws")


def _shape(generator: np.random.Generator, count: int, depth: int) -> list[list[str]] | None:
    """Components of every assembly of a random tree with so many parts; None when its depth came out otherwise."""
    assemblies: list[list[str]] = []
    parts = 0
    deepest = 0

    def build(size: int, levels: int, at: int) -> str:
        nonlocal parts, deepest
        if size == 1:
            parts += 1
            return f"P{parts}"
        deepest = max(deepest, at)
        least = 2 if levels > 1 else size
        wide = int(generator.integers(least, min(WIDEST, size) + 1)) if least <= WIDEST else size
        cuts = np.sort(generator.choice(size - 1, wide - 1, replace=False)) + 1
        ends = [0, *(int(cut) for cut in cuts), size]
        components = [build(high - low, levels - 1, at + 1) for low, high in zip(ends, ends[1:], strict=False)]
        assemblies.append(components)
        return f"A{len(assemblies)}"

    build(count, depth, 1)
    return assemblies if deepest == depth and max(map(len, assemblies)) <= WIDEST else None
