"""``atif``: one trajectory file an episode in the Agent Trajectory Interchange Format 1.8, which Harbor reads.

The format has no place for a reward: it is in ``final_metrics.extra`` and, with the whole judgement, in ``extra``.
Images are PNG files in ``images/`` beside the trajectories.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tbmm_env.datasets import output
from tbmm_env.datasets.chat import TOOL_NAME, TOOLS, call_id, reasoning
from tbmm_env.datasets.columns import identity
from tbmm_env.datasets.output import Pictures
from tbmm_env.datasets.plain import Plain
from tbmm_env.datasets.selection import Entry, Selection, choose
from tbmm_env.datasets.summary import ExportSummary
from tbmm_env.judge.numeral import exact_text
from tbmm_env.record import Episode, Observation, Step, Turn
from tbmm_env.trajectory.store import Store

ATIF_VERSION: Final = "ATIF-v1.8"
_UNKNOWN: Final = "unknown"


def export_atif(store: Store, out: Path, selection: Selection, *, force: bool = False) -> ExportSummary:
    """Write episodes as ATIF trajectories, named by their key in the store: ``SEGMENT-INDEX.json``.

    Args:
        store: what is read.
        out: folder that is made: the trajectories, ``images/`` and ``summary.json``.
        selection: what may enter; evaluation episodes may, in an export of their own.
        force: replace an earlier export.

    Raises:
        UsageError: the selection is empty, or ``out`` cannot be written.
        TrajectoryError: the store cannot be read.
    """
    summary = ExportSummary(format="atif", store=str(store.path), options={"split": selection.split})
    chosen = choose(store, selection, summary)
    plain = Plain(summary.notes)
    with output.folder(out, summary, force=force) as work:
        writer = _Trajectories(plain, Pictures("files", work, summary))
        for entry, episode in chosen.episodes():
            name = f"{entry.key.replace('#', '-')}.json"
            text = output.dump(writer.trajectory(entry, episode), indent=1)
            (work / name).write_text(text + "\n", encoding="utf-8")
            summary.files.append(name)
            summary.rows += 1
            chosen.put_in(entry)
    return summary


class _Trajectories:
    def __init__(self, plain: Plain, pictures: Pictures) -> None:
        self._plain = plain
        self._pictures = pictures

    def trajectory(self, entry: Entry, episode: Episode) -> dict[str, Any]:
        """Return the object of one file."""
        plain = self._plain
        prompt = {"step_id": 1, "source": "user", "message": self._parts(episode.first_observation)}
        steps = [self._step(number, step, episode) for number, step in enumerate(episode.steps, start=2)]
        turns = [step.turn for step in episode.steps if step.turn is not None]
        totals: dict[str, Any] = {"total_steps": 1 + len(steps)}
        if turns and len(turns) == len(episode.steps):
            totals["total_prompt_tokens"] = sum(turn.prompt_token_ids.size for turn in turns)
            totals["total_completion_tokens"] = sum(turn.completion_token_ids.size for turn in turns)
        return {
            "schema_version": ATIF_VERSION,
            "session_id": plain.text(episode.episode_id),
            "trajectory_id": entry.key,
            "agent": {
                "name": plain.text(episode.policy) or _UNKNOWN,
                "version": _version(turns, plain),
                "tool_definitions": TOOLS,
            },
            "steps": [_timed(prompt, episode.started_unix_s), *steps],
            "final_metrics": totals
            | {
                "extra": {
                    "reward": float(entry.reward),
                    "reward_exact": exact_text(entry.reward),
                    "outcome": entry.outcome,
                }
            },
            "extra": identity(entry, episode, plain)
            | {
                "parameters": plain.value(episode.instance.parameters),
                "budget": plain.text(episode.budget),
                "sandbox": plain.text(episode.sandbox),
                "job": plain.text(episode.job),
                "terminated": episode.terminated,
                "truncated": episode.truncated,
                "wall_s": plain.finite(episode.wall_s),
                "limits": plain.value(episode.limits),
                "versions": plain.value(episode.versions),
                "judgement": plain.value(episode.judgement),
            },
        }

    def _step(self, number: int, step: Step, episode: Episode) -> dict[str, Any]:
        call = call_id(number - 2)
        command = self._plain.text(step.action)
        result: dict[str, Any] = {
            "source_call_id": call,
            "content": self._parts(step.observation),
            "extra": {
                "exit_status": None if step.exit_status is None else int(step.exit_status),
                "ending": step.ending,
                "wall_s": self._plain.finite(step.wall_s),
            },
        }
        written: dict[str, Any] = {
            "step_id": number,
            "source": "agent",
            "message": self._plain.text(reasoning(step)),
            "tool_calls": [{"tool_call_id": call, "function_name": TOOL_NAME, "arguments": {"command": command}}],
            "observation": {"results": [result]},
        }
        if step.turn is not None:
            written["metrics"] = self._metrics(step.turn)
            written["llm_call_count"] = 1
        return _timed(written, episode.started_unix_s + step.started_s)

    def _metrics(self, turn: Turn) -> dict[str, Any]:
        plain = self._plain
        metrics: dict[str, Any] = {
            "extra": {
                "finish_reason": plain.text(turn.finish_reason),
                "sampling": plain.value(turn.sampling),
                "weight_version": plain.text(turn.weight_version),
            }
        }
        for name, count, tokens in (
            ("prompt_token_ids", "prompt_tokens", turn.prompt_token_ids),
            ("completion_token_ids", "completion_tokens", turn.completion_token_ids),
        ):
            if tokens.size:
                metrics |= {name: tokens.tolist(), count: int(tokens.size)}
        if turn.logprobs.size:
            metrics |= self._logprobs(turn.logprobs)
        return metrics

    def _logprobs(self, logprobs: NDArray[np.float32]) -> dict[str, Any]:
        values = [self._plain.finite(value) for value in logprobs.tolist()]
        return {"logprobs": values} if None not in values else {}

    def _parts(self, observation: Observation) -> str | list[dict[str, Any]]:
        text = self._plain.text(observation.terminal)
        images = self._pictures.add(observation.figures)
        if not images:
            return text
        shown = [{"type": "image", "source": {"media_type": "image/png", "path": path}} for path in images]
        return [{"type": "text", "text": text}, *shown]


def _version(turns: list[Turn], plain: Plain) -> str:
    """Return the weights that answered; a policy has no other version."""
    found = dict.fromkeys(turn.weight_version for turn in turns if turn.weight_version)
    return ", ".join(plain.text(version) for version in found) or _UNKNOWN


def _timed(step: dict[str, Any], unix_s: float) -> dict[str, Any]:
    """Add the time of a step; one that is no date is left away."""
    try:
        time = datetime.fromtimestamp(float(unix_s), UTC)
    except (ValueError, OverflowError, OSError):
        return step
    return step | {"timestamp": time.isoformat(timespec="milliseconds")}
