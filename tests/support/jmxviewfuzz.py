"""What tests/support/fuzz.py feeds to the patterns and the views of `opskit jmx`."""

from __future__ import annotations

from jmxfacts import facts

from opskit.analysis.jmx.judge import judge
from opskit.collect.jmx.facts import Attribute, Bean
from opskit.jvm.agent.protocol import with_tables
from opskit.jvm.mbean_json import loaded
from opskit.jvm.object_names import canonical_name, parse_pattern
from opskit.render.formats import prometheus
from opskit.render.report import About
from opskit.render.shown import Shown
from opskit.render.views.jmx import report as view
from opskit.render.views.jmx.document import complete

_EDEN = "java.lang:type=MemoryPool,name=G1 Eden Space"


def pattern(text: str) -> object:
    """Against a name, and a name against a pattern."""
    found = parse_pattern(text)
    return (
        found.matches(_EDEN),
        found.attribute_of(_EDEN),
        parse_pattern("*:type=a*b,*").matches(text),
        canonical_name(text),
    )


def values(text: str) -> object:
    """An attribute of any name and value, as lines and metrics."""
    head, _, value = text.partition("\n")
    try:
        read = with_tables(loaded(value))
    except ValueError:
        read = value
    result = judge(
        facts([Bean(head, (Attribute(head[::-1], read, "agent"),))]), ["java.lang:type=Memory", head[:4000] or "*"]
    )
    report = view.report(About("HOST", "T", "V", "opskit jmx"), result, Shown(text=True), ("*:*",))
    assert report.text is not None
    assert all(line.isprintable() for line in report.text())
    return prometheus.render(complete(report, result))


TEXT = {
    "ObjectName": (pattern, b'java.lang:type=Memory*,name="a,b\\*",* HeapMemoryUsage.used'),
    "MBean": (values, b'kafka.server:type=A,name="x"\n{"a": [1, {"b c": 2.5}], "t": {"k": {"v": NaN}}}'),
}
