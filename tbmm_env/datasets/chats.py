"""``sft`` and ``rs``: accepted episodes as chats to imitate, all of them or the best of each instance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from tbmm_env.datasets import card, chat, output
from tbmm_env.datasets.chat import ArgumentMode, ChatWriter
from tbmm_env.datasets.columns import identity
from tbmm_env.datasets.plain import Plain
from tbmm_env.datasets.selection import Chosen, Entry, Selection, choose, refuse_evaluation
from tbmm_env.datasets.summary import ExportSummary
from tbmm_env.errors import UsageError
from tbmm_env.judge.numeral import exact_text
from tbmm_env.record import Episode
from tbmm_env.trajectory.store import Store

NO_ACTION: Final = "no action to imitate"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """How chats are written: see :class:`tbmm_env.datasets.chat.ChatWriter` and ``Pictures``."""

    arguments: ArgumentMode = "object"
    images: output.ImageMode = "files"


def rank(entries: Sequence[Entry], top_k: int) -> tuple[dict[str, int], dict[str, str]]:
    """Rank the episodes of each instance and take the best.

    Better is a greater reward (compared exactly); at equal rewards fewer actions, then the earlier start, then the
    lesser episode id. An episode with the answer or the actions of one that was taken is not taken.

    Args:
        entries: episodes that were accepted.
        top_k: how many of each instance, at least 1.

    Returns:
        Rank by key of those taken, from 1; reason by key of the others.
    """
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.instance].append(entry)
    ranks: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for group in groups.values():
        seen: set[str] = set()
        taken = 0
        for entry in sorted(group, key=_order):
            names = {f"actions {entry.actions_sha256}"}
            if entry.artifact_sha256:
                names.add(f"answer {entry.artifact_sha256}")
            if names & seen:
                reasons[entry.key] = "the same answer or the same actions as one taken of its instance"
            elif taken == top_k:
                reasons[entry.key] = f"beyond the best {top_k} of its instance"
            else:
                taken += 1
                ranks[entry.key] = taken
                seen |= names
    return ranks, reasons


def _order(entry: Entry) -> tuple[Fraction, int, float, str, str]:
    return -entry.reward, entry.steps, entry.started_unix_s, entry.episode_id, entry.key


def export_rs(
    store: Store,
    out: Path,
    selection: Selection,
    *,
    top_k: int = 1,
    options: ChatOptions | None = None,
    force: bool = False,
) -> ExportSummary:
    """Write the best accepted episodes of each instance as chats (rejection sampling).

    Args:
        store: what is read.
        out: folder that is made: ``rows.jsonl``, ``summary.json``, ``images/``.
        selection: what may enter; outcomes are narrowed to ``scored``.
        top_k: how many of each instance, at least 1; see :func:`rank`.
        options: how chats are written.
        force: replace an earlier export.

    Raises:
        UsageError: the selection is refused or empty, or ``out`` cannot be written.
        TrajectoryError: the store cannot be read.
    """
    if top_k < 1:
        raise UsageError(f"--top-k is {top_k}; it must be at least 1")
    chosen, options = _accepted(store, selection, options, "rs", {"top_k": top_k})
    ranks, reasons = rank(chosen.entries, top_k)
    chosen.keep([entry for entry in chosen.entries if entry.key in ranks], reasons)
    return _write(chosen, out, options, force, lambda entry: {"rank": ranks[entry.key]})


def export_sft(
    store: Store, out: Path, selection: Selection, *, options: ChatOptions | None = None, force: bool = False
) -> ExportSummary:
    """Write every accepted episode as a chat; arguments and errors are those of :func:`export_rs`."""
    chosen, options = _accepted(store, selection, options, "sft", {})
    return _write(chosen, out, options, force, lambda _: {})


def _accepted(
    store: Store, selection: Selection, options: ChatOptions | None, name: str, own: Mapping[str, Any]
) -> tuple[Chosen, ChatOptions]:
    refuse_evaluation(selection, name)
    options = options or ChatOptions()
    summary = ExportSummary(
        format=name,
        store=str(store.path),
        options={
            **own,
            "arguments": options.arguments,
            "images": options.images,
            "min_reward": exact_text(selection.min_reward),
        },
    )
    chosen = choose(store, replace(selection, outcomes=frozenset({"scored"})), summary)
    chosen.keep([entry for entry in chosen.entries if entry.steps], {entry.key: NO_ACTION for entry in chosen.entries})
    return chosen, options


def _write(chosen: Chosen, out: Path, options: ChatOptions, force: bool, own: Any) -> ExportSummary:
    summary = chosen.summary
    plain = Plain(summary.notes)
    with output.folder(out, summary, force=force) as work:
        writer = ChatWriter(plain, output.Pictures(options.images, work, summary), options.arguments, summary.notes)
        with output.rows(work, summary) as write:
            for entry, episode in chosen.episodes():
                write(_row(entry, episode, writer, plain) | own(entry))
                chosen.put_in(entry)
        card.write(work, output.ROWS_FILE, f"{summary.format}: accepted episodes as chats", _features(summary, options))
    return summary


def _features(summary: ExportSummary, options: ChatOptions) -> list[card.Feature]:
    images = card.lists("string", "images") if options.images != "none" else []
    return [
        *card.lists("json", "messages", "tools"),
        *card.lists("int64", "message_mask"),
        *images,
        *card.IDENTITY,
        *(card.of("int64", "rank") if summary.format == "rs" else []),
    ]


def _row(entry: Entry, episode: Episode, writer: ChatWriter, plain: Plain) -> dict[str, Any]:
    prompt, answer = writer.prompt(episode), writer.answer(episode)
    messages = prompt.messages + answer.messages
    row: dict[str, Any] = {"messages": messages, "tools": chat.TOOLS, "message_mask": chat.mask(messages)}
    if writer.images != "none":
        row["images"] = prompt.images + answer.images
    return row | identity(entry, episode, plain)
