"""The 100-record store, and its exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import export_samples
import pytest

from tbmm_env.trajectory.store import Store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of 100 records; nobody writes to it."""
    return export_samples.build(tmp_path_factory.mktemp("exports") / "store")


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Rows of an export; a bare NaN or Infinity, or text that is not UTF-8, is an error."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    lines = (folder / "rows.jsonl").read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    return [json.loads(line, parse_constant=refuse) for line in lines]
