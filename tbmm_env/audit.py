"""Certificates re-checked long after they were made: one file, or all of a trajectory store.

A certificate that the kernel accepts proves what it states; that it states what was judged is its *binding*, and it is
derived anew here: the text has the sha256 of the judgement, it proves the judgement's theorems and no others, each
theorem says what its name says, the gate is made of every group and every violation, and reward, O-Eval and the score
against the anchor are the judgement's.
"""

from __future__ import annotations

import collections
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tbmm_env.errors import JudgeError, LeanUnavailable, UsageError
from tbmm_env.judge import lean
from tbmm_env.judge.numeral import exact_text, read_exact
from tbmm_env.judge.server import LeanServer
from tbmm_env.limits import JUDGE, JudgeLimits
from tbmm_env.trajectory.segment import Finding
from tbmm_env.trajectory.store import Store, StoredEpisode

CERTIFICATE_BYTES = 64 * 1024 * 1024
"""Largest certificate file that is read; one of 20,000 operands has about 2 MB."""

_THEOREM = re.compile(r"^theorem (\w+) : Eq \(([^:]*)\) Bool\.(true|false) := ", re.MULTILINE)
_LISTED = re.compile(r"^#print axioms (\w+)$", re.MULTILINE)
_GATE = re.compile(r"^noncomputable def gate : Obligations := (.*)$", re.MULTILINE)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_RESULT = re.compile(r"Frac\.is \((.*)\) (\w+) (\w+)")
_RESULTS = {
    "verified": "Paper.mean anchor",
    "o_eval": "oEval anchor papers",
    "reward": "TBMM.reward gate anchor papers",
}
_SHOWN = 12  # reasons of one certificate that a person is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a certificate's text says it proves.

    Attributes:
        theorems: full names, in order.
        results: ``verified``, ``o_eval`` and ``reward``, as far as they are stated.
        violated: how many obligations it proves to be violated.
        faults: where the text is not one that the generator writes.
    """

    theorems: tuple[str, ...]
    results: Mapping[str, Fraction]
    violated: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One certificate, re-checked.

    Attributes:
        file: the certificate's file, or the store's file where it should have been named.
        episode: key of the episode; empty for a single file.
        sha256: of the text that was found; empty when there is none.
        theorems: number of theorems.
        reward: as the certificate states it; None when it states none.
        reasons: what is wrong, a sentence each; empty when the certificate is accepted.
    """

    file: str
    episode: str = ""
    sha256: str = ""
    theorems: int = 0
    reward: Fraction | None = None
    reasons: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether nothing is wrong."""
        return not self.reasons

    def json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "file": self.file,
            "episode": self.episode or None,
            "accepted": self.accepted,
            "sha256": self.sha256 or None,
            "theorems": self.theorems,
            "reward_exact": None if self.reward is None else exact_text(self.reward),
            "reasons": list(self.reasons),
        }


# ---------------------------------------------------------------- what a certificate states


def read_statement(text: str) -> Statement:
    """Read what a certificate's text states, without asking whether it is true."""
    faults: list[str] = []
    results: dict[str, Fraction] = {}
    gate = " ".join(_GATE.findall(text)).replace("(", " ").replace(")", " ").split()
    names = []
    for name, claim, verdict in _THEOREM.findall(text):
        names.append(name)
        group, violated = name.replace("holds_", "held_"), name.replace("violated_", "o_")
        if name in _RESULTS:
            found = _RESULT.fullmatch(claim)
            if found is None or found[1] != _RESULTS[name] or verdict != "true":
                faults.append(f"theorem {name} does not state what its name says: {claim[:80]}")
            else:
                results[name] = _fraction(found[2], found[3], name, faults)
            continue
        expected = f"Obligations.hold {group}", "true", group
        if name.startswith("violated_"):
            expected = f"Obligation.allowed {violated}", "false", violated
        if (claim, verdict) != expected[:2]:
            faults.append(f"theorem {name} does not state what its name says: {claim[:80]} is {verdict}")
        elif expected[2] not in gate:
            faults.append(f"the gate leaves out {expected[2]}, of which theorem {name} speaks")
    faults += [f"theorem {name} is missing" for name in _RESULTS if name not in names]
    if _LISTED.findall(text) != names:
        faults.append("the theorems whose axioms are listed are not those that are stated, each once and in order")
    theorems = tuple(f"{lean.NAMESPACE}.{name}" for name in names)
    number = sum(name.startswith("violated_") for name in names)
    return Statement(theorems=theorems, results=results, violated=number, faults=tuple(faults))


def _fraction(numerator: str, denominator: str, name: str, faults: list[str]) -> Fraction:
    try:
        return Fraction(int(numerator, 0), int(denominator, 0))
    except (ValueError, ZeroDivisionError):
        faults.append(f"theorem {name} states no number: {numerator[:40]} / {denominator[:40]}")
        return Fraction(-1)


def differences(text: str, statement: Statement, judgement: Mapping[str, Any]) -> list[str]:
    """Return where a certificate is not the one of a judgement, a JSON object as ``tbmm judge --json`` prints it."""
    entry = judgement.get("certificate")
    if not isinstance(entry, Mapping) or not entry:
        return [f"the judgement is {judgement.get('outcome')!r} and names no certificate, but there is one"]
    faults = []
    sha256 = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if entry.get("sha256") != sha256:
        faults.append(f"its sha256 is {sha256}; the judgement's is {entry.get('sha256')}")
    stated = entry.get("theorems")
    judged = tuple(str(name) for name in stated) if isinstance(stated, Sequence) else ()
    if judged != statement.theorems:
        lacking, more = set(judged) - set(statement.theorems), set(statement.theorems) - set(judged)
        faults.append(
            f"its theorems are not the judgement's: {_few(lacking)} lacking, {_few(more)} more"
            if lacking or more
            else "its theorems are not in the judgement's order"
        )
    if entry.get("accepted") is not True or entry.get("axioms"):
        faults.append("the judgement says that it was not accepted, or not without axioms")
    for name, result in statement.results.items():
        faults += _result_differs(name, result, judgement)
    violated = judgement.get("outcome") == "infeasible"
    if violated is not (statement.violated > 0):
        faults.append(f"it proves {statement.violated} violations; the outcome is {judgement.get('outcome')!r}")
    return faults


def _result_differs(name: str, result: Fraction, judgement: Mapping[str, Any]) -> list[str]:
    text = judgement.get(f"{name}_exact")
    try:
        judged = read_exact(str(text))
    except (ValueError, ZeroDivisionError):
        return [f"the judgement's {name}_exact is {text!r}, no number"]
    if judged != result:
        return [f"its theorem {name} states {exact_text(result)}; the judgement's {name} is {text}"]
    if judgement.get(name) != float(judged):
        return [f"the judgement's {name} is {judgement.get(name)!r}, its {name}_exact {text}"]
    return []


def _few(names: set[str]) -> str:
    return ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "") if names else "none"


# ---------------------------------------------------------------- one file


def certify_file(path: Path, judgement: Mapping[str, Any] | None = None, *, limits: JudgeLimits = JUDGE) -> Audited:
    """Re-check a certificate file in a new Lean process.

    A file named by a sha256, as those of a trajectory store are, must have it.

    Args:
        path: the file.
        judgement: what it must be the certificate of, if that is to be checked too.
        limits: budgets of the Lean process.

    Raises:
        UsageError: the file cannot be read.
        LeanUnavailable: Lean cannot be found or started.
    """
    try:
        with path.open("rb") as file:
            data = file.read(CERTIFICATE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if len(data) > CERTIFICATE_BYTES:
        raise UsageError(f"{path} has more than {CERTIFICATE_BYTES} bytes, the limit of a certificate")
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Audited(file=str(path), sha256=sha256, reasons=(f"it is not UTF-8: {error}",))
    statement = read_statement(text)
    reasons = list(statement.faults)
    if _SHA256.fullmatch(path.stem) and path.stem != sha256:
        reasons.append(f"its sha256 is {sha256}, not that of its name")
    if judgement is not None:
        reasons += differences(text, statement, judgement)
    try:
        result: lean.CheckResult | JudgeError = lean.check(text, statement.theorems, limits=limits)
    except LeanUnavailable:
        raise
    except JudgeError as error:
        result = error
    return _audited(str(path), "", text, statement, reasons, result)


def _audited(
    file: str,
    episode: str,
    text: str,
    statement: Statement,
    reasons: Sequence[str],
    result: lean.CheckResult | JudgeError,
) -> Audited:
    kernel = (str(result),) if isinstance(result, JudgeError) else result.reasons
    return Audited(
        file=file,
        episode=episode,
        sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        theorems=len(statement.theorems),
        reward=statement.results.get("reward"),
        reasons=(*reasons, *(f"Lean: {reason}" for reason in kernel)),
    )


# ---------------------------------------------------------------- a store


@dataclass(slots=True)
class _Pending:
    file: str
    episode: str
    text: str
    statement: Statement
    reasons: list[str] = field(default_factory=list)


def audit_store(
    path: Path, *, workers: int = 1, limits: JudgeLimits = JUDGE, on_total: Callable[[int], None] | None = None
) -> Iterator[Audited]:
    """Re-check the certificate of every episode of a store and yield one entry each.

    An episode without a certificate is passed over when its judgement has reward 0 and an outcome that needs none, and
    is an entry with a reason otherwise. So is everything that cannot be read, except the torn end of a segment, which
    a running writer has too.

    Args:
        path: the store's folder.
        workers: Lean servers at work at the same time.
        limits: budgets of each check.
        on_total: is told how many certificate files there are.

    Raises:
        TrajectoryError: the folder does not exist.
        LeanUnavailable: Lean cannot be found or started.
    """
    if on_total is not None:
        on_total(sum(1 for _ in path.glob("certificates/*.lean")))
    done: collections.deque[Audited] = collections.deque()
    pending: collections.deque[_Pending] = collections.deque()

    def found(finding: Finding) -> None:
        if finding.kind != "torn":
            done.append(Audited(file=_named_file(finding, path), reasons=(finding.message,)))

    def checks() -> Iterator[tuple[str, Sequence[str]]]:
        for stored in Store(path).episodes(found):
            entry = _of_episode(stored, path)
            if isinstance(entry, _Pending):
                pending.append(entry)
                yield entry.text, entry.statement.theorems
            elif entry is not None:
                done.append(entry)

    with LeanServer(workers, limits=limits) as server:
        for result in server.check_many(checks()):
            entry = pending.popleft()
            yield _audited(entry.file, entry.episode, entry.text, entry.statement, entry.reasons, result)
            while done:
                yield done.popleft()
    yield from done


def _of_episode(stored: StoredEpisode, store: Path) -> _Pending | Audited | None:
    episode, judgement = stored.episode, stored.episode.judgement
    text = episode.certificate_text
    if not text:
        entry = judgement.get("certificate")
        if not entry and judgement.get("outcome") in ("missing", "malformed") and judgement.get("reward") == 0:
            return None
        reason = f"outcome {judgement.get('outcome')!r} with reward {judgement.get('reward')!r} has no certificate"
        return Audited(file=str(stored.path), episode=stored.key, reasons=(reason,))
    statement = read_statement(text)
    sha256 = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    file = str(store / "certificates" / f"{sha256}.lean")
    reasons = [*statement.faults, *differences(text, statement, judgement)]
    return _Pending(file=file, episode=stored.key, text=text, statement=statement, reasons=reasons)


def _named_file(finding: Finding, store: Path) -> str:
    """Return the certificate file that a finding names, else the file it is about."""
    named = re.search(re.escape(str(store / "certificates")) + r"/[0-9a-f]{64}\.lean", finding.message)
    return named[0] if named else str(finding.path)


# ---------------------------------------------------------------- commands


def certify_command(path: Path, judgement_file: Path | None, *, as_json: bool, out: Console) -> int:
    """Re-check a file, print the result and return the exit code: 0 accepted, 1 refused."""
    judgement = None
    if judgement_file is not None:
        try:
            judgement = json.loads(judgement_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"--judgement {judgement_file}: cannot be read: {error}") from error
        if not isinstance(judgement, dict):
            raise UsageError(f"--judgement {judgement_file} is no JSON object; `tbmm judge --json` prints one")
    result = certify_file(path, judgement)
    if as_json:
        print(json.dumps(result.json(), ensure_ascii=False, indent=1))
    elif result.accepted:
        reward = exact_text(result.reward or Fraction(0))
        said = f"{result.theorems} theorems, no axioms, reward {escape(reward)}, sha256 {result.sha256}"
        out.print(f"[bold green]accepted[/]: {said}", highlight=False)
    else:
        out.print(f"[bold red]refused[/]: {escape(result.file)}", highlight=False, soft_wrap=True)
        for reason in result.reasons[:_SHOWN]:
            out.print(f"- {escape(reason)}", highlight=False, soft_wrap=True)
    return 0 if result.accepted else 1


def audit_command(path: Path, workers: int, *, as_json: bool, out: Console, progress: Console) -> int:
    """Re-check a store, print what is wrong with it and return the exit code: 0 all accepted, 1 some are not."""
    if not 1 <= workers <= 64:
        raise UsageError(f"--workers is {workers}; it must be 1 to 64")
    if not path.is_dir():
        raise UsageError(f"there is no trajectory store at {path}")
    columns = TextColumn("re-checking certificates"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    bad: list[Audited] = []
    count = 0
    with Progress(*columns, console=progress) as bar:
        line = bar.add_task("audit", total=None)
        for entry in audit_store(path, workers=workers, on_total=lambda total: bar.update(line, total=total)):
            count += 1
            bar.update(line, completed=count)
            if not entry.accepted:
                bad.append(entry)
    if as_json:
        print(json.dumps({"audited": count, "accepted": count - len(bad), "bad": [entry.json() for entry in bad]}))
    else:
        if bad:
            table = Table("file", "episode", "what differs", show_lines=True)
            for entry in bad:
                table.add_row(escape(entry.file), entry.episode, escape("\n".join(entry.reasons[:_SHOWN])))
            out.print(table)
        style = "red" if bad else "green"
        out.print(f"[{style}]{count - len(bad)} of {count} certificates accepted[/]", highlight=False)
    return 1 if bad else 0
