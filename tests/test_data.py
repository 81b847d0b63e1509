"""Data is found in a checkout and in an installed wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tbmm_env import data


def test_in_a_checkout() -> None:
    root = Path(data.__file__).parents[1]
    assert data.data_path("lean", "TBMM.lean") == root / "lean" / "TBMM.lean"
    assert data.data_path("lean", "TBMM.lean").is_file()


def test_in_a_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tbmm_env" / "data").mkdir(parents=True)
    monkeypatch.setattr(data, "__file__", str(tmp_path / "tbmm_env" / "data.py"))
    assert data.data_path("tasks", "x") == tmp_path / "tbmm_env" / "data" / "tasks" / "x"
    assert data.data_path() == tmp_path / "tbmm_env" / "data"
