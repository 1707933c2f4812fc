"""A live JVM's intervals, and what is found in them; no JVM is needed for that."""

from __future__ import annotations

import pytest

from opskit.analysis.finding import HOST, Entity
from opskit.analysis.safepoints.live import judge
from opskit.collect.safepoints.live import Facts, Reading
from opskit.proc.cgroup.limits import CpuLimit


def facts(*readings, **options):
    return Facts(4242, 99, "java", "17.0.1", 17, None, 2, "cgroup", readings)._replace(**options)


def reading(at_s, safepoints=0, stopped_s=0.0, ttsp_s=0.0, **options):
    return Reading(at_s, safepoints, stopped_s, ttsp_s, **options)


def test_intervals_are_differences_and_the_whole_is_theirs():
    """Times since the first sample; a counter that ran backwards is unknown."""
    result = judge(facts(reading(10.0, 5, 1.0, 0.5), reading(11.0, 7, 1.5, 0.6), reading(13.0, 8, 1.6, 0.1)))
    assert [(row.at_s, row.totals.safepoints, row.totals.stopped_s) for row in result.intervals] == [
        (1.0, 2, pytest.approx(0.5)),
        (3.0, 1, pytest.approx(0.1)),
    ]
    assert [row.totals.ttsp_s for row in result.intervals] == [pytest.approx(0.1), None]
    assert result.whole[:2] == (3.0, 3.0)
    assert result.whole.totals[:2] == (3, pytest.approx(0.6))
    assert result.whole.totals.stopped_share == pytest.approx(0.2)
    assert result.whole.totals.ttsp_share is None
    assert result.verdict.startswith("3 safepoints stopped the application for 600 ms, 20 % of the time")
    assert result.findings == []


@pytest.mark.parametrize(("last", "code", "severity"), [
    ({"waiting": True, "late_thread": "hog"}, "safepoint-not-reached", "error"),
    ({"memory_stalled_s": 0.2}, "memory-pressure", "warning"),
    ({"major_faults": 500}, "major-faults", "note"),
    ({"runnable": 9}, "runnable-above-cpus", "note"),
    ({"ttsp_s": 0.05, "stopped_s": 0.1, "safepoints": 3}, "ttsp-dominates", "warning"),
])  # fmt: skip
def test_each_finding_names_the_process_and_the_closer_look(last, code, severity):
    """The entity is the process by PID and start, its cgroup, or the host; the time is the sampled one."""
    begun = reading(0.0, throttled_s=0.0, throttled_periods=0, memory_stalled_s=0.0, major_faults=0)
    [found] = judge(facts(begun, begun._replace(at_s=2.0, **last), cgroup="/app")).findings
    assert (found.code, found.severity, found.window_s) == (code, severity, 2.0)
    others = {"memory-pressure": Entity("cgroup", "/app"), "runnable-above-cpus": HOST}
    assert found.entity == others.get(code, Entity("process", 4242, 99))
    assert found.next or found.fix


def test_a_quota_that_is_used_up():
    """The cgroup whose quota was used up most often, by the periods of the window."""
    quotas = (CpuLimit("/a/b", 2.0, 100, 0, 0.0), CpuLimit("/a", 0.5, 100, 40, 9.0))
    used = (CpuLimit("/a/b", 2.0, 120, 0, 0.0), CpuLimit("/a", 0.5, 120, 51, 9.9))
    [found] = judge(facts(reading(0.0, quotas=quotas), reading(2.0, quotas=used))).findings
    assert (found.code, found.severity, found.entity, found.share) == (
        "cpu-throttled",
        "warning",
        Entity("cgroup", "/a"),
        0.55,
    )
    assert found.summary == "4242 (java) is throttled in 55 % of the periods: its cgroup's quota is 0.5 CPUs"
    assert judge(facts(reading(0.0, quotas=quotas), reading(2.0, quotas=quotas))).findings == []


@pytest.mark.parametrize(("faults", "severity"), [(0, "note"), (3, "warning")])
def test_pressure_of_the_machine_may_spare_the_jvm(faults, severity):
    """Without a major fault of the JVM it says nothing about it."""
    begun = reading(0.0, memory_stalled_s=0.0, major_faults=0)
    after = begun._replace(at_s=2.0, memory_stalled_s=0.2, major_faults=faults)
    [found] = judge(facts(begun, after)._replace(pressure_of="machine")).findings
    assert (found.code, found.severity) == ("memory-pressure", severity)


def test_no_share_is_above_one():
    """Counters grow at the end of a stop, which may have begun before the interval; TTSP grows before the stop's time."""
    totals = judge(facts(reading(0.0), reading(1.0, 1, 5.0, 6.0))).whole.totals
    assert (totals.stopped_s, totals.stopped_share, totals.ttsp_share) == (5.0, 1.0, 1.0)


def test_no_pressure_is_above_the_whole_time():
    """The kernel adds two seconds' worth at once: more than a short window lasted."""
    before = reading(0.0, cpu_stalled_s=1.0, memory_stalled_s=1.0)
    result = judge(facts(before, before._replace(at_s=1.0, cpu_stalled_s=2.28, memory_stalled_s=1.5)))
    assert (result.whole.cpu_pressure_share, result.whole.memory_pressure_share) == (1.0, 0.5)


def test_a_large_part_of_short_stops_is_no_finding():
    """A TTSP of half of 0.02 % of the time is harmless, however long the JVM is watched; the verdict has the share."""
    readings = [reading(at_s, 10 * at_s, 0.0002 * at_s, 0.0001 * at_s) for at_s in range(0, 3601, 60)]
    result = judge(facts(*readings))
    assert result.findings == []
    assert "(TTSP) takes 50 %: too much" not in result.verdict
    [found] = judge(facts(readings[0], readings[1]._replace(ttsp_s=0.06, stopped_s=0.1))).findings
    assert (found.code, found.severity) == ("ttsp-dominates", "warning")


def test_a_safepoint_that_is_not_reached_comes_first_in_the_verdict():
    """With the time it was waited for at the least."""
    waiting = {"waiting": True}
    result = judge(facts(reading(0.0), reading(1.0), reading(2.0, **waiting), reading(3.5, **waiting)))
    assert "a safepoint was requested and has not been reached for at least 2.5 s" in result.verdict
    assert result.findings[0].next == "top -H -p 4242"


@pytest.mark.parametrize(("last", "found"), [
    ({"runnable": 4}, False),
    ({"runnable": 4, "cpu_stalled_s": 0.4}, False),
    ({"runnable": 4, "cpu_stalled_s": 1.2}, True),
    ({"runnable": 2, "cpu_stalled_s": 1.2}, False),
])  # fmt: skip
def test_a_busy_machine_is_not_a_crowded_one(last, found):
    """A moment with more threads than CPUs is normal: they must wait for a CPU half of the time."""
    begun = reading(0.0, cpu_stalled_s=0.0 if "cpu_stalled_s" in last else None)
    assert [one.code for one in judge(facts(begun, begun._replace(at_s=2.0, **last))).findings] == (
        ["runnable-above-cpus"] if found else []
    )
