"""Reading parameters and answers field by field; every refusal names the field, the value and the limit."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from tbmm_env.errors import BadInstance

__all__ = ["finite", "named", "number"]


def named(value: Any, names: Collection[str], where: str = "") -> Mapping[str, Any]:
    """Return an object that has exactly the named fields.

    Args:
        value: what stands there.
        names: of the fields; the first one that is missing is reported.
        where: its place in the parameters, empty for all of them.

    Raises:
        BadInstance: it is no object, a field is missing, or one is unknown.
    """
    path = f"{where}." if where else ""
    if not isinstance(value, Mapping):
        raise BadInstance(f"parameter {where} is {str(value)[:60]!r}; it must be an object with {', '.join(names)}")
    for name in names:
        if name not in value:
            raise BadInstance(f"parameter {path}{name} is missing; every one of {', '.join(names)} is needed")
    for name in sorted(set(value) - set(names)):
        raise BadInstance(f"parameter {path}{name} is unknown; the known ones are {', '.join(names)}")
    return value


def number(where: str, value: Any, limits: tuple[float, float], decimals: int) -> float:
    """Return one number of the parameters.

    Args:
        where: its place in the parameters.
        value: what stands there.
        limits: inclusive.
        decimals: most that it may have; with 0 it must be an int.

    Raises:
        BadInstance: it is no number (a bool is none), not within the limits, or has more decimals.
    """
    low, high = limits
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInstance(f"parameter {where} is {value!r}; it must be a number in [{low}, {high}]")
    if decimals == 0 and not isinstance(value, int):
        raise BadInstance(f"parameter {where} is {value!r}; it must be an integer in [{low}, {high}]")
    if not low <= value <= high:
        raise BadInstance(f"parameter {where} is {value!r}; it must lie in [{low}, {high}]")
    if round(value, decimals) != value:
        raise BadInstance(f"parameter {where} is {value!r}; it may have at most {decimals} decimals")
    return float(value)


def finite(value: Any) -> float | None:
    """Return a finite number of an answer as float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
