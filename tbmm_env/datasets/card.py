"""The dataset card of an export: with it ``datasets.load_dataset(OUT)`` knows which files are rows and their types.

Without stated types the library takes those of the first megabytes of a file, and fails on a column that is empty there
and not later. The front matter is YAML; JSON is YAML.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tbmm_env.datasets.output import dump

CARD_FILE: Final = "README.md"

Feature = dict[str, Any]


def of(kind: str, *names: str) -> list[Feature]:
    """Return columns of one type: ``string``, ``int64``, ``float64``, ``bool`` or ``json``."""
    return [{"name": name, "dtype": kind} for name in names]


def lists(kind: str, *names: str) -> list[Feature]:
    """Return columns that are lists of one type."""
    return [{"name": name, "list": kind} for name in names]


def struct(name: str, fields: list[Feature]) -> Feature:
    """Return a column of objects."""
    return {"name": name, "struct": fields}


ORIGIN: Final[list[Feature]] = [
    *of("string", "task", "task_version", "panel_version", "judge_version"),
    *of("int64", "instance_seed"),
    *of("string", "instance_sha256", "language", "policy"),
]
"""Types of :func:`tbmm_env.datasets.columns.origin`."""
IDENTITY: Final[list[Feature]] = [
    *of("string", "episode_id"),
    *ORIGIN,
    *of("string", "group_id"),
    *of("int64", "sample_id"),
    *of("string", "outcome"),
    *of("float64", "reward"),
    *of("string", "reward_exact"),
]
"""Types of :func:`tbmm_env.datasets.columns.identity`."""


def write(work: Path, data_files: str, title: str, features: list[Feature] | None = None) -> None:
    """Write the card of an export into its folder.

    Args:
        work: the folder.
        data_files: name or pattern of the files with rows.
        title: what the export is.
        features: types of the columns; None where the files state them.
    """
    front: dict[str, Any] = {
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": data_files}]}]
    }
    if features is not None:
        front["dataset_info"] = {"features": features}
    text = f"---\n{dump(front)}\n---\n\n# {title}\n\nWhat went in and what was left out, and why: `summary.json`.\n"
    (work / CARD_FILE).write_text(text, encoding="utf-8")
