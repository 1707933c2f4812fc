"""The verdict, and the advice for each kind of trouble and each release."""

from __future__ import annotations

import pytest

from opskit.analysis.finding import Entity
from opskit.analysis.safepoints.advice import Jdk, advise, verdict
from opskit.analysis.safepoints.stops import Totals
from opskit.analysis.safepoints.sums import Operation

LOG = Entity("file", "gc.log")


def figures(ttsp_share=0.1, *, safepoints=100, stopped_s=10.0, elapsed_s=100.0, longest=1.0):
    ttsp = None if ttsp_share is None else ttsp_share * stopped_s
    count = safepoints if ttsp is not None else 0
    return Totals(safepoints, stopped_s, ttsp, elapsed_s, count, longest, longest)


def operation(name, count, stopped_s):
    return Operation(name, count, stopped_s, stopped_s / count, 0.1, 0.1, 0.0)


def codes(found):
    return [finding.code for finding in found]


def test_the_verdict_names_the_largest_operation_only_if_it_is_the_largest():
    """Where most stops have no name, the largest named one is not the largest."""
    some, unnamed = operation("Cleanup", 5, 0.2), operation(None, 95, 9.8)
    assert "the most in" not in verdict(figures(), [unnamed, some])
    assert "the most in Cleanup, 90 % of" in verdict(
        figures(), [operation("Cleanup", 5, 9.0), operation(None, 95, 1.0)]
    )


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.6, "Time to safepoint (TTSP) dominates: 60 %"),
        (0.4, "too much"),
        (0.1, "The operations dominate: 90 %"),
        (None, "(TTSP) is unknown"),
    ],
)
def test_the_verdict_says_what_dominates(share, words):
    """And the advice about TTSP comes above a third."""
    assert words in verdict(figures(share), ())
    assert ("ttsp-dominates" in codes(advise(LOG, figures(share), Jdk(8, 8)))) == (share is not None and share > 1 / 3)


@pytest.mark.parametrize(
    ("jdk", "has", "has_not"),
    [
        (Jdk(8, 8), "-XX:+UseCountedLoopSafepoints", "LoopStripMiningIter"),
        (Jdk(17, 17), "LoopStripMiningIter=1000", "JDK 8 and 9"),
        (Jdk(), "JDK 8 and 9", "nothing"),
    ],
)
def test_flags_against_late_threads_are_those_of_the_release(jdk, has, has_not):
    """8 and 9 have no loop strip mining; from 10 on some collectors switch it on."""
    (found,) = advise(LOG, figures(0.5), jdk)
    assert has in found.fix
    assert has_not not in found.fix


@pytest.mark.parametrize(
    ("jdk", "fix"),
    [
        (Jdk(8, 8), "-XX:-UseBiasedLocking"),
        (Jdk(13, None), "before JDK 15"),
        (Jdk(17, 17), "remove -XX:+UseBiasedLocking"),
    ],
)
def test_revocations_point_to_biased_locking(jdk, fix):
    """Before 15 it is on by itself, from 18 on it is gone."""
    rows = [operation("RevokeBias", 50, 5.0), operation("BulkRevokeBias", 10, 1.0)]
    found = next(one for one in advise(LOG, figures(), jdk, rows) if one.code == "bias-revocations")
    assert fix in found.fix
    assert found.severity == "warning"
    assert "bias-revocations" not in codes(advise(LOG, figures(), Jdk(21, 21), rows))
    assert "bias-revocations" not in codes(advise(LOG, figures(), jdk, [operation("RevokeBias", 2, 0.1)]))


def test_many_dumps_point_to_an_agent():
    """Many ThreadDump or similar operations are a finding; a few are not."""
    assert "thread-dumps-sampled" in codes(advise(LOG, figures(), Jdk(), [operation("FindDeadlocks", 20, 0.1)]))
    assert "thread-dumps-sampled" not in codes(advise(LOG, figures(), Jdk(), [operation("ThreadDump", 1, 0.1)]))


@pytest.mark.parametrize(("name", "code"), [("ThreadDump", "thread-dumps-sampled"), ("RevokeBias", "bias-revocations")])
@pytest.mark.parametrize(("elapsed_s", "longest_s", "severity"), [
    (100.0, 0.001, "warning"), (3600.0, 0.001, "note"), (3600.0, 2.0, "warning"), (None, 0.001, "warning"),
])  # fmt: skip
def test_short_stops_of_a_healthy_jvm_are_a_note(name, code, elapsed_s, longest_s, severity):
    """In an idle JVM most stops may be a monitor's thread dumps, but they take little time."""
    rows = [operation(name, 90, 5.0)._replace(stopped_max_s=longest_s)]
    [found] = advise(LOG, figures(elapsed_s=elapsed_s, longest=longest_s), Jdk(8, 8), rows)
    assert (found.code, found.severity) == (code, severity)


def test_heap_inspections_are_no_collections():
    """A histogram collects nothing, and a larger heap makes it slower."""
    assert "jvm-gc-share" not in codes(
        advise(LOG, figures(elapsed_s=50.0), Jdk(), [operation("GC_HeapInspection", 90, 9.9)])
    )


def test_collections_that_stop_much_of_the_time():
    """And late threads, which come first."""
    found = advise(LOG, figures(elapsed_s=50.0), Jdk(), [operation("G1CollectForAllocation", 90, 9.9)], (), {"hog": 3})
    assert {"late-to-safepoint", "jvm-gc-share"} <= set(codes(found))
