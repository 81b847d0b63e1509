"""The best static policy of a production system, exactly, by dynamic programming over the assembly tree.

What a component adds to whatever contains it is four numbers, all at least 0, in the notation of ``system``: the cost
``A`` (``G`` or ``u``), the probability ``b`` of being bad, ``K = b * R`` and the inspection ``T`` after a dismantling;
an inspected component has ``b = K = T = 0``. For an assembly with components c, with sums over c::

    fresh = assembly + sum A_c          1 - b = (1 - f) * product (1 - b_c)
    K     = b * (dismantling + sum T_c + L) + sum K_c        dismantled
    K     = b * (fresh + inspection) / (1 - b)               scrapped
    u     = fresh                       G = fresh + inspection + K

and the product costs ``fresh + look + b * (loss + dismantling + sum T_c + L) + sum K_c`` dismantled, and
``(fresh + look + b * loss) / (1 - b)`` scrapped. None falls when an ``A_c``, ``b_c``, ``K_c`` or ``T_c`` grows,
being sums and products of factors that are at least 0; ``b`` grows with each ``b_c``, and ``b / (1 - b)`` and
``1 / (1 - b)`` grow with ``b``. By induction from the component to the product, the cost of an order does not fall
either. So of two choices in a subtree one that is no smaller in all four numbers can be left out (Pareto pruning), and
dismantling or scrapping is settled by the smaller ``K`` at once, as nothing else depends on it. What is left contains a
best policy.

Numbers are doubles here (relative error about 1e-14); the value of the policy found is computed exactly afterwards, so
only two policies closer than that could be taken for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .system import Policy, System, expected_profit, policy_from

Floats = NDArray[np.float64]
Bits = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Choices:
    """Pareto choices of a subtree: ``rows`` has columns A, b, K, T; ``bits`` the decisions as masks."""

    rows: Floats
    bits: Bits


@lru_cache(maxsize=256)
def best_policy(system: System) -> tuple[Policy, Fraction]:
    """Return a policy of the largest expected profit, and that profit in yuan, exact.

    Args:
        system: at most 12 parts, 5 components an assembly; about 0.01 s, for the largest 0.1 s.
    """
    parts, assemblies = len(system.parts), len(system.assemblies)
    nodes: list[_Choices] = []
    for index, part in enumerate(system.parts):
        good = float((part.purchase + part.inspection) / (1 - part.rate))
        rate = float(part.rate)
        blind = [float(part.purchase), rate, rate * good, float(part.inspection)]
        nodes.append(_pruned(np.array([[good, 0.0, 0.0, 0.0], blind]), np.array([1 << index, 0])))
    for index, assembly in enumerate(system.assemblies[:-1]):
        merged = _merged([nodes[node] for node in assembly.components])
        nodes.append(_assembled(system, index, merged, 1 << (parts + index), 1 << (parts + assemblies + index)))
    product = system.assemblies[-1]
    rows = _merged([nodes[node] for node in product.components])
    bits = _product(system, rows, 1 << (parts + assemblies - 1), 1 << (parts + 2 * assemblies - 1))
    policy = policy_from(system, [(bits >> place) & 1 for place in range(parts + 2 * assemblies)])
    return policy, expected_profit(system, policy)


def _merged(components: list[_Choices]) -> _Choices:
    """Choices of several subtrees together: A, K and T add up, 1 - b multiplies."""
    result = components[0]
    for other in components[1:]:
        left, right = result.rows[:, None, :], other.rows[None, :, :]
        rows = left + right
        rows[..., 1] -= left[..., 1] * right[..., 1]
        bits = result.bits[:, None] | other.bits[None, :]
        result = _pruned(rows.reshape(-1, 4), bits.reshape(-1))
    return result


def _assembled(system: System, index: int, choices: _Choices, inspect: int, dismantle: int) -> _Choices:
    """Choices of an assembly that is no product, from those of its components."""
    assembly = system.assemblies[index]
    rate, look, take_apart = float(assembly.rate), float(assembly.inspection), float(assembly.dismantling)
    fresh = choices.rows[:, 0] + float(assembly.assembly)
    bad = 1.0 - (1.0 - choices.rows[:, 1]) * (1.0 - rate)
    loop = (float(assembly.assembly) + look + rate * take_apart) / (1.0 - rate)
    apart = bad * (take_apart + choices.rows[:, 3] + loop) + choices.rows[:, 2]
    scrap = bad * (fresh + look) / (1.0 - bad)
    repair = np.minimum(apart, scrap)
    bits = choices.bits | np.where(apart <= scrap, dismantle, 0)
    known = fresh + look + repair
    best = int(np.argmin(known))
    rows = np.column_stack([fresh, bad, repair, np.full(len(fresh), look)])
    rows = np.vstack([[known[best], 0.0, 0.0, 0.0], rows])
    return _pruned(rows, np.concatenate([[bits[best] | inspect], bits]))


def _product(system: System, choices: _Choices, inspect: int, dismantle: int) -> int:
    """Decisions of the cheapest order, as a mask."""
    product = system.assemblies[-1]
    rate, work, take_apart = float(product.rate), float(product.assembly), float(product.dismantling)
    fresh = choices.rows[:, 0] + work
    bad = 1.0 - (1.0 - choices.rows[:, 1]) * (1.0 - rate)
    found: list[tuple[float, int]] = []
    for look, loss, seen in ((float(product.inspection), 0.0, inspect), (0.0, float(system.exchange_loss), 0)):
        loop = (work + look + rate * (loss + take_apart)) / (1.0 - rate)
        apart = fresh + look + bad * (loss + take_apart + choices.rows[:, 3] + loop) + choices.rows[:, 2]
        scrap = (fresh + look + bad * loss) / (1.0 - bad)
        for costs, torn in ((apart, dismantle), (scrap, 0)):
            best = int(np.argmin(costs))
            found.append((float(costs[best]), int(choices.bits[best]) | seen | torn))
    return min(found)[1]


def _pruned(rows: Floats, bits: Bits) -> _Choices:
    """Leave out every row that another one does not exceed in any column; of equal rows the first stays."""
    order = np.argsort(rows.sum(axis=1), kind="stable")
    rows, bits = rows[order], bits[order].astype(np.int64)
    kept_rows, kept_bits = [], []
    while len(rows):
        kept_rows.append(rows[0])
        kept_bits.append(bits[0])
        left = (rows < rows[0]).any(axis=1)
        rows, bits = rows[left], bits[left]
    return _Choices(np.array(kept_rows), np.array(kept_bits))
