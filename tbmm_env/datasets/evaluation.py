"""Instances that must stay out of training whatever a record says of their seed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tbmm_env.datasets.plain import Plain
from tbmm_env.errors import UsageError
from tbmm_env.record import Instance

_PRIVATE: Final = "private"
_FIELDS: Final = {"task": str, "version": str, "parameters": dict}


def instance_sha256(instance: Instance) -> str:
    """Return what names an instance without its seed: sha256 of task, version and parameters as JSON.

    It hides nothing: who can guess an instance can check the guess.
    """
    return _sha256(instance.task, instance.version, dict(instance.parameters))


def _sha256(task: str, version: str, parameters: dict[str, Any]) -> str:
    value = Plain(Counter()).value({"task": task, "version": version, "parameters": parameters})
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_evaluation(path: Path) -> frozenset[str]:
    """Read evaluation instances and return their sha256, see :func:`instance_sha256`.

    Args:
        path: an ``instance.json``; a folder of them; or the folder that ``tbmm instances make-eval`` made, of which
            the private instances are read. From its public file no instance can be told: commitments are keyed.

    Raises:
        UsageError: nothing can be read there, or it is not an instance.
    """
    if not path.is_dir():
        return frozenset({_read(path)})
    folder = path / _PRIVATE if (path / _PRIVATE).is_dir() else path
    try:
        files = sorted(folder.glob("*.json"))
    except OSError as error:
        raise UsageError(f"--evaluation {folder}: cannot be read: {error}") from error
    if not files:
        raise UsageError(f"--evaluation {folder}: holds no instance (*.json)")
    return frozenset(_read(file) for file in files)


def _read(path: Path) -> str:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"--evaluation {path}: cannot be read as JSON: {error}") from error
    if isinstance(raw, dict) and "commitments" in raw:
        raise UsageError(
            f"--evaluation {path}: from public commitments nobody can tell the instances; give the folder `private`"
            " beside it"
        )
    if not isinstance(raw, dict) or not all(isinstance(raw.get(name), kind) for name, kind in _FIELDS.items()):
        raise UsageError(f"--evaluation {path}: is not an instance.json: task, version and parameters must be there")
    return _sha256(raw["task"], raw["version"], raw["parameters"])
