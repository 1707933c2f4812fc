"""Pinned carriers, from the records alone."""

from __future__ import annotations

import pytest

from opskit.analysis.jpmp.carriers import Pins, is_pinned, pins, severity
from opskit.collect.jpmp.collect import Facts, Sampled, Schedule
from opskit.jvm.dumps.thread_dump import Stack, Thread, ThreadDump

CARRIER = Stack(("jdk.internal.vm.Continuation.run(C.java:1)",), None, "carrier")
PARKED = (
    "jdk.internal.misc.Unsafe.park(Native Method)",
    "java.lang.VirtualThread.parkOnCarrierThread(V.java:1)",
    "java.lang.Thread.sleep(T.java:1)",
    "com.example.Dao.load(Dao.java:7)",
)


def carrier(number, carries, cpu_ms=0.0, elapsed_s=0.0):
    name = f"ForkJoinPool-1-worker-{number}"
    return Thread(CARRIER, name, 100 + number, number, cpu_ms=cpu_ms, elapsed_s=elapsed_s, mount_id=carries)


def mounted(number, on, frames=PARKED, state=None):
    return Thread(Stack(tuple(frames), state, "mounted"), "", 100 + on, number, mount_id=on)


def dump(*threads):
    return ThreadDump("HotSpot", threads, version="OpenJDK 64-Bit Server VM (21.0.8+9-LTS mixed mode)")


def test_a_carrier_that_keeps_its_thread_and_uses_no_cpu_is_pinned():
    """Saved dumps of JDK 21 have no stack of it: the thread's number is all that is known."""
    dumps = [dump(carrier(1, 40, 5.0, at), carrier(2, 41, 5.0, at)) for at in (1.0, 2.0, 3.0)]
    found = pins(Facts(dumps))
    assert (found.pinned, found.carriers, found.dumps_of_all, found.lasting) == (2, 2, 3, 2)
    assert found.by == (("virtual thread #40", 1), ("virtual thread #41", 1))
    assert severity(found) == "error"


@pytest.mark.parametrize(
    "dumps",
    [
        [dump(carrier(1, 40, 1000.0 * at, at)) for at in (1.0, 2.0, 3.0)],  # it burns CPU
        [dump(carrier(1, 40 + number, 5.0, number)) for number in (1, 2, 3)],  # it moves on
        [dump(carrier(1, 40, 5.0, 1.0)), dump(carrier(1, 40, 5.0, 2.0))],  # two dumps may meet it by chance
        [dump(carrier(1, 40, None, at)) for at in (1.0, 2.0, 3.0)],  # nothing is known of its CPU time
    ],
)
def test_a_carrier_that_works_is_not_pinned(dumps):
    """The same thread for the whole run is normal if it uses CPU time."""
    assert pins(Facts(dumps)) is None


def test_idle_carriers_and_the_scheduler_count():
    """Two pinned of three workers; of eight, where the scheduler may have so many."""
    idle = Thread(
        Stack(("java.util.concurrent.ForkJoinPool.awaitWork(F.java:1)",), "WAITING"), "ForkJoinPool-1-worker-3"
    )
    dumps = [dump(carrier(1, 40), mounted(40, 1), carrier(2, 41), mounted(41, 2), idle)] * 3
    assert pins(Facts(dumps))[:2] == (2, 3)
    live = Sampled(7, 42, "app.jar", Schedule(3))
    live.dumps, live.parallelism = dumps, 8
    found = pins(Facts(dumps, live=live))
    assert found[:3] == (2, 8, (("com.example.Dao.load", 2),))
    assert severity(found) == "note"


def test_a_mounted_thread_that_runs_is_not_pinned():
    """Its leaf does not wait."""
    assert not is_pinned(mounted(1, 2, ("com.example.Spin.run(S.java:1)",)).stack)
    assert is_pinned(mounted(1, 2, ("java.lang.Object.wait0(Native Method)", "com.example.A.b(A.java:1)")).stack)
    assert not is_pinned(Stack(PARKED, "WAITING"))


@pytest.mark.parametrize(
    ("dumps", "of_all", "lasting", "level"),
    [
        (20, 20, 4, "error"),
        (20, 20, 0, "warning"),  # other threads each time
        (20, 10, 0, "warning"),
        (20, 9, 1, "note"),
        (20, 9, 2, "warning"),
        (20, 9, 0, None),
        (2, 2, 4, "note"),
        (1, 0, 1, None),
    ],
)
def test_severity_follows_how_long_and_how_many(dumps, of_all, lasting, level):
    """Of four carriers."""
    assert severity(Pins(4, 4, (("a.B.c", 4),), dumps, of_all, lasting)) == level
