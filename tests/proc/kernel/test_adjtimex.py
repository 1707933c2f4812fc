"""The kernel's clock as it is here, beside what other programs read of it."""

from __future__ import annotations

import time

import pytest

from opskit.proc.kernel import adjtimex
from opskit.proc.kernel.adjtimex import DELETE, INSERT, KernelClock, read_kernel_clock
from opskit.proc.kernel.clock_reads import read_cost, read_pair


def test_the_state_of_this_machine():
    """The state belongs to the flag; the time is only read."""
    found = read_kernel_clock()
    assert found.state in adjtimex.STATES
    assert found.is_synchronised == ("UNSYNC" not in found.flags)
    assert found.most_error_s >= 0
    assert abs(found.rate_ppm) < 100_000


def test_it_is_what_the_c_library_reads():
    """adjtimex(8) of util-linux is seldom installed: ntptime's own values by another layout of the structure."""
    import ctypes
    import struct

    buffer = ctypes.create_string_buffer(bytes(208), 208)
    state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    names = ("offset", "freq", "maxerror", "esterror")
    offset, freq, most, estimated = struct.unpack_from("@4l", buffer.raw, 8)
    assert len(names) == 4
    found = read_kernel_clock()
    assert found.state == adjtimex.STATES[state]
    assert found.most_error_s == pytest.approx(most / 1e6, abs=0.1)
    assert found.estimated_error_s == pytest.approx(estimated / 1e6, abs=0.1)
    tick = struct.unpack_from("@l", buffer.raw, 8 + 4 * 8 + 8 + 3 * 8 + 2 * 8)[0]
    assert found.rate_ppm == pytest.approx(freq / 65536 + (tick - 10000) * 100)
    assert abs(offset) < 1e9


@pytest.mark.parametrize(("status", "leap"), [(0, None), (INSERT, "inserted"), (DELETE, "deleted"), (0x2001, None)])
def test_leap_seconds(status, leap):
    """INS and DEL."""
    assert KernelClock("TIME_OK", status, 0.0, 0.0, 0.0, 0.0, 37).leap == leap


def test_the_flags_have_names():
    """As in adjtimex(2), without STA_."""
    assert KernelClock("TIME_ERROR", 0x2041, 0.0, 16.0, 16.0, 0.0, 0).flags == ("PLL", "UNSYNC", "NANO")


def test_two_reads_of_a_clock_that_nobody_sets():
    """REALTIME against BOOTTIME stays as it is; the bracket is narrow."""
    for _ in range(20):
        one, other = read_pair(), read_pair()
        if abs(other.real_ns - one.real_ns) <= 1000 + one.width_ns + other.width_ns:
            break
    else:
        pytest.fail(f"{one} {other}")
    assert one.at_s <= other.at_s <= time.monotonic()
    assert one.real_ns == pytest.approx(time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME), abs=10**9)


def test_the_cost_of_a_read():
    """Of a call of nanoseconds, without the cost of Python."""
    found = read_cost()
    assert 0 <= found.read_ns < 100_000
    assert 1 < found.syscall_ns < 100_000
