"""Prometheus' text exposition format 0.0.4: for a scrape, or for a file of node_exporter's textfile collector.

# HELP opskit_mem_rss_bytes resident memory
# TYPE opskit_mem_rss_bytes gauge
opskit_mem_rss_bytes{pid="4242",kind="java-heap"} 100663296

A field with text or an id is a label, each other one a metric. A value that is unknown has no sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.escape import printable
from opskit.render.fields import ID, SUMMED, TEXT, TOTAL, UNTYPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opskit.analysis.finding import Finding
    from opskit.render.fields import Field
    from opskit.render.report import Metrics, Report

_NUMBERS = ("integer", "number", "boolean")
_IN_LABEL = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_TYPES = {TOTAL: "counter", SUMMED: "summary", UNTYPED: "untyped"}
_IN_HELP = str.maketrans({"\\": "\\\\", "\n": "\\n"})


class _Family:
    """A metric: its lines of HELP and TYPE, then a sample for each set of labels."""

    __slots__ = ("help", "samples", "type")

    def __init__(self, field: Field[Any]) -> None:
        self.help = field.help.replace("null:", "no sample:")  # null is the JSON object's word
        self.type = _TYPES.get(field.kind, "gauge")
        self.samples: dict[tuple[str, str], str] = {}


def render(report: Report) -> str:
    """The report's metrics, then one of value 1 for each finding. The samples of a metric stand together."""
    families: dict[str, _Family] = {}
    for metrics in report.metrics() if report.metrics else ():
        _add(families, metrics)
    lines = []
    for name, family in families.items():
        lines += [f"# HELP {name} {family.help.translate(_IN_HELP)}"] if family.help else []
        lines.append(f"# TYPE {name} {family.type}")
        lines += [f"{sample}{labels} {value}" for (sample, labels), value in family.samples.items()]
    return "".join(f"{line}\n" for line in [*lines, *_findings(report.findings)])


def _add(families: dict[str, _Family], metrics: Metrics) -> None:
    for row in metrics.rows:
        values = [(field, field.value(row)) for field in metrics.fields if field.json]
        named = {field.name: value for field, value in values if field.kind in (TEXT, ID)}
        labels = _labels({**metrics.labels, **named})
        for field, value in values:
            if field.kind in (TEXT, ID) or field.kind.schema.get("type") not in _NUMBERS or value is None:
                continue
            name = f"{metrics.prefix}_{_base_unit(field.name)}{'_total' if field.kind is TOTAL else ''}"
            family = name.rpartition("_")[0] if field.kind is SUMMED else name
            # Two rows with the same labels would make the whole file invalid: the first one counts.
            families.setdefault(family, _Family(field)).samples.setdefault((name, labels), _number(value))


def _base_unit(name: str) -> str:
    """Seconds are `_seconds`, a rate is `_per_second`."""
    if name.endswith("_per_s"):
        return f"{name[:-1]}second"
    return f"{name[:-1]}seconds" if name.endswith("_s") else name


def _findings(findings: Iterable[Finding]) -> list[str]:
    name = "opskit_finding"
    lines: dict[str, None] = {}
    for each in findings:
        labels = {"code": each.code, "severity": each.severity, "class": each.class_, "subject": each.entity.name}
        lines[f"{name}{_labels(labels)} 1"] = None
    return (
        [f"# HELP {name} an error, a warning or a note (docs/findings.md)", f"# TYPE {name} gauge", *lines]
        if lines
        else []
    )


def _labels(named: Mapping[str, Any]) -> str:
    """`{pid="4242",kind="java-heap"}`; unknown ones are left out."""
    pairs = [
        f'{name}="{printable(str(value)).translate(_IN_LABEL)}"' for name, value in named.items() if value is not None
    ]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _number(value: Any) -> str:
    """All digits: `%g` would round bytes."""
    return str(int(value)) if isinstance(value, int) else repr(float(value))
