"""What was measured, divided by the switches that were counted; its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.cswitch.bench import SERVERS, judge
from opskit.collect.cswitch.bench import NOT_PINNED, ONE_CPU, OTHER_SOCKET, SAME_SOCKET, Calls, Facts, Figure, Pairing
from opskit.proc.cpu_topology import Cache
from opskit.proc.files.cpuinfo import CpuInfo

ONE, CORES, ANY = Pairing(ONE_CPU, (0,)), Pairing(SAME_SOCKET, (0, 1)), Pairing(NOT_PINNED, ())
L1, L1I = Cache(1, "Data", 32 << 10, frozenset({0})), Cache(1, "Instruction", 1 << 30, frozenset({0}))
L2, L3 = Cache(2, "Unified", 1 << 20, frozenset({0})), Cache(3, "Unified", 8 << 20, frozenset({0, 1}))
CALLS = Calls((0,), 120.0, 130.0, 0.04)


def figure(pairing=ONE, size=0, trip=5000.0, own=600.0, round_trips=1000, switches=2000):
    """Its medians are a tenth longer."""
    return Figure(pairing, size, (trip, trip * 1.1), (own, own * 1.1), round_trips, switches, 0.4)


def facts(*figures, calls=CALLS, failed=(), interrupted=False, model="AMD EPYC", is_virtual=True):
    """Of a machine with three levels of caches."""
    return Facts(calls, figures, CpuInfo(model, False), (L1, L1I, L2, L3), failed, interrupted, is_virtual)


def test_the_division():
    """(A round trip - the same calls twice) / counted switches of a round trip."""
    _, row = judge(facts(figure(trip=5000, own=600, switches=2000))).rows
    assert row.least_ns == pytest.approx((5000 - 1200) / 2)
    _, row = judge(facts(figure(trip=5000, own=600, switches=5000))).rows
    assert (row.least_ns, row.per_trip) == (pytest.approx((5000 - 1200) / 5), 5)
    assert row.median_ns == pytest.approx(row.least_ns * 1.1)


@given(st.floats(1, 1e9), st.floats(1, 1e9), st.integers(1, 10**6), st.integers(0, 10**7))
def test_never_negative(trip, own, round_trips, switches):
    """A figure is above zero, or unknown."""
    _, row = judge(facts(figure(trip=trip, own=own, round_trips=round_trips, switches=switches))).rows
    assert row.least_ns is None or 0 < row.least_ns <= row.median_ns * (1 + 1e-9)
    assert (row.least_ns is None) == (not switches or trip <= 2 * own)


def test_what_cannot_be_measured_is_said():
    """Instead of a number."""
    result = judge(facts(figure(trip=1000, own=600), figure(CORES, 65536, switches=0)))
    assert [row.least_ns for row in result.rows[1:]] == [None, None]
    assert result.notes[-2:] == (
        "Not measurable: switch on one CPU (CPU 0): it is lost in the time that the calls alone take.",
        "Not measurable: switch between cores of one socket (CPU 0-1, 64 KiB): no switch was counted.",
    )
    assert result.verdict == ("A system call costs 120 ns on this machine.",)


def test_what_failed_is_said():
    """With its cause, system calls too."""
    failed = ((None, 0, "Operation not permitted"), (CORES, 1 << 20, "Invalid argument"))
    result = judge(facts(figure(), calls=None, failed=failed))
    assert result.notes[-2:] == (
        "Not measured: system call: Operation not permitted.",
        "Not measured: switch between cores of one socket (CPU 0-1, 1 MiB): Invalid argument.",
    )
    assert result.verdict[0] == "A process switch on one CPU costs 1.9 us on this machine."
    assert result.servers[0].call_ns is None


def test_the_sentences():
    """Switches, system calls, pairs of CPUs, what a rate of switches costs, what memory adds."""
    result = judge(
        facts(
            figure(),
            figure(size=1 << 20, trip=60_000, own=10_000),
            figure(CORES, trip=41_200),
            figure(CORES, 1 << 20, trip=400_000),
            figure(ANY, trip=21_200),
        )
    )
    assert result.verdict == (
        "A process switch on one CPU costs 1.9 us, a system call 120 ns on this machine.",
        "Between cores of one socket 20 us, without pinning 10 us.",
        "10,000 switches a second on one CPU take 1.9 % of it.",
        "Where each process writes 1 MiB in between, a switch on one CPU costs 20 us: their memory replaces each other's in the caches.",
    )
    assert "idle virtual CPU" in result.notes[2]
    assert "not measurable from Python" in result.notes[0]


def test_a_machine_of_two_sockets():
    """The first sentence is about what was measured."""
    result = judge(facts(figure(Pairing(OTHER_SOCKET, (0, 4)), trip=9200), is_virtual=False))
    assert result.verdict == (
        "A process switch between two sockets costs 4.0 us, a system call 120 ns on this machine.",
    )
    assert result.notes[2] == "Two CPUs: with the time until the idle CPU has woken up."


@pytest.mark.parametrize(
    ("pairing", "size", "cache"),
    [
        (ONE, 0, None), (ONE, 16 << 10, "L1"), (ONE, 32 << 10, "L2"), (ONE, 1 << 20, "L3"), (ONE, 16 << 20, None),
        (CORES, 32 << 10, "L1"), (CORES, 1 << 20, "L2"), (CORES, 4 << 20, "L3"), (CORES, 8 << 20, None), (ANY, 4096, None),
    ],
)  # fmt: skip
def test_the_cache_that_holds_both(pairing, size, cache):
    """On one CPU both processes share each cache, on two those of both; of an instruction cache nothing."""
    assert judge(facts(figure(pairing, size))).rows[1].cache == cache


def test_this_machine_stands_before_the_others():
    """With the same columns; threads are not measured."""
    result = judge(facts(figure(), figure(ONE, 1 << 20, trip=99_000), figure(ANY, trip=21_200)))
    assert result.servers[0] == ("this machine (AMD EPYC, virtual)", 120.0, 1900.0, None, 10_000.0)
    assert result.servers[1:] == SERVERS
    assert judge(facts(model=None)).servers[0].cpu == "this machine (virtual)"
    assert judge(facts(model=None, is_virtual=False)).servers[0].cpu == "this machine"


def test_interrupted():
    """What there is so far; without any figure too."""
    assert judge(facts(figure(), interrupted=True)).verdict[0] == "Interrupted: 2 figures measured."
    empty = judge(facts(calls=None, interrupted=True))
    assert (empty.rows, empty.verdict) == ((), ("Interrupted: 0 figures measured.",))
