"""Groups of episodes that are compared with each other, and the advantages of their members."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from tbmm_env.datasets.selection import Chosen, Entry
from tbmm_env.errors import UsageError

STD_EPS: Final = 1e-4
"""Added to the standard deviation before dividing; TRL's value."""

NO_GROUP: Final = "no group id: not of a rollout with groups"
MIXED: Final = "its group mixes instances, score versions, policies, budgets or languages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group.

    Attributes:
        group_id: its name.
        members: by sample id.
        size: how many there should be.
        mean: mean reward, exact.
        std: population standard deviation of the rewards.
    """

    group_id: str
    members: tuple[Entry, ...]
    size: int
    mean: Fraction
    std: float

    @property
    def constant(self) -> bool:
        """Whether all rewards are equal: every advantage is 0 then."""
        return len({entry.reward for entry in self.members}) == 1

    @property
    def incomplete(self) -> bool:
        """Whether members are missing."""
        return len(self.members) < self.size

    def advantage(self, entry: Entry) -> float:
        """Return reward minus mean."""
        return float(entry.reward - self.mean)

    def normalised(self, entry: Entry) -> float:
        """Return reward minus mean, divided by ``std + STD_EPS``."""
        return self.advantage(entry) / (self.std + STD_EPS)


def form(entries: Sequence[Entry], size: int | None) -> tuple[dict[str, Group], dict[str, str]]:
    """Put episodes into their groups.

    Args:
        entries: what was chosen.
        size: members of a whole group, at least 2; None for the size of the greatest group.

    Returns:
        Groups by id; the reason by key of every episode that is in none.

    Raises:
        UsageError: ``size`` is below 2, or a group has more members.
    """
    if size is not None and size < 2:
        raise UsageError(f"--group-size is {size}; it must be at least 2")
    found: defaultdict[str, list[Entry]] = defaultdict(list)
    reasons: dict[str, str] = {}
    for entry in entries:
        if entry.group_id:
            found[entry.group_id].append(entry)
        else:
            reasons[entry.key] = NO_GROUP
    for name, members in list(found.items()):
        if len({(entry.instance, entry.version, entry.kin) for entry in members}) > 1:
            reasons |= {entry.key: MIXED for entry in found.pop(name)}
    greatest = max(map(len, found.values()), default=0)
    if size is not None and greatest > size:
        name = max(found, key=lambda name: len(found[name]))
        raise UsageError(f"group {name!r} has {greatest} members; --group-size is {size}")
    return {name: _group(name, members, size or greatest) for name, members in found.items()}, reasons


def _group(name: str, members: Sequence[Entry], size: int) -> Group:
    rewards = [entry.reward for entry in members]
    mean = sum(rewards, Fraction(0)) / len(rewards)
    return Group(
        group_id=name,
        members=tuple(sorted(members, key=lambda entry: (entry.sample_id, entry.episode_id))),
        size=size,
        mean=mean,
        std=math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards)),
    )


def mark(groups: dict[str, Group], chosen: Chosen) -> None:
    """Count in the notes the groups that are constant or incomplete."""
    notes = chosen.summary.notes
    for note, count in (
        ("groups whose rewards are all equal, marked `constant`", sum(group.constant for group in groups.values())),
        ("groups with members missing, marked `incomplete`", sum(group.incomplete for group in groups.values())),
    ):
        if count:
            notes[note] += count
