"""The certificate: Lean text generated from a judgement's exact numbers, and the kernel's word on it.

The text states what was judged (obligations with their operands, metrics with values, domains, baselines and
references) and the results Python computed; Lean computes bands, scores, renormalised weights, means and the gate.
Text of an agent never reaches it: only rationals of bounded size and the ids of ``task.toml`` do.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction

from tbmm_env.errors import BadTask, CertificateRejected, JudgeError
from tbmm_env.judge import lean
from tbmm_env.judge.numeral import DECIMAL_BITS, decimal_text
from tbmm_env.judge.server import LeanServer
from tbmm_env.limits import JUDGE, JudgeLimits
from tbmm_env.record import Certificate, Obligation, Panel, ReferenceValue, Score
from tbmm_env.specs import MetricSpec

CONJUNCTION = 50
"""Obligations that hold are proved in conjunctions of at most so many."""

OPERAND_BITS = 512
"""Size of numerator and denominator of one operand; 60 digits need 200 bits."""

SCALED_BITS = 1024
"""Size of an operand in counts of its obligation's or metric's common unit."""

RESULT_BITS = 65_536
"""Size of numerator and denominator of a result, which is a mean of fractions with different denominators."""

TERMS = 20_000
"""Operands of all obligations together."""

_TERMS_A_DEFINITION = 200  # keeps nesting, and so the parser's stack, small
_ID = re.compile(r"[a-z0-9_]{1,80}")
_DIRECTIONS = {
    "higher_is_better": "higher", "lower_is_better": "lower", "target_value": "target", "exact_value": "target",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Draft:
    """A certificate that nobody has checked yet.

    Attributes:
        text: Lean source; a function of the judged numbers alone.
        theorems: full names of the theorems it must prove.
    """

    text: str
    theorems: tuple[str, ...]


def certify(
    metrics: Sequence[MetricSpec],
    panel: Panel,
    values: Mapping[str, Fraction],
    obligations: Sequence[Obligation],
    score: Score,
    reward: Fraction,
    *,
    limits: JudgeLimits = JUDGE,
    server: LeanServer | None = None,
) -> Certificate:
    """Write the certificate of a judgement and have the kernel check it.

    Args:
        metrics: as declared.
        panel: what was scored against.
        values: by metric key, on the metric's grid.
        obligations: resolved and decided.
        score: what Python computed; its ``verified`` and ``o_eval`` are proved.
        reward: what Python computed; proved.
        limits: budgets of the Lean process.
        server: lets the kernel check; default: a new Lean process.

    Raises:
        CertificateRejected: the kernel did not accept what was computed here.
        LeanUnavailable: Lean cannot be found or started.
        JudgeError: a number is too large, or Lean exceeded its limits.
        BadTask: an id does not match ``[a-z0-9_]+`` or has more than 80 characters.
    """
    written = draft(metrics, panel, values, obligations, score, reward)
    result = (server.check if server else lean.check)(written.text, written.theorems, limits=limits)
    if not result.accepted:
        raise CertificateRejected(
            f"{result.version} did not accept the certificate: {'; '.join(result.reasons)[:2000]}"
        )
    return Certificate(
        text=written.text,
        sha256=hashlib.sha256(written.text.encode()).hexdigest(),
        accepted=True,
        theorems=written.theorems,
        axioms=tuple(sorted({axiom for axioms in result.axioms.values() for axiom in axioms})),
        lean_version=result.version,
    )


def draft(
    metrics: Sequence[MetricSpec],
    panel: Panel,
    values: Mapping[str, Fraction],
    obligations: Sequence[Obligation],
    score: Score,
    reward: Fraction,
) -> Draft:
    """Write the certificate of a judgement; see ``certify``.

    Raises:
        JudgeError: a number is too large.
        BadTask: an id does not match ``[a-z0-9_]+`` or has more than 80 characters.
    """
    text = _Text()
    required = {name for spec in metrics if spec.kind != "reported" for name in spec.requires}
    names, feasible = _write_obligations(text, obligations, required)
    references: dict[str, list[ReferenceValue]] = {}
    for entry in panel.references:
        references.setdefault(entry.metric, []).append(entry)
    unit_of_weight = _unit([spec.weight for spec in metrics])
    papers: dict[str, list[str]] = {}
    anchor: list[str] = []
    for index, spec in enumerate(metrics):
        if spec.kind == "reported":
            continue
        own = references.get(spec.key, [])
        name = _name("m", index, spec.key)
        unit = _write_metric(
            text, name, spec, _count(spec.weight, unit_of_weight), panel, values.get(spec.key), own, names
        )
        anchor.append(f"{name} {_signed(panel.anchor[spec.key], unit)} 0")
        for entry in own:
            vote = f"{name} {_signed(entry.value, unit)} {_count(entry.resolution, unit)}"
            papers.setdefault(entry.paper, []).append(vote)
    text.define("anchor", "Paper", _chain(anchor))
    voters = sorted(papers)
    for index, paper in enumerate(voters):
        text.define(f"paper_{index}", "Paper", _chain(papers[paper]))
    text.define("papers", "Papers", _chain([f"paper_{index}" for index in range(len(voters))]))
    text.prove("verified", _equals("Paper.mean anchor", score.verified), "true")
    text.prove("o_eval", _equals("oEval anchor papers", score.o_eval), "true")
    proof = feasible and f"reward_is {feasible} o_eval"
    text.prove("reward", _equals("TBMM.reward gate anchor papers", reward), "true", proof)
    return Draft(text.source(), tuple(f"{lean.NAMESPACE}.{theorem}" for theorem in text.theorems))


class _Text:
    """Lines of a certificate and the names of its theorems."""

    def __init__(self) -> None:
        self.theorems: list[str] = []
        self._lines = ["prelude", "import TBMM", f"namespace {lean.NAMESPACE}"]

    def define(self, name: str, type_name: str, body: str) -> None:
        self._lines.append(f"noncomputable def {name} : {type_name} := {body}")

    def remark(self, words: str) -> None:
        self._lines.append(f"-- {words}".rstrip())

    def prove(self, name: str, claim: str, verdict: str, proof: str = "") -> None:
        self._lines.append(f"theorem {name} : Eq ({claim}) Bool.{verdict} := {proof or f'Eq.refl Bool.{verdict}'}")
        self.theorems.append(name)

    def source(self) -> str:
        return "\n".join([*self._lines, *(f"#print axioms {name}" for name in self.theorems), ""])


# ---------------------------------------------------------------- obligations


def _write_obligations(
    text: _Text, obligations: Sequence[Obligation], required: Set[str]
) -> tuple[dict[str, str], str]:
    """State every obligation, prove its state and define the gate.

    An obligation that is violated or required by a metric has a definition of its own; the rest are stated where they
    are listed, as every definition costs Lean a millisecond.

    Args:
        text: where to write.
        obligations: resolved and decided.
        required: ids that metrics require.

    Returns:
        The Lean name of each obligation that has one, by id; and a proof that the gate is open, from those of the
        groups (nothing is decided twice), empty when it is not.
    """
    terms = sum(len(entry.terms) for entry in obligations)
    if terms > TERMS:
        raise JudgeError(f"the obligations have {terms} operands; a certificate takes {TERMS}")
    names: dict[str, str] = {}
    links = []
    for index, entry in enumerate(obligations):
        name = _name("o", index, entry.spec.id)
        if entry.state == "violated" or entry.spec.id in required:
            names[entry.spec.id] = name
            text.define(name, "Obligation", _obligation(text, name, entry))
            links.append(f".cons {name}")
        else:
            links.append(_link(text, name, entry))
    groups: list[str] = []
    held = [index for index, entry in enumerate(obligations) if entry.state == "holds"]
    for start in range(0, len(held), CONJUNCTION):
        part = held[start : start + CONJUNCTION]
        group = f"held_{len(groups)}"
        text.remark(f"{group} states " + " ".join(obligations[index].spec.id for index in part))
        text.define(group, "Obligations", _linked([links[index] for index in part]))
        text.prove(f"holds_{len(groups)}", f"Obligations.hold {group}", "true")
        groups.append(group)
    others = [index for index, entry in enumerate(obligations) if entry.state != "holds"]
    violated = [index for index in others if obligations[index].state == "violated"]
    for index in violated:
        identifier = obligations[index].spec.id
        text.prove(_name("violated", index, identifier), f"Obligation.allowed {names[identifier]}", "false")
    text.remark("gate states besides " + " ".join(obligations[index].spec.id for index in others))
    joined = [f".join {group}" for group in groups]
    text.define("gate", "Obligations", _linked([*(links[index] for index in others), *joined]))
    proofs = ["feasible_cons (Eq.refl Bool.true)" for _ in others]
    proofs += [f"feasible_join holds_{number}" for number in range(len(groups))]
    return names, "" if violated else f"({_linked(proofs, '(Eq.refl Bool.true)')})"


def _link(text: _Text, name: str, entry: Obligation) -> str:
    """Return how a list of obligations begins with this one."""
    spec, ends = entry.spec, [entry.lower, entry.upper]
    given = [end for end in ends if end is not None]
    numbers = [*given, *entry.terms]
    if entry.state != "unwitnessed" and spec.form == "bound" and len(entry.terms) == 1 and min(numbers) >= 0:
        unit = _unit([*entry.terms, *given, spec.tolerance])
        start = ".between" if len(given) == 2 else ".most" if entry.lower is None else ".least"
        return " ".join([start, str(unit), *(_count(number, unit) for number in [spec.tolerance, *numbers])])
    body = _obligation(text, name, entry)
    return f".cons {body}" if body == ".unwitnessed" else f".cons ({body})"


def _obligation(text: _Text, name: str, entry: Obligation) -> str:
    if entry.state == "unwitnessed":
        return ".unwitnessed"
    spec = entry.spec
    form = spec.form
    ends = [end for end in (entry.lower, entry.upper) if end is not None]
    unit = _unit([*entry.terms, *ends, *(entry.when or ()), spec.tolerance])
    start = f".{form} {unit} {_count(spec.tolerance, unit)}"
    limits = f"{_maybe(entry.lower, unit)} {_maybe(entry.upper, unit)}"
    if form == "count":
        return f".count {unit} {limits} {_signed(entry.terms[0], unit)}"
    if form == "equality":
        return f"{start} {_signed(entry.terms[0], unit)} {_signed(entry.terms[1], unit)}"
    if form == "sum":
        return f"{start} {_signed(entry.terms[-1], unit)} {_terms(text, name, entry.terms[:-1], unit)}"
    terms = _terms(text, name, entry.terms, unit)
    if form == "order":
        return f"{start} {terms}"
    if form == "bound":
        return f"{start} {limits} {terms}"
    assert entry.when is not None
    return f"{start} {' '.join(_signed(part, unit) for part in entry.when)} {limits} {terms}"


def _terms(text: _Text, name: str, values: Sequence[Fraction], unit: int) -> str:
    """Return a list of terms; long ones are defined in pieces, last piece first."""
    rest = ".nil"
    starts = range(0, len(values), _TERMS_A_DEFINITION)
    for start in reversed(starts):
        piece = values[start : start + _TERMS_A_DEFINITION]
        body = rest
        for at in reversed(range(0, len(piece), 10)):
            body = _ten(piece[at : at + 10], unit, body)
        if len(starts) > 1:
            text.define(f"{name}_terms_{start}", "Terms", body)
            rest = f"{name}_terms_{start}"
        else:
            rest = f"({body})"
    return rest


def _ten(values: Sequence[Fraction], unit: int, rest: str) -> str:
    tail = rest if rest.isidentifier() or rest == ".nil" else f"({rest})"
    if len(values) == 10 and all(value >= 0 for value in values):
        return f"Terms.ten {' '.join(_count(value, unit) for value in values)} {tail}"
    body = tail
    for value in reversed(values):
        body = f"(.{'up' if value >= 0 else 'down'} {_count(abs(value), unit)} {body})"
    return body[1:-1]


# ---------------------------------------------------------------- metrics


def _write_metric(
    text: _Text,
    name: str,
    spec: MetricSpec,
    weight: str,
    panel: Panel,
    value: Fraction | None,
    references: Sequence[ReferenceValue],
    obligations: Mapping[str, str],
) -> int:
    """Define a metric; return how many counts one unit has."""
    baseline, anchor = panel.baseline[spec.key], panel.anchor[spec.key]
    numbers = [spec.tolerance, *spec.domain, baseline, anchor]
    numbers += [number for entry in references for number in (entry.value, entry.resolution)]
    unit = _unit([*numbers, *([] if value is None else [value])])
    low, high = (_signed(end, unit) for end in spec.domain)
    fields = {
        "weight": weight,
        "scale": str(unit),
        "tolerance": _count(spec.tolerance, unit),
        "direction": f".{_DIRECTIONS[spec.direction]}",
        "shape": _shape(spec),
        "value": _maybe(value, unit),
        "low": low,
        "high": high,
        "baseline": _signed(baseline, unit),
        "needs": _chain([obligations[required] for required in spec.requires]),
    }
    body = ", ".join(f"{field} := {written}" for field, written in fields.items())
    text.define(name, "Metric", f"{{ {body} }}")
    return unit


def _shape(spec: MetricSpec) -> str:
    if spec.shape != "ladder":
        return f".{spec.shape}"
    unit = _unit(spec.ladder)
    *first, last = (_count(threshold, unit) for threshold in spec.ladder)
    body = f".last {last}"
    for threshold in reversed(first):
        body = f".cons {threshold} ({body})"
    return f".ladder {unit} ({body})"


# ---------------------------------------------------------------- numbers and names


def _equals(mean: str, result: Fraction) -> str:
    if result < 0:
        raise JudgeError(f"a result of {decimal_text(result)} is negative")
    p = _literal(result.numerator, RESULT_BITS, "a result")
    q = _literal(result.denominator, RESULT_BITS, "a result")
    return f"Frac.is ({mean}) {p} {q}"


def _unit(numbers: Iterable[Fraction]) -> int:
    """Return the common denominator."""
    unit = 1
    for number in numbers:
        size = max(number.numerator.bit_length(), number.denominator.bit_length())
        if size > OPERAND_BITS:
            raise JudgeError(f"an operand has {size} bits; a certificate takes {OPERAND_BITS} bits")
        unit = math.lcm(unit, number.denominator)
        if unit.bit_length() > OPERAND_BITS:
            raise JudgeError(f"a common denominator has over {OPERAND_BITS} bits, the limit of a certificate")
    return unit


def _count(number: Fraction, unit: int) -> str:
    counts = number * unit
    assert counts.denominator == 1
    return _literal(counts.numerator, SCALED_BITS, "an operand")


def _literal(number: int, limit_bits: int, what: str) -> str:
    if number < 0 or number.bit_length() > limit_bits:
        raise JudgeError(f"{what} has {number.bit_length()} bits; a certificate takes {limit_bits} bits")
    return str(number) if number.bit_length() <= DECIMAL_BITS else hex(number)


def _signed(number: Fraction, unit: int) -> str:
    return f"(.{'up' if number >= 0 else 'down'} {_count(abs(number), unit)})"


def _maybe(number: Fraction | None, unit: int) -> str:
    return ".absent" if number is None else f"(.at {_signed(number, unit)})"


def _chain(items: Sequence[str]) -> str:
    return _linked([f".cons {item}" for item in items])


def _linked(links: Sequence[str], rest: str = ".nil") -> str:
    """Return a list that begins with these links."""
    body = rest
    for link in reversed(links):
        body = f"{link} {body if body == rest else f'({body})'}"
    return body


def _name(prefix: str, index: int, identifier: str) -> str:
    if not _ID.fullmatch(identifier):
        raise BadTask(f"id {identifier!r} does not match [a-z0-9_]+ with at most 80 characters")
    return f"{prefix}_{index}_{identifier}"
