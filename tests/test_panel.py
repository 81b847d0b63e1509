"""The panel audit: every status in the tree is what the replay says, and a wrong one is found and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from tbmm_env import panel, tasks
from tbmm_env.bench import Bench
from tbmm_env.cli import main
from tbmm_env.errors import BadTask, UsageError
from tbmm_env.record import Panel
from tbmm_env.specs import MetricSpec
from tbmm_env.tasks import AbsentValue, PaperValue

NAME = "cumcm-2024-a"
TASK = tasks.load(NAME)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("task_id", tasks.task_ids())
def test_every_audit_table_is_the_generated_one(task_id: str) -> None:
    task = tasks.load(task_id)
    found = panel.audit(task)
    assert found.findings == ()
    readme = (task.folder / "README.md").read_text(encoding="utf-8")
    assert panel.with_table(readme, panel.table(found)) == readme
    assert len(found.rows) == len(task.papers) + len(task.absent) + len(task.anchor)


# ---------------------------------------------------------------- what is found


def value(paper: str, metric: str) -> PaperValue:
    return next(entry for entry in TASK.papers if (entry.paper, entry.metric) == (paper, metric))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench(TASK) as made:
        yield made


def findings(bench: Bench, entry: PaperValue, metrics: Sequence[MetricSpec] = TASK.metrics) -> tuple[str, ...]:
    metric = next(metric for metric in metrics if metric.key == entry.metric)
    return panel.audit_value(bench, metric, entry).findings


@pytest.mark.parametrize(
    ("task_id", "metric", "value_", "said"),
    [
        ("cumcm-2024-b", "q3_profit_yuan", "60.222222222222", ()),
        (
            "cumcm-2024-b",
            "q3_profit_yuan",
            "60.3",
            ("our anchor, q3_profit_yuan: declared confirmed, recomputed contr",),
        ),
        (
            "cumcm-2024-b",
            "q3_profit_yuan",
            "60.1",
            ("our anchor, q3_profit_yuan: declared confirmed, recomputed contr",),
        ),
    ],
)
def test_an_anchor_of_many_decisions_is_what_the_optimum_submission_reaches(
    task_id: str, metric: str, value_: str, said: tuple[str, ...]
) -> None:
    task = tasks.load(task_id)
    anchor = PaperValue(
        paper="our anchor", metric=metric, value=Fraction(value_), resolution=Fraction(0), where="problems/",
        kind="seed_reproduction", status="confirmed", votes=False, exclusion_reason="anchor",
    )  # fmt: skip
    with Bench(task) as bench:
        found = findings(bench, anchor, task.metrics)
    assert tuple(finding[: len(begin)] for finding, begin in zip(found, said, strict=True)) == said


Q2, Q4, Q5 = "q2_termination_time_s", "q4_turn_length_m", "q5_head_speed_mps"


@pytest.mark.parametrize(
    ("paper", "metric", "changes", "said"),
    [
        ("A163", Q5, {"status": "suboptimal"}, "A163, q5_head_speed_mps: declared suboptimal, recomputed confirmed"),
        ("A163", Q5, {"value": Fraction("1.3")}, "recomputed contradicted: 1.300000 m/s breaks q5_no_handle_too_fast"),
        ("A163", Q5, {"value": Fraction("1.2")}, "confirmed, recomputed suboptimal: 1.200000 m/s feasible, 0.0463 m/s"),
        ("A163", Q5, {"value": Fraction(101)}, "contradicted: 101.000000 m/s breaks the schema: q5.head_speed_mps"),
        ("A163", Q2, {"value": Fraction("412.4")}, "contradicted, recomputed suboptimal: 412.400000 s feasible"),
        ("A163", Q2, {"exclusion_reason": ""}, "an awarded paper without a vote needs an exclusion_reason"),
        ("A163", Q4, {"note": ""}, "A163, q4_turn_length_m: convention is not shown by replay and must carry a note"),
        ("A163", Q4, {"value": Fraction("13.7")}, "votes as convention, recomputed contradicted: 13.70000 m 0.07"),
        ("Robin567-Li", Q4, {"value": Fraction("13.7")}, "confirmed, recomputed contradicted: 13.7000000000000 m"),
        ("Neo-0-Gu", Q4, {"note": ""}, "Neo-0-Gu, q4_turn_length_m: unverifiable is not shown by replay"),
        ("walker4869", Q5, {"note": ""}, "walker4869, q5_head_speed_mps: convention is not shown by replay"),
        ("A016-reproduction", Q4, {"note": ""}, "contradicted is not shown by replay and must carry a note"),
    ],
)  # fmt: skip
def test_a_wrong_status_is_found(bench: Bench, paper: str, metric: str, changes: dict[str, object], said: str) -> None:
    entry = value(paper, metric)
    assert findings(bench, entry) == ()
    wrong = replace(entry, **changes)  # type: ignore[arg-type]
    complaints = findings(bench, wrong)
    assert any(said in complaint for complaint in complaints), complaints


def test_tolerance_and_resolution_are_forgiven_together(bench: Bench) -> None:
    entry = value("A163", Q5)
    spec = next(metric for metric in TASK.metrics if metric.key == Q5)
    edge = TASK.anchor[Q5] - spec.tolerance - entry.resolution
    assert findings(bench, replace(entry, value=edge)) == ()
    (complaint,) = findings(bench, replace(entry, value=edge - Fraction(1, 10**12)))
    assert "recomputed suboptimal" in complaint


def test_a_value_without_a_decision_to_put_it_in_needs_a_note(bench: Bench) -> None:
    metrics = tuple(replace(metric, value="replay:peak_speed_mps") for metric in TASK.metrics if metric.key == Q5)
    entry = value("A163", Q5)
    assert findings(bench, entry, metrics) == ()
    (complaint,) = findings(bench, replace(entry, note=""), metrics)
    assert complaint == "A163, q5_head_speed_mps: confirmed is not shown by replay and must carry a note"


def test_anchor_and_absent_values_are_audited_too() -> None:
    anchor = dict(TASK.anchor) | {Q5: Fraction("1.25")}
    absent = (AbsentValue(paper="A016", metric="all", reason="no_numeric_estimate"),)
    found = panel.audit(replace(TASK, papers=(), anchor=anchor, absent=absent))
    first, second = found.findings
    assert first.startswith(
        "our anchor, q5_head_speed_mps: declared confirmed, recomputed contradicted: 1.25 m/s breaks"
    )
    assert second == "A016, all: no_numeric_estimate without a note"


def test_markers_stand_once_and_in_order() -> None:
    good = f"a\n{panel.START}\nold\n{panel.END}\nb\n"
    written = f"{panel.START}\nnew\n{panel.END}"
    assert panel.with_table(good, written) == f"a\n{written}\nb\n"
    for bad in ("a", good + good, f"{panel.END}{panel.START}"):
        with pytest.raises(BadTask, match="once each, in this order"):
            panel.with_table(bad, written)


# ---------------------------------------------------------------- freezing and the command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the task with two quick values, frozen, which is what is loaded from here on."""
    copy = tmp_path / "tasks" / NAME
    shutil.copytree(TASK.folder, copy)
    monkeypatch.setattr("tbmm_env.tasks.data_path", lambda *parts: tmp_path.joinpath(*parts))
    tasks.load.cache_clear()
    head, *entries = (copy / "references.toml").read_text(encoding="utf-8").split("[[reference]]")
    kept = [entry for entry in entries if '"A163"' in entry and ("q2_term" in entry or "q5_head" in entry)]
    assert len(kept) == 2
    scored = Panel(version="", references=(), anchor=TASK.anchor, baseline=dict.fromkeys(TASK.anchor, Fraction(0)))
    monkeypatch.setattr(Bench, "panel", lambda _: scored)  # slow, and no part of what is tested here; so are the next
    monkeypatch.setattr(Bench, "values", lambda _: TASK.anchor)
    replayed = panel._replayed
    monkeypatch.setattr(
        panel, "_replayed", lambda b, m, e: ("confirmed", "") if m.key == "q3_pitch_m" else replayed(b, m, e)
    )
    (copy / "references.toml").write_text("[[reference]]".join([head, *kept]), encoding="utf-8")
    panel.freeze(tasks.load_unfrozen(NAME), "copy-1")
    yield copy
    tasks.load.cache_clear()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_frozen_panel_is_not_changed(folder: Path) -> None:
    assert tasks.load(NAME).panel_version == "copy-1"
    for version, said in (
        ("copy-1", "that is the present version"),
        ("", "letters, digits"),
        ('x"', "letters, digits"),
    ):
        with pytest.raises(UsageError, match=said):
            panel.freeze(tasks.load_unfrozen(NAME), version)
    edit(folder / "references.toml", 'value = "1.246266"', 'value = "1.246265"')
    tasks.load.cache_clear()
    with pytest.raises(BadTask, match=f"tbmm audit-panel {NAME} --freeze NEW_VERSION"):
        tasks.load(NAME)
    frozen = panel.freeze(tasks.load_unfrozen(NAME), "copy-2")
    assert (frozen.panel_version, frozen.panel_sha256) == ("copy-2", panel_sha256(folder))


def panel_sha256(folder: Path) -> str:
    (line,) = [x for x in (folder / "task.toml").read_text("utf-8").splitlines() if x.startswith("panel_sha256")]
    return line.split('"')[1]


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit-panel", NAME, "--write"]) == 0
    assert "Panel copy-1 is frozen" in capsys.readouterr().out
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert "Panel copy-1, sha256 `" in readme
    assert readme.count("| A163 |") == 2
    edit(folder / "references.toml", 'value = "1.246266"', 'value = "1.346266"')
    assert main(["audit-panel", NAME, "--freeze", "copy-2", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["frozen"] is False
    (finding,) = found["findings"]
    assert finding.startswith(
        "A163, q5_head_speed_mps: declared confirmed, recomputed contradicted: 1.346266 m/s breaks"
    )
    assert (folder / "README.md").read_text(encoding="utf-8") == readme
    edit(folder / "references.toml", 'value = "1.346266"', 'value = "1.246265"')
    assert main(["audit-panel", NAME]) == 1
    assert "not frozen" in capsys.readouterr().out
    assert main(["audit-panel", NAME, "--freeze", "copy-2"]) == 0
    assert "Panel copy-2, sha256 `" in (folder / "README.md").read_text(encoding="utf-8")
    assert main(["audit-panel", "nope"]) == 2
