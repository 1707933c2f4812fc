"""Safepoint logs of every release, in chunks of any size, with anything between their lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.jvm.logs.safepoints.log import SafepointLog
from opskit.jvm.logs.timestamps import parse_stamp

STOPPED = b"Total time for which application threads were stopped: "


def read(data, size=1 << 18):
    """The log, and its safepoints as (stop, TTSP, operation, head, late threads)."""
    log = SafepointLog()
    rows = []
    for batch in log.read(data[at : at + size] for at in range(0, len(data), size)):
        count = len(batch)
        ttsps = batch.ttsps_s or [None] * count
        operations = batch.operations or [None] * count
        rows += [
            (batch.stops_s[i], ttsps[i], operations[i], batch.heads[i], batch.late.get(i, ())) for i in range(count)
        ]
        if count:
            assert batch.head(0) == batch.heads[0]
            assert batch.head(-1) == batch.heads[-1]
    return log, rows


def test_jdk6_decimal_commas_and_no_ttsp():
    """A number with a comma is a number; an unknown value is None, not 0."""
    _, rows = read(STOPPED + b"0,0044730 seconds\n" + STOPPED + b"1,5 seconds\n")
    assert [row[:2] for row in rows] == [(0.0044730, None), (1.5, None)]


def test_jdk8_with_stamps():
    """Both numbers, and the text before them."""
    log, rows = read(b"0.143: " + STOPPED + b"0.0001754 seconds, Stopping threads took: 0.0000590 seconds\n")
    assert rows == [(0.0001754, 0.0000590, None, b"0.143: ", ())]
    assert log.jdk_range == (8, 8)


@pytest.mark.parametrize("before", [b"", b"[gc lines]\n" * 50])
def test_jdk9_to_12_name_the_operation_on_a_line_of_its_own(before):
    """The line about entering names it, with any lines between that and the time."""
    deco = b"[0.030s][info][safepoint    ] "
    data = b"".join(
        deco + b"Application time: 0.5 seconds\n" + deco + b"Entering safepoint region: " + name + b"\n" + before
        + deco + b"Leaving safepoint region\n" + deco + STOPPED + b"0.2 seconds, Stopping threads took: 0.1 seconds\n"
        for name in (b"RevokeBias", b"no vm operation", b"Cleanup")
    )  # fmt: skip
    for size in (1 << 18, 97, 1):
        log, rows = read(data, size)
        assert [row[2] for row in rows] == [b"RevokeBias", b"no vm operation", b"Cleanup"]
        assert log.jdk_range == (9, 12)
        assert log.unreadable == 0


@pytest.mark.parametrize(
    "keys",
    [
        b"At safepoint: 200 ns, Total: 300 ns",
        b"Cleanup: 10 ns, At safepoint: 190 ns, Total: 300 ns",
        b"Cleanup: 10 ns, At safepoint: 180 ns, Leaving safepoint: 10 ns, Total: 300 ns",
        b"At safepoint: 190 ns, Leaving safepoint: 10 ns, Total: 300 ns, Threads: 0 runnable, 10 total",
        b"Some new key: 7 ns, Total: 300 ns",
    ],
)
@pytest.mark.parametrize("quote", [b'"', b'\\"'])
def test_jdk13_and_later_whatever_keys_they_have(keys, quote):
    """Cleanup, Leaving and Threads differ between releases; a log shipper's JSON escapes the quotes."""
    line = b"[0.1s][info][safepoint] Safepoint " + quote + b"ThreadDump" + quote + b", Time since last: 5 ns, "
    log, rows = read(line + b"Reaching safepoint: 100 ns, " + keys + b"\n")
    assert rows == [(300 / 1e9, 100 / 1e9, b"ThreadDump", b"[0.1s][info][safepoint] ", ())]
    assert log.jdk_range == (13, None)


def test_an_operation_ends_where_a_shippers_json_goes_on():
    """Docker's JSON has the line's end as two characters, and its own words after it."""
    lines = (
        b"[1s] Entering safepoint region: Cleanup",
        b"[1s] " + STOPPED + b"0.2 seconds, Stopping threads took: 0.1 seconds",
    )
    data = b"".join(b'{"log":"' + line + b'\\n","stream":"stdout","time":"2024-01-31T10:05:01.1Z"}\n' for line in lines)
    log, rows = read(data)
    assert [row[:3] for row in rows] == [(0.2, 0.1, b"Cleanup")]
    assert log.unreadable == 0


def test_the_table_of_jdk8_alone():
    """Whole milliseconds; sync holds spin and block; a row a safepoint, also packed tight or after a comment's star."""
    header = b"         vmop    [threads: total initially_running wait_to_block]    [time: spin block sync cleanup vmop] page_trap_count\n"
    data = (
        header
        + b"1617.723: RevokeBias       [    2450          6            117    ]      [     8    11    21    36     0    ]  6\n"
        + header
        + b"     * 1618.000: no vm operation     [    2450          6            117    ]      [     8    11    21    36     5    ]  6   \n"
        + b"65968.203: ForceAsyncSafepoint [931   1   2]    [2255  0  2255 11  0]  1\n"
    )
    log, rows = read(data)
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (0.057, 0.021, b"RevokeBias"),
        (0.062, 0.021, b"no vm operation"),
        (2.266, 2.255, b"ForceAsyncSafepoint"),
    ]
    assert log.coarse == 3
    assert parse_stamp(rows[0][3]).uptime_s == 1617.723


def test_the_tables_in_nanoseconds():
    """JDK 17 has cleanup, 25 has not; the last number is the whole time."""
    _, rows = read(
        b"[0.099s][info][safepoint,stats  ] VM Operation [ threads: total initial_running ][ time: sync cleanup vmop total ] page_trap_count\n"
        b"[0.099s][info][safepoint,stats  ] G1CollectFull     [     11     0 ][    82573   26880  8695747  8805200 ]     0\n"
        b"[0.099s][info][safepoint,stats  ] ThreadDump        [     10     0 ][   588577   39089   627666 ]    0\n"
    )
    assert [row[:3] for row in rows] == [
        (8805200 / 1e9, 82573 / 1e9, b"G1CollectFull"),
        (627666 / 1e9, 588577 / 1e9, b"ThreadDump"),
    ]


def test_a_row_and_a_line_about_one_safepoint_count_once():
    """The row gives the name, the line the exact times."""
    log, rows = read(
        b"0.734: Deoptimize     [      10          0              0    ]      [     0     0     0     0     0    ]  0   \n"
        + STOPPED
        + b"0.0000985 seconds, Stopping threads took: 0.0000150 seconds\n"
    )
    assert [row[:3] for row in rows] == [(0.0000985, 0.0000150, b"Deoptimize")]
    assert log.coarse == 0


def test_rows_that_come_all_at_once_name_no_stop():
    """Without PrintSafepointStatisticsCount=1 a table of hundreds is about the stops before it: the last row is not the next one's."""
    row = b"%d.734: Deoptimize     [      10          0              0    ]      [     0     0     0     0     0    ]  0   \n"
    stop = STOPPED + b"0.0000985 seconds, Stopping threads took: 0.0000150 seconds\n"
    log, rows = read(stop * 3 + b"".join(row % number for number in range(3)) + stop + row % 4 + stop)
    assert [row[2] for row in rows] == [None] * 4 + [b"Deoptimize"]
    assert log.coarse == 0


@pytest.mark.parametrize("deco", [b"", b"[1.355s][warning][safepoint] "])
def test_a_timeout_names_the_late_thread(deco):
    """Also one whose name has quotes; it belongs to the safepoint that comes next."""
    data = b"".join(
        deco + line + b"\n"
        for line in (
            b"# SafepointSynchronize::begin: Timeout detected:",
            b"# SafepointSynchronize::begin: Timed out while spinning to reach a safepoint.",
            b"# SafepointSynchronize::begin: Threads which did not reach the safepoint:",
            b'# "pool "a" 1" #12 daemon prio=5 os_prio=0 cpu=761.69ms elapsed=1.29s tid=0x00 nid=0x777b runnable  [0x00]',
            b"   java.lang.Thread.State: RUNNABLE",
            b"",
            b"# SafepointSynchronize::begin: (End of list)",
        )
    )
    log, rows = read(data + STOPPED + b"2.5 seconds, Stopping threads took: 2.4 seconds\n")
    assert rows[0][4] == (b'pool "a" 1',)
    assert (log.timeouts, log.late_threads, log.unreached) == (1, {b'pool "a" 1': 1}, ())
    log, rows = read(data)
    assert (rows, log.unreached) == ([], (b'pool "a" 1',))


@pytest.mark.parametrize(
    "line",
    [
        b"ed: 0.0001265 seconds, Stopping threads took: 0.0000199 seconds",
        STOPPED + b"0.00",
        STOPPED + b"nonsense seconds",
        b'Safepoint "X", Time since last: 5 ns, Reaching saf',
    ],
)
def test_what_looks_like_a_safepoint_and_is_none_is_counted(line):
    """With its line number; the whole ones around it count."""
    whole = STOPPED + b"0.5 seconds, Stopping threads took: 0.25 seconds\n"
    log, rows = read(b"hello\n" + line + b"\n" + whole)
    assert [row[0] for row in rows] == [0.5]
    assert (log.unreadable, log.first_unreadable) == (1, (2, line))


@pytest.mark.parametrize(
    ("line", "jdk"),
    [
        (b"[0.002s][info][gc,init] Version: 21.0.2+13-LTS (release)", 21),
        (b"Java HotSpot(TM) 64-Bit Server VM (25.51-b03) for linux-amd64 JRE (1.8.0_51-b16), built on Jun  8 2015", 8),
        (b"OpenJDK 64-Bit Server VM (17.0.1+12) for linux-amd64 JRE (17.0.1+12), built on", 17),
    ],
)
def test_the_release_is_taken_from_the_head_of_the_log(line, jdk):
    """The log's head names the release."""
    assert read(line + b"\n" + STOPPED + b"0.5 seconds\n")[0].jdk == jdk


SAMPLES = {
    "jdk8-printsafepointstatistics-revokebias-2450threads.txt": (9, 0.440, 0.147),
    "jdk7-stopped-long-pause.txt": (614, None, None),
    "jdk8-stopped-icap.txt": (277, None, None),
    "jdk6-icms-stopped-decimal-comma.txt": (4643, None, None),
    "jdk14-xlog-safepoint-rolling.txt": (27, None, None),
    "jdk11-xlog-safepoint-entering-leaving.txt": (12, None, None),
    "jdk11-safepoint-4decorators.txt": (1, 0.0002545, 0.0000686),
    "jdk17-xlog-safepoint-g1.txt": (9, None, None),
    "jdk21-xlog-safepoint-zgc.txt": (154, None, None),
    "jdk21-safepoint-printthreads-finddeadlocks.txt": (10, None, None),
    "jdk7-g1-application-stopped.txt": (54, None, None),
    "jdk8-safepointstats-javadoc-prefix-2778threads.txt": (9, 2.508, 0.004),
    "jdk8-safepointstats-interleaved-app-output.txt": (2, 0.0003102, 0.0000628),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_gives_all_its_safepoints(samples, name):
    """As many as a plain search finds, with the sums of the numbers in the text; whatever the chunks."""
    data = (samples / "safepoint-logs" / name).read_bytes()
    count, stopped, ttsp = SAMPLES[name]
    log, rows = read(data)
    assert len(rows) == count
    assert log.unreadable == (1 if "interleaved" in name else 0)
    if stopped is None:
        numbers = re.findall(rb"stopped: ([\d.,]+) s", data)
        stopped = sum(float(number.replace(b",", b".")) for number in numbers)
        stopped += sum(int(number) for number in re.findall(rb"Total: (\d+) ns", data)) / 1e9
        ttsp = sum(float(number) for number in re.findall(rb"took: ([\d.]+) s", data))
        ttsp += sum(int(number) for number in re.findall(rb"Reaching safepoint: (\d+) ns", data)) / 1e9
    assert sum(row[0] for row in rows) == pytest.approx(stopped, rel=1e-9)
    assert sum(row[1] or 0 for row in rows) == pytest.approx(ttsp, rel=1e-9)
    assert read(data, 1000)[1] == rows


number = st.floats(0, 100).map(lambda value: f"{value:.7f}")
name = st.sampled_from(["RevokeBias", "no vm operation", "G1CollectForAllocation", "Cleanup"])
head = st.sampled_from(["", "0.143: ", "[0.030s][info][safepoint    ] ", "2017-03-05T07:46:46.551-0500: 4.097: "])
lines = st.one_of(
    st.builds(
        "{}Total time for which application threads were stopped: {} seconds, Stopping threads took: {} seconds".format,
        head, number, number,
    ),
    st.builds("{}Total time for which application threads were stopped: {} seconds".format, head, number),
    st.builds("{}Entering safepoint region: {}".format, head, name),
    st.builds("{}Application time: {} seconds".format, head, number),
    st.builds(
        '{}Safepoint "{}", Time since last: {} ns, Reaching safepoint: {} ns, At safepoint: 1 ns, Total: {} ns'.format,
        head, name, st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12),
    ),
    st.builds(
        '{0}Safepoint "{1}", Time since last: {2} ns, Reaching safepoint: {2} ns, At safepoint: 1 ns, Total: {2} ns'
        '{0}Safepoint "{3}", Time since last: {4} ns, Reaching safepoint: {4} ns, Total: {4} ns'.format,
        head, name, st.integers(0, 10**12), name, st.integers(0, 10**12),
    ),
    st.builds("{0}Application time: {1} seconds{0}Entering safepoint region: {2}".format, head, number, name),
    st.builds(
        "{0}{1}Total time for which application threads were stopped: {2} seconds, Stopping threads took: {2} seconds".format,
        head, st.sampled_from(["Application time: 0.5 seconds", "Entering safepoint region: Cleanup"]), number,
    ),
    st.builds(
        "{}{}   [   {}   0   1   ]   [  1  2  {}  4  5  ]  0".format, head, name, st.integers(0, 9999), st.integers(0, 99)
    ),
    st.builds(
        "{0}Total time for which application threads were stopped: {1} seconds{0}Total time for which application threads "
        "were stopped: {1} seconds, Stopping threads took: {1} seconds".format,
        head, number,
    ),
    st.sampled_from([
        "", "hello", "Total time for which application threads were stopped: 0.0Total time for which application threads "
        "were stopped: 0.5 seconds", "[gc] GC(5) Pause", "# SafepointSynchronize::begin: Timeout detected:", '# "x" #1 prio=5',
        "# SafepointSynchronize::begin: (End of list)", "took: 0.1 seconds, Stopping threads took: 0.5 seconds",
        'Safepoint "cut', "page_trap_count", "Total time for which application threads were stopped: ", ", Time since last: ",
    ]),
    st.text(max_size=60).map(lambda text: text.replace("\n", " ")),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(lines, max_size=40), st.integers(1, 500))
def test_chunks_and_shortcuts_change_nothing(chosen, size):
    """Reading all at once, in chunks, or line by line gives the same safepoints, sums and unreadable lines."""
    data = "\n".join(chosen).encode("utf-8", "surrogatepass")
    at_once, in_parts = told([data]), told(data[at : at + size] for at in range(0, len(data), size))
    assert alike(at_once, in_parts)
    assert alike(at_once, told([data], by_line=True))


def told(chunks, *, by_line=False, groups=False):
    """What is read from a log: its safepoints, the time between them, unreadable lines, possible releases."""
    log = SafepointLog()
    log._groups = groups
    if by_line:
        log._at_once = lambda *_: None
    rows, gaps_s, gaps = [], 0.0, 0
    for batch in log.read(chunks):
        count = len(batch)
        columns = (batch.stops_s, batch.ttsps_s or [None] * count, batch.operations or [None] * count, batch.heads)
        rows += zip(*columns)
        gaps_s, gaps = gaps_s + batch.application[0], gaps + batch.application[1]
    return gaps_s, rows, gaps, log.jdk_range, log.lines, log.unreadable, log.late_threads


def alike(one, other):
    """The same but for the order in which times were added up."""
    assert one[1:] == other[1:]
    return one[0] == pytest.approx(other[0])


decorated = st.sampled_from(
    [
        "[0.030s][info][safepoint    ] ",
        "[0.03s][info ][safepoint] ",
        "[1s] ",
        "",
        "[ 1s] ",
        "Safepoint [ ",
        "[page_trap_count] ",
    ]
)
usual = st.just("[0.030s][info][safepoint    ] ")
group = st.builds(
    "{0}Application time: {1} seconds\n{0}Entering safepoint region: {2}\n{3}Leaving safepoint region\n"
    "{0}Total time for which application threads were stopped: {4} seconds, Stopping threads took: {5} seconds".format,
    usual | decorated, number, name, usual | decorated, number, number,
)  # fmt: skip
group = group | group.map(lambda text: text.partition("\n")[2])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(group | group | group | lines, min_size=1, max_size=12),
    st.integers(1, 2000),
)
def test_groups_at_once_are_what_their_lines_say(chosen, size):
    """Also their heads, the time between them and what else lies there."""
    data = ("\n".join(chosen) + "\n").encode("utf-8", "surrogatepass")
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert alike(told(chunks, groups=True), told(chunks, by_line=True, groups=True))


@settings(deadline=None)
@given(st.binary(max_size=3000), st.integers(1, 300))
def test_any_bytes_are_read(data, size):
    """Any bytes give safepoints or nothing."""
    read(data, size)


def test_a_line_without_end_is_not_kept_in_memory():
    """Reading it takes bounded time and memory."""
    _, rows = read(b"x [ 1" * 2_000_000, 1 << 16)
    assert rows == []
