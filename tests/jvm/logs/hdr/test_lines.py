"""Lines of logs: their times, tags and headers, and those that cannot be used."""

from __future__ import annotations

import pytest
from hdrlogs import BEGIN_S, header, histogram, line

from opskit.jvm.logs.hdr.lines import Bad, Log

ONE = histogram([0, 1])


def read(data, size=1 << 16):
    """What a log has, which comes in chunks."""
    return list(Log("a.hdr").read(data[at : at + size] for at in range(0, len(data), size)))


def times(data):
    """Whether dated, begin, since the start."""
    return [(each.dated, round(each.begin_s, 3), round(each.since_start_s, 3)) for each in read(data)]


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 16])
def test_chunks(size):
    """Chunks may end anywhere; a line keeps its end, CR LF too."""
    lines = [line(ONE, 1), line(ONE, 2, tag="B-rt").replace(b"\n", b"\r\n"), line(ONE, 3)]
    found = read(header() + b"".join(lines), size)
    assert [(each.number, each.tag, each.line) for each in found] == [
        (number, tag, text) for number, tag, text in zip((4, 5, 6), (None, "B-rt", None), lines)
    ]


def test_times_count_from_the_start():
    """Without BaseTime, times more than a year before StartTime count from it."""
    assert times(header() + line(ONE, 0.5)) == [(True, 1700000000.627, 0.5)]


def test_absolute_times():
    """Without BaseTime, times near StartTime are absolute."""
    assert times(header() + line(ONE, BEGIN_S + 2)) == [(True, 1700000002.127, 2.0)]


def test_base_time():
    """BaseTime is added, whatever StartTime is."""
    data = header(start_s=BEGIN_S + 10, base_s=BEGIN_S) + line(ONE, 12)
    assert times(data) == [(True, 1700000012.127, 2.0)]


def test_base_time_only():
    """The first interval is the start then."""
    data = header(start_s=None, base_s=BEGIN_S) + line(ONE, 12) + line(ONE, 13)
    assert times(data) == [(True, 1700000012.127, 0.0), (True, 1700000013.127, 1.0)]


def test_absolute_times_without_a_header():
    """Each line has its date."""
    assert times(line(ONE, BEGIN_S) + line(ONE, BEGIN_S + 1)) == [(True, BEGIN_S, 0.0), (True, BEGIN_S + 1, 1.0)]


def test_no_date_anywhere():
    """Times are those of the log."""
    assert times(line(ONE, 3) + line(ONE, 4)) == [(False, 3.0, 3.0), (False, 4.0, 4.0)]


def test_several_start_times():
    """A program that was started again appends to its log: each StartTime holds from there on."""
    data = header() + line(ONE, 1) + header(BEGIN_S + 100) + line(ONE, 1)
    assert times(data) == [(True, 1700000001.127, 1.0), (True, 1700000101.127, 1.0)]


def test_header_for_a_split():
    """The lines before the first interval; of later ones those that the intervals need, the last of each kind. The same object between them."""
    first, second, third = read(
        b"#[Logged with jHiccup]\n"
        + header()
        + line(ONE, 1)
        + b"# note\n"
        + line(ONE, 2)
        + header(BEGIN_S + 100)
        + line(ONE, 1)
    )
    legend = header().splitlines(keepends=True)[-1]
    assert b"".join(first.header) == b"#[Logged with jHiccup]\n" + header()
    assert second.header is first.header
    assert third.header == (*first.header[:2], legend, header(BEGIN_S + 100).splitlines(keepends=True)[1])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"garbage\n", "the line has 0 commas where a log has at least 3"),
        (b"Tag=A,1,2\n", "the line has 2 commas where a log has at least 3"),
        (b"x,1,2," + ONE + b"\n", "the time of the interval is not a number of seconds: 'x'"),
        (b"1,-1,2," + ONE + b"\n", "the length of the interval is not a number of seconds: '-1'"),
        (b"1e5,1,2," + ONE + b"\n", "the time of the interval is not a number of seconds: '1e5'"),
        (b"1,1,x," + ONE + b"\n", "the highest value of the interval is not a number: 'x'"),
        (b"1,1,1,!!!!\n", "the histogram is not base64"),
        (b"Tag=" + b"x" * 2000 + b",1,1,1," + ONE + b"\n", "the tag has 2,000 bytes; at most 1,000 are read"),
        (b"1,1,1," + b"A" * (5 << 20) + b"\n", "the line is longer than 4 MiB"),
    ],
)
def test_a_bad_line_costs_itself_only(text, why):
    """It has its number and reason, and the lines around it count."""
    before, bad, after = read(line(ONE, 1) + text + line(ONE, 2))
    assert bad == Bad(2, why)
    assert (before.number, after.number) == (1, 3)


def test_last_line_of_a_live_log():
    """A last line without an end is used where it is whole, else it is cut, not bad."""
    whole = line(histogram(list(range(99))), 1)
    assert [each.number for each in read(whole + whole[:-1])] == [1, 2]
    for end in (10, 60, len(whole) - 6):
        _, cut = read(whole + whole[:end])
        assert (cut.number, cut.cut) == (2, True)


def test_what_else_stands_in_a_line():
    """NaN as the highest value, more columns, blank lines and a tag that is not UTF-8."""
    found = read(b"\n  \n1,1,NaN," + ONE + b",more\nTag=\xff,1,1,1.5E300," + ONE + b"\n")
    assert [(each.number, each.tag, each.most) for each in found] == [(3, None, None), (4, "\udcff", None)]
