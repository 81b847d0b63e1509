"""The 100-record store."""

from __future__ import annotations

import export_samples
import pytest

from tbmm_env.trajectory.store import Store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of 100 records; nobody writes to it."""
    return export_samples.build(tmp_path_factory.mktemp("exports") / "store")
