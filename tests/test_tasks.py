"""Task packages are loaded strictly: each mutant is refused for its reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tbmm_env import instances, tasks
from tbmm_env.errors import BadInstance, BadTask, UnknownTask
from tbmm_env.instances import instance_json

NAME = "cumcm-2024-a"


@pytest.fixture
def mutant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Copy the task, replace text in one of its files, and load it."""
    folder = tmp_path / "tasks" / NAME
    shutil.copytree(tasks.data_path("tasks", NAME), folder)
    monkeypatch.setattr(tasks, "data_path", lambda *parts: tmp_path.joinpath(*parts))

    def load(file: str, old: str, new: str) -> None:
        path = folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        tasks.load.cache_clear()
        try:
            tasks.load(NAME)
        finally:
            tasks.load.cache_clear()

    return load


def test_the_copy_itself_loads(mutant: Callable[[str, str, str], None]) -> None:
    mutant("task.toml", 'letter = "A"', 'letter = "A"')


def test_words_may_be_mended_in_a_frozen_panel(mutant: Callable[[str, str, str], None]) -> None:
    mutant("references.toml", "the optimum rounded up", "rounded up from the optimum")


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("task.toml", f'id = "{NAME}"', 'id = "cumcm-2024-b"', "must equal the folder's name"),
        ("task.toml", 'letter = "A"', 'letter = "D"', "field letter is 'D'"),
        ("task.toml", 'letter = "A"', 'letter = "A"\nsurprise = 1', "unknown field 'surprise'"),
        ("task.toml", 'letter = "A"', "letter = ", "not valid TOML"),
        ("task.toml", 'letter = "A"\n', "", "task.toml: field letter is missing"),
        ("task.toml", 'shape = "ladder"', 'shape = "exact"', "ladder thresholds and shape disagree"),
        ("task.toml", 'shape = "ladder"', 'shape = "steps"', "field shape is 'steps'"),
        ("task.toml", 'grid = "', 'grid = "3', "must be a power of ten"),
        ("task.toml", 'weight = "1"', 'weight = "0"', "weight is 0"),
        ("task.toml", "requires = [", 'requires = ["no_such_thing", ', "requires names an unknown obligation"),
        ("task.toml", '"replay:', '"replay:un', "names no [[replay]] entry"),
        ("task.toml", "[[metric]]", "[[metric]]\nbonus = 1", "unknown field 'bonus'"),
        ("task.toml", "[[obligation]]", '[[obligation]]\nhint = "x"', "unknown field 'hint'"),
        (
            "references.toml",
            'status = "confirmed"\nvotes = true',
            'status = "unverifiable"\nvotes = true',
            "cannot vote",
        ),
        (
            "references.toml",
            'value = "0.450338"',
            'value = "0.450339"',
            f"tbmm audit-panel {NAME} --freeze NEW_VERSION",
        ),
        ("references.toml", 'q3_pitch_m = "0.45', 'q3_pitch_m = "0.46', "panel 2024a-1 was frozen with sha256 "),
        ("task.toml", 'tolerance = "0.00001"', 'tolerance = "0.0001"', "a changed panel takes a new version"),
        (
            "task.toml",
            'panel_version = "2024a-1"',
            'panel_version = "2024a-9"',
            "panel 2024a-9 was frozen with sha256 ",
        ),
        ("task.toml", 'reward = ["0.95", "1"]', 'reward = ["0.95", "1.1"]', "must lie within 0 .. 1"),
        ("task.toml", 'baseline_score = "0"', 'baseline_score = "0"\nspare = 1', "field contracts.spare is 1"),
        ("references.toml", 'metric = "all"', 'metric = "none"', "there is no such metric"),
    ],
)
def test_mutants(mutant: Callable[[str, str, str], None], file: str, old: str, new: str, said: str) -> None:
    with pytest.raises(BadTask) as caught:
        mutant(file, old, new)
    assert said in str(caught.value)
    assert NAME in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "number", "unit": "m", "minimum": 0}, "maximum is missing"),
        ({"type": "number", "minimum": 0, "maximum": 1}, "unit is missing"),
        ({"type": "array", "items": {"type": "string"}}, "maxItems is missing"),
        ({"type": "object"}, "properties is missing"),
        ({"type": "tuple"}, "type is 'tuple'"),
        ({"properties": {}}, "must be a table with a type"),
        ({"type": "string", "pattern": "x"}, "unknown key 'pattern'"),
        ({"type": "object", "properties": {"a": {"type": "number"}}}, "answer.a: unit is missing"),
    ],
)
def test_schemas_bound_everything(schema: object, said: str) -> None:
    with pytest.raises(BadTask) as caught:
        tasks._check_schema(schema, "answer")
    assert said in str(caught.value)


def test_unknown_task() -> None:
    with pytest.raises(UnknownTask, match="unknown task 'nope'; there are: .*cumcm-2024-a"):
        tasks.load("nope")
    assert tasks.load(f"tbmm/{NAME}") is tasks.load(f"tbmm/{NAME}")


# ---------------------------------------------------------------- instances


def test_instance_files(tmp_path: Path) -> None:
    task = tasks.load(NAME)
    path = tmp_path / "实例.json"
    for instance in (instances.official(task), instances.sampled(task, 3)):
        path.write_text(json.dumps(instance_json(instance)), encoding="utf-8")
        assert instances.read_instance(task, path) == instance
    sampled = instance_json(instances.sampled(task, 3))
    for change, said in [
        ({"task": "cumcm-2024-b"}, "field task is 'cumcm-2024-b'"),
        ({"version": "0"}, "field version is '0'"),
        ({"seed": 4}, "parameters are not those that seed 4 draws"),
        ({"seed": "x"}, "instance seed is 'x'"),
        ({"parameters": None}, "field parameters is missing or not an object"),
        ({"parameters": {}}, "实例.json"),
        ({"more": 1}, "unknown field 'more'"),
    ]:
        path.write_text(json.dumps(sampled | change), encoding="utf-8")
        with pytest.raises(BadInstance) as caught:
            instances.read_instance(task, path)
        assert said in str(caught.value)
        assert str(path) in str(caught.value)
    for text in ("[]", "{", "\udc80"):
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        with pytest.raises(BadInstance, match="实例.json"):
            instances.read_instance(task, path)
    with pytest.raises(BadInstance, match="cannot be read"):
        instances.read_instance(task, tmp_path / "none.json")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_statements_render_and_hold_no_solution(language: str) -> None:
    task = tasks.load(NAME)
    assert language in ("en", "zh")
    for instance in (instances.official(task), instances.sampled(task, 0)):
        text = instances.statement(task, instance, "en" if language == "en" else "zh")
        assert "${" not in text
        assert len(text) > 1500
        for value in task.anchor.values():
            assert f"{float(value):.4f}" not in text


def test_public_files_hide_the_seed_and_the_canary() -> None:
    task = tasks.load(NAME)
    files = instances.public_files(task, instances.sampled(task, 8), "zh")
    assert {"statement.md", "schema.json", "instance.json"} <= set(files)
    assert b"seed" not in files["instance.json"]
    assert not any(b"tbmm-canary" in data for data in files.values())
    assert all(data.startswith(b"\x89PNG") for name, data in files.items() if name.startswith("figures/"))
