"""Token ids as trainers take them: masks, joints, shapes; nothing is tokenised again."""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import export_samples as samples
import numpy as np
import pytest
import row_formats
from export_folders import read_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from tbmm_env.datasets import turns
from tbmm_env.datasets.selection import Selection
from tbmm_env.datasets.turns import export_turns
from tbmm_env.errors import UsageError
from tbmm_env.record import Episode, Turn
from tbmm_env.trajectory.store import Store

SHAPES = tuple(row_formats.SHAPES)


def played(*made: Turn) -> Episode:
    steps = tuple(samples.step(number, "ls", turn=turn) for number, turn in enumerate(made))
    return samples.episode("e", 1, "scored", Fraction(1, 2), steps=steps)


def joined(*made: Turn) -> list[turns.Sample]:
    found = turns.samples(played(*made), Counter())
    assert not isinstance(found, str), found
    return found


# ---------------------------------------------------------------- samples


def test_turns_that_continue_are_one_sample() -> None:
    [one] = joined(samples.turn([1, 2], [3, 4]), samples.turn([1, 2, 3, 4, 5, 6], [7], temperature=0.5))
    assert one.token_ids.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert one.mask.tolist() == [False, False, True, True, False, False, True]
    assert one.logprobs is not None
    assert one.logprobs.tolist() == [0, 0, -0.5, -1.5, 0, 0, -0.5]
    assert one.temperatures.tolist() == [0.7] * 4 + [0.5] * 3
    assert (one.prompt_length, one.turns, one.weight_versions) == (2, 2, ("step-3",))


@pytest.mark.parametrize(
    "second", [[1, 2, 3, 9, 5], [1, 2, 3], [2, 3, 4, 5]], ids=["another token", "shorter", "window moved"]
)
def test_a_prompt_that_does_not_continue_begins_a_sample(second: list[int]) -> None:
    notes: Counter[str] = Counter()
    episode = played(samples.turn([1, 2], [3, 4]), samples.turn(second, [7]), samples.turn([*second, 7, 8], [9]))
    found = turns.samples(episode, notes)
    assert not isinstance(found, str)
    assert [one.token_ids.tolist() for one in found] == [[1, 2, 3, 4], [*second, 7, 8, 9]]
    assert [one.mask.tolist() for one in found][1] == [False] * len(second) + [True, False, True]
    assert notes[turns.BROKEN] == 1


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ([Turn(completion="ls")], turns.NO_TOKENS),
        ([samples.turn([1], [2]), Turn(completion="ls")], turns.SOME_TOKENS),
        ([samples.turn([1], [2]), samples.turn([1, 2], [])], turns.SOME_TOKENS),
        ([dataclasses.replace(samples.turn([1], [2]), logprobs=np.zeros(2, np.float32))], turns.BAD_LOGPROBS),
        ([dataclasses.replace(samples.turn([1], [2]), logprobs=np.full(1, np.nan, np.float32))], turns.BAD_LOGPROBS),
    ],
)
def test_what_does_not_fit_is_left_out(made: list[Turn], reason: str) -> None:
    assert turns.samples(played(*made), Counter()) == reason


def test_logprobs_of_some_turns_are_none() -> None:
    [one] = joined(samples.turn([1], [2]), samples.turn([1, 2, 3], [4], logprobs=False))
    assert one.logprobs is None


@pytest.mark.parametrize("value", [None, True, "0.7", float("nan")])
def test_a_temperature_that_is_not_known_is_counted(value: object) -> None:
    notes: Counter[str] = Counter()
    [one] = turns.samples(played(samples.turn([1], [2], temperature=value)), notes)
    assert one.temperatures.tolist() == [1.0, 1.0]
    assert notes[turns.NO_TEMPERATURE] == 1


TOKENS = st.lists(st.integers(0, 3), min_size=1, max_size=4)


@settings(deadline=None)
@given(st.lists(st.tuples(TOKENS, TOKENS, st.booleans()), min_size=1, max_size=6))
def test_no_token_is_lost_or_made(drawn: list[tuple[list[int], list[int], bool]]) -> None:
    so_far: list[int] = []
    made = []
    for prompt, completion, continues in drawn:
        prompt = [*so_far, *prompt] if continues else prompt
        made.append(samples.turn(prompt, completion))
        so_far = [*prompt, *completion]
    found = joined(*made)
    trained = [token for one in found for token in one.token_ids[one.mask].tolist()]
    assert trained == [token for turn in made for token in turn.completion_token_ids.tolist()]
    assert sum(one.turns for one in found) == len(made)
    whole = {tuple([*turn.prompt_token_ids.tolist(), *turn.completion_token_ids.tolist()]) for turn in made}
    assert all(tuple(one.token_ids.tolist()) in whole for one in found)


# ---------------------------------------------------------------- rows


@pytest.fixture(scope="module")
def shaped(store: Store, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Rows by shape."""
    root = tmp_path_factory.mktemp("turns")
    found = {}
    for shape in SHAPES:
        export_turns(store, root / shape, Selection(), shape=shape)
        found[shape] = read_rows(root / shape)
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_have_the_shape(shape: str, shaped: dict[str, list[dict[str, Any]]]) -> None:
    rows = shaped[shape]
    assert len(rows) == 22
    for row in rows:
        row_formats.SHAPES[shape](row)


def test_all_shapes_hold_the_same_tokens(shaped: dict[str, list[dict[str, Any]]]) -> None:
    whole = [row["token_ids"] for row in shaped["prime-rl"]]
    assert whole == [row["prompt_ids"] + row["response_ids"] for row in shaped["verl"]]
    assert whole == [row["prompt_token_ids"] + row["response_ids"] for row in shaped["skyrl"]]
    assert whole == [row["prompt_ids"] + row["completion_ids"] for row in shaped["trl"]]


def test_one_sample_in_full(shaped: dict[str, list[dict[str, Any]]]) -> None:
    row = next(row for row in shaped["verl"] if row["extra_fields"]["episode_id"] == "model-1-1")
    assert row["prompt_ids"] == [1, 2, 4]
    assert row["response_ids"] == [10, 11, 20, 21, 12]
    assert row["response_mask"] == [1, 1, 0, 0, 1]
    assert row["response_logprobs"] == [-0.5, -1.5, 0, 0, -0.5]
    assert (row["reward_score"], row["num_turns"]) == (0.25, 4)
    assert row["extra_fields"]["uid"] == f"{samples.OTHER_TASK}/1"
    trainer = next(row for row in shaped["prime-rl"] if row["info"]["episode_id"] == "model-1-1")
    assert trainer["advantages"] == [0, 0, 0, -0.125, -0.125, 0, 0, -0.125]


def test_the_reward_comes_with_the_last_step(shaped: dict[str, list[dict[str, Any]]]) -> None:
    rows = [row for row in shaped["skyrl"] if row["info"]["episode_id"] == "model-1-3"]
    assert [(row["rewards"], row["is_last_step"]) for row in rows] == [(0.0, False), (0.75, True)]
    assert {row["trajectory_ids"]["repetition_id"] for row in rows} == {3}


def test_what_is_left_out_and_why(store: Store, tmp_path: Path) -> None:
    required = export_turns(store, tmp_path / "required", Selection(), shape="verl")
    assert required.left_out[turns.NO_TOKENS] == 58
    assert required.left_out[turns.SOME_TOKENS] == required.left_out[turns.BAD_LOGPROBS] == 1
    assert required.left_out[turns.NO_LOGPROBS] == 6
    assert (required.episodes, required.rows, required.notes[turns.BROKEN]) == (16, 22, 6)
    dropped = export_turns(store, tmp_path / "dropped", Selection(), shape="verl", logprobs="drop")
    assert (dropped.episodes, dropped.rows) == (22, 28)
    assert all(row["response_logprobs"] is None for row in read_rows(tmp_path / "dropped"))
    with pytest.raises(UsageError, match="needs logprobs"):
        export_turns(store, tmp_path / "no", Selection(), shape="prime-rl", logprobs="drop")
    with pytest.raises(UsageError, match="--shape is 'other'"):
        export_turns(store, tmp_path / "no", Selection(), shape="other")  # type: ignore[arg-type]


def test_a_store_without_tokens_is_refused(tmp_path: Path) -> None:
    store = samples.build(tmp_path / "store", [samples.episode("e", 1, "scored", Fraction(1, 2))])
    with pytest.raises(UsageError, match="no token ids"):
        export_turns(store, tmp_path / "out", Selection())
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_an_episode_alone_has_no_advantage(tmp_path: Path) -> None:
    store = samples.build(tmp_path / "store", [played(samples.turn([1], [2]))])
    export_turns(store, tmp_path / "out", Selection(), shape="prime-rl")
    [row] = read_rows(tmp_path / "out")
    row_formats.prime_rl(row)
    assert row["advantages"] is row["info"]["advantage"] is None


# ---------------------------------------------------------------- the checks themselves


def _change(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    return lambda row: row.update({name: change(row[name])})


MUTANTS: dict[str, list[Callable[[dict[str, Any]], None]]] = {
    "prime-rl": [
        _change("mask", lambda mask: mask[1:]),
        _change("mask", lambda mask: [False] * len(mask)),
        _change("mask", lambda mask: [not value for value in mask]),
        _change("mask", lambda mask: [int(value) for value in mask]),
        _change("logprobs", lambda logprobs: logprobs[1:]),
        _change("temperatures", lambda temperatures: temperatures[1:]),
        _change("token_ids", lambda ids: [float(value) for value in ids]),
        lambda row: row.pop("env_name"),
    ],
    "verl": [
        _change("response_mask", lambda mask: [1 - value for value in mask]),
        _change("response_ids", lambda ids: ids[1:]),
        _change("response_logprobs", lambda logprobs: [*logprobs, 0.0]),
        _change("metrics", lambda _: None),
        _change("prompt_ids", lambda _: []),
    ],
    "skyrl": [
        _change("loss_masks", lambda mask: mask[1:]),
        _change("rewards", lambda _: None),
        _change("trajectory_ids", lambda _: "id"),
        _change("rollout_logprobs", lambda values: [float("nan")] * len(values)),
    ],
    "trl": [
        _change("env_mask", lambda mask: [2] * len(mask)),
        _change("logprobs", lambda _: None),
        lambda row: row.pop("completion_ids"),
    ],
}


@pytest.mark.parametrize(("shape", "number"), [(shape, n) for shape in SHAPES for n in range(len(MUTANTS[shape]))])
def test_the_check_rejects(shape: str, number: int, shaped: dict[str, list[dict[str, Any]]]) -> None:
    row = copy.deepcopy(next(row for row in shaped[shape] if "model-1-1" in str(row)))
    row_formats.SHAPES[shape](row)
    MUTANTS[shape][number](row)
    with pytest.raises((AssertionError, KeyError, TypeError)):
        row_formats.SHAPES[shape](row)
