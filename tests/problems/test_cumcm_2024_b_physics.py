"""The exact profits, optima and risks against slower evaluators written from the statement.

Profits are compared with a simulation of hidden states that knows no probability of a policy, optima with every policy
of small systems, risks and least plans with a scan of all plans by another library's binomial. The evaluators are tried
on wrong rules and wrong optimisers that they must tell from the right ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from tbmm_env.problems import cumcm_2024_b as production
from tbmm_env.problems.cumcm_2024_b import optimum, plans, sampling
from tbmm_env.problems.cumcm_2024_b.parameters import read_system, setting
from tbmm_env.problems.cumcm_2024_b.system import Policy, System, expected_profit, policy_from

OFFICIAL = dict(production.OFFICIAL)
GIVEN = setting(OFFICIAL)
ORDERS = 60_000
SIGMAS = 4.0

Orders = NDArray[np.int64]
Flags = NDArray[np.bool_]


# ---------------------------------------------------------------- the simulation


@dataclass
class Units:
    """One unit of a node for each of some orders: what it is, and whether anybody knows; with its components."""

    good: Flags
    known: bool
    components: list[Units] = field(default_factory=list)

    def of(self, some: Flags) -> Units:
        return Units(self.good[some], self.known, [unit.of(some) for unit in self.components])


class Workshop:
    """Plays orders of a system under a policy, unit by unit, with the money each order costs.

    ``wrong`` names a rule that is broken on purpose.
    """

    def __init__(self, data: Mapping[str, Any], policy: Policy, seed: int, wrong: str = "") -> None:
        self.data, self.wrong = data, wrong
        self.nodes = {f"P{i + 1}": part for i, part in enumerate(data["parts"])}
        self.nodes |= {f"A{i + 1}": made for i, made in enumerate(data["assemblies"])}
        self.product = f"A{len(data['assemblies'])}"
        inspected = [*policy.inspect_parts, *policy.inspect_assemblies]
        self.inspected = dict(zip(self.nodes, inspected, strict=True))
        assemblies = [name for name in self.nodes if name.startswith("A")]
        self.dismantled = dict(zip(assemblies, policy.dismantle_assemblies, strict=True))
        self.rng = np.random.default_rng(seed)
        self.cost = np.zeros(ORDERS)

    def bad(self, name: str, count: int) -> Flags:
        return self.rng.random(count) < self.nodes[name]["defect_rate"]

    def buy_good(self, name: str, orders: Orders) -> None:
        """Buy and inspect until good."""
        while orders.size:
            self.cost[orders] += self.nodes[name]["purchase_yuan"] + self.nodes[name]["inspection_yuan"]
            orders = orders[self.bad(name, orders.size)]

    def get(self, name: str, orders: Orders) -> Units:
        """One unit for each order as its user gets it."""
        if name.startswith("P"):
            if self.inspected[name]:
                self.buy_good(name, orders)
                return Units(np.ones(orders.size, dtype=bool), True)
            self.cost[orders] += self.nodes[name]["purchase_yuan"]
            return Units(~self.bad(name, orders.size), False)
        units = self.assemble(name, orders)
        if self.inspected[name]:
            self.cost[orders] += self.nodes[name]["inspection_yuan"]
            self.mend(name, orders[~units.good], units.of(~units.good))
            return Units(np.ones(orders.size, dtype=bool), True)
        return units

    def assemble(self, name: str, orders: Orders) -> Units:
        """One new unit for each order, from new components."""
        components = [self.get(child, orders) for child in self.nodes[name]["components"]]
        self.cost[orders] += self.nodes[name]["assembly_yuan"]
        good = ~self.bad(name, orders.size)
        for unit in components:
            good &= unit.good
        return Units(good, False, components)

    def mend(self, name: str, orders: Orders, units: Units, *, sold: bool = False) -> None:
        """Turn units that were found bad into ones known to be good."""
        made = self.nodes[name]
        look = 0.0 if sold else made["inspection_yuan"]
        loss = self.data["exchange_loss_yuan"] if sold and self.wrong != "loss paid once" else 0.0
        if not self.dismantled[name]:
            while orders.size:
                fresh = self.assemble(name, orders)
                self.cost[orders] += look
                orders = orders[~fresh.good]
                self.cost[orders] += loss
            return
        self.cost[orders] += made["dismantling_yuan"]
        for child, unit in zip(made["components"], units.components, strict=True):
            self.take_back(child, orders, unit)
        while orders.size:
            self.cost[orders] += made["assembly_yuan"] + look
            orders = orders[self.bad(name, orders.size)]
            self.cost[orders] += loss + made["dismantling_yuan"]

    def take_back(self, name: str, orders: Orders, units: Units) -> None:
        """What becomes of components of a dismantled unit."""
        if units.known and self.wrong != "known ones inspected again":
            return
        if self.wrong != "no inspection on re-entry":
            self.cost[orders] += self.nodes[name]["inspection_yuan"]
        wrong = ~units.good
        if self.wrong == "quality drawn anew":
            wrong = self.bad(name, orders.size)
        if name.startswith("P"):
            if self.wrong == "bad parts replaced unseen":
                self.cost[orders[wrong]] += self.nodes[name]["purchase_yuan"]
            else:
                self.buy_good(name, orders[wrong])
        elif not units.known:
            self.mend(name, orders[wrong], units.of(wrong))

    def profit(self) -> tuple[float, float]:
        """Mean profit of an order, and its standard error, yuan."""
        orders = np.arange(ORDERS)
        units = self.assemble(self.product, orders)
        sold = not self.inspected[self.product]
        bad = orders[~units.good]
        if sold:
            self.cost[bad] += self.data["exchange_loss_yuan"]
        else:
            self.cost[orders] += self.nodes[self.product]["inspection_yuan"]
        self.mend(self.product, bad, units.of(~units.good), sold=sold)
        profits = self.data["price_yuan"] - self.cost
        if self.wrong == "bad ones are paid too":
            profits = profits + self.data["price_yuan"] * ~units.good
        return float(profits.mean()), float(profits.std() / np.sqrt(ORDERS))


def off_by_sigmas(data: Mapping[str, Any], policy: Policy, seed: int = 0, wrong: str = "") -> float:
    """How many standard errors the exact profit is from the simulated one."""
    mean, error = Workshop(data, policy, seed, wrong).profit()
    return abs(mean - float(expected_profit(read_system(data, "system"), policy))) / max(error, 1e-9)


def drawn(seed: int) -> dict[str, Any]:
    parameters: dict[str, Any] = production.sample(seed)
    return parameters


# ---------------------------------------------------------------- profits


@pytest.mark.parametrize("case", range(6))
def test_official_cases_against_the_simulation(case: int) -> None:
    data: Any = OFFICIAL["cases"]
    for bits in itertools.product((0, 1), repeat=4):
        assert off_by_sigmas(data[case], policy_from(GIVEN.cases[case], bits), sum(bits)) < SIGMAS


def test_the_official_system_against_the_simulation() -> None:
    data: Any = OFFICIAL["system"]
    rng = np.random.default_rng(11)
    chosen = [optimum.best_policy(GIVEN.system)[0].bits, (1,) * 16, *rng.integers(0, 2, (10, 16)).tolist()]
    for bits in chosen:
        assert off_by_sigmas(data, policy_from(GIVEN.system, bits)) < SIGMAS


@pytest.mark.parametrize("seed", [0, 3, 9, 14, 19])
def test_sampled_systems_against_the_simulation(seed: int) -> None:
    data = drawn(seed)["system"]
    system = read_system(data, "system")
    size = len(system.parts) + 2 * len(system.assemblies)
    rng = np.random.default_rng(seed)
    chosen = [optimum.best_policy(system)[0].bits, *(rng.random((3, size)) < 0.7).astype(int).tolist()]
    for bits in chosen:
        assert off_by_sigmas(data, policy_from(system, bits)) < SIGMAS


WRONG: list[tuple[str, tuple[int, ...]]] = [
    ("no inspection on re-entry", (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1)),
    ("known ones inspected again", (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)),
    ("quality drawn anew", (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1)),
    ("bad parts replaced unseen", (0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)),
    ("loss paid once", (1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0)),
    ("bad ones are paid too", (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1)),
]


@pytest.mark.parametrize(("wrong", "bits"), WRONG)
def test_wrong_rules_are_told_apart(wrong: str, bits: tuple[int, ...]) -> None:
    data: Any = OFFICIAL["system"]
    policy = policy_from(GIVEN.system, bits)
    assert off_by_sigmas(data, policy) < SIGMAS
    assert off_by_sigmas(data, policy, wrong=wrong) > 2 * SIGMAS


def test_every_decision_is_told_apart() -> None:
    """One policy's simulation is not the profit of a policy that differs in one decision, but for two small ones."""
    data: Any = OFFICIAL["system"]
    bits = (0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 1)
    mean, error = Workshop(data, policy_from(GIVEN.system, bits), 5).profit()
    others = [policy_from(GIVEN.system, [b ^ (at == place) for at, b in enumerate(bits)]) for place in range(16)]
    off = [abs(mean - float(expected_profit(GIVEN.system, other))) / error for other in others]
    assert sum(sigmas > SIGMAS for sigmas in off) >= 14


# ---------------------------------------------------------------- optima


def every_policy(system: System) -> Fraction:
    """The largest profit of all policies, one by one."""
    size = len(system.parts) + 2 * len(system.assemblies)
    return max(expected_profit(system, policy_from(system, bits)) for bits in itertools.product((0, 1), repeat=size))


def small_systems() -> list[System]:
    """Trees of up to five parts; the last ones have ties and free dismantling."""
    rng = np.random.default_rng(7)
    draw = sampling._Draw(rng)
    shapes = [
        [["P1", "P2"]],
        [["P1", "P2", "P3"]],
        [["P1", "P2"], ["A1", "P3"]],
        [["P1", "P2"], ["P3", "P4"], ["A1", "A2"]],
        [["P1", "P2", "P3"], ["A1", "P4"]],
        [["P1", "P2"], ["A1", "P3"], ["A2", "P4"]],
    ]
    found = []
    for number in range(12):
        shape = shapes[number % len(shapes)]
        count = 1 + max(int(name[1:]) - 1 for names in shape for name in names if name.startswith("P"))
        data = sampling._costs(draw, count, shape)
        if number >= 9:
            for made in data["assemblies"]:
                made["dismantling_yuan"] = 0
            for part in data["parts"]:
                part |= {"defect_rate": 0.1, "purchase_yuan": 9, "inspection_yuan": 1}
        found.append(read_system(data, "system"))
    return found


SMALL = small_systems()
LARGE = [GIVEN.system, *(setting(drawn(seed)).system for seed in range(3, 40, 4))]


@pytest.mark.parametrize("number", range(len(SMALL)))
def test_the_optimum_is_the_best_of_all_policies(number: int) -> None:
    policy, best = optimum.best_policy(SMALL[number])
    assert best == expected_profit(SMALL[number], policy)
    assert float(best) == pytest.approx(float(every_policy(SMALL[number])), abs=1e-9)


def test_the_official_optima_are_the_best_of_all_policies() -> None:
    for case in GIVEN.cases:
        assert optimum.best_policy(case)[1] == every_policy(case)
    # decisions in A1 and A2 can be exchanged, so half of the 65536 policies would do; every 7th is enough to be quick
    best = optimum.best_policy(GIVEN.system)[1]
    policies: Sequence[Any] = list(itertools.product((0, 1), repeat=16))[::7]
    assert all(expected_profit(GIVEN.system, policy_from(GIVEN.system, bits)) <= best for bits in policies)


@pytest.mark.parametrize("columns", [(0, 3), (0,), (1, 2, 3), (2,)])
def test_a_pruning_that_forgets_a_number_is_found(monkeypatch: pytest.MonkeyPatch, columns: tuple[int, ...]) -> None:
    """Leaving rows out by some of the four numbers alone loses an optimum somewhere."""
    right = optimum._pruned
    right_ones = [optimum.best_policy(system)[1] for system in LARGE]

    def wrong(rows: Any, bits: Any) -> Any:
        seen = right(np.where(np.isin(np.arange(4), columns), rows, 0.0), np.arange(len(rows)))
        return optimum._Choices(rows[seen.bits], np.asarray(bits)[seen.bits])

    monkeypatch.setattr(optimum, "_pruned", wrong)
    lost = [best - optimum.best_policy.__wrapped__(system)[1] for system, best in zip(LARGE, right_ones, strict=True)]
    assert min(lost) >= 0
    assert max(lost) > 0.01


# ---------------------------------------------------------------- risks


def scan(demand: plans.Demand) -> int:
    """The least n of all plans, by trying them."""
    (low, r), (high, s) = demand.low, demand.high
    for n in range(1, 2000):
        c = np.arange(n)
        if ((binom.sf(c, n, float(low)) <= float(r)) & (binom.cdf(c, n, float(high)) <= float(s))).any():
            return n
    raise AssertionError("no plan")


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
def test_least_plans_against_a_scan(seed: int | None) -> None:
    given = GIVEN if seed is None else setting(drawn(seed))
    for demand in (given.reject, given.accept):
        plan = plans.least_plan(demand)
        assert plan is not None
        assert plan[0] == scan(demand)
        assert plans.keeps(demand, *plan)
        assert not plans.keeps(demand, plan[0], plan[1] - 1)
        assert not any(plans.keeps(demand, plan[0] - 1, c) for c in range(plan[0]))
        assert plans.keeps(demand, *plans.simple_plan(demand))


@pytest.mark.parametrize(("n", "c"), [(1, 0), (10, 3), (10, 9), (10, 10), (200, 13), (368, 46), (5000, 620), (40, 39)])
def test_risks_against_another_binomial(n: int, c: int) -> None:
    for rate in (Fraction(1, 10), Fraction(37, 250), Fraction(3, 5)):
        assert float(plans.at_most(c, n, rate)) == pytest.approx(binom.cdf(c, n, float(rate)), rel=1e-9, abs=1e-300)
    nominal, alternative = plans.risks(GIVEN.reject, n, c)
    assert float(nominal) == pytest.approx(binom.sf(c, n, 0.1), rel=1e-9, abs=1e-12)
    assert float(alternative) == pytest.approx(binom.cdf(c, n, 0.15), rel=1e-9, abs=1e-12)
    nominal, alternative = plans.risks(GIVEN.accept, n, c)
    assert float(nominal) == pytest.approx(binom.cdf(c, n, 0.1), rel=1e-9, abs=1e-12)
    assert float(alternative) == pytest.approx(binom.sf(c, n, 0.05), rel=1e-9, abs=1e-12)
