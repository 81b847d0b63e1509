"""The 100-record store, and the way to say that a consumer is not there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import export_samples
import pytest

from tbmm_env.trajectory.store import Store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of 100 records; nobody writes to it."""
    return export_samples.build(tmp_path_factory.mktemp("exports") / "store")


@pytest.fixture(scope="session")
def missing(request: pytest.FixtureRequest) -> Callable[[object], NoReturn]:
    """The function ``missing`` of the conftest above; two modules of that name cannot import each other."""
    above = request.config.pluginmanager.get_plugin(str(Path(__file__).parents[1] / "conftest.py"))
    found: Callable[[object], NoReturn] = above.missing
    return found
