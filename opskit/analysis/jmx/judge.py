"""The attributes that the patterns mean, as lines; with an earlier look how fast their numbers change."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from opskit.analysis.jmx.flatten import kept, leaves
from opskit.analysis.jmx.near import relevant, unmatched
from opskit.analysis.jmx.result import Line, Result
from opskit.jvm.object_names import glob_matches, parse_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.collect.jmx.facts import Attribute, Bean, Facts, Value
    from opskit.jvm.object_names import Pattern

_TOO_LARGE = 1e300


def judge(facts: Facts, patterns: Sequence[str] = (), earlier: Result | None = None) -> Result:
    """What of the facts the patterns mean; without patterns all. `earlier`: the last look of a watch, of the same JVM."""
    parsed = [parse_pattern(each) for each in patterns]
    used: set[Pattern] = set()
    beans = [found for bean in sorted(facts.beans) if (found := _chosen(bean, parsed, used)).attributes]
    before = None if earlier is None or earlier.facts.pid != facts.pid else earlier
    lines = [*_lines(beans, before, facts.at_s)]
    without = unmatched(facts, [each for each in parsed if each not in used])
    missing = facts.missing if facts.in_process else relevant(facts.missing, parsed, answered=not without)
    return Result(facts, lines, [], beans, without, [each for each in missing if each not in without])


def _chosen(bean: Bean, patterns: Sequence[Pattern], used: set[Pattern]) -> Bean:
    """The bean with those attributes, and parts of them, that are meant. `used`: gains the patterns that mean some."""
    attributes = sorted(bean.attributes, key=lambda each: each.name)
    whole = [each for each in patterns if each.matches(bean.name)]
    if attributes:
        used.update(whole)
    globs = {each: glob for each in patterns if (glob := each.attribute_of(bean.name)) is not None}
    chosen = []
    for attribute in attributes:
        parts = {each: _part(attribute, glob) for each, glob in globs.items()}
        meant = {each: part for each, part in parts.items() if part is not None}
        used.update(meant)
        if whole or not patterns:
            chosen.append(attribute)
        elif meant:
            chosen.append(_merged(attribute, [*globs.values()]))
    return bean._replace(attributes=chosen)


def _part(attribute: Attribute, glob: str) -> Attribute | None:
    """The parts of an attribute that a pattern means; None: none."""
    is_kept, value = kept(attribute.name, attribute.value, lambda path: glob_matches(glob, path))
    return attribute._replace(value=value) if is_kept else None


def _merged(attribute: Attribute, globs: Sequence[str]) -> Attribute:
    """The parts that one of the patterns means."""
    _, value = kept(attribute.name, attribute.value, lambda path: any(glob_matches(glob, path) for glob in globs))
    return attribute._replace(value=value)


def _lines(beans: Sequence[Bean], earlier: Result | None, at_s: float) -> Iterator[Line]:
    span_s = 0.0 if earlier is None else at_s - earlier.facts.at_s
    before = {} if earlier is None else {(line.bean, line.path): line.value for line in earlier.lines}
    for bean in beans:
        for each in bean.attributes:
            for path, value in leaves(each.name, each.value):
                change = _change(before.get((bean.name, path)), value, span_s)
                yield Line(bean.name, path, value, each.error, each.source, change)


def _change(before: Value, now: Value, span_s: float) -> float | None:
    """A number's change a second; None: unknown, or no number."""
    if span_s <= 0 or not _is_number(before) or not _is_number(now):
        return None
    change = (now - before) / span_s  # type: ignore[operator]
    return change if isfinite(change) else None


def _is_number(value: Value) -> bool:
    """Whether the value is a number that a float can hold: a BigInteger has any length."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _TOO_LARGE
