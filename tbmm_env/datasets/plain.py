"""Text and values that every JSON reader takes: valid Unicode, finite numbers, no types of our own."""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tbmm_env.judge.numeral import exact_text
from tbmm_env.record import JsonValue

_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER_BITS = 63

SURROGATES = "lone surrogates replaced by U+FFFD"
NOT_FINITE = "numbers that are not finite replaced by null"


class Plain:
    """Makes text and values plain, and counts in ``notes`` what had to change."""

    def __init__(self, notes: Counter[str]) -> None:
        """Count in ``notes``."""
        self._notes = notes

    def text(self, text: str) -> str:
        """Return valid Unicode: a surrogate pair becomes its character, a lone surrogate U+FFFD."""
        if not _SURROGATE.search(text):
            return text
        plain = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self._notes[SURROGATES] += plain.count("\ufffd") - text.count("\ufffd")
        return plain

    def value(self, value: Any) -> JsonValue:
        """Return a value of an episode's free mappings as JSON.

        A Fraction becomes ``p/q`` text, an integer of more than 63 bits decimal or ``0x`` text, bytes base64 text, a
        number that is not finite null, an array a list, any other numpy number its Python value.
        """
        if value is None or isinstance(value, bool | str):
            return self.text(value) if isinstance(value, str) else value
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, np.ndarray | np.generic):
            return self.value(value.tolist())
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        return self._number(value)

    def _number(self, value: Any) -> JsonValue:
        if isinstance(value, int):
            return value if value.bit_length() <= _INTEGER_BITS else exact_text(Fraction(value))
        if isinstance(value, float):
            return self.finite(value)
        if isinstance(value, Fraction):
            return exact_text(value)
        return self.text(str(value))

    def finite(self, value: float) -> float | None:
        """Return a number, or None when it is not finite."""
        if math.isfinite(value):
            return float(value)
        self._notes[NOT_FINITE] += 1
        return None
