"""What the safepoints of a second prove."""

from __future__ import annotations

import pytest

from opskit.analysis.finding import Entity
from opskit.analysis.safepoints.window import judge, shares
from opskit.collect.safepoints.window import Facts, Stops, Watched
from opskit.jvm.discover import HOTSPOT, Jvm


def found(stopped_s, ttsp_s, gc_s, safepoints=10, life=(1.0, 0.1, 0.5), age_s=100.0, place=None):
    """A second with these, in a life with `life`: stopped, TTSP and GC in seconds."""
    before = Stops(10.0, 50, *life)
    gains = (stopped_s, ttsp_s, gc_s)
    now = Stops(11.0, 50 + safepoints, *(None if gain is None else was + gain for was, gain in zip(life, gains)))
    return judge(Facts([Watched(Jvm(7, 7, HOTSPOT, 0, 5, "orders"), 17, age_s, place, before, now)]))


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ((0.05, 0.04, 0.0), []),  # tiny stops
        ((0.3, 0.02, 0.28), []),  # collections: of another check
        ((0.31, 0.16, 0.1), [("ttsp-dominates", "warning")]),
        ((0.31, 0.16, 0.1, 2), [("ttsp-dominates", "note")]),  # one or two are a moment
        ((0.31, 0.16, 0.1, 2, (30.0, 15.0, 1.0)), [("ttsp-dominates", "warning")]),  # and so all its life
        ((0.31, 0.16, 0.1, 2, (3.0, 1.5, 1.0), 5.0), [("ttsp-dominates", "note")]),  # it starts
        ((0.15, 0.01, 0.0), [("jvm-paused", "note")]),
        ((0.15, 0.01, 0.0, 10, (30.0, 1.0, 1.0)), [("jvm-paused", "warning")]),
        ((0.5, 0.01, 0.05), [("jvm-paused", "warning")]),
        ((0.5, 0.01, 0.05, 1), [("jvm-paused", "note")]),  # one long stop
        ((-0.5, 0.01, 0.05), []),  # a counter that ran backwards
    ],
)
def test_findings(case, expected):
    assert [(each.code, each.severity) for each in found(*case)] == expected


def test_the_summary_names_process_and_shares():
    [finding] = found(0.31, 0.16, 0.1, place="/app.service")
    assert finding.summary == "7 (orders): 52 % of its pause time is time to safepoint; it is paused 31 % of the time"
    assert finding.entity == Entity("process", 7, 5, Entity("cgroup", "/app.service"))
    assert finding.next == "opskit safepoints 7"


def test_a_stop_that_began_before_the_window_is_at_most_all_of_it():
    window = shares(1.0, 3, 1.4, 1.2, 0.0)
    assert (window.stopped, window.late, window.other) == (1.0, 1.0, 1.0)


def test_without_the_time_of_collections_pauses_are_not_judged():
    """Shenandoah counts its concurrent phases with them."""
    before, now = Stops(10.0, 50, 1.0, 0.1, None), Stops(11.0, 60, 1.5, 0.1, None)
    assert judge(Facts([Watched(Jvm(7, 7, HOTSPOT, 0, 5, "orders"), 17, 100.0, None, before, now)])) == []
