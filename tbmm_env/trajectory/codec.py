"""Values as msgpack bytes and back, equal; the only module that touches msgpack.

The layout is written down in ``trajectories/README.md``. What msgpack lacks (integers beyond 64 bits, fractions,
lone surrogates, tuples, numpy values) travels in the closed table of extension types below; nothing is unpickled.
Bytes from strangers are walked once without building anything, so that no stated length is believed before its
content was seen. Which fields a record has is said in ``schema``.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final, Literal, cast

import msgpack  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

MAX_INTEGER_BYTES: Final = 8192
"""Length of one integer, so that arithmetic on it stays cheap."""
MAX_DEPTH: Final = 64
"""Nesting of containers inside one field."""

INTEGER, FRACTION, TEXT, ARRAY, SCALAR, TUPLE, IMAGE, ARTIFACT, CERTIFICATE = range(1, 10)
"""The extension types; the table is closed."""

DTYPES: Final = frozenset(
    order + code
    for codes, orders in (("b1 i1 u1", "|"), ("i2 i4 i8 u2 u4 u8 f2 f4 f8 c8 c16", "<>"))
    for code in codes.split()
    for order in orders
)

BlobKind = Literal["image", "artifact", "certificate"]
_BLOB_CODES: Final[dict[BlobKind, int]] = {"image": IMAGE, "artifact": ARTIFACT, "certificate": CERTIFICATE}

_SURROGATE = re.compile("[\ud800-\udfff]")


class Fault(Exception):
    """A value that cannot be packed or unpacked; never leaves this package.

    Attributes:
        path: where in the record; grows while the exception rises.
    """

    def __init__(self, message: str) -> None:
        """Start at the value itself."""
        super().__init__(message)
        self.path = ""

    def under(self, part: str) -> Fault:
        """Return the same fault, one container further out."""
        self.path = part + self.path
        return self


@dataclass(frozen=True, slots=True)
class BlobRef:
    """A reference, as it stands in a record, to bytes kept apart under their sha256."""

    kind: BlobKind
    digest: bytes


def shown(value: object) -> str:
    """Return a short word for a value of any size in a message."""
    return f"{value[:40]!r}" if isinstance(value, str) else f"a {type(value).__name__}"


# ---------------------------------------------------------------- to msgpack


def dump(packed: object) -> bytes:
    """Return the msgpack bytes of what ``pack`` and ``reference`` returned."""
    return cast(bytes, msgpack.packb(packed, strict_types=True))


def _extension(code: int, value: object) -> object:
    return msgpack.ExtType(code, value if isinstance(value, bytes) else dump(value))


def reference(blob: BlobRef) -> object:
    """Return what stands in a record for bytes kept apart."""
    return _extension(_BLOB_CODES[blob.kind], blob.digest)


def _pack_integer(value: int, _depth: int = 0) -> object:
    if -(2**63) <= value < 2**64:
        return value
    length = value.bit_length() // 8 + 1
    if length > MAX_INTEGER_BYTES:
        raise Fault(f"integer of {length} bytes; the limit is {MAX_INTEGER_BYTES} bytes")
    return _extension(INTEGER, value.to_bytes(length, "big", signed=True))


def _pack_text(value: str, _depth: int = 0) -> object:
    if value.isascii() or not _SURROGATE.search(value):
        return value
    return _extension(TEXT, value.encode("utf-8", "surrogatepass"))


def _pack_fraction(value: Fraction, _depth: int) -> object:
    return _extension(FRACTION, [_pack_integer(value.numerator), _pack_integer(value.denominator)])


def _dtype_code(dtype: np.dtype[Any]) -> str:
    if dtype.str not in DTYPES:
        raise Fault(f"numpy type {dtype.str!r} is not storable; use booleans, integers, floats or complex numbers")
    return dtype.str


def _pack_array(value: NDArray[Any], _depth: int) -> object:
    return _extension(ARRAY, [_dtype_code(value.dtype), list(value.shape), value.tobytes()])


def _pack_scalar(value: np.generic, _depth: int) -> object:
    return _extension(SCALAR, [_dtype_code(value.dtype), value.tobytes()])


def _pack_list(value: list[object] | tuple[object, ...], depth: int) -> object:
    packed = []
    for index, item in enumerate(value):
        try:
            packed.append(pack(item, depth + 1))
        except Fault as fault:
            raise fault.under(f"[{index}]") from None
    return packed


def _pack_tuple(value: tuple[object, ...], depth: int) -> object:
    return _extension(TUPLE, _pack_list(value, depth))


def _pack_mapping(value: Mapping[object, object], depth: int) -> object:
    packed = {}
    for key, item in value.items():
        if type(key) is not str:
            raise Fault(f"key {shown(key)} is of type {type(key).__name__}; keys must be str")
        try:
            packed[_pack_text(key)] = pack(item, depth + 1)
        except Fault as fault:
            raise fault.under(f".{key}") from None
    return packed


_PACKERS: Final[dict[type, Callable[[Any, int], object]]] = {
    type(None): lambda value, _depth: value,
    bool: lambda value, _depth: value,
    float: lambda value, _depth: value,
    bytes: lambda value, _depth: value,
    int: _pack_integer,
    str: _pack_text,
    Fraction: _pack_fraction,
    np.ndarray: _pack_array,
    list: _pack_list,
    tuple: _pack_tuple,
    dict: _pack_mapping,
}


def pack(value: Any, depth: int = 0) -> object:
    """Return what msgpack packs for ``value``; only exact types are taken, so that they come back as they were."""
    if depth > MAX_DEPTH:
        raise Fault(f"more than {MAX_DEPTH} containers inside each other")
    packer = _PACKERS.get(type(value))
    if packer is None:
        if isinstance(value, np.generic):
            packer = _pack_scalar
        elif isinstance(value, Mapping):
            packer = _pack_mapping
        else:
            raise Fault(f"a {type(value).__name__} is not storable")
    return packer(value, depth)


# ---------------------------------------------------------------- from msgpack


def load(data: bytes, nesting: int = 0) -> object:
    """Return the one value in ``data``; memory stays within a small multiple of its length."""
    if nesting > MAX_DEPTH:
        raise Fault(f"more than {MAX_DEPTH} extension values inside each other")
    with _faults():
        _walk(data)
        return msgpack.unpackb(
            data, strict_map_key=False, object_pairs_hook=_unpack_mapping, ext_hook=partial(_unpack_extension, nesting)
        )


def load_some(data: bytes, wanted: Collection[str], counted: Collection[str]) -> dict[str, object]:
    """Return the map in ``data`` without building most of it.

    Args:
        data: bytes of a map with text keys.
        wanted: keys whose values are built.
        counted: keys whose values are lists, of which only the length is returned.

    Returns:
        All keys in order; the value of any other key is None.
    """
    with _faults():
        _walk(data)
        unpacker = msgpack.Unpacker(
            max_buffer_size=max(len(data), 1),
            strict_map_key=False,
            object_pairs_hook=_unpack_mapping,
            ext_hook=partial(_unpack_extension, 0),
        )
        unpacker.feed(data)
        found: dict[str, object] = {}
        for _ in range(unpacker.read_map_header()):
            key = unpacker.unpack()
            if type(key) is not str or key in found:
                raise Fault(f"key {shown(key)} is repeated or not text")
            if key in wanted:
                found[key] = unpacker.unpack()
            elif key in counted:
                found[key] = count = unpacker.read_array_header()
                for _ in range(count):
                    unpacker.skip()
            else:
                found[key] = None
                unpacker.skip()
        return found


@contextlib.contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except (ValueError, msgpack.OutOfData) as error:
        raise Fault(f"not msgpack: {error or type(error).__name__}") from error


def _walk(data: bytes) -> None:
    """See that there is one value, before anything is built."""
    walk = msgpack.Unpacker(max_buffer_size=max(len(data), 1))
    walk.feed(data)
    walk.skip()
    if walk.tell() != len(data):
        raise Fault(f"{len(data) - walk.tell()} trailing bytes after the value")


def _unpack_mapping(pairs: list[tuple[object, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if type(key) is not str or key in found:
            raise Fault(f"key {shown(key)} is repeated or not text")
        found[key] = value
    return found


def _parts(data: bytes, nesting: int, *types: type) -> list[Any]:
    parts = load(data, nesting)
    if type(parts) is not list or [type(part) for part in parts] != list(types):
        raise Fault(f"extension value does not consist of {', '.join(kind.__name__ for kind in types)}")
    return parts


def _unpack_extension(nesting: int, code: int, data: bytes) -> object:
    opener = _OPENERS.get(code)
    if opener is None:
        raise Fault(f"extension type {code} is not in the table 1..{len(_OPENERS)}")
    return opener(data, nesting + 1)


def _open_integer(data: bytes, _nesting: int) -> int:
    value = int.from_bytes(data[: MAX_INTEGER_BYTES + 1], "big", signed=True)
    if -(2**63) <= value < 2**64 or len(data) != value.bit_length() // 8 + 1 or len(data) > MAX_INTEGER_BYTES:
        raise Fault(f"integer of {len(data)} bytes is not in its shortest form, or over {MAX_INTEGER_BYTES} bytes")
    return value


def _open_text(data: bytes, _nesting: int) -> str:
    text = data.decode("utf-8", "surrogatepass")
    if not _SURROGATE.search(text):
        raise Fault("text without lone surrogates must be plain msgpack text")
    return text


def _open_fraction(data: bytes, nesting: int) -> Fraction:
    numerator, denominator = _parts(data, nesting, int, int)
    if denominator < 1 or (value := Fraction(numerator, denominator)).denominator != denominator:
        raise Fault("fraction is not in lowest terms with a positive denominator")
    return value


def _dtype_of(code: str) -> np.dtype[Any]:
    if code not in DTYPES:
        raise Fault(f"numpy type {code!r:.40} is not in the table")
    return np.dtype(code)


def _open_array(data: bytes, nesting: int) -> NDArray[Any]:
    code, shape, content = _parts(data, nesting, str, list, bytes)
    if any(type(size) is not int or not 0 <= size < 2**63 for size in shape):
        raise Fault("array shape is not a list of lengths")
    return np.frombuffer(content, _dtype_of(code)).reshape(shape)


def _open_scalar(data: bytes, nesting: int) -> object:
    code, content = _parts(data, nesting, str, bytes)
    return np.frombuffer(content, _dtype_of(code)).reshape(())[()]


def _open_tuple(data: bytes, nesting: int) -> tuple[object, ...]:
    items = load(data, nesting)
    if type(items) is not list:
        raise Fault("tuple does not hold a list")
    return tuple(items)


def _open_blob(kind: BlobKind, data: bytes, _nesting: int) -> BlobRef:
    if len(data) != 32:
        raise Fault(f"reference to {kind} has {len(data)} bytes; a sha256 has 32")
    return BlobRef(kind, data)


_OPENERS: Final[dict[int, Callable[[bytes, int], object]]] = {
    INTEGER: _open_integer,
    FRACTION: _open_fraction,
    TEXT: _open_text,
    ARRAY: _open_array,
    SCALAR: _open_scalar,
    TUPLE: _open_tuple,
    **{code: partial(_open_blob, kind) for kind, code in _BLOB_CODES.items()},
}


def check(value: object, depth: int = 0) -> None:
    """Refuse what the writer would not have written: stray references, timestamps, too deep nesting."""
    if depth > MAX_DEPTH:
        raise Fault(f"more than {MAX_DEPTH} containers inside each other")
    if isinstance(value, list | tuple):
        for item in value:
            check(item, depth + 1)
    elif isinstance(value, dict):
        for item in value.values():
            check(item, depth + 1)
    elif type(value) not in _PACKERS and not isinstance(value, np.generic):
        raise Fault(f"a {type(value).__name__} does not belong here")
