"""What our own backends are known not to keep, by the name of the check, with the reason."""

from __future__ import annotations

BWRAP = {
    "storage.inodes": "bubblewrap cannot say how many files a tmpfs may hold; the memory of their names is limited",
}
BWRAP_ORDINARY_USER = {
    "limits.cpus": "an ordinary user may not write control groups, so there is no processor share",
    "limits.memory-of-all-processes": "an ordinary user may not write control groups; memory is limited by process",
    "faults.of-memory": "without control groups there is no evidence; the program meets an error of its own",
    "faults.of-processes": "without control groups there is no evidence; the command meets an error of its own",
    "limits.death-by-memory": "without control groups there is no limit for all, and no evidence of a kill",
}


def known_gaps(name: str, *, root: bool) -> dict[str, str]:
    """Return what a backend is known not to keep: reasons by names of checks.

    Args:
        name: of the backend; only ``bwrap`` has gaps.
        root: whether the owner of the boxes is root, who may write control groups.
    """
    if name == "bwrap":
        return BWRAP | ({} if root else BWRAP_ORDINARY_USER)
    return {}
