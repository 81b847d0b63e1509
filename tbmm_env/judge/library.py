"""The compiled Lean library on disk: built on first use, in a folder that only this user can write.

The folder is ``$TBMM_CACHE``, else ``$XDG_CACHE_HOME/tbmm``, else ``~/.cache/tbmm``. A build is made aside and renamed
into place, so that any number of processes may start at once; its manifest holds the hash of every compiled module.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tbmm_env.data import data_path
from tbmm_env.errors import JudgeError, LeanUnavailable

_IMPORT = re.compile(r"^import (TBMM[\w.]*)$", re.MULTILINE)
_MANIFEST = "manifest.json"

CompileModule = Callable[[Path, Path, Path], None]
"""Compiles a source below a root to a target; imported modules lie beside the target."""


def compiled_library(version: str, compile_module: CompileModule) -> Path:
    """Return the folder of compiled modules for a Lean version, building it when it is absent or damaged.

    Args:
        version: Lean's version and options; part of the key.
        compile_module: compiles one module.

    Raises:
        LeanUnavailable: the cache folder cannot be made, or somebody else could write to it.
        JudgeError: the sources are missing or do not compile.
    """
    key = hashlib.sha256(version.encode())
    for path in modules():
        key.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return _library(cache_folder() / "lean" / key.hexdigest()[:32], compile_module)


def modules() -> tuple[Path, ...]:
    """Return our Lean sources, imported ones first.

    Raises:
        JudgeError: a source is missing.
    """
    root = data_path("lean")
    order: list[Path] = []

    def visit(module: str) -> None:
        path = root.joinpath(*module.split(".")).with_suffix(".lean")
        if not path.is_file():
            raise JudgeError(f"{path} is missing; the installation of tbmm-env is damaged")
        for imported in _IMPORT.findall(path.read_text("utf-8")):
            visit(imported)
        if path not in order:
            order.append(path)

    visit("TBMM")
    return tuple(order)


def cache_folder() -> Path:
    """Return this user's cache folder, made and safe.

    Raises:
        LeanUnavailable: it cannot be made, or somebody else could write to it.
    """
    named = os.environ.get("TBMM_CACHE", "")
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(named) if named else (Path(base) if base else Path.home() / ".cache") / "tbmm"
    if not folder.is_absolute() or os.pathsep in str(folder):
        raise LeanUnavailable(f"the cache folder {folder} is not an absolute path without ':'; set TBMM_CACHE to one")
    _make_private(folder)
    return folder


def _make_private(folder: Path) -> None:
    way_out = "set TBMM_CACHE to a folder that only you can write"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise LeanUnavailable(f"the cache folder {folder} cannot be made: {error}; {way_out}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise LeanUnavailable(f"the cache folder {folder} is not a folder itself; {way_out}")
    if found.st_uid != os.geteuid():
        raise LeanUnavailable(f"the cache folder {folder} belongs to user {found.st_uid}, not to you; {way_out}")
    if found.st_mode & 0o022:
        mode = stat.S_IMODE(found.st_mode)
        raise LeanUnavailable(f"the cache folder {folder} has mode {mode:o}, so others can write to it; {way_out}")
    for parent in folder.parents:
        mode = parent.stat().st_mode
        if mode & 0o002 and not mode & stat.S_ISVTX:
            raise LeanUnavailable(f"everybody can replace what is in {parent}, the cache folder included; {way_out}")


def _library(target: Path, compile_module: CompileModule) -> Path:
    _make_private(target.parent)
    if _intact(target):
        return target
    with _lock(target.parent / "lock"):
        if _intact(target):
            return target
        with tempfile.TemporaryDirectory(prefix="building-", dir=target.parent) as aside:
            built = Path(aside, "built")
            built.mkdir(mode=0o700)
            _build(built, compile_module)
            with suppress(FileNotFoundError):
                target.rename(Path(aside, "damaged"))
            built.rename(target)
    return target


def _build(folder: Path, compile_module: CompileModule) -> None:
    root = data_path("lean")
    manifest = {}
    for source in modules():
        name = str(source.relative_to(root).with_suffix(".olean"))
        (folder / name).parent.mkdir(exist_ok=True)
        compile_module(source, root, folder / name)
        manifest[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), "utf-8")


def _intact(folder: Path) -> bool:
    """Whether every module is there, ours and as it was compiled."""
    try:
        if folder.lstat().st_uid != os.geteuid() or not stat.S_ISDIR(folder.lstat().st_mode):
            return False
        manifest = json.loads((folder / _MANIFEST).read_text("utf-8"))
        return bool(manifest) and all(
            hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for name, digest in manifest.items()
        )
    except (OSError, ValueError):
        return False


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
