"""A production system (parts, assemblies, one product), static policies, and the exact expected profit of an order.

One order is one good product delivered; its price is earned once. Notation, all money in yuan, for a unit of a part or
an assembly v under a policy:

* ``x``: whether units of v are inspected before they go on (for the product: before it is sold);
* ``u``: expected cost of one unit that goes on uninspected, ``b``: the probability that it is bad;
* ``G``: expected cost of one unit that is known to be good when it goes on (inspected units);
* ``L``: expected cost of assembling v, from components known to be good, until a unit is good: every attempt costs
  assembly and inspection, every bad one is dismantled and its components, still good, are used again,
  ``L = (assembly + inspection + f * dismantling) / (1 - f)``, f being the defect rate with good components;
* ``R``: expected cost of turning a unit that is known to be bad into one known to be good.

A part: ``G = R = (purchase + inspection) / (1 - p)`` (bad ones are thrown away), ``u = purchase``, ``b = p``.

An assembly with components c in their modes: ``A`` = assembly + sum of ``G_c`` (inspected) or ``u_c`` (not), and
``1 - b = (1 - f) * product of (1 - b_c)``. A bad component makes the assembly bad, so P(c bad | v bad) = b_c / b:

* dismantled: ``R = dismantling + sum over uninspected c of (inspection_c + (b_c / b) * R_c) + L``,
* scrapped: ``R = (A + inspection) / (1 - b)``, a new start with new components under the same bits;
* ``u = A`` when it goes on uninspected, ``G = A + inspection + b * R`` when it is inspected.

The product is like an inspected assembly. Uninspected, it has no inspection cost, and each bad one, in the first
attempt and in every later one, costs the exchange loss on top. The expected profit is the price minus the product's
``G``. Source: the statement's rules by linearity of expectation; the tests compare it with a simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A bought part: rate in (0, 1), money in yuan per unit."""

    rate: Fraction
    purchase: Fraction
    inspection: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """A semi-product or the product.

    Attributes:
        components: nodes it is made of; node i < number of parts is part i, else assembly i - number of parts.
        rate: probability in (0, 1) that a unit is bad although all its components are good.
        assembly: yuan per attempt.
        inspection: yuan per unit.
        dismantling: yuan per unit.
    """

    components: tuple[int, ...]
    rate: Fraction
    assembly: Fraction
    inspection: Fraction
    dismantling: Fraction


@dataclass(frozen=True, kw_only=True)
class System:
    """A tree of assemblies, components before what is made of them, the product last; price and loss in yuan."""

    parts: tuple[Part, ...]
    assemblies: tuple[Assembly, ...]
    price: Fraction
    exchange_loss: Fraction

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Levels of assembly below and including each node; 0 for parts."""
        depths = [0] * len(self.parts)
        for assembly in self.assemblies:
            depths.append(1 + max(depths[node] for node in assembly.components))
        return tuple(depths)

    @cached_property
    def purchases(self) -> tuple[Fraction, ...]:
        """Yuan of all parts bought for one unit of each node, inspections and bad units left out."""
        values = [part.purchase for part in self.parts]
        for assembly in self.assemblies:
            values.append(sum((values[node] for node in assembly.components), Fraction(0)))
        return tuple(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A static policy: 0 or 1 a part and an assembly, in the order of the system, the product last."""

    inspect_parts: tuple[int, ...]
    inspect_assemblies: tuple[int, ...]
    dismantle_assemblies: tuple[int, ...]

    @property
    def bits(self) -> tuple[int, ...]:
        """All decisions in one row."""
        return (*self.inspect_parts, *self.inspect_assemblies, *self.dismantle_assemblies)


def policy_from(system: System, bits: Sequence[int]) -> Policy:
    """Arrange a row of decisions, as :attr:`Policy.bits` gives it, for a system."""
    parts, assemblies = len(system.parts), len(system.assemblies)
    row = tuple(int(bit) for bit in bits)
    if len(row) != parts + 2 * assemblies:
        raise ValueError(f"a policy of this system has {parts + 2 * assemblies} decisions, not {len(row)}")
    return Policy(
        inspect_parts=row[:parts],
        inspect_assemblies=row[parts : parts + assemblies],
        dismantle_assemblies=row[parts + assemblies :],
    )


@dataclass(frozen=True, slots=True)
class _Unit:
    """What a component is worth to whoever uses it; see the module's docstring."""

    inspected: bool
    cost: Fraction
    bad: Fraction
    inspection: Fraction
    repair: Fraction


def expected_profit(system: System, policy: Policy) -> Fraction:
    """Return the exact expected profit of one order, in yuan.

    Args:
        system: parts, assemblies, price and exchange loss.
        policy: one bit a decision, of the system's size.
    """
    units = []
    for part, inspect in zip(system.parts, policy.inspect_parts, strict=True):
        good = (part.purchase + part.inspection) / (1 - part.rate)
        if inspect:
            units.append(_Unit(True, good, Fraction(0), part.inspection, good))
        else:
            units.append(_Unit(False, part.purchase, part.rate, part.inspection, good))
    decisions = zip(system.assemblies, policy.inspect_assemblies, policy.dismantle_assemblies, strict=True)
    cost = Fraction(0)
    for number, (assembly, inspect, dismantle) in enumerate(decisions, 1):
        product = number == len(system.assemblies)
        sold_blind = product and not inspect
        look = Fraction(0) if sold_blind else assembly.inspection
        loss = system.exchange_loss if sold_blind else Fraction(0)
        components = [units[node] for node in assembly.components]
        fresh = assembly.assembly + sum((unit.cost for unit in components), Fraction(0))
        good = 1 - assembly.rate
        for unit in components:
            good *= 1 - unit.bad
        bad = 1 - good
        if dismantle:
            loop = (assembly.assembly + look + assembly.rate * (loss + assembly.dismantling)) / (1 - assembly.rate)
            repair = loss + assembly.dismantling + loop
            for unit in components:
                if not unit.inspected:
                    repair += unit.inspection + unit.bad / bad * unit.repair
        else:
            repair = loss + (fresh + look + bad * loss) / good
        cost = fresh + look + bad * repair
        if inspect:
            units.append(_Unit(True, cost, Fraction(0), assembly.inspection, repair))
        else:
            units.append(_Unit(False, fresh, bad, assembly.inspection, repair))
    return system.price - cost
