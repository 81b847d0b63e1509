"""The columns that every row has, whatever its format."""

from __future__ import annotations

from typing import Any

from tbmm_env.datasets.plain import Plain
from tbmm_env.datasets.selection import Entry
from tbmm_env.judge.numeral import exact_text
from tbmm_env.record import Episode


def origin(entry: Entry, episode: Episode, plain: Plain) -> dict[str, Any]:
    """Return the columns that all episodes of a group share: task and score versions, instance, language, policy."""
    return {
        "task": plain.text(entry.version.task),
        "task_version": plain.text(entry.version.task_version),
        "panel_version": plain.text(entry.version.panel),
        "judge_version": plain.text(entry.version.judge),
        "instance_seed": entry.seed,
        "instance_sha256": entry.instance,
        "language": episode.language,
        "policy": plain.text(episode.policy),
    }


def identity(entry: Entry, episode: Episode, plain: Plain) -> dict[str, Any]:
    """Return the columns that say which episode a row is: episode, instance, score, group."""
    return {
        "episode_id": plain.text(episode.episode_id),
        **origin(entry, episode, plain),
        "group_id": plain.text(episode.group_id),
        "sample_id": entry.sample_id,
        "outcome": entry.outcome,
        "reward": float(entry.reward),
        "reward_exact": exact_text(entry.reward),
    }
