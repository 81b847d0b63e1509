"""Which instance each environment of a vector plays, now and after every episode."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tbmm_env.errors import BadInstance, UsageError


class Schedule:
    """What one environment plays, one episode after another.

    Args:
        seed: of the first episode; None leaves it to the environment.
        stride: added to the seed after each episode.
        instances: instances played in turn instead, as ``options["instance"]`` of the environment.
        group: of the environment.
        sample: its place in the group.
    """

    def __init__(
        self, *, seed: int | None, stride: int, instances: Sequence[Any] = (), group: int = 0, sample: int = 0
    ) -> None:
        self._seed = seed
        self._stride = stride
        self._instances = tuple(instances)
        self._episode = 0
        self._repeat = False
        self.place = {"group": group, "sample": sample}

    @property
    def arguments(self) -> dict[str, Any]:
        """What ``reset`` of the environment is called with."""
        seed = None if self._seed is None else self._seed + self._episode * self._stride
        if not self._instances:
            return {"seed": seed}
        return {"seed": seed, "options": {"instance": self._instances[self._episode % len(self._instances)]}}

    def repeat(self) -> None:
        """Have the next :meth:`advance` stay: the episode was lost."""
        self._repeat = True

    def advance(self) -> None:
        """Go on to the next episode."""
        self._episode += not self._repeat
        self._repeat = False


def schedules(num_envs: int, seed: Any, options: Mapping[str, Any]) -> list[Schedule]:
    """Return the schedule of each environment.

    Args:
        num_envs: environments.
        seed: one integer, or one or None for each environment.
        options: ``group_size`` and ``instances`` of ``reset``.

    Raises:
        UsageError: an option is unknown or out of range.
        BadInstance: a seed is no integer, or there is not one for each environment.
    """
    if unknown := set(options) - {"group_size", "instances"}:
        raise UsageError(f"option {sorted(unknown)[0]!r} is unknown; there are group_size and instances")
    group_size = options.get("group_size", 1)
    if isinstance(group_size, bool) or not isinstance(group_size, int) or group_size < 1 or num_envs % group_size:
        raise UsageError(f"group_size is {group_size!r}; it must divide the {num_envs} environments")
    groups = num_envs // group_size
    seeds = _seeds(num_envs, seed, group_size)
    asked = options.get("instances")
    if asked is not None and (not isinstance(asked, Sequence) or len(asked) != num_envs):
        raise UsageError(f'options["instances"] is {asked!r:.200}; it must be a list of {num_envs} instances')
    return [
        Schedule(
            seed=seeds[number],
            stride=groups if isinstance(seed, int | np.integer) else num_envs,
            instances=_listed(asked[number]) if asked is not None else (),
            group=number // group_size,
            sample=number % group_size,
        )
        for number in range(num_envs)
    ]


def _listed(entry: Any) -> Sequence[Any]:
    if not isinstance(entry, Mapping) and isinstance(entry, Sequence) and not isinstance(entry, str):
        if not entry:
            raise UsageError('an environment has an empty list in options["instances"]')
        return entry
    return (entry,)


def _seeds(num_envs: int, seed: Any, group_size: int) -> list[int | None]:
    try:
        if not isinstance(seed, Sequence | np.ndarray):
            first = operator.index(seed)
            return [first + number // group_size for number in range(num_envs)]
        seeds = [None if one is None else operator.index(one) for one in seed]
    except TypeError as error:
        raise BadInstance(f"seed is {seed!r}; seeds must be integers in [0, 2**63)") from error
    if len(seeds) != num_envs:
        raise BadInstance(f"there are {len(seeds)} seeds; it must be {num_envs}, one for each environment")
    return seeds
