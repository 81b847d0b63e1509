"""Scores with and without the audit's exclusions, question by question, and what cannot change the denominator."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tbmm_env import instances, tasks
from tbmm_env.errors import BadTask
from tbmm_env.judge.artifact import read_artifact, regular
from tbmm_env.judge.judge import Judge
from tbmm_env.judge.numeral import read_exact
from tbmm_env.record import Artifact, Judgement
from tbmm_env.report import judgement_json, print_judgement

TASK = tasks.load("cumcm-2024-a")
BYTES = 1 << 20
SCORED = TASK.folder / "submissions" / "scored" / "optimum.json"
BROKEN = TASK.folder / "submissions" / "infeasible" / "q5_plus_1pct.json"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(TASK, artifact_bytes=BYTES) as made:
        yield made


def judged(judge: Judge, artifact: Artifact) -> Judgement:
    return judge.judge(instances.official(TASK), artifact)


def paper_value(**fields: Any) -> tasks.PaperValue:
    defaults: dict[str, Any] = {
        "paper": "p",
        "metric": TASK.metrics[0].key,
        "value": Fraction(1),
        "resolution": Fraction(1),
        "where": "",
        "kind": "outstanding_paper",
        "status": "contradicted",
        "votes": False,
    }
    return tasks.PaperValue(**(defaults | fields))


class TestWithoutExclusions:
    def test_everybody_with_an_award_is_on_it(self) -> None:
        everybody = {(entry.paper, entry.metric) for entry in TASK.unaudited_references}
        awarded = {(p.paper, p.metric) for p in TASK.papers if p.kind in ("outstanding_paper", "awarded_paper")}
        assert {(entry.paper, entry.metric) for entry in TASK.references} < everybody
        assert everybody <= awarded
        left_out = {(p.paper, p.metric): p.exclusion_reason for p in TASK.papers}
        assert {left_out[key] for key in awarded - everybody} <= set(tasks.INCOMPARABLE)

    @pytest.mark.parametrize(
        ("fields", "there"),
        [
            ({"status": "contradicted", "exclusion_reason": "infeasible_by_replay"}, True),
            ({"status": "unverifiable", "exclusion_reason": "unreplayable_claim"}, True),
            ({"status": "unverifiable", "exclusion_reason": "number_only_in_figure"}, True),
            ({"kind": "awarded_paper", "status": "confirmed", "votes": True}, True),
            ({"status": "convention", "exclusion_reason": "different_unit_of_analysis"}, False),
            ({"status": "unverifiable", "exclusion_reason": "no_numeric_estimate"}, False),
            ({"kind": "public_solution", "status": "confirmed"}, False),
            ({"kind": "seed_reproduction"}, False),
            ({"kind": "official_commentary"}, False),
        ],
    )
    def test_who_is_on_it(self, fields: dict[str, Any], there: bool) -> None:
        task = dataclasses.replace(TASK, papers=(paper_value(**fields),))
        assert bool(task.unaudited_references) is there

    def test_both_are_shown_and_only_one_hears_of_an_excluded_paper(self, judge: Judge) -> None:
        before = judged(judge, read_artifact(SCORED, BYTES))
        wild = paper_value(paper="wild", value=Fraction(10**6), exclusion_reason="infeasible_by_replay")
        with Judge(dataclasses.replace(TASK, papers=(*TASK.papers, wild)), artifact_bytes=BYTES) as other:
            after = judged(other, read_artifact(SCORED, BYTES))
        assert before.score is not None
        assert after.score is not None
        assert TASK.metrics[0].direction == "higher_is_better"
        assert after.score == before.score
        assert after.reward == before.reward == before.o_eval_without_exclusions == 1
        papers = len({entry.paper for entry in TASK.unaudited_references})
        assert after.o_eval_without_exclusions == Fraction(papers, papers + 1)
        value = judgement_json(after)
        assert read_exact(str(value["o_eval_without_exclusions_exact"])) == Fraction(papers, papers + 1)
        console = Console(file=io.StringIO(), width=160)
        print_judgement(console, value)
        assert isinstance(console.file, io.StringIO)
        row = next(line for line in console.file.getvalue().splitlines() if "all, no exclusions" in line)
        assert f"{papers / (papers + 1):.6f}" in row

    def test_a_sampled_instance_has_no_papers_to_exclude(self, judge: Judge) -> None:
        judgement = judge.judge(instances.sampled(TASK, 3), regular(b"{}"))
        assert judgement.score is not None
        assert judgement.o_eval_without_exclusions == judgement.score.o_eval == judgement.score.verified

    def test_missing_and_malformed_have_none(self, judge: Judge) -> None:
        for artifact in (Artifact(status="missing"), regular(b"[")):
            value = judgement_json(judged(judge, artifact))
            assert (value["o_eval_without_exclusions"], value["o_eval_without_exclusions_exact"]) == (0.0, "0")
            assert (value["questions_gated"], value["multi_reference"]) == ({}, False)


class TestGating:
    def test_only_the_broken_question_is_zeroed(self, judge: Judge) -> None:
        judgement = judged(judge, read_artifact(BROKEN, BYTES))
        assert judgement.score is not None
        closed = {entry.spec.question for entry in judgement.obligations if entry.state == "violated"}
        assert closed == {"q5"}
        assert judgement.reward == 0
        for question, value in judgement.score.questions.items():
            assert judgement.questions_gated[question] == (0 if question in closed else value)
        assert sum(judgement.questions_gated.values()) > 0
        console = Console(file=io.StringIO(), width=160)
        print_judgement(console, judgement_json(judgement))
        assert isinstance(console.file, io.StringIO)
        assert "q5 0.000000" in console.file.getvalue()

    def test_a_feasible_answer_keeps_every_question(self, judge: Judge) -> None:
        judgement = judged(judge, read_artifact(SCORED, BYTES))
        assert judgement.score is not None
        assert judgement.questions_gated == judgement.score.questions


class TestDenominator:
    def test_surplus_entries_are_ignored(self, judge: Judge) -> None:
        answer = json.loads(SCORED.read_text(encoding="utf-8"))
        surplus = {"q9": {"value": 1e9}, "o_eval": 1, "reward": 1, "references": [1, 2, 3]}
        plain, padded = (judged(judge, regular(json.dumps(a).encode())) for a in (answer, answer | surplus))
        assert plain.reward > 0
        assert padded.outcome == "scored"
        assert (padded.reward, padded.score) == (plain.reward, plain.score)

    def test_what_is_left_out_stays_in_the_denominator(self, judge: Judge) -> None:
        answer = json.loads(SCORED.read_text(encoding="utf-8"))
        whole = judged(judge, regular(json.dumps(answer).encode()))
        less = judged(judge, regular(json.dumps({k: v for k, v in answer.items() if k != "q4"}).encode()))
        assert whole.score is not None
        assert less.score is not None
        lost = [entry.spec.weight for entry in whole.score.metrics if entry.spec.question == "q4"]
        total = sum(entry.spec.weight for entry in whole.score.metrics)
        assert less.score.verified == whole.score.verified - sum(lost) / total
        assert set(less.score.per_reference) == set(whole.score.per_reference)


class TestTaskFile:
    @pytest.fixture
    def altered(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        shutil.copytree(TASK.folder, tmp_path / "tasks" / TASK.id)
        monkeypatch.setattr(tasks, "data_path", lambda *parts: tmp_path.joinpath(*parts))
        tasks.load.cache_clear()
        yield tmp_path / "tasks" / TASK.id
        tasks.load.cache_clear()

    @pytest.mark.parametrize(
        ("line", "contested"), [("", False), ("contested = false", False), ("contested = true", True)]
    )
    def test_contested_is_declared(self, altered: Path, line: str, contested: bool) -> None:
        path = altered / "task.toml"
        path.write_text(f"{line}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
        assert tasks.load(TASK.id).contested is contested

    def test_a_paper_has_one_value_a_metric(self, altered: Path) -> None:
        path = altered / "references.toml"
        text = path.read_text(encoding="utf-8")
        entry = text[text.index("[[reference]]") :].split("[[reference]]")[1]
        path.write_text(f"{text}\n[[reference]]{entry}", encoding="utf-8")
        with pytest.raises(BadTask, match="occurs twice; a paper has one value a metric"):
            tasks.load(TASK.id)
