"""What people and machines are told: judgements as JSON objects and as tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tbmm_env.instances import instance_json
from tbmm_env.judge.evaluation import is_multi_reference
from tbmm_env.judge.numeral import exact_text
from tbmm_env.record import (
    Certificate,
    JsonValue,
    Judgement,
    MetricScore,
    Obligation,
    ReferenceScore,
)

_OUTCOME_STYLE = {"scored": "bold green", "infeasible": "bold red", "malformed": "bold red", "missing": "bold yellow"}
_CELL_CHARACTERS = 12
_STATE_STYLE = {"holds": "green", "violated": "bold red", "unwitnessed": "yellow"}


def exact(value: Fraction | None) -> str | None:
    """Return a rational as text; see :func:`tbmm_env.judge.numeral.exact_text`."""
    return None if value is None else exact_text(value)


def number(value: Fraction | None) -> float | None:
    """Return a rational as the nearest finite float, for display."""
    if value is None:
        return None
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


def short(value: Fraction | float | None) -> str:
    """Return at most 10 significant digits of a number."""
    return "-" if value is None else f"{number(value) if isinstance(value, Fraction) else value:.10g}"


# ---------------------------------------------------------------- JSON


def _reference(entry: ReferenceScore) -> dict[str, JsonValue]:
    return {
        "paper": entry.paper,
        "reference": number(entry.reference),
        "tolerance": number(entry.tolerance),
        "band": number(entry.band),
        "shortfall": number(entry.shortfall),
        "score": number(entry.score),
        "score_exact": exact(entry.score),
    }


def _metric(entry: MetricScore) -> dict[str, JsonValue]:
    return {
        "key": entry.spec.key,
        "question": entry.spec.question,
        "unit": entry.spec.unit,
        "kind": entry.spec.kind,
        "direction": entry.spec.direction,
        "weight": exact(entry.spec.weight),
        "value": number(entry.value),
        "value_exact": exact(entry.value),
        "claimed": number(entry.claimed),
        "counted": entry.counted,
        "verified": _reference(entry.verified),
        "references": [_reference(reference) for reference in entry.references],
        "reason": entry.reason,
    }


def _obligation(entry: Obligation) -> dict[str, JsonValue]:
    return {
        "id": entry.spec.id,
        "form": entry.spec.form,
        "question": entry.spec.question,
        "status": entry.state,
        "source": entry.spec.source,
        "text": entry.spec.text,
        "reason": entry.reason,
    }


def _certificate(certificate: Certificate | None) -> dict[str, JsonValue]:
    if certificate is None:
        return {}  # as a mapping in any case: Gymnasium merges the infos of several environments by type
    return {
        "accepted": certificate.accepted,
        "axioms": list(certificate.axioms),
        "theorems": list(certificate.theorems),
        "lean_version": certificate.lean_version,
        "sha256": certificate.sha256,
        "path": None,
    }


def judgement_json(judgement: Judgement) -> dict[str, JsonValue]:
    """Return a judgement as a JSON object; the same judgement gives the same bytes."""
    score = judgement.score
    return {
        "task": judgement.task,
        "instance": instance_json(judgement.instance),
        "outcome": judgement.outcome,
        "reward": float(judgement.reward),
        "reward_exact": exact_text(judgement.reward),
        "o_eval": float(score.o_eval) if score else 0.0,
        "o_eval_exact": exact_text(score.o_eval) if score else "0",
        "o_eval_without_exclusions": float(judgement.o_eval_without_exclusions),
        "o_eval_without_exclusions_exact": exact_text(judgement.o_eval_without_exclusions),
        "verified": float(score.verified) if score else 0.0,
        "verified_exact": exact_text(score.verified) if score else "0",
        "questions": {key: float(value) for key, value in score.questions.items()} if score else {},
        "questions_gated": {key: float(value) for key, value in judgement.questions_gated.items()},
        "papers": {key: float(value) for key, value in score.per_reference.items()} if score else {},
        "multi_reference": is_multi_reference(score) if score else False,
        "reason": judgement.reason,
        "problems": [{"path": problem.path, "message": problem.message} for problem in judgement.problems],
        "metrics": [_metric(entry) for entry in score.metrics] if score else [],
        "obligations": [_obligation(entry) for entry in judgement.obligations],
        "certificate": _certificate(judgement.certificate),
        "artifact_sha256": judgement.artifact_sha256,
        "panel_version": judgement.panel_version,
        "judge_version": judgement.judge_version,
        "notes": list(judgement.notes),
    }


# ---------------------------------------------------------------- tables


def print_judgement(console: Console, judgement: Mapping[str, Any]) -> None:
    """Print the object of :func:`judgement_json` as a person reads it: outcome, metrics, gate, certificate."""
    style = _OUTCOME_STYLE[judgement["outcome"]]
    seed = judgement["instance"]["seed"]
    which = "no seed" if seed is None else f"seed {seed}"
    console.print(
        f"[bold]{judgement['task']}[/] ({which}): [{style}]{judgement['outcome']}[/], "
        f"reward [{style}]{judgement['reward']:.6f}[/]"
    )
    for problem in judgement["problems"]:
        console.print(f"  [yellow]{escape(problem['message'])}[/]")
    if judgement["metrics"]:
        console.print(_metric_table(judgement))
        for entry in judgement["metrics"]:
            if not entry["counted"]:
                console.print(f"  [yellow]{escape(entry['reason'])}[/]", highlight=False)
    if judgement["outcome"] == "infeasible":
        shares = ", ".join(f"{name} {value:.6f}" for name, value in judgement["questions_gated"].items())
        console.print(f"questions, each behind its own gate (not the reward): {escape(shares)}", highlight=False)
    if judgement["obligations"]:
        console.print(_gate_table(judgement))
    certificate = judgement["certificate"]
    if certificate:
        word = "[bold green]accepted[/]" if certificate["accepted"] else "[bold red]refused[/]"
        axioms = ", ".join(certificate["axioms"]) or "none"
        proved = f"{len(certificate['theorems'])} theorems, axioms: {axioms}, sha256 {certificate['sha256'][:16]}"
        console.print(f"certificate {word}: {proved}; {certificate['lean_version']}", highlight=False)


def _metric_table(judgement: Mapping[str, Any]) -> Table:
    table = Table(title="Metrics", title_justify="left")
    for column in ("metric", "value", "anchor", "unit", "verified", "panel"):
        words = column in ("metric", "unit")
        table.add_column(column, justify="left" if words else "right", no_wrap=column != "panel", overflow="fold")
    for entry in judgement["metrics"]:
        ours = entry["verified"]
        votes = ", ".join(_cell(reference) for reference in entry["references"])
        value, anchor = short(entry["value"]), short(ours["reference"])
        table.add_row(entry["key"], value, anchor, entry["unit"], _cell(ours), votes or "-")
    table.add_section()
    table.add_row("all", "", "", "", f"{judgement['verified']:.6f}", f"{judgement['o_eval']:.6f}")
    table.add_row("all, no exclusions", "", "", "", "", f"{judgement['o_eval_without_exclusions']:.6f}")
    return table


def _cell(reference: Mapping[str, Any]) -> str:
    """Return a score as a fraction when that is short, else as a decimal."""
    text: str = reference["score_exact"]
    return text if len(text) <= _CELL_CHARACTERS else short(reference["score"])


def _gate_table(judgement: Mapping[str, Any]) -> Table:
    table = Table(title="Gate", title_justify="left")
    for column in ("obligation", "form", "state", "reason"):
        table.add_column(column, overflow="fold")
    for entry in judgement["obligations"]:
        state = f"[{_STATE_STYLE[entry['status']]}]{entry['status']}[/]"
        table.add_row(entry["id"], entry["form"], state, escape(entry["reason"]))
    return table
