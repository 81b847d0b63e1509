"""``parquet``: one row an episode, everything that the store has of it, in a schema that does not depend on the data.

What has a fixed form is a typed column; mappings without one (parameters, limits, versions, judgement, sampling
parameters, extra) are JSON text, so that no reader has to unify their keys. Figures are PNG bytes in the form
``{"bytes", "path"}`` that the library ``datasets`` can cast to its Image feature.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tbmm_env.datasets import card, output
from tbmm_env.datasets.columns import identity
from tbmm_env.datasets.plain import Plain
from tbmm_env.datasets.selection import Entry, Selection, choose
from tbmm_env.datasets.summary import ExportSummary
from tbmm_env.errors import UsageError
from tbmm_env.record import Episode, Step
from tbmm_env.trajectory.store import Store

ROWS_PER_FILE: Final = 1000
_BATCH_ROWS: Final = 16
"""Rows in memory at a time, and of one row group: an episode may hold many figures."""


def _arrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError("Parquet needs pyarrow: pip install 'tbmm-env[datasets]'") from error
    return pyarrow, parquet


def schema() -> Any:
    """Return the ``pyarrow.Schema`` of every file.

    Raises:
        UsageError: pyarrow is not installed.
    """
    arrow, _ = _arrow()
    text, integer, number, flag = arrow.string(), arrow.int64(), arrow.float64(), arrow.bool_()
    figures = arrow.list_(arrow.struct([("bytes", arrow.binary()), ("path", text)]))
    step = [
        ("action", text),
        ("terminal", text),
        ("figures", figures),
        ("exit_status", integer),
        ("ending", text),
        ("started_s", number),
        ("wall_s", number),
        ("has_turn", flag),
        ("completion", text),
        ("prompt_token_ids", arrow.list_(integer)),
        ("completion_token_ids", arrow.list_(integer)),
        ("logprobs", arrow.list_(arrow.float32())),
        ("finish_reason", text),
        ("sampling_json", text),
        ("weight_version", text),
    ]
    kinds = {"string": text, "int64": integer, "float64": number}
    columns = [
        *((column["name"], kinds[column["dtype"]]) for column in card.IDENTITY),
        *((name, text) for name in ("job", "budget", "sandbox")),
        ("terminated", flag),
        ("truncated", flag),
        ("started_unix_s", number),
        ("wall_s", number),
        ("artifact_status", text),
        ("artifact", arrow.binary()),
        ("artifact_size_bytes", integer),
        ("artifact_sha256", text),
        ("certificate", text),
        *((f"{name}_json", text) for name in ("parameters", "limits", "versions", "judgement", "extra")),
        ("prompt", text),
        ("prompt_figures", figures),
        ("steps", arrow.list_(arrow.struct(step))),
    ]
    return arrow.schema(columns)


def export_parquet(
    store: Store, out: Path, selection: Selection, *, rows_per_file: int = ROWS_PER_FILE, force: bool = False
) -> ExportSummary:
    """Write episodes as Parquet files ``episodes-00000.parquet``, ...

    Args:
        store: what is read.
        out: folder that is made: the files and ``summary.json``.
        selection: what may enter; evaluation episodes may, in an export of their own.
        rows_per_file: at least 1.
        force: replace an earlier export.

    Raises:
        UsageError: pyarrow is not installed, the selection is empty, or ``out`` cannot be written.
        TrajectoryError: the store cannot be read.
    """
    if rows_per_file < 1:
        raise UsageError(f"--rows-per-file is {rows_per_file}; it must be at least 1")
    schema()
    asked = {"rows_per_file": rows_per_file, "split": selection.split}
    summary = ExportSummary(format="parquet", store=str(store.path), options=asked)
    chosen = choose(store, selection, summary)
    plain = Plain(summary.notes)
    with output.folder(out, summary, force=force) as work:
        files = _Files(work, summary, rows_per_file)
        with files.open():
            for entry, episode in chosen.episodes():
                files.add(_row(entry, episode, plain))
                chosen.put_in(entry)
        card.write(work, "episodes-*.parquet", "parquet: one row an episode")
    return summary


class _Files:
    """Writes rows, batch by batch, and begins another file when one is full."""

    def __init__(self, work: Path, summary: ExportSummary, rows_per_file: int) -> None:
        self._arrow, self._parquet = _arrow()
        self._schema = schema()
        self._work = work
        self._summary = summary
        self._rows_per_file = rows_per_file
        self._rows: list[dict[str, Any]] = []
        self._in_file = 0
        self._writer: Any = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """Finish the last file at the end, and close it whatever happens."""
        try:
            yield
            self._flush()
        finally:
            self._close()

    def add(self, row: dict[str, Any]) -> None:
        """Take one row."""
        self._rows.append(row)
        self._summary.rows += 1
        if len(self._rows) == _BATCH_ROWS or self._in_file + len(self._rows) == self._rows_per_file:
            self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        if self._writer is None:
            name = f"episodes-{len(self._summary.files):05d}.parquet"
            self._writer = self._parquet.ParquetWriter(self._work / name, self._schema, compression="zstd")
            self._summary.files.append(name)
        self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        self._in_file += len(self._rows)
        self._rows = []
        if self._in_file == self._rows_per_file:
            self._close()

    def _close(self) -> None:
        writer, self._writer, self._in_file = self._writer, None, 0
        if writer is not None:
            writer.close()


def _row(entry: Entry, episode: Episode, plain: Plain) -> dict[str, Any]:
    return identity(entry, episode, plain) | {
        "job": plain.text(episode.job),
        "budget": plain.text(episode.budget),
        "sandbox": plain.text(episode.sandbox),
        "terminated": episode.terminated,
        "truncated": episode.truncated,
        "started_unix_s": float(episode.started_unix_s),
        "wall_s": float(episode.wall_s),
        "artifact_status": episode.artifact.status,
        "artifact": episode.artifact.data,
        "artifact_size_bytes": int(episode.artifact.size_bytes),
        "artifact_sha256": plain.text(episode.artifact.sha256),
        "certificate": plain.text(episode.certificate_text),
        "parameters_json": _json(episode.instance.parameters, plain),
        "limits_json": _json(episode.limits, plain),
        "versions_json": _json(episode.versions, plain),
        "judgement_json": _json(episode.judgement, plain),
        "extra_json": _json(episode.extra, plain),
        "prompt": plain.text(episode.first_observation.terminal),
        "prompt_figures": _figures(episode.first_observation.figures),
        "steps": [_step(step, plain) for step in episode.steps],
    }


def _json(value: object, plain: Plain) -> str:
    return output.dump(plain.value(value))


def _figures(figures: tuple[NDArray[np.uint8], ...]) -> list[dict[str, Any]]:
    files = [output.png(figure) for figure in figures]
    return [{"bytes": data, "path": f"{hashlib.sha256(data).hexdigest()}.png"} for data in files]


def _step(step: Step, plain: Plain) -> dict[str, Any]:
    row: dict[str, Any] = {
        "action": plain.text(step.action),
        "terminal": plain.text(step.observation.terminal),
        "figures": _figures(step.observation.figures),
        "exit_status": None if step.exit_status is None else int(step.exit_status),
        "ending": step.ending,
        "started_s": float(step.started_s),
        "wall_s": float(step.wall_s),
        "has_turn": step.turn is not None,
    }
    if step.turn is None:
        return row
    turn = step.turn
    return row | {
        "completion": plain.text(turn.completion),
        "prompt_token_ids": turn.prompt_token_ids,
        "completion_token_ids": turn.completion_token_ids,
        "logprobs": turn.logprobs,
        "finish_reason": plain.text(turn.finish_reason),
        "sampling_json": _json(turn.sampling, plain),
        "weight_version": plain.text(turn.weight_version),
    }
