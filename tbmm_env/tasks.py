"""Task packages: strict loading of ``tasks/<id>/``.

``task.toml`` is the single source of metrics and obligations; the answer's schema is its ``[answer]`` table.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from tbmm_env.data import data_path
from tbmm_env.errors import BadTask, UnknownTask
from tbmm_env.record import Language, ReferenceValue
from tbmm_env.specs import MetricSpec, ObligationSpec

INCOMPARABLE = ("different_unit_of_analysis", "no_numeric_estimate")
"""Exclusion reasons that say a value counts something else than the metric, or is no number: nobody can compare it."""

_STRICT = ConfigDict(extra="forbid")
_Record = TypeVar("_Record")


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class ReplayName:
    """One number that the replay yields: its name, unit and the power of ten it is rounded to."""

    name: str
    unit: str
    grid: Fraction
    text: str


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class PaperValue:
    """One published value with its audit, as in ``references.toml``; ``votes`` puts it on the panel."""

    paper: str
    metric: str
    value: Fraction
    resolution: Fraction
    where: str
    kind: Literal["outstanding_paper", "awarded_paper", "public_solution", "official_commentary", "seed_reproduction"]
    status: Literal["confirmed", "suboptimal", "convention", "contradicted", "unverifiable"]
    votes: bool
    exclusion_reason: str = ""
    note: str = ""


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class AbsentValue:
    """A paper without a number for a metric (``all`` for every metric), kept for the audit table; it has no vote."""

    paper: str
    metric: str
    reason: Literal["no_numeric_estimate", "number_only_in_figure", "figure_only", "figure_only_logistic_prior"]
    note: str = ""


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class OracleSpec:
    """What the oracle earns.

    Attributes:
        reward: inclusive range on the official instance.
        verified: inclusive range of ``verified`` there.
        sampled: least reward on a sampled instance.
    """

    reward: tuple[Fraction, Fraction]
    verified: tuple[Fraction, Fraction]
    sampled: Fraction


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class ContractSpec:
    """What ``tbmm check-task`` holds a task to.

    Attributes:
        baseline_score: ``verified`` of the trivial answers together.
        free_leaves: paths of answer leaves that no obligation restricts, with the reason.
        guards: obligations on replayed values alone that no answer can violate while our replay is right, with the
            reason.
    """

    baseline_score: Fraction
    free_leaves: dict[str, str] = field(default_factory=dict)
    guards: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A loaded task package.

    Attributes:
        id: for example ``cumcm-2024-a``.
        version: of statement, metrics and obligations together.
        titles: by language.
        panel_version: of the frozen panel.
        panel_sha256: of the panel as it was frozen, see :func:`panel_hash`.
        answer_schema: JSON Schema (2020-12) of the answer.
        replay_names: what the replay yields.
        metrics: scored numbers.
        obligations: the gate.
        papers: published values with their audit.
        absent: papers without a number.
        anchor: our own reproduced official values.
        oracle: what the oracle earns.
        contracts: what the contracts of this task ask for.
        contested: whether papers disagree on the finding itself; the task is then left out of headline means.
    """

    id: str
    version: str
    contest: str
    year: int
    letter: str
    titles: Mapping[Language, str]
    panel_version: str
    panel_sha256: str
    answer_schema: dict[str, Any]
    replay_names: tuple[ReplayName, ...]
    metrics: tuple[MetricSpec, ...]
    obligations: tuple[ObligationSpec, ...]
    papers: tuple[PaperValue, ...]
    absent: tuple[AbsentValue, ...]
    anchor: Mapping[str, Fraction]
    oracle: OracleSpec
    contracts: ContractSpec
    folder: Path
    contested: bool = False

    @property
    def references(self) -> tuple[ReferenceValue, ...]:
        """The values that vote."""
        return tuple(
            ReferenceValue(paper=p.paper, metric=p.metric, value=p.value, resolution=p.resolution)
            for p in self.papers
            if p.votes
        )

    @property
    def unaudited_references(self) -> tuple[ReferenceValue, ...]:
        """The values of all papers with an award, whatever the audit says of them; the same kind of number throughout.

        Left out are only values that are no number of the metric's kind, for which there is no comparison to make:
        those whose exclusion reason is one of ``INCOMPARABLE``. Metrics that are excluded by configuration are not
        declared at all, so they are excluded here too. Values read off a figure are numbers and stay.
        """
        return tuple(
            ReferenceValue(paper=p.paper, metric=p.metric, value=p.value, resolution=p.resolution)
            for p in self.papers
            if p.kind in ("outstanding_paper", "awarded_paper") and p.exclusion_reason not in INCOMPARABLE
        )


# ---------------------------------------------------------------- loading


def task_ids() -> list[str]:
    """Return the ids of all task packages, sorted."""
    return sorted(entry.parent.name for entry in data_path("tasks").glob("*/task.toml"))


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadTask(f"{path.name}: the file is missing from task package {path.parent.name}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadTask(f"{path.parent.name}/{path.name}: not valid TOML: {error}") from error


def _validate(kind: type[_Record], data: Any, where: str) -> _Record:
    if isinstance(data, dict) and (unknown := set(data) - {f.name for f in dataclasses.fields(kind)}):  # type: ignore[arg-type]
        raise BadTask(f"{where}: unknown field {sorted(unknown)[0]!r}")
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "(top)"
        if first["type"] == "missing":
            raise BadTask(f"{where}: field {field} is missing") from error
        raise BadTask(f"{where}: field {field} is {first['input']!r:.200}: {first['msg']}") from error


@checked_dataclass(frozen=True, kw_only=True, config=_STRICT)
class _TaskFile:
    id: str
    version: str
    contest: Literal["CUMCM", "MCM"]
    year: int
    letter: Literal["A", "B", "C"]
    title_en: str
    title_zh: str
    panel_version: str
    panel_sha256: str
    oracle: OracleSpec
    contracts: ContractSpec
    answer: dict[str, Any]
    replay: list[ReplayName]
    metric: list[dict[str, Any]]
    obligation: list[dict[str, Any]]
    contested: bool = False


@checked_dataclass(frozen=True, kw_only=True, config=_STRICT)
class _ReferenceFile:
    reference: list[PaperValue]
    anchor: dict[str, Fraction]
    absent: list[AbsentValue] = field(default_factory=list)


_SCHEMA_KEYS = {
    "type", "properties", "items", "minItems", "maxItems", "minimum", "maximum", "unit",
    "description", "description_zh",
}  # fmt: skip


@lru_cache(maxsize=64)
def load(task_id: str) -> Task:
    """Load one task package strictly.

    Args:
        task_id: with or without the ``tbmm/`` prefix.

    Raises:
        UnknownTask: no such package; the message lists what there is.
        BadTask: a file breaks its format, or the panel is not the frozen one; the message names file, field and value.
    """
    task = load_unfrozen(task_id)
    now = panel_hash(task)
    if task.panel_sha256 != now:
        raise BadTask(
            f"{task.id}: panel {task.panel_version} was frozen with sha256 {task.panel_sha256 or 'none'}, but"
            f" references.toml and the metrics give {now}; a changed panel takes a new version:"
            f" tbmm audit-panel {task.id} --freeze NEW_VERSION"
        )
    return task


def panel_hash(task: Task) -> str:
    """Return the sha256 of what a panel version stands for.

    That is the version, anchor, the published values with status and vote, and the fields of the metrics that enter a
    score. Words (``where``, ``note``, ``reason``) may be mended without a new version.
    """
    papers = sorted(
        (p.paper, p.metric, str(p.value), str(p.resolution), p.kind, p.status, p.votes, p.exclusion_reason)
        for p in task.papers
    )
    metrics = sorted(
        (m.key, m.unit, m.kind, m.direction, m.shape, [str(h) for h in m.ladder], str(m.weight), str(m.tolerance),
         str(m.grid), m.value, m.truth or "", [str(end) for end in m.domain], list(m.requires))
        for m in task.metrics
    )  # fmt: skip
    anchor = sorted((key, str(value)) for key, value in task.anchor.items())
    content = [task.panel_version, anchor, papers, metrics]
    return hashlib.sha256(json.dumps(content, ensure_ascii=True).encode()).hexdigest()


def load_unfrozen(task_id: str) -> Task:
    """Load one task package strictly, whether or not its panel is the frozen one; for the audit alone.

    Raises:
        UnknownTask: no such package; the message lists what there is.
        BadTask: a file breaks its format; the message names file, field and value.
    """
    name = task_id.removeprefix("tbmm/")
    known = task_ids()
    if name not in known:
        raise UnknownTask(f"unknown task {task_id!r}; there are: {', '.join(known)}")
    folder = data_path("tasks", name)
    head = _validate(_TaskFile, _read_toml(folder / "task.toml"), f"{name}/task.toml")
    papers = _validate(_ReferenceFile, _read_toml(folder / "references.toml"), f"{name}/references.toml")
    metrics = tuple(
        _validate(MetricSpec, m, f"{name}/task.toml: metric {m.get('key', i)!r}") for i, m in enumerate(head.metric)
    )
    obligations = tuple(
        _validate(ObligationSpec, o, f"{name}/task.toml: obligation {o.get('id', i)!r}")
        for i, o in enumerate(head.obligation)
    )
    task = Task(
        id=head.id,
        version=head.version,
        contest=head.contest,
        year=head.year,
        letter=head.letter,
        titles={"en": head.title_en, "zh": head.title_zh},
        panel_version=head.panel_version,
        panel_sha256=head.panel_sha256,
        answer_schema=head.answer,
        replay_names=tuple(head.replay),
        metrics=metrics,
        obligations=obligations,
        papers=tuple(papers.reference),
        absent=tuple(papers.absent),
        anchor=papers.anchor,
        oracle=head.oracle,
        contracts=head.contracts,
        folder=folder,
        contested=head.contested,
    )
    _check(task, name)
    return task


def _check(task: Task, name: str) -> None:
    """Cross-check ids, operands, grids and the schema of a task package."""

    def need(condition: bool, message: str) -> None:
        if not condition:
            raise BadTask(f"{name}: {message}")

    need(task.id == name, f"task.toml: id is {task.id!r}; it must equal the folder's name")
    need(len(task.obligations) > 0, "task.toml: there is no obligation; every task has a gate")
    keys = [m.key for m in task.metrics]
    ids = [o.id for o in task.obligations]
    replayed = {r.name for r in task.replay_names}
    for what, names in (
        ("metric key", keys),
        ("obligation id", ids),
        ("replay name", [r.name for r in task.replay_names]),
    ):
        for entry in names:
            need(re.fullmatch(r"[a-z][a-z0-9_]*", entry) is not None, f"{what} {entry!r} must match [a-z][a-z0-9_]*")
        need(len(set(names)) == len(names), f"a {what} occurs twice in {names}")
    for metric in task.metrics:
        where = f"metric {metric.key}"
        need(metric.weight > 0 or metric.kind == "reported", f"{where}: weight is {metric.weight}; it must be > 0")
        need(_is_power_of_ten(metric.grid), f"{where}: grid is {metric.grid}; it must be a power of ten")
        need(metric.grid <= metric.tolerance / 10, f"{where}: grid {metric.grid} must be <= tolerance / 10")
        need((metric.shape == "ladder") == bool(metric.ladder), f"{where}: ladder thresholds and shape disagree")
        need(set(metric.requires) <= set(ids), f"{where}: requires names an unknown obligation: {metric.requires}")
        need(metric.kind != "asked" or metric.truth is not None, f"{where}: an asked metric needs truth")
        need(metric.key in task.anchor, f"references.toml: anchor of {metric.key} is missing")
    operands = [m.value for m in task.metrics] + [m.truth for m in task.metrics if m.truth]
    operands += [t for o in task.obligations for t in (*o.terms, o.lower, o.upper, *(o.when or ())) if t]
    for operand in operands:
        if operand.startswith("replay:"):
            need(operand[7:] in replayed, f"operand {operand!r} names no [[replay]] entry")
    votes = [(paper.paper, paper.metric) for paper in task.papers]
    for paper in task.papers:
        where = f"references.toml: {paper.paper}, {paper.metric}"
        need(paper.metric in keys, f"{where}: there is no such metric")
        need(votes.count((paper.paper, paper.metric)) == 1, f"{where}: occurs twice; a paper has one value a metric")
        need(not paper.votes or paper.status in ("confirmed", "suboptimal", "convention"),
             f"{where}: status {paper.status} cannot vote")  # fmt: skip
        need(not paper.votes or paper.kind in ("outstanding_paper", "awarded_paper"),
             f"{where}: kind {paper.kind} has no award and cannot vote")  # fmt: skip
    for absent in task.absent:
        where = f"references.toml: absent {absent.paper}, {absent.metric}"
        need(absent.metric in (*keys, "all"), f"{where}: there is no such metric")
    least = (task.oracle.sampled, Fraction(1))
    for key, (low, high) in (("reward", task.oracle.reward), ("verified", task.oracle.verified), ("sampled", least)):
        need(0 <= low <= high <= 1, f"task.toml: oracle: {key} is {low} .. {high}; it must lie within 0 .. 1")
    for replay in task.replay_names:
        need(_is_power_of_ten(replay.grid), f"replay {replay.name}: grid is {replay.grid}; it must be a power of ten")
    _check_schema(task.answer_schema, f"{name}/task.toml: answer")


def _is_power_of_ten(value: Fraction) -> bool:
    return (
        value > 0
        and (re.fullmatch(r"10*", str(value.denominator)) is not None)
        and (re.fullmatch(r"10*", str(value.numerator)) is not None)
    )


def _check_schema(node: Any, where: str) -> None:
    """Refuse a schema that does not bound every list and every number."""
    if not isinstance(node, dict) or "type" not in node:
        raise BadTask(f"{where}: must be a table with a type")
    if unknown := set(node) - _SCHEMA_KEYS:
        raise BadTask(f"{where}: unknown key {sorted(unknown)[0]!r}; allowed are {', '.join(sorted(_SCHEMA_KEYS))}")
    needed = {
        "object": ("properties",), "array": ("items", "maxItems"), "number": ("unit", "minimum", "maximum"),
        "integer": ("unit", "minimum", "maximum"), "string": (), "boolean": (),
    }  # fmt: skip
    if node["type"] not in needed:
        raise BadTask(f"{where}: type is {node['type']!r}; it must be one of {', '.join(needed)}")
    for key in needed[node["type"]]:
        if key not in node:
            raise BadTask(f"{where}: {key} is missing; every list and every number must be bounded")
    for key, child in node.get("properties", {}).items():
        _check_schema(child, f"{where}.{key}")
    if "items" in node:
        _check_schema(node["items"], f"{where}[*]")
