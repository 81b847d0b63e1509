"""Kinds of fields: how one is packed, unpacked and checked in both directions; ``schema`` makes records of them.

Figures, artifacts and certificates are blobs, kept apart: what is packed is a reference to their sha256.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from tbmm_env.trajectory.codec import BlobKind, BlobRef, Fault, check, pack, reference, shown

MAX_RECORD_BYTES: Final = 256 * 1024 * 1024
"""Length of one record before compression, and of one blob."""
MAX_FIGURE_BYTES: Final = MAX_RECORD_BYTES - 64
"""Pixels of one figure; the rest is for the header of its PPM."""

Keep = Callable[[BlobKind, str, Callable[[], bytes]], None]
"""Takes kind, sha256 and bytes of a blob that the record will name; the bytes are made when they are asked for."""
Fetch = Callable[[BlobKind, str], bytes]
"""Gives the bytes back; raises CorruptTrajectory when it cannot."""

_PPM = re.compile(rb"P6\n([1-9][0-9]{0,8}) ([1-9][0-9]{0,8})\n255\n")


class Kind:
    """How one field is packed, unpacked and checked in both directions."""

    def pack(self, value: Any, keep: Keep) -> object:
        """Return what stands in the record; raises Fault for a value of another kind."""
        raise NotImplementedError

    def unpack(self, value: Any, fetch: Fetch) -> Any:
        """Return the value; raises Fault for what ``pack`` would not have made."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Plain(Kind):
    """A value that stands for itself."""

    meaning: str
    fits: Callable[[Any], bool]

    def pack(self, value: Any, keep: Keep) -> object:
        """See :meth:`Kind.pack`."""
        self._refuse_misfit(value)
        return pack(value)

    def unpack(self, value: Any, fetch: Fetch) -> Any:
        """See :meth:`Kind.unpack`."""
        self._refuse_misfit(value)
        check(value)
        return value

    def _refuse_misfit(self, value: object) -> None:
        if not self.fits(value):
            raise Fault(f"{shown(value)} is not {self.meaning}")


@dataclass(frozen=True, slots=True)
class Numbers(Kind):
    """An array of one dimension and one type; read-only when it comes back."""

    dtype: str

    def pack(self, value: Any, keep: Keep) -> object:
        """See :meth:`Kind.pack`."""
        return pack(self._fitting(value))

    def unpack(self, value: Any, fetch: Fetch) -> NDArray[Any]:
        """See :meth:`Kind.unpack`."""
        return self._fitting(value)

    def _fitting(self, value: Any) -> NDArray[Any]:
        if type(value) is not np.ndarray or value.dtype.str != self.dtype or value.ndim != 1:
            what = f"an array {value.dtype.str} {value.shape}" if type(value) is np.ndarray else shown(value)
            raise Fault(f"{what} is not an array {self.dtype} of one dimension")
        return value


class Figure(Kind):
    """An image, kept as the blob of its binary PPM."""

    def pack(self, value: Any, keep: Keep) -> object:
        """See :meth:`Kind.pack`."""
        if type(value) is not np.ndarray or value.dtype != np.uint8 or value.ndim != 3 or value.shape[2] != 3:
            what = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            raise Fault(f"figure is {what}; it must be uint8 (height, width, 3)")
        if not 0 < value.nbytes <= MAX_FIGURE_BYTES:
            raise Fault(f"figure has {value.nbytes} bytes; it must have 1 to {MAX_FIGURE_BYTES} bytes")
        return _keep_blob(keep, "image", ppm_header(value), np.ascontiguousarray(value).data)

    def unpack(self, value: Any, fetch: Fetch) -> NDArray[np.uint8]:
        """See :meth:`Kind.unpack`."""
        if not isinstance(value, BlobRef) or value.kind != "image":
            raise Fault("figure is not a reference to an image")
        data = fetch(value.kind, value.digest.hex())
        header = _PPM.match(data)
        if header is None or len(data) - header.end() != 3 * int(header[1]) * int(header[2]):
            raise Fault(f"image {value.digest.hex()} is not a binary PPM of the size it states")
        return np.frombuffer(data, np.uint8, offset=header.end()).reshape(int(header[2]), int(header[1]), 3)


def ppm_header(pixels: NDArray[np.uint8]) -> bytes:
    """Return what stands before the pixels, uint8 (height, width, 3), in a binary PPM file."""
    height, width, _ = pixels.shape
    return b"P6\n%d %d\n255\n" % (width, height)


class Data(Kind):
    """The bytes of an artifact, kept as a blob unless there are none."""

    def pack(self, value: Any, keep: Keep) -> object:
        """See :meth:`Kind.pack`."""
        if type(value) is not bytes or len(value) > MAX_RECORD_BYTES:
            raise Fault(f"data must be at most {MAX_RECORD_BYTES} bytes")
        return _keep_blob(keep, "artifact", value) if value else value

    def unpack(self, value: Any, fetch: Fetch) -> bytes:
        """See :meth:`Kind.unpack`."""
        if value == b"" and type(value) is bytes:
            return value
        if not isinstance(value, BlobRef) or value.kind != "artifact":
            raise Fault("data is neither empty nor a reference to an artifact")
        return fetch(value.kind, value.digest.hex())


class Certificate(Kind):
    """The Lean text of a certificate, kept as a blob of UTF-8 unless there is none or it is not valid Unicode."""

    def pack(self, value: Any, keep: Keep) -> object:
        """See :meth:`Kind.pack`."""
        if type(value) is not str or len(value) > MAX_RECORD_BYTES // 4:
            raise Fault(f"certificate must be text of at most {MAX_RECORD_BYTES // 4} characters")
        try:
            return _keep_blob(keep, "certificate", value.encode()) if value else value
        except UnicodeEncodeError:
            return pack(value)

    def unpack(self, value: Any, fetch: Fetch) -> str:
        """See :meth:`Kind.unpack`."""
        if isinstance(value, BlobRef) and value.kind == "certificate":
            try:
                return fetch(value.kind, value.digest.hex()).decode()
            except UnicodeDecodeError as error:
                raise Fault(f"certificate {value.digest.hex()} is not UTF-8") from error
        if type(value) is not str:
            raise Fault("certificate is neither text nor a reference to one")
        return value


def _keep_blob(keep: Keep, kind: BlobKind, *parts: bytes | memoryview) -> object:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    keep(kind, digest.hexdigest(), lambda: b"".join(parts))
    return reference(BlobRef(kind, digest.digest()))


def at(part: str, convert: Callable[[Any, Any], Any], value: object, blobs: Keep | Fetch) -> Any:
    """Convert a part of a record; a fault says where it lies."""
    try:
        return convert(value, blobs)
    except Fault as fault:
        raise fault.under(part) from None


@dataclass(frozen=True, slots=True)
class Series(Kind):
    """A tuple of one kind; stored as a list."""

    item: Kind

    def pack(self, value: Any, keep: Keep) -> object:
        """See :meth:`Kind.pack`."""
        if type(value) is not tuple:
            raise Fault(f"{shown(value)} is not a tuple")
        return [at(f"[{index}]", self.item.pack, one, keep) for index, one in enumerate(value)]

    def unpack(self, value: Any, fetch: Fetch) -> tuple[Any, ...]:
        """See :meth:`Kind.unpack`."""
        if type(value) is not list:
            raise Fault(f"{shown(value)} is not a list")
        return tuple(at(f"[{index}]", self.item.unpack, one, fetch) for index, one in enumerate(value))


@dataclass(frozen=True, slots=True)
class Optional(Kind):
    """Another kind, or nothing."""

    item: Kind

    def pack(self, value: Any, keep: Keep) -> object:
        """See :meth:`Kind.pack`."""
        return None if value is None else self.item.pack(value, keep)

    def unpack(self, value: Any, fetch: Fetch) -> Any:
        """See :meth:`Kind.unpack`."""
        return None if value is None else self.item.unpack(value, fetch)


@dataclass(frozen=True, slots=True)
class Record(Kind):
    """A dataclass; stored as a map that names every field of the table.

    Fields of the dataclass that a table of an earlier version does not name come back with their defaults.
    """

    cls: type
    fields: Mapping[str, Kind]
    complaint: Callable[[Any], str] = lambda value: ""
    """Says what is wrong between fields; empty when nothing is."""

    def pack(self, value: Any, keep: Keep) -> dict[str, object]:
        """See :meth:`Kind.pack`."""
        if type(value) is not self.cls:
            raise Fault(f"{shown(value)} is not of type {self.cls.__name__}")
        self._refuse_misfit(value)
        return {name: at(f".{name}", kind.pack, getattr(value, name), keep) for name, kind in self.fields.items()}

    def unpack(self, value: Any, fetch: Fetch) -> Any:
        """See :meth:`Kind.unpack`."""
        if type(value) is not dict or value.keys() != self.fields.keys():
            raise Fault(f"not of type {self.cls.__name__}: its fields must be exactly {', '.join(self.fields)}")
        fields = {name: at(f".{name}", kind.unpack, value[name], fetch) for name, kind in self.fields.items()}
        made = self.cls(**fields)
        self._refuse_misfit(made)
        return made

    def _refuse_misfit(self, value: Any) -> None:
        if said := self.complaint(value):
            raise Fault(said)


def is_integer(value: object) -> bool:
    """Whether a value is an integer of Python or numpy, and no truth value."""
    return type(value) is int or isinstance(value, np.integer)


def choice(vocabulary: Any) -> Plain:
    """Return the kind of the words of a Literal."""
    words = get_args(vocabulary)
    return Plain(f"one of {', '.join(words)}", lambda value: type(value) is str and value in words)


def optional_plain(plain: Plain) -> Plain:
    """Return the kind that also takes None."""
    return Plain(f"{plain.meaning} or nothing", lambda value: value is None or plain.fits(value))


def is_text_map(value: object) -> bool:
    """Whether a value is a mapping whose values are texts."""
    return isinstance(value, Mapping) and all(type(item) is str for item in value.values())
