"""The numbers of MBeans as metrics: a JVM's own by the names of Prometheus' Java client, others as jmx_exporter names them.

jmx_exporter's default: domain_type_attribute, in lower case (its lowercaseOutputName), the other properties as labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from opskit.escape import printable
from opskit.jvm.object_names import properties_of
from opskit.render.fields import NUMBER, SUMMED, TOTAL, UNTYPED, Field
from opskit.render.report import Metrics
from opskit.render.views.jmx.known import BYTES, DATE, RATIO, known_of
from opskit.render.views.jmx.values import PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.jmx.result import Result
    from opskit.collect.jmx.facts import Value
    from opskit.render.fields import Kind
    from opskit.render.views.jmx.known import Known

_DEEPEST = 8
_TOO_LARGE = 1e300  # for a float, of a number that may have any length
_SUFFIX = {BYTES: "_bytes", RATIO: "_ratio", DATE: "_seconds", **dict.fromkeys(PER_S, "_seconds")}


def metrics(result: Result) -> Iterator[Metrics]:
    """A metric for each number and boolean; texts, arrays and what is unknown have none."""
    for bean in result.beans:
        domain, properties, _ = properties_of(bean.name)
        for attribute in bean.attributes:
            if attribute.error is None:
                for path, labels, value in _numbers(attribute.name, attribute.value, {}, 0):
                    yield from _metric(bean.name, domain, properties, path, labels, value)


def _numbers(
    path: str, value: Value, labels: Mapping[str, str], depth: int
) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Each number with its path and the keys of the tables that it is in. A table: an object by key of objects alike."""
    if isinstance(value, bool):
        yield path, labels, int(value)
    elif isinstance(value, (int, float)):
        if abs(value) < _TOO_LARGE:
            yield path, labels, value
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        is_table = bool(value) and all(isinstance(each, Mapping) for each in value.values())
        for key, each in value.items():
            if is_table:
                yield from _numbers(path, each, {**labels, _unused("key", labels): key}, depth + 1)
            else:
                yield from _numbers(f"{path}.{key}", each, labels, depth + 1)


def _metric(
    bean: str, domain: str, properties: Mapping[str, str], path: str, keys: Mapping[str, str], value: float
) -> Iterator[Metrics]:
    known = known_of(bean, path)
    if known.unit == RATIO and value < 0:
        return  # a load that is not known yet
    name, kind = (known.metric, _kind(known)) if known.metric else _made(domain, properties, path, known)
    labels: dict[str, str] = {**known.labels}
    for key, each in properties.items():
        if key != _first(properties):
            label = known.label if key == "name" else label_name(key)
            labels[_unused(label, labels)] = unquoted(each)
    for key, each in keys.items():
        labels[_unused(key, labels)] = each
    # The renderer puts prefix and name together, and takes a name that ends with `_s` for seconds.
    prefix, _, last = name.rpartition("_")
    said = known.help or f"{path} of {domain}:{_first(properties)}={properties.get(_first(properties), '')}"
    yield Metrics(
        prefix or "jmx",
        (Field(last, kind, value=lambda each: each, help=printable(said)),),
        (_base(value, known),),
        labels,
    )


def _kind(known: Known) -> Kind:
    if known.metric.endswith(("_seconds_count", "_seconds_sum")):
        return SUMMED
    return TOTAL if known.rises else NUMBER


def _made(domain: str, properties: Mapping[str, str], path: str, known: Known) -> tuple[str, Kind]:
    """A name of the ObjectName and the path. Whether an application's number is a counter is unknown."""
    parts = (domain, unquoted(properties.get(_first(properties), "")), path)
    name = metric_name("_".join(part for part in parts if part)) + _SUFFIX.get(known.unit, "")
    if known.rises:
        return name, TOTAL
    return name, NUMBER if known.unit else UNTYPED


def _base(value: float, known: Known) -> float:
    """In seconds, bytes or a ratio."""
    return value / 1000 if known.unit == DATE else value / PER_S[known.unit] if known.unit in PER_S else value


def _first(properties: Mapping[str, str]) -> str:
    """The property whose value is a part of the name."""
    return "type" if "type" in properties else next(iter(properties), "")


def metric_name(text: str) -> str:
    """Lower case, letters, digits and single underscores; no digit first."""
    found: list[str] = []
    for each in text.lower():
        kept = each if each.isascii() and each.isalnum() else "_"
        if kept != "_" or found[-1:] != ["_"]:
            found.append(kept)
    name = "".join(found).strip("_") or "mbean"
    return f"_{name}" if name[0].isdigit() else name


def label_name(key: str) -> str:
    """The same for a label, of which those that begin with two underscores are reserved."""
    return metric_name(key)


def unquoted(value: str) -> str:
    """The value of a property without the quotes of ObjectName.quote()."""
    if len(value) < 2 or value[0] != '"' or value[-1] != '"':
        return value
    found, escaped = [], False
    for each in value[1:-1]:
        if not escaped and each == "\\":
            escaped = True
            continue
        found.append("\n" if escaped and each == "n" else each)
        escaped = False
    return "".join(found)


def _unused(label: str, labels: Mapping[str, str]) -> str:
    while label in labels:
        label += "_"
    return label
