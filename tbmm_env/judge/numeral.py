"""How exact rationals are written for people."""

from __future__ import annotations

from fractions import Fraction

_DISPLAY_DIGITS = 12

DECIMAL_BITS = 4096
"""Numerators and denominators above this size are written in hexadecimal: CPython refuses to convert integers of more
than 4,300 digits (14,285 bits) to decimal text, and the conversion takes quadratic time."""


def exact_text(value: Fraction) -> str:
    """Return ``p/q``, or ``p`` for an integer; a part of more than 4,096 bits in hexadecimal (``0x...``).

    Equal numbers give equal text, and :func:`read_exact` reads it back. The text has at most 1,234 characters a part
    up to 4,096 bits and a quarter of the bits above; a certified result has at most 65,536 bits a part.
    """
    parts = [value.numerator] if value.denominator == 1 else [value.numerator, value.denominator]
    return "/".join(str(part) if part.bit_length() <= DECIMAL_BITS else hex(part) for part in parts)


def read_exact(text: str) -> Fraction:
    """Return the rational that :func:`exact_text` wrote.

    Raises:
        ValueError: the text is not of that form.
        ZeroDivisionError: its denominator is 0.
    """
    top, slash, bottom = text.partition("/")
    return Fraction(int(top, 0), int(bottom, 0) if slash else 1)


def decimal_text(value: Fraction) -> str:
    """Return a decimal for people: exact up to 12 significant digits, else rounded half-even to 12."""
    if value == 0:
        return "0"
    sign, value = ("-", -value) if value < 0 else ("", value)
    exponent = _exponent(value)
    digits = round(value / Fraction(10) ** (exponent - _DISPLAY_DIGITS + 1))
    if digits == 10**_DISPLAY_DIGITS:
        digits, exponent = digits // 10, exponent + 1
    text = str(digits).rstrip("0")
    if -5 < exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{text}"
    if 0 <= exponent < 15:
        whole, rest = text[: exponent + 1].ljust(exponent + 1, "0"), text[exponent + 1 :]
        return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"
    return f"{sign}{text[0]}{'.' if text[1:] else ''}{text[1:]}e{exponent:+03d}"


def _exponent(value: Fraction) -> int:
    """Return the greatest e with 10**e <= value, for a positive value."""
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    exponent = bits * 30103 // 100000  # log10(2), a first guess
    while Fraction(10) ** exponent > value:
        exponent -= 1
    while Fraction(10) ** (exponent + 1) <= value:
        exponent += 1
    return exponent
