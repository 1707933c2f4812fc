"""The JSON object of `opskit jmx`, and its CSV file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from opskit.render.cells import rounded
from opskit.render.fields import ID, NUMBER, TEXT, Field, Kind, list_of, map_of, sheet
from opskit.render.views.jmx.metrics import metrics
from opskit.render.views.jmx.values import number_text, raw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.jmx.result import Line, Result
    from opskit.collect.jmx.facts import Value
    from opskit.render.report import Report

_BEANS = Kind({"type": "object", "additionalProperties": {"type": "object"}})
_TEXTS = map_of(map_of(TEXT))
_CHANGES = map_of(map_of(NUMBER))


def _beans(result: Result) -> dict[str, dict[str, Any]]:
    return {bean.name: {each.name: typed(each.value) for each in bean.attributes} for bean in result.beans}


def typed(value: Value) -> Value:
    """The value as JSON, which has no NaN and no infinity: these are texts."""
    if isinstance(value, float) and not isfinite(value):
        return number_text(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {key: typed(each) for key, each in value.items()}
    return [typed(each) for each in value]


def _errors(result: Result) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for bean in result.beans:
        for each in bean.attributes:
            if each.error is not None:
                found.setdefault(bean.name, {})[each.name] = each.error
    return found


def _sources(result: Result) -> dict[str, dict[str, str]]:
    return {bean.name: {each.name: each.source for each in bean.attributes} for bean in result.beans}


def _changes(result: Result) -> dict[str, dict[str, float | None]]:
    found: dict[str, dict[str, float | None]] = {}
    for line in result.lines:
        if line.change_per_s is not None:
            found.setdefault(line.bean, {})[line.path] = rounded(line.change_per_s)
    return found


DOCUMENT: Sequence[Field[Result]] = (
    Field("pid", ID, value=lambda result: result.facts.pid, help="null: read over HTTP"),
    Field("main", TEXT, value=lambda result: result.facts.main, help="main class or jar"),
    Field("java_version", TEXT, value=lambda result: result.facts.java_version),
    Field(
        "beans",
        _BEANS,
        value=_beans,
        help="attributes by ObjectName, typed as in JMX; null also where errors has the reason",
    ),
    Field("errors", _TEXTS, value=_errors, help="by ObjectName and attribute: why it has no value"),
    Field("sources", _TEXTS, value=_sources, help="hsperfdata, memory, proc, jcmd, agent or jolokia"),
    Field("change_per_s", _CHANGES, value=_changes, help="with -w, of numbers by ObjectName and path"),
    Field("unmatched", list_of(TEXT), help="a sentence for each pattern that means no attribute"),
    Field(
        "left_behind",
        list_of(TEXT),
        value=lambda result: result.facts.left_behind,
        help="what the agent leaves in the JVM",
    ),
)
LINE: Sequence[Field[Line]] = (
    Field("object_name", TEXT, value=lambda line: line.bean),
    Field("attribute", TEXT, value=lambda line: line.path),
    Field("value", TEXT, value=lambda line: None if line.error is not None else _cell(line.value)),
    Field("error"),
    Field("source"),
    Field("change_per_s", NUMBER, value=lambda line: rounded(line.change_per_s)),
)


def _cell(value: Value) -> object:
    return value if isinstance(value, str) else raw(value)


def complete(report: Report, result: Result) -> Report:
    """The report with its JSON object, its metrics and its CSV file."""
    return report._replace(
        document=(DOCUMENT, result), sheet=partial(sheet, LINE, result.lines), metrics=partial(metrics, result)
    )
