"""Values of MBeans as JSON of a foreign server or JVM: numbers that a float or a reader cannot hold stay text. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Json = object

_DEEPEST = 48  # levels: of a value at most 32. Python's stack holds some hundreds
_LONGEST_NUMBER = 400


def loaded(text: str) -> Json:
    """What the text holds. Raises ValueError where it is no JSON, cut, or nested too deep to be read."""
    try:
        found = json.loads(text, parse_int=integer, parse_float=_float)
    except RecursionError:
        raise ValueError("nested too deep") from None
    level = [found]
    for _ in range(_DEEPEST):
        level = [
            below for each in level if isinstance(each, (dict, list))
            for below in (each.values() if isinstance(each, dict) else each) if isinstance(below, (dict, list))
        ]  # fmt: skip
        if not level:
            return found
    raise ValueError("nested too deep")


def integer(text: str) -> int | str:
    """An integer of a JSON text, of any length that is sensible."""
    return int(text) if len(text) <= _LONGEST_NUMBER else text  # a number, by its syntax


def _float(text: str) -> float | str:
    found = float(text)  # a number, by its syntax
    return text if found in (float("inf"), float("-inf")) else found  # a number
