"""Judge the series of HdrHistogram logs: lines that could not be used, service time without response time, pairs of --diff."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.hdr.result import Pair, Result, Series
from opskit.errors import BadInput
from opskit.quantities import agreeing, listed, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.hdr.sums import Apart, Sums
    from opskit.collect.hdr.facts import Facts

_SERVICE, _RESPONSE = "-st", "-rt"
_HIDES = "service time hides queueing (coordinated omission)"
_BAD_SHOWN, _TAGS_SHOWN, _LINE_CHARACTERS = 5, 8, 160
_STDIN = "standard input"


class Side(NamedTuple):
    """One side of a comparison, or all there is: what was read, its series, what was left out. `tags`: all that were seen, `chosen`: by --tag. `left`: sentences."""

    facts: Facts
    series: Sequence[Series]
    tags: Sequence[str | None] = ()
    apart: Sequence[Apart] = ()
    likely_unit: str | None = None
    outside: int = 0
    other_tags: int = 0
    by_s: float | None = None
    merged: bool = False
    left: Sequence[str] = ()
    chosen: Sequence[str | None] = ()


def side(facts: Facts, sums: Sums) -> Side:
    """What was summed of the logs."""
    matching = re.compile(sums.choice.tags or "")
    chosen = [tag for tag in sums.tags if matching.search(tag or "")]
    left_out = (sums.outside, sums.other_tags, sums.choice.by_s, sums.choice.merge or sums.choice.ignore_tags)
    series = [each for each in sums.series() if each.files]  # one that has no room for its first interval has none
    return Side(facts, series, sums.tags, sums.apart, sums.likely_unit, *left_out, sums.left, chosen)


def judge(now: Side, other: Side | None = None, unit: str | None = None) -> Result:
    """`unit`: of --unit. Raises BadInput where nothing was chosen, and for a unit that is not the file's own."""
    sides = [now] if other is None else [now, other]
    for each in sides:
        _check(each, unit)
    own = _own_unit([one for each in sides for one in each.series], unit)
    likely = {each.likely_unit for each in sides if each.facts.intervals}
    return Result(
        _together([each.facts for each in sides]),
        unit or own,
        None if unit or own or len(likely) != 1 else likely.pop(),
        now.series,
        [] if other is None else pairs(now.series, other.series),
        most_severe_first(finding for each in sides for finding in _findings(each)),
        now.by_s,
        sum(each.outside for each in sides),
        sum(each.other_tags for each in sides),
    )


def pairs(now: Sequence[Series], other: Sequence[Series]) -> list[Pair]:
    """Each series beside that of its tag; beside the only one where each side has a single one. Then those of the other side alone."""
    if len(now) == len(other) == 1:
        return [Pair(now[0], other[0])]
    left = [*other]
    found = []
    for one in now:
        twin = next((each for each in other if each.tag == one.tag), None)
        found.append(Pair(one, twin))
        left = [each for each in left if each is not twin]
    return [*found, *(Pair(None, each) for each in left)]


def ratio(now: float | None, other: float | None) -> float | None:
    """How many times the other value; None where one is unknown or there is no such number."""
    return None if now is None or not other else now / other


def _check(each: Side, unit: str | None) -> None:
    if not each.series:
        raise BadInput(_name(each.facts), _why_nothing(each))
    if each.by_s is not None and not any(one.periods for one in each.series):
        problem = "what a load generator printed has no intervals: no --by, and no picture over time"
        raise BadInput(_name(each.facts), problem)
    for one in each.series:
        if unit is not None and one.unit is not None and one.unit != unit:
            raise BadInput(one.files[0], f"its values are in {one.unit}, as it says itself; leave out --unit {unit}")


def _own_unit(series: Sequence[Series], unit: str | None) -> str | None:
    """The unit that all files say of themselves. Raises BadInput where they differ: their values cannot stand side by side."""
    first, *rest = series
    odd = next((one for one in rest if one.unit != first.unit), None)
    if unit is None and odd is not None:
        known, other = (first, odd) if first.unit else (odd, first)
        whose = f"those of {other.files[0]} are in {other.unit or 'an unknown unit'}"
        raise BadInput(known.files[0], f"its values are in {known.unit}, {whose}; look at them one by one")
    return first.unit


def _why_nothing(each: Side) -> str:
    counted = plural(each.facts.intervals or each.other_tags, "interval" if each.facts.intervals else "histogram")
    if each.outside:
        tagged = f" ({each.other_tags:,} of other tags)" if each.other_tags else ""
        lies = agreeing(each.outside, "it lies", "they lie")
        return f"{counted}, and none between --since and --until: {lies} outside{tagged}"
    if each.other_tags:
        names = listed([_tag(tag) for tag in each.tags], _TAGS_SHOWN)
        return f"{counted}, and --tag matches none of its tags: {names}"
    return f"no interval that could be used in {plural(each.facts.lines, 'line')}{_first_bad(each.facts)}"


def _first_bad(facts: Facts) -> str:
    return f"; the first: line {facts.bad[0].number}: {facts.bad[0].why}" if facts.bad else ""


def _tag(tag: str | None) -> str:
    return "(no tag)" if tag is None else tag


def _name(facts: Facts) -> str:
    return facts.names[0] if len(facts.names) == 1 else f"{len(facts.names)} logs"


def _together(sides: Sequence[Facts]) -> Facts:
    """The facts of both sides of --diff."""
    first, *rest = sides
    for facts in rest:
        first = first._replace(
            names=[*first.names, *facts.names],
            lines=first.lines + facts.lines,
            intervals=first.intervals + facts.intervals,
            bad_lines=first.bad_lines + facts.bad_lines,
            bad=[*first.bad, *facts.bad],
            cut=[*first.cut, *facts.cut],
            interrupted=first.interrupted or facts.interrupted,
        )
    return first


def _findings(each: Side) -> Iterator[Finding]:
    facts = each.facts
    entity = Entity("file", " ".join(facts.names))
    if facts.bad_lines:
        yield _bad_lines(facts, entity)
    for name in facts.cut:
        said = "its last line is incomplete and left out: the log is still written, or its writer was killed"
        yield Finding("hdr-log-cut", "note", Entity("file", name), said, "no end of line, or too little data")
    if alone := [tag for tag in _chosen(each) if _is_service(tag) and _partner(tag) not in _chosen(each)]:
        yield _service_time(each, alone, entity)
    yield from _mixed(each, entity)
    if each.left:
        said = "the sums are incomplete: intervals were left out"
        yield Finding("hdr-intervals-left-out", "warning", entity, said, "; ".join(each.left))
    for apart in each.apart:
        yield Finding("hdr-precision-differs", "note", Entity("file", " ".join(apart.files)), apart.why, "")


def _bad_lines(facts: Facts, entity: Entity) -> Finding:
    shown = [f"{bad.file}:{bad.number}: {bad.why}" for bad in facts.bad[:_BAD_SHOWN]]
    rest = facts.bad_lines - len(shown)
    said = (
        f"{plural(facts.bad_lines, 'line')} of {facts.lines:,} could not be used; the others count. "
        "HdrHistogram's own tools stop at the first one"
    )
    more = [f"… {rest:,} more"] if rest else []
    closer = _look_at(facts.bad[0].file, facts.bad[0].number) if facts.bad else None
    return Finding("hdr-bad-lines", "warning", entity, said, "; ".join([*shown, *more]), next=closer)


def _look_at(name: str, number: int) -> str | None:
    """The command that shows a line of a log."""
    if name == _STDIN:
        return None
    line, pipe = f"{number}p", shell.Syntax("|")
    cut = (pipe, "cut", "-c", f"-{_LINE_CHARACTERS}")
    if name.endswith(".gz"):
        return shell.command("zcat", *shell.operands(name), pipe, "sed", "-n", line, *cut)
    return shell.command("sed", "-n", line, *shell.operands(name), *cut)


def _is_service(tag: str) -> bool:
    return tag.lower().endswith(_SERVICE)


def _partner(tag: str) -> str:
    """`READ-rt` for `READ-st`."""
    ending = _RESPONSE.upper() if tag[-2:].isupper() else _RESPONSE
    return tag[: -len(_SERVICE)] + ending


def _chosen(each: Side) -> list[str]:
    """The tags of what is shown; of a sum all that were chosen."""
    tags = each.chosen if each.merged else dict.fromkeys(one.tag for one in each.series)
    return [tag for tag in tags if tag is not None]


def _service_time(each: Side, alone: Sequence[str], entity: Entity) -> Finding:
    partners = [*map(_partner, alone)]
    has = "has" if len(alone) == 1 else "have"
    said = f"{listed(alone, _TAGS_SHOWN)} {has} service time alone: {_HIDES}: look at the -rt tag"
    hidden = [tag for tag in partners if tag in each.tags]
    if hidden:
        evidence = f"--tag leaves out {listed(hidden, _TAGS_SHOWN)}"
        return Finding("hdr-service-time-alone", "note", entity, said, evidence, next=_of_tags(each, hidden))
    log = plural(each.facts.intervals, "interval")
    evidence = (
        f"no {listed(partners, _TAGS_SHOWN)} in {log}; a load generator writes it where the rate of requests is fixed"
    )
    return Finding("hdr-service-time-alone", "note", entity, said, evidence)


def _mixed(each: Side, entity: Entity) -> Iterator[Finding]:
    """Service and response times in one sum."""
    both = [tag for tag in _chosen(each) if _is_service(tag) and _partner(tag) in _chosen(each)] if each.merged else []
    if both:
        responses = [*map(_partner, both)]
        said = f"the sum has service times ({listed(both, _TAGS_SHOWN)}) and response times ({listed(responses, _TAGS_SHOWN)})"
        evidence = "a request counts in both"
        yield Finding("hdr-times-mixed", "note", entity, said, evidence, next=_of_tags(each, responses))


def _of_tags(each: Side, tags: Sequence[str]) -> str | None:
    """The command that shows these tags alone; None for standard input, which is read once."""
    if _STDIN in each.facts.names:
        return None
    any_case = "" if all(tag.endswith(_RESPONSE) for tag in tags) else "(?i)"
    expression = f"^{re.escape(tags[0])}$" if len(tags) == 1 else f"{any_case}{_RESPONSE}$"
    merge = ("--merge",) if each.merged and len(tags) > 1 else ()
    return shell.command("opskit", "hdr", "--tag", expression, *merge, *shell.operands(*each.facts.names))
