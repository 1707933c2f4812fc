"""A live JVM is sampled and judged without a command line."""

from __future__ import annotations

import os

import pytest

from opskit.analysis.safepoints.live import judge
from opskit.collect.safepoints.live import Request, collect
from opskit.errors import NotAJvm
from opskit.host import Host


def test_a_jvm_is_sampled_on_a_schedule(workload):
    """Each interval is seen as it ends; who it is and its counters are in the facts."""
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
