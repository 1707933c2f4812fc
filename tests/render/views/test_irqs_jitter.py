"""How the hiccup meter's answer is shown, and what is concluded: goldens in every format, percentiles, stalls with their time."""

from __future__ import annotations

import json

import irqresults
import promtext
import pytest
from schemafiles import keeps_to_schema

from opskit.analysis.irqs.jitter import judge
from opskit.collect.irqs.real_time import RealTime
from opskit.proc.process import Process
from opskit.render.formats import csv, markdown, prometheus, table, text
from opskit.render.formats import json as as_json
from opskit.render.report import About
from opskit.render.views.irqs import jitter as view
from opskit.render.views.irqs.document import complete_jitter

WRITERS = {"csv": csv, "json": as_json, "markdown": markdown, "prometheus": prometheus, "table": table, "text": text}


def made(facts, format_="table", verbose=False, top=None):
    about = About("HOST", "2026-01-02T03:04:15Z", "VERSION", "opskit irqs --jitter")
    result = judge(facts)
    return complete_jitter(view.report(about, result, text=format_ == "text", verbose=verbose, top=top), result)


def written(facts, format_="table", **shown):
    return WRITERS[format_].render(made(facts, format_, **shown))


@pytest.mark.parametrize("format_", WRITERS)
def test_goldens(format_, golden):
    """Two CPUs, one with a stall, in every format."""
    golden(f"irqs-jitter.{format_}", written(irqresults.jitter(), format_))


def test_golden_of_spinning(golden):
    """Gaps, and the share that is lost in them."""
    golden("irqs-jitter-spin.table", written(irqresults.spun()))


def test_the_first_screen():
    """80 x 24, whatever is left out."""
    out = table.render(made(irqresults.jitter()), 80, 24)
    assert sum(-(-max(len(line), 1) // 80) for line in out.splitlines()) <= 24
    assert "p99" in out
    assert "longest" in out


def test_percentiles():
    """By rank: of 9,990 wake-ups 1 % are the highest 100; the longest one is exact."""
    first, calm = judge(irqresults.jitter()).rows
    assert [round(each * 1e6) for each in first.percentiles_s] == [30, 44, 66, 1300, 9850]
    assert first.most_s == 0.009853
    assert (calm.most_s, calm.samples) == (0.00009, 10_000)
    assert round(first.cpu, 3) == 0.024


def test_the_verdict():
    """The worst CPU, then all of them."""
    assert judge(irqresults.jitter()).verdict == (
        "CPU 0 was late by 9.9 ms at most: half of its wake-ups by 30 us or less, 99 % by 66 us or less.",
        "2 CPUs: median 30 us to 31 us; stalls above 1.0 ms on CPU 0.",
    )
    assert judge(irqresults.spun()).verdict == (
        "CPU 0 was interrupted for 150 us at most, 392 times a second, 2.3 % of its time in all.",
        "Of 2 CPUs, CPU 0 loses the most time: 2.3 %.",
    )
    quiet = irqresults.spun()._replace(meters=irqresults.spun().meters[1:])
    assert judge(quiet).verdict == ("CPU 1 was not interrupted for 5 us or more.",)


def test_interrupted():
    """How long it lasted; exit code 130. With no CPU at all there is no invented number."""
    facts = irqresults.jitter(interrupted=True, meters=(irqresults.meter(0, elapsed_s=3.2),))
    report = made(facts)
    assert report.verdict[0] == "Interrupted after 3.2 s of 10.0 s."
    assert report.exit_code == 130
    nothing = made(irqresults.jitter(interrupted=True, meters=()))
    assert nothing.verdict == ("Interrupted after 0 s of 10.0 s.",)
    for format_ in WRITERS:
        written(irqresults.jitter(interrupted=True, meters=()), format_)


def test_stalls_have_the_time_of_day():
    """Those of a millisecond; all with -v or -n 0."""
    out = written(irqresults.jitter())
    assert "9.9 ms     0   03:04:09.500" in out
    assert "310 us" not in out.partition("longest stalls")[2]
    assert "310 us" in written(irqresults.jitter(), verbose=True).partition("longest stalls")[2]


def test_json():
    """By its schema; the other part is null."""
    document = json.loads(written(irqresults.spun(), "json"))
    keeps_to_schema(document, "irqs")
    assert document["interrupts"] is document["window_s"] is None
    gaps, none = document["jitter"]["cpus"]
    assert gaps["lost"] == 0.0231
    assert (none["p50_s"], none["samples"]) == (None, 0)


def test_real_time_threads():
    """All with -v; those that cause stalls in the verdict. Their names are escaped."""
    evil = "\x1b[2J'$(touch pwn);\n<b>&|evil"
    process = Process(4242, evil, 0, evil, 1, 77, "S", 1)
    hog = RealTime(process, 4250, evil, "fifo", frozenset({0}), 0, 0.1, 0.0098)
    facts = irqresults.jitter(real_time=(hog,))
    for format_ in WRITERS:
        out = written(facts, format_, verbose=True)
        assert "\x1b" not in out
        assert "evil" in out or format_ == "csv"  # a row of each CPU
    document = json.loads(written(facts, "json"))
    keeps_to_schema(document, "irqs")
    [thread] = document["jitter"]["real_time"]
    assert (thread["tid"], thread["policy"], thread["allowed"], thread["running"]) == (4250, "fifo", [0], 0.1)
    assert document["jitter"]["hogged"] == [0]
    samples = promtext.parse(written(facts, "prometheus"))
    [running] = [value for (metric, _), value in samples.items() if metric == "opskit_irqs_jitter_real_time_running"]
    assert running == 0.1


def test_metrics():
    """A percentile that is unknown has no sample."""
    samples = promtext.parse(written(irqresults.spun(), "prometheus"))
    assert {dict(labels)["cpu"] for metric, labels in samples if metric == "opskit_irqs_jitter_p99_seconds"} == {"0"}


def test_what_failed_is_said():
    """A CPU that went offline."""
    assert "CPU 3 could not be measured: Invalid argument" in written(
        irqresults.jitter(failed=((3, "Invalid argument"),))
    )
