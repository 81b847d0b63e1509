"""The gate: resolves every obligation's operands to exact rationals and decides it. Pure; nothing is rounded."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from tbmm_env.errors import BadTask
from tbmm_env.judge.numeral import decimal_text
from tbmm_env.record import AnswerValue, JsonValue, Obligation, State
from tbmm_env.specs import ObligationSpec

_PATH = re.compile(r"[A-Za-z0-9_-]+(?:\[(?:\d{1,9}|\*)\])*(?:\.[A-Za-z0-9_-]+(?:\[(?:\d{1,9}|\*)\])*)*")
_STEP = re.compile(r"\.?([A-Za-z0-9_-]+)|\[(\d+|\*)\]")
_DECIMAL = re.compile(r"[+-]?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?")


@dataclass(frozen=True, slots=True)
class _Value:
    """A number with the name a person knows it by."""

    number: Fraction
    name: str


class _AbsentError(Exception):
    """The evidence an operand asks for is not there; the message says which."""


def resolve(
    specs: Sequence[ObligationSpec],
    answer: Mapping[str, AnswerValue] | None,
    replay: Mapping[str, Fraction],
    parameters: Mapping[str, JsonValue],
) -> tuple[Obligation, ...]:
    """Resolve and decide every obligation.

    An operand that the answer or the replay does not hold, or that is not a number there, makes the obligation
    ``unwitnessed`` and the reason names it. A bound over an empty list holds; ask for values with a ``count``.

    Args:
        specs: obligations as declared.
        answer: the parsed answer, or None when there is none.
        replay: what the judge computed, by name.
        parameters: the instance's parameters.

    Raises:
        BadTask: an operand is written wrongly, names an absent parameter or does not fit its form; two obligations have
            one id.
    """
    ids = [spec.id for spec in specs]
    if len(set(ids)) != len(ids):
        raise BadTask(f"obligations have one id: {sorted(name for name in set(ids) if ids.count(name) > 1)}")
    sources = _Sources(answer, replay, parameters)
    return tuple(_decide(spec, sources) for spec in specs)


def operand(
    text: str,
    answer: Mapping[str, AnswerValue] | None,
    replay: Mapping[str, Fraction],
    parameters: Mapping[str, JsonValue],
) -> tuple[Fraction, ...] | None:
    """Return the values of one operand, or None when the answer or the replay does not hold all of them as numbers.

    Args:
        text: ``answer:PATH`` (dots, ``[3]``, ``[*]`` for every element), ``replay:NAME``, ``parameter:NAME`` (a path
            too) or a decimal.
        answer: the parsed answer, or None when there is none.
        replay: what the judge computed, by name.
        parameters: the instance's parameters.

    Raises:
        BadTask: the operand is written wrongly or names an absent parameter.
    """
    try:
        return tuple(value.number for value in _Sources(answer, replay, parameters).numbers(text))
    except _AbsentError:
        return None


# ---------------------------------------------------------------- operands


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where operands are looked up."""

    answer: Mapping[str, AnswerValue] | None
    replay: Mapping[str, Fraction]
    parameters: Mapping[str, JsonValue]

    def numbers(self, text: str) -> list[_Value]:
        """Return the numbers of an operand.

        Raises:
            _AbsentError: a value is absent or not a number.
            BadTask: the operand is written wrongly or names an absent parameter.
        """
        return [_Value(_number(found, text, path), path or text) for path, found in self._nodes(text)]

    def number(self, text: str) -> _Value:
        """Return the number of an operand that must not have a wildcard."""
        if "*" in text:
            raise BadTask(f"operand {text!r} has a wildcard where one value is needed")
        return self.numbers(text)[0]

    def count(self, text: str) -> int:
        """Return how many values of any type an operand yields."""
        return sum(1 for _ in self._nodes(text))

    def _nodes(self, text: str) -> Iterator[tuple[str, AnswerValue | JsonValue]]:
        kind, colon, path = text.partition(":")
        if not colon:
            if not _DECIMAL.fullmatch(text):
                raise BadTask(f"operand {text!r} is neither a decimal nor answer:, replay: or parameter:")
            yield "", Fraction(text)
        elif kind == "replay":
            if path not in self.replay:
                raise _AbsentError(f"the judge could not compute {path}")
            yield path, self.replay[path]
        elif kind in {"answer", "parameter"} and _PATH.fullmatch(path):
            steps = [int(index) if index.isdigit() else key or index for key, index in _STEP.findall(path)]
            root: object = self.answer if kind == "answer" else self.parameters
            try:
                yield from _walk(root, "", steps)
            except _AbsentError as absent:
                if kind == "parameter":
                    raise BadTask(f"operand {text!r}: {absent}") from absent
                raise
        else:
            raise BadTask(f"operand {text!r} is not answer:PATH, replay:NAME or parameter:NAME")


def _walk(node: object, path: str, steps: Sequence[int | str]) -> Iterator[tuple[str, AnswerValue | JsonValue]]:
    if not steps:
        yield path, node  # type: ignore[misc]
        return
    step, rest = steps[0], steps[1:]
    if step == "*":
        if not isinstance(node, list):
            raise _AbsentError(f"{path} is not a list" if path else "there is no answer")
        for index, element in enumerate(node):
            yield from _walk(element, f"{path}[{index}]", rest)
    elif isinstance(step, int):
        if not isinstance(node, list) or step >= len(node):
            raise _AbsentError(f"{path}[{step}] is absent")
        yield from _walk(node[step], f"{path}[{step}]", rest)
    else:
        name = f"{path}.{step}" if path else step
        if not isinstance(node, Mapping) or step not in node:
            raise _AbsentError(f"{name} is absent")
        yield from _walk(node[step], name, rest)


def _number(found: AnswerValue | JsonValue, text: str, path: str) -> Fraction:
    if isinstance(found, bool) or not isinstance(found, Fraction | int | float):
        if text.startswith("parameter:"):
            raise BadTask(f"operand {text!r} is {type(found).__name__}, not a number")
        raise _AbsentError(f"{path} is not a number")
    if isinstance(found, float):
        if not math.isfinite(found):
            raise BadTask(f"operand {text!r} is {found}, not a finite number")
        return Fraction(Decimal(repr(found)))
    return Fraction(found)


# ---------------------------------------------------------------- forms


@dataclass(frozen=True, slots=True)
class _Decision:
    """Resolved operands, whether the statement holds, and the sentence that says so."""

    holds: bool
    reason: str
    terms: tuple[Fraction, ...]
    lower: Fraction | None = None
    upper: Fraction | None = None
    when: tuple[Fraction, Fraction, Fraction] | None = None


def _decide(spec: ObligationSpec, sources: _Sources) -> Obligation:
    if spec.tolerance < 0:
        raise BadTask(f"obligation {spec.id}: tolerance {decimal_text(spec.tolerance)} is negative")
    try:
        decision = _FORMS[spec.form](spec, sources)
    except _AbsentError as absent:
        return Obligation(
            spec=spec, terms=(), lower=None, upper=None, when=None, state="unwitnessed", reason=f"no evidence: {absent}"
        )
    except BadTask as error:
        raise BadTask(f"obligation {spec.id}: {error}") from error
    state: State = "holds" if decision.holds else "violated"
    return Obligation(
        spec=spec,
        terms=decision.terms,
        lower=decision.lower,
        upper=decision.upper,
        when=decision.when,
        state=state,
        reason=decision.reason,
    )


def _bound(spec: ObligationSpec, sources: _Sources) -> _Decision:
    lower, upper = _ends(spec, sources)
    values = _all_numbers(spec, sources)
    holds, reason = _compare(spec, values, lower, upper)
    return _Decision(holds, reason, _plain(values), _end(lower), _end(upper))


def _equality(spec: ObligationSpec, sources: _Sources) -> _Decision:
    if len(spec.terms) != 2:
        raise BadTask(f"an equality has two terms, not {len(spec.terms)}")
    x, y = (sources.number(term) for term in spec.terms)
    gap = abs(x.number - y.number)
    holds = gap <= spec.tolerance
    reason = f"{_said(x, spec)} {_must(holds, 'equal')} {_said(y, spec)}{_within(spec, '+-')}{_off(holds, gap, spec)}"
    return _Decision(holds, reason, (x.number, y.number))


def _sum(spec: ObligationSpec, sources: _Sources) -> _Decision:
    if len(spec.terms) < 2:
        raise BadTask(f"a sum has at least one term and the total, not {len(spec.terms)}")
    total = sources.number(spec.terms[-1])
    values = [value for term in spec.terms[:-1] for value in sources.numbers(term)]
    added = sum((value.number for value in values), Fraction(0))
    gap = abs(added - total.number)
    holds = gap <= spec.tolerance
    parts = " + ".join(_bare(term) for term in spec.terms[:-1])
    reason = (
        f"{_said(_Value(added, f'sum of {parts}'), spec)} {_must(holds, 'equal')} {_said(total, spec)}"
        f"{_within(spec, '+-')}{_off(holds, gap, spec)}"
    )
    return _Decision(holds, reason, (*_plain(values), total.number))


def _order(spec: ObligationSpec, sources: _Sources) -> _Decision:
    values = _all_numbers(spec, sources)
    pairs = list(zip(values, values[1:], strict=False))
    wrong = [(x, y) for x, y in pairs if x.number > y.number + spec.tolerance]
    if not wrong and len(pairs) == 1:
        x, y = pairs[0]
        return _Decision(True, f"{_said(x, spec)} is <= {_said(y, spec)}{_within(spec, '+')}", _plain(values))
    if not wrong:
        return _Decision(True, f"{len(values)} values of {_listed(spec)} do not fall", _plain(values))
    x, y = wrong[0]
    reason = f"{_said(x, spec)} must be <= {_said(y, spec)}{_within(spec, '+')}{_off(False, x.number - y.number, spec)}"
    return _Decision(False, reason + _share(len(wrong), len(pairs), "neighbours"), _plain(values))


def _implication(spec: ObligationSpec, sources: _Sources) -> _Decision:
    if spec.when is None:
        raise BadTask("an implication needs `when`")
    x, low, high = (sources.number(text) for text in spec.when)
    when = (x.number, low.number, high.number)
    condition = f"{decimal_text(low.number)} <= {x.name} = {decimal_text(x.number)} <= {decimal_text(high.number)}"
    if not low.number <= x.number <= high.number:
        return _Decision(True, f"nothing is asked: {condition} is not so", (), when=when)
    lower, upper = _ends(spec, sources)
    values = _all_numbers(spec, sources)
    holds, reason = _compare(spec, values, lower, upper)
    return _Decision(holds, f"as {condition}: {reason}", _plain(values), _end(lower), _end(upper), when)


def _count(spec: ObligationSpec, sources: _Sources) -> _Decision:
    lower, upper = _ends(spec, sources)
    if spec.tolerance:
        raise BadTask("a count has no tolerance")
    number = Fraction(sum(sources.count(term) for term in spec.terms))
    holds, reason = _compare(spec, [_Value(number, f"number of {_listed(spec)}")], lower, upper)
    return _Decision(holds, reason, (number,), _end(lower), _end(upper))


_FORMS: Mapping[str, Callable[[ObligationSpec, _Sources], _Decision]] = {
    "bound": _bound,
    "equality": _equality,
    "sum": _sum,
    "order": _order,
    "implication": _implication,
    "count": _count,
}


def _all_numbers(spec: ObligationSpec, sources: _Sources) -> list[_Value]:
    if not spec.terms:
        raise BadTask("there are no terms")
    return [value for term in spec.terms for value in sources.numbers(term)]


def _ends(spec: ObligationSpec, sources: _Sources) -> tuple[_Value | None, _Value | None]:
    if spec.lower is None and spec.upper is None:
        raise BadTask("neither end of the range is given")
    lower = None if spec.lower is None else sources.number(spec.lower)
    upper = None if spec.upper is None else sources.number(spec.upper)
    return lower, upper


def _end(value: _Value | None) -> Fraction | None:
    return None if value is None else value.number


def _compare(
    spec: ObligationSpec, values: Sequence[_Value], lower: _Value | None, upper: _Value | None
) -> tuple[bool, str]:
    """Decide lower - t <= x <= upper + t for every value, and say so."""
    wrong = []
    for x in values:
        if lower is not None and x.number < lower.number - spec.tolerance:
            wrong.append((x, ">=", lower, "-"))
        elif upper is not None and x.number > upper.number + spec.tolerance:
            wrong.append((x, "<=", upper, "+"))
    if wrong:
        x, sign, end, slack = wrong[0]
        off = _off(False, abs(x.number - end.number), spec)
        reason = f"{_said(x, spec)} must be {sign} {_said(end, spec)}{_within(spec, slack)}{off}"
        return False, reason + _share(len(wrong), len(values), "values")
    ends = [f"{sign} {_said(end, spec)}" for sign, end in ((">=", lower), ("<=", upper)) if end is not None]
    subject = _said(values[0], spec) + " is" if len(values) == 1 else f"{len(values)} values of {_listed(spec)} are"
    return True, f"{subject} {' and '.join(ends)}{_within(spec, '+-')}"


# ---------------------------------------------------------------- words


def _plain(values: Sequence[_Value]) -> tuple[Fraction, ...]:
    return tuple(value.number for value in values)


def _bare(text: str) -> str:
    return text.partition(":")[2] or text


def _listed(spec: ObligationSpec) -> str:
    return ", ".join(_bare(term) for term in spec.terms)


def _with_unit(number: Fraction, spec: ObligationSpec) -> str:
    return f"{decimal_text(number)} {spec.unit}".rstrip()


def _said(value: _Value, spec: ObligationSpec) -> str:
    said = _with_unit(value.number, spec)
    return said if _DECIMAL.fullmatch(value.name) else f"{value.name} = {said}"


def _must(holds: bool, verb: str) -> str:
    return f"{verb}s" if holds else f"must {verb}"


def _within(spec: ObligationSpec, slack: str) -> str:
    return f" ({slack} {_with_unit(spec.tolerance, spec)})" if spec.tolerance else ""


def _off(holds: bool, gap: Fraction, spec: ObligationSpec) -> str:
    return "" if holds else f"; it is off by {_with_unit(gap, spec)}"


def _share(wrong: int, among: int, what: str) -> str:
    return f" (so for {wrong} of {among} {what})" if among > 1 else ""
