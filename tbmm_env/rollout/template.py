"""A policy that fills a task's answer with random decisions from the ranges of its schema."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from tbmm_env.rollout.policies import EpisodeStart, Scripted, written
from tbmm_env.tasks import Task

LIST_ITEMS = 8
"""Most items of a list beyond those that the schema asks for."""
UNSCORED = "claims"
"""Part of every answer that is never scored, and left out."""


def random_answer(schema: Mapping[str, Any], rng: random.Random, *, full: bool = False) -> Any:
    """Return a value that fits a task's answer schema, every number uniform in its range.

    Args:
        schema: ``Task.answer_schema`` or a part of it; bounds are decimal strings.
        rng: where numbers come from.
        full: make every list as long as the schema allows, instead of a random length up to :data:`LIST_ITEMS` more
            than it asks for.
    """
    kind = schema["type"]
    if kind == "object":
        properties = schema["properties"]
        return {
            name: random_answer(properties[name], rng, full=full) for name in sorted(properties) if name != UNSCORED
        }
    if kind == "array":
        least = int(schema.get("minItems", 0))
        most = int(schema["maxItems"]) if full else min(int(schema["maxItems"]), max(least, LIST_ITEMS))
        return [
            random_answer(schema["items"], rng, full=full) for _ in range(most if full else rng.randint(least, most))
        ]
    if kind == "integer":
        return rng.randint(int(schema["minimum"]), int(schema["maximum"]))
    if kind == "number":
        return rng.uniform(float(schema["minimum"]), float(schema["maximum"]))
    if kind == "boolean":
        return rng.random() < 0.5
    return ""


class RandomTemplate(Scripted):
    """Writes a random answer, checks it and submits; the same answer for the same instance, group and sample.

    Args:
        task: whose schema is filled.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(())
        self._schema = task.answer_schema

    def reset(self, start: EpisodeStart) -> None:
        """Draw the answer of an episode."""
        seed = f"{start.task}/{start.instance['seed']}/{start.group}/{start.sample_id}"
        answer = random_answer(self._schema, random.Random(seed))
        text = json.dumps(answer, indent=1, ensure_ascii=False)
        self._actions = (written("/workspace/answer.json", text), "check", "submit")
