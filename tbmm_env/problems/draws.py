"""Random numbers of sampled instances: a function of the seed alone, on grids of printed decimals."""

from __future__ import annotations

import operator
from typing import SupportsIndex

import numpy as np

from tbmm_env.errors import BadInstance

__all__ = ["generator_of", "seed_number", "step"]


def seed_number(seed: SupportsIndex) -> int:
    """Return an instance seed as int.

    Raises:
        BadInstance: it is no integer (a bool is none) with 0 <= seed < 2**63.
    """
    try:
        number = -1 if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        number = -1
    if not 0 <= number < 2**63:
        raise BadInstance(f"seed is {seed!r}; it must be an integer with 0 <= seed < 2**63")
    return number


def generator_of(*entropy: int) -> np.random.Generator:
    """Return the generator of some entropy: the task's year and letter, and what tells its draws apart."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


def step(generator: np.random.Generator, low: float, high: float, size: float, decimals: int) -> float:
    """Return a multiple of ``size`` from ``low``, at most ``high``, uniform, rounded to printed decimals."""
    return round(low + size * int(generator.integers(0, round((high - low) / size) + 1)), decimals)
