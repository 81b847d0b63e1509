"""One judge for the whole corpus."""

from __future__ import annotations

from collections.abc import Iterator

import attack_cases as cases
import pytest

from tbmm_env.judge.judge import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """The real pipeline with its real limits."""
    with Judge(cases.TASK, artifact_bytes=cases.BYTES) as made:
        yield made
