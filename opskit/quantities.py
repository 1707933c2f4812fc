"""Numbers in foreign text: what int() and float() take too much of (`1_000`, ` 5`, `²`, `1e999`, a million digits).

Each returns None for what is no such number, so that the caller decides what is said about it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_DIGITS = 20  # 2**64 - 1 has twenty
_DECIMAL = re.compile(r"[0-9]{1,20}(?:[.,][0-9]{1,20})?")
_HEXADECIMAL = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,32})")


def integer(text: str | bytes) -> int | None:
    """A number of one to twenty ASCII digits; no sign, no blank."""
    if len(text) <= MOST_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    return None


def signed(text: str | bytes) -> int | None:
    """The same with a minus where there is one."""
    if text[:1] in ("-", b"-"):
        number = integer(text[1:])
        return None if number is None else -number
    return integer(text)


def integers(words: Iterable[str | bytes]) -> list[int] | None:
    """Every word as a number; None where one of them is none."""
    numbers = [integer(word) for word in words]
    return None if None in numbers else numbers  # type: ignore[return-value]


def hexadecimal(text: str | bytes) -> int | None:
    """Up to 32 hexadecimal digits, with 0x or without."""
    found = _HEXADECIMAL.fullmatch(text if isinstance(text, str) else text.decode("latin-1"))
    return int(found[1], 16) if found else None


def decimal(text: str | bytes) -> float | None:
    """ASCII digits with a fraction behind a point or a comma where there is one; no sign, no exponent, never infinite."""
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    return float(text.replace(",", ".")) if _DECIMAL.fullmatch(text) else None
