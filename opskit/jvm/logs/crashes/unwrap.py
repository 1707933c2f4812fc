r"""Takes off what a log shipper put before each line of a report; the first line of the report shows it.

2026-11-23T15:04:05.123456789Z stdout F # A fatal error has been detected …       containerd, CRI-O; P: the line goes on
{"log":"# A fatal error has been detected …\n","stream":"stdout","time":"…"}     Docker's json-file
web-1  | # A fatal error …                                                       docker compose
Nov 23 15:04:05 host java[812]: # A fatal error …                                syslog, journalctl
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_PREFIX = 512
LONGEST_LINE = 1 << 17
_MOST_LINES = 500_000
_JSON_KEY = re.compile(r'\{.*"([A-Za-z_@.]{1,32})" ?: ?"')
_JSON_TEXT = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*')
# Seconds of a time: with no fraction in one line, and nine digits in the next.
_PIECES = re.compile(r"(?<=[0-9]:)([0-9]{2}(?:[.,][0-9]+)?)(?![0-9.,:])|[0-9]+|[^0-9]+")
_FRACTION = r"(?:[.,]\d+)?"


def unwrap(text: str, prefix: str) -> list[str]:
    """The lines without `prefix` and what differs from line to line in it; a line without it stays as it is."""
    lines = text.split("\n", _MOST_LINES)[:_MOST_LINES]
    if not prefix:
        return [line[:LONGEST_LINE].rstrip("\r") for line in lines]
    key = _JSON_KEY.fullmatch(prefix)
    if key:
        return _of_json(lines, key[1])
    if len(prefix) > _LONGEST_PREFIX:
        return [line[:LONGEST_LINE].rstrip("\r") for line in lines]
    return _without(lines, re.compile(_pattern(prefix)).match)


def _pattern(prefix: str) -> str:
    """An expression for the same prefix with other digits. Its parts share no character, so that it matches in one way."""
    parts = []
    for piece in _PIECES.finditer(prefix.rstrip()):
        if piece[1]:  # the character after it is no digit, point or comma: the fraction has one end
            parts.append(r"\d+" + _FRACTION)
        else:
            parts.append(r"\d+" if piece[0][0] in "0123456789" else re.escape(piece[0]))
    pattern = "".join(parts)
    pattern = re.sub(r"(?<=\\ )std(?:out|err)(?=\\ )", "std(?:out|err)", pattern)
    pattern = re.sub(r"(?<=std\(\?:out\|err\)\\ )[FP]$", "([FP])", pattern)
    blanks = len(prefix) - len(prefix.rstrip())
    return f"{pattern} {{0,{blanks}}}" if blanks else pattern


def _without(lines: list[str], match: Callable[[str], re.Match[str] | None]) -> list[str]:
    found: list[str] = []
    begun: list[str] = []  # the pieces of a line that goes on
    length = 0
    for line in lines:
        matched = match(line)
        rest = (line[matched.end() :] if matched else line)[:LONGEST_LINE].rstrip("\r")
        if matched and matched.lastindex and matched[1] == "P":
            if length < LONGEST_LINE:
                begun.append(rest)
                length += len(rest)
        elif begun and matched:
            found.append("".join([*begun, rest])[:LONGEST_LINE])
            begun, length = [], 0
        else:
            found.append(rest)
    return [*found, "".join(begun)[:LONGEST_LINE]] if begun else found


def _of_json(lines: list[str], key: str) -> list[str]:
    import json

    mark = f'"{key}"'
    pieces: list[str] = []
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
        pieces.append(str(said))
    # Docker keeps the end of each line, and splits one of more than 16 KiB; other shippers drop it.
    between = "" if any(piece.endswith("\n") for piece in pieces) else "\n"
    return [line[:LONGEST_LINE].rstrip("\r") for line in between.join(pieces).removesuffix("\n").split("\n")]
