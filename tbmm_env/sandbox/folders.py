"""Where the content of ``/task`` lies on the host: one folder a box, which the box sees read-only.

A box can so be started before it is known which task it is for. The folder's name is the box's: owner label, number
and backend; so it also tells which boxes there are. Folders of owners that are gone are removed by the owner's watcher
and by the sweep at the next start.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from tbmm_env.errors import SandboxUnavailable
from tbmm_env.sandbox import owner, watch_program

SYSTEM = Path("/var/lib/tbmm/boxes")


def parent() -> Path:
    """Return the folder of all boxes of this user; others may pass it and not list it.

    Raises:
        SandboxUnavailable: if none can be made, or somebody else has taken its name.
    """
    own = Path(tempfile.gettempdir()) / f"tbmm-boxes-{os.geteuid()}"
    refusals = []
    for folder in (SYSTEM, own) if os.geteuid() == 0 else (own,):
        try:
            folder.mkdir(mode=0o711, parents=True, exist_ok=True)
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
                folder.chmod(0o711)
                return folder
            refusals.append(f"{folder} belongs to user {found.st_uid} or is no folder")
        except OSError as error:
            refusals.append(str(error))
    raise SandboxUnavailable("no folder for the files of boxes: " + "; ".join(refusals) + "; set TMPDIR to another one")


class Folder:
    """The files of one box."""

    def __init__(self, name: str) -> None:
        """Make an empty folder; ``name`` begins with the owner's label."""
        self.path = parent() / name
        self.path.mkdir()
        self.path.chmod(0o755)

    def fill(self, files: Mapping[str, bytes]) -> None:
        """Write files that all may read, with plain relative paths, and one time stamp for all."""
        folders = {self.path}
        for name, data in files.items():
            path = self.path / PurePosixPath(name)
            for folder in reversed(path.relative_to(self.path).parents):
                below = self.path / folder
                if below not in folders:
                    below.mkdir()
                    below.chmod(0o755)
                    folders.add(below)
            path.write_bytes(data)
            path.chmod(0o444)
            os.utime(path, (0, 0))
        for folder in folders:
            os.utime(folder, (0, 0))

    def remove(self) -> None:
        """Remove everything; may be called again."""
        shutil.rmtree(self.path, ignore_errors=True)


def names() -> list[str]:
    """Return the names of all boxes of this user that have a folder."""
    with suppress(OSError):
        return sorted(path.name for path in parent().iterdir())
    return []


def sweep() -> int:
    """Remove folders whose owner is gone; return how many were removed."""
    ownerless = [name for name in names() if owner.gone(name.partition(".")[0])]
    for name in ownerless:
        watch_program.kill_bubblewrap(str(parent() / name))
        shutil.rmtree(parent() / name, ignore_errors=True)
    return len(ownerless)
