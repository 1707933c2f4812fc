"""The answer of `opskit jmx`: a summary on one screen, or every attribute that was asked for, grouped by its MBean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit import shell
from opskit.quantities import agreeing, plural
from opskit.records import NamedTuple
from opskit.render.fields import TEXT, Field
from opskit.render.report import Block, Listing, Report
from opskit.render.views.jmx.known import known_of
from opskit.render.views.jmx.values import change_text, human, line_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.jmx.result import Line, Result
    from opskit.render.report import About
    from opskit.render.shown import Shown

_UNANSWERED = 2  # the exit code
_LONGEST, _NARROW = 300, 44  # of a value in a table; the column of the attributes
_MOST_ERRORS = 3
_NOT_IN_SUMMARY = (
    "--agent",
    "add -i",
    "SystemProperties",
)  # in sentences: on what other options read, or what it does not show


class Row(NamedTuple):
    """A line of an MBean; `heads`: the first one, below the ObjectName. `width`: of the column of its attributes."""

    line: Line
    heads: bool
    width: int


def target(result: Result) -> dict[str, object]:
    """What was asked about, for the head of the report."""
    facts = result.facts
    return {"pid": facts.pid, "main": facts.main, "java": facts.java_version, "jolokia": facts.jolokia_url}


def report(about: About, result: Result, shown: Shown, patterns: Sequence[str], *, is_here: bool = True) -> Report:
    """The whole answer. `patterns`: those that were given; `is_here`: the JVM runs on this machine and can be asked for more."""
    is_short = not patterns and not shown.verbose and not shown.text
    if is_short:
        from opskit.render.views.jmx import overview
    limit = shown.top or None
    lines = result.lines if limit is None else result.lines[:limit]
    left = len(result.lines) - len(lines)
    return Report(
        about,
        overview.blocks(result, limit, watching=shown.watching)
        if is_short
        else [*_listed(lines, len(result.lines), shown)],
        verdict=overview.verdict(result) if is_short else [*_verdict(result)],
        footer=[*_footer(result, shown, is_short=is_short, left=left), *_next(result, shown, is_short and is_here)],
        summary=overview.summary(result, watching=shown.watching) if is_short else [],
        text=lambda: (line_text(line, rate=shown.watching) for line in lines),
        findings=result.findings,
        exit_code=_UNANSWERED if _is_unanswered(result, patterns) else None,
    )


def _is_unanswered(result: Result, patterns: Sequence[str]) -> bool:
    """Whether a pattern means nothing, or nothing that was asked for has a value."""
    return bool(result.unmatched) or bool(patterns and all(line.error is not None for line in result.lines))


def _verdict(result: Result) -> Iterator[str]:
    if not result.lines:
        yield "No attribute was read."
        return
    beans = len({line.bean for line in result.lines})
    yield f"{plural(len(result.lines), 'value')} of {plural(beans, 'MBean')}."


def _listed(lines: Sequence[Line], total: int, shown: Shown) -> Iterator[Block[Row]]:
    if not lines:
        return
    widths: dict[str, int] = {}
    for line in lines:
        widths[line.bean] = min(max(len(line.path), widths.get(line.bean, 0)), _NARROW)
    rows = [Row(line, not at or line.bean != lines[at - 1].bean, widths[line.bean]) for at, line in enumerate(lines)]
    columns: list[Field[Row]] = [
        Field("object_name", TEXT, "MBean", lambda row: row.line.bean),
        Field("attribute", TEXT, "attribute", lambda row: row.line.path),
        Field("value", TEXT, "value", lambda row: _value(row.line)),
    ]
    if shown.watching:
        columns.append(Field("change", TEXT, "change", lambda row: change_text(row.line, _known(row.line))))
    yield Block(columns, rows, total, listing=Listing(lambda row, _, __: _row_lines(row, shown), 0, 1))


def _row_lines(row: Row, shown: Shown) -> list[str]:
    line = row.line
    change = change_text(line, _known(line)) if shown.watching else ""
    text = f"  {line.path:<{row.width}}  {_value(line)}{f'  {change}' if change else ''}"
    return [line.bean, text] if row.heads else [text]


def _value(line: Line) -> str:
    text = f"- ({line.error})" if line.error is not None else human(line.value, _known(line))
    return (
        text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({plural(len(text), 'character')}; -f json shows all)"
    )


def _known(line: Line) -> Any:
    return known_of(line.bean, line.path)


def _footer(result: Result, shown: Shown, *, is_short: bool, left: int) -> Iterator[str]:
    facts = result.facts
    yield from result.unmatched
    yield from (each for each in result.missing if not (is_short and any(word in each for word in _NOT_IN_SUMMARY)))
    if not is_short and shown.text:
        yield from _errors(result)
    if left and shown.text:
        yield f"{left:,} more {agreeing(left, 'value')}; -n 0 shows all"
    yield from facts.left_behind


def _next(result: Result, shown: Shown, is_wanted: bool) -> Iterator[str]:
    facts = result.facts
    if is_wanted and not shown.on_screen and facts.jolokia_url is None:
        yield f"next: {shell.command('opskit', 'jmx', facts.pid, '-v')}; CPU loads: -i 1s; MBeans of the application: --agent"


def _errors(result: Result) -> Iterator[str]:
    """A line for each reason why attributes have no value."""
    reasons: dict[str, list[str]] = {}
    for line in result.lines:
        if line.error is not None:
            reasons.setdefault(line.error, []).append(f"{line.bean} {line.path}")
    for reason, names in reasons.items():
        more = f" and {len(names) - _MOST_ERRORS:,} more" if len(names) > _MOST_ERRORS else ""
        yield f"no value: {', '.join(names[:_MOST_ERRORS])}{more}: {reason}"
