"""Sums, shares, operations, minutes, the worst; the verdict and the advice for each kind of trouble and each release."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opskit.analysis.safepoint_advice import Figures, Jdk, advise, duration, percent, verdict

from opskit.analysis.distribution import Scratch
from opskit.analysis.safepoints import Collector, Moment, Operation, Timeline, Window, stops_of
from opskit.jvm.logs.safepoints.log import SafepointLog

STOPPED = "Total time for which application threads were stopped: {} seconds, Stopping threads took: {} seconds\n"


def nanos(name, stop, ttsp, gap=10**9, head=""):
    return (
        f'{head}Safepoint "{name}", Time since last: {gap} ns, Reaching safepoint: {ttsp} ns, '
        f"At safepoint: {stop - ttsp} ns, Total: {stop} ns\n"
    )


def summed(text, **options):
    collector = Collector(Scratch(io.BytesIO), **options)
    for batch in SafepointLog().read([text.encode()]):
        collector.add(batch)
    return collector.summary()


def test_averages_shares_and_operations():
    """Sums of the parts are the whole; the share is of the time between and in the stops."""
    summary = summed(nanos("A", 3_000_000, 1_000_000) * 2 + nanos("B", 4_000_000, 4_000_000))
    assert summary.safepoints == 3
    assert summary.stopped_s == pytest.approx(0.010)
    assert summary.stopped_avg_s == pytest.approx(0.010 / 3)
    assert summary.ttsp_avg_s == pytest.approx(0.002)
    assert summary.elapsed_s == pytest.approx(3.010)
    assert summary.stopped_share == pytest.approx(0.010 / 3.010)
    assert summary.ttsp_share == pytest.approx(0.6)
    assert [(row.name, row.safepoints, row.stopped_max_s) for row in summary.operations] == [
        ("A", 2, 0.003),
        ("B", 1, 0.004),
    ]
    assert [stop.operation for stop in summary.worst] == ["B", "A", "A"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=60),
    st.integers(0, 10),
    st.one_of(st.none(), st.floats(0, 1)),
)
def test_the_whole_is_the_sum_of_its_parts(rows, top, slower):
    """Operations add up; the worst are the longest above the threshold, as many as asked."""
    rows = [(name, max(stop, ttsp), min(stop, ttsp)) for name, stop, ttsp in rows]
    summary = summed("".join(nanos(*row) for row in rows), top=top, slower_than_s=slower)
    assert sum(row.safepoints for row in summary.operations) == summary.safepoints == len(rows)
    assert sum(row.stopped_s for row in summary.operations) == pytest.approx(sum(stop for _, stop, _ in rows) / 1e9)
    assert sum(row.ttsp_s for row in summary.operations) == pytest.approx(summary.ttsp_s)
    above = sorted((stop / 1e9 for _, stop, _ in rows if slower is None or stop / 1e9 > slower), reverse=True)
    assert [stop.stopped_s for stop in summary.worst] == (above[:top] if top else above)
    if slower is not None:
        assert summary.slower == (len(above), pytest.approx(sum(above)))


def test_uptimes_cover_the_last_safepoint_too():
    """It may be a row of a table whose line has no end, and so comes by itself; rotated logs begin anywhere."""
    row = "{}: RevokeBias   [  2450   6   117 ]   [ 8  11  21  36  0 ]  6\n"
    rows = "".join(row.format(uptime) for uptime in ("1617.723", "1618.362", "1620.756"))
    assert summed(rows.rstrip()).elapsed_s == pytest.approx(1620.756 - 1617.723 + 0.057)
    twice = summed(rows + rows)
    assert twice.restarts == 1
    assert twice.elapsed_s == pytest.approx(2 * (1620.756 - 1617.723 + 0.057))


def test_a_first_line_whose_beginning_is_cut_off():
    """Tail -c cuts where it likes: the stamps of the others tell the time."""
    text = STOPPED.format("0.5000000", "0.1") + "".join(
        f"{uptime}: " + STOPPED.format("0.5000000", "0.1") for uptime in ("10.000", "20.000")
    )
    assert summed(text).elapsed_s == pytest.approx(10.5)


def test_no_share_is_above_one():
    """The same log given twice, under another name: dates span less than the stops take."""
    line = "2017-03-05T07:46:46.551-0500: 4.097: " + STOPPED.format("0.5000000", "0.1")
    assert summed(line * 2).stopped_share is None
    close = line + "2017-03-05T07:46:47.050-0500: 4.596: " + STOPPED.format("0.5000000", "0.1")
    assert summed(close).stopped_share == 1


def test_uptimes_of_several_runs_are_added_up():
    """An uptime that falls back is another run of the JVM: its time begins anew."""
    runs = [(1.0, 2.0, 11.0), (0.5, 5.5)]
    text = "".join(f"{uptime:.3f}: " + STOPPED.format("0.5000000", "0.1") for run in runs for uptime in run)
    summary = summed(text)
    assert summary.restarts == 1
    assert summary.elapsed_s == pytest.approx(10.5 + 5.5)


def test_logs_that_no_clock_covers_have_no_share():
    """A log with stamps and one without: better no share than a wrong one."""
    text = "4.000: " + STOPPED.format("0.5", "0.1") + "9.000: " + STOPPED.format("0.5", "0.1")
    assert summed(text).elapsed_s == pytest.approx(5.5)
    collector = Collector(Scratch(io.BytesIO))
    for part in (text, STOPPED.format("0.5", "0.1")):
        for batch in SafepointLog().read([part.encode()]):
            collector.add(batch)
    assert collector.summary().stopped_share is None


def test_a_stop_counts_in_every_minute_that_it_covers():
    """90 seconds that ended at 1:30 are 60 in the second minute... and none of them is lost."""
    text = "210.000: " + STOPPED.format("100.0", "0.1") + "215.000: " + STOPPED.format("1.0", "0.1")
    minutes = summed(text, by_minute=True).minutes
    assert [(row.label, row.safepoints, row.stopped_s) for row in minutes] == [
        ("60s", 0, pytest.approx(10.0)),
        ("120s", 0, pytest.approx(60.0)),
        ("180s", 2, pytest.approx(31.0)),
    ]
    assert minutes[1].share == 1.0


def test_minutes_are_named_as_the_log_names_them():
    """Local time, as in the stamps."""
    head = "2017-03-05T{}-0500: "
    text = (
        head.format("07:46:46.551")
        + STOPPED.format("0.5", "0.1")
        + head.format("07:48:00.100")
        + STOPPED.format("0.2", "0.1")
    )
    minutes = summed(text, by_minute=True).minutes
    assert [row.label for row in minutes] == ["2017-03-05T07:46", "2017-03-05T07:47", "2017-03-05T07:48"]
    assert sum(row.stopped_s for row in minutes) == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("window", "count"),
    [
        (Window(Moment(2.0, "uptime")), 2),
        (Window(None, Moment(2.0, "uptime")), 2),
        (Window(Moment(1.5, "uptime"), Moment(2.5, "uptime")), 1),
        (Window(Moment(10.0, "uptime")), 0),
        (Window(Moment(0.0, "utc")), 0),
    ],
)
def test_only_what_lies_in_the_window_counts(window, count):
    """Both ends belong to it; what cannot be compared is left out and counted."""
    text = "".join(f"{uptime:.3f}: " + STOPPED.format("0.1", "0.05") for uptime in (1, 2, 3))
    summary = summed(text, window=window)
    assert summary.safepoints == count
    assert summary.safepoints + summary.outside + summary.undated == 3


def test_the_timeline_keeps_the_slowest_and_few_points():
    """Of 50,000 stops some thousands are drawn, the slowest among them."""
    timeline = Timeline()
    text = "".join(nanos("A", 1000 + (at * 7919) % 50000, 10, head=f"[{at}.000s] ") for at in range(50000))
    summary = summed(text, timeline=timeline)
    assert len(timeline.points) <= 6000
    assert max(point.stopped_s for point in timeline.points) == summary.stopped_max_s
    assert timeline.clock == "uptime"


def test_stops_are_records_in_the_order_of_the_log():
    """Each with its stamp."""
    (batch,) = SafepointLog().read([nanos("A", 5, 1, head="[0.5s] ").encode()])
    (stop,) = stops_of(batch)
    assert (stop.stopped_s, stop.ttsp_s, stop.operation, stop.stamp.uptime_s) == (5e-9, 1e-9, "A", 0.5)


def figures(ttsp_share=0.1, *, safepoints=100, stopped_s=10.0, elapsed_s=100.0, longest=1.0):
    ttsp = None if ttsp_share is None else ttsp_share * stopped_s
    return Figures(safepoints, stopped_s, elapsed_s, longest, ttsp, ttsp_share, longest)


def operation(name, count, stopped_s):
    return Operation(name, count, stopped_s, stopped_s / count, 0.1, 0.1, 0.0)


def codes(found):
    return [finding.code for finding in found]


def test_the_verdict_names_the_largest_operation_only_if_it_is_the_largest():
    """Logs of which most stops are not named: the largest of the others is not the most."""
    some, unnamed = operation("Cleanup", 5, 0.2), operation(None, 95, 9.8)
    assert "the most in" not in verdict(figures(), [unnamed, some])
    assert "the most in Cleanup, 90 % of" in verdict(
        figures(), [operation("Cleanup", 5, 9.0), operation(None, 95, 1.0)]
    )


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.6, "The way to the safepoint (TTSP) dominates: 60 %"),
        (0.4, "too much"),
        (0.1, "The operations dominate: 90 %"),
        (None, "is not told"),
    ],
)
def test_the_verdict_says_what_dominates(share, words):
    """And the advice about TTSP comes above a third."""
    assert words in verdict(figures(share), ())
    assert ("ttsp-dominates" in codes(advise("log", figures(share), Jdk(8, 8)))) == (
        share is not None and share > 1 / 3
    )


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
    (found,) = advise("log", figures(0.5), jdk)
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
    found = next(one for one in advise("log", figures(), jdk, rows) if one.code == "bias-revocations")
    assert fix in found.fix
    assert found.severity == "warning"
    assert "bias-revocations" not in codes(advise("log", figures(), Jdk(21, 21), rows))
    assert "bias-revocations" not in codes(advise("log", figures(), jdk, [operation("RevokeBias", 2, 0.1)]))


def test_many_dumps_point_to_an_agent():
    """ThreadDump and its kin, often; a few are nobody's fault."""
    assert "thread-dumps-sampled" in codes(advise("log", figures(), Jdk(), [operation("FindDeadlocks", 20, 0.1)]))
    assert "thread-dumps-sampled" not in codes(advise("log", figures(), Jdk(), [operation("ThreadDump", 1, 0.1)]))


def test_collections_that_stop_much_of_the_time():
    """And late threads, which come first."""
    found = advise(
        "log", figures(elapsed_s=50.0), Jdk(), [operation("G1CollectForAllocation", 90, 9.9)], (), {"hog": 3}
    )
    assert {"late-to-safepoint", "collections-dominate"} <= set(codes(found))


def test_times_and_shares_as_people_read_them():
    """No false precision, and never 100 % where something is left."""
    assert [duration(value) for value in (None, 0, 3e-9, 85e-6, 0.0412, 3.21, 4000)] == [
        "unknown", "0 s", "3 ns", "85 us", "41 ms", "3.2 s", "4,000 s",
    ]  # fmt: skip
    assert [percent(value) for value in (None, 0, 0.0006, 0.011, 0.5, 0.9999)] == [
        "unknown", "0 %", "0.06 %", "1.1 %", "50 %", "99.9 %",
    ]  # fmt: skip
