"""Weighted stacks as lines of a terminal."""

from __future__ import annotations

import pytest

from opskit.jvm.profiles import WeightedStack
from opskit.render.views.jpmp.sentences import hottest
from opskit.render.views.jpmp.stack_listing import chosen, stack_listing

PARKED = (
    "jdk.internal.misc.Unsafe.park",
    "java.util.concurrent.locks.LockSupport.park",
    "java.util.concurrent.Semaphore.acquire",
    "shop.Limiter.enter",
    "shop.Api.serve",
    "java.lang.Thread.run",
)


@pytest.mark.parametrize(
    ("most", "lines"),
    [
        (9, [*PARKED]),
        (6, [*PARKED]),
        (5, [PARKED[0], "… 2 frames of the JDK", *PARKED[3:5], "… 1 more frame; --depth 6 shows all"]),
        (4, [PARKED[0], "… 2 frames of the JDK", PARKED[3], "… 2 more frames; --depth 6 shows all"]),
        (1, [PARKED[0]]),
        (0, [PARKED[0]]),
    ],
)
def test_where_there_is_little_room_the_frames_of_the_jdk_are_left_out(most, lines):
    """The leaf says what the thread does, the application's frames who asked for it; the rest is counted."""
    assert chosen(PARKED, PARKED, most) == lines


def test_a_stack_of_the_application_is_cut_at_its_root():
    """Its leaf and the frames next to it are kept."""
    frames = [f"shop.Tree.level{number}" for number in range(9)]
    assert chosen(frames, frames, 4) == [*frames[:3], "… 6 more frames; --depth 9 shows all"]


@pytest.mark.parametrize(
    ("stack", "shows", "head"),
    [
        (WeightedStack(PARKED, "WAITING", 30, 0.2, pools={"api-*": 10}), {}, "30 samples (30.0 %)  WAITING  api-* (10)"),
        (WeightedStack(PARKED, "RUNNABLE", 1, 50.0, pools={"burn": 1}), {}, "1 sample (1.0 %), 50 ms of CPU (50.0 %)  RUNNABLE  burn"),
        (WeightedStack(PARKED, None, 1, 50.0), {"by": "cpu_ms"}, "50 ms of CPU (50.0 %), 1 sample (1.0 %)"),
        (WeightedStack((*PARKED, "api-7"), "WAITING", 1, pools={"api-*": 1}), {"rooted": True}, "1 sample (1.0 %)  WAITING  api-7"),
        (WeightedStack(PARKED, "WAITING", 5, pools={"": 5}, container="<root>"), {}, "5 samples (5.0 %)  WAITING  5 in <root>"),
        (WeightedStack(PARKED, "BLOCKED", 2, pools={"a": 1}, deadlocked=True), {}, "2 samples (2.0 %)  DEADLOCK  a"),
    ],
)  # fmt: skip
def test_the_weight_and_the_threads_stand_before_the_stack(stack, shows, head):
    """CPU time only where there is some, or where it is the weight; with a thread as root frame, its name."""
    everything = [WeightedStack((), None, 100, 100.0)]
    listing = stack_listing(everything, **{"full_names": False, "whole": True, "rooted": False, **shows})
    lines = listing.lines(stack, 0, 80)
    assert lines[0] == head
    assert lines[1:4] == [
        "  jdk.internal.misc.Unsafe.park",
        "  j.util.concurrent.locks.LockSupport.park",
        "  j.util.concurrent.Semaphore.acquire",
    ]
    assert len(lines) == 7


def test_no_line_counts_nothing():
    """Where the frames from the application on fit, all of them are shown."""
    frames = ("java.io.A.read", *(f"java.io.B{number}.read" for number in range(4)), "shop.Api.serve", "shop.Api.run")
    assert chosen(frames, frames, 5) == [frames[0], "… 4 frames of the JDK", *frames[5:]]


def test_natives_that_dumps_show_too_often_are_marked():
    """With --on-cpu only: threads stop at their return. Other units than samples are named."""
    writes = WeightedStack(
        ("sun.nio.ch.SocketDispatcher.writev0", "shop.Api.serve"), "RUNNABLE", 4096, 50.0, off_cpu_ms=7.0
    )

    def lines(**shows):
        listing = stack_listing([writes], **{"full_names": False, "whole": True, "rooted": False, **shows})
        return listing.lines(writes, 9, None)

    assert (
        lines(by="cpu_ms")[1] == "  sun.nio.ch.SocketDispatcher.writev0  (seen too often: threads stop at its return)"
    )
    assert lines()[1] == "  sun.nio.ch.SocketDispatcher.writev0"
    assert lines(by="off_cpu_ms")[0] == "7 ms off CPU (100.0 %), 4,096 samples (100.0 %)  RUNNABLE"
    assert lines(counted="bytes")[0] == "4,096 bytes (100.0 %), 50 ms of CPU (100.0 %)  RUNNABLE"
    assert "it is seen too often: threads stop at its return" in hottest([writes])
    assert "seen too often" not in hottest([WeightedStack(("shop.Api.serve",), samples=1, cpu_ms=3.0)])
