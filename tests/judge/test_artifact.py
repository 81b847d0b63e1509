"""Strict JSON, schema bounds and link-safe reading: every fault has its sentence."""

from __future__ import annotations

import os
import socket
import tracemalloc
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbmm_env.judge.artifact import floats, parse, read_artifact, regular, status_message, validate
from tbmm_env.limits import JudgeLimits
from tbmm_env.record import Answer

SCHEMA = {
    "type": "object",
    "properties": {
        "time_s": {"type": "number", "unit": "s", "minimum": "0", "maximum": "1e4"},
        "count": {"type": "integer", "unit": "1", "minimum": 1, "maximum": 9},
        "points": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"type": "number", "unit": "m", "minimum": -5, "maximum": 5},
        },
        "claims": {"type": "object", "properties": {}},
    },
}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "Expecting value"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ('{"a":1}'.encode("utf-16"), "is not UTF-8"),
        (b"\xff{}", "byte 0 is not UTF-8"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1e400}', "more than 60 digits"),
        (b'{"a": 1e-400}', "more than 60 digits"),
        (b'{"a": 1e99999999999999999999}', "more than 60 digits"),
        (b'{"a": ' + b"7" * 5000 + b"}", "more than 60 digits"),
        (b'{"a": 1, "a": 2}', 'key "a" occurs twice'),
        (b"[" * 200_000 + b"]" * 200_000, "nested deeper than 32"),
        (b'{"a": "\\ud800"}', "lone surrogate"),
        (b'{"\\ud800": 1}', "lone surrogate"),
        (b'{"a": 1} x', "Extra data"),
        (b"[1]", "is a list; it must be an object"),
        (b"true", "is a boolean"),
        (b'{"a": 01}', "line 1"),
        (b'{"a": "\x00"}', "control character"),
    ],
)
def test_malformed(data: bytes, said: str) -> None:
    answer = parse(data)
    assert answer.value is None
    assert said in answer.problems[0].message


def test_limits_have_an_under_and_an_over() -> None:
    limits = JudgeLimits(json_depth=3, json_digits=5, json_strings_bytes=4, json_nodes=6)
    for under, over in [
        (b'{"a":[[1]]}', b'{"a":[[[1]]]}'),
        (b'{"a":12345}', b'{"a":123456}'),
        (b'{"a":1e4}', b'{"a":1e5}'),
        (b'{"a":"\xe4\xbd\xa0a"}', b'{"a":"\xe4\xbd\xa0aa"}'),
        (b'{"a":[1,2,3]}', b'{"a":[1,2,3,4]}'),
    ]:
        assert parse(under, limits).value is not None, under
        assert parse(over, limits).value is None, over


def test_brackets_in_strings_are_not_nesting() -> None:
    assert parse(b'{"a": "' + b"[" * 100 + b'\\"' + b"{" * 100 + b'"}').value is not None


def test_a_long_string_costs_little_memory() -> None:
    data = b'{"a": "' + b"x" * (4 << 20) + b'"}'
    tracemalloc.start()
    try:
        assert parse(data).value is None
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_numbers_are_exact() -> None:
    answer = parse(b'{"a": 0.1, "b": -1.25e-3, "c": 10}')
    assert answer.value == {"a": Fraction(1, 10), "b": Fraction(-125, 100_000), "c": Fraction(10)}


@given(st.binary(max_size=200))
def test_parse_never_raises(data: bytes) -> None:
    answer = parse(data)
    assert answer.value is not None or answer.problems


@given(st.recursive(st.none() | st.booleans() | st.decimals(-1000, 1000, places=6) | st.text(max_size=5), st.lists))
def test_parse_takes_what_json_writes(value: object) -> None:
    import json

    text = json.dumps({"a": value}, default=float)
    answer = parse(text.encode("utf-8", "surrogatepass"))
    assert answer.value is not None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"time_s": "5"}', 'time_s is a string ("5"); it must be a number'),
        (b'{"time_s": true}', "time_s is a boolean (true); it must be a number"),
        (b'{"time_s": null}', "time_s is null (null); it must be a number"),
        (b'{"time_s": -1}', "time_s is -1 s; the schema's minimum is 0 s"),
        (b'{"time_s": 10000.5}', "time_s is 10000.5 s; the schema's maximum is 10000 s"),
        (b'{"count": 1.5}', "it must be an integer"),
        (b'{"points": []}', "points has 0 entries; the schema's minimum is 1"),
        (b'{"points": [1,2,3,4]}', "points has 4 entries; the schema's maximum is 3"),
        (b'{"points": [1, 6]}', "points[1] is 6 m; the schema's maximum is 5 m"),
        (b'{"points": {"0": 1}}', "points is an object"),
    ],
)
def test_schema_faults_name_field_value_and_limit(data: bytes, said: str) -> None:
    answer = validate(parse(data), SCHEMA)
    assert answer.value is None
    assert said in "; ".join(problem.message for problem in answer.problems)


def test_five_faults_are_all_told() -> None:
    answer = validate(parse(b'{"time_s": "x", "count": 99, "points": [9, 9, true]}'), SCHEMA)
    assert [problem.path for problem in answer.problems] == ["count", "points[0]", "points[1]", "points[2]", "time_s"]


def test_surplus_is_dropped_and_absence_is_told() -> None:
    answer = validate(parse(b'{"time_s": 1, "extra": {"deep": [1]}, "../../etc": 3}'), SCHEMA)
    assert answer.value == {"time_s": Fraction(1)}
    assert [problem.path for problem in answer.problems] == ["count", "points"]


def test_validate_passes_a_malformed_answer_on() -> None:
    malformed = parse(b"")
    assert validate(malformed, SCHEMA) is malformed


def test_floats() -> None:
    assert floats({"a": [Fraction(1, 2), True, None, "x"]}) == {"a": [0.5, True, None, "x"]}


# ---------------------------------------------------------------- files


def test_regular_file(tmp_path: Path) -> None:
    path = tmp_path / "答案.json"
    path.write_bytes(b"{}")
    assert read_artifact(path, 10) == regular(b"{}")


def test_size_limit(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_bytes(b"x" * 10)
    assert read_artifact(path, 10).status == "regular"
    path.write_bytes(b"x" * 11)
    assert read_artifact(path, 10).status == "too_large"
    os.truncate(path, 1 << 40)
    found = read_artifact(path, 10)
    assert status_message(found, 10) == f"the answer file has {1 << 40} bytes; the limit is 10 bytes"


def test_what_is_not_a_plain_file(tmp_path: Path) -> None:
    assert read_artifact(tmp_path / "none", 10).status == "missing"
    assert read_artifact(tmp_path, 10).status == "not_regular"
    target = tmp_path / "target"
    target.write_bytes(b"{}")
    link = tmp_path / "link"
    link.symlink_to(target)
    assert read_artifact(link, 10).status == "link"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert read_artifact(loop, 10).status == "link"
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert read_artifact(fifo, 10).status == "not_regular"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        assert read_artifact(tmp_path / "socket", 10).status == "not_regular"
    assert read_artifact(Path("/dev/zero"), 10).status == "not_regular"


def test_every_status_has_a_sentence() -> None:
    from typing import get_args

    from tbmm_env.record import Artifact, FileStatus

    for status in set(get_args(FileStatus)) - {"regular"}:
        assert status_message(Artifact(status=status), 5)


def test_answer_record_is_plain() -> None:
    assert Answer(value={}).problems == ()
