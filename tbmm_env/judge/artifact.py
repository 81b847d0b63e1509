"""From bytes to an answer: link-safe reading, strict JSON with exact numbers, and the schema's static bounds."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema

from tbmm_env.limits import JUDGE, JudgeLimits
from tbmm_env.record import Answer, AnswerValue, Artifact, FileStatus, Problem

_MAX_PROBLEMS = 20


# ---------------------------------------------------------------- reading a file


def read_artifact(path: Path, max_bytes: int) -> Artifact:
    """Read an answer file of this machine without following a link at its last component.

    Args:
        path: the file.
        max_bytes: inclusive size bound.

    Returns:
        The artifact; ``status`` says what was found when it is not a plain readable file.
    """
    try:
        before = path.lstat()
    except FileNotFoundError:
        return Artifact(status="missing")
    except OSError:
        return Artifact(status="unreadable")
    if stat.S_ISLNK(before.st_mode):
        return Artifact(status="link")
    if not stat.S_ISREG(before.st_mode):
        return Artifact(status="not_regular")
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return Artifact(status="unreadable")
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return Artifact(status="not_regular", size_bytes=found.st_size)
        if found.st_size > max_bytes:
            return Artifact(status="too_large", size_bytes=found.st_size)
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        return Artifact(status="too_large", size_bytes=len(data))
    return regular(data)


def regular(data: bytes) -> Artifact:
    """Return the artifact of plain bytes."""
    return Artifact(status="regular", data=data, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


_STATUS_TEXT: dict[FileStatus, str] = {
    "missing": "there is no answer file",
    "link": "the answer file is a symbolic link; links are not followed",
    "hard_link": "the answer file has more than one hard link; it must have exactly 1",
    "not_regular": "the answer is not a regular file",
    "unreadable": "the answer file cannot be read",
}


def status_message(artifact: Artifact, max_bytes: int) -> str:
    """Return a sentence on an artifact that is not a regular file."""
    if artifact.status == "too_large":
        return f"the answer file has {artifact.size_bytes} bytes; the limit is {max_bytes} bytes"
    return _STATUS_TEXT[artifact.status]


# ---------------------------------------------------------------- strict JSON


class _Malformed(Exception):
    """Raised inside this module with the sentence for the agent."""


# Possessive: a string is never tried again, so it costs no memory however long it is.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def _check_depth(text: str, limit: int) -> None:
    depth = 0
    for token in _TOKEN.finditer(text):
        mark = text[token.start()]
        if mark in "[{":
            depth += 1
            if depth > limit:
                raise _Malformed(f"nested deeper than {limit} levels at character {token.start()}")
        elif mark in "]}":
            depth -= 1


def _number(text: str, limit: int) -> Fraction:
    mantissa, _, exponent = text.lower().partition("e")
    digits = sum(c.isdigit() for c in mantissa)
    shown = text if len(text) <= 40 else f"{text[:20]}...{text[-10:]}"
    # an exponent of more than 6 characters is far beyond any limit and is not converted
    shift = abs(int(exponent)) if exponent and len(exponent) <= 6 else (limit + 1 if exponent else 0)
    if digits + shift > limit:
        raise _Malformed(f"number {shown} needs more than {limit} digits (exponent included)")
    return Fraction(text)


def _constant(text: str) -> Fraction:
    raise _Malformed(f"{text} is not a JSON number")


def _pairs(pairs: list[tuple[str, AnswerValue]]) -> dict[str, AnswerValue]:
    result: dict[str, AnswerValue] = {}
    for key, value in pairs:
        if key in result:
            raise _Malformed(f"key {_shown(key)} occurs twice in one object")
        result[key] = value
    return result


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=_plain) if not isinstance(value, Fraction) else _plain(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _plain(value: object) -> str:
    if isinstance(value, Fraction):
        return str(value.numerator) if value.denominator == 1 else f"{float(value):.12g}"
    return str(value)


def _walk(value: AnswerValue) -> Iterator[AnswerValue]:
    stack = [value]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _check_nodes(value: AnswerValue, limits: JudgeLimits) -> None:
    for count, item in enumerate(_walk(value), start=1):
        if count > limits.json_nodes:
            raise _Malformed(f"has more than {limits.json_nodes} values")
        if isinstance(item, str):
            try:
                size = len(item.encode("utf-8"))
            except UnicodeEncodeError as error:
                raise _Malformed(f"string {_shown(item)} holds a lone surrogate") from error
            if size > limits.json_strings_bytes:
                raise _Malformed(f"a string has {size} bytes; the limit is {limits.json_strings_bytes} bytes")


def parse(data: bytes, limits: JudgeLimits = JUDGE) -> Answer:
    """Parse answer bytes strictly: UTF-8 without BOM, one object, no NaN or Infinity, no duplicate keys.

    Args:
        data: the artifact's bytes.
        limits: bounds on nesting, digits, strings and values.

    Returns:
        An answer whose numbers are exact rationals of their decimal text, or ``value`` None with one problem.
    """
    try:
        if data.startswith(b"\xef\xbb\xbf"):
            raise _Malformed("starts with a byte order mark; UTF-8 without one is required")
        text = data.decode("utf-8")
        _check_depth(text, limits.json_depth)
        value: AnswerValue = json.loads(
            text,
            parse_int=lambda number: _number(number, limits.json_digits),
            parse_float=lambda number: _number(number, limits.json_digits),
            parse_constant=_constant,
            object_pairs_hook=_pairs,
        )
        _check_nodes(value, limits)
        if not isinstance(value, dict):
            raise _Malformed(f"is {_kind(value)}; it must be an object")
    except UnicodeDecodeError as error:
        return _malformed(f"byte {error.start} is not UTF-8: {error.reason}")
    except json.JSONDecodeError as error:
        return _malformed(f"line {error.lineno}, column {error.colno}: {error.msg}")
    except _Malformed as error:
        return _malformed(str(error))
    return Answer(value=value)


def _malformed(sentence: str) -> Answer:
    return Answer(value=None, problems=(Problem(path="$", message=f"answer.json: {sentence}"),))


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    names = {Fraction: "a number", str: "a string", list: "a list", dict: "an object", type(None): "null"}
    return names[type(value)]


# ---------------------------------------------------------------- schema

_TYPES = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine_many(
    {
        "number": lambda _, value: isinstance(value, Fraction),
        "integer": lambda _, value: isinstance(value, Fraction) and value.denominator == 1,
    }
)
_extend: Callable[..., Callable[[Any], Any]] = jsonschema.validators.extend
_Validator = _extend(jsonschema.Draft202012Validator, type_checker=_TYPES)


def validate(answer: Answer, schema: dict[str, Any]) -> Answer:
    """Check an answer against a schema and drop what the schema does not name.

    Args:
        answer: a parsed answer.
        schema: JSON Schema whose ``minimum`` and ``maximum`` are numbers or decimal strings.

    Returns:
        The answer reduced to the schema's entries, with a note on each absent decision; or ``value`` None with the
        faults, each naming field, value and limit.
    """
    if answer.value is None:
        return answer
    exact = _exact(schema)
    faults = [
        Problem(path=_path(error), message=_sentence(error))
        for _, error in zip(range(_MAX_PROBLEMS), _Validator(exact).iter_errors(answer.value), strict=False)
    ]
    if faults:
        return Answer(value=None, problems=tuple(sorted(faults, key=lambda fault: fault.path)))
    reduced = _reduce(answer.value, exact)
    assert isinstance(reduced, dict)
    return Answer(value=reduced, problems=tuple(_absent(reduced, exact, "")))


def _exact(schema: Any) -> Any:
    """Return the schema with its bounds as exact rationals."""
    if isinstance(schema, dict):
        return {
            key: Fraction(str(value)) if key in ("minimum", "maximum") else _exact(value)
            for key, value in schema.items()
        }
    return schema


def _path(error: jsonschema.ValidationError) -> str:
    return error.json_path.removeprefix("$").removeprefix(".") or "$"


def _sentence(error: jsonschema.ValidationError) -> str:
    where, value, limit = _path(error), error.instance, error.validator_value
    unit = error.schema.get("unit", "") if isinstance(error.schema, dict) else ""
    unit = "" if unit in ("", "1") else f" {unit}"
    match error.validator:
        case "type":
            article = "an" if str(limit)[0] in "aeiou" else "a"
            return f"{where} is {_kind(value)} ({_shown(value)}); it must be {article} {limit}"
        case "minimum":
            return f"{where} is {_shown(value)}{unit}; the schema's minimum is {_shown(limit)}{unit}"
        case "maximum":
            return f"{where} is {_shown(value)}{unit}; the schema's maximum is {_shown(limit)}{unit}"
        case "minItems":
            return f"{where} has {len(value)} entries; the schema's minimum is {limit}"  # type: ignore[arg-type]
        case "maxItems":
            return f"{where} has {len(value)} entries; the schema's maximum is {limit}"  # type: ignore[arg-type]
    return f"{where} breaks the schema's {error.validator}"


def _reduce(value: AnswerValue, schema: dict[str, Any]) -> AnswerValue:
    if isinstance(value, dict):
        return {key: _reduce(value[key], child) for key, child in schema["properties"].items() if key in value}
    if isinstance(value, list):
        return [_reduce(item, schema["items"]) for item in value]
    return value


def _absent(value: AnswerValue, schema: dict[str, Any], path: str) -> Iterator[Problem]:
    """Name each entry of the schema that the answer lacks; ``claims`` at the top is optional."""
    if isinstance(value, dict):
        for key, child in schema["properties"].items():
            where = f"{path}.{key}" if path else key
            if where == "claims":
                continue
            if key in value:
                yield from _absent(value[key], child, where)
            else:
                yield Problem(path=where, message=f"{where} is missing; what depends on it scores 0")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _absent(item, schema["items"], f"{path}[{index}]")


def floats(value: AnswerValue) -> Any:
    """Return an answer with every number as the nearest float, for the replay."""
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, dict):
        return {key: floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [floats(item) for item in value]
    return value
