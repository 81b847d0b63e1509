"""``tbmm traj``: lists, episodes, damage and parts, for people and for programs."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trajectory_samples import golden, golden_2, image, small

from tbmm_env.cli import main
from tbmm_env.errors import UsageError
from tbmm_env.record import Artifact, Turn
from tbmm_env.trajectory import Store
from tbmm_env.trajectory.keys import resolve, shorten
from tbmm_env.trajectory.plain import plain, shown, visible

GOLDEN = Path(__file__).parents[2] / "trajectories" / "golden"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def made(tmp_path: Path) -> Store:
    """Two segments: two small episodes, then one in which every kind of value is."""
    for episodes in ((small(1), dataclasses.replace(small(2), artifact=Artifact(status="missing"))), (golden_2(),)):
        with Store(tmp_path / "轨迹", durable=False) as store:
            keys = [store.append(one) for one in episodes]
        assert len(keys) == len(episodes)
    return Store(tmp_path / "轨迹")


def key_of(store: Store, episode_id: str) -> str:
    (key,) = [item.key for item in store.episodes() if item.episode.episode_id == episode_id]
    return key


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main(["traj", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# ---------------------------------------------------------------- keys


def test_a_key_may_be_shortened_to_what_means_one_record(made: Store) -> None:
    keys = [item.key for item in made.summaries()]
    lonely = key_of(made, golden_2().episode_id)
    for key in keys:
        assert resolve(made, key) == key
        assert resolve(made, shorten(keys)[key]) == key
    assert resolve(made, lonely[:4]) == lonely
    assert resolve(made, "#1") == key_of(made, "episode-2")


@pytest.mark.parametrize(
    ("short", "message"),
    [
        ("", "is not a key"),
        ("xyz", "is not a key"),
        ("#", "is not a key"),
        ("#01", "is not a key"),
        ("../a#0", "is not a key"),
        ("#7", "no record in .* has a key that begins with #7"),
        ("#0", "means 2 records: .*; give more of the key"),
    ],
)
def test_a_key_that_means_nothing_or_too_much_is_refused(short: str, message: str, made: Store) -> None:
    with pytest.raises(UsageError, match=message):
        resolve(made, short)


def test_short_keys_are_as_long_as_they_must_be() -> None:
    keys = ["abcdef00#0", "abcdef00#1", "abcdef01#0"]
    assert shorten(keys) == {key: key for key in keys}
    assert shorten(["abcdef00#12"]) == {"abcdef00#12": "abcdef#12"}
    assert shorten([]) == {}


# ---------------------------------------------------------------- ls


def test_ls_json_is_a_list_with_an_object_an_episode(made: Store, capsys: Capture) -> None:
    code, out, _ = run(capsys, "ls", str(made.path), "--json")
    rows = {row["episode_id"]: row for row in json.loads(out)}
    assert (code, len(rows)) == (0, 3)
    assert rows["episode-1"] == {
        "key": key_of(made, "episode-1"),
        "split": "training",
        "task": "cumcm-2024-a",
        "task_version": "1",
        "seed": 1,
        "episode_id": "episode-1",
        "budget": "train",
        "language": "zh",
        "sandbox": "bwrap",
        "versions": {"tbmm_env": "0.1.0"},
        "steps": 2,
        "outcome": "scored",
        "reward": 0.5,
        "artifact_sha256": small(1).artifact.sha256,
        "terminated": True,
        "truncated": False,
        "started_unix_s": 1.7e9,
        "wall_s": 12.5,
        "job": "",
        "group_id": "",
        "sample_id": 0,
        "policy": "",
    }
    whole = rows["黄金样本-\\ud800"]
    assert (whole["split"], whole["job"], whole["sample_id"]) == ("evaluation", "板凳龙/7/0", 3)


def test_ls_prints_a_table_and_names_damage(made: Store, capsys: Capture) -> None:
    code, out, err = run(capsys, "ls", str(made.path))
    assert code == 0
    assert "3 episodes: 3 scored" in out
    assert "oracle" in out
    path = made.path / "segments" / f"{key_of(made, 'episode-1').partition('#')[0]}.seg"
    path.write_bytes(path.read_bytes()[:-1])
    code, out, err = run(capsys, "ls", str(made.path), "--json")
    assert (code, len(json.loads(out))) == (0, 2)
    assert "torn" in err
    assert str(path) in "".join(err.split())


def test_ls_of_an_empty_store(tmp_path: Path, capsys: Capture) -> None:
    assert run(capsys, "ls", str(tmp_path), "--json")[:2] == (0, "[]\n")
    assert "0 episodes" in run(capsys, "ls", str(tmp_path))[1]


@pytest.mark.parametrize(
    "arguments", [("ls", "no"), ("verify", "no"), ("show", "no", "#0"), ("cat", "no", "#0", "artifact")]
)
def test_no_store_is_exit_code_2(arguments: tuple[str, ...], capsys: Capture) -> None:
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert "there is no trajectory store at no" in err


# ---------------------------------------------------------------- show


def test_show_tells_statement_steps_and_judgement(made: Store, capsys: Capture) -> None:
    code, out, _ = run(capsys, "show", str(made.path), key_of(made, golden_2().episode_id)[:8])
    assert code == 0
    for said in (
        "题目：板凳龙",
        "$ view 图.png \\udcff",
        "图 1 of 2 🐉\\x00",
        "exit status 137",
        "step 3",
        "3 completion tokens",
    ):
        assert said in out, said
    assert "outcome scored, reward 0.5" in out


def test_show_shortens_long_texts_unless_asked(tmp_path: Path, capsys: Capture) -> None:
    lines = "".join(f"第 {number} 行\n" for number in range(100))
    step = small(1).steps[0]
    step = dataclasses.replace(step, observation=dataclasses.replace(step.observation, terminal=lines))
    with Store(tmp_path / "s", durable=False) as store:
        store.append(dataclasses.replace(small(1), steps=(step,)))
    out = run(capsys, "show", str(tmp_path / "s"), "#0")[1]
    assert "第 19 行" in out
    assert "第 20 行" not in out
    assert "80 more lines; --full shows them" in out
    assert "第 99 行" in run(capsys, "show", str(tmp_path / "s"), "#0", "--full")[1]


def test_show_json_holds_the_whole_episode(made: Store, capsys: Capture) -> None:
    key = key_of(made, golden_2().episode_id)
    shown = json.loads(run(capsys, "show", str(made.path), key, "--json")[1])
    assert set(shown) == {"key", *golden_2().__slots__}
    turn = shown["steps"][0]["turn"]
    assert turn["completion_token_ids"] == [7, -1, 151643]
    assert turn["logprobs"] == [-0.5, "-Infinity", "NaN"]
    assert shown["steps"][2]["turn"] is None
    assert shown["steps"][0]["observation"]["figures"][0] == {"height": 6, "width": 9}
    assert shown["artifact"]["text"] == '{"n": 7}'
    assert shown["extra"]["fraction"] == f"{-(10**30)}/7"
    bare = json.loads(run(capsys, "show", str(made.path), key, "--json", "--no-arrays")[1])
    assert bare["steps"][0]["turn"]["completion_token_ids"] == {"length": 3}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("inf"), "Infinity"),
        (np.float32("nan"), "NaN"),
        (np.arange(3, dtype=">i4"), [0, 1, 2]),
        (np.complex128(1 - 2j), "(1-2j)"),
        (b"\xff", {"base64": "/w=="}),
        (Fraction(1, 3), "1/3"),
        (("一", {"\ud800": None}), ["一", {"\\ud800": None}]),
    ],
)
def test_what_json_does_not_have_is_spelt_out(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


def test_controls_are_not_sent_to_the_terminal() -> None:
    assert visible("a\x1b[2J\x07\u202e中\n\t\ud800") == "a\\x1b[2J\\x07\\u202e中\n\t\\ud800"


def test_a_judgement_of_a_stranger_is_shown_without_controls() -> None:
    assert shown({"a\x07": ["b\x1b[2J", 1, None]}) == {"a\\x07": ["b\\x1b[2J", 1, None]}


# ---------------------------------------------------------------- verify


def damage(store: Store, change: Callable[[bytes], bytes]) -> Path:
    path = store.path / "segments" / f"{key_of(store, 'episode-1').partition('#')[0]}.seg"
    path.write_bytes(change(path.read_bytes()))
    return path


def test_verify_of_a_whole_store(made: Store, capsys: Capture) -> None:
    code, out, _ = run(capsys, "verify", str(made.path), "--json")
    assert code == 0
    assert json.loads(out) == {"store": str(made.path), "episodes": 3, "damaged": False, "findings": []}
    assert "3 episodes are whole, 0 findings" in run(capsys, "verify", str(made.path))[1]
    assert run(capsys, "verify", str(GOLDEN))[0] == 0


@pytest.mark.parametrize(
    ("change", "kind"),
    [(lambda data: data[:-5], "torn"), (lambda data: data[:150] + b"\0\xff\0" + data[153:], "corrupt")],
)
def test_verify_names_damage_with_file_offset_and_kind(
    change: Callable[[bytes], bytes], kind: str, made: Store, capsys: Capture
) -> None:
    path = damage(made, change)
    code, out, _ = run(capsys, "verify", str(made.path), "--json")
    result = json.loads(out)
    (found,) = [one for one in result["findings"] if one["file"] == str(path)]
    assert (code, result["damaged"], result["episodes"], found["kind"]) == (1, True, 2, kind)
    assert f"offset {found['offset_bytes']} bytes" in found["message"]
    code, out, _ = run(capsys, "verify", str(made.path))
    assert code == 1
    assert kind in out
    assert str(found["offset_bytes"]) in out


def test_a_leftover_is_told_and_is_no_damage(made: Store, capsys: Capture) -> None:
    (made.path / "unfinished" / "half").write_bytes(b"half")
    code, out, _ = run(capsys, "verify", str(made.path))
    assert code == 0
    assert "leftover" in out


# ---------------------------------------------------------------- cat


def cat(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, bytes]:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="utf-8"))
    code = main(["traj", "cat", *arguments])
    return code, written.getvalue()


def test_cat_writes_bytes_as_they_are(made: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store, key = str(made.path), key_of(made, golden_2().episode_id)
    pixels = image(1)
    expected = {
        ("artifact",): b'{"n": 7}',
        ("certificate",): golden().certificate_text.encode(),
        ("action", "1"): "view 图.png \udcff".encode("utf-8", "surrogatepass"),
        ("observation", "0"): "题目：板凳龙\n".encode(),
        ("observation", "1"): "图 1 of 2 🐉\x00".encode(),
        ("completion", "2"): b"submit",
        ("figure", "1"): b"P6\n9 6\n255\n" + image(0).tobytes(),
        ("figure", "2"): b"P6\n9 6\n255\n" + pixels.tobytes(),
    }
    for part, data in expected.items():
        assert cat(monkeypatch, store, key, *part) == (0, data), part


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (("action",), "action without a number: this episode has 1 to 3"),
        (("action", "0"), "action 0: this episode has 1 to 3"),
        (("action", "4"), "action 4: this episode has 1 to 3"),
        (("observation", "-1"), "observation -1: this episode has 0 to 3"),
        (("figure", "8"), "figure 8: this episode has 1 to 7"),
        (("completion", "3"), "completion 3: no model chose this action"),
    ],
)
def test_cat_of_what_is_not_there(part: tuple[str, ...], message: str, made: Store, capsys: Capture) -> None:
    code, _, err = run(capsys, "cat", str(made.path), key_of(made, golden_2().episode_id), *part)
    assert code == 2
    assert message in " ".join(err.split())


def test_cat_of_an_episode_without_answer(made: Store, capsys: Capture) -> None:
    code, _, err = run(capsys, "cat", str(made.path), key_of(made, "episode-2"), "artifact")
    assert code == 2
    assert "has no artifact" in err


def test_cat_json(made: Store, capsys: Capture) -> None:
    key = key_of(made, golden_2().episode_id)
    out = json.loads(run(capsys, "cat", str(made.path), key, "artifact", "--json")[1])
    assert out == {"key": key, "part": "artifact", "number": None, "size_bytes": 8, "text": '{"n": 7}'}
    out = json.loads(run(capsys, "cat", str(made.path), key, "figure", "1", "--json")[1])
    assert set(out["bytes"]) == {"base64"}


def test_a_damaged_record_is_our_failure(made: Store, capsys: Capture) -> None:
    damage(made, lambda data: data[:150] + b"\0\xff\0" + data[153:])
    (key,) = [item.key for item in made.summaries(lambda _: None) if re.search("#1", item.key)]
    code, _, err = run(capsys, "show", str(made.path), key.replace("#1", "#0"))
    assert code == 3
    assert "offset 32 bytes: record 0 fails its checksum" in " ".join(err.split())


def test_a_turn_without_arrays_is_shown(tmp_path: Path, capsys: Capture) -> None:
    step = dataclasses.replace(small(1).steps[0], turn=Turn(completion="x"))
    with Store(tmp_path / "s", durable=False) as store:
        store.append(dataclasses.replace(small(1), steps=(step,)))
    assert "0 prompt and 0 completion tokens, no reason" in run(capsys, "show", str(tmp_path / "s"), "#0")[1]
