"""What every test that starts Ray needs around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

WARNINGS = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves logs and pipes of its daemons open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
"""Ray's own warnings: the ``pytestmark`` of a module."""


@contextmanager
def environment() -> Iterator[None]:
    """Let Ray's workers import the policies beside this file, and send no usage statistics."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        yield
