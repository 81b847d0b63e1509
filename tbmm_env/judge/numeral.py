"""How exact rationals are written for people."""

from __future__ import annotations

from fractions import Fraction

_DISPLAY_DIGITS = 12


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
