"""The attributes that were asked for, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.collect.jmx.facts import Bean, Facts, Value


class Line(NamedTuple):
    """`bean` java.lang:type=Memory, `path` HeapMemoryUsage.used, a scalar value or an error. `change_per_s`: of numbers, with -w.

    An array of scalars is one line, too, and so is an object or an array without elements.
    """

    bean: str
    path: str
    value: Value
    error: str | None
    source: str
    change_per_s: float | None = None


class Result(NamedTuple):
    """Lines in the order of ObjectName and attribute. `beans`: the same values as objects, of all attributes that have one.

    `unmatched`: a sentence for each pattern that means no attribute; `missing`: those of the facts that matter to the patterns.
    """

    facts: Facts
    lines: Sequence[Line]
    findings: list[Finding]
    beans: Sequence[Bean] = ()
    unmatched: Sequence[str] = ()
    missing: Sequence[str] = ()
