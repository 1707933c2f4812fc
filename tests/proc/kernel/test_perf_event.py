"""Events of the kernel: opened, counted, read out of their ring."""

from __future__ import annotations

import os
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.proc.kernel import perf_event as perf


@pytest.fixture
def clock(root_only):
    """A function that opens a CPU clock of this thread, as a sampling event; gives its fd and its ring."""
    opened = []

    def start(period_ns, pages):
        attr = perf.Attr(perf.SOFTWARE, perf.CPU_CLOCK, period_ns, perf.TID | perf.TIME, flags=perf.DISABLED)
        try:
            fd = perf.open_event(attr, 0, -1)
        except OSError as error:
            pytest.skip(f"no perf events here: {error}")
        ring = perf.Ring(fd, pages)
        opened.append((fd, ring))
        perf.control(fd, perf.ENABLE)
        return fd, ring

    yield start
    for fd, ring in opened:
        ring.close()
        os.close(fd)


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_samples_of_our_own_thread(clock):
    """Each record is a sample of this thread; the count goes on with the time; none comes once it rests."""
    fd, ring = clock(1_000_000, 8)
    burn(0.1)
    perf.control(fd, perf.DISABLE)
    samples = list(perf.records(ring.read()))
    assert len(samples) > 20
    for kind, _, body in samples:
        assert kind == perf.RECORD_SAMPLE
        pid, tid, _ = struct.unpack("=IIQ", body)
        assert (pid, tid) == (os.getpid(), os.getpid())
    assert perf.count(fd) > 50_000_000
    burn(0.02)
    assert ring.read() == b""


def test_a_ring_goes_round(clock):
    """Read in pieces, more than it holds altogether: no record is cut, and none comes twice."""
    _, ring = clock(100_000, 1)
    seen = []
    while len(seen) < 3 * ring.size_bytes // 24:
        burn(0.005)
        for kind, _, body in perf.records(ring.read()):
            if kind == perf.RECORD_SAMPLE:
                seen.append(struct.unpack("=IIQ", body)[2])
    assert seen == sorted(set(seen))


def test_what_a_full_ring_has_no_room_for_is_counted(clock):
    """RECORD_LOST says how many."""
    _, ring = clock(100_000, 1)
    burn(0.1)
    whole = list(perf.records(ring.read()))
    assert {kind for kind, _, _ in whole} == {perf.RECORD_SAMPLE}
    burn(0.02)
    kinds = [(kind, body) for kind, _, body in perf.records(ring.read())]
    assert kinds[0][0] == perf.RECORD_LOST
    assert struct.unpack("=QQ", kinds[0][1][:16])[1] > 0


def test_refusals_are_oserrors():
    """A type that no kernel knows; a thread that is not there."""
    with pytest.raises(OSError, match=r"Invalid argument|No such file|Operation not permitted|Permission denied"):
        perf.open_event(perf.Attr(0x7FFFFFFF, 0), 0, -1)
    with pytest.raises(OSError, match=r"No such process|Operation not permitted|Permission denied"):
        perf.open_event(perf.Attr(perf.SOFTWARE, perf.DUMMY, flags=perf.EXCLUDE_KERNEL), 4_194_304, -1)


def test_an_event_ends_with_its_process(root_only):
    """The fd is not inherited over exec, and the attr has the size that its own field says."""
    attr = perf.Attr(perf.SOFTWARE, perf.DUMMY)
    assert struct.unpack_from("=II", attr.pack()) == (perf.SOFTWARE, len(attr.pack()))
    try:
        fd = perf.open_event(attr, 0, -1)
    except OSError as error:
        pytest.skip(f"no perf events here: {error}")
    try:
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)


@given(st.binary(max_size=200))
def test_any_bytes_end(data):
    """Each step goes forward: reading garbage ends, and not past the end."""
    assert sum(8 + len(body) for _, _, body in perf.records(data + bytes(-len(data) % 8))) <= len(data) + 8
