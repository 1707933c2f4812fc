"""A live JVM is sampled and judged without a command line."""

from __future__ import annotations

import os
import signal

import pytest

from opskit.analysis.safepoints.live import judge
from opskit.collect.safepoints import live
from opskit.collect.safepoints.live import Request, collect
from opskit.errors import NoSuchProcess, NotAJvm, NotPermitted
from opskit.host import Host
from opskit.jvm.discover import read_perfdata


def test_a_jvm_is_sampled_on_a_schedule(workload):
    """`seen` is called after each interval; the facts have the JVM's identity and counters."""
    jvm = workload("gc=50", options=("-Xmx64m", "-XX:+UseSerialGC"))
    seen = []
    facts = collect(Host.at(None, None), Request(jvm.pid, 0.2, 3), lambda facts: seen.append(len(facts.readings)))
    assert seen == [2, 3, 4]
    assert (facts.pid, facts.name, facts.interrupted, facts.ended) == (jvm.pid, "java", False, None)
    result = judge(facts)
    assert len(result.intervals) == 3
    assert result.whole.totals.safepoints == facts.readings[-1].safepoints - facts.readings[0].safepoints > 0
    assert 0 < result.whole.totals.stopped_s < result.whole.elapsed_s


def test_ctrl_c_and_the_end_of_the_jvm_end_the_sampling(workload):
    """What was read so far counts; before the first interval is over there is nothing."""
    jvm = workload("gc=50", options=("-Xmx64m", "-XX:+UseSerialGC"))
    host = Host.at(None, None)

    def interrupt(facts):
        if len(facts.readings) == 3:
            raise KeyboardInterrupt

    facts = collect(host, Request(jvm.pid, 0.05, None), interrupt)
    assert (facts.interrupted, len(facts.readings)) == (True, 3)
    facts = collect(host, Request(jvm.pid, 0.05, None), lambda facts: len(facts.readings) == 3 and jvm.stop())
    assert "it ended while it was watched" in str(facts.ended)
    with pytest.raises(NotAJvm):
        collect(host, Request(os.getpid()))


def test_a_jvm_whose_parent_does_not_reap_it_has_ended(workload):
    """A zombie has a /proc entry, but no counters."""
    jvm = workload("gc=50", options=("-Xmx64m", "-XX:+UseSerialGC"))

    def kill(facts):
        if len(facts.readings) == 3:
            os.kill(jvm.pid, signal.SIGKILL)

    facts = collect(Host.at(None, None), Request(jvm.pid, 0.05, None), kill)
    assert isinstance(facts.ended, NoSuchProcess)
    assert len(facts.readings) >= 3


def test_a_jvm_that_ends_before_the_first_look(workload, monkeypatch):
    """The error is about the process, and is no bug in opskit."""
    jvm = workload("gc=50", options=("-Xmx64m", "-XX:+UseSerialGC"))

    def read_and_end(*arguments):
        perf = read_perfdata(*arguments)
        jvm.stop()
        return perf

    monkeypatch.setattr(live, "read_perfdata", read_and_end)
    with pytest.raises(NoSuchProcess):
        collect(Host.at(None, None), Request(jvm.pid))


def test_counters_that_vanish_end_the_sampling(workload, monkeypatch):
    """What was read before counts; the reason is kept."""
    jvm = workload("gc=50", options=("-Xmx64m", "-XX:+UseSerialGC"))

    def hide(facts):
        if len(facts.readings) == 3:
            monkeypatch.setattr(live.Probe, "_perfdata", deny)

    def deny(*_):
        raise NotPermitted("its file was deleted")

    facts = collect(Host.at(None, None), Request(jvm.pid, 0.05, None), hide)
    assert (str(facts.ended), len(facts.readings)) == ("its file was deleted", 3)
