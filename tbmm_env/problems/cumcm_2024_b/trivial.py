"""Trivial answers: what takes no modelling. Their best value is the baseline of each metric."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from tbmm_env.problems.draws import generator_of
from tbmm_env.record import JsonValue

from .optimum import best_policy
from .parameters import OFFICIAL, Setting, setting
from .plans import Demand, keeps, least_plan, simple_plan
from .system import Policy, System, expected_profit, policy_from

OFFICIAL_CONSTANT: Final = "official_constant"


def everything(system: System) -> Policy:
    """Inspect all, dismantle all."""
    return policy_from(system, [1] * (len(system.parts) + 2 * len(system.assemblies)))


def nothing(system: System) -> Policy:
    """Inspect nothing, scrap what comes back."""
    return policy_from(system, [0] * (len(system.parts) + 2 * len(system.assemblies)))


def parts_only(system: System) -> Policy:
    """Inspect every part and no assembly, dismantle all."""
    parts, assemblies = len(system.parts), len(system.assemblies)
    return policy_from(system, [1] * parts + [0] * assemblies + [1] * assemblies)


def greedy(system: System) -> Policy:
    """Inspect where the rate times the money in a unit exceeds the inspection; dismantle where the parts cost more.

    The money in a unit is what its parts were bought for and what its assemblies cost, the exchange loss added for the
    product; the rate is the unit's own. No decision looks at another one.
    """
    money = [part.purchase for part in system.parts]
    inspect, dismantle = [], []
    for index, assembly in enumerate(system.assemblies):
        spent = assembly.assembly + sum((money[node] for node in assembly.components), Fraction(0))
        money.append(spent)
        at_stake = spent + (system.exchange_loss if index == len(system.assemblies) - 1 else 0)
        inspect.append(int(assembly.rate * at_stake > assembly.inspection))
        dismantle.append(int(system.purchases[len(system.parts) + index] > assembly.dismantling))
    parts = [int(part.rate * part.purchase > part.inspection) for part in system.parts]
    return policy_from(system, [*parts, *inspect, *dismantle])


def rule(system: System) -> Policy:
    """Inspect parts that cost at least four inspections, of the assemblies the product alone, dismantle everything."""
    count = len(system.assemblies)
    parts = [int(part.purchase >= 4 * part.inspection) for part in system.parts]
    return policy_from(system, [*parts, *[0] * (count - 1), 1, *[1] * count])


def random(system: System) -> Policy:
    """Every decision by a fair coin, from a generator that the system's own numbers seed."""
    seed = int.from_bytes(hashlib.sha256(repr(system).encode()).digest()[:8], "big")
    generator = generator_of(seed)
    size = len(system.parts) + 2 * len(system.assemblies)
    return policy_from(system, [int(bit) for bit in generator.integers(0, 2, size)])


@lru_cache(maxsize=1)
def _official() -> tuple[Setting, tuple[Policy, ...], Policy]:
    given = setting(OFFICIAL)
    return given, tuple(best_policy(case)[0] for case in given.cases), best_policy(given.system)[0]


def official_cases() -> tuple[Policy, ...]:
    """The official optima of the six cases, in their order."""
    return _official()[1]


def official_system(system: System) -> Policy:
    """The official optimum of question 3, cut or repeated to fit.

    The decisions of parts and semi-products are repeated from the first one on; the product keeps those of the product.
    """
    best = _official()[2]
    semis = len(system.assemblies) - 1

    def fit(values: tuple[int, ...], count: int) -> list[int]:
        return [values[index % len(values)] for index in range(count)]

    inspect, dismantle = best.inspect_assemblies, best.dismantle_assemblies
    return policy_from(
        system,
        [
            *fit(best.inspect_parts, len(system.parts)),
            *fit(inspect[:-1], semis),
            inspect[-1],
            *fit(dismantle[:-1], semis),
            dismantle[-1],
        ],
    )


RULES: Final[Mapping[str, Callable[[System], Policy]]] = {
    "everything": everything,
    "nothing": nothing,
    "parts_only": parts_only,
    "greedy": greedy,
    "rule": rule,
    "random": random,
}
"""Policies that look at one system at a time."""


def policies(given: Setting) -> dict[str, tuple[tuple[Policy, ...], Policy]]:
    """Return the policies of all trivial answers by name: of the six cases, and of the larger system."""
    found = {name: (tuple(map(choose, given.cases)), choose(given.system)) for name, choose in RULES.items()}
    found[OFFICIAL_CONSTANT] = (official_cases(), official_system(given.system))
    return found


def plans(demand: Demand) -> dict[str, tuple[int, int] | None]:
    """Return the sampling plans of the trivial answers to one situation; None where a plan would break a risk.

    All use Chernoff's bound, but for the official constant, which has the least plan of the official instance.
    """
    found: dict[str, tuple[int, int] | None] = {name: simple_plan(demand) for name in RULES}
    official = least_plan(official_demand(demand))
    found[OFFICIAL_CONSTANT] = official if official is not None and keeps(demand, *official) else None
    return found


def official_demand(demand: Demand) -> Demand:
    """The demand of the official instance in the same situation."""
    given = _official()[0]
    return given.reject if demand.rejecting else given.accept


def baseline_units(demand: Demand) -> int:
    """Return the least sample size of a trivial plan; the official one does not count on the official instance."""
    own = demand == official_demand(demand)
    return min(
        plan[0] for name, plan in plans(demand).items() if plan is not None and not (own and name == OFFICIAL_CONSTANT)
    )


def baseline_profit(system: System, case: int | None) -> Fraction:
    """Return the largest expected profit of a trivial policy, yuan.

    Args:
        system: of question 2 or 3.
        case: index in question 2, or None for question 3. The official decisions count, except in the official system
            itself.
    """
    given, cases, _ = _official()
    chosen = [choose(system) for choose in RULES.values()]
    if case is None and system != given.system:
        chosen.append(official_system(system))
    elif case is not None and system != given.cases[case]:
        chosen.append(cases[case])
    return max(expected_profit(system, policy) for policy in chosen)


def answers(parameters: Mapping[str, JsonValue]) -> dict[str, dict[str, Any]]:
    """Return whole answers by name, ``trivial_answers`` of the package."""
    given = setting(parameters)
    result: dict[str, dict[str, Any]] = {}
    situations = {"reject": plans(given.reject), "accept": plans(given.accept)}
    for name, (cases, system) in policies(given).items():
        q1 = {
            situation: {"sample_size": plan[0], "acceptance_number": plan[1]}
            for situation, found in situations.items()
            if (plan := found[name]) is not None
        }
        result[name] = {
            "q1": q1,
            "q2": {"cases": [case_decisions(policy) for policy in cases]},
            "q3": system_decisions(system),
        }
    return result


def case_decisions(policy: Policy) -> dict[str, int]:
    """Return the four decisions of a case as the answer names them."""
    names = ("inspect_part1", "inspect_part2", "inspect_product", "dismantle")
    return dict(zip(names, policy.bits, strict=True))


def system_decisions(policy: Policy) -> dict[str, list[int]]:
    """Return the decisions of the larger system as the answer names them."""
    return {
        "inspect_parts": list(policy.inspect_parts),
        "inspect_assemblies": list(policy.inspect_assemblies),
        "dismantle_assemblies": list(policy.dismantle_assemblies),
    }
