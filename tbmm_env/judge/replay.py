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
        return Replay(values={name: round_to_grid(float(value), grids[name]) for name, value in raw.items()})

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
            if set(raw[part]) != set(grids):
                raise ReplayFailed(f"{task.id}: the {part} names {sorted(raw[part])}; expected {sorted(grids)}")
        computed = {
            part: {key: round_to_grid(float(raw[part][key]), grids[key]) for key in grids}
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
        reply = json.loads(self._worker.call(json.dumps(request).encode(), wall_s))
        if "error" in reply:
            raise ReplayFailed(f"{request.get('task', 'replay')}: {reply['error']}")
        result: dict[str, Any] = reply["ok"]
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
