"""perf-PID.map: lines of symbols, which the program may write as it likes."""

from __future__ import annotations

import time

from opskit.proc.unwind.perf_map import parse_perf_map


def test_lines_that_are_no_symbols_are_skipped():
    """Hexadecimal start and size, then a name with blanks; 0x is allowed; the last line of a start counts."""
    found = parse_perf_map(
        b"1000 10 a b\n0x2000 0x20 c\n\n3000\n4000 0 empty\n5000 5\nxyz 5 d\n-1 5 e\n1000 8 newer\n6000 5 \xff\n"
    )
    assert found == {0x1000: (0x1008, 8, "newer"), 0x2000: (0x2020, 1, "c"), 0x6000: (0x6005, 9, "\ufffd")}


def test_hostile_maps_take_no_long_time():
    """A line of 8 MiB, 200,000 lines, no line at all."""
    begin = time.process_time()
    assert len(parse_perf_map(b"1000 10 " + b"x" * (8 << 20))[0x1000][2]) < 1100
    assert len(parse_perf_map(b"".join(b"%x 10 f\n" % number for number in range(200_000)))) == 200_000
    assert parse_perf_map(b"") == parse_perf_map(b"\0" * 1000) == {}
    assert time.process_time() - begin < 3
