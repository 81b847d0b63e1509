# tbmm-canary-7f1c2e9a-53d4-4c0e-9b86-1a0d5e8f2b47
"""Production decisions (CUMCM 2024 B): solves questions 1 to 3 and writes the answer file.

Question 1. Every sample size from 1 upwards is tried with every acceptance number at once; what seems to keep both
risks is checked on exact binomial tails.

Questions 2 and 3. Every set of decisions is looked at, none is left out by a bound. Only where it makes no difference
to anybody else are decisions settled early: a component that is inspected reaches its user as a good one, whatever
happened inside, so of all ways to make it only the cheapest can matter. A component that is not inspected is described
by three numbers: its price, its chance of being bad, and what it costs to make a bad one good after a dismantling.
These are kept for every set of decisions below it, as long arrays; the product's decisions are evaluated on all
combinations of its components, block by block.
"""

import argparse
import itertools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.stats import binom

BLOCK = 400_000


# ---------------------------------------------------------------- question 1


def tail(n, c, rate):
    """P(X <= c) for n units, exact."""
    good = 1 - rate
    return sum((Fraction(binomial(n, k)) * rate**k * good ** (n - k) for k in range(c + 1)), Fraction(0))


def binomial(n, k):
    """The binomial coefficient, by products."""
    value = 1
    for i in range(1, k + 1):
        value = value * (n - i + 1) // i
    return value


def fewest(low, low_risk, high, high_risk):
    """The least n, with the least c, that has P(X > c | low) and P(X <= c | high) within their risks."""
    for n in range(1, 5001):
        c = np.arange(n + 1)
        quiet = binom.sf(c, n, float(low)) <= float(low_risk) + 1e-9
        found = binom.cdf(c, n, float(high)) <= float(high_risk) + 1e-9
        for candidate in np.flatnonzero(quiet & found):
            value = int(candidate)
            if 1 - tail(n, value, low) <= low_risk and tail(n, value, high) <= high_risk:
                return {"sample_size": n, "acceptance_number": value}
    raise SystemExit("no plan within 5000 units")


def question1(parameters):
    """Both plans."""

    def exact(value):
        return Fraction(str(value))

    nominal = exact(parameters["nominal_rate"])
    reject, accept = parameters["reject"], parameters["accept"]
    return {
        "reject": fewest(
            nominal, exact(reject["nominal_risk"]), exact(reject["alternative_rate"]), exact(reject["alternative_risk"])
        ),
        "accept": fewest(
            exact(accept["alternative_rate"]), exact(accept["alternative_risk"]), nominal, exact(accept["nominal_risk"])
        ),
    }


# ---------------------------------------------------------------- questions 2 and 3


class Options:
    """All ways to supply one component.

    Arrays over the ways: `price` of a unit, `bad` its chance of being bad, `mend` the expected cost of making a bad
    unit good, `asks` 1 where the unit must be inspected when it comes back, and the decisions themselves (`rows`).
    """

    def __init__(self, price, bad, mend, asks, rows, look):
        self.price, self.bad, self.mend, self.asks, self.rows = price, bad, mend, asks, rows
        self.look = look  # what an inspection of this component costs

    def __len__(self):
        return len(self.price)


def supply_part(part, place, width):
    """A part, bought blind or inspected until good."""
    rate, price, look = part["defect_rate"], part["purchase_yuan"], part["inspection_yuan"]
    tries = 1 / (1 - rate)
    sure = tries * (price + look)
    rows = np.zeros((2, width), dtype=np.int8)
    rows[1, place] = 1
    return Options(
        np.array([price, sure]),
        np.array([rate, 0.0]),
        np.array([sure, 0.0]),
        np.array([1, 0]),
        rows,
        look,
    )


def blocks(components):
    """Index arrays of all combinations of the components' options, in blocks."""
    sizes = [len(component) for component in components]
    total = int(np.prod(sizes))
    for start in range(0, total, BLOCK):
        yield np.unravel_index(np.arange(start, min(start + BLOCK, total)), sizes)


def first_attempt(components, chosen, work, rate):
    """Of each combination: cost of one attempt from new, its chance of being bad, and the cost of mending components.

    The last is per attempt: the chance that a component is bad times what making it good costs; inspections of the
    components that ask for one are `looks`, paid whenever the unit is taken apart.
    """
    price = np.full(len(chosen[0]), float(work))
    fine = np.full(len(chosen[0]), 1.0 - rate)
    mending = np.zeros(len(chosen[0]))
    looks = np.zeros(len(chosen[0]))
    for component, index in zip(components, chosen, strict=True):
        price += component.price[index]
        fine *= 1.0 - component.bad[index]
        mending += component.bad[index] * component.mend[index]
        looks += component.asks[index] * component.look
    return price, 1.0 - fine, mending, looks


def until_good(work, look, loss, apart, rate):
    """Cost of assembling good components until the result is good; every attempt but the last one is taken apart."""
    attempts = 1.0 / (1.0 - rate)
    return attempts * (work + look) + (attempts - 1.0) * (loss + apart)


def supply_assembly(components, made, place, aparts, width):
    """A semi-product: every blind way, and the cheapest sure way."""
    rate, work = made["defect_rate"], made["assembly_yuan"]
    look, apart = made["inspection_yuan"], made["dismantling_yuan"]
    price, bad, mend, rows = [], [], [], []
    for chosen in blocks(components):
        cost, wrong, mending, looks = first_attempt(components, chosen, work, rate)
        below = np.zeros((len(cost), width), dtype=np.int8)
        for component, index in zip(components, chosen, strict=True):
            below |= component.rows[index]
        scrapped = (cost + look) / (1.0 - wrong)
        taken = apart + looks + mending / wrong + until_good(work, look, 0.0, apart, rate)
        for value, bit in ((scrapped, 0), (taken, 1)):
            decided = below.copy()
            decided[:, aparts] = bit
            price.append(cost)
            bad.append(wrong)
            mend.append(value)
            rows.append(decided)
    price, bad, mend, rows = map(np.concatenate, (price, bad, mend, rows))
    sure = price + look + bad * mend
    best = int(np.argmin(sure))
    known = rows[best].copy()
    known[place] = 1
    return Options(
        np.append(price, sure[best]),
        np.append(bad, 0.0),
        np.append(mend, 0.0),
        np.append(np.ones(len(price), dtype=int), 0),
        np.vstack([rows, known]),
        look,
    )


def sell(components, made, system, place, aparts, width):
    """The product: the decisions of the least expected cost of an order, over all combinations."""
    rate, work = made["defect_rate"], made["assembly_yuan"]
    apart = made["dismantling_yuan"]
    best, answer = np.inf, None
    for chosen in blocks(components):
        cost, wrong, mending, looks = first_attempt(components, chosen, work, rate)
        for inspect, take in itertools.product((0, 1), repeat=2):
            look = made["inspection_yuan"] if inspect else 0.0
            loss = 0.0 if inspect else system["exchange_loss_yuan"]
            if take:
                again = until_good(work, look, loss, apart, rate)
                total = cost + look + wrong * (loss + apart + looks + again) + mending
            else:
                attempts = 1.0 / (1.0 - wrong)
                total = attempts * (cost + look) + (attempts - 1.0) * loss
            at = int(np.argmin(total))
            if total[at] < best:
                best = float(total[at])
                row = np.zeros(width, dtype=np.int8)
                for component, index in zip(components, chosen, strict=True):
                    row |= component.rows[index[at]]
                row[place], row[aparts] = inspect, take
                answer = row
    return answer


def decide(system):
    """The best decisions of a system: bits of the parts, of inspecting and of dismantling assemblies."""
    parts, assemblies = system["parts"], system["assemblies"]
    width = len(parts) + 2 * len(assemblies)
    supply = {f"P{i + 1}": supply_part(part, i, width) for i, part in enumerate(parts)}
    for i, made in enumerate(assemblies[:-1]):
        components = [supply[name] for name in made["components"]]
        place = len(parts) + i
        supply[f"A{i + 1}"] = supply_assembly(components, made, place, place + len(assemblies), width)
    made = assemblies[-1]
    components = [supply[name] for name in made["components"]]
    row = sell(components, made, system, len(parts) + len(assemblies) - 1, width - 1, width).tolist()
    ends = len(parts), len(parts) + len(assemblies)
    return row[: ends[0]], row[ends[0] : ends[1]], row[ends[1] :]


def question2(cases):
    """Decisions of the small systems."""
    rows = []
    for case in cases:
        (first, second), (product,), (dismantle,) = decide(case)
        rows.append(
            {"inspect_part1": first, "inspect_part2": second, "inspect_product": product, "dismantle": dismantle}
        )
    return {"cases": rows}


def question3(system):
    """Decisions of the larger system."""
    parts, inspect, dismantle = decide(system)
    return {"inspect_parts": parts, "inspect_assemblies": inspect, "dismantle_assemblies": dismantle}


def main():
    """Read the instance, write the answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instance", type=Path, default=Path("/task/instance.json"))
    parser.add_argument("--out", type=Path, default=Path("/workspace/answer.json"))
    options = parser.parse_args()
    parameters = json.loads(options.instance.read_text(encoding="utf-8"))["parameters"]
    answer = {
        "q1": question1(parameters),
        "q2": question2(parameters["cases"]),
        "q3": question3(parameters["system"]),
    }
    options.out.write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
