"""Moves every number of the optimum until an obligation that depends on it is violated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from tbmm_env.bench import Bench, put
from tbmm_env.judge.numeral import decimal_text
from tbmm_env.record import AnswerValue, Obligation
from tbmm_env.specs import ObligationSpec

_NEAR = Fraction(1, 10**6)
"""How far beyond the end of a range the nearest move lies."""

_LONG = 8
"""Of a longer list only the first, the middle and the last entry are moved."""

_CLAIMS = "claims"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """What came of moving one number.

    Attributes:
        path: where it is, for example ``q4.path.entry_m[0]``.
        pattern: the same with ``[*]`` for every index.
        flipped: by obligation id, the answer that violates it and differs from the optimum in this number alone (parts
            of the answer that do not matter may be left out).
        unmoved: ids of obligations that read the number directly and that no move violates.
    """

    path: str
    pattern: str
    flipped: Mapping[str, Mapping[str, AnswerValue]]
    unmoved: tuple[str, ...]


def flips(bench: Bench) -> list[Leaf]:
    """Move every number of the optimum, claims excepted, out of its allowed range.

    Moves are the ends of the ranges that obligations set where they read the number directly, then both directions in
    growing steps, then the schema's bounds. A number that obligations read directly must violate each of those; any
    other must violate one obligation through the replay.
    """
    return [
        _moved(bench, path, value, node) for path, value, node in _numbers(bench.optimum, bench.task.answer_schema, "")
    ]


def _numbers(
    value: AnswerValue, node: Mapping[str, Any], path: str
) -> Iterator[tuple[str, Fraction, Mapping[str, Any]]]:
    if isinstance(value, dict):
        for key, child in value.items():
            if path or key != _CLAIMS:
                yield from _numbers(child, node["properties"][key], f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        places = range(len(value)) if len(value) <= _LONG else (0, len(value) // 2, len(value) - 1)
        for index in places:
            yield from _numbers(value[index], node["items"], f"{path}[{index}]")
    elif isinstance(value, Fraction):
        yield path, value, node


def _moved(bench: Bench, path: str, value: Fraction, node: Mapping[str, Any]) -> Leaf:
    flipped: dict[str, Mapping[str, AnswerValue]] = {}
    direct = [spec.id for spec in bench.task.obligations if _reads(spec, path)]
    wanted = set(direct)
    for base in (bench.part(path), bench.optimum):
        before = bench.gate(base)
        held = {entry.spec.id for entry in before if entry.state == "holds"}
        for move in _moves(value, node, [entry for entry in before if entry.spec.id in direct]):
            answer = put(base, path, move)
            for entry in bench.gate(answer):
                if entry.state == "violated" and entry.spec.id in held:
                    flipped.setdefault(entry.spec.id, answer)
            if flipped and wanted <= set(flipped):
                break
        if flipped and wanted <= set(flipped):
            break
    return Leaf(
        path=path,
        pattern=re.sub(r"\[\d+\]", "[*]", path),
        flipped=flipped,
        unmoved=tuple(key for key in direct if key not in flipped),
    )


def _reads(spec: ObligationSpec, path: str) -> bool:
    """Whether the value of a number enters a comparison of an obligation; a count asks only how many there are."""
    if spec.form == "count":
        return False
    operands = [text for text in (*spec.terms, spec.lower, spec.upper) if text and text.startswith("answer:")]
    patterns = [re.escape(text.removeprefix("answer:")).replace(r"\[\*\]", r"\[\d+\]") for text in operands]
    return any(re.fullmatch(pattern, path) for pattern in patterns)


def _moves(value: Fraction, node: Mapping[str, Any], readers: Sequence[Obligation]) -> list[Fraction]:
    low, high = Fraction(str(node["minimum"])), Fraction(str(node["maximum"]))
    whole = node["type"] == "integer"
    near = Fraction(1) if whole else _NEAR
    ends: list[Fraction] = []
    for entry in readers:
        slack = entry.spec.tolerance + near
        numbers = [*entry.terms, *(end for end in (entry.lower, entry.upper) if end is not None)]
        ends += [number + sign * slack for number in numbers for sign in (1, -1)]
    moves = sorted(ends, key=lambda end: abs(end - value))
    step = near
    while step <= high - low:
        moves += [value + step, value - step]
        step *= 10
    moves += [low, high]
    if whole:
        moves = [Fraction(round(move)) for move in moves]
    return [move for move in dict.fromkeys(moves) if low <= move <= high and move != value]


# ---------------------------------------------------------------- answers as text


def json_bytes(answer: Mapping[str, AnswerValue]) -> bytes:
    """Return an answer as JSON whose decimals are exact (beyond 60 digits rounded)."""
    return _json(dict(answer)).encode()


def _json(value: AnswerValue) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(key)}: {_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_json(item) for item in value) + "]"
    if isinstance(value, Fraction):
        return _decimal(value)
    return json.dumps(value)


def _decimal(value: Fraction) -> str:
    number = Context(prec=60).divide(Decimal(value.numerator), Decimal(value.denominator))
    text = format(number, "f")
    return text if len(text) <= 60 else decimal_text(value)
