"""``turns``: what the model was given and what it answered, as token ids, in the shape a trainer takes.

Nothing is tokenised here: ids are those of the rollout. Turns are joined as long as each prompt begins with all tokens
before it; where one does not, a new sample begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tbmm_env.datasets import card, groups, output
from tbmm_env.datasets.columns import identity
from tbmm_env.datasets.groups import Group
from tbmm_env.datasets.plain import Plain
from tbmm_env.datasets.selection import Chosen, Entry, Selection, choose, refuse_evaluation
from tbmm_env.datasets.summary import ExportSummary
from tbmm_env.errors import UsageError
from tbmm_env.record import Episode, Turn
from tbmm_env.trajectory.store import Store

TurnShape = Literal["prime-rl", "verl", "skyrl", "trl"]
LogprobMode = Literal["require", "drop"]

NO_TOKENS: Final = "no token ids: its policy was no model, or its server did not tell them"
SOME_TOKENS: Final = "token ids of some turns are missing"
BAD_LOGPROBS: Final = "logprobs are not one finite number a completion token"
NO_LOGPROBS: Final = "no logprobs; --logprobs drop lets it in without"
BROKEN: Final = "prompts that do not continue all tokens before them: a new sample begins"
FIGURES: Final = "episodes that showed figures: token ids only, no pixels"
NO_TEMPERATURE: Final = "turns whose temperature is not known, written as 1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Turns of one episode as one sequence of tokens.

    Attributes:
        token_ids: int64, shape (n,).
        mask: bool, shape (n,): true where the model sampled the token.
        logprobs: float32, shape (n,), 0 where ``mask`` is false; None when a turn has none.
        temperatures: float, shape (n,): of the turn that a token belongs to, prompt tokens to the turn they lead to.
        prompt_length: tokens of the first prompt.
        turns: number of turns.
        finish_reason: of the last turn.
        weight_versions: which weights answered, in order of appearance.
    """

    token_ids: NDArray[np.int64]
    mask: NDArray[np.bool_]
    logprobs: NDArray[np.float32] | None
    temperatures: NDArray[np.float64]
    prompt_length: int
    turns: int
    finish_reason: str
    weight_versions: tuple[str, ...]


# ---------------------------------------------------------------- from turns to samples


def samples(episode: Episode, notes: Counter[str]) -> list[Sample] | str:
    """Return the samples of an episode in order, or why it has none; ``notes`` counts where the prefix breaks."""
    turns = [step.turn for step in episode.steps if step.turn is not None]
    have = [bool(turn.prompt_token_ids.size and turn.completion_token_ids.size) for turn in turns]
    if not any(have):
        return NO_TOKENS
    if not all(have) or len(turns) != len(episode.steps):
        return SOME_TOKENS
    if not all(_sound(turn) for turn in turns):
        return BAD_LOGPROBS
    parts: list[list[Turn]] = []
    so_far = np.zeros(0, dtype=np.int64)
    for turn in turns:
        prompt = turn.prompt_token_ids
        if parts and np.array_equal(prompt[: so_far.size], so_far):
            parts[-1].append(turn)
        else:
            notes[BROKEN] += bool(parts)
            parts.append([turn])
        so_far = np.concatenate([prompt, turn.completion_token_ids])
    notes[NO_TEMPERATURE] += sum(_temperature(turn) is None for turn in turns)
    return [_joined(part) for part in parts]


def _sound(turn: Turn) -> bool:
    fits = turn.logprobs.shape in ((0,), turn.completion_token_ids.shape)
    return fits and bool(np.isfinite(turn.logprobs).all())


def _temperature(turn: Turn) -> float | None:
    value = turn.sampling.get("temperature")
    if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value):
        return float(value)
    return None


def _joined(turns: list[Turn]) -> Sample:
    last = turns[-1]
    token_ids = np.concatenate([last.prompt_token_ids, last.completion_token_ids])
    mask = np.zeros(token_ids.size, dtype=np.bool_)
    logprobs = np.zeros(token_ids.size, dtype=np.float32)
    temperatures = np.ones(token_ids.size, dtype=np.float64)
    done = 0
    for turn in turns:
        start = turn.prompt_token_ids.size
        end = start + turn.completion_token_ids.size
        mask[start:end] = True
        if turn.logprobs.size:
            logprobs[start:end] = turn.logprobs
        temperature = _temperature(turn)
        temperatures[done:end] = 1.0 if temperature is None else temperature
        done = end
    return Sample(
        token_ids=token_ids,
        mask=mask,
        logprobs=logprobs if all(turn.logprobs.size for turn in turns) else None,
        temperatures=temperatures,
        prompt_length=turns[0].prompt_token_ids.size,
        turns=len(turns),
        finish_reason=last.finish_reason,
        weight_versions=tuple(dict.fromkeys(turn.weight_version for turn in turns if turn.weight_version)),
    )


# ---------------------------------------------------------------- shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A sample of an episode, and where it stands."""

    sample: Sample
    entry: Entry
    advantage: float | None
    last: bool
    info: Mapping[str, Any]


def _prime_rl(place: _Place) -> dict[str, Any]:
    """TrainingSample: four arrays of one length, and the advantage of the episode on every trainable token."""
    sample, advantage = place.sample, place.advantage
    assert sample.logprobs is not None
    return {
        "token_ids": sample.token_ids.tolist(),
        "mask": sample.mask.tolist(),
        "logprobs": sample.logprobs.tolist(),
        "temperatures": sample.temperatures.tolist(),
        "env_name": place.info["task"],
        "advantages": None if advantage is None else np.where(sample.mask, advantage, 0.0).tolist(),
        "info": place.info,
    }


def _verl(place: _Place) -> dict[str, Any]:
    """AgentLoopOutput: response_mask is 1 for tokens of the model; ``uid`` of extra_fields names the group.

    Of ``metrics`` nothing is known; -1 is verl's own word for that.
    """
    prompt, response, mask, logprobs = _split(place.sample)
    return {
        "prompt_ids": prompt,
        "response_ids": response,
        "response_mask": mask,
        "response_logprobs": logprobs,
        "reward_score": float(place.entry.reward),
        "num_turns": 2 * place.sample.turns,
        "metrics": {"num_preempted": -1},
        "extra_fields": {"uid": place.info["group_id"] or place.info["episode_id"], **place.info},
    }


def _skyrl(place: _Place) -> dict[str, Any]:
    """One place of every list of GeneratorOutput; the reward comes with the last step, as the environment gives it."""
    prompt, response, mask, logprobs = _split(place.sample)
    instance = place.info["group_id"] or place.info["instance_sha256"]
    return {
        "prompt_token_ids": prompt,
        "response_ids": response,
        "rewards": float(place.entry.reward) if place.last else 0.0,
        "loss_masks": mask,
        "stop_reasons": place.sample.finish_reason,
        "rollout_logprobs": logprobs,
        "trajectory_ids": {"instance_id": instance, "repetition_id": place.entry.sample_id},
        "is_last_step": place.last,
        "env_metrics": {"reward": float(place.entry.reward)},
        "info": place.info,
    }


def _trl(place: _Place) -> dict[str, Any]:
    """What a rollout_func returns, one sample of each list; env_mask is 1 for tokens of the model."""
    prompt, completion, mask, logprobs = _split(place.sample)
    return {
        "prompt_ids": prompt,
        "completion_ids": completion,
        "logprobs": logprobs,
        "env_mask": mask,
        "reward": float(place.entry.reward),
        "info": place.info,
    }


def _split(sample: Sample) -> tuple[list[int], list[int], list[int], list[float] | None]:
    """Return the first prompt, what follows it, and mask and logprobs of the latter."""
    at = sample.prompt_length
    logprobs = None if sample.logprobs is None else sample.logprobs[at:].tolist()
    return (
        sample.token_ids[:at].tolist(),
        sample.token_ids[at:].tolist(),
        sample.mask[at:].astype(np.int64).tolist(),
        logprobs,
    )


_SHAPES: Final[dict[TurnShape, Callable[[_Place], dict[str, Any]]]] = {
    "prime-rl": _prime_rl,
    "verl": _verl,
    "skyrl": _skyrl,
    "trl": _trl,
}
_COLUMNS: Final[dict[TurnShape, list[card.Feature]]] = {
    "prime-rl": [
        *card.lists("int64", "token_ids"),
        *card.lists("bool", "mask"),
        *card.lists("float64", "logprobs", "temperatures"),
        *card.of("string", "env_name"),
        *card.lists("float64", "advantages"),
    ],
    "verl": [
        *card.lists("int64", "prompt_ids", "response_ids", "response_mask"),
        *card.lists("float64", "response_logprobs"),
        *card.of("float64", "reward_score"),
        *card.of("int64", "num_turns"),
        card.struct("metrics", card.of("int64", "num_preempted")),
    ],
    "skyrl": [
        *card.lists("int64", "prompt_token_ids", "response_ids"),
        *card.of("float64", "rewards"),
        *card.lists("int64", "loss_masks"),
        *card.of("string", "stop_reasons"),
        *card.lists("float64", "rollout_logprobs"),
        card.struct("trajectory_ids", [*card.of("string", "instance_id"), *card.of("int64", "repetition_id")]),
        *card.of("bool", "is_last_step"),
        card.struct("env_metrics", card.of("float64", "reward")),
    ],
    "trl": [
        *card.lists("int64", "prompt_ids", "completion_ids"),
        *card.lists("float64", "logprobs"),
        *card.lists("int64", "env_mask"),
        *card.of("float64", "reward"),
    ],
}
"""Types of the columns but the last, which is ``info`` or ``extra_fields``."""
_NEEDS_LOGPROBS: Final[frozenset[TurnShape]] = frozenset({"prime-rl", "trl"})


# ---------------------------------------------------------------- the export


def export_turns(
    store: Store,
    out: Path,
    selection: Selection,
    *,
    shape: TurnShape = "verl",
    logprobs: LogprobMode = "require",
    group_size: int | None = None,
    force: bool = False,
) -> ExportSummary:
    """Write the samples of every episode whose turns have token ids.

    Advantages are those of ``grpo`` without normalisation, over all chosen episodes of the group, those without token
    ids included; an episode without a group, or alone in it, has none.

    Args:
        store: what is read.
        out: folder that is made: ``rows.jsonl`` and ``summary.json``.
        selection: what may enter.
        shape: ``prime-rl``, ``verl``, ``skyrl`` or ``trl``.
        logprobs: ``require`` leaves out episodes without, since a batch has them for all samples or for none; ``drop``
            writes none of them, for ``verl`` and ``skyrl``.
        group_size: members of a whole group; None for the size of the greatest.
        force: replace an earlier export.

    Raises:
        UsageError: the shape is not known, the selection is refused or empty, or ``out`` cannot be written.
        TrajectoryError: the store cannot be read.
    """
    if shape not in get_args(TurnShape):
        raise UsageError(f"--shape is {shape!r}; it must be one of {', '.join(get_args(TurnShape))}")
    if logprobs == "drop" and shape in _NEEDS_LOGPROBS:
        raise UsageError(f"--shape {shape} needs logprobs; --logprobs drop goes with verl and skyrl")
    refuse_evaluation(selection, "turns")
    asked = {"shape": shape, "logprobs": logprobs, "group_size": group_size}
    summary = ExportSummary(format="turns", store=str(store.path), options=asked)
    chosen = choose(store, selection, summary)
    formed, _ = groups.form(chosen.entries, group_size)
    plain = Plain(summary.notes)
    with output.folder(out, summary, force=force) as work, output.rows(work, summary) as write:
        for entry, episode in chosen.episodes():
            notes: Counter[str] = Counter()
            found = samples(episode, notes)
            if not isinstance(found, str):
                found = _with_logprobs(found, logprobs)
            if isinstance(found, str):
                summary.left_out[found] += 1
                continue
            group = formed.get(entry.group_id)
            for place in _places(found, entry, episode, group, plain):
                write(_SHAPES[shape](place))
            notes[FIGURES] += _shows_figures(episode)
            summary.notes.update(notes)
            chosen.put_in(entry)
        _refuse_none(chosen)
        card.write(work, output.ROWS_FILE, f"turns: tokens as {shape} takes them", _features(shape))
    return summary


def _features(shape: TurnShape) -> list[card.Feature]:
    info = [
        *card.IDENTITY,
        *card.of("int64", "sample", "samples", "turns"),
        *card.of("float64", "advantage"),
        *card.of("string", "finish_reason"),
        *card.lists("string", "weight_versions"),
    ]
    if shape == "verl":
        extra = card.struct("extra_fields", [*card.of("string", "uid"), *info])
        return [*_COLUMNS[shape], extra]
    return [*_COLUMNS[shape], card.struct("info", info)]


def _with_logprobs(found: list[Sample], mode: LogprobMode) -> list[Sample] | str:
    if mode == "drop":
        return [replace(one, logprobs=None) for one in found]
    return NO_LOGPROBS if any(one.logprobs is None for one in found) else found


def _places(found: list[Sample], entry: Entry, episode: Episode, group: Group | None, plain: Plain) -> list[_Place]:
    advantage = group.advantage(entry) if group is not None and len(group.members) > 1 else None
    places = []
    for number, sample in enumerate(found):
        info = identity(entry, episode, plain) | {
            "sample": number,
            "samples": len(found),
            "turns": sample.turns,
            "advantage": advantage,
            "finish_reason": plain.text(sample.finish_reason),
            "weight_versions": [plain.text(version) for version in sample.weight_versions],
        }
        last = number == len(found) - 1
        places.append(_Place(sample=sample, entry=entry, advantage=advantage, last=last, info=info))
    return places


def _shows_figures(episode: Episode) -> bool:
    return bool(episode.first_observation.figures) or any(step.observation.figures for step in episode.steps)


def _refuse_none(chosen: Chosen) -> None:
    if not chosen.summary.episodes:
        chosen.entries = []
        chosen.refuse_empty()
