"""What an export says of itself: what went in, what was left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from tbmm_env.judge.numeral import exact_text
from tbmm_env.record import JsonValue


@dataclass(slots=True, kw_only=True)
class ExportSummary:
    """The account of one export; every record of the store is either in ``episodes`` or in ``left_out``.

    Attributes:
        format: ``rs``, ``sft``, ``grpo``, ``turns``, ``parquet`` or ``atif``.
        store: path of the store.
        options: what was asked for.
        read: records read, damaged ones included.
        episodes: how many went in.
        rows: how many rows, samples or files they became.
        left_out: number of records by reason.
        outcomes: episodes that went in, by outcome.
        versions: episodes that went in, by task and score version.
        notes: what was changed or marked on the way, with counts.
        files: what was written, relative to the folder, images not among them.
    """

    format: str
    store: str
    options: Mapping[str, JsonValue]
    read: int = 0
    episodes: int = 0
    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    versions: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    files: list[str] = field(default_factory=list)
    _rewards: Fraction = Fraction(0)

    def put_in(self, outcome: str, version: str, reward: Fraction) -> None:
        """Count an episode that went in."""
        self.episodes += 1
        self.outcomes[outcome] += 1
        self.versions[version] += 1
        self._rewards += reward

    @property
    def mean_reward(self) -> Fraction | None:
        """Mean reward of the episodes that went in, exact; None when there are none."""
        return self._rewards / self.episodes if self.episodes else None

    def json(self) -> dict[str, JsonValue]:
        """Return the object of ``summary.json``."""
        mean = self.mean_reward
        return {
            "format": self.format,
            "store": self.store,
            "options": dict(self.options),
            "read": self.read,
            "episodes": self.episodes,
            "rows": self.rows,
            "left_out": dict(sorted(self.left_out.items())),
            "outcomes": dict(sorted(self.outcomes.items())),
            "versions": dict(sorted(self.versions.items())),
            "notes": {note: count for note, count in sorted(self.notes.items()) if count},
            "mean_reward": None if mean is None else float(mean),
            "mean_reward_exact": None if mean is None else exact_text(mean),
            "files": list(self.files),
        }
