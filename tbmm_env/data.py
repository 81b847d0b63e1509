"""The one function that finds the data shipped with this package."""

from __future__ import annotations

from pathlib import Path


def data_path(*parts: str) -> Path:
    """Return where a data file or folder lies; it need not exist.

    In an installed wheel data lies in ``tbmm_env/data``, in a checkout at the root of the repository.

    Args:
        parts: path below the data root, for example ``"lean", "TBMM"`` or ``"tasks", "cumcm-2024-a"``.
    """
    package = Path(__file__).resolve().parent
    inside = package / "data"
    root = inside if inside.is_dir() else package.parent
    return root.joinpath(*parts)
