"""What may enter an export, and that nothing is left out in silence."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import export_samples as samples
import pytest
from export_folders import read_rows

from tbmm_env import tasks
from tbmm_env.datasets.atif import export_atif
from tbmm_env.datasets.chats import export_rs, export_sft
from tbmm_env.datasets.evaluation import instance_sha256, read_evaluation
from tbmm_env.datasets.grpo import export_grpo
from tbmm_env.datasets.output import ROWS_FILE, SUMMARY_FILE, dump
from tbmm_env.datasets.parquet import export_parquet
from tbmm_env.datasets.selection import Selection, choose
from tbmm_env.datasets.summary import ExportSummary
from tbmm_env.datasets.turns import export_turns
from tbmm_env.errors import UsageError
from tbmm_env.instances import instance_json
from tbmm_env.record import Instance
from tbmm_env.splits import make_evaluation
from tbmm_env.trajectory.store import Store

EXPORTS: dict[str, Callable[..., ExportSummary]] = {
    "rs": export_rs,
    "sft": export_sft,
    "grpo": export_grpo,
    "turns": export_turns,
    "parquet": export_parquet,
    "atif": export_atif,
}
KEPT_OUT = ("official", "given", "evaluation", "said")


def chosen_names(store: Store, selection: Selection) -> tuple[set[str], ExportSummary]:
    summary = ExportSummary(format="parquet", store="", options={})
    return {entry.episode_id for entry in choose(store, selection, summary).entries}, summary


@pytest.mark.parametrize("name", EXPORTS)
def test_every_record_is_accounted_for(name: str, store: Store, tmp_path: Path) -> None:
    summary = EXPORTS[name](store, tmp_path / "out", Selection())
    assert summary.read == samples.RECORDS
    assert summary.episodes + sum(summary.left_out.values()) == samples.RECORDS
    assert summary.episodes == sum(summary.outcomes.values()) == sum(summary.versions.values())
    written = json.loads((tmp_path / "out" / SUMMARY_FILE).read_text(encoding="utf-8"))
    assert written == summary.json()
    assert written["left_out"]["evaluation instance: never in a training export"] == 7
    assert written["left_out"]["official instance: for evaluation, unless --include-official"] == 5
    assert written["left_out"]["instance with parameters of somebody's own: not known to be for training"] == 3
    assert written["left_out"]["a reward above 0 without an accepted certificate"] == 1
    assert written["left_out"]["no judgement"] == 1
    assert written["left_out"]["the same episode or job once more"] == 1


@pytest.mark.parametrize("name", EXPORTS)
def test_no_trace_of_evaluation_in_any_file(name: str, store: Store, tmp_path: Path) -> None:
    hashes = frozenset(
        instance_sha256(one.instance) for one in samples.records() if one.instance.seed in samples.HASHED_SEEDS
    )
    EXPORTS[name](store, tmp_path / "out", Selection(evaluation=hashes))
    words = [f"{word}-{number}".encode() for word in KEPT_OUT for number in range(5)] + [b"hashed-40", b"hashed-41"]
    found = 0
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            found += b"model-0-" in data
            assert not [word for word in words if word in data], path
    if name != "parquet":  # its text is compressed
        assert found, "the search itself finds what is there"


def test_official_instances_enter_only_by_name(store: Store) -> None:
    without, _ = chosen_names(store, Selection())
    with_them, _ = chosen_names(store, Selection(include_official=True))
    assert with_them - without == {f"official-{number}" for number in range(5)}


def test_evaluation_is_an_export_of_its_own(store: Store) -> None:
    hashes = frozenset(
        instance_sha256(one.instance) for one in samples.records() if one.instance.seed in samples.HASHED_SEEDS
    )
    names, summary = chosen_names(store, Selection(split="evaluation", evaluation=hashes))
    assert names == {*(f"evaluation-{n}" for n in range(5)), "said-0", "said-1", "hashed-40", "hashed-41"}
    assert summary.left_out["training instance: never in an evaluation export"] == 81


@pytest.mark.parametrize("name", ["rs", "sft", "grpo", "turns"])
def test_no_training_data_of_evaluation(name: str, store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{name} is training data"):
        EXPORTS[name](store, tmp_path / "out", Selection(split="evaluation"))
    assert not list(tmp_path.iterdir())


def test_an_instance_is_known_by_its_parameters_not_its_seed() -> None:
    one = samples.episode("one", 5).instance
    assert instance_sha256(one) == instance_sha256(dataclasses.replace(one, seed=None))
    reordered = dict(reversed(list(one.parameters.items())))
    assert instance_sha256(one) == instance_sha256(dataclasses.replace(one, parameters=reordered))
    for change in ({"task": "x"}, {"version": "2"}, {"parameters": {**one.parameters, "pitch_m": 0.56}}):
        assert instance_sha256(one) != instance_sha256(dataclasses.replace(one, **change))


def test_evaluation_instances_are_read_from_files(tmp_path: Path) -> None:
    instances = [samples.episode("e", seed).instance for seed in (1, 2)]
    paths = [tmp_path / "set" / "private" / f"{number}.json" for number in range(2)]
    paths[0].parent.mkdir(parents=True)
    for path, instance in zip(paths, instances, strict=True):
        path.write_text(json.dumps(instance_json(instance)), encoding="utf-8")
    public = tmp_path / "set" / "public.json"
    public.write_text(json.dumps({"commitments": ["a" * 64]}), encoding="utf-8")
    both = frozenset(map(instance_sha256, instances))
    assert read_evaluation(paths[0]) == {instance_sha256(instances[0])}
    assert read_evaluation(paths[0].parent) == read_evaluation(tmp_path / "set") == both
    with pytest.raises(UsageError, match="nobody can tell the instances; give the folder `private`"):
        read_evaluation(public)
    with pytest.raises(UsageError, match="cannot be read as JSON"):
        read_evaluation(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no instance"):
        read_evaluation(tmp_path / "empty")
    paths[0].write_text('{"task": "t"}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"is not an instance\.json"):
        read_evaluation(paths[0].parent)


def test_a_real_evaluation_set_is_kept_out(tmp_path: Path) -> None:
    made = make_evaluation(bytes(range(32)), tasks.load(samples.TASK), 1, tmp_path / "set")
    instance = Instance(**json.loads(made.instances[0].read_text(encoding="utf-8")))
    hidden = dataclasses.replace(instance, seed=3)  # what a record would say that gives a training seed instead
    taken = samples.episode("taken", 3, "scored", Fraction(1, 2), instance=hidden)
    kept = dataclasses.replace(instance, seed=4, parameters={**instance.parameters, "boards": 1})
    kept_too = samples.episode("kept", 4, "scored", Fraction(1, 2), instance=kept)
    store = samples.build(tmp_path / "store", [taken, kept_too])
    assert chosen_names(store, Selection())[0] == {"taken", "kept"}
    assert chosen_names(store, Selection(evaluation=read_evaluation(tmp_path / "set")))[0] == {"kept"}


# ---------------------------------------------------------------- score versions


@pytest.mark.parametrize(
    ("change", "selection"),
    [
        ({"panel_version": "2027-01"}, Selection(panel="2026-11")),
        ({"judge_version": "8"}, Selection(judge="7")),
        ({"task": "2"}, Selection(task_version="1")),
    ],
    ids=["panel", "judge", "task"],
)
def test_score_versions_are_never_mixed(change: dict[str, str], selection: Selection, tmp_path: Path) -> None:
    old = samples.episode("old", 1, "scored", Fraction(1, 2))
    new = samples.episode("new", 2, "scored", Fraction(1, 2))
    if "task" in change:
        new = dataclasses.replace(new, instance=dataclasses.replace(new.instance, version=change["task"]))
    else:
        new = dataclasses.replace(new, judgement={**new.judgement, **change})
    store = samples.build(tmp_path / "store", [old, new])
    with pytest.raises(UsageError, match=r"never mixed.*1 episodes.*1 episodes.*--panel.*tbmm rejudge"):
        export_sft(store, tmp_path / "out", Selection())
    assert not (tmp_path / "out").exists()
    names, summary = chosen_names(store, selection)
    assert names == {"old"}
    assert sum(summary.left_out.values()) == 1


def test_tasks_have_panels_of_their_own(store: Store) -> None:
    names, summary = chosen_names(store, Selection(tasks=frozenset({samples.OTHER_TASK})))
    assert len(names) == 24
    assert all(name.startswith("model-") for name in names)
    assert summary.left_out[f"task {samples.TASK}, not asked for"] == 59  # the repeated record among them


# ---------------------------------------------------------------- rewards


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"reward": 0.25}, "the reward is outside"),
        ({"reward": 1.5, "reward_exact": "3/2"}, "the reward is outside"),
        ({"reward": -0.5, "reward_exact": "-1/2"}, "the reward is outside"),
        ({"reward": float("nan"), "reward_exact": None}, "the reward is not a number"),
        ({"reward_exact": "1/0"}, "the reward is not a number"),
        ({"reward": True}, "no judgement"),
        ({"outcome": "won"}, "no judgement"),
        ({"outcome": "infeasible"}, "a reward above 0 without"),
        ({"certificate": None}, "a reward above 0 without"),
        ({}, ""),
    ],
)
def test_a_reward_must_be_one(change: dict[str, object], reason: str, tmp_path: Path) -> None:
    good = samples.episode("good", 1, "scored", Fraction(1, 3))
    bad = samples.episode("bad", 2, "scored", Fraction(1, 2))
    bad = dataclasses.replace(bad, judgement={**bad.judgement, **change})
    names, summary = chosen_names(samples.build(tmp_path / "store", [good, bad]), Selection())
    assert names == ({"good"} if reason else {"good", "bad"})
    assert [left.startswith(reason) for left in summary.left_out] == ([True] if reason else [])


def test_least_reward_is_compared_exactly(tmp_path: Path) -> None:
    third = samples.episode("third", 1, "scored", Fraction(1, 3))
    store = samples.build(tmp_path / "store", [third, samples.episode("one", 2, "scored", Fraction(1))])
    assert "third" in chosen_names(store, Selection(min_reward=Fraction(1, 3)))[0]
    above = Fraction(1, 3) + Fraction(1, 10**30)  # the same float
    assert chosen_names(store, Selection(min_reward=above))[0] == {"one"}


# ---------------------------------------------------------------- stores


def test_a_damaged_record_is_counted(tmp_path: Path) -> None:
    store = samples.build(tmp_path / "store", [samples.episode(f"e{n}", n, "scored", Fraction(1, 2)) for n in range(3)])
    segment = next(store.path.glob("segments/*.seg"))
    data = bytearray(segment.read_bytes())
    data[-5] ^= 0xFF
    segment.write_bytes(data)
    summary = export_sft(store, tmp_path / "out", Selection())
    assert (summary.read, summary.episodes) == (3, 2)
    assert sum(summary.left_out.values()) == 1
    assert next(iter(summary.left_out)).startswith("record cannot be read (")


def test_nothing_to_export_says_why(tmp_path: Path) -> None:
    store = samples.build(tmp_path / "store", [samples.episode("e", None, "scored", Fraction(1, 2))])
    with pytest.raises(UsageError, match=r"no episode of .* may enter: 1 x instance with parameters"):
        export_sft(store, tmp_path / "out", Selection())
    with pytest.raises(UsageError, match="there is no trajectory store"):
        export_sft(Store(tmp_path / "none"), tmp_path / "out", Selection())


def test_an_export_appears_whole_or_not_at_all(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    export_sft(store, out, Selection())
    first = (out / ROWS_FILE).read_bytes()
    with pytest.raises(UsageError, match="exists; name another folder"):
        export_sft(store, out, Selection())
    export_rs(store, out, Selection(), force=True)
    assert len(read_rows(out)) < first.count(b"\n")
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    with pytest.raises(UsageError, match="--group-size is 2"):
        export_grpo(store, out, Selection(), group_size=2, force=True)
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    assert (out / SUMMARY_FILE).is_file()


def test_force_replaces_exports_only(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="is not an earlier export"):
        export_sft(store, out, Selection(), force=True)
    assert (out / "mine.txt").read_text(encoding="utf-8") == "mine"
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="is not an earlier export"):
        export_sft(store, tmp_path / "file", Selection(), force=True)


def test_a_failing_write_leaves_nothing(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be written"):
        export_sft(store, tmp_path / "file" / "out", Selection())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_number_that_is_not_one_never_becomes_json() -> None:
    for value in (float("nan"), float("inf"), {"deep": [-float("inf")]}):
        with pytest.raises(ValueError, match="not JSON compliant"):
            dump(value)


@pytest.mark.parametrize("name", EXPORTS)
def test_the_same_store_gives_the_same_bytes(name: str, store: Store, tmp_path: Path) -> None:
    trees = []
    for out in (tmp_path / "one", tmp_path / "two"):
        EXPORTS[name](store, out, Selection())
        trees.append({path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert trees[0] == trees[1]
