"""How the tests read exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Rows of an export; a bare NaN or Infinity, text that is not UTF-8 and a line end in a row are errors."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    text = (folder / "rows.jsonl").read_text(encoding="utf-8")
    lines = text.split("\n")
    assert lines.pop() == ""
    assert lines == text.splitlines()
    return [json.loads(line, parse_constant=refuse) for line in lines]
