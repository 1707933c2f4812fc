"""When something was logged: every decoration of every release, and the text around dumps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.jvm.logs.timestamps import UNSTAMPED, Stamp, first_stamp, parse_stamp, read_stamp, uptimes_s


@pytest.mark.parametrize(
    ("head", "text", "time_s", "uptime_s"),
    [
        (b"4.097: ", "", None, 4.097),
        (b"366,174: ", "", None, 366.174),
        (b"     * 515966.562: ", "", None, 515966.562),
        (b"2017-03-05T07:46:46.551-0500: 4.097: ", "2017-03-05T07:46:46.551-0500", 1488718006.551, 4.097),
        (b"2015-02-16T18:06:57.285+0100: 366,174: ", "2015-02-16T18:06:57.285+0100", 1424106417.285, 366.174),
        (b"[2022-01-29T16:34:51.655+0000][246ms][info]", "2022-01-29T16:34:51.655+0000", 1643474091.655, 0.246),
        (b"[0.125s] ", "", None, 0.125),
        (b"[1643474091655ms][246ms][info ]", "2022-01-29T16:34:51.655+0000", 1643474091.655, 0.246),
        (b"[1643474091655ms]", "2022-01-29T16:34:51.655+0000", 1643474091.655, None),
        (b"[880012345678901ns][246000000ns][host][4242][4243][info]", "", None, 0.246),
        (b"Jan 31 10:00:00 web1 app[99]: [12.5s][info][safepoint] ", "", None, 12.5),
        (b'{"log":"4.097: ', "", None, 4.097),
        (b"gc.log:4.097: ", "", None, 4.097),
        (b"12:4.097: ", "", None, 4.097),
        (b"10:05:46.551: ", "", None, None),
        (b'{"log":"[0.125s][info][safepoint] ', "", None, 0.125),
        (b"2021-01-01T00:00:00.5Z stdout F [0.125s] ", "2021-01-01T00:00:00.5Z", 1609459200.5, 0.125),
        (b"[13548][info ][safepoint   ] ", "", None, None),
        (b"", "", None, None),
    ],
)
def test_every_decoration_gives_its_clock(head, text, time_s, uptime_s):
    """The date as the log has it, its moment, and the uptime; each None where it is unknown."""
    stamp = parse_stamp(head)
    assert stamp.text == text
    assert stamp.time_s == (None if time_s is None else pytest.approx(time_s, abs=1e-6))
    assert stamp.uptime_s == uptime_s


def test_a_date_that_is_none_is_no_stamp():
    """The 31st of February is not rolled over into March."""
    assert parse_stamp(b"2017-02-31T07:46:46.551-0500: 4.097: ").time_s is None


def test_local_time_leaves_the_zone_out():
    """`local_s` is the local time of the stamp."""
    stamp = parse_stamp(b"2017-03-05T07:46:46.000-0500: ")
    assert stamp.time_s - stamp.local_s == 5 * 3600


def test_the_first_stamp_of_a_log_is_that_of_its_first_stamped_line():
    """Lines of the application before it do not matter."""
    assert first_stamp(b"hello\n1.500: x\n2.500: y\n").uptime_s == 1.5
    assert first_stamp(b"hello\n") is UNSTAMPED


@given(
    st.lists(st.floats(0, 1e6).map(lambda value: round(value, 3)), min_size=1, max_size=50),
    st.sampled_from(["", "[7]"]),
)
def test_uptimes_of_many_are_those_of_each(values, before):
    """Reading by a common shape gives the same as reading one by one, with any prefix of any width."""
    heads = [f"{before * (number % 3)}[{value:.3f}s][info] ".encode() for number, value in enumerate(values)]
    assert uptimes_s(heads) == [parse_stamp(head).uptime_s for head in heads]
    legacy = [f"{' *' * (number % 2)} {value:.3f}: ".encode() for number, value in enumerate(values)]
    assert uptimes_s(legacy) == [parse_stamp(head).uptime_s for head in legacy]


@pytest.mark.parametrize(("context", "stamp"), [
    ("2016-09-13T06:54:06.773+0100: 11662.232: [Full GC 11662.233: [Class Histogram:\n", Stamp(1473746046.773, 11662.233)),
    ("46.4488813 secs]11747.379: [Class Histogram\n", Stamp(None, 11747.379)),
    ("[2026-11-21T11:13:38.276+0000][0.117s][trace][gc,classhisto      ] GC(0) ", Stamp(1795259618.276, 0.117)),
    ("Sat Nov 21 11:04:11 UTC 2026\n", Stamp(1795259051.0)),
    ("$ jmap -histo:live 88951 | head -n 20\n", Stamp(None, None, 88951)),
    ("17590:\n", Stamp(None, None, 17590)),
    ("histogram-4242-20261121T111338.276Z.txt", Stamp(1795259618.276)),
    ("2024-02-31 12:00:00\n", Stamp()),
    ("nothing at all", Stamp()),
])  # fmt: skip
def test_stamps(context, stamp):
    """GC logs of both kinds, date(1), command lines, file names; None where a value is unknown."""
    found = read_stamp(context)
    assert found == stamp._replace(local_s=found.local_s, text=found.text)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(data):
    """Any bytes before a line are accepted."""
    parse_stamp(data)
    read_stamp(data.decode("utf-8", "surrogateescape"))
    assert len(uptimes_s([data, data])) in (0, 2)
