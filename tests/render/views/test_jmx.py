"""`opskit jmx` from hand-made facts: every format, the first screen, hostile names and values."""

from __future__ import annotations

import csv as csv_module
import json
import math

import jmxfacts
import promtext
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from opskit.analysis.jmx.judge import judge
from opskit.collect.jmx.facts import Attribute
from opskit.render.formats import csv, markdown, prometheus, table, text
from opskit.render.formats import json as as_json
from opskit.render.report import About
from opskit.render.shown import Shown
from opskit.render.views.jmx import report as view
from opskit.render.views.jmx.document import complete
from opskit.render.views.jmx.metrics import label_name, metric_name, unquoted

RENDER = {"table": lambda it: table.render(it, 80, 24), "text": text.render, "markdown": markdown.render,
          "json": as_json.render, "csv": csv.render, "prometheus": prometheus.render}  # fmt: skip
MEMORY = "java.lang:type=Memory"
SOME = (MEMORY, "java.lang:type=GarbageCollector,* Collection*", "java.nio:*", "*:type=OperatingSystem")


def report(facts=jmxfacts.FIRST, patterns=(), form="table", *, earlier=None, **shown):
    """The report with its JSON object and metrics; `earlier`: the facts of the last look of a watch."""
    result = judge(facts, patterns, None if earlier is None else judge(earlier, patterns))
    shown = {"verbose": form in ("json", "csv", "prometheus"), **shown}
    how = Shown(text=form == "text", watching=earlier is not None, **shown)
    about = About("HOST", "T", "V", "opskit jmx 4242", view.target(result))
    return complete(view.report(about, result, how, patterns), result)


def made(facts=jmxfacts.FIRST, patterns=(), form="table", **shown):
    """The report in a format."""
    return RENDER[form](report(facts, patterns, form, **shown))


@pytest.mark.parametrize("form", RENDER)
def test_all_in_every_format(golden, form):
    """The summary as a table; else every attribute."""
    golden(f"jmx-all.{form}", made(form=form))


@pytest.mark.parametrize("form", ["table", "text", "markdown", "json", "csv"])
def test_some_attributes_of_a_watch(golden, form):
    """With the changes a second."""
    golden(f"jmx-watched.{form}", made(jmxfacts.LATER, SOME, form, earlier=jmxfacts.FIRST))


@pytest.mark.parametrize("form", RENDER)
def test_an_application_in_every_format(golden, form):
    """Attributes that throw, hostile names and values; of the text of 1 MB the beginning is enough."""
    facts = jmxfacts.APPLICATION._replace(left_behind=("opskit's agent stays in the JVM until it ends.",))
    shown = made(facts, ["*:*", "java.lang:type=Memry"], form)
    golden(f"jmx-application.{form}", shown.replace("x" * (1 << 20), "x" * 8))


@pytest.mark.parametrize("name", ["healthy", "watched", "one"])
def test_the_first_screen(golden, name):
    """On 80 x 24: at most three sentences, then pools and collectors; or the attributes."""
    shown = {
        "healthy": lambda: table.render(report(), 80, 24),
        "watched": lambda: table.render(
            report(jmxfacts.LATER, earlier=jmxfacts.FIRST, on_screen=True), 80, 24, screen=True
        ),
        "one": lambda: table.render(report(patterns=[f"{MEMORY} HeapMemoryUsage"]), 80, 24),
    }[name]()
    assert sum(-(-cell_len(line) // 80) for line in shown.splitlines()) < 24
    golden(f"jmx-screen-{name}.txt", shown)


def test_the_line_of_the_contract():
    """ObjectName, attribute and value as JMX names them, with a blank between them; numbers are the last word."""
    assert (
        made(patterns=[f"{MEMORY} HeapMemoryUsage.used"], form="text") == f"{MEMORY} HeapMemoryUsage.used 357826560\n"
    )
    lines = made(form="text").splitlines()
    names = {(each.name, attribute.name) for each in jmxfacts.FIRST.beans for attribute in each.attributes}
    for line in lines:
        assert any(line.startswith(f"{name} {attribute}") for name, attribute in names)
        words = line.split(" ")
        if words[-1].isdigit():  # awk '{print $(NF-1), $NF}'
            assert " ".join(words[:-2]) in {name for name, _ in names}


@pytest.mark.parametrize("form", RENDER)
def test_nothing_hostile_reaches_the_terminal(form):
    """No escape sequence, no line break of a value; every line of text is an attribute, every row of CSV complete."""
    shown = made(jmxfacts.APPLICATION, ["*:*"], form, verbose=True)
    assert all(character == "\n" or character.isprintable() for character in shown), form
    count = len(judge(jmxfacts.APPLICATION).lines)
    if form == "text":
        assert shown.count("\n") == count
    if form == "csv":
        rows = [*csv_module.reader(shown.replace("x" * 100, "").splitlines())]
        assert len(rows) == 1 + count
        assert {len(row) for row in rows} == {6}
    if form == "table":
        assert max(map(cell_len, shown.splitlines()[2:-1])) <= 80


def test_values_in_json_are_typed():
    """As JMX has them; what JSON cannot hold is a text, what throws is null, with its reason."""
    document = json.loads(made(jmxfacts.APPLICATION, form="json"))
    evil = document["beans"]['a.b:type=Evil,name="x,y=\x1b[31m*"']
    assert evil["Map"] == {"k e\ty": [{"n\n": 1}, None], "nan": "NaN"}
    assert (evil["Infinite"], evil["Rate"], evil["Huge"], evil["Nothing"]) == ("Infinity", 2.5, 10**30, {})
    assert document["beans"][MEMORY]["Verbose"] is False
    assert document["beans"]["a.b:type=Throws"] == {"Value": None}
    assert document["errors"]["a.b:type=Throws"]["Value"].startswith("java.lang.UnsupportedOperationException")


def test_metrics_have_the_names_of_the_java_client():
    """In seconds, bytes and ratios, with the name of a pool or collector as their label, and without a PID."""
    shown = made(form="prometheus")
    samples = promtext.parse(shown)
    assert promtext.value(samples, "jvm_memory_used_bytes", area="heap") == 357826560
    assert promtext.value(samples, "jvm_memory_pool_used_bytes", pool="G1 Eden Space") == 300 << 20
    assert promtext.value(samples, "jvm_gc_collection_seconds_count", gc="G1 Young Generation") == 12
    assert promtext.value(samples, "jvm_gc_collection_seconds_sum", gc="G1 Young Generation") == 0.085
    assert promtext.value(samples, "process_cpu_seconds_total") == 4.5
    assert promtext.value(samples, "process_start_time_seconds") == 1700000000.123
    assert promtext.value(samples, "jvm_buffer_pool_used_bytes", pool="direct") == 600006
    assert promtext.value(samples, "java_lang_operatingsystem_processcpuload_ratio") == 0.125
    after = "java_lang_garbagecollector_lastgcinfo_memoryusageaftergc_used_bytes"
    assert promtext.value(samples, after, name="G1 Young Generation", key="G1 Old Gen") == 41 << 20
    assert "# TYPE jvm_gc_collection_seconds summary\n" in shown
    assert not any(name == "java_lang_operatingsystem_cpuload_ratio" for name, _ in samples)  # -1: not known
    assert not any(label == "pid" for _, labels in samples for label, _ in labels)


def test_metrics_of_an_application_have_the_names_of_jmx_exporter():
    """Domain, type and attribute; the other properties are labels, of which no two are the same."""
    facts = jmxfacts.facts(
        [jmxfacts.bean("kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec", Count=7, OneMinuteRate=1.5)]
    )
    samples = promtext.parse(made(facts, form="prometheus"))
    assert samples == {
        ("kafka_server_brokertopicmetrics_count", frozenset({("name", "MessagesInPerSec")})): 7,
        ("kafka_server_brokertopicmetrics_oneminuterate", frozenset({("name", "MessagesInPerSec")})): 1.5,
    }
    samples = promtext.parse(made(jmxfacts.APPLICATION, form="prometheus"))
    assert promtext.value(samples, "_9domain_x_y_count", key_1="a", key_1_="b") == 7
    assert promtext.value(samples, "a_b_evil_per_s") == 3  # a name, not a unit
    assert [value for (name, _), value in samples.items() if name == "a_b_evil_total"] == [4]  # Total and total


NAMES = st.text('aB9_-:.=,"*\\ {}#\t\n\x1b²é漢😀\u2028', max_size=8)  # all characters take Hypothesis 2 s at first


@given(st.lists(st.tuples(NAMES, NAMES, NAMES, NAMES, st.integers() | st.floats() | st.booleans()), max_size=6))
def test_metrics_of_any_name(drawn):
    """The output can be scraped."""
    beans = [
        jmxfacts.Bean(f"{domain}:{key}={value}", (Attribute(name, number, "agent"),))
        for domain, key, value, name, number in drawn
    ]
    samples = promtext.parse(made(jmxfacts.facts(beans), form="prometheus"))
    assert all(math.isfinite(each) for each in samples.values())


@pytest.mark.parametrize(("name", "wanted"), [
    ("kafka.server", "kafka_server"), ("9a", "_9a"), ("__x__", "x"), ("é", "mbean"), ("A-B", "a_b"), ("", "mbean"),
])  # fmt: skip
def test_names_of_metrics_and_labels(name, wanted):
    """Letters, digits and single underscores."""
    assert metric_name(name) == label_name(name) == wanted


@pytest.mark.parametrize(("value", "wanted"), [
    ('"a,b"', "a,b"), ('"a\\"b\\\\c\\*\\nd"', 'a"b\\c*\nd'), ("a", "a"), ('"', '"'), ('"a', '"a'), ('""', ""),
])  # fmt: skip
def test_quoted_properties(value, wanted):
    """As ObjectName.unquote() has it."""
    assert unquoted(value) == wanted


def test_the_exit_code_of_a_pattern_without_a_value():
    """2 where a pattern means nothing, or where nothing that it means has a value."""
    throws = "a.b:type=Throws"
    assert report(patterns=[MEMORY]).exit_code is None
    assert report(patterns=[MEMORY, "java.lang:type=Memry"]).exit_code == 2
    assert report(jmxfacts.APPLICATION, [throws]).exit_code == 2
    assert report(jmxfacts.APPLICATION, [throws, MEMORY]).exit_code is None
    assert report(jmxfacts.APPLICATION).exit_code is None
    assert any("near: java.lang:type=Memory" in line for line in report(patterns=["java.lang:type=Memry"]).footer)


def test_rows_are_cut_by_n():
    """With their number; JSON and metrics are whole."""
    shown = text.render(report(form="text", top=3))
    assert shown.count("\n") == 3
    assert report(form="text", top=3).footer[-1].endswith("more values; -n 0 shows all")
    assert table.render(report(verbose=True, top=2), 80).count("\n") == 6
    assert "G1 Old Gen   " in table.render(report(top=2), 80)
    assert "Metaspace   " not in table.render(report(top=2), 80)
    assert made(form="json", top=3) == made(form="json")


def test_few_facts():
    """Of a JVM that tells nothing, or of one bean, no number is made up."""
    empty = jmxfacts.facts([], missing=("its counters cannot be read",))
    assert table.render(report(empty), 80, 24).splitlines()[1:] == [
        "its counters cannot be read",
        *report(empty).footer[1:],
    ]
    only = jmxfacts.facts([jmxfacts.bean("java.lang:type=Threading", ThreadCount=1)])
    assert "1 thread." in table.render(report(only), 80, 24)
    moving = jmxfacts.FIRST._replace(missing=("java.lang:type=Runtime SystemProperties: try again",))
    assert not any("SystemProperties" in line for line in report(moving).footer)
    assert any("SystemProperties" in line for line in report(moving, verbose=True).footer)
    assert made(empty, form="text") == ""
    assert made(empty, form="prometheus") == ""


def test_the_cycles_of_a_concurrent_collector_are_no_pauses():
    """They are counted apart, and their time is not that of pauses."""
    made = [jmxfacts.collector("ZGC Cycles", 4, 900), jmxfacts.collector("ZGC Pauses", 12, 3), jmxfacts.beans()[10]]
    assert made[-1].name == "java.lang:type=Runtime"
    shown = table.render(report(jmxfacts.facts(made)), 80, 24)
    assert "12 pauses took 3.0 ms (under 0.1 % of 5 min 27 s)." in shown
    assert "ZGC Cycles: 4 cycles, 900 ms, mean 225 ms" in shown
    short = table.render(report(jmxfacts.facts([jmxfacts.collector("ZGC Pauses", 5, 0)])), 80, 24)
    assert "5 pauses took under 1 ms." in short
    assert "5 pauses, under 1 ms, mean under 1 ms" in short
    none = table.render(report(jmxfacts.facts([jmxfacts.collector("Copy", 0, 0)])), 80, 24)
    assert "No collection yet." in none
