"""Every value that travels through the house, in flow order; frozen, without behaviour.

task + instance -> box -> step -> observation ... -> artifact -> answer -> replay -> gate -> score -> certificate
-> judgement -> episode. Exact numbers are ``fractions.Fraction``; floats appear only in times and for display.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tbmm_env.specs import MetricSpec, ObligationSpec

# ---------------------------------------------------------------- closed vocabularies

State = Literal["holds", "violated", "unwitnessed"]
Outcome = Literal["scored", "infeasible", "malformed", "missing"]
Language = Literal["en", "zh"]
FileStatus = Literal["regular", "missing", "link", "hard_link", "not_regular", "too_large", "unreadable"]
Ending = Literal["exited", "wall_limit", "awaiting_input", "shell_restarted", "box_died"]

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
"""What ``json.dumps`` takes; used for parameters and reports, not for answers."""

AnswerValue = None | bool | Fraction | str | list["AnswerValue"] | dict[str, "AnswerValue"]
"""A strictly parsed answer: every number is an exact rational."""


# ---------------------------------------------------------------- task


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceValue:
    """One paper's value of one metric for the official instance; it has a vote.

    Attributes:
        paper: paper id.
        metric: metric key.
        value: exact decimal as printed.
        resolution: one unit of its last printed digit.
    """

    paper: str
    metric: str
    value: Fraction
    resolution: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What an answer is scored against.

    Attributes:
        version: panel version; scores of different versions are never mixed.
        references: surviving values, empty for a sampled instance.
        anchor: our own reproduced value of each metric.
        baseline: value of the declared trivial answer of each metric.
    """

    version: str
    references: tuple[ReferenceValue, ...]
    anchor: Mapping[str, Fraction]
    baseline: Mapping[str, Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One concrete problem: determines statement, figures, replay and references."""

    task: str
    version: str
    seed: int | None
    parameters: Mapping[str, JsonValue]


# ---------------------------------------------------------------- box, step, artifact, answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewedImage:
    """An image decoded inside the box: ``pixels`` is uint8, shape (height, width, 3)."""

    path: str
    pixels: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """What one action did in the box.

    Attributes:
        head: first bytes of terminal output.
        tail: last bytes of terminal output, when ``dropped_bytes`` > 0 not contiguous with ``head``.
        dropped_bytes: bytes between head and tail that were not kept.
        ending: how the action ended.
        exit_status: of the last command; 128 + n for signal n; None when it did not end.
        evidence: kernel or daemon evidence for ``box_died`` ("oom_kill 1" ...); else empty.
        submitted: whether ``submit`` was called.
        images: what ``view`` decoded, in order.
        wall_s: time the action took.
    """

    head: bytes
    tail: bytes
    dropped_bytes: int
    ending: Ending
    exit_status: int | None
    evidence: str = ""
    submitted: bool = False
    images: tuple[ViewedImage, ...] = ()
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the agent sees: sanitised terminal text and figures (uint8, (height, width, 3))."""

    terminal: str
    figures: tuple[NDArray[np.uint8], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Bytes left at /workspace/answer.json, or why there are none.

    Attributes:
        status: what was found without following links.
        data: the bytes when ``status`` is ``regular``.
        size_bytes: size on disk as reported by fstat.
        sha256: of ``data``, lower-case hex; empty when there is none.
    """

    status: FileStatus
    data: bytes = b""
    size_bytes: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One fault found in an answer: where, what, the value and the limit, in a sentence."""

    path: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A parsed artifact: ``value`` is None when it is malformed; ``problems`` says why or what is missing."""

    value: dict[str, AnswerValue] | None
    problems: tuple[Problem, ...] = ()


# ---------------------------------------------------------------- replay, gate, score, certificate, judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What the judge computed from decisions: exact values on their grids, by name; absent = not computable."""

    values: Mapping[str, Fraction]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """An obligation with its operands resolved to exact rationals.

    Attributes:
        spec: the declaration.
        terms: values of the terms (all wildcards expanded); empty when unwitnessed.
        lower: resolved lower end, if any.
        upper: resolved upper end, if any.
        when: resolved (x, lower, upper) of an implication.
        state: ``holds``, ``violated`` or ``unwitnessed``.
        reason: a sentence with value and limit.
    """

    spec: ObligationSpec
    terms: tuple[Fraction, ...]
    lower: Fraction | None
    upper: Fraction | None
    when: tuple[Fraction, Fraction, Fraction] | None
    state: State
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceScore:
    """Score of one value against one reference: exact, in [0, 1]."""

    paper: str
    reference: Fraction
    tolerance: Fraction
    band: Fraction
    shortfall: Fraction
    score: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricScore:
    """One metric of one answer.

    Attributes:
        spec: the declaration.
        value: the value that was scored, on the grid; None when absent.
        claimed: what the agent stated, if anything.
        counted: whether value counts (present, in domain, requirements hold); else every score is 0.
        verified: score against the anchor.
        references: score against each reference that reports this metric.
        reason: a sentence.
    """

    spec: MetricSpec
    value: Fraction | None
    claimed: Fraction | None
    counted: bool
    verified: ReferenceScore
    references: tuple[ReferenceScore, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The score before the gate.

    Attributes:
        metrics: one entry a metric, in the order of ``task.toml``.
        per_reference: R of every paper.
        o_eval: mean of R over papers; against the anchor when no paper survives.
        verified: weighted mean against the anchor alone.
        questions: weighted mean of verified scores per question.
    """

    metrics: tuple[MetricScore, ...]
    per_reference: Mapping[str, Fraction]
    o_eval: Fraction
    verified: Fraction
    questions: Mapping[str, Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Generated Lean text and the kernel's word on it.

    Attributes:
        text: the Lean source.
        sha256: of the UTF-8 text.
        accepted: exit 0, no error message, every expected theorem listed without axioms.
        theorems: names of the expected theorems.
        axioms: axioms any of them depends on; empty when accepted.
        lean_version: as Lean reports it.
    """

    text: str
    sha256: str
    accepted: bool
    theorems: tuple[str, ...]
    axioms: tuple[str, ...]
    lean_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on one answer; a function of instance and artifact bytes only.

    ``o_eval_without_exclusions`` is the O-Eval against every award paper's values, whatever the audit says of them;
    ``questions_gated`` holds question scores, each behind its own obligations. Neither is ever the reward.
    """

    task: str
    instance: Instance
    panel_version: str
    judge_version: str
    outcome: Outcome
    reward: Fraction
    reason: str
    artifact_sha256: str
    problems: tuple[Problem, ...] = ()
    score: Score | None = None
    o_eval_without_exclusions: Fraction = Fraction(0)
    questions_gated: Mapping[str, Fraction] = field(default_factory=dict)
    obligations: tuple[Obligation, ...] = ()
    certificate: Certificate | None = None
    notes: tuple[str, ...] = ()


# ---------------------------------------------------------------- episode


def _no_tokens() -> NDArray[np.int64]:
    return np.zeros(0, dtype=np.int64)


def _no_logprobs() -> NDArray[np.float32]:
    return np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a model did to choose one action; what it did not tell is empty.

    Attributes:
        completion: text as the model gave it, reasoning and tool call included.
        prompt_token_ids: int64, shape (p,): all tokens that the model was given.
        completion_token_ids: int64, shape (c,).
        logprobs: float32, shape (c,) or (0,): natural logarithms under the sampling policy.
        finish_reason: ``stop``, ``length``, ``tool_calls`` ... as the server says it.
        sampling: temperature, top_p, seed ...
        weight_version: which weights answered.
    """

    completion: str = ""
    prompt_token_ids: NDArray[np.int64] = field(default_factory=_no_tokens)
    completion_token_ids: NDArray[np.int64] = field(default_factory=_no_tokens)
    logprobs: NDArray[np.float32] = field(default_factory=_no_logprobs)
    finish_reason: str = ""
    sampling: Mapping[str, JsonValue] = field(default_factory=dict)
    weight_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One action and what came of it, for the recorder; ``turn`` is there when a model chose the action."""

    action: str
    observation: Observation
    exit_status: int | None
    ending: Ending | None
    started_s: float
    wall_s: float
    turn: Turn | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One logged episode; times are seconds, ``started_unix_s`` since the epoch.

    ``job`` is the key of the rollout job it came from, ``group_id`` names the episodes that are compared with each
    other (one instance, one policy), ``sample_id`` tells them apart, ``policy`` names who chose the actions; all are
    empty for an episode that was played by hand.
    """

    episode_id: str
    instance: Instance
    budget: str
    language: Language
    sandbox: str
    limits: Mapping[str, JsonValue]
    versions: Mapping[str, str]
    first_observation: Observation
    steps: tuple[Step, ...]
    artifact: Artifact
    judgement: Mapping[str, JsonValue]
    certificate_text: str
    terminated: bool
    truncated: bool
    started_unix_s: float
    wall_s: float
    job: str = ""
    group_id: str = ""
    sample_id: int = 0
    policy: str = ""
    extra: Mapping[str, JsonValue] = field(default_factory=dict)
