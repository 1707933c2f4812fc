"""Histograms of a running JVM are taken without a terminal, and their cost is estimated before."""

from __future__ import annotations

import pytest

from opskit.analysis.jmap_diff.judge import judge
from opskit.analysis.jmap_diff.names import Choice
from opskit.collect.histograms import Collector, Request, pause_estimate_s
from opskit.host import Host

MIB = 1 << 20


def test_the_estimate_is_what_was_measured():
    """3.7 GiB of small objects: 2.3 s; by a full GC 9.4 s."""
    assert pause_estimate_s(int(3.7 * 1024 * MIB), live=False) == pytest.approx(2.3, rel=0.01)
    assert pause_estimate_s(int(3.7 * 1024 * MIB), live=True) == pytest.approx(9.4, rel=0.01)


def test_two_histograms_in_one_answer(fake_jvm):
    """The first one counts: the second may be the name of a class."""
    jvm = fake_jvm("histograms")
    facts = Collector(Host.at(None, None), Request(jvm.pid, 0.05, 2)).collect(lambda _: None)
    assert [sample.histogram.rows for sample in facts.samples] == [{"java.lang.String": (2, 48)}] * 2


def test_a_series_without_a_command(workload, tmp_path):
    """Collected and judged by calls alone; each histogram's raw text is given to `save`."""
    jvm = workload("leak=1000000")
    saved, said = [], []

    def save(name, data):
        saved.append(data)
        return name

    collector = Collector(Host.at(None, None), Request(jvm.pid, 0.3, 3, live=True), save)
    assert "each histogram, by a full GC, stops it for about" in collector.cost
    facts = collector.collect(said.append)
    assert [sample.histogram.stamp.pid for sample in facts.samples] == [jvm.pid] * 3
    assert len(saved) == len(facts.saved) == 3
    assert [line.partition(" ")[0] for line in said] == ["1", "2"]
    result = judge(facts, Choice(include=None))
    assert "Workload$Leaked" in [one.name for one in result.trend if one.steady]
    assert result.findings


def test_a_watch_keeps_a_bounded_number_of_histograms(workload):
    """Of a long one every second; the first and the last stay. Beside each one: collections, Metaspace, direct memory, limits."""
    jvm = workload("retain=10", options=("-Xmx64m", "-XX:MaxMetaspaceSize=50m"))
    collector = Collector(Host.at(None, None), Request(jvm.pid, 1, None, live=True))
    for _ in range(66):
        facts = collector.look()
    sources = [sample.histogram.source for sample in facts.samples]
    assert 32 <= len(sources) <= 64
    assert (sources[0], sources[-1]) == (f"histogram 1 of {jvm.pid}", f"histogram 66 of {jvm.pid}")
    assert [sample.after.full - sample.before.full for sample in facts.samples] == [1] * len(sources)
    last = facts.samples[-1]
    assert 1 * MIB < last.info.metaspace_bytes < 50 * MIB
    assert last.direct_bytes == 0
    assert (facts.limits.metaspace, facts.limits.direct, facts.limits.direct_is_default) == (50 * MIB, 64 * MIB, True)
    assert facts.limits.room.free_bytes > 0
