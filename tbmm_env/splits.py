"""Which split an instance belongs to, so that training and evaluation are never mixed."""

from __future__ import annotations

from typing import Final, Literal

from tbmm_env.errors import UnknownTask
from tbmm_env.problems import module_for
from tbmm_env.record import Instance

Split = Literal["official", "training", "evaluation", "given"]

TRAINING_SEEDS: Final = 2**31
"""Training seeds are 0 to 2**31 - 1, known to everybody; seeds from 2**31 to 2**63 - 1 are for evaluation only."""


def split_of(instance: Instance) -> Split:
    """Return the split of an instance.

    ``official``: the parameters of the official problem, whatever its seed. ``training``: drawn from a public seed,
    0 <= seed < 2**31. ``evaluation``: drawn from a seed of 2**31 or more. ``given``: parameters of a caller's own,
    which may have been taken from anywhere. Only ``training`` may enter a training export without being named.
    """
    try:
        if dict(instance.parameters) == dict(module_for(instance.task).OFFICIAL):
            return "official"
    except UnknownTask:
        pass  # a record of a task that this version does not have; its seed still speaks
    if instance.seed is None:
        return "given"
    return "training" if 0 <= instance.seed < TRAINING_SEEDS else "evaluation"
