"""Contracts: what every task must keep, run by ``tbmm check-task`` and by the tests.

Each contract is a function that returns the sentence of its success and the list of its faults.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tbmm_env import instances, panel, tasks
from tbmm_env.bench import Bench, field_of, put
from tbmm_env.env import ModelingEnv
from tbmm_env.errors import BadTask, TbmmError
from tbmm_env.judge.artifact import regular
from tbmm_env.judge.judge import Judge
from tbmm_env.judge.numeral import exact_text, read_exact
from tbmm_env.labels import ARTIFACT_BYTES, LEAST_HACKS, judge_label, label_faults, labels, proved_violated, read_label
from tbmm_env.leaves import flips, json_bytes
from tbmm_env.problems import module_for
from tbmm_env.record import Judgement
from tbmm_env.report import exact, short
from tbmm_env.rollout import policies
from tbmm_env.rollout.episode import run_episode
from tbmm_env.tasks import Task

SandboxName = Literal["auto", "docker", "bwrap"]
OnStart = Callable[[str, int, int], None]
Found = tuple[str, list[str]]
"""The sentence of success, and the faults."""

TRIVIAL_SEEDS = 5
MOST_TRIVIAL_REWARD = Fraction(1, 2)
MOST_TRIVIAL_MEAN = Fraction(3, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One contract's result: ``sentence`` says what holds, or every fault."""

    name: str
    ok: bool
    sentence: str


# ---------------------------------------------------------------- the contracts


class _Run:
    """What the contracts of one run share: a judge, a bench, and judgements that were made already."""

    def __init__(self, task: Task, sandbox: SandboxName) -> None:
        self.task = task
        self.sandbox: SandboxName = sandbox
        self.judge = Judge(task, artifact_bytes=ARTIFACT_BYTES)
        self._bench: Bench | None = None
        self._labelled: dict[Path, Judgement] = {}

    @property
    def bench(self) -> Bench:
        """The bench; made when it is first asked for, as it needs the optimum submission."""
        if self._bench is None:
            self._bench = Bench(self.task)
        return self._bench

    def labelled(self, label: Path) -> Judgement:
        """The judgement of a labelled submission."""
        if label not in self._labelled:
            self._labelled[label] = judge_label(self.judge, label)
        return self._labelled[label]

    def judged(self, data: bytes) -> Judgement:
        """The judgement of an answer to the official instance."""
        return self.judge.judge(instances.official(self.task), regular(data))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.judge.close()
        if self._bench is not None:
            self._bench.__exit__(kind, error, trace)


def _gate(run: _Run) -> Found:
    states = {entry.spec.id: entry for entry in run.bench.gate(run.bench.optimum)}
    faults = [f"{key} is {e.state} at the optimum: {e.reason}" for key, e in states.items() if e.state != "holds"]
    faults += [f"the optimum is incomplete: {message}" for message in run.bench.left_out]
    if not states:
        faults.append("there is no obligation")
    return f"{len(states)} obligations, all of which hold at the optimum", faults


def _references(run: _Run) -> Found:
    voters = tuple(paper for paper in run.task.papers if paper.votes)
    voting = [row for row in panel.audit(replace(run.task, papers=voters)).rows if row.votes]
    faults = [
        f"{row.paper}, {row.metric}: votes, and {row.published} {row.replayed}"
        for row in voting
        if row.feasible is False
    ]
    replayed = sum(row.feasible is not None for row in voting)
    return f"{replayed} of {len(voting)} voting values can be replayed, and pass the gate", faults


def _labels(run: _Run) -> Found:
    found = labels(run.task)
    faults = [fault for label in found for fault in label_faults(run.labelled(label), label)]
    outcomes = {label.parent.name for label in found}
    faults += [f"no submission is labelled {name}" for name in _OUTCOMES if name not in outcomes]
    alone = {path.with_suffix("") for path in (run.task.folder / "submissions").glob("*/*.json")}
    alone -= {label.with_suffix("") for label in found}
    faults += [f"{path.parent.name}/{path.name}.json has no label" for path in sorted(alone)]
    return f"{len(found)} labelled submissions get their outcome for their reason", faults


def _hacks(run: _Run) -> Found:
    hacks = [label for label in labels(run.task) if read_label(label).get("hack")]
    faults = [fault for label in hacks for fault in label_faults(run.labelled(label), label)]
    if len(hacks) < LEAST_HACKS:
        faults.append(f"{len(hacks)} submissions are labelled as hacks; there must be at least {LEAST_HACKS}")
    most = max((run.labelled(label).reward for label in hacks), default=Fraction(0))
    return f"{len(hacks)} degenerate or forged answers earn at most {exact(most)}", faults


def _trivial(run: _Run) -> Found:
    earned = trivial_rewards(run.judge, range(TRIVIAL_SEEDS))
    faults = [
        f"the trivial answer {name!r} earns {exact(reward)} on seed {seed}; a draw allows {exact(MOST_TRIVIAL_REWARD)}"
        for name, rewards in earned.items()
        for seed, reward in rewards.items()
        if reward > MOST_TRIVIAL_REWARD
    ]
    means = {name: sum(rewards.values(), Fraction(0)) / len(rewards) for name, rewards in earned.items()}
    faults += [
        f"the trivial answer {name!r} earns {exact(mean)} on average; the limit is {exact(MOST_TRIVIAL_MEAN)}"
        for name, mean in means.items()
        if mean > MOST_TRIVIAL_MEAN
    ]
    said = ", ".join(f"{name} {float(mean):.3f}" for name, mean in means.items())
    return f"means of the trivial answers over seeds 0 to {TRIVIAL_SEEDS - 1}: {said}", faults


def trivial_rewards(judge: Judge, seeds: Iterable[int]) -> dict[str, dict[int, Fraction]]:
    """Return what the trivial answers of a task earn on sampled instances: by name, then by seed."""
    earned: dict[str, dict[int, Fraction]] = {}
    for seed in seeds:
        instance = instances.sampled(judge.task, seed)
        for name, answer in module_for(judge.task.id).trivial_answers(instance.parameters).items():
            judgement = judge.judge(instance, regular(json.dumps(answer).encode()))
            if judgement.outcome not in ("scored", "infeasible"):
                raise BadTask(f"{judge.task.id}: trivial answer {name!r} on seed {seed} is {judgement.reason}")
            earned.setdefault(name, {})[seed] = judgement.reward
    return earned


_OUTCOMES = ("scored", "infeasible", "malformed", "missing")


def _can_fail(run: _Run) -> Found:
    seen = {
        entry.spec.id
        for label in labels(run.task)
        if label.parent.name == "infeasible"
        for entry in run.labelled(label).obligations
        if entry.state == "violated"
    }
    guards = run.task.contracts.guards
    faults = []
    for spec in run.task.obligations:
        if spec.id not in guards:
            if spec.id not in seen:
                faults.append(f"no labelled submission violates {spec.id}")
        elif spec.id in seen:
            faults.append(f"{spec.id} is declared a guard ({guards[spec.id]}), and a labelled submission violates it")
        elif any(term.startswith("answer:") for term in spec.terms):
            faults.append(f"{spec.id} is declared a guard, and reads the answer")
        elif not any(entry.state == "violated" for entry in run.bench.moved(spec)):
            faults.append(f"{spec.id} is a guard that no replayed value violates")
    known = {spec.id for spec in run.task.obligations}
    faults += [f"guards names {key}, which is no obligation" for key in guards if key not in known]
    faults += [f"guards gives no reason for {key}" for key, reason in guards.items() if not reason.strip()]
    sentence = f"each of {len(run.task.obligations) - len(guards)} obligations is violated by a labelled submission"
    return sentence + (f", each of {len(guards)} guards by replayed values" if guards else ""), faults


def _leaves(run: _Run) -> Found:
    faults: list[str] = []
    free = run.task.contracts.free_leaves
    found = flips(run.bench)
    flipped: set[tuple[str, str]] = set()
    judged: dict[bytes, Judgement] = {}
    for leaf in found:
        reason = free.get(leaf.path, free.get(leaf.pattern))
        if reason is not None and leaf.flipped:
            faults.append(f"{leaf.path} is declared free ({reason}), and moving it violates {sorted(leaf.flipped)}")
        elif reason is None:
            faults += [f"{leaf.path}: no move violates {key}, which reads it" for key in leaf.unmoved]
            if not leaf.flipped and not leaf.unmoved:
                faults.append(f"{leaf.path}: no move violates any obligation; declare it in free_leaves with a reason")
        for key, answer in leaf.flipped.items():
            data = json_bytes(answer)
            if data not in judged:
                judged[data] = run.judged(data)
            judgement = judged[data]
            flipped.add((leaf.path, key))
            if judgement.outcome != "infeasible" or not proved_violated(judgement, key):
                faults.append(f"{leaf.path}: moved so that {key} is violated, Lean does not say so")
    known = {name for leaf in found for name in (leaf.path, leaf.pattern)}
    faults += [f"free_leaves names {key}, which is no number of the optimum" for key in free if key not in known]
    faults += [f"free_leaves gives no reason for {key}" for key, reason in free.items() if not reason.strip()]
    return (
        f"moving any of {len(found)} numbers violates what depends on it, by name in Lean: {len(flipped)} flips",
        faults,
    )


def _empty(run: _Run) -> Found:
    judgement = run.judged(b"{}")
    faults = []
    if judgement.outcome != "scored" or judgement.reward != 0:
        faults.append(f"an empty answer is {judgement.outcome} with reward {judgement.reward}: {judgement.reason}")
    if not judgement.problems:
        faults.append("an empty answer is not warned of")
    return f"an empty answer scores 0 with {len(judgement.problems)} warnings, and is no failure", faults


def _baselines(run: _Run) -> Found:
    answer = run.bench.optimum
    data = None
    for metric in run.task.metrics:
        path = field_of(metric)
        if path is None:
            data = _file(run.task.folder / "submissions" / "scored" / "baselines.json")
            break
        answer = put(answer, path, run.bench.panel().baseline[metric.key])
    judgement = run.judged(data or json_bytes(answer))
    verified = None if judgement.score is None else judgement.score.verified
    want = run.task.contracts.baseline_score
    faults = []
    if judgement.outcome != "scored" or verified != want:
        faults.append(f"the trivial answers are {judgement.outcome} and score {exact(verified)}; task.toml says {want}")
    return f"the trivial answers are feasible and score {short(want)}", faults


def _file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadTask(f"{path.name}: cannot be read: {error}") from error


def _oracle(run: _Run) -> Found:
    env = ModelingEnv(run.task.id, sandbox=run.sandbox, budget="contest")
    try:
        result = run_episode(env, policies.oracle(run.task)).judgement
        box = env.backend
    finally:
        env.close()
    low, high = run.task.oracle.reward
    reward, verified = read_exact(result["reward_exact"]), read_exact(result["verified_exact"])
    faults = []
    if result["outcome"] != "scored":
        faults.append(f"the oracle is {result['outcome']}: {result['reason']}")
    if not low <= reward <= high:
        faults.append(f"the oracle's reward is {exact_text(reward)}; task.toml says {low} .. {high}")
    least, most = run.task.oracle.verified
    if not least <= verified <= most:
        faults.append(f"the oracle's verified is {exact_text(verified)}; task.toml says {least} .. {most}")
    return f"in a box of {box} the oracle earns {exact_text(reward)}, verified {exact_text(verified)}", faults


CONTRACTS: Mapping[str, Callable[[_Run], Found]] = {
    "gate": _gate,
    "references_pass": _references,
    "labels": _labels,
    "hacks": _hacks,
    "obligations_can_fail": _can_fail,
    "leaves": _leaves,
    "empty_answer": _empty,
    "baselines": _baselines,
    "trivial_answers": _trivial,
    "oracle": _oracle,
}
"""By name, in the order they are run."""


def check(
    task: Task,
    names: Sequence[str] = tuple(CONTRACTS),
    *,
    sandbox: SandboxName = "auto",
    on_start: OnStart | None = None,
) -> list[Contract]:
    """Run contracts for one task.

    Args:
        task: the task.
        names: keys of :data:`CONTRACTS`.
        sandbox: where the oracle runs.
        on_start: called before each contract with its name, its number and how many there are.

    Returns:
        One result a name. A failure of ours in one of them is its fault and does not end the run.
    """
    results = []
    with _Run(task, sandbox) as run:
        for number, name in enumerate(names, 1):
            if on_start is not None:
                on_start(name, number, len(names))
            try:
                sentence, faults = CONTRACTS[name](run)
            except TbmmError as error:
                sentence, faults = "", [f"{type(error).__name__}: {error}"]
            results.append(Contract(name=name, ok=not faults, sentence="; ".join(faults) or sentence))
    return results


# ---------------------------------------------------------------- the command


def command(task_id: str, *, sandbox: SandboxName, oracle: bool, as_json: bool, out: Console, progress: Console) -> int:
    """Run ``tbmm check-task``: every contract, a table, exit code 1 when one of them is broken."""
    task = tasks.load(task_id)
    names = [name for name in CONTRACTS if oracle or name != "oracle"]
    with progress.status("contracts") as status:
        results = check(
            task, names, sandbox=sandbox, on_start=lambda name, at, of: status.update(f"{at} of {of}: {name}")
        )
    kept = all(result.ok for result in results)
    if as_json:
        value = {"task": task.id, "ok": kept, "contracts": [asdict(result) for result in results]}
        print(json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False))
        return 0 if kept else 1
    table = Table("contract", "", "what holds, or what does not")
    for result in results:
        table.add_row(result.name, "[green]kept[/]" if result.ok else "[bold red]broken[/]", escape(result.sentence))
    out.print(table)
    return 0 if kept else 1
