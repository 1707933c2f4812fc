"""The helpers of the dialects in JSON: decode a document, keep what is whole of one that was cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.jvm.progress import onwards
from opskit.quantities import integer

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from json import JSONDecoder


def json_decoder() -> JSONDecoder:
    """A decoder that takes raw control characters in text, which some writers leave there."""
    from json import JSONDecoder

    return JSONDecoder(strict=False)


def decode(text: str) -> Any:
    """The JSON value at the beginning of the text; None where it is cut off or damaged."""
    try:
        return json_decoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def whole_objects(beginning: re.Pattern[str], text: str) -> Iterator[tuple[Any, str | None]]:
    """The objects that begin as the pattern says, up to the first one that is not whole.

    A match of the pattern's group 1 begins no object: it names what contains the objects behind it.
    """
    decoder = json_decoder()
    container = None
    at = 0
    while match := beginning.search(text, at):
        at = match.end()
        if match.lastindex:
            container = match[1]
            continue
        try:
            entry, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            return
        at = onwards(match.start(), end)
        yield entry, container


def as_list(value: object) -> list[Any]:
    """A list of a JSON document; empty for any other value."""
    return value if isinstance(value, list) else []


def as_id(value: object) -> int | None:
    """A thread's id in a JSON document, where it is a number or text."""
    return integer(str(value)) if isinstance(value, (str, int)) else None


def as_word(value: object) -> str | None:
    """Text or a whole number as text; None for any other value."""
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    return None
