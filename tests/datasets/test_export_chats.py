"""Chats to imitate: their form, and which ones rejection sampling takes."""

from __future__ import annotations

import base64
import copy
import dataclasses
import hashlib
import io
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import export_samples as samples
import numpy as np
import pytest
import row_formats
from export_folders import read_rows
from PIL import Image

from tbmm_env.datasets.chat import reasoning
from tbmm_env.datasets.chats import ChatOptions, export_rs, export_sft, rank
from tbmm_env.datasets.selection import Entry, ScoreVersion, Selection
from tbmm_env.errors import UsageError
from tbmm_env.record import Turn
from tbmm_env.trajectory.store import Store

VERSION = ScoreVersion(task="t", task_version="1", panel="1", judge="1")


def entry(name: str, reward: Fraction, **changes: Any) -> Entry:
    made = Entry(
        key=f"key {name}",
        episode_id=name,
        job="",
        instance="i",
        seed=1,
        version=VERSION,
        outcome="scored",
        reward=reward,
        group_id="",
        sample_id=0,
        kin=("", "", ""),
        steps=2,
        started_unix_s=0.0,
        artifact_sha256=f"answer of {name}",
        actions_sha256=f"actions of {name}",
    )
    return dataclasses.replace(made, **changes)


def ranked(*entries: Entry, top_k: int = 2) -> list[str]:
    """Episode ids of those taken, best first, however the store has them ordered."""
    orders = []
    for given in (entries, entries[::-1]):
        ranks, reasons = rank(given, top_k)
        assert ranks.keys() | reasons.keys() == {one.key for one in entries}
        orders.append([key.removeprefix("key ") for key in sorted(ranks, key=ranks.__getitem__)])
    assert orders[0] == orders[1]
    return orders[0]


# ---------------------------------------------------------------- rejection sampling


def test_rewards_are_compared_exactly() -> None:
    third = Fraction(1, 3)
    close = third + Fraction(1, 10**40)
    assert float(third) == float(close)
    assert ranked(entry("a", third), entry("b", close)) == ["b", "a"]


def test_ties_go_to_fewer_actions_then_the_earlier_then_the_lesser_name() -> None:
    half = Fraction(1, 2)
    long = entry("a", half, steps=3)
    late = entry("b", half, started_unix_s=5.0)
    assert ranked(long, late, entry("d", half), entry("c", half), top_k=4) == ["c", "d", "b", "a"]


def test_only_the_best_of_each_instance() -> None:
    one = [entry(f"a{n}", Fraction(n, 10)) for n in range(4)]
    other = [entry(f"b{n}", Fraction(n, 10), instance="j") for n in range(2)]
    ranks, reasons = rank([*one, *other], 2)
    assert {key: place for key, place in ranks.items() if "a" in key} == {"key a3": 1, "key a2": 2}
    assert {key: place for key, place in ranks.items() if "b" in key} == {"key b1": 1, "key b0": 2}
    assert reasons == {"key a0": "beyond the best 2 of its instance", "key a1": "beyond the best 2 of its instance"}


@pytest.mark.parametrize("same", ["artifact_sha256", "actions_sha256"])
def test_the_same_again_counts_once(same: str) -> None:
    best = entry("best", Fraction(3, 4), **{same: "x"})
    again = entry("again", Fraction(1, 2), **{same: "x"})
    other = entry("other", Fraction(1, 4))
    assert ranked(best, again, other) == ["best", "other"]
    assert rank([best, again, other], 2)[1]["key again"].startswith("the same answer or the same actions")
    elsewhere = dataclasses.replace(again, instance="j")
    assert set(ranked(best, elsewhere, other)) == {"best", "again", "other"}


def test_episodes_without_an_answer_are_not_the_same() -> None:
    assert ranked(entry("a", Fraction(0), artifact_sha256=""), entry("b", Fraction(0), artifact_sha256="")) == [
        "a",
        "b",
    ]


def test_only_what_was_taken_makes_others_the_same() -> None:
    a = entry("a", Fraction(3, 4), artifact_sha256="x")
    b = entry("b", Fraction(1, 2), artifact_sha256="x", actions_sha256="y")
    c = entry("c", Fraction(1, 4), actions_sha256="y")
    assert ranked(a, b, c) == ["a", "c"]


def test_rejection_sampling_of_the_store(store: Store, tmp_path: Path) -> None:
    summary = export_rs(store, tmp_path / "out", Selection(), top_k=2)
    rows = read_rows(tmp_path / "out")
    by_instance: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_instance.setdefault(row["instance_sha256"], []).append(row)
    for members in by_instance.values():
        assert sorted(row["rank"] for row in members) == list(range(1, len(members) + 1))
        ordered = sorted(members, key=lambda row: row["rank"])
        assert [row["reward"] for row in ordered] == sorted((row["reward"] for row in ordered), reverse=True)
    assert all(row["outcome"] == "scored" for row in rows)
    hand = [row for row in rows if row["episode_id"].startswith("hand-")]
    assert {row["episode_id"] for row in hand} == {"hand-8", "hand-9"}, "equal rewards, both their own"
    assert summary.left_out["outcome infeasible"] == 10
    with pytest.raises(UsageError, match="--top-k is 0"):
        export_rs(store, tmp_path / "no", Selection(), top_k=0)


# ---------------------------------------------------------------- rows


@pytest.fixture(scope="module")
def rows(store: Store, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Rows of ``sft`` as it is by default."""
    out = tmp_path_factory.mktemp("sft") / "out"
    export_sft(store, out, Selection())
    return [{**row, "folder": out} for row in read_rows(out)]


def by_name(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(row for row in rows if row["episode_id"] == name)


def test_rows_are_conversations(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == 64
    for row in rows:
        row_formats.conversation(row)
    assert len({json.dumps(row["tools"]) for row in rows}) == 1


def test_a_row_in_full(rows: list[dict[str, Any]]) -> None:
    row = by_name(rows, "group-3-1")
    roles = [message["role"] for message in row["messages"]]
    assert roles == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    user, first, shown, seen = row["messages"][1:5]
    assert [part["type"] for part in user["content"]] == ["image", "image", "text"]
    assert user["content"][2]["text"] == samples.STATEMENT
    assert first["tool_calls"][0]["function"] == {"name": "bash", "arguments": {"command": "view 图.png \ufffd"}}
    assert shown["content"] == [{"type": "text", "text": "输出 0\n[exit status 0]\n"}]
    assert [part["type"] for part in seen["content"]] == ["image", "image", "text"]
    assert row["messages"][6]["content"][0]["text"] == samples.JUNK.replace("\ud800", "\ufffd")
    assert [call["id"] for message in row["messages"] for call in message.get("tool_calls", [])] == [
        f"call0000{number}" for number in range(4)
    ]
    assert (row["reward"], row["reward_exact"], row["instance_seed"]) == (0.23, "23/100", 3)


def test_images_are_files_named_by_their_bytes(rows: list[dict[str, Any]]) -> None:
    row = by_name(rows, "group-3-1")
    pictures = [samples.picture(seed) for seed in (1, 2, 100, 101, 101)]
    for path, pixels in zip(row["images"], pictures, strict=True):
        data = (row["folder"] / path).read_bytes()
        assert path == f"images/{hashlib.sha256(data).hexdigest()}.png"
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), pixels)
    assert row["images"][3] == row["images"][4], "one picture, one file"
    named = {path for row in rows for path in row["images"]}
    assert named == {f"images/{path.name}" for path in (row["folder"] / "images").iterdir()}


def test_images_in_the_row(store: Store, tmp_path: Path) -> None:
    export_sft(store, tmp_path / "out", Selection(), options=ChatOptions(images="data-uri"))
    assert not (tmp_path / "out" / "images").exists()
    for row in read_rows(tmp_path / "out"):
        row_formats.conversation(row)
        head, _, data = row["images"][0].partition(",")
        assert head == "data:image/png;base64"
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))), samples.picture(1))


def test_text_only(store: Store, tmp_path: Path) -> None:
    options = ChatOptions(images="none", arguments="string")
    summary = export_sft(store, tmp_path / "out", Selection(), options=options)
    rows = read_rows(tmp_path / "out")
    for row in rows:
        row_formats.conversation(row)
        assert "images" not in row
        assert all(isinstance(message["content"], str) for message in row["messages"])
        arguments = [call["function"]["arguments"] for m in row["messages"] for call in m.get("tool_calls", [])]
        assert all(set(json.loads(text)) == {"command"} for text in arguments)
    assert summary.notes["figures left out, as asked (--images none)"] == 64 * 2 + 12 * 3


def test_lone_surrogates_are_counted(store: Store, tmp_path: Path) -> None:
    summary = export_sft(store, tmp_path / "out", Selection())
    assert summary.notes["lone surrogates replaced by U+FFFD"] == 12 * 2


def test_a_surrogate_pair_is_a_character(tmp_path: Path) -> None:
    steps = (samples.step(0, "echo \ud83d\ude00 \ude00 \ufffd"), samples.step(1, "submit"))
    store = samples.build(tmp_path / "store", [samples.episode("e", 1, "scored", Fraction(1, 2), steps=steps)])
    summary = export_sft(store, tmp_path / "out", Selection())
    [row] = read_rows(tmp_path / "out")
    command = row["messages"][2]["tool_calls"][0]["function"]["arguments"]["command"]
    assert command == "echo 😀 \ufffd \ufffd"
    assert summary.notes["lone surrogates replaced by U+FFFD"] == 1


def test_what_the_model_thought_is_kept(rows: list[dict[str, Any]]) -> None:
    row = by_name(rows, "model-0-1")
    assert row["messages"][2]["content"] == [{"type": "text", "text": "<think>想一想</think>"}]
    assert row["messages"][0]["content"][0]["text"].startswith("You solve")


@pytest.mark.parametrize(
    ("completion", "kept"),
    [
        ("", ""),
        ("ls -l", ""),
        ("I look.\n<tool_call>{}</tool_call>", "I look."),
        ("I look.\n<tool_call>{", "I look."),
        ("I look.\n```bash\nls -l\n```", "I look."),
        ("I look.\n```\nls -a\n```", "I look.\n```\nls -a\n```"),
        ("Run ls -l now", "Run ls -l now"),
    ],
)
def test_the_action_is_not_said_twice(completion: str, kept: str) -> None:
    assert reasoning(dataclasses.replace(samples.step(0, "ls -l"), turn=Turn(completion=completion))) == kept


def test_an_episode_without_actions_teaches_nothing(tmp_path: Path) -> None:
    idle = samples.episode("idle", 1, "scored", Fraction(0), steps=())
    store = samples.build(tmp_path / "store", [idle, samples.episode("e", 1, "scored", Fraction(1, 2))])
    summary = export_sft(store, tmp_path / "out", Selection())
    assert summary.left_out == {"no action to imitate": 1}


# ---------------------------------------------------------------- the check itself


def _break(path: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def apply(row: dict[str, Any]) -> None:
        *parts, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place: Any = row
        for part in parts:
            place = place[part]
        place[last] = change(place[last])

    return apply


MUTANTS = {
    "role": _break("messages.2.role", lambda _: "agent"),
    "mixed content": _break("messages.3.content", lambda _: "text"),
    "unknown tool": _break("messages.2.tool_calls.0.function.name", lambda _: "python"),
    "call id": _break("messages.3.tool_call_id", lambda _: "call99999"),
    "arguments": _break("messages.2.tool_calls.0.function.arguments", lambda _: '"ls"'),
    "last message": _break("messages", lambda messages: messages[:-1]),
    "image too few": _break("images", lambda images: images[1:]),
    "image in a tool message": _break("messages.3.content", lambda content: [{"type": "image"}, *content]),
    "mask": _break("message_mask", lambda mask: [1, *mask[1:]]),
    "text of null": _break("messages.0.content.0.text", lambda _: None),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_check_rejects(name: str, rows: list[dict[str, Any]]) -> None:
    row = copy.deepcopy({key: value for key, value in by_name(rows, "group-3-1").items() if key != "folder"})
    row_formats.conversation(row)
    MUTANTS[name](row)
    with pytest.raises((AssertionError, KeyError)):
        row_formats.conversation(row)
