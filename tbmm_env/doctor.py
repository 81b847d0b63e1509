"""The self-check of a machine: can an episode run here, and if not, what is the way out."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass

from tbmm_env import __version__, tasks
from tbmm_env.errors import TbmmError
from tbmm_env.judge import lean
from tbmm_env.record import JsonValue
from tbmm_env.sandbox import image as images
from tbmm_env.sandbox.bubblewrap import BubblewrapSandbox
from tbmm_env.sandbox.docker import DockerSandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One finding: ``required`` ones must be ok for an episode to run; one sandbox of several is enough."""

    name: str
    ok: bool
    required: bool
    detail: str


def check_json(check: Check) -> dict[str, JsonValue]:
    """Return a check as a JSON object."""
    return {"name": check.name, "ok": check.ok, "required": check.required, "detail": check.detail}


def _attempt(name: str, probe: Callable[[], str], *, required: bool) -> Check:
    try:
        return Check(name=name, ok=True, required=required, detail=probe())
    except TbmmError as error:
        return Check(name=name, ok=False, required=required, detail=str(error))


def _lean() -> str:
    found = lean.probe()
    return f"{found.version}\nat {found.program}"


def _probing(sandbox: DockerSandbox | BubblewrapSandbox) -> Callable[[], str]:
    def probe() -> str:
        sandbox.probe()
        return "\n".join(["can start boxes; not promised:", *(f"- {gap}" for gap in sandbox.known_gaps)])

    return probe


def run() -> list[Check]:
    """Probe Python, tasks, Lean, the image and every sandbox; nothing is changed on the machine but caches."""
    checks = [
        Check(
            name="tbmm-env",
            ok=True,
            required=True,
            detail=f"{__version__}, Python {platform.python_version()}, {platform.system()} {platform.release()}",
        ),
        _attempt("tasks", lambda: ", ".join(tasks.load(name).id for name in tasks.task_ids()), required=True),
        _attempt("lean", _lean, required=True),
        _attempt("image", lambda: f"{(found := images.find()).key} at {found.path}", required=True),
    ]
    sandboxes = (DockerSandbox(), BubblewrapSandbox())
    checks += [_attempt(f"sandbox {sandbox.name}", _probing(sandbox), required=False) for sandbox in sandboxes]
    return checks


def healthy(checks: list[Check]) -> bool:
    """Whether every required check and at least one sandbox is ok."""
    sandboxes = [check.ok for check in checks if check.name.startswith("sandbox ")]
    return all(check.ok for check in checks if check.required) and any(sandboxes)
