"""Sums of a log: shares, operations, elapsed time, minutes, a part of the time, the timeline, the longest stops."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.analysis.distribution import Scratch
from opskit.analysis.moments import Moment
from opskit.analysis.safepoints.stops import Window, stops_of
from opskit.analysis.safepoints.sums import Sums
from opskit.jvm.logs.safepoints.log import SafepointLog

STOPPED = "Total time for which application threads were stopped: {} seconds, Stopping threads took: {} seconds\n"


def nanos(name, stop, ttsp, gap=10**9, head=""):
    return (
        f'{head}Safepoint "{name}", Time since last: {gap} ns, Reaching safepoint: {ttsp} ns, '
        f"At safepoint: {stop - ttsp} ns, Total: {stop} ns\n"
    )


def summed(text, **options):
    sums = Sums(Scratch(io.BytesIO), **options)
    for batch in SafepointLog().read([text.encode()]):
        sums.add(batch)
    return sums.summary()


def test_averages_shares_and_operations():
    """Sums of the parts are the whole; the share is of the time between and in the stops."""
    summary = summed(nanos("A", 3_000_000, 1_000_000) * 2 + nanos("B", 4_000_000, 4_000_000))
    assert summary.totals.safepoints == 3
    assert summary.totals.stopped_s == pytest.approx(0.010)
    assert summary.totals.stopped_avg_s == pytest.approx(0.010 / 3)
    assert summary.totals.ttsp_avg_s == pytest.approx(0.002)
    assert summary.totals.elapsed_s == pytest.approx(3.010)
    assert summary.totals.stopped_share == pytest.approx(0.010 / 3.010)
    assert summary.totals.ttsp_share == pytest.approx(0.6)
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
    assert sum(row.safepoints for row in summary.operations) == summary.totals.safepoints == len(rows)
    assert sum(row.stopped_s for row in summary.operations) == pytest.approx(sum(stop for _, stop, _ in rows) / 1e9)
    assert sum(row.ttsp_s for row in summary.operations) == pytest.approx(summary.totals.ttsp_s)
    above = sorted((stop / 1e9 for _, stop, _ in rows if slower is None or stop / 1e9 > slower), reverse=True)
    assert [stop.stopped_s for stop in summary.worst] == (above[:top] if top else above)
    if slower is not None:
        assert summary.slower == (len(above), pytest.approx(sum(above)))


def test_uptimes_cover_the_last_safepoint_too():
    """It may be a row without a line feed, which comes in a batch of its own; rotated logs begin at any uptime."""
    row = "{}: RevokeBias   [  2450   6   117 ]   [ 8  11  21  36  0 ]  6\n"
    rows = "".join(row.format(uptime) for uptime in ("1617.723", "1618.362", "1620.756"))
    assert summed(rows.rstrip()).totals.elapsed_s == pytest.approx(1620.756 - 1617.723 + 0.057)
    twice = summed(rows + rows)
    assert twice.restarts == 1
    assert twice.totals.elapsed_s == pytest.approx(2 * (1620.756 - 1617.723 + 0.057))


def test_a_first_line_whose_beginning_is_cut_off():
    """`tail -c` cuts within a line: the stamps of the other lines count."""
    text = STOPPED.format("0.5000000", "0.1") + "".join(
        f"{uptime}: " + STOPPED.format("0.5000000", "0.1") for uptime in ("10.000", "20.000")
    )
    assert summed(text).totals.elapsed_s == pytest.approx(10.5)


def test_no_share_is_above_one():
    """The same log given twice, under another name: dates span less than the stops take."""
    line = "2017-03-05T07:46:46.551-0500: 4.097: " + STOPPED.format("0.5000000", "0.1")
    assert summed(line * 2).totals.stopped_share is None
    close = line + "2017-03-05T07:46:47.050-0500: 4.596: " + STOPPED.format("0.5000000", "0.1")
    assert summed(close).totals.stopped_share == 1


def test_uptimes_of_several_runs_are_added_up():
    """An uptime that falls back is another run of the JVM: its time begins anew."""
    runs = [(1.0, 2.0, 11.0), (0.5, 5.5)]
    text = "".join(f"{uptime:.3f}: " + STOPPED.format("0.5000000", "0.1") for run in runs for uptime in run)
    summary = summed(text)
    assert summary.restarts == 1
    assert summary.totals.elapsed_s == pytest.approx(10.5 + 5.5)


def test_logs_that_no_clock_covers_have_no_share():
    """With one log with stamps and one without, the share is unknown."""
    text = "4.000: " + STOPPED.format("0.5", "0.1") + "9.000: " + STOPPED.format("0.5", "0.1")
    assert summed(text).totals.elapsed_s == pytest.approx(5.5)
    sums = Sums(Scratch(io.BytesIO))
    for part in (text, STOPPED.format("0.5", "0.1")):
        for batch in SafepointLog().read([part.encode()]):
            sums.add(batch)
    assert sums.summary().totals.stopped_share is None


def test_a_stop_counts_in_every_minute_that_it_covers():
    """A stop of several minutes counts in each of them with the part that lies in it."""
    text = "210.000: " + STOPPED.format("100.0", "0.1") + "215.000: " + STOPPED.format("1.0", "0.1")
    minutes = summed(text, by_minute=True).minutes
    assert [(row.minute, row.safepoints, row.stopped_s) for row in minutes] == [
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
    assert [row.minute for row in minutes] == ["2017-03-05T07:46", "2017-03-05T07:47", "2017-03-05T07:48"]
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
    assert summary.totals.safepoints == count
    assert summary.totals.safepoints + summary.outside + summary.undated == 3


def test_the_timeline_keeps_the_slowest_and_few_points():
    """Of 50,000 stops some thousands are drawn, the slowest among them."""
    text = "".join(nanos("A", 1000 + (at * 7919) % 50000, 10, head=f"[{at}.000s] ") for at in range(50000))
    summary = summed(text, timeline=True)
    assert len(summary.timeline.points) <= 6000
    assert max(point.stopped_s for point in summary.timeline.points) == summary.totals.stopped_max_s
    assert summary.timeline.clock == "uptime"


def test_the_timeline_has_one_clock():
    """A cut-off first line does not decide it, and lines without its stamp are left out."""
    line = STOPPED.format("0.5", "0.1")
    dated = "2017-03-05T07:46:46.551-0500: 4.097: " + line
    sums = Sums(Scratch(io.BytesIO), timeline=True)
    for text in (line + dated, "9.000: " + line, line):
        for batch in SafepointLog().read([text.encode()]):
            sums.add(batch)
    timeline = sums.summary().timeline
    assert (timeline.clock, [point.at_s for point in timeline.points]) == ("utc", [pytest.approx(1488718006.551)])


def test_stops_are_records_in_the_order_of_the_log():
    """Each with its stamp."""
    (batch,) = SafepointLog().read([nanos("A", 5, 1, head="[0.5s] ").encode()])
    (stop,) = stops_of(batch)
    assert (stop.stopped_s, stop.ttsp_s, stop.operation, stop.stamp.uptime_s) == (5e-9, 1e-9, "A", 0.5)
