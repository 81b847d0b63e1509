"""The one pipeline that turns an artifact into a reward; nothing else does.

artifact -> strict JSON and schema -> replay -> gate -> score -> Lean certificate -> judgement. What the agent did
wrong becomes an outcome with a sentence; what we did wrong is an exception and there is no reward.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from types import TracebackType
from typing import Self

from tbmm_env.errors import ReplayFailed
from tbmm_env.instances import is_official
from tbmm_env.judge import artifact as artifacts
from tbmm_env.judge import lean
from tbmm_env.judge.certificate import certify
from tbmm_env.judge.evaluation import gated_questions
from tbmm_env.judge.gate import operand, resolve
from tbmm_env.judge.replay import Replayer, round_to_grid
from tbmm_env.judge.score import reward, score
from tbmm_env.judge.server import LeanServer
from tbmm_env.limits import JUDGE, JudgeLimits
from tbmm_env.record import (
    Answer,
    AnswerValue,
    Artifact,
    Instance,
    Judgement,
    Outcome,
    Panel,
    Problem,
    Replay,
    State,
)
from tbmm_env.tasks import Task

JUDGE_VERSION = "1"
"""Changes whenever the same answer could earn another reward; versions are never mixed."""


class Judge:
    """Judges answers to one task; owns the replay child and a Lean server.

    Args:
        task: the task.
        artifact_bytes: largest answer file.
        limits: budgets of replay and Lean.
    """

    def __init__(self, task: Task, *, artifact_bytes: int, limits: JudgeLimits = JUDGE) -> None:
        self.task = task
        self._artifact_bytes = artifact_bytes
        self._limits = limits
        self._replayer = Replayer(limits)
        self._lean = LeanServer(limits=limits)

    def probe(self) -> None:
        """Check that Lean and the replay child work, before an episode is spent on them.

        Raises:
            LeanUnavailable: Lean cannot be found or started.
            ReplayFailed: the replay child does not start.
        """
        lean.probe()
        self._replayer.probe()

    def read(self, artifact: Artifact) -> Answer:
        """Parse and statically check an artifact; no replay, no reference."""
        if artifact.status != "regular":
            message = artifacts.status_message(artifact, self._artifact_bytes)
            return Answer(value=None, problems=(Problem(path="$", message=f"answer.json: {message}"),))
        if artifact.size_bytes > self._artifact_bytes:
            message = f"has {artifact.size_bytes} bytes; the limit is {self._artifact_bytes} bytes"
            return Answer(value=None, problems=(Problem(path="$", message=f"answer.json: {message}"),))
        return artifacts.validate(artifacts.parse(artifact.data, self._limits), self.task.answer_schema)

    def judge(self, instance: Instance, artifact: Artifact) -> Judgement:
        """Judge one artifact.

        Args:
            instance: what was asked.
            artifact: what was left.

        Returns:
            A judgement that depends on instance and artifact bytes only.

        Raises:
            ReplayFailed: the replay crashed or exceeded its budget.
            LeanUnavailable: Lean cannot be run.
            CertificateRejected: the kernel did not accept what was computed here.
        """
        answer = self.read(artifact)
        if answer.value is None:
            outcome: Outcome = "missing" if artifact.status == "missing" else "malformed"
            reason = "; ".join(problem.message for problem in answer.problems)
            return self._judgement(instance, artifact, outcome, reason=reason, problems=answer.problems)
        replay = self._replayer.replay(self.task, instance, answer.value)
        panel = self._replayer.panel(self.task, instance)
        self._compare_truths(instance, replay, panel)
        obligations = resolve(self.task.obligations, answer.value, replay.values, instance.parameters)
        states: dict[str, State] = {entry.spec.id: entry.state for entry in obligations}
        values = self._values(answer.value, replay, instance)
        claims = _claims(answer.value)
        scored = score(self.task.metrics, panel, values, states, claims)
        violated = [entry for entry in obligations if entry.state == "violated"]
        earned = reward(obligations, scored)
        everybody = self._without_exclusions(instance, panel)
        unaudited = score(self.task.metrics, everybody, values, states, claims)
        certificate = certify(
            self.task.metrics, panel, values, obligations, scored, earned, limits=self._limits, server=self._lean
        )
        if violated:
            reason = "; ".join(f"{entry.spec.id}: {entry.reason}" for entry in violated)
        else:
            lost = [entry.reason for entry in scored.metrics if not entry.counted]
            reason = "; ".join(["feasible", *lost])
        return self._judgement(
            instance,
            artifact,
            "infeasible" if violated else "scored",
            reward=earned,
            reason=reason,
            problems=answer.problems,
            score=scored,
            o_eval_without_exclusions=unaudited.o_eval,
            questions_gated=gated_questions(
                scored.questions, {entry.spec.id: entry.spec.question for entry in violated}
            ),
            obligations=obligations,
            certificate=certificate,
            notes=replay.notes,
        )

    def _values(self, answer: Mapping[str, AnswerValue], replay: Replay, instance: Instance) -> dict[str, Fraction]:
        values = {}
        for metric in self.task.metrics:
            found = operand(metric.value, answer, replay.values, instance.parameters)
            if found is not None and len(found) == 1:
                values[metric.key] = round_to_grid(found[0], metric.grid)
        return values

    def _without_exclusions(self, instance: Instance, panel: Panel) -> Panel:
        """Return a panel of all award papers' values; a sampled instance has no papers, audited or not."""
        if not is_official(self.task, instance):
            return panel
        return dataclasses.replace(panel, references=self.task.unaudited_references)

    def _compare_truths(self, instance: Instance, replay: Replay, panel: Panel) -> None:
        """Refuse to score an asked number against an anchor that this very replay contradicts."""
        for metric in self.task.metrics:
            found = operand(metric.truth, {}, replay.values, instance.parameters) if metric.truth else None
            if found is not None and abs(found[0] - panel.anchor[metric.key]) > metric.tolerance:
                anchor, ours, unit = float(panel.anchor[metric.key]), float(found[0]), metric.unit
                raise ReplayFailed(
                    f"{self.task.id}, {metric.key}: the anchor is {anchor!r} {unit}, the replay gives {ours!r} {unit};"
                    f" they may differ by {float(metric.tolerance)!r} {unit}"
                )

    def _judgement(self, instance: Instance, artifact: Artifact, outcome: Outcome, **fields: object) -> Judgement:
        base: dict[str, object] = {
            "task": self.task.id,
            "instance": instance,
            "panel_version": self.task.panel_version,
            "judge_version": JUDGE_VERSION,
            "outcome": outcome,
            "reward": Fraction(0),
            "artifact_sha256": artifact.sha256,
        }
        return Judgement(**(base | fields))  # type: ignore[arg-type]

    def close(self) -> None:
        """End the replay child and the Lean server; idempotent."""
        self._replayer.close()
        self._lean.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _claims(answer: Mapping[str, AnswerValue]) -> dict[str, Fraction]:
    stated = answer.get("claims")
    if not isinstance(stated, dict):
        return {}
    return {key: value for key, value in stated.items() if isinstance(value, Fraction)}


def check_report(answer: Answer) -> str:
    """Return what the box's ``check`` prints: schema, types and static bounds, nothing about worth."""
    if answer.value is None:
        lines = ["answer.json would be refused:", *(f"- {problem.message}" for problem in answer.problems)]
    elif answer.problems:
        lines = [
            "answer.json is well formed, but incomplete:",
            *(f"- {problem.message}" for problem in answer.problems),
        ]
    else:
        lines = ["answer.json is well formed and complete. Feasibility and worth are judged after submit."]
    return "\n".join(lines) + "\n"
