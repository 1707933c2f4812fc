"""/proc/diskstats of kernels from 2.6 to 6.x."""

from __future__ import annotations

from opskit.proc.files.diskstats import parse_diskstats

NEW = "254 0 vda 100 2 8000 500 10 6 3000 255 1 400 755 5 2 27 4 15 52\n"
OLD = "   8       0 sda 100 2 8000 500 10 6 3000 255 0 400 755\n"


def test_new_and_old_kernels():
    """Discards and flushes are 0 where they are not counted."""
    found = parse_diskstats(NEW + OLD)
    new, old = found["vda"], found["sda"]
    assert (new.reads, new.read_ms, new.writes, new.in_flight, new.busy_ms, new.flushes, new.flush_ms) == (
        100,
        500,
        10,
        1,
        400,
        15,
        52,
    )
    assert (new.finished, old.finished, old.flushes) == (130, 110, 0)


def test_lines_that_are_cut_or_no_numbers():
    """They are left out."""
    assert parse_diskstats("8 0 sda 1 2\n8 1 sdb x" + " 1" * 11 + "\n") == {}


def test_what_was_added():
    """Times wrap at 32 bits; a device that was added anew has no past."""
    then = parse_diskstats(NEW.replace(" 500 ", f" {2**32 - 100} "))["vda"]
    now = parse_diskstats(NEW.replace("vda 100", "vda 150").replace(" 500 ", " 400 "))["vda"]
    added = now.since(then)
    assert (added.reads, added.read_ms, added.writes, added.in_flight) == (50, 500, 0, 1)
    assert then.since(now) is None
    assert now.since(then._replace(minor=16)) is None
