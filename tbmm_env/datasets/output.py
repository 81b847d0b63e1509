"""Where an export goes: one folder that appears whole or not at all, JSON lines, and images by content."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tbmm_env.datasets.summary import ExportSummary
from tbmm_env.errors import UsageError

SUMMARY_FILE: Final = "summary.json"
ROWS_FILE: Final = "rows.jsonl"
IMAGES_FOLDER: Final = "images"

_LINE_ENDS: Final = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""What ``str.splitlines`` takes for the end of a line and JSON does not escape."""

ImageMode = Literal["files", "data-uri", "none"]
Write = Callable[[Mapping[str, Any]], None]


def dump(value: object, *, indent: int | None = None) -> str:
    """Return strict JSON: any language as it is, no NaN or Infinity, and no line ends of Unicode within a line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent).translate(_LINE_ENDS)


@contextmanager
def folder(out: Path, summary: ExportSummary, *, force: bool) -> Iterator[Path]:
    """Give a folder to write in; at the end ``summary.json`` is added and all of it appears at ``out`` at once.

    Args:
        out: the export's folder; parents are made.
        summary: is written last.
        force: replace an earlier export.

    Raises:
        UsageError: ``out`` exists and ``force`` is not given, or it is not an earlier export, or the system refuses.
    """
    _refuse_existing(out, force)
    work = out.with_name(f".{out.name}.{secrets.token_hex(8)}.partial")
    try:
        work.mkdir(parents=True)
        try:
            yield work
            (work / SUMMARY_FILE).write_text(dump(summary.json(), indent=1) + "\n", encoding="utf-8")
            _move(work, out)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    except OSError as error:
        raise UsageError(f"the export {out} cannot be written: {error}; nothing was left there") from error


def _refuse_existing(out: Path, force: bool) -> None:
    if not (out.exists() or out.is_symlink()):
        return
    if not force:
        raise UsageError(f"{out} exists; name another folder, or replace it with --force")
    empty = out.is_dir() and not any(out.iterdir())
    if out.is_symlink() or not (empty or (out / SUMMARY_FILE).is_file()):
        raise UsageError(f"{out} is not an earlier export ({SUMMARY_FILE} is not in it); --force does not replace it")


def _move(work: Path, out: Path) -> None:
    if not out.exists():
        work.rename(out)
        return
    old = out.with_name(f".{out.name}.{secrets.token_hex(8)}.old")
    out.rename(old)
    try:
        work.rename(out)
    except OSError:
        old.rename(out)
        raise
    shutil.rmtree(old)


@contextmanager
def rows(work: Path, summary: ExportSummary, name: str = ROWS_FILE) -> Iterator[Write]:
    """Give a function that writes one row a line, and count the rows."""
    with (work / name).open("x", encoding="utf-8", newline="\n") as file:
        summary.files.append(name)

        def write(row: Mapping[str, Any]) -> None:
            file.write(dump(row) + "\n")
            summary.rows += 1

        yield write


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a PNG file of uint8 pixels, shape (height, width, 3); the same pixels give the same bytes."""
    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG", compress_level=6)
    return buffer.getvalue()


class Pictures:
    """Turns figures into what a row says of them.

    Args:
        mode: ``files`` writes PNG files named by their sha256 into ``images/`` of the folder; ``data-uri`` puts them
            into the row; ``none`` leaves them out and counts them.
        work: the export's folder.
        summary: where those left out are counted.
    """

    def __init__(self, mode: ImageMode, work: Path, summary: ExportSummary) -> None:
        """Write nothing yet."""
        self.mode: ImageMode = mode
        self._work = work
        self._summary = summary
        self._known: dict[bytes, str] = {}

    def add(self, figures: tuple[NDArray[np.uint8], ...]) -> list[str]:
        """Return a path relative to the folder, or a data URI, for each figure; nothing in mode ``none``."""
        if self.mode == "none":
            self._summary.notes["figures left out, as asked (--images none)"] += len(figures)
            return []
        return [self._one(figure) for figure in figures]

    def _one(self, pixels: NDArray[np.uint8]) -> str:
        if self.mode == "data-uri":
            return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()
        content = np.ascontiguousarray(pixels)
        digest = hashlib.sha256(repr(content.shape).encode() + content.tobytes()).digest()
        name = self._known.get(digest)
        if name is None:
            data = png(content)
            name = self._known[digest] = f"{IMAGES_FOLDER}/{hashlib.sha256(data).hexdigest()}.png"
            path = self._work / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        return name
