"""What decisions are worth: calls into ``problems/`` in a bounded child, and rounding to declared grids.

The child runs :func:`serve`; the parent side is :class:`Replayer`. Requests and replies are JSON objects.
"""

from __future__ import annotations

import json
import math
import sys
import traceback
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, BinaryIO

from tbmm_env.errors import ReplayFailed
from tbmm_env.instances import is_official
from tbmm_env.judge.artifact import floats
from tbmm_env.judge.child import Worker
from tbmm_env.limits import JUDGE, JudgeLimits
from tbmm_env.problems import module_for
from tbmm_env.record import AnswerValue, Instance, Panel, Replay
from tbmm_env.tasks import Task

_CACHE_SIZE = 256


def round_to_grid(value: float | Fraction, grid: Fraction) -> Fraction:
    """Return ``value`` rounded half-even to a multiple of ``grid``.

    Raises:
        ReplayFailed: when ``value`` is not finite.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ReplayFailed(f"the replay gave {value!r}; it must be a finite number")
    return round(Fraction(value) / grid) * grid


def _number(task: Task, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ReplayFailed(f"{task.id}: the replay gave {str(value)[:80]!r} for {name}; it must be a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf  # refused like any other number that is not finite


class Replayer:
    """Replays answers and computes references in one long-lived bounded child."""

    def __init__(self, limits: JudgeLimits = JUDGE) -> None:
        self._limits = limits
        self._worker = Worker(
            "from tbmm_env.judge.replay import serve; serve()", memory_bytes=limits.replay_memory_bytes
        )
        self._panels: dict[str, Panel] = {}

    def probe(self) -> None:
        """Start the child and wait for its word.

        Raises:
            ReplayFailed: when it does not start.
        """
        self._call({"op": "ping"}, self._limits.replay_wall_s)

    def replay(self, task: Task, instance: Instance, answer: Mapping[str, AnswerValue]) -> Replay:
        """Compute what the decisions of a schema-valid answer are worth.

        Raises:
            ReplayFailed: the replay crashed, exceeded its budget, or gave a name or value it may not.
        """
        request = {
            "op": "replay",
            "task": task.id,
            "parameters": dict(instance.parameters),
            "answer": floats(dict(answer)),
        }
        raw = self._call(request, self._limits.replay_wall_s)
        grids = {entry.name: entry.grid for entry in task.replay_names}
        if unknown := set(raw) - set(grids):
            raise ReplayFailed(f"{task.id}: the replay gave {sorted(unknown)[0]!r}, which task.toml does not declare")
        return Replay(values={name: round_to_grid(_number(task, name, raw[name]), grids[name]) for name in raw})

    def panel(self, task: Task, instance: Instance) -> Panel:
        """Return what an instance is scored against: the frozen panel, or its computed reference and baseline.

        Raises:
            ReplayFailed: the reference could not be computed.
        """
        parameters = json.dumps(dict(instance.parameters), sort_keys=True)
        key = f"{task.id} {task.version} {parameters}"
        if key not in self._panels:
            if len(self._panels) >= _CACHE_SIZE:
                self._panels.pop(next(iter(self._panels)))
            self._panels[key] = self._compute_panel(task, instance)
        return self._panels[key]

    def _compute_panel(self, task: Task, instance: Instance) -> Panel:
        request = {"op": "reference", "task": task.id, "parameters": dict(instance.parameters)}
        raw = self._call(request, self._limits.reference_wall_s)
        grids = {metric.key: metric.grid for metric in task.metrics}
        for part in ("anchor", "baseline"):
            named = raw[part] if isinstance(raw.get(part), dict) else {}
            if set(named) != set(grids):
                raise ReplayFailed(f"{task.id}: the {part} names {sorted(named)}; expected {sorted(grids)}")
        computed = {
            part: {key: round_to_grid(_number(task, key, raw[part][key]), grids[key]) for key in grids}
            for part in ("anchor", "baseline")
        }
        if is_official(task, instance):
            anchor = {key: round_to_grid(value, grids[key]) for key, value in task.anchor.items()}
            return Panel(
                version=task.panel_version, references=task.references, anchor=anchor, baseline=computed["baseline"]
            )
        return Panel(
            version=task.panel_version, references=(), anchor=computed["anchor"], baseline=computed["baseline"]
        )

    def _call(self, request: dict[str, Any], wall_s: float) -> dict[str, Any]:
        what = request.get("task", "replay")
        data = self._worker.call(json.dumps(request).encode(), wall_s)
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError) as error:
            self._worker.close()  # whatever follows in the pipe is not to be trusted either
            raise ReplayFailed(f"{what}: the child's reply is not JSON: {data[:80]!r}") from error
        if isinstance(reply, dict) and "error" in reply:
            raise ReplayFailed(f"{what}: {reply['error']}")
        result = reply.get("ok") if isinstance(reply, dict) else None
        if not isinstance(result, dict):
            raise ReplayFailed(f"{what}: the child's reply is neither a result nor an error: {data[:80]!r}")
        return result

    def close(self) -> None:
        """End the child; idempotent."""
        self._worker.close()


# ---------------------------------------------------------------- the child's side


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["op"] == "ping":
        return {}
    module = module_for(request["task"])
    if request["op"] == "reference":
        return dict(module.reference(request["parameters"]))
    return dict(module.replay(request["parameters"], request["answer"]))


def serve(
    source: BinaryIO | None = None,
    sink: BinaryIO | None = None,
    answer: Callable[[dict[str, Any]], dict[str, Any]] = _answer,
) -> None:
    """Answer length-prefixed JSON requests until the input ends; whatever escapes is reported, never scored."""
    source = source or sys.stdin.buffer
    sink = sink or sys.stdout.buffer
    sys.stdout = sys.stderr  # a stray print must not enter the protocol
    while len(head := source.read(4)) == 4:
        request = json.loads(source.read(int.from_bytes(head, "big")))
        try:
            reply = {"ok": answer(request)}
            data = json.dumps(reply, allow_nan=True).encode()
        except Exception:  # noqa: BLE001 - the edge of the judge: reported to the parent as our failure
            data = json.dumps({"error": traceback.format_exc(limit=-4)}).encode()
        sink.write(len(data).to_bytes(4, "big") + data)
        sink.flush()
