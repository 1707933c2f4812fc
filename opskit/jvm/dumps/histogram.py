"""Class histograms: the record, and the form that JVMs from JDK 5 to 25 print, alone or inside a log.

     num     #instances         #bytes  class name (module)
    -------------------------------------------------------
       1:          7610         607736  [B (java.base@11.0.5)
       2:          7069         169656  java.lang.String (java.base@11.0.5)
       3:           250          12000  com.acme.Order
    Total         14929         789392

Sources: HotSpot's KlassInfoHisto (memory/heapInspection.cpp), which also writes into GC logs; ObjectHistogram of the
serviceability agent (`jhsdb jmap --histo`, `jmap -F`): tabs, `byte[]` for `[B`, `Total : `; OpenJ9's jmap: no colon
after the row's number and no Total.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING

from opskit.jvm.logs.timestamps import Stamp
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

# It begins with a literal, which makes the search through megabytes of log fast.
HEADER = re.compile(
    r"num[ \t]+(?P<columns>#instances[ \t]+#bytes|object count[ \t]+total size)[ \t]+"
    r"(?P<title>class name|Class description)[ \t]*(?P<modules>\(module\))?"
)
TOTAL = re.compile(r"\s*Total(?: ?:)?\s+(\d{1,19})\s+(\d{1,19})\s*", re.ASCII)
NO_TOTAL = "it has no Total line"
NO_END = "its last line has no line feed: the name in it may be cut off"


class Counts(NamedTuple):
    """Objects, and their own bytes without those of the objects they refer to."""

    instances: int
    bytes: int


class Histogram(NamedTuple):
    """One histogram.

    `rows` maps a class name to (instances, bytes), summed over class loaders; `modules` a name to `MODULE@VERSION`.
    `line` is the header's, from 1. `total` is the Total line; None without one. `cut` says why rows are missing; None
    where none are. `doubts`: possible damage. `moment`: "before full gc" or "after full gc" in a GC log.
    """

    source: str
    line: int
    dialect: str
    has_modules: bool
    rows: Mapping[str, tuple[int, int]]
    modules: Mapping[str, str]
    total: Counts | None
    cut: str | None = None
    doubts: tuple[str, ...] = ()
    moment: str | None = None
    stamp: Stamp = Stamp()


class Table(NamedTuple):
    """The rows that were read, and `end`, the position after them; the rest as in Histogram."""

    rows: dict[str, tuple[int, int]]
    modules: dict[str, str]
    total: Counts | None
    cut: str | None
    doubts: tuple[str, ...]
    end: int


def sum_rows(rows: Mapping[str, tuple[int, int]]) -> Counts:
    """The sum of all rows."""
    return Counts(sum(map(itemgetter(0), rows.values())), sum(map(itemgetter(1), rows.values())))


def printed_counts(total: re.Match[str]) -> Counts:
    """The numbers of a Total line."""
    return Counts(int(total[1]), int(total[2]))  # a number: 19 ASCII digits at most


def is_torn_row(text: str) -> bool:
    """Whether the text before a header on its line begins like a row."""
    return re.match(r"\s*[1-9]\d{0,8}:?\s+\d{1,19}\s+\d{1,19}\s+\S", text, re.ASCII) is not None
