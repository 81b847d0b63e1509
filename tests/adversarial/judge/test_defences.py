"""Every defence matters: without it, at least one case of the corpus is no longer what it states."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attack_cases as cases
import pytest
from attack_cases import CASES, OFFICIAL

from tbmm_env.data import data_path
from tbmm_env.judge import artifact, lean, library
from tbmm_env.judge import judge as pipeline
from tbmm_env.judge.judge import Judge
from tbmm_env.limits import JUDGE
from tbmm_env.record import Obligation

pytestmark = pytest.mark.lean

Patch = pytest.MonkeyPatch


def _duplicate_keys(patch: Patch, judge: Judge) -> None:
    patch.setattr(artifact, "_pairs", dict)


def _constants(patch: Patch, judge: Judge) -> None:
    patch.setattr(artifact, "_constant", lambda text: artifact.Fraction(1))


def _limits(patch: Patch, judge: Judge, **loose: int) -> None:
    patch.setattr(judge, "_limits", dataclasses.replace(JUDGE, **loose))


def _digits(patch: Patch, judge: Judge) -> None:
    _limits(patch, judge, json_digits=10_000)


def _depth(patch: Patch, judge: Judge) -> None:
    patch.setattr(artifact, "_check_depth", lambda text, limit: None)


def _values(patch: Patch, judge: Judge) -> None:
    patch.setattr(artifact, "_check_nodes", lambda value, limits: None)


def _schema_without(*keywords: str) -> Callable[[Patch, Judge], None]:
    real = artifact._exact

    def loose(schema: Any) -> Any:
        if isinstance(schema, dict):
            return {key: loose(value) for key, value in schema.items() if key not in keywords}
        return real(schema)

    def remove(patch: Patch, judge: Judge) -> None:
        patch.setattr(artifact, "_exact", lambda schema: loose(real(schema)))

    return remove


def _bytes(patch: Patch, judge: Judge) -> None:
    patch.setattr(judge, "_artifact_bytes", 1 << 40)


def _look_before_opening(patch: Patch, judge: Judge) -> None:
    patch.setattr(artifact.stat, "S_ISLNK", lambda mode: False)
    patch.setattr(artifact.stat, "S_ISREG", lambda mode: True)


def _links_not_followed(patch: Patch, judge: Judge) -> None:
    patch.setattr(artifact.os, "O_NOFOLLOW", 0)


def _look_after_opening(patch: Patch, judge: Judge) -> None:
    real = os.fstat
    patch.setattr(artifact.os, "fstat", lambda handle: Plain(real(handle)))


class Plain:
    """A stat result that calls everything a plain small file."""

    def __init__(self, found: os.stat_result) -> None:
        self.st_mode, self.st_size = 0o100644, 0


def _gate_decides(state: str) -> Callable[[Patch, Judge], None]:
    def remove(patch: Patch, judge: Judge) -> None:
        real = pipeline.resolve

        def resolve(*args: Any) -> tuple[Obligation, ...]:
            spared = {"state": state} | ({"terms": (), "lower": None, "upper": None} if state == "unwitnessed" else {})
            found = real(*args)
            return tuple(dataclasses.replace(one, **spared) if one.state == "violated" else one for one in found)

        patch.setattr(pipeline, "resolve", resolve)

    return remove


def _requirements(patch: Patch, judge: Judge) -> None:
    metrics = tuple(dataclasses.replace(metric, requires=()) for metric in judge.task.metrics)
    patch.setattr(judge, "task", dataclasses.replace(judge.task, metrics=metrics))


REMOVED: dict[str, tuple[Callable[[Patch, Judge], None], str]] = {
    "duplicate keys are refused": (_duplicate_keys, "json_duplicate_key"),
    "duplicate keys are refused, escaped too": (_duplicate_keys, "json_duplicate_escaped"),
    "NaN and Infinity are refused": (_constants, "json_nan_in_surplus"),
    "digits are bounded": (_digits, "json_digits_in_surplus"),
    "exponents are bounded": (_digits, "json_tiny_exponent"),
    "depth is bounded": (_depth, "json_nested_lists"),
    "values are counted": (_values, "json_many_values"),
    "bytes are counted": (_bytes, "json_too_many_bytes"),
    "the schema has bounds": (_schema_without("minimum", "maximum"), "answer_out_of_range_high"),
    "the schema has bounds, to the last digit": (_schema_without("maximum"), "answer_out_of_range_by_a_hair"),
    "the schema bounds lists": (_schema_without("maxItems"), "answer_list_over_long"),
    "the schema has types": (_schema_without("type"), "json_boolean"),
    "the file is looked at before it is opened": (_look_before_opening, "file_link_to_optimum"),
    "links are not followed": (_links_not_followed, "file_swapped_to_link"),
    "the open file is looked at": (_look_after_opening, "file_swapped_to_fifo"),
    "a violated obligation makes the reward 0": (_gate_decides("unwitnessed"), "answer_time_over_by_1e_30"),
    "Lean decides the gate by itself": (_gate_decides("holds"), "answer_time_over_by_1e_30"),
    "a metric requires its evidence": (_requirements, "answer_no_path"),
}


@pytest.mark.parametrize("defence", REMOVED)
def test_without_it_a_case_fails(defence: str, judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    remove, name = REMOVED[defence]
    case = CASES[name]
    for expected in ("reward_of", "reward_below"):
        if expected in case.spec:
            cases.reward_of(judge, case.spec[expected])  # with all defences
    assert held(case, judge, tmp_path / "with")
    remove(monkeypatch, judge)
    assert not held(case, judge, tmp_path / "without")


def held(case: cases.Case, judge: Judge, folder: Path) -> bool:
    """Whether a case is what it states; an exception is not."""
    folder.mkdir()
    try:
        return not list(cases.complaints(case, judge.judge(OFFICIAL, cases.artifact(case, folder)), judge))
    except Exception:  # noqa: BLE001 - whatever a missing defence lets through
        return False


# ---------------------------------------------------------------- Lean


def _no_refusals(patch: Patch) -> None:
    patch.setattr(lean, "refusals", lambda text: ())


LEAN_ACCEPTS = ("forged_listing", "wrong_division", "wrong_power", "shadowed_definition", "redefined_eq", "unsafe")


@pytest.mark.parametrize("name", LEAN_ACCEPTS)
def test_without_refusals_lean_accepts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, theorems = attack(name)
    assert not lean.check(text, theorems).accepted
    _no_refusals(monkeypatch)
    assert lean.check(text, theorems).accepted


def test_without_the_axioms_check_an_axiom_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    text, theorems = attack("axiom")
    assert not lean.ask_kernel(text, theorems).accepted
    real = lean._messages
    monkeypatch.setattr(lean, "_messages", lambda stdout: (real(stdout)[0], dict.fromkeys(real(stdout)[1], ())))
    assert lean.ask_kernel(text, theorems).accepted


def attack(name: str) -> tuple[str, list[str]]:
    """Text and expected theorems of an attack of ``lean/attacks``."""
    folder = data_path("lean", "attacks", name)
    return (folder / "attack.lean").read_text("utf-8"), tomllib.loads((folder / "expected.toml").read_text("utf-8"))[
        "theorems"
    ]


def test_without_a_private_cache_others_may_plant_a_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    planted = tmp_path / "cache"
    planted.mkdir()
    planted.chmod(0o777)
    monkeypatch.setenv("TBMM_CACHE", str(planted))
    with pytest.raises(lean.LeanUnavailable):
        library.cache_folder()
    monkeypatch.setattr(library, "_make_private", lambda folder: None)
    assert library.cache_folder() == planted
