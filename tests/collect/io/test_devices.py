"""What block devices did between two readings of /proc/diskstats, by captured files."""

from __future__ import annotations

import pytest

from opskit.collect.io.devices import devices, read_disks
from opskit.proc.fs import ProcFS

LINE = "8 0 sda {reads} 0 {sectors} {ms} 0 0 0 0 {in_flight} {ms} {ms} 0 0 0 0 0 0\n"


def line(reads=100, sectors=800, ms=500, in_flight=0):
    return LINE.format(reads=reads, sectors=sectors, ms=ms, in_flight=in_flight)


@pytest.fixture
def look(tree):
    """The device after a window of two seconds between two texts."""

    def read(before, after):
        tree({"sys/block/sda/queue/scheduler": "[none]\n", "proc/diskstats": before})
        root = tree({})
        fs = ProcFS(f"{root}/proc", str(root))
        first = read_disks(fs)
        tree({"proc/diskstats": after})
        return devices(fs, first, read_disks(fs), 2.0)[0]

    return read


def test_rates_and_times(look):
    """Requests and bytes a second, the mean time of a request, and how many there were at a time."""
    (found,) = look(line(), line(reads=300, sectors=800 + 2048, ms=1500))
    assert (found.reads, found.read_bytes, found.read_await_s) == (100.0, 524288.0, 0.005)
    assert (found.busy, found.queue, found.scheduler) == (0.5, 0.5, "none")


@pytest.mark.parametrize(("printed", "known"), [(3, 3), (0, 0), (4294967295, 0)])
def test_requests_in_flight(look, printed, known):
    """Linux before 5.0 counts below 0 on some devices, and prints that unsigned."""
    (found,) = look(line(), line(in_flight=printed))
    assert found.in_flight == known


def test_times_that_wrap(look):
    """The kernel prints milliseconds of 32 bits; a device that was added anew has fewer requests than before."""
    (found,) = look(line(ms=(1 << 32) - 500), line(reads=200, ms=500))
    assert (found.read_await_s, found.busy) == (0.01, 0.5)
    assert look(line(), line(reads=5)) == ()
