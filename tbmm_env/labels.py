"""Labelled submissions: answers kept with a task, each with what the judge must say of it.

``submissions/<outcome>/<name>.json`` is an answer, ``<name>.toml`` beside it its label; a label with ``hack = true``
marks a degenerate or forged answer of the task's list of those.
"""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

from tbmm_env import instances
from tbmm_env.errors import BadTask
from tbmm_env.judge.artifact import read_artifact
from tbmm_env.judge.judge import Judge
from tbmm_env.judge.numeral import exact_text
from tbmm_env.limits import PRESETS
from tbmm_env.record import Artifact, Judgement
from tbmm_env.tasks import Task

ARTIFACT_BYTES = PRESETS["contest"].artifact_bytes
MOST_HACK_REWARD = Fraction(3, 10)
LEAST_HACKS = 12
_LABEL_KEYS = {"outcome", "about", "violated", "unwitnessed", "reason", "o_eval", "verified", "reward", "hack"}


def labels(task: Task) -> list[Path]:
    """Return the labels of all submissions: ``submissions/<outcome>/<name>.toml``, sorted."""
    return sorted((task.folder / "submissions").glob("*/*.toml"))


def judge_label(judge: Judge, label: Path) -> Judgement:
    """Judge the submission that a label stands beside; none for the outcome ``missing``."""
    artifact = (
        Artifact(status="missing")
        if label.parent.name == "missing"
        else read_artifact(label.with_suffix(".json"), ARTIFACT_BYTES)
    )
    return judge.judge(instances.official(judge.task), artifact)


def read_label(label: Path) -> dict[str, Any]:
    """Return what a label says.

    Raises:
        BadTask: it cannot be read or holds an unknown key.
    """
    name = f"{label.parent.name}/{label.stem}"
    try:
        expected: dict[str, Any] = tomllib.loads(label.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadTask(f"submissions/{name}.toml cannot be read: {error}") from error
    if unknown := set(expected) - _LABEL_KEYS:
        raise BadTask(f"submissions/{name}.toml: unknown key {sorted(unknown)[0]!r}")
    if not isinstance(expected.get("hack", False), bool):
        raise BadTask(f"submissions/{name}.toml: hack is {expected['hack']!r}; it must be true or false")
    return expected


def label_faults(judgement: Judgement, label: Path) -> list[str]:
    """Return where a judgement is not what its label says: outcome, reason, scores, obligations and certificate.

    Raises:
        BadTask: the label cannot be read or holds an unknown key.
    """
    name = f"{label.parent.name}/{label.stem}"
    expected = read_label(label)
    faults: list[str] = []

    def need(condition: bool, fault: str) -> None:
        if not condition:
            faults.append(f"{name}: {fault}")

    states = {entry.spec.id: entry.state for entry in judgement.obligations}
    violated = [key for key, state in states.items() if state == "violated"]
    need(expected.get("outcome") == label.parent.name, f"labelled {expected.get('outcome')} in another folder")
    need(judgement.outcome == label.parent.name, f"is {judgement.outcome}: {judgement.reason}")
    wanted = expected.get("violated", [])
    need(sorted(violated) == sorted(wanted), f"violates {violated}; its label says {wanted}")
    absent = [key for key in expected.get("unwitnessed", []) if states.get(key) != "unwitnessed"]
    need(not absent, f"{absent} should be unwitnessed")
    reason = expected.get("reason", "")
    need(reason in judgement.reason, f"reason {judgement.reason!r} lacks {reason!r}")
    for key in ("o_eval", "verified"):
        if key in expected:
            low, high = (Fraction(end) for end in expected[key])
            value = None if judgement.score is None else getattr(judgement.score, key)
            need(value is not None and low <= value <= high, f"{key} is {value}; its label says {low} .. {high}")
    if judgement.outcome != "scored":
        need(judgement.reward == 0, f"a {judgement.outcome} answer has reward {judgement.reward}")
    if expected.get("hack"):
        need(judgement.reward <= MOST_HACK_REWARD, f"a hack has reward {exact_text(judgement.reward)}")
    if "reward" in expected:
        need(judgement.reward == Fraction(expected["reward"]), f"reward is {exact_text(judgement.reward)}")
    if judgement.outcome in ("scored", "infeasible"):
        certificate = judgement.certificate
        need(certificate is not None and certificate.accepted and certificate.axioms == (), "no accepted certificate")
        unnamed = [key for key in violated if not proved_violated(judgement, key)]
        need(not unnamed, f"Lean does not name {unnamed}")
    else:
        need(judgement.certificate is None, f"a {judgement.outcome} answer has a certificate")
    return faults


def proved_violated(judgement: Judgement, obligation: str) -> bool:
    """Whether the certificate has the theorem that an obligation is violated."""
    place = next((i for i, entry in enumerate(judgement.obligations) if entry.spec.id == obligation), None)
    names = judgement.certificate.theorems if judgement.certificate else ()
    return any(name.endswith(f".violated_{place}_{obligation}") for name in names)
