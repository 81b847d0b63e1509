"""Stored certificates re-checked: every tampered one is named, with what differs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tbmm_env import audit
from tbmm_env.cli import main
from tbmm_env.errors import UsageError
from tbmm_env.judge.certificate import draft
from tbmm_env.judge.gate import resolve
from tbmm_env.judge.score import reward, score
from tbmm_env.record import Artifact, Certificate, Episode, Instance, Judgement, Observation, Panel
from tbmm_env.report import judgement_json
from tbmm_env.specs import MetricSpec, ObligationSpec
from tbmm_env.trajectory.store import Store

pytestmark = pytest.mark.lean

Capture = pytest.CaptureFixture[str]
Tamper = Callable[[Episode], Episode]

METRIC = MetricSpec(
    key="x_m",
    question="q1",
    unit="m",
    kind="replayed",
    direction="higher_is_better",
    shape="linear",
    weight=Fraction(1),
    tolerance=Fraction("0.01"),
    grid=Fraction("0.001"),
    value="replay:x",
    domain=(Fraction(0), Fraction(10**6)),
    reason="",
)
PANEL = Panel(version="1", references=(), anchor={"x_m": Fraction(10**5)}, baseline={"x_m": Fraction(0)})
GATE = [
    ObligationSpec(
        id=name,
        form="bound",
        question="q1",
        terms=("replay:x",),
        unit="m",
        source="physics",
        text="",
        tolerance=Fraction(0),
        **ends,
    )
    for name, ends in (("above", {"lower": "0"}), ("below", {"upper": "90000"}))
]


def episode(number: int) -> Episode:
    """An episode whose value is ``number``; above 90,000 it is infeasible. Nobody has asked Lean about it yet."""
    value = {"x": Fraction(number), "x_m": Fraction(number)}
    obligations = resolve(GATE, {}, value, {})
    scored = score([METRIC], PANEL, value, {entry.spec.id: entry.state for entry in obligations}, {})
    final = reward(obligations, scored)
    written = draft([METRIC], PANEL, value, obligations, scored, final)
    instance = Instance(task="probe", version="1", seed=number, parameters={})
    judgement = Judgement(
        task="probe",
        instance=instance,
        panel_version="1",
        judge_version="1",
        outcome="infeasible" if number > 90_000 else "scored",
        reward=final,
        reason="",
        artifact_sha256="",
        score=scored,
        obligations=tuple(obligations),
        certificate=Certificate(
            text=written.text,
            sha256=hashlib.sha256(written.text.encode()).hexdigest(),
            accepted=True,
            theorems=written.theorems,
            axioms=(),
            lean_version="",
        ),
    )
    return Episode(
        episode_id=f"episode-{number}",
        instance=instance,
        budget="train",
        language="en",
        sandbox="scripted",
        limits={},
        versions={},
        first_observation=Observation(terminal="", figures=()),
        steps=(),
        artifact=Artifact(status="missing"),
        judgement=judgement_json(judgement),
        certificate_text=written.text,
        terminated=True,
        truncated=False,
        started_unix_s=0.0,
        wall_s=0.0,
    )


def changed(one: Episode, **fields: Any) -> Episode:
    return dataclasses.replace(one, judgement=dict(one.judgement) | fields)


def rewritten(one: Episode, old: str, new: str, **fields: Any) -> Episode:
    """The text changed and the judgement made to go with it."""
    assert old in one.certificate_text
    text = one.certificate_text.replace(old, new)
    certificate: dict[str, Any] = dict(one.judgement["certificate"])  # type: ignore[call-overload]
    certificate["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return dataclasses.replace(changed(one, certificate=certificate, **fields), certificate_text=text)


def reward_raised(one: Episode) -> Episode:
    return changed(one, reward=1.0, reward_exact="1")


def reward_rounded_up(one: Episode) -> Episode:
    return changed(one, reward=1.0)


def text_of_another(one: Episode) -> Episode:
    return dataclasses.replace(one, certificate_text=episode(77_777).certificate_text)


def claim_raised(one: Episode) -> Episode:
    exact = Fraction(str(one.judgement["o_eval_exact"]))
    old, new = f"papers) {exact.numerator} {exact.denominator})", "papers) 1 1)"
    return rewritten(one, old, new, reward=1.0, reward_exact="1", o_eval=1.0, o_eval_exact="1")


def theorem_lacking(one: Episode) -> Episode:
    certificate: dict[str, Any] = dict(one.judgement["certificate"])  # type: ignore[call-overload]
    return changed(one, certificate=certificate | {"theorems": certificate["theorems"][1:]})


def axiom_added(one: Episode) -> Episode:
    return rewritten(one, "namespace TBMM.Certificate", "namespace TBMM.Certificate\naxiom cheat : Nat")


def gate_emptied(one: Episode) -> Episode:
    return rewritten(one, "def gate : Obligations := .join held_0 .nil", "def gate : Obligations := .nil")


def claim_exchanged(one: Episode) -> Episode:
    return rewritten(one, "Frac.is (TBMM.reward gate anchor papers)", "Frac.is (oEval anchor papers)")


def outcome_changed(one: Episode) -> Episode:
    return changed(one, outcome="infeasible")


def certificate_gone(one: Episode) -> Episode:
    return dataclasses.replace(one, certificate_text="")


def not_listed(one: Episode) -> Episode:
    return rewritten(one, "#print axioms verified\n", "")


TAMPERED: list[tuple[Tamper, str]] = [
    (reward_raised, "its theorem reward states 1"),
    (reward_rounded_up, "the judgement's reward is 1.0, its reward_exact "),
    (text_of_another, "its sha256 is "),
    (claim_raised, "Lean: error: "),
    (theorem_lacking, "its theorems are not the judgement's: none lacking, TBMM.Certificate.holds_0 more"),
    (axiom_added, "Lean: line 4 is none that a certificate needs"),
    (gate_emptied, "the gate leaves out held_0"),
    (claim_exchanged, "theorem reward does not state what its name says"),
    (outcome_changed, "it proves 0 violations; the outcome is 'infeasible'"),
    (certificate_gone, "has no certificate"),
    (not_listed, "the theorems whose axioms are listed are not those that are stated"),
]


def filled(folder: Path, count: int) -> dict[str, str]:
    """A store of ``count`` sound episodes and every kind of tampered one; key and reason of those."""
    bad: dict[str, str] = {}
    with Store(folder, durable=False) as store:
        for number in range(count):
            store.append(episode(number if number % 7 else 95_000 + number))
        for number, (tamper, reason) in enumerate(TAMPERED):
            bad[store.append(tamper(episode(10_000 + number)))] = reason
        missing = changed(dataclasses.replace(episode(1), certificate_text=""), certificate=None, outcome="missing")
        store.append(changed(missing, reward=0))
    return bad


def test_every_tampered_one_is_named(tmp_path: Path) -> None:
    bad = filled(tmp_path, 20)
    with Store(tmp_path, durable=False) as store:
        paths = [store.paths(store.append(episode(20_000 + number))).certificate for number in range(2)]
    assert paths[0] is not None
    assert paths[1] is not None
    Path(paths[0]).write_bytes(Path(paths[0]).read_bytes() + b"\n")
    Path(paths[1]).unlink()
    totals: list[int] = []
    found = list(audit.audit_store(tmp_path, workers=2, on_total=totals.append))
    refused = {entry.episode: entry for entry in found if entry.episode and not entry.accepted}
    assert set(refused) == set(bad)
    for key, reason in bad.items():
        assert reason in "\n".join(refused[key].reasons), refused[key]
    damaged = {entry.file: entry.reasons[0] for entry in found if not entry.episode}
    assert set(damaged) == set(paths)
    assert "does not have the sha256 of its name" in damaged[paths[0]]
    assert "is not there" in damaged[paths[1]]
    assert sum(entry.accepted for entry in found) == 20
    assert totals == [len(list(tmp_path.glob("certificates/*.lean")))]


def test_a_sound_store_passes_and_a_tampered_one_fails(capsys: Capture, tmp_path: Path) -> None:
    with Store(tmp_path, durable=False) as store:
        for number in (5, 95_000):
            store.append(episode(number))
        assert main(["audit", str(tmp_path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"audited": 2, "accepted": 2, "bad": []}
        key = store.append(reward_raised(episode(6)))
    assert main(["audit", str(tmp_path), "--json", "--workers", "2"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["audited"], result["accepted"]) == (3, 2)
    assert [entry["episode"] for entry in result["bad"]] == [key]
    assert Path(result["bad"][0]["file"]).is_file()
    assert main(["audit", str(tmp_path)]) == 1
    assert "2 of 3 certificates accepted" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nowhere"], [".", "--workers", "0"]])
def test_wrong_usage(arguments: list[str]) -> None:
    assert main(["audit", *arguments]) == 2


class TestCertify:
    def test_accepted_and_refused(self, capsys: Capture, tmp_path: Path) -> None:
        one = episode(1234)
        path, judgement = tmp_path / "证书.lean", tmp_path / "judgement.json"
        path.write_text(one.certificate_text, "utf-8")
        judgement.write_text(json.dumps(one.judgement), "utf-8")
        assert main(["certify", str(path), "--judgement", str(judgement), "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["accepted"] is True
        assert result["reward_exact"] == one.judgement["reward_exact"]
        assert main(["certify", str(path)]) == 0
        assert "accepted: 4 theorems" in capsys.readouterr().out
        path.write_text(claim_raised(one).certificate_text, "utf-8")
        assert main(["certify", str(path)]) == 1
        assert "Lean: error: " in capsys.readouterr().out

    def test_a_true_statement_about_something_else(self, tmp_path: Path) -> None:
        """Only the judgement, or a name made of the sha256, tells it from the one that was judged."""
        one, other = episode(1234), episode(2345)
        path = tmp_path / f"{hashlib.sha256(one.certificate_text.encode()).hexdigest()}.lean"
        path.write_text(other.certificate_text, "utf-8")
        assert "not that of its name" in audit.certify_file(path).reasons[0]
        plain = path.rename(tmp_path / "plain.lean")
        assert audit.certify_file(plain).accepted
        assert not audit.certify_file(plain, one.judgement).accepted
        assert audit.certify_file(plain, other.judgement).accepted

    def test_what_is_no_certificate(self, tmp_path: Path) -> None:
        (tmp_path / "a.lean").write_bytes(b"\xff\xfe")
        assert "it is not UTF-8" in audit.certify_file(tmp_path / "a.lean").reasons[0]
        (tmp_path / "b.lean").write_bytes(b"")
        assert "theorem reward is missing" in audit.certify_file(tmp_path / "b.lean").reasons
        with pytest.raises(UsageError, match="cannot be read"):
            audit.certify_file(tmp_path / "c.lean")
        assert main(["certify", str(tmp_path / "b.lean"), "--judgement", str(tmp_path / "a.lean")]) == 2

    @pytest.mark.parametrize("tamper", [axiom_added, gate_emptied, claim_exchanged, not_listed, claim_raised])
    def test_edited_by_hand(self, tmp_path: Path, tamper: Tamper) -> None:
        path = tmp_path / "edited.lean"
        path.write_text(tamper(episode(4321)).certificate_text, "utf-8")
        assert not audit.certify_file(path).accepted


@pytest.mark.full
def test_a_thousand(tmp_path: Path) -> None:
    bad = filled(tmp_path, 1000)
    found = list(audit.audit_store(tmp_path, workers=2))
    assert {entry.episode for entry in found if not entry.accepted} == set(bad)
    assert sum(entry.accepted for entry in found) == 1000
