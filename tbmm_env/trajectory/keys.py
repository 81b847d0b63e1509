"""Keys as people type them: a whole one, or as much of it as names one record."""

from __future__ import annotations

import re

from tbmm_env.errors import TrajectoryError, UsageError
from tbmm_env.trajectory import segment
from tbmm_env.trajectory.disk import open_regular
from tbmm_env.trajectory.store import Store

_SHORT = re.compile(r"([0-9a-f]{0,32})(?:#(0|[1-9][0-9]{0,17}))?")
_SHOWN = 5


def resolve(store: Store, short: str) -> str:
    """Return the one key that a short one means.

    Args:
        store: where it is looked for.
        short: the first digits of a segment's name, with or without ``#INDEX``; ``#7`` alone will do where only one
            segment has a record 7. A whole key is returned as it is when its record is there.

    Raises:
        UsageError: when it is not of that form, or means no record, or several.
        TrajectoryError: when the store cannot be read.
    """
    match = _SHORT.fullmatch(short)
    if match is None or not short:
        raise UsageError(f"{short!r:.80} is not a key; one looks like {'0' * 32}#7, or the first digits of it, or #7")
    if not (store.path / "segments").is_dir():
        raise UsageError(f"there is no trajectory store at {store.path}")
    found: list[str] = []
    for path in sorted(store.path.glob(f"segments/{match[1]}*.seg")):
        try:
            with open_regular(path) as file:
                indices = [item.index for item in segment.scan(file, path) if isinstance(item, segment.Frame)]
        except OSError as error:
            raise TrajectoryError(f"cannot read {path}: {error}") from error
        found += [f"{path.stem}#{index}" for index in indices if match[2] in (None, str(index))]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"no record in {store.path} has a key that begins with {short}; `tbmm traj ls` lists them")
    few = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
    raise UsageError(f"{short} means {len(found)} records: {few}; give more of the key")


def shorten(keys: list[str]) -> dict[str, str]:
    """Return for each key the shortest form, of at least 6 digits, that ``resolve`` takes for it alone."""
    names = sorted({key.partition("#")[0] for key in keys})
    length = 6
    while length < 32 and len({name[:length] for name in names}) < len(names):
        length += 1
    return {key: f"{key[:length]}#{key.partition('#')[2]}" for key in keys}
