"""Sentences of `opskit jpmp` about a run."""

from __future__ import annotations

import pytest

from opskit.collect.jpmp.collect import Facts, Sampled, Schedule
from opskit.collect.jpmp.load import Load
from opskit.jvm.dumps.thread_dump import ThreadDump
from opskit.proc.cgroup.limits import CpuLimit
from opskit.render.views.jpmp.sentences import taken_line


@pytest.mark.parametrize(("throttled", "said"), [(None, None), (0.0, None), (0.4, "0.4 %"), (80.0, "80 %")])
def test_throttling_is_named_where_there_was_some(throttled, said):
    """A small share is not printed as 0 %."""
    live = Sampled(7, 42, "Main", Schedule(1))
    live.dumps, live.times_s, live.stops_ms = [ThreadDump("HotSpot", ())], [0.0], [1.0]
    live.load = Load(1.0, 0.5, {}, {}, {}, None, None, None, None, 2, 0.5)
    if throttled is not None:
        live.load = live.load._replace(quotas=(CpuLimit("/pod", 0.5, 1000, round(10 * throttled)),))
    line = taken_line(Facts(live.dumps, live=live))
    assert (f"throttled by its CPU quota in {said} of the periods" in line) == (said is not None)
    assert ("throttled" in line) == (said is not None)
