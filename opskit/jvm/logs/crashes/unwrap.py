r"""Takes off what a log shipper put before each line of a report; the first line of the report shows it.

2026-11-23T15:04:05.123456789Z stdout F # A fatal error has been detected …       containerd, CRI-O; P: the line goes on
{"log":"# A fatal error has been detected …\n","stream":"stdout","time":"…"}     Docker's json-file
web-1  | # A fatal error …                                                       docker compose
Nov 23 15:04:05 host java[812]: # A fatal error …                                syslog, journalctl
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_PREFIX = 512
LONGEST_LINE = 1 << 17
_MOST_LINES = 1_000_000
_JSON_KEY = re.compile(r'\{.*"([A-Za-z_@.]{1,32})" ?: ?"')
_JSON_TEXT = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*')
# A time to the second may have no fraction in one line and nine digits in the next.
_FRACTION = r"(?:[.,]\d+)?"


def unwrap(text: str, prefix: str) -> list[str]:
    """The lines without `prefix` and what differs from line to line in it; a line without it stays as it is."""
    lines = text.split("\n", _MOST_LINES)[:_MOST_LINES]
    if not prefix:
        return [line[:LONGEST_LINE].rstrip("\r") for line in lines]
    key = _JSON_KEY.fullmatch(prefix)
    if key:
        return _of_json(lines, key[1])
    if len(prefix) > LONGEST_PREFIX:
        return [line[:LONGEST_LINE].rstrip("\r") for line in lines]
    return _without(lines, re.compile(_pattern(prefix)).match)


def _pattern(prefix: str) -> str:
    """An expression for the same prefix with other digits. Its parts share no character, so that it matches in one way."""
    parts = []
    for piece in re.findall(r"\d+(?:[.,]\d+)?|[^\d]+", prefix.rstrip()):
        if piece[0] in "0123456789":
            parts.append(r"\d+" + _FRACTION)
        else:
            parts.append(re.escape(piece))
    pattern = "".join(parts)
    pattern = re.sub(r"(?<=\\ )std(?:out|err)(?=\\ )", "std(?:out|err)", pattern)
    pattern = re.sub(r"(?<=std\(\?:out\|err\)\\ )[FP]$", "([FP])", pattern)
    blanks = len(prefix) - len(prefix.rstrip())
    return f"{pattern} {{0,{blanks}}}" if blanks else pattern


def _without(lines: list[str], match: Callable[[str], re.Match[str] | None]) -> list[str]:
    found: list[str] = []
    goes_on = False
    for line in lines:
        matched = match(line)
        rest = line[matched.end() :] if matched else line
        rest = rest[:LONGEST_LINE].rstrip("\r")
        if goes_on and matched:
            found[-1] = (found[-1] + rest)[:LONGEST_LINE]
        else:
            found.append(rest)
        goes_on = bool(matched and matched.lastindex and matched[1] == "P")
    return found


def _of_json(lines: list[str], key: str) -> list[str]:
    mark = f'"{key}"'
    found = []
    for line in lines:
        at = line[: LONGEST_LINE * 2].find(mark)
        value = None if at < 0 else line[at + len(mark) : at + LONGEST_LINE].lstrip(" :")
        if value is None or value[:1] != '"':
            continue
        quoted = _JSON_TEXT.match(value, 1)
        try:
            said = json.loads(f'"{quoted[0] if quoted else ""}"', strict=False)
        except ValueError:
            continue
        found.extend(piece.rstrip("\r") for piece in str(said).removesuffix("\n").split("\n"))
    return found
