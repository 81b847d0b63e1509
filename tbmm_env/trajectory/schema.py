"""Episodes as records and back: which fields a record has, of which type, and what is kept apart as a blob.

Both directions go through one table, so that what is written can be read, and bytes from strangers become
exactly an Episode or CorruptTrajectory. Images, artifacts and certificates are blobs: the record names their sha256.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tbmm_env import record
from tbmm_env.errors import CorruptTrajectory, TrajectoryError
from tbmm_env.trajectory.codec import BlobKind, BlobRef, Fault, check, dump, load, pack, reference, shown

SCHEMA_VERSION: Final = 1
MAX_RECORD_BYTES: Final = 256 * 1024 * 1024
"""Length of one record before compression, and of one blob."""
MAX_FIGURE_BYTES: Final = MAX_RECORD_BYTES - 64
"""Pixels of one figure; the rest is for the header of its PPM."""

Keep = Callable[[BlobKind, str, bytes], None]
"""Takes kind, sha256 and bytes of a blob that the record will name."""
Fetch = Callable[[BlobKind, str], bytes]
"""Gives the bytes back; raises CorruptTrajectory when it cannot."""

_PPM = re.compile(rb"P6\n([1-9][0-9]{0,8}) ([1-9][0-9]{0,8})\n255\n")

# ---------------------------------------------------------------- kinds of fields


class _Kind:
    """How one field is packed, unpacked and checked in both directions."""

    def pack(self, value: Any, keep: Keep) -> object:
        raise NotImplementedError

    def unpack(self, value: Any, fetch: Fetch) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _Plain(_Kind):
    """A value that stands for itself."""

    meaning: str
    fits: Callable[[Any], bool]

    def pack(self, value: Any, keep: Keep) -> object:
        self._refuse_misfit(value)
        return pack(value)

    def unpack(self, value: Any, fetch: Fetch) -> Any:
        self._refuse_misfit(value)
        check(value)
        return value

    def _refuse_misfit(self, value: object) -> None:
        if not self.fits(value):
            raise Fault(f"{shown(value)} is not {self.meaning}")


class _Figure(_Kind):
    """An image, kept as the blob of its binary PPM."""

    def pack(self, value: Any, keep: Keep) -> object:
        if type(value) is not np.ndarray or value.dtype != np.uint8 or value.ndim != 3 or value.shape[2] != 3:
            what = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            raise Fault(f"figure is {what}; it must be uint8 (height, width, 3)")
        if not 0 < value.nbytes <= MAX_FIGURE_BYTES:
            raise Fault(f"figure has {value.nbytes} bytes; it must have 1 to {MAX_FIGURE_BYTES} bytes")
        height, width, _ = value.shape
        return _keep_blob(keep, "image", f"P6\n{width} {height}\n255\n".encode() + value.tobytes())

    def unpack(self, value: Any, fetch: Fetch) -> NDArray[np.uint8]:
        if not isinstance(value, BlobRef) or value.kind != "image":
            raise Fault("figure is not a reference to an image")
        data = fetch(value.kind, value.digest.hex())
        header = _PPM.match(data)
        if header is None or len(data) - header.end() != 3 * int(header[1]) * int(header[2]):
            raise Fault(f"image {value.digest.hex()} is not a binary PPM of the size it states")
        return np.frombuffer(data, np.uint8, offset=header.end()).reshape(int(header[2]), int(header[1]), 3)


class _Data(_Kind):
    """The bytes of an artifact, kept as a blob unless there are none."""

    def pack(self, value: Any, keep: Keep) -> object:
        if type(value) is not bytes or len(value) > MAX_RECORD_BYTES:
            raise Fault(f"data must be at most {MAX_RECORD_BYTES} bytes")
        return _keep_blob(keep, "artifact", value) if value else value

    def unpack(self, value: Any, fetch: Fetch) -> bytes:
        if value == b"" and type(value) is bytes:
            return value
        if not isinstance(value, BlobRef) or value.kind != "artifact":
            raise Fault("data is neither empty nor a reference to an artifact")
        return fetch(value.kind, value.digest.hex())


class _Certificate(_Kind):
    """The Lean text of a certificate, kept as a blob of UTF-8 unless there is none or it is not valid Unicode."""

    def pack(self, value: Any, keep: Keep) -> object:
        if type(value) is not str or len(value) > MAX_RECORD_BYTES // 4:
            raise Fault(f"certificate must be text of at most {MAX_RECORD_BYTES // 4} characters")
        try:
            return _keep_blob(keep, "certificate", value.encode()) if value else value
        except UnicodeEncodeError:
            return pack(value)

    def unpack(self, value: Any, fetch: Fetch) -> str:
        if isinstance(value, BlobRef) and value.kind == "certificate":
            try:
                return fetch(value.kind, value.digest.hex()).decode()
            except UnicodeDecodeError as error:
                raise Fault(f"certificate {value.digest.hex()} is not UTF-8") from error
        if type(value) is not str:
            raise Fault("certificate is neither text nor a reference to one")
        return value


def _keep_blob(keep: Keep, kind: BlobKind, data: bytes) -> object:
    digest = hashlib.sha256(data)
    keep(kind, digest.hexdigest(), data)
    return reference(BlobRef(kind, digest.digest()))


def _at(part: str, convert: Callable[[Any, Any], Any], value: object, blobs: Keep | Fetch) -> Any:
    try:
        return convert(value, blobs)
    except Fault as fault:
        raise fault.under(part) from None


@dataclass(frozen=True, slots=True)
class _Series(_Kind):
    """A tuple of one kind; stored as a list."""

    item: _Kind

    def pack(self, value: Any, keep: Keep) -> object:
        if type(value) is not tuple:
            raise Fault(f"{shown(value)} is not a tuple")
        return [_at(f"[{index}]", self.item.pack, one, keep) for index, one in enumerate(value)]

    def unpack(self, value: Any, fetch: Fetch) -> tuple[Any, ...]:
        if type(value) is not list:
            raise Fault(f"{shown(value)} is not a list")
        return tuple(_at(f"[{index}]", self.item.unpack, one, fetch) for index, one in enumerate(value))


@dataclass(frozen=True, slots=True)
class _Record(_Kind):
    """A dataclass; stored as a map that names every field."""

    cls: type
    fields: Mapping[str, _Kind]

    def pack(self, value: Any, keep: Keep) -> dict[str, object]:
        if type(value) is not self.cls:
            raise Fault(f"{shown(value)} is not of type {self.cls.__name__}")
        return {name: _at(f".{name}", kind.pack, getattr(value, name), keep) for name, kind in self.fields.items()}

    def unpack(self, value: Any, fetch: Fetch) -> Any:
        if type(value) is not dict or value.keys() != self.fields.keys():
            raise Fault(f"not of type {self.cls.__name__}: its fields must be exactly {', '.join(self.fields)}")
        return self.cls(
            **{name: _at(f".{name}", kind.unpack, value[name], fetch) for name, kind in self.fields.items()}
        )


# ---------------------------------------------------------------- the table


def _is_integer(value: object) -> bool:
    return type(value) is int or isinstance(value, np.integer)


def _choice(vocabulary: Any) -> _Plain:
    words = get_args(vocabulary)
    return _Plain(f"one of {', '.join(words)}", lambda value: type(value) is str and value in words)


def _optional(plain: _Plain) -> _Plain:
    return _Plain(f"{plain.meaning} or nothing", lambda value: value is None or plain.fits(value))


def _is_text_map(value: object) -> bool:
    return isinstance(value, Mapping) and all(type(item) is str for item in value.values())


_TEXT = _Plain("text", lambda value: type(value) is str)
_FLAG = _Plain("true or false", lambda value: type(value) is bool)
_INTEGER = _Plain("an integer", _is_integer)
_NUMBER = _Plain("a number", lambda value: _is_integer(value) or isinstance(value, float | np.floating))
_MAPPING = _Plain("a mapping", lambda value: isinstance(value, Mapping))
_TEXTS = _Plain("a mapping of texts", _is_text_map)

_INSTANCE = _Record(
    record.Instance, {"task": _TEXT, "version": _TEXT, "seed": _optional(_INTEGER), "parameters": _MAPPING}
)
_OBSERVATION = _Record(record.Observation, {"terminal": _TEXT, "figures": _Series(_Figure())})
_STEP = _Record(
    record.Step,
    {
        "action": _TEXT,
        "observation": _OBSERVATION,
        "exit_status": _optional(_INTEGER),
        "ending": _optional(_choice(record.Ending)),
        "started_s": _NUMBER,
        "wall_s": _NUMBER,
    },
)
_ARTIFACT = _Record(
    record.Artifact,
    {"status": _choice(record.FileStatus), "data": _Data(), "size_bytes": _INTEGER, "sha256": _TEXT},
)
_EPISODE_1 = _Record(
    record.Episode,
    {
        "episode_id": _TEXT,
        "instance": _INSTANCE,
        "budget": _TEXT,
        "language": _choice(record.Language),
        "sandbox": _TEXT,
        "limits": _MAPPING,
        "versions": _TEXTS,
        "first_observation": _OBSERVATION,
        "steps": _Series(_STEP),
        "artifact": _ARTIFACT,
        "judgement": _MAPPING,
        "certificate_text": _Certificate(),
        "terminated": _FLAG,
        "truncated": _FLAG,
        "started_unix_s": _NUMBER,
        "wall_s": _NUMBER,
        "extra": _MAPPING,
    },
)
_EPISODES: Final[Mapping[int, _Record]] = {1: _EPISODE_1}
"""The table of every schema version ever written; entries are added, never changed."""

# ---------------------------------------------------------------- episodes


def encode(episode: record.Episode, keep: Keep) -> bytes:
    """Return the record of an episode.

    Args:
        episode: what is to be stored; in its free mappings exactly None, bool, int, float, str, bytes, list, tuple,
            mappings with text keys, Fraction, numpy numbers and numpy arrays of numbers are taken.
        keep: is given every image (as a binary PPM), the artifact's bytes and the certificate's text, repeated ones
            too, before the record that names them is returned.

    Raises:
        TrajectoryError: when a value is of another type, or the record is over MAX_RECORD_BYTES.
    """
    try:
        packed = _EPISODES[SCHEMA_VERSION].pack(episode, keep)
    except Fault as fault:
        raise TrajectoryError(f"episode{fault.path} cannot be stored: {fault}") from fault
    data = dump({"schema_version": SCHEMA_VERSION, **packed})
    if len(data) > MAX_RECORD_BYTES:
        raise TrajectoryError(
            f"episode {shown(episode.episode_id)} has {len(data)} bytes; the limit is {MAX_RECORD_BYTES} bytes"
        )
    return data


def decode(data: bytes, fetch: Fetch) -> record.Episode:
    """Return the episode of a record; its arrays are read-only, mappings come back as dict.

    Args:
        data: what ``encode`` returned.
        fetch: returns the bytes of a blob; asked once for each.

    Raises:
        CorruptTrajectory: when the bytes are not a record of a known schema version.
        TrajectoryError: when the record was written under a later schema version.
    """
    seen: dict[tuple[BlobKind, str], bytes] = {}

    def fetch_once(kind: BlobKind, sha256: str) -> bytes:
        if (kind, sha256) not in seen:
            seen[kind, sha256] = fetch(kind, sha256)
        return seen[kind, sha256]

    try:
        value = load(data)
        version = value.pop("schema_version", None) if type(value) is dict else None
        if type(version) is not int or not 1 <= version < 2**16:
            raise Fault("not a map with a schema_version from 1 to 65535")
        if version in _EPISODES:
            return cast(record.Episode, _EPISODES[version].unpack(value, fetch_once))
    except Fault as fault:
        raise CorruptTrajectory(f"record{fault.path} is damaged: {fault}") from fault
    raise TrajectoryError(
        f"record has schema version {version}; this tbmm-env reads versions up to {SCHEMA_VERSION}: use a later one"
    )
