"""perf-PID.map: lines of symbols, which the program may write as it likes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from opskit.proc.fs import ProcFS
from opskit.proc.unwind.perf_map import PerfMap, parse_perf_map


@pytest.fixture
def ours():
    """The path of this process's map, removed at the end."""
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    path.unlink(missing_ok=True)
    yield path
    path.unlink(missing_ok=True)


def test_only_what_is_new_is_read(ours):
    """Complete lines that were added; all of a file that was written anew, or replaced; nothing of one that is gone."""
    symbols = PerfMap(ProcFS(), os.getpid())
    assert not symbols.refresh()
    ours.write_text("1000 10 first\n2000 10 sec")
    assert symbols.refresh()
    assert not symbols.refresh()
    assert [symbols.name(at) for at in (0xFFF, 0x1000, 0x100F, 0x1010, 0x2000)] == [None, "first", "first", None, None]
    with ours.open("a") as file:
        file.write("ond\n1008 4 inside\n")
    assert symbols.refresh()
    assert [symbols.name(at) for at in (0x1000, 0x1008, 0x100C, 0x2000)] == ["first", "inside", "first", "second"]
    ours.unlink()
    ours.write_text("3000 10 another process with this PID wrote a longer file\n")
    assert symbols.refresh()
    assert [symbols.name(at) for at in (0x1000, 0x3000)] == [None, "another process with this PID wrote a longer file"]
    ours.unlink()
    assert symbols.refresh()
    assert symbols.name(0x3000) is None


def test_a_map_that_someone_else_wrote_is_not_read(ours):
    """Every user may write to /tmp: the owner is root or the process's user, and a link or FIFO is not opened."""
    ours.symlink_to("/etc/passwd")
    symbols = PerfMap(ProcFS(), os.getpid())
    symbols.refresh()
    assert symbols._entries == {}
    ours.unlink()
    os.mkfifo(ours)
    symbols.refresh()
    assert symbols._entries == {}
    if os.geteuid() == 0:
        ours.unlink()
        ours.write_text("1000 10 foreign\n")
        os.chown(ours, 65534, 65534)
        symbols.refresh()
        assert symbols.name(0x1000) is None
        os.chown(ours, 0, 0)
        symbols.refresh()
        assert symbols.name(0x1000) == "foreign"


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
