"""The panel audit: every published value is put into the decision it belongs to and replayed.

``tbmm audit-panel`` compares the outcome with the status that ``references.toml`` declares, writes the audit table of
``tasks/<id>/README.md`` and freezes the panel under a version. A status that the replay contradicts is a finding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tbmm_env import tasks
from tbmm_env.bench import Bench, field_of, put
from tbmm_env.errors import BadTask, UsageError
from tbmm_env.judge.artifact import validate
from tbmm_env.judge.numeral import decimal_text
from tbmm_env.judge.score import score, shortfall
from tbmm_env.record import Answer, JsonValue, Obligation, Panel, ReferenceValue
from tbmm_env.specs import MetricSpec
from tbmm_env.tasks import PaperValue, Task

START = "<!-- audit table: written by tbmm audit-panel -->"
END = "<!-- end of the audit table -->"

AWARDED = ("outstanding_paper", "awarded_paper")
"""Kinds of paper that may vote."""

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,39}")
OnStart = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One audited value.

    Attributes:
        paper: paper id, or ``our anchor``.
        metric: metric key.
        published: the number with the digits it was printed with, and its unit; or why there is none.
        replayed: what the replay said of it.
        declared: status in ``references.toml``.
        recomputed: status by replay; None when it was not replayed.
        votes: whether it is on the panel.
        feasible: whether no obligation of its question is violated; None when it was not replayed.
        exclusion_reason: why it does not vote.
        note: as in ``references.toml``.
        findings: sentences on what does not fit.
    """

    paper: str
    metric: str
    published: str
    replayed: str
    declared: str
    recomputed: str | None
    votes: bool
    feasible: bool | None = None
    exclusion_reason: str = ""
    note: str = ""
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """All rows, and the optimum's O-Eval with the exclusions and as if every awarded value voted."""

    task: Task
    rows: tuple[Row, ...]
    with_exclusions: Fraction
    without_exclusions: Fraction

    @property
    def findings(self) -> tuple[str, ...]:
        """All findings, in the order of the rows."""
        return tuple(finding for row in self.rows for finding in row.findings)


# ---------------------------------------------------------------- the audit


def audit(task: Task, on_start: OnStart | None = None) -> Audit:
    """Recompute the status of every published value, and of our anchor, by replay.

    Args:
        task: the task, frozen or not.
        on_start: called before each value with its name, its number and how many there are.

    Raises:
        BadTask: the optimum submission is absent or malformed.
        ReplayFailed: a replay crashed or exceeded its budget.
    """
    metrics = {metric.key: metric for metric in task.metrics}
    ours = [
        PaperValue(paper="our anchor", metric=key, value=value, resolution=Fraction(0), where="problems/",
                   kind="seed_reproduction", status="confirmed", votes=False, exclusion_reason="anchor")
        for key, value in task.anchor.items()
    ]  # fmt: skip
    entries = [*ours, *task.papers]
    rows: list[Row] = []
    with Bench(task) as bench:
        for number, entry in enumerate(entries, 1):
            if on_start is not None:
                on_start(f"{entry.paper}, {entry.metric}", number, len(entries))
            rows.append(audit_value(bench, metrics[entry.metric], entry))
        panel, values = bench.panel(), bench.values()
    rows += [
        Row(paper=absent.paper, metric=absent.metric, published="-", replayed="", declared=absent.reason,
            recomputed=None, votes=False, note=absent.note,
            findings=() if absent.note else (f"{absent.paper}, {absent.metric}: {absent.reason} without a note",))
        for absent in task.absent
    ]  # fmt: skip
    everybody = tuple(
        ReferenceValue(paper=p.paper, metric=p.metric, value=p.value, resolution=p.resolution)
        for p in task.papers
        if p.kind in AWARDED
    )
    return Audit(
        task=task,
        rows=tuple(rows),
        with_exclusions=_o_eval(task, panel, values),
        without_exclusions=_o_eval(task, replace(panel, references=everybody), values),
    )


def _o_eval(task: Task, panel: Panel, values: Mapping[str, Fraction]) -> Fraction:
    return score(task.metrics, panel, values, {entry.id: "holds" for entry in task.obligations}, {}).o_eval


def audit_value(bench: Bench, metric: MetricSpec, entry: PaperValue) -> Row:
    """Replay one published value and compare the outcome with its declared status."""
    name = f"{entry.paper}, {entry.metric}"
    published = f"{_printed(entry)} {metric.unit}"
    kept = entry.status == "unverifiable" or (entry.status == "convention" and not entry.votes)
    recomputed, replayed, findings = None, "", []
    if field_of(metric) is not None and not kept:
        recomputed, replayed = _replayed(bench, metric, entry)
    elif entry.exclusion_reason == "anchor":
        recomputed, replayed = _reached(bench, metric, entry)
    by_replay = entry.status != "contradicted" or entry.exclusion_reason == "infeasible_by_replay"
    if recomputed is None or not by_replay or entry.status == "convention":
        if not entry.note:
            findings.append(f"{name}: {entry.status} is not shown by replay and must carry a note")
        if entry.votes and recomputed == "contradicted":
            findings.append(f"{name}: votes as {entry.status}, recomputed contradicted: {published} {replayed}")
    elif recomputed != entry.status:
        findings.append(f"{name}: declared {entry.status}, recomputed {recomputed}: {published} {replayed}")
    if entry.kind in AWARDED and not entry.votes and not entry.exclusion_reason:
        findings.append(f"{name}: an awarded paper without a vote needs an exclusion_reason")
    return Row(
        paper=entry.paper,
        metric=entry.metric,
        published=published,
        replayed=replayed,
        declared=entry.status,
        recomputed=recomputed,
        votes=entry.votes,
        feasible=None if recomputed is None else not replayed.startswith(_BREAKS),
        exclusion_reason=entry.exclusion_reason,
        note=entry.note,
        findings=tuple(findings),
    )


_BREAKS = "breaks "


def _replayed(bench: Bench, metric: MetricSpec, entry: PaperValue) -> tuple[str, str]:
    """Return the status of a value by replay and what the replay said of it."""
    path = field_of(metric)
    assert path is not None
    fault = validate(Answer(value=put(bench.part(path), path, entry.value)), bench.task.answer_schema)
    if fault.value is None:
        return "contradicted", f"{_BREAKS}the schema: {fault.problems[0].message}"
    gate = [found for found in bench.gate(fault.value) if found.spec.question == metric.question]
    if any(found.state == "unwitnessed" for found in gate):
        whole = bench.gate(put(bench.optimum, path, entry.value))
        gate = [found for found in whole if found.spec.question == metric.question]
    violated = [found for found in gate if found.state == "violated"]
    if violated:
        return "contradicted", _BREAKS + ", ".join(_broken(found) for found in violated)
    missed = shortfall(metric.direction, bench.task.anchor[metric.key], entry.value)
    said = f"{_three_digits(abs(missed))} {metric.unit}"
    where = f"{said} {'short of' if missed > 0 else 'beyond'} ours" if missed else "ours to every digit"
    if missed <= metric.tolerance + entry.resolution:
        return "confirmed", f"feasible, {where}"
    if metric.direction in ("target_value", "exact_value"):
        return "contradicted", f"{said} off the number that the judge computes"
    return "suboptimal", f"feasible, {where}"


def _reached(bench: Bench, metric: MetricSpec, entry: PaperValue) -> tuple[str, str]:
    """Return the status of our own anchor for decisions of many numbers: the optimum submission must reach it."""
    gate = [found for found in bench.gate(bench.optimum) if found.spec.question == metric.question]
    violated = [found for found in gate if found.state == "violated"]
    if violated:
        return "contradicted", _BREAKS + ", ".join(_broken(found) for found in violated)
    value = bench.values().get(metric.key)
    if value is None:
        return "contradicted", "the optimum submission does not decide it"
    missed = abs(entry.value - value)
    said = f"the optimum submission replays to {decimal_text(value)} {metric.unit}"
    return ("confirmed" if missed <= metric.tolerance else "contradicted"), said


def _broken(obligation: Obligation) -> str:
    found = re.search(r"; it is off by (\S+)( [^\s(]+)?", obligation.reason)
    if found is None:
        return f"{obligation.spec.id} ({obligation.reason})"
    return f"{obligation.spec.id} by {_three_digits(Fraction(found[1]))}{found[2] or ''}"


def _three_digits(value: Fraction) -> str:
    """Few enough digits that every machine computes the same."""
    return decimal_text(Fraction(f"{float(value):.2e}"))


def _printed(entry: PaperValue) -> str:
    """Return the decimal with the digits it was printed with; exactly, when there is no resolution."""
    unit = entry.resolution or Fraction(1, entry.value.denominator)
    digits = 0
    while (unit * 10**digits).denominator != 1 and digits < 60:
        digits += 1
    whole = round(abs(entry.value) * 10**digits)
    text = f"{whole // 10**digits}.{whole % 10**digits:0{digits}d}" if digits else str(whole)
    return f"-{text}" if entry.value < 0 else text


# ---------------------------------------------------------------- the table in the README


def table(found: Audit) -> str:
    """Return the audit table with its markers, as it stands in ``tasks/<id>/README.md``."""
    task = found.task
    lines = [
        START,
        f"Panel {task.panel_version}, sha256 `{tasks.panel_hash(task)}`.",
        "",
        "| Paper | Metric | Published | Replayed | Status | Vote | Note |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(found.rows, key=lambda row: _rank(task, row)):
        status = row.declared + (f": {row.exclusion_reason}" if row.exclusion_reason not in ("", "anchor") else "")
        vote = "yes" if row.votes else "no"
        cells = (row.paper, row.metric, row.published, row.replayed or "-", status, vote, row.note)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells).rstrip() + " |")
    lines += ["", _both(found), END]
    return "\n".join(lines)


def _rank(task: Task, row: Row) -> int:
    kinds = {entry.paper: entry.kind in AWARDED for entry in task.papers}
    return 0 if row.paper == "our anchor" else 1 if kinds.get(row.paper, row.metric != "all") else 2


def _both(found: Audit) -> str:
    return (
        f"O-Eval of the optimum: {decimal_text(found.with_exclusions)} with these exclusions,"
        f" {decimal_text(found.without_exclusions)} if every value of an awarded paper voted."
    )


def with_table(readme: str, written: str) -> str:
    """Return a README with the text between the markers replaced.

    Raises:
        BadTask: the markers are not there exactly once, in order.
    """
    if readme.count(START) != 1 or readme.count(END) != 1 or readme.index(START) > readme.index(END):
        raise BadTask(f"README.md must hold the lines {START!r} and {END!r} once each, in this order")
    return readme[: readme.index(START)] + written + readme[readme.index(END) + len(END) :]


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}") from error


def write_table(found: Audit) -> None:
    """Write the audit table into the task's README.

    Raises:
        BadTask: the README lacks its markers.
        UsageError: the file cannot be written.
    """
    path = found.task.folder / "README.md"
    _write(path, with_table(path.read_text(encoding="utf-8"), table(found)))


def freeze(task: Task, version: str) -> Task:
    """Freeze the panel as it is under a new version, and return the task loaded anew.

    Raises:
        UsageError: the version is the present one, or not a version.
    """
    if not _VERSION.fullmatch(version):
        raise UsageError(f"--freeze {version!r}: a panel version has 1 to 40 letters, digits, dots and dashes")
    if task.panel_sha256 and version == task.panel_version:
        raise UsageError(f"--freeze {version}: that is the present version; a frozen panel is never changed")
    path = task.folder / "task.toml"
    text = path.read_text(encoding="utf-8")
    digest = tasks.panel_hash(replace(task, panel_version=version))
    for name, value in (("panel_version", version), ("panel_sha256", digest)):
        text, count = re.subn(rf'^{name} = ".*"$', f'{name} = "{value}"', text, count=1, flags=re.MULTILINE)
        if count != 1:
            raise BadTask(f'{task.id}/task.toml: there is no line {name} = "..."')
    _write(path, text)
    tasks.load.cache_clear()
    return tasks.load(task.id)


# ---------------------------------------------------------------- the command


def audit_json(found: Audit) -> dict[str, JsonValue]:
    """Return an audit as a JSON object."""
    keys = ("paper", "metric", "published", "replayed", "declared", "recomputed", "votes", "exclusion_reason", "note")
    return {
        "task": found.task.id,
        "panel_version": found.task.panel_version,
        "panel_sha256": tasks.panel_hash(found.task),
        "frozen": found.task.panel_sha256 == tasks.panel_hash(found.task),
        "rows": [{key: getattr(row, key) for key in keys} | {"findings": list(row.findings)} for row in found.rows],
        "findings": list(found.findings),
        "o_eval_with_exclusions": str(found.with_exclusions),
        "o_eval_without_exclusions": str(found.without_exclusions),
    }


def command(task_id: str, *, write: bool, freeze_as: str | None, as_json: bool, out: Console, progress: Console) -> int:
    """Run ``tbmm audit-panel``: audit, print, and when nothing was found freeze and write the table.

    Returns:
        0, or 1 when there is a finding or the panel is not the frozen one.
    """
    task = tasks.load_unfrozen(task_id)
    with progress.status("replaying published values") as status:
        found = audit(task, lambda name, number, total: status.update(f"{number} of {total}: {escape(name)}"))
    if freeze_as is not None and not found.findings:
        found = replace(found, task=freeze(task, freeze_as))
    frozen = found.task.panel_sha256 == tasks.panel_hash(found.task)
    if (write or freeze_as is not None) and not found.findings:
        write_table(found)
    if as_json:
        print(json.dumps(audit_json(found), ensure_ascii=False, indent=1, allow_nan=False))
    else:
        _print(found, found.rows, frozen, out)
    return 0 if frozen and not found.findings else 1


def _print(found: Audit, rows: Sequence[Row], frozen: bool, out: Console) -> None:
    shown = Table("paper", "metric", "published", "replayed", "status", "vote")
    for row in rows:
        style = "bold red" if row.findings else "green" if row.votes else "dim"
        status = f"[{style}]{row.declared}[/]"
        cells = [escape(cell) for cell in (row.paper, row.metric, row.published, row.replayed or "-")]
        shown.add_row(*cells, status, "yes" if row.votes else "no")
    out.print(shown)
    out.print(_both(found), highlight=False)
    for finding in found.findings:
        out.print(f"[bold red]finding[/] {escape(finding)}", highlight=False, soft_wrap=True)
    if not frozen:
        out.print(
            f"[bold red]not frozen[/]: the panel is not what {found.task.panel_version} stands for; a new version:"
            f" tbmm audit-panel {found.task.id} --freeze NEW_VERSION",
            highlight=False,
            soft_wrap=True,
        )
    elif not found.findings:
        out.print(f"[green]Panel {found.task.panel_version} is frozen, and every status is what the replay says.[/]")
