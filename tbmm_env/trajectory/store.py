"""A folder of episodes that is only ever added to, by any number of processes at once.

Every writer has a segment of its own, named at random, so writers share no file and no lock. Images, artifacts and
certificates are files named by the sha256 of their content: each is there once, however many episodes have it. A
crash loses at most the episode being appended; damage loses the records it touches and is reported, never raised,
while the rest is read. The layout is written down in ``trajectories/README.md``.

What ``append`` returned from is on disk: blob files, the record and the folder entries are flushed with fsync before
it returns (unless the store was opened with ``durable=False``, which leaves that to the system).
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Generic, TypeVar

from tbmm_env.errors import CorruptTrajectory, TrajectoryError
from tbmm_env.record import Episode
from tbmm_env.trajectory import schema, segment
from tbmm_env.trajectory.codec import BlobKind
from tbmm_env.trajectory.disk import flush, on_failure, open_regular, write_file
from tbmm_env.trajectory.schema import Summary
from tbmm_env.trajectory.segment import Finding, FindingKind, finding
from tbmm_env.trajectory.writer import Writer

_KEY = re.compile(r"([0-9a-f]{32})#(0|[1-9][0-9]{0,17})")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SEGMENTS, _UNFINISHED = "segments", "unfinished"
_BLOBS: Final[dict[BlobKind, str]] = {
    "image": "images/{0:.2}/{0}.ppm.zst",
    "artifact": "artifacts/{0}.json",
    "certificate": "certificates/{0}.lean",
}
"""Where the blob with a sha256 lies."""

T = TypeVar("T")
OnFinding = Callable[[Finding], None]
"""Is told what was skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEpisode:
    """An episode and where it lies.

    Attributes:
        key: ``SEGMENT#INDEX``; what ``Store.append`` returned and ``Store.read`` takes.
        episode: what was appended.
        path: the segment file.
        offset_bytes: of the record in it.
    """

    key: str
    episode: Episode
    path: Path
    offset_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSummary:
    """A summary of an episode and where the episode lies; see :class:`StoredEpisode`."""

    key: str
    summary: Summary
    path: Path
    offset_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read(Generic[T]):
    """What was made of a record, and where the record lies."""

    key: str
    value: T
    path: Path
    offset_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPaths:
    """The files of one stored episode: its segment, answer and Lean certificate; None for what it does not have."""

    trajectory: str
    artifact: str | None
    certificate: str | None


class _BlobFault(CorruptTrajectory):
    """A blob is missing, unreadable or not the one of its name."""

    def __init__(self, kind: FindingKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Store:
    """A trajectory store; nothing is created before the first append.

    One object may be shared by threads. A forked child and every other process get a segment of their own. Readers
    need no notice from writers: they see every record whose append had returned when they opened its segment.

    Args:
        path: the store's folder.
        durable: flush to disk before ``append`` returns.
    """

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True) -> None:
        """Remember the folder."""
        self.path = Path(path)
        self._durable = durable
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._sure: set[Path] = set()

    # -------------------------------------------------------------- writing

    def append(self, episode: Episode) -> str:
        """Store an episode and return its key, ``SEGMENT#INDEX``.

        Raises:
            TrajectoryError: when a value cannot be stored, or the system refuses (disk full, no permission). The
                store stays readable and what was appended before stays in it; the next append begins a new segment.
        """
        with self._lock:
            try:
                data = schema.encode(episode, self._keep)
                with on_failure(self._close_writer):
                    writer = self._open_writer()
                    return f"{writer.name}#{writer.append(data)}"
            except OSError as error:
                self._sure.clear()
                raise TrajectoryError(
                    f"cannot append to the trajectory store {self.path}: {error}; the episode is not stored, earlier"
                    " ones are: make room or name another folder"
                ) from error

    def prepare(self) -> None:
        """Make the folder and see that files can be made in it: better known before an episode than after it.

        Raises:
            TrajectoryError: when the system refuses.
        """
        with self._lock:
            try:
                tempfile.TemporaryFile(dir=self._folder(self.path / _SEGMENTS)).close()
            except OSError as error:
                self._sure.clear()
                raise TrajectoryError(
                    f"the trajectory store {self.path} cannot be written: {error}; name another folder"
                ) from error

    def close(self) -> None:
        """End this object's segment; a later append begins another."""
        with self._lock:
            self._close_writer()

    def __enter__(self) -> Store:
        """Return the store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _open_writer(self) -> Writer:
        if self._writer is None or self._writer.pid != os.getpid():
            self._close_writer()
            self._writer = Writer(self._folder(self.path / _SEGMENTS), self._durable)
        return self._writer

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _folder(self, folder: Path) -> Path:
        """Make a folder of the store, if need be, and see to it that it is there after a crash."""
        if folder not in self._sure:
            folder.mkdir(parents=True, exist_ok=True)
            if self._durable:
                for parent in (*folder.relative_to(self.path).parents, Path("..")):
                    flush(self.path / parent)
            self._sure.add(folder)
        return folder

    def _keep(self, kind: BlobKind, sha256: str, content: Callable[[], bytes]) -> None:
        """Put a blob in its place unless it is there, whole."""
        path = self._blob_path(kind, sha256)
        if path in self._sure:
            return
        folder = self._folder(path.parent)
        try:
            self._fetch(kind, sha256)
            if self._durable:
                flush(path)
        except _BlobFault:
            data = segment.deflate(content()) if kind == "image" else content()
            unfinished = self._folder(self.path / _UNFINISHED) / secrets.token_hex(16)
            with on_failure(partial(unfinished.unlink, missing_ok=True)):
                write_file(unfinished, data, self._durable)
                unfinished.replace(path)
        if self._durable:
            flush(folder)
        self._sure.add(path)

    # -------------------------------------------------------------- reading

    def episodes(self, on_finding: OnFinding | None = None) -> Iterator[StoredEpisode]:
        """Yield the episodes, segment by segment in the order of names, in each in the order of appending.

        Args:
            on_finding: is told of everything that is skipped; without it a warning is logged.

        Raises:
            TrajectoryError: when the folder does not exist.
        """
        for read in self._all(on_finding, lambda data: schema.decode(data, self._fetch)):
            yield StoredEpisode(key=read.key, episode=read.value, path=read.path, offset_bytes=read.offset_bytes)

    def summaries(self, on_finding: OnFinding | None = None) -> Iterator[StoredSummary]:
        """Yield what a list needs of every episode; blobs are neither read nor missed, the rest is as ``episodes``."""
        for read in self._all(on_finding, schema.summarise):
            yield StoredSummary(key=read.key, summary=read.value, path=read.path, offset_bytes=read.offset_bytes)

    def jobs(self, on_finding: OnFinding | None = None) -> Iterator[tuple[str, str]]:
        """Yield job and key of every readable record, as ``summaries``; the job is empty where there was none."""
        return ((stored.summary.job, stored.key) for stored in self.summaries(on_finding))

    def read(self, key: str) -> Episode:
        """Return the episode that ``append`` stored under a key.

        Raises:
            CorruptTrajectory: when it is damaged; the message says file and offset.
            TrajectoryError: when there is no such record.
        """
        match = _KEY.fullmatch(key)
        if match is None:
            raise TrajectoryError(f"{key!r} is not a record's key; one looks like {'0' * 32}#0")
        path = self.path / _SEGMENTS / f"{match[1]}.seg"
        try:
            with open_regular(path) as file:
                for item in segment.scan(file, path):
                    if isinstance(item, segment.Frame) and item.index == int(match[2]):
                        found = _read_frame(file, path, item, lambda data: schema.decode(data, self._fetch))
                        if isinstance(found, _Read):
                            return found.value
                        kind = TrajectoryError if found.kind == "version" else CorruptTrajectory
                        raise kind(found.message)
        except OSError as error:
            raise TrajectoryError(f"cannot read record {key}: {error}") from error
        raise TrajectoryError(f"no record {match[2]} in {path}; it was never there or its header is damaged")

    def verify(self, on_read: Callable[[StoredEpisode], None] = lambda stored: None) -> list[Finding]:
        """Read everything, blobs that no record names included, and return what is wrong; empty when all is well.

        A ``torn`` finding in the segment of a running writer is only the record it is writing.

        Args:
            on_read: is given every episode that is whole.

        Raises:
            TrajectoryError: when the folder does not exist.
        """
        findings: list[Finding] = []
        for stored in self.episodes(findings.append):
            on_read(stored)
        for kind, template in _BLOBS.items():
            for path in sorted(self.path.glob("/".join("*" if "{" in part else part for part in template.split("/")))):
                sha256 = path.name.split(".")[0]
                if not _SHA256.fullmatch(sha256) or path != self._blob_path(kind, sha256):
                    findings.append(finding("corrupt", path, 0, f"not the name of an {kind}"))
                    continue
                try:
                    self._fetch(kind, sha256)
                except _BlobFault as fault:
                    findings.append(Finding(kind=fault.kind, path=path, offset_bytes=0, message=str(fault)))
        for path in sorted(self.path.glob(f"{_UNFINISHED}/*")):
            findings.append(finding("leftover", path, 0, "unfinished file; harmless, unless a writer is at it now"))
        return findings

    def artifact_path(self, sha256: str) -> Path:
        """Return where the artifact with this sha256 lies, byte for byte as the agent left it.

        Raises:
            TrajectoryError: when there is none, or the name is not a sha256.
        """
        if not _SHA256.fullmatch(sha256):
            raise TrajectoryError(f"{sha256!r:.80} is not a sha256 of 64 lower-case hex digits")
        path = self._blob_path("artifact", sha256)
        if not path.is_file():
            raise TrajectoryError(f"no artifact {sha256} in the trajectory store {self.path}")
        return path

    def paths(self, key: str) -> StoredPaths:
        """Return where the files of a stored episode lie.

        Raises:
            CorruptTrajectory: when it is damaged.
            TrajectoryError: when there is no such record.
        """
        episode = self.read(key)
        files: dict[BlobKind, str] = {}
        schema.encode(episode, lambda kind, sha256, _: files.update({kind: str(self._blob_path(kind, sha256))}))
        return StoredPaths(
            trajectory=str(self.path / _SEGMENTS / f"{key.split('#')[0]}.seg"),
            artifact=files.get("artifact"),
            certificate=files.get("certificate"),
        )

    def _segments(self) -> list[Path]:
        if not self.path.is_dir():
            raise TrajectoryError(f"there is no trajectory store at {self.path}")
        return sorted(self.path.glob(f"{_SEGMENTS}/*.seg"))

    def _all(self, on_finding: OnFinding | None, convert: Callable[[bytes], T]) -> Iterator[_Read[T]]:
        report = _log if on_finding is None else on_finding
        for path in self._segments():
            for item in _read_segment(path, convert):
                if isinstance(item, Finding):
                    report(item)
                else:
                    yield item

    def _blob_path(self, kind: BlobKind, sha256: str) -> Path:
        return self.path / _BLOBS[kind].format(sha256)

    def _fetch(self, kind: BlobKind, sha256: str) -> bytes:
        """Return the bytes of a blob; raise _BlobFault when they are not there or not those."""
        path = self._blob_path(kind, sha256)
        try:
            with open_regular(path) as file:
                data = file.read(segment.MAX_STORED_BYTES)
            if kind == "image":
                data = segment.inflate(data)
        except FileNotFoundError as error:
            raise _BlobFault("missing", f"{kind} {path} is not there") from error
        except OSError as error:
            raise _BlobFault("unreadable", f"{path}, offset 0 bytes: {error}") from error
        except CorruptTrajectory as error:
            raise _BlobFault("corrupt", f"{path}, offset 0 bytes: {error}") from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise _BlobFault("corrupt", f"{path}, offset 0 bytes: {kind} does not have the sha256 of its name")
        return data


def _read_segment(path: Path, convert: Callable[[bytes], T]) -> Iterator[_Read[T] | Finding]:
    try:
        with open_regular(path) as file:
            for item in segment.scan(file, path):
                yield item if isinstance(item, Finding) else _read_frame(file, path, item, convert)
    except OSError as error:
        yield finding("unreadable", path, 0, f"{error}")


def _read_frame(file: BinaryIO, path: Path, frame: segment.Frame, convert: Callable[[bytes], T]) -> _Read[T] | Finding:
    try:
        value = convert(segment.load(file, frame))
    except _BlobFault as fault:
        return finding(fault.kind, path, frame.offset_bytes, f"{fault}")
    except CorruptTrajectory as error:
        return finding("corrupt", path, frame.offset_bytes, f"{error}")
    except TrajectoryError as error:
        return finding("version", path, frame.offset_bytes, f"{error}")
    return _Read(key=f"{path.stem}#{frame.index}", value=value, path=path, offset_bytes=frame.offset_bytes)


def _log(found: Finding) -> None:
    logging.getLogger(__name__).warning("%s: %s", found.kind, found.message)
