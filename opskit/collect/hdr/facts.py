"""What is read of HdrHistogram logs besides their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Request(NamedTuple):
    """The logs to read, as the user named them; `-` is standard input."""

    names: Sequence[str]


class BadLine(NamedTuple):
    """A line that could not be used: `throttle.hdr`, 17, "the data is not base64"."""

    file: str
    number: int
    why: str


class Facts(NamedTuple):
    """`bad`: the first lines that could not be used, of `bad_lines`. `cut`: logs whose last line is incomplete (still written)."""

    names: Sequence[str]
    lines: int
    intervals: int
    bad_lines: int
    bad: Sequence[BadLine]
    cut: Sequence[str] = ()
    interrupted: bool = False
