"""``grpo``: one row a group, with its prompt, its samples, their rewards and advantages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tbmm_env.datasets import card, chat, groups, output
from tbmm_env.datasets.chat import Chat, ChatWriter
from tbmm_env.datasets.chats import ChatOptions
from tbmm_env.datasets.columns import origin
from tbmm_env.datasets.groups import STD_EPS, Group
from tbmm_env.datasets.plain import Plain
from tbmm_env.datasets.selection import Entry, Selection, choose, refuse_evaluation
from tbmm_env.datasets.summary import ExportSummary
from tbmm_env.judge.numeral import exact_text
from tbmm_env.record import Episode
from tbmm_env.trajectory.store import Store


def export_grpo(
    store: Store,
    out: Path,
    selection: Selection,
    *,
    group_size: int | None = None,
    options: ChatOptions | None = None,
    force: bool = False,
) -> ExportSummary:
    """Write the groups of a store.

    Infeasible, malformed and missing answers are members with reward 0; failures of ours were never recorded, so their
    group is ``incomplete``. Constant and incomplete groups are marked, not left out.

    Args:
        store: what is read.
        out: folder that is made: ``rows.jsonl``, ``summary.json``, ``images/``.
        selection: what may enter.
        group_size: members of a whole group; None for the size of the greatest.
        options: how chats are written.
        force: replace an earlier export.

    Raises:
        UsageError: the selection is refused or empty, ``group_size`` does not fit, or ``out`` cannot be written.
        TrajectoryError: the store cannot be read.
    """
    refuse_evaluation(selection, "grpo")
    options = options or ChatOptions()
    asked = {"group_size": group_size, "arguments": options.arguments, "images": options.images, "std_eps": STD_EPS}
    summary = ExportSummary(format="grpo", store=str(store.path), options=asked)
    chosen = choose(store, selection, summary)
    formed, reasons = groups.form(chosen.entries, group_size)
    chosen.keep([entry for entry in chosen.entries if entry.key not in reasons], reasons)
    groups.mark(formed, chosen)
    plain = Plain(summary.notes)
    with output.folder(out, summary, force=force) as work:
        writer = ChatWriter(plain, output.Pictures(options.images, work, summary), options.arguments, summary.notes)
        waiting: dict[str, dict[str, Any]] = {}
        prompts: dict[str, Chat] = {}
        with output.rows(work, summary) as write:
            for entry, episode in chosen.episodes():
                group = formed[entry.group_id]
                samples = waiting.setdefault(group.group_id, {})
                if not samples:
                    prompts[group.group_id] = writer.prompt(episode)
                samples[entry.key] = _sample(entry, episode, group, writer, plain)
                chosen.put_in(entry)
                if len(samples) == len(group.members):
                    del waiting[group.group_id]
                    write(_row(group, episode, prompts.pop(group.group_id), samples, writer, plain))
        card.write(work, output.ROWS_FILE, "grpo: groups with rewards and advantages", _features(options))
    return summary


def _features(options: ChatOptions) -> list[card.Feature]:
    images = card.lists("string", "images") if options.images != "none" else []
    sample = [
        *card.of("int64", "sample_id"),
        *card.of("string", "episode_id"),
        *card.lists("json", "messages"),
        *card.lists("int64", "message_mask"),
        *card.of("string", "outcome"),
        *card.of("float64", "reward"),
        *card.of("string", "reward_exact"),
        *card.of("float64", "advantage", "advantage_normalised"),
        *card.of("bool", "terminated", "truncated"),
        *images,
    ]
    return [
        *card.of("string", "group_id"),
        *card.lists("json", "prompt", "tools"),
        {"name": "samples", "list": sample},
        *card.lists("float64", "rewards", "advantages", "advantages_normalised"),
        *card.of("float64", "reward_mean"),
        *card.of("string", "reward_mean_exact"),
        *card.of("float64", "reward_std", "std_eps"),
        *card.of("bool", "constant", "incomplete"),
        *card.of("int64", "group_size"),
        *card.ORIGIN,
        *images,
    ]


def _sample(entry: Entry, episode: Episode, group: Group, writer: ChatWriter, plain: Plain) -> dict[str, Any]:
    answer = writer.answer(episode)
    sample = {
        "sample_id": entry.sample_id,
        "episode_id": plain.text(episode.episode_id),
        "messages": answer.messages,
        "message_mask": chat.mask(answer.messages),
        "outcome": entry.outcome,
        "reward": float(entry.reward),
        "reward_exact": exact_text(entry.reward),
        "advantage": group.advantage(entry),
        "advantage_normalised": group.normalised(entry),
        "terminated": episode.terminated,
        "truncated": episode.truncated,
    }
    return sample if writer.images == "none" else sample | {"images": answer.images}


def _row(
    group: Group, episode: Episode, prompt: Chat, samples: dict[str, Any], writer: ChatWriter, plain: Plain
) -> dict[str, Any]:
    row = {
        "group_id": plain.text(group.group_id),
        "prompt": prompt.messages,
        "tools": chat.TOOLS,
        "samples": [samples[entry.key] for entry in group.members],
        "rewards": [float(entry.reward) for entry in group.members],
        "advantages": [group.advantage(entry) for entry in group.members],
        "advantages_normalised": [group.normalised(entry) for entry in group.members],
        "reward_mean": float(group.mean),
        "reward_mean_exact": exact_text(group.mean),
        "reward_std": group.std,
        "std_eps": STD_EPS,
        "constant": group.constant,
        "incomplete": group.incomplete,
        "group_size": group.size,
        **origin(group.members[0], episode, plain),
    }
    return row if writer.images == "none" else row | {"images": prompt.images}
