"""Every example runs as a user would run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tbmm_env.sandbox.base import Sandbox

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))


@pytest.mark.bwrap
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, bwrap_sandbox: Sandbox) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", path, "--sandbox", "bwrap"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "scored" in done.stdout


def test_there_is_an_example() -> None:
    assert EXAMPLES
