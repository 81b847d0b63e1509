"""A bench: answers near a task's optimum, replayed and held against the gate, without score or certificate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from types import TracebackType
from typing import Self

from tbmm_env import instances
from tbmm_env.errors import BadTask
from tbmm_env.judge.artifact import parse, validate
from tbmm_env.judge.gate import operand, resolve
from tbmm_env.judge.replay import Replayer, round_to_grid
from tbmm_env.record import Answer, AnswerValue, Obligation, Panel
from tbmm_env.specs import MetricSpec, ObligationSpec
from tbmm_env.tasks import Task

_STEP = re.compile(r"([A-Za-z0-9_-]+)|\[(\d+)\]")


def field_of(metric: MetricSpec) -> str | None:
    """Return the answer path that a metric's value is read from, or None when it is not one number of the answer."""
    kind, _, path = metric.value.partition(":")
    return path if kind == "answer" and "*" not in path else None


def put(answer: Mapping[str, AnswerValue], path: str, value: Fraction) -> dict[str, AnswerValue]:
    """Return a copy of an answer with another number at a path like ``q4.path.entry_m[0]``.

    Raises:
        BadTask: the answer has nothing at that path.
    """
    steps: list[int | str] = [int(index) if index else key for key, index in _STEP.findall(path)]

    def changed(node: AnswerValue, at: int) -> AnswerValue:
        if at == len(steps):
            return value
        step = steps[at]
        if isinstance(node, list) and isinstance(step, int) and step < len(node):
            return [changed(item, at + 1) if index == step else item for index, item in enumerate(node)]
        if isinstance(node, dict) and step in node:
            return {key: changed(item, at + 1) if key == step else item for key, item in node.items()}
        raise BadTask(f"the optimum submission has nothing at {path}")

    result = changed(dict(answer), 0)
    assert isinstance(result, dict)
    return result


def optimum(task: Task) -> Answer:
    """Return the answer that every replay of a single value starts from: ``submissions/scored/optimum.json``.

    Raises:
        BadTask: the file is absent or malformed.
    """
    path = task.folder / "submissions" / "scored" / "optimum.json"
    try:
        answer = validate(parse(path.read_bytes()), task.answer_schema)
    except OSError as error:
        raise BadTask(f"{task.id}: submissions/scored/optimum.json cannot be read: {error}") from error
    if answer.value is None:
        raise BadTask(f"{task.id}: submissions/scored/optimum.json: {answer.problems[0].message}")
    return answer


class Bench:
    """Replays answers near the optimum of the official instance and resolves the gate; owns a replay child."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.instance = instances.official(task)
        found = optimum(task)
        assert found.value is not None
        self.optimum = found.value
        self.left_out = tuple(problem.message for problem in found.problems)
        self._replayer = Replayer()

    def part(self, path: str) -> dict[str, AnswerValue]:
        """Return the optimum reduced to the entry at the top that a path lies in: cheaper to replay."""
        top = path.partition(".")[0].partition("[")[0]
        return {key: value for key, value in self.optimum.items() if key == top}

    def gate(self, answer: Mapping[str, AnswerValue]) -> tuple[Obligation, ...]:
        """Replay an answer and decide every obligation."""
        values = self._replayed if answer is self.optimum else self._values(answer)
        return resolve(self.task.obligations, answer, values, self.instance.parameters)

    def moved(self, spec: ObligationSpec) -> tuple[Obligation, ...]:
        """Decide an obligation at the optimum with each replayed value that it reads moved far up, and far down."""
        values = self._replayed
        names = [term.removeprefix("replay:") for term in spec.terms if term.startswith("replay:")]
        changed = [
            {**values, name: values[name] + sign * (1 + abs(values[name]))}
            for name in names
            if name in values
            for sign in (1, -1)
        ]
        return tuple(resolve((spec,), self.optimum, each, self.instance.parameters)[0] for each in changed)

    def panel(self) -> Panel:
        """Return what the official instance is scored against."""
        return self._replayer.panel(self.task, self.instance)

    def values(self) -> dict[str, Fraction]:
        """Return the metrics of the optimum, on their grids."""
        replayed, given = self._replayed, self.instance.parameters
        found = {metric.key: operand(metric.value, self.optimum, replayed, given) for metric in self.task.metrics}
        grids = {metric.key: metric.grid for metric in self.task.metrics}
        return {key: round_to_grid(value[0], grids[key]) for key, value in found.items() if value and len(value) == 1}

    @cached_property
    def _replayed(self) -> Mapping[str, Fraction]:
        """The replay of the optimum, which every value of an audit is held against."""
        return self._values(self.optimum)

    def _values(self, answer: Mapping[str, AnswerValue]) -> Mapping[str, Fraction]:
        return self._replayer.replay(self.task, self.instance, answer).values

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._replayer.close()
