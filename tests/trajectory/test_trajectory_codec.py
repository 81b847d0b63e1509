"""Records: what goes in comes out equal; bytes from strangers are refused within bounded memory and time."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import math
import subprocess
import sys
import typing
from collections.abc import Callable
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from trajectory_samples import (
    encode,
    episodes_equal,
    fetcher,
    golden,
    golden_2,
    image,
    small,
    through_bytes,
    turn,
    values_equal,
)

from tbmm_env import record
from tbmm_env.errors import CorruptTrajectory, TrajectoryError
from tbmm_env.trajectory import codec, kinds, schema
from tbmm_env.trajectory.codec import Fault

TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)
DTYPES = st.sampled_from(sorted(codec.DTYPES))
ARRAYS = DTYPES.flatmap(lambda code: hnp.arrays(np.dtype(code), hnp.array_shapes(min_dims=0, min_side=0, max_side=3)))
SCALARS = DTYPES.flatmap(lambda code: hnp.arrays(np.dtype(code), ())).map(lambda array: array[()])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | TEXTS
    | st.binary(max_size=8)
    | st.fractions()
    | ARRAYS
    | SCALARS
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)
MAPPINGS = st.dictionaries(TEXTS, VALUES, max_size=4)
IMAGES = hnp.arrays(np.uint8, st.tuples(st.integers(1, 4), st.integers(1, 4), st.just(3)))


def choice(vocabulary: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(typing.get_args(vocabulary))


NUMBERS = st.floats() | st.integers()
OBSERVATIONS = st.builds(record.Observation, terminal=TEXTS, figures=st.lists(IMAGES, max_size=2).map(tuple))
FLOATS = hnp.arrays(np.float32, 2)
TURNS = st.builds(
    record.Turn,
    completion=TEXTS,
    prompt_token_ids=hnp.arrays(np.int64, st.integers(0, 3)),
    completion_token_ids=hnp.arrays(np.int64, 2),
    logprobs=FLOATS | st.just(np.zeros(0, np.float32)),
    finish_reason=TEXTS,
    sampling=MAPPINGS,
    weight_version=TEXTS,
)
STEPS = st.builds(
    record.Step,
    action=TEXTS,
    observation=OBSERVATIONS,
    exit_status=st.none() | st.integers(),
    ending=st.none() | choice(record.Ending),
    started_s=NUMBERS,
    wall_s=NUMBERS,
    turn=st.none() | TURNS,
)
EPISODES = st.builds(
    record.Episode,
    episode_id=TEXTS,
    instance=st.builds(record.Instance, task=TEXTS, version=TEXTS, seed=st.none() | st.integers(), parameters=MAPPINGS),
    budget=TEXTS,
    language=choice(record.Language),
    sandbox=TEXTS,
    limits=MAPPINGS,
    versions=st.dictionaries(TEXTS, TEXTS, max_size=3),
    first_observation=OBSERVATIONS,
    steps=st.lists(STEPS, max_size=2).map(tuple),
    artifact=st.builds(
        record.Artifact,
        status=choice(record.FileStatus),
        data=st.binary(max_size=20),
        size_bytes=st.integers(0),
        sha256=TEXTS,
    ),
    judgement=MAPPINGS,
    certificate_text=TEXTS,
    terminated=st.booleans(),
    truncated=st.booleans(),
    started_unix_s=NUMBERS,
    wall_s=NUMBERS,
    job=TEXTS,
    group_id=TEXTS,
    sample_id=st.integers(),
    policy=TEXTS,
    extra=MAPPINGS,
)


# ---------------------------------------------------------------- round trips


def check_round_trip(value: Any) -> None:
    assert values_equal(codec.load(codec.dump(codec.pack(value))), value)


@given(VALUES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_value_comes_back_equal(value: Any) -> None:
    check_round_trip(value)


@given(EPISODES)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_episode_comes_back_equal(episode: record.Episode) -> None:
    assert episodes_equal(through_bytes(episode), episode)


def test_the_sample_of_every_kind_comes_back_equal() -> None:
    assert episodes_equal(through_bytes(golden()), golden())
    assert episodes_equal(through_bytes(golden_2()), golden_2())


def test_encoding_is_a_function_of_the_episode() -> None:
    assert encode(golden()) == encode(golden())


def test_images_artifact_and_certificate_are_kept_apart() -> None:
    data, blobs = encode(golden())
    assert [name.split()[0] for name in blobs] == ["image", "image", "artifact", "certificate"]
    assert image(1).tobytes() not in data
    assert b'{"n": 7}' not in data
    assert b"theorem" not in data
    assert next(iter(blobs.values())) == b"P6\n9 6\n255\n" + image(0).tobytes()


def test_any_mapping_comes_back_as_a_dict() -> None:
    back = through_bytes(dataclasses.replace(small(1), extra=MappingProxyType({"a": MappingProxyType({"b": 1})})))
    assert back.extra == {"a": {"b": 1}}
    assert type(back.extra) is dict


def test_arrays_come_back_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        through_bytes(small(1)).first_observation.figures[0][0, 0, 0] = 1


MUTANTS: dict[str, tuple[str, type | int, Callable[..., Any], Any]] = {
    "tuples as lists": ("_PACKERS", tuple, codec._pack_list, (1, 2)),
    "floats at single precision": ("_PACKERS", float, lambda value, _: float(np.float32(value)), 0.1),
    "arrays in native order": (
        "_PACKERS",
        np.ndarray,
        lambda a, d: codec._pack_array(a.astype("<f8"), d),
        np.ones(1, ">f8"),
    ),
    "surrogates replaced": ("_PACKERS", str, lambda s, _: s.encode("utf-8", "replace").decode(), "\ud800"),
    "fractions as floats": ("_PACKERS", Fraction, lambda value, _: float(value), Fraction(1, 3)),
    "integers unsigned": ("_OPENERS", codec.INTEGER, lambda data, _: int.from_bytes(data, "big"), -(2**70)),
    "scalars unboxed": ("_OPENERS", codec.SCALAR, lambda d, n: codec._open_scalar(d, n).item(), np.float64(1)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_round_trip_check_rejects_a_lossy_codec(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, key, mutant, value = MUTANTS[name]
    check_round_trip(value)
    monkeypatch.setitem(getattr(codec, table), key, mutant)
    with pytest.raises(AssertionError):
        check_round_trip(value)


CHANGES: dict[str, Any] = {
    "episode_id": "other",
    "instance": dataclasses.replace(small(1).instance, seed=True),
    "budget": "contest",
    "language": "en",
    "sandbox": "docker",
    "limits": {"steps": 30.0},
    "versions": {},
    "first_observation": dataclasses.replace(small(1).first_observation, figures=(image(1),)),
    "steps": small(1).steps[:1],
    "artifact": dataclasses.replace(small(1).artifact, status="link"),
    "judgement": {"reward": 0.5, "outcome": "scored"},
    "certificate_text": "",
    "terminated": False,
    "truncated": True,
    "started_unix_s": 1.7e9 + 1,
    "wall_s": np.float64(12.5),
    "job": "other",
    "group_id": "other",
    "sample_id": 1,
    "policy": "other",
    "extra": {"x": None},
}


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(record.Episode)])
def test_equality_of_episodes_sees_a_change_in_every_field(field: str) -> None:
    assert episodes_equal(small(1), small(1))
    assert not episodes_equal(small(1), dataclasses.replace(small(1), **{field: CHANGES[field]}))


def test_equality_of_values_is_exact() -> None:
    assert values_equal(math.nan, math.nan)
    for left, right in ((0.0, -0.0), (1, 1.0), (1, True), ([1], (1,)), (np.ones(1, "<i4"), np.ones(1, ">i4"))):
        assert not values_equal(left, right)


# ---------------------------------------------------------------- the table of fields


def check_table(table: kinds.Record) -> None:
    assert list(table.fields) == [field.name for field in dataclasses.fields(table.cls)], (
        "a new field needs a new schema version"
    )
    for kind in table.fields.values():
        inner = kind.item if isinstance(kind, kinds.Series | kinds.Optional) else kind
        if isinstance(inner, kinds.Record):
            check_table(inner)


def test_the_newest_table_names_every_field_of_the_records() -> None:
    check_table(schema._EPISODES[schema.SCHEMA_VERSION])
    assert max(schema._EPISODES) == schema.SCHEMA_VERSION


def test_the_table_check_rejects_a_forgotten_field() -> None:
    table = schema._EPISODES[schema.SCHEMA_VERSION]
    fields = {name: kind for name, kind in table.fields.items() if name != "wall_s"}
    with pytest.raises(AssertionError, match="new schema version"):
        check_table(dataclasses.replace(table, fields=fields))


def test_the_extension_table_is_closed() -> None:
    assert sorted(codec._OPENERS) == list(range(1, 10))


# ---------------------------------------------------------------- what cannot be stored


class Colour(enum.IntEnum):
    RED = 1


def nested(depth: int, wrap: Callable[[Any], Any] = lambda inner: [inner]) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1, 2}, r"extra\.x cannot be stored: a set is not storable"),
        ([0, {"y": object()}], r"extra\.x\[1\]\.y cannot be stored: a object is not storable"),
        ({1: 2}, "key a int is of type int; keys must be str"),
        (Colour.RED, "a Colour is not storable"),
        (bytearray(b"a"), "a bytearray is not storable"),
        (np.str_("a"), "numpy type '<U1' is not storable"),
        (np.array(["a"]), "numpy type '<U1' is not storable"),
        (np.array([None]), r"numpy type '\|O' is not storable"),
        (np.datetime64("2024-01-01"), "numpy type '<M8"),
        (np.ma.array([1]), "a MaskedArray is not storable"),
        pytest.param(
            2 ** (8 * codec.MAX_INTEGER_BYTES - 1), "integer of 8193 bytes; the limit is 8192 bytes", id="int"
        ),
        (nested(codec.MAX_DEPTH), "more than 64 containers"),
        (nested(codec.MAX_DEPTH, lambda inner: (inner,)), "more than 64 containers"),
    ],
)
def test_a_value_that_cannot_come_back_is_refused(value: Any, message: str) -> None:
    with pytest.raises(TrajectoryError, match=message) as caught:
        encode(dataclasses.replace(small(1), extra={"x": value}))
    assert not isinstance(caught.value, CorruptTrajectory)


@pytest.mark.parametrize(
    "value",
    [2 ** (8 * codec.MAX_INTEGER_BYTES - 1) - 1, nested(codec.MAX_DEPTH - 1), nested(62, lambda inner: (inner,))],
    ids=["integer", "lists", "tuples"],
)
def test_a_value_at_the_limit_is_stored(value: Any) -> None:
    episode = dataclasses.replace(small(1), extra={"x": value})
    assert episodes_equal(through_bytes(episode), episode)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("episode_id", 1, r"episode\.episode_id cannot be stored: a int is not text"),
        ("language", "fr", "'fr' is not one of en, zh"),
        ("terminated", np.bool_(True), "is not true or false"),
        ("wall_s", "1", "is not a number"),
        ("wall_s", True, "is not a number"),
        ("versions", {"a": 1}, "is not a mapping of texts"),
        ("steps", [], r"episode\.steps cannot be stored: a list is not a tuple"),
        ("steps", (None,), r"episode\.steps\[0\] cannot be stored: a NoneType is not of type Step"),
        ("first_observation", record.Observation(terminal="", figures=(image(1)[:, :, :2],)), r"uint8 \(6, 9, 2\)"),
        ("first_observation", record.Observation(terminal="", figures=(image(1)[:0],)), "figure has 0 bytes"),
        ("first_observation", record.Observation(terminal="", figures=(image(1) * 1.0,)), "figure is float64"),
    ],
)
def test_a_field_of_another_type_is_refused(field: str, value: Any, message: str) -> None:
    with pytest.raises(TrajectoryError, match=message):
        encode(dataclasses.replace(small(1), **{field: value}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logprobs": np.zeros(2, np.float32)}, "2 logprobs for 3 completion tokens"),
        ({"logprobs": np.zeros(3)}, r"\.logprobs .* <f8 \(3,\) is not an array <f4 of one dimension"),
        ({"prompt_token_ids": np.zeros(3, np.int32)}, r"<i4 \(3,\) is not an array <i8"),
        ({"prompt_token_ids": np.zeros((1, 3), np.int64)}, r"<i8 \(1, 3\) is not an array <i8 of one dimension"),
        ({"completion_token_ids": [1, 2, 3]}, "a list is not an array <i8"),
        ({"completion": None}, "a NoneType is not text"),
        ({"sampling": {"x": {1}}}, r"steps\[0\]\.turn\.sampling\.x cannot be stored: a set"),
    ],
)
def test_a_turn_of_another_type_is_refused(changes: dict[str, Any], message: str) -> None:
    first = dataclasses.replace(small(1).steps[0], turn=dataclasses.replace(turn(), **changes))
    with pytest.raises(TrajectoryError, match=message):
        encode(dataclasses.replace(small(1), steps=(first,)))


def test_a_turn_without_logprobs_or_without_anything_is_stored() -> None:
    silent = dataclasses.replace(turn(), logprobs=np.zeros(0, np.float32))
    for one in (silent, record.Turn(), None):
        episode = dataclasses.replace(small(1), steps=(dataclasses.replace(small(1).steps[0], turn=one),))
        assert episodes_equal(through_bytes(episode), episode)


def test_a_stored_turn_whose_logprobs_do_not_fit_is_refused() -> None:
    plain = msgpack.unpackb(encode(golden_2())[0], strict_map_key=False)
    plain["steps"][0]["turn"]["logprobs"] = plain["steps"][1]["turn"]["prompt_token_ids"]
    with pytest.raises(CorruptTrajectory, match=r"steps\[0\]\.turn\.logprobs is damaged: an array <i8 \(0,\)"):
        schema.decode(msgpack.packb(plain), fetcher(encode(golden_2())[1]))
    one = msgpack.ExtType(codec.ARRAY, msgpack.packb(["<f4", [1], bytes(4)]))
    plain["steps"][0]["turn"]["logprobs"] = one
    with pytest.raises(CorruptTrajectory, match=r"steps\[0\]\.turn is damaged: 1 logprobs for 3 completion tokens"):
        schema.decode(msgpack.packb(plain), fetcher(encode(golden_2())[1]))


def test_a_record_over_its_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(encode(small(1))[0])
    monkeypatch.setattr(schema, "MAX_RECORD_BYTES", size)
    encode(small(1))
    monkeypatch.setattr(schema, "MAX_RECORD_BYTES", size - 1)
    with pytest.raises(TrajectoryError, match=f"has {size} bytes; the limit is {size - 1} bytes"):
        encode(small(1))


# ---------------------------------------------------------------- bytes from strangers


def extension(code: int, data: bytes) -> bytes:
    return msgpack.packb(msgpack.ExtType(code, data))


HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not msgpack"),
    "a reserved byte": (b"\xc1", "not msgpack"),
    "a list of 2^31 - 1": (b"\xdd\x7f\xff\xff\xff", "not msgpack"),
    "a map of 2^31 - 1": (b"\xdf\x7f\xff\xff\xff", "not msgpack"),
    "bytes of 2^31 - 1": (b"\xc6\x7f\xff\xff\xff", "not msgpack"),
    "text of 2^32 - 1": (b"\xdb\xff\xff\xff\xff", "not msgpack"),
    "an extension of 2^31": (b"\xc9\x80\x00\x00\x00\x01", "not msgpack"),
    "an extension of 2^32 - 1, whose length and type byte wrap around": (b"\xc9\xff\xff\xff\xff", "not msgpack"),
    "lists of a million in each other": (b"\xdd\x00\x0f\xff\xff" * 400 + b"\xc0" * 2**20, "not msgpack"),
    "lists in each other": (b"\x91" * 100_000, "not msgpack"),
    "tuples in each other": (nested(70, lambda inner: extension(codec.TUPLE, b"\x91" + (inner or b"\xc0"))), "inside"),
    "a trailing byte": (b"\xc0\xc0", "1 trailing bytes"),
    "text that is not UTF-8": (b"\xa1\xff", "not msgpack"),
    "a repeated key": (b"\x82\xa1a\xc0\xa1a\xc0", "key 'a' is repeated"),
    "a key that is a number": (b"\x81\x01\xc0", "key a int is repeated or not text"),
    "a key that is a list": (b"\x81\x90\xc0", "key a list is repeated or not text"),
    "an unknown extension": (extension(10, b""), "extension type 10"),
    "extension 0": (extension(0, b""), "extension type 0"),
    "a small integer as a big one": (extension(codec.INTEGER, b"\x01"), "shortest form"),
    "an integer with a zero before it": (extension(codec.INTEGER, b"\0\0\xff" + bytes(8)), "shortest form"),
    "an integer too long": (extension(codec.INTEGER, b"\x01" * 8193), "over 8192 bytes"),
    "a fraction by zero": (extension(codec.FRACTION, b"\x92\x01\x00"), "lowest terms"),
    "a fraction by less than zero": (extension(codec.FRACTION, b"\x92\x01\xff"), "lowest terms"),
    "a fraction not in lowest terms": (extension(codec.FRACTION, b"\x92\x02\x04"), "lowest terms"),
    "a fraction of truth": (extension(codec.FRACTION, b"\x92\xc3\x02"), "does not consist of int, int"),
    "a fraction of one": (extension(codec.FRACTION, b"\x91\x01"), "does not consist of int, int"),
    "plain text as surrogates": (extension(codec.TEXT, b"abc"), "plain msgpack text"),
    "an array of objects": (extension(codec.ARRAY, msgpack.packb(["|O", [1], bytes(8)])), "numpy type '|O'"),
    "an array of fewer bytes": (extension(codec.ARRAY, msgpack.packb(["<i8", [2], bytes(8)])), "not msgpack"),
    "an array of 2^62": (extension(codec.ARRAY, msgpack.packb(["<i8", [2**62], bytes(8)])), "not msgpack"),
    "an array of -1": (extension(codec.ARRAY, msgpack.packb(["<i8", [-1], bytes(8)])), "list of lengths"),
    "an array in 100 dimensions": (extension(codec.ARRAY, msgpack.packb(["|u1", [1] * 100, b"a"])), "not msgpack"),
    "a scalar of two": (extension(codec.SCALAR, msgpack.packb(["|u1", b"aa"])), "not msgpack"),
    "a tuple of a map": (extension(codec.TUPLE, b"\x80"), "does not hold a list"),
    "a reference of 31 bytes": (extension(codec.IMAGE, bytes(31)), "a sha256 has 32"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_values_are_refused(name: str) -> None:
    data, message = HOSTILE[name]
    with pytest.raises(Fault, match=message.replace("|", r"\|")):
        codec.load(data)
    with pytest.raises(CorruptTrajectory, match="^record is damaged: "):
        schema.decode(data, fetcher({}))


def rewritten(**changes: Any) -> bytes:
    """The record of a small episode with fields replaced, packed without any check."""
    plain = msgpack.unpackb(encode(small(1))[0])
    plain.update(changes)
    return msgpack.packb({name: value for name, value in plain.items() if value is not ...})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": ...}, "not a map with a schema_version"),
        ({"schema_version": 0}, "not a map with a schema_version"),
        ({"schema_version": True}, "not a map with a schema_version"),
        ({"schema_version": "1"}, "not a map with a schema_version"),
        ({"schema_version": 65536}, "not a map with a schema_version"),
        ({"surplus": 1}, "not of type Episode: its fields must be exactly"),
        ({"wall_s": ...}, "not of type Episode: its fields must be exactly"),
        ({"wall_s": None}, r"record\.wall_s is damaged: a NoneType is not a number"),
        ({"steps": {}}, r"record\.steps is damaged: a dict is not a list"),
        ({"steps": [1]}, r"record\.steps\[0\] is damaged: not of type Step"),
        ({"extra": {"x": [msgpack.Timestamp(1)]}}, r"record\.extra is damaged: a Timestamp does not belong"),
        ({"extra": {"x": msgpack.ExtType(7, bytes(32))}}, r"record\.extra is damaged: a BlobRef does not belong"),
        ({"extra": {"x": nested(codec.MAX_DEPTH)}}, "more than 64 containers"),
        ({"artifact": dict(status="regular", data="text", size_bytes=1, sha256="")}, r"record\.artifact\.data"),
        ({"artifact": dict(status="regular", data=msgpack.ExtType(7, bytes(32)), size_bytes=1, sha256="")}, "data"),
        ({"first_observation": {"terminal": "", "figures": [msgpack.ExtType(8, bytes(32))]}}, r"figures\[0\]"),
        ({"certificate_text": 1}, r"record\.certificate_text is damaged: certificate is neither text nor a reference"),
        ({"certificate_text": msgpack.ExtType(8, bytes(32))}, "certificate is neither text nor a reference"),
        ({"first_observation": {"terminal": "", "figures": [b"abc"]}}, r"figures\[0\] is damaged: figure is not"),
    ],
)
def test_records_that_the_writer_would_not_write_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CorruptTrajectory, match=message):
        schema.decode(rewritten(**changes), fetcher(encode(small(1))[1]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema_version": ...}, "not a map with a schema_version"),
        ({"surplus": 1}, "not of type Episode: its fields must be exactly"),
        ({"wall_s": ...}, "not of type Episode: its fields must be exactly"),
        ({"wall_s": None}, r"record\.wall_s is damaged: a NoneType is not a number"),
        ({"steps": {}}, "not msgpack"),
        ({"judgement": []}, "judgement or artifact is not a mapping"),
        ({"artifact": 1}, "judgement or artifact is not a mapping"),
        ({"instance": {"task": "x"}}, "not of type Instance"),
        ({"versions": {"a": msgpack.ExtType(7, bytes(32))}}, "is not a mapping of texts"),
    ],
)
def test_summaries_refuse_them_too(changes: dict[str, Any], message: str) -> None:
    assert schema.summarise(rewritten()).episode_id == "episode-1"
    with pytest.raises(CorruptTrajectory, match=message):
        schema.summarise(rewritten(**changes))


def test_a_summary_of_what_is_no_map_is_refused() -> None:
    for data in (
        b"",
        b"\xc0",
        b"\x90",
        b"\x81\x01\xc0",
        b"\x82\xa1a\xc0\xa1a\xc0",
        b"\xdf\x7f\xff\xff\xff",
        b"\x80\xc0",
    ):
        with pytest.raises(CorruptTrajectory):
            schema.summarise(data)
    whole = encode(golden_2())[0]
    for length in range(0, len(whole), 7):
        with pytest.raises(CorruptTrajectory):
            schema.summarise(whole[:length])


def test_the_rewritten_record_is_read_when_nothing_is_changed() -> None:
    assert episodes_equal(schema.decode(rewritten(), fetcher(encode(small(1))[1])), small(1))


@pytest.mark.parametrize("version", [schema.SCHEMA_VERSION + 1, 65535])
def test_a_later_schema_is_not_called_damage(version: int) -> None:
    with pytest.raises(
        TrajectoryError, match=f"schema version {version}; this tbmm-env reads versions up to {schema.SCHEMA_VERSION}"
    ) as caught:
        schema.decode(rewritten(schema_version=version), fetcher({}))
    assert not isinstance(caught.value, CorruptTrajectory)


@pytest.mark.parametrize(
    "picture",
    [
        b"",
        b"P5\n9 6\n255\n",
        b"P6\n9 6\n255\n",
        b"P6\n0 0\n255\n",
        b"P6\n09 6\n255\n" + bytes(162),
        b"P6\n9 6\n255\n" + bytes(163),
        b"P6\n99999999999 1\n255\n",
    ],
)
def test_an_image_of_another_size_than_it_states_is_refused(picture: bytes) -> None:
    data, blobs = encode(small(1))
    with pytest.raises(CorruptTrajectory, match="binary PPM"):
        schema.decode(data, fetcher({name: picture for name in blobs}))


@pytest.mark.parametrize("text", ["", "theorem 定理", "\ud800 is not Unicode"])
def test_a_certificate_is_any_text(text: str) -> None:
    episode = dataclasses.replace(small(1), certificate_text=text)
    assert episodes_equal(through_bytes(episode), episode)
    assert len(encode(episode)[1]) == 2 + text.startswith("theorem")


def test_a_certificate_that_is_not_utf_8_is_refused() -> None:
    data, blobs = encode(small(1))
    changed = {name: b"\xff" if name.startswith("certificate") else content for name, content in blobs.items()}
    with pytest.raises(CorruptTrajectory, match=r"certificate_text is damaged: certificate [0-9a-f]{64} is not UTF-8"):
        schema.decode(data, fetcher(changed))


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_bytes_raise_nothing_else(data: bytes) -> None:
    with pytest.raises(TrajectoryError):
        schema.decode(data, fetcher({}))


@given(st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_record_with_changed_bytes_is_read_or_refused(data: st.DataObject) -> None:
    whole, blobs = encode(golden())
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))

    def fetch(kind: str, sha256: str) -> bytes:
        try:
            return blobs[f"{kind} {sha256}"]
        except KeyError as error:
            raise CorruptTrajectory("not there") from error

    with contextlib.suppress(TrajectoryError):
        schema.decode(bytes(changed), fetch)


def test_every_shortened_record_is_refused() -> None:
    whole, blobs = encode(golden())
    for length in range(len(whole)):
        with pytest.raises(CorruptTrajectory):
            schema.decode(whole[:length], fetcher(blobs))


MEMORY_PROGRAM = """
import re, sys
from tbmm_env.trajectory import codec
load = codec.load
def peak_kib():
    # not ru_maxrss: that one remembers the size of the process that forked this one
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
before = peak_kib()
for data in (b"\\xdd\\x7f\\xff\\xff\\xff", b"\\xdd\\x00\\x0f\\xff\\xff" * 400 + b"\\xc0" * 2**20):
    for _ in range(20):
        try:
            load(data)
        except codec.Fault:
            continue
        sys.exit("was read")
growth_kib = peak_kib() - before
sys.exit(0 if growth_kib < 20 * 1024 else f"grew by {growth_kib} KiB")
"""


@pytest.mark.parametrize("loader", ["codec.load", "a reader that believes the length"])
def test_length_lies_do_not_cost_memory(loader: str) -> None:
    program = MEMORY_PROGRAM
    if loader != "codec.load":
        program = program.replace(
            "load = codec.load",
            "def load(data):\n"
            "    kept = [None] * min(int.from_bytes(data[1:5], 'big'), 10**7)\n"
            "    return codec.load(data)",
        )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    if loader == "codec.load":
        assert done.returncode == 0, done.stderr
    else:
        assert "grew by" in done.stderr
