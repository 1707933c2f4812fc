"""The text exposition format: what is a metric, what a label, escapes, one family in one place."""

from __future__ import annotations

from typing import NamedTuple, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from promtext import parse, value

from opskit.analysis.finding import HOST, Entity, Finding
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SIZE, TEXT, TOTAL, Field, list_of
from opskit.render.formats.prometheus import render
from opskit.render.report import About, Metrics, Report

ABOUT = About("web1", "2026-01-02T03:04:05Z", "1", "opskit x")


class Disk(NamedTuple):
    name: str
    inode: int = 1
    used_bytes: Optional[int] = 5  # noqa: UP045
    wait_s: float = 0.5
    bytes_per_s: int = 8
    errors: int = 3
    full: bool = False


FIELDS = (
    Field("name", TEXT),
    Field("inode", ID),
    Field("used_bytes", SIZE, help="bytes\nwith a \\ in them"),
    Field("wait_s", NUMBER),
    Field("bytes_per_s", COUNT, help="growth; null: unknown"),
    Field("errors", TOTAL),
    Field("full", FLAG),
    Field("names", list_of(TEXT), value=lambda row: [row.name]),
    Field("shown", COUNT, value=lambda row: 7, json=False),
)


def written(*rows, labels=(), findings=(), more=()):
    made = [Metrics("disk", FIELDS, rows, dict(labels)), *more]
    return render(Report(ABOUT, metrics=lambda: made, findings=findings))


def test_each_number_is_a_metric_and_each_name_a_label():
    """Seconds and rates are named so, a count that only rises is a counter, a flag is 0 or 1."""
    text = written(Disk("a"), Disk("b", full=True), labels={"pid": 4242})
    assert text.startswith(
        "# HELP disk_used_bytes bytes\\nwith a \\\\ in them\n"
        "# TYPE disk_used_bytes gauge\n"
        'disk_used_bytes{pid="4242",name="a",inode="1"} 5\n'
        'disk_used_bytes{pid="4242",name="b",inode="1"} 5\n'
    )
    samples = parse(text)
    assert value(samples, "disk_wait_seconds", name="a") == 0.5
    assert value(samples, "disk_bytes_per_second", name="a") == 8
    assert "# HELP disk_bytes_per_second growth; no sample: unknown\n" in text
    assert value(samples, "disk_errors_total", name="a") == 3
    assert "# TYPE disk_errors_total counter\n" in text
    assert [value(samples, "disk_full", name=name) for name in "ab"] == [0, 1]
    assert {name for name, _ in samples} == {
        "disk_used_bytes", "disk_wait_seconds", "disk_bytes_per_second", "disk_errors_total", "disk_full",
    }  # fmt: skip


def test_an_unknown_value_has_no_sample():
    """It is never 0."""
    samples = parse(written(Disk("a", used_bytes=None), Disk("b")))
    assert [dict(labels)["name"] for name, labels in samples if name == "disk_used_bytes"] == ["b"]


def test_bytes_keep_all_digits():
    """Prometheus reads them as floats, which are exact up to 2**53."""
    assert 'disk_used_bytes{name="a",inode="1"} 9007199254740991\n' in written(Disk("a", used_bytes=2**53 - 1))


def test_the_same_metric_of_two_parts_stands_in_one_place():
    """And rows with the same labels give one sample."""
    text = written(Disk("a"), Disk("a", used_bytes=9), more=[Metrics("disk", FIELDS, [Disk("c")])])
    assert text.count("# TYPE disk_used_bytes") == 1
    samples = parse(text)
    assert value(samples, "disk_used_bytes", name="a") == 5
    assert value(samples, "disk_used_bytes", name="c") == 5


def test_findings_are_metrics_of_value_1():
    """An alert needs no more."""
    warned = Finding("memory-pressure", "warning", Entity("process", 4242), "s", "e")
    samples = parse(written(findings=[warned, warned, warned._replace(entity=HOST)]))
    assert value(samples, "opskit_finding", code="memory-pressure", severity="warning", subject=4242) == 1
    assert value(samples, "opskit_finding", subject="host") == 1
    assert written() == ""


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", 'a"} 1\nevil{x="', "\x1b[31m", "\udcff", "ü", "\u202e", ""])
def test_hostile_names(name):
    """A name ends no label and adds no sample; control characters and invalid UTF-8 are escaped as in every format."""
    text = written(Disk(name), labels={"command": name})
    text.encode("utf-8")
    samples = parse(text)
    assert len(samples) == 5
    assert all(character.isprintable() or character == "\n" for character in text)


@given(st.text(), st.integers(0, 2**64), st.floats(0, allow_nan=False, allow_infinity=False))
def test_anything_can_be_read_back(name, used, wait):
    """With the value that was written."""
    samples = parse(written(Disk(name, 1, used, wait)))
    assert value(samples, "disk_used_bytes") == float(used)
    assert value(samples, "disk_wait_seconds") == wait
