"""Random judgements in volume, and the Lean text that says Python computed each of them rightly.

A family has metrics, obligations and a panel; its answers differ in values and in what the gate reads. Lean elaborates
a family once and then only the numbers of each answer, so thousands of cases fit in one file. This writer is not the
certificate's: the two share no code, only the Lean library.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tbmm_env.judge.gate import resolve
from tbmm_env.judge.score import band, reward, score
from tbmm_env.record import Obligation, Panel, ReferenceValue, Score, State
from tbmm_env.specs import MetricSpec, ObligationSpec

FORMS = ("bound", "equality", "sum", "order", "implication", "count")
DIRECTIONS = {
    "higher_is_better": "higher",
    "lower_is_better": "lower",
    "target_value": "target",
    "exact_value": "target",
}
CODES: Mapping[State, int] = {"holds": 0, "violated": 1, "unwitnessed": 2}
ANSWERS = 25
"""Answers a family."""

HEAD = """\
prelude
import TBMM
set_option genCtorIdx false
noncomputable section
namespace TBMM
def code (o : Obligation) : Nat := State.rec (motive := fun _ => Nat) 0 1 2 (Obligation.state o)
"""

Scorer = Callable[..., Score]


@dataclass(frozen=True, slots=True)
class Case:
    """One judgement: an answer of a family and what Python makes of it."""

    values: Mapping[str, Fraction]
    obligations: tuple[Obligation, ...]
    verified: Fraction
    o_eval: Fraction
    reward: Fraction


@dataclass(frozen=True, slots=True)
class Family:
    """Metrics, panel and some answers."""

    metrics: tuple[MetricSpec, ...]
    specs: tuple[ObligationSpec, ...]
    panel: Panel
    cases: tuple[Case, ...]


# ---------------------------------------------------------------- numbers


def decimal(rng: random.Random) -> Fraction:
    """Draw a decimal: small, zero, huge, tiny, long, or a neighbour of a small one."""
    kind = rng.randrange(8)
    small = Fraction(rng.randint(-12, 12), 2)
    if kind < 3:
        return small
    if kind == 3:
        return Fraction(0)
    if kind == 4:
        return rng.choice([1, -1]) * rng.randint(1, 99) * Fraction(10) ** rng.randint(20, 45)
    if kind == 5:
        return rng.choice([1, -1]) * rng.randint(1, 99) * Fraction(1, 10 ** rng.randint(20, 45))
    if kind == 6:
        return Fraction(rng.randint(-(10**25), 10**25), 10 ** rng.randint(0, 25))
    return small + rng.choice([1, -1]) * ulp(rng)


def ulp(rng: random.Random) -> Fraction:
    """Draw one unit of a last digit."""
    return Fraction(1, 10 ** rng.choice([3, 9, 30, 45]))


def natural(rng: random.Random) -> Fraction:
    """Draw a tolerance or resolution."""
    return rng.choice([Fraction(0), Fraction(1, 2), Fraction(1), ulp(rng), abs(decimal(rng))])


# ---------------------------------------------------------------- families


def obligation_spec(rng: random.Random, index: int) -> ObligationSpec:
    form = rng.choice(FORMS)
    listed = f"answer:{rng.choice(['xs', 'ys', 'zs', 'rows'])}[*]" + (".z" if rng.random() < 0.1 else "")

    def one() -> str:
        name = rng.choice("abcd") if rng.random() < 0.9 else "absent"
        return (
            f"answer:{name}" if rng.random() < 0.7 else rng.choice(["0", "1.5", "-2", "1e-30", "-3.000000001", "1e40"])
        )

    fields: dict[str, Any] = {}
    terms: tuple[str, ...] = (listed,)
    if form in {"bound", "implication", "count"}:
        ends = rng.choice([(True, True), (True, False), (False, True)])
        fields = {end: one() for end, given in zip(("lower", "upper"), ends, strict=True) if given}
    if form == "equality":
        terms = (one(), one())
    elif form == "sum":
        terms = (listed, one(), one())
    elif form == "implication":
        fields["when"] = (one(), one(), one())
    tolerance = Fraction(0) if form == "count" else natural(rng)
    return ObligationSpec(
        id=f"o{index}", form=form, question="q", terms=terms, tolerance=tolerance, unit="", source="arithmetic",
        text="", **fields,
    )  # fmt: skip


def metric_spec(rng: random.Random, index: int, obligations: int) -> MetricSpec:
    shape = rng.choice(["linear", "linear", "exact", "ladder"])
    rungs = tuple(
        rng.choice([Fraction(1), Fraction(1, 2), Fraction(1, 10), Fraction(1, 3), ulp(rng)])
        for _ in range(rng.randint(1, 4))
    )
    low, high = Fraction(-(10**50)), Fraction(10**50)
    if rng.random() < 0.25:
        low = rng.choice([Fraction(-2), Fraction(0), Fraction(1, 10**9)])
        high = low + rng.choice([Fraction(0), Fraction(4), high])
    needed = rng.sample(range(obligations), rng.randint(0, min(2, obligations))) if rng.random() < 0.6 else []
    return MetricSpec(
        key=f"m{index}",
        question=rng.choice(["q1", "q2"]),
        unit="",
        kind="reported" if index and rng.random() < 0.15 else rng.choice(["replayed", "asked"]),
        direction=rng.choice(list(DIRECTIONS)),  # type: ignore[arg-type]
        shape=shape,  # type: ignore[arg-type]
        ladder=rungs if shape == "ladder" else (),
        weight=rng.choice([Fraction(1), Fraction(3, 10), Fraction(2, 7), Fraction(5), Fraction(1, 10**12)]),
        tolerance=natural(rng),
        grid=Fraction(1, 1000),
        value="replay:x",
        domain=(low, high),
        requires=tuple(f"o{k}" for k in needed),
        reason="",
    )


def panel_of(rng: random.Random, metrics: Sequence[MetricSpec]) -> Panel:
    keys = [spec.key for spec in metrics]
    votes = sorted({(rng.choice("pqr"), rng.choice(keys)) for _ in range(rng.randint(0, 4))})
    anchor = {key: decimal(rng) for key in keys}
    for key in keys:
        if rng.random() < 0.15:
            anchor[key] = Fraction(0)
    # Baselines at, just under, just over and half of 2 % from the anchor, and anywhere.
    shares = [Fraction(98, 100), Fraction(102, 100), Fraction(985, 1000), Fraction(1)]
    baseline = {
        key: rng.choice([decimal(rng), anchor[key] * rng.choice(shares) + rng.randint(-1, 1) * ulp(rng)])
        for key in keys
    }
    return Panel(
        version="1",
        references=tuple(
            ReferenceValue(
                paper=paper, metric=key, value=rng.choice([anchor[key], decimal(rng)]), resolution=natural(rng)
            )
            for paper, key in votes
        ),
        anchor=anchor,
        baseline=baseline,
    )


def value_of(rng: random.Random, spec: MetricSpec, panel: Panel) -> Fraction | None:
    """Draw a value, mostly at or one unit beside a threshold of its score."""
    if rng.random() < 0.05:
        return None
    if rng.random() < 0.3:
        return decimal(rng)
    own = [entry for entry in panel.references if entry.metric == spec.key]
    reference, resolution = panel.anchor[spec.key], Fraction(0)
    if own and rng.random() < 0.7:
        entry = rng.choice(own)
        reference, resolution = entry.value, entry.resolution
    forgiven = max(spec.tolerance, resolution)
    width = band(reference, panel.baseline[spec.key], forgiven)
    share = rng.choice([*spec.ladder, Fraction(0), Fraction(1), Fraction(1, 2), Fraction(3, 100)])
    miss = rng.choice([Fraction(0), forgiven, forgiven + share * width])
    drawn = reference + rng.choice([1, -1]) * miss + rng.choice([-1, 0, 0, 1]) * ulp(rng)
    if rng.random() < 0.15:
        drawn = rng.choice(spec.domain) + rng.choice([-1, 0, 1]) * ulp(rng)
    return drawn if len(str(drawn.denominator)) <= 60 and is_decimal(drawn) else decimal(rng)


def is_decimal(number: Fraction) -> bool:
    """Whether a number has a finite decimal text."""
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def answer_of(rng: random.Random) -> dict[str, Any]:
    def few(longest: int) -> list[Fraction]:
        return [decimal(rng) for _ in range(rng.choice([0, 1, 2, 3, longest]))]

    close = decimal(rng)
    answer: dict[str, Any] = {name: rng.choice([decimal(rng), close]) for name in "abcd"}
    answer |= {"xs": few(3), "ys": sorted(few(4)), "zs": [close + rng.randint(-1, 1) * ulp(rng) for _ in range(3)]}
    answer["rows"] = few(2) if rng.random() < 0.8 else [{"z": value} for value in few(2)]
    return answer


def family(rng: random.Random, scorer: Scorer = score, answers: int = ANSWERS) -> Family:
    """Draw a family and judge its answers."""
    specs = tuple(obligation_spec(rng, index) for index in range(rng.choice([0, 1, 1, 2, 3])))
    metrics = tuple(metric_spec(rng, index, len(specs)) for index in range(rng.randint(1, 3)))
    panel = panel_of(rng, metrics)
    cases = []
    for _ in range(answers):
        obligations = resolve(specs, answer_of(rng), {}, {})
        drawn = {spec.key: value_of(rng, spec, panel) for spec in metrics}
        values = {key: value for key, value in drawn.items() if value is not None}
        scored = scorer(metrics, panel, values, {entry.spec.id: entry.state for entry in obligations}, {})
        cases.append(Case(values, obligations, scored.verified, scored.o_eval, reward(obligations, scored)))
    return Family(metrics, specs, panel, tuple(cases))


def families(seed: int, cases: int, scorer: Scorer = score) -> list[Family]:
    """Draw at least ``cases`` cases; each family is a function of the seed and its own number."""
    return [family(random.Random(f"{seed} {index}"), scorer) for index in range(math.ceil(cases / ANSWERS))]


# ---------------------------------------------------------------- Lean


def _unit(numbers: Sequence[Fraction]) -> int:
    return math.lcm(*(number.denominator for number in numbers))


def _natural(number: Fraction, unit: int) -> str:
    counts = number * unit
    assert counts.denominator == 1
    assert counts >= 0
    return str(counts.numerator)


def _signed(number: Fraction, unit: int) -> str:
    counts = _natural(abs(number), unit)
    return f"(Signed.mk {counts} 0)" if number >= 0 else f"(Signed.mk 0 {counts})"


def _maybe(number: Fraction | None, unit: int) -> str:
    return "Maybe.absent" if number is None else f"(Maybe.at {_signed(number, unit)})"


def _terms(numbers: Sequence[Fraction], unit: int) -> str:
    text = "Terms.nil"
    for number in reversed(numbers):
        counts = _natural(abs(number), unit)
        text = f"(Terms.cons {f'{counts} 0' if number >= 0 else f'0 {counts}'} {text})"
    return text


def _chain(kind: str, items: Sequence[str]) -> str:
    text = f"{kind}.nil"
    for item in reversed(items):
        text = f"({kind}.cons {item} {text})"
    return text


def _obligation(entry: Obligation) -> str:
    if entry.state == "unwitnessed":
        return "Obligation.unwitnessed"
    ends = [end for end in (entry.lower, entry.upper) if end is not None]
    unit = _unit([*entry.terms, *ends, *(entry.when or ()), entry.spec.tolerance])
    form, terms = entry.spec.form, entry.terms
    t = _natural(entry.spec.tolerance, unit)
    limits = f"{_maybe(entry.lower, unit)} {_maybe(entry.upper, unit)}"
    body = {
        "bound": lambda: f"{t} {limits} {_terms(terms, unit)}",
        "equality": lambda: f"{t} {_signed(terms[0], unit)} {_signed(terms[1], unit)}",
        "sum": lambda: f"{t} {_signed(terms[-1], unit)} {_terms(terms[:-1], unit)}",
        "order": lambda: f"{t} {_terms(terms, unit)}",
        "implication": lambda: (
            f"{t} {' '.join(_signed(part, unit) for part in entry.when or ())} {limits} {_terms(terms, unit)}"
        ),
        "count": lambda: f"{limits} {_signed(terms[0], unit)}",
    }[form]()
    return f"(Obligation.{form} {unit} {body})"


def _shape(spec: MetricSpec) -> str:
    if spec.shape != "ladder":
        return f"Shape.{spec.shape}"
    unit = _unit(spec.ladder)
    text = f"(Ladder.last {_natural(spec.ladder[-1], unit)})"
    for rung in reversed(spec.ladder[:-1]):
        text = f"(Ladder.cons {_natural(rung, unit)} {text})"
    return f"(Shape.ladder {unit} {text})"


def _units(drawn: Family) -> dict[str, int]:
    """Return how many counts a unit of each metric has, fine enough for every answer of the family."""
    panel, units = drawn.panel, {}
    for spec in drawn.metrics:
        own = [entry for entry in panel.references if entry.metric == spec.key]
        numbers = [spec.tolerance, *spec.domain, panel.baseline[spec.key], panel.anchor[spec.key]]
        numbers += [number for entry in own for number in (entry.value, entry.resolution)]
        numbers += [case.values[spec.key] for case in drawn.cases if spec.key in case.values]
        units[spec.key] = _unit(numbers)
    return units


def _definitions(index: int, drawn: Family, units: Mapping[str, int]) -> list[str]:
    """Define the family's metrics, and ``case`` as a function of obligations, values and results."""
    panel = drawn.panel
    weights = _unit([spec.weight for spec in drawn.metrics])
    weighed = [(k, spec) for k, spec in enumerate(drawn.metrics) if spec.kind != "reported"]
    lines, made = [], {}
    for k, spec in weighed:
        unit = units[spec.key]
        low, high = (_signed(end, unit) for end in spec.domain)
        lines.append(
            f"def m{index}_{k} (v : Maybe) (n : Obligations) : Metric := Metric.mk {_natural(spec.weight, weights)}"
            f" {unit} {_natural(spec.tolerance, unit)} Direction.{DIRECTIONS[spec.direction]} {_shape(spec)} v"
            f" {low} {high} {_signed(panel.baseline[spec.key], unit)} n"
        )
        needs = _chain("Obligations", [f"o{int(name[1:])}" for name in spec.requires])
        made[spec.key] = f"(m{index}_{k} v{k} {needs})"

    def paper(votes: Sequence[tuple[str, Fraction, Fraction]]) -> str:
        text = "Paper.nil"
        for key, value, resolution in reversed(votes):
            unit = units[key]
            text = f"(Paper.cons {made[key]} {_signed(value, unit)} {_natural(resolution, unit)} {text})"
        return text

    ours = paper([(spec.key, panel.anchor[spec.key], Fraction(0)) for _, spec in weighed])
    votes: dict[str, list[tuple[str, Fraction, Fraction]]] = {}
    for entry in panel.references:
        if entry.metric in made:
            votes.setdefault(entry.paper, []).append((entry.metric, entry.value, entry.resolution))
    papers = _chain("Papers", [paper(own) for own in votes.values()])
    obligations = [f"o{k}" for k in range(len(drawn.specs))]
    states = "Bool.true"
    for name in reversed(obligations):
        states = f"(Bool.and (Nat.beq (code {name}) s{name}) {states})"
    arguments = "".join(f"({name} : Obligation) (s{name} : Nat) " for name in obligations)
    arguments += "".join(f"(v{k} : Maybe) " for k, _ in weighed)
    passed = [*obligations, *(f"v{k}" for k, _ in weighed)]
    typed = "".join(f"({name} : {'Obligation' if name[0] == 'o' else 'Maybe'}) " for name in passed)
    both = f"(anchor{index} {' '.join(passed)}) (papers{index} {' '.join(passed)})"
    return [
        *lines,
        f"def anchor{index} {typed}: Paper := {ours}",
        f"def papers{index} {typed}: Papers := {papers}",
        f"def case{index} {arguments}(p q p' q' r s : Nat) : Bool := Bool.and {states}"
        f" (Bool.and (Frac.is (Paper.mean (anchor{index} {' '.join(passed)})) p q)"
        f" (Bool.and (Frac.is (oEval {both}) p' q')"
        f" (Frac.is (TBMM.reward {_chain('Obligations', obligations)} {both}) r s)))",
    ]


def lean_text(drawn: Sequence[Family]) -> tuple[str, list[str]]:
    """Return a Lean file with a theorem a family: every case of it is as Python computed; and the theorems' names."""
    lines, theorems = [HEAD], []
    for index, one in enumerate(drawn):
        units = _units(one)
        lines += _definitions(index, one, units)
        claim = "Bool.true"
        for case in one.cases:
            numbers = "".join(f"{_obligation(entry)} {CODES[entry.state]} " for entry in case.obligations)
            numbers += "".join(
                f"{_maybe(case.values.get(spec.key), units[spec.key])} "
                for spec in one.metrics
                if spec.kind != "reported"
            )
            results = " ".join(
                f"{result.numerator} {result.denominator}" for result in (case.verified, case.o_eval, case.reward)
            )
            claim = f"(Bool.and (case{index} {numbers}{results}) {claim})"
        lines.append(f"theorem family_{index} : Eq {claim} Bool.true := Eq.refl Bool.true")
        theorems.append(f"TBMM.family_{index}")
    lines += [f"#print axioms family_{index}" for index in range(len(drawn))]
    return "\n".join([*lines, ""]), theorems


def a_little_off(drawn: Family, which: int) -> Family:
    """Return a family in which one result of one case is wrong by 10**-30."""
    case = drawn.cases[which % len(drawn.cases)]
    name = ("verified", "o_eval", "reward")[which % 3]
    wrong = dataclasses.replace(case, **{name: getattr(case, name) + Fraction(1, 10**30)})
    return dataclasses.replace(drawn, cases=tuple(wrong if entry is case else entry for entry in drawn.cases))
