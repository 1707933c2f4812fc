"""Frames and thread names as people read them."""

from __future__ import annotations

import pytest

from opskit.analysis.jpmp.frames import frame_name, pool_of, short, vm_frame


@pytest.mark.parametrize(
    ("frame", "name", "with_line"),
    [
        ("java.lang.Thread.run(java.base@17.0.15/Thread.java:840)", "java.lang.Thread.run", "(Thread.java:840)"),
        ("java.base@17/java.lang.Thread.run(Thread.java:840)", "java.lang.Thread.run", "(Thread.java:840)"),
        ("app//com.example.Foo.bar(Foo.java:1)", "com.example.Foo.bar", "(Foo.java:1)"),
        ("app/shop@1.2/com.example.Foo.bar(Foo.java:1)", "com.example.Foo.bar", "(Foo.java:1)"),
        ("a.B$$Lambda$14/0x0000000800c03000.run(Unknown Source)", "a.B$$Lambda.run", "(Unknown Source)"),
        ("a.B$$Lambda/0x00003800010ff800.run(java.base@25/Unknown Source)", "a.B$$Lambda.run", "(Unknown Source)"),
        ("a.B$$Lambda$1/791452441.run(Unknown Source)", "a.B$$Lambda.run", "(Unknown Source)"),
        ("a.Made/0x0000000800c03000.run(Made.java)", "a.Made.run", "(Made.java)"),
        ("a.B.no place", "a.B.no place", ""),
        ("a.B.it works (really)(B.kt:3)", "a.B.it works (really)", "(B.kt:3)"),
    ],
)
def test_frame_names(frame, name, with_line):
    """Module, loader and numbers that change with every start are dropped; the line is shown only with `lines`."""
    assert frame_name(frame) == name
    assert frame_name(frame, lines=True) == name + with_line


def test_full_names_are_as_they_are():
    """--full-names."""
    assert (
        frame_name("a.B$$Lambda$14/0x0000000800c03000.run(X.java:1)", full=True)
        == "a.B$$Lambda$14/0x0000000800c03000.run"
    )
    assert (
        frame_name("java.base@17/java.lang.Thread.run(Thread.java:840)", full=True)
        == "java.base@17/java.lang.Thread.run"
    )


def test_a_leading_java_is_cut():
    """As sub(/^java/, "j") has it, javax too."""
    assert short("java.lang.Thread.run") == "j.lang.Thread.run"
    assert short("javax.swing.Timer.run") == "jx.swing.Timer.run"
    assert short("com.java.X.y") == "com.java.X.y"


@pytest.mark.parametrize(
    ("thread", "pool"),
    [
        ("pool-1-thread-17", "pool-1-thread-*"),
        ("http-nio-8080-exec-12", "http-nio-8080-exec-*"),
        ("ForkJoinPool.commonPool-worker-7", "ForkJoinPool.commonPool-worker-*"),
        ("C2 CompilerThread0", "C2 CompilerThread*"),
        ("GC Thread#3", "GC Thread#*"),
        ("GC task thread#0 (ParallelGC)", "GC task thread#* (ParallelGC)"),
        ("Thread-8 (HornetQ-client-global-threads-168)", "Thread-* (HornetQ-client-global-threads-168)"),
        (
            "[ACTIVE] ExecuteThread: '6' for queue: 'x (self-tuning)'",
            "[ACTIVE] ExecuteThread: '*' for queue: 'x (self-tuning)'",
        ),
        ("kafka-producer-network-thread | producer-1", "kafka-producer-network-thread | producer-*"),
        ("G1 Main Marker", "G1 Main Marker"),
        ("main", "main"),
        ("", ""),
    ],
)
def test_pools(thread, pool):
    """Only the number that distinguishes the threads of a pool is replaced."""
    assert pool_of(thread) == pool


@pytest.mark.parametrize(
    ("thread", "frame"),
    [
        ("GC Thread#3", "[GC Thread]"),
        ("C2 CompilerThread0", "[C2 CompilerThread]"),
        ("GC task thread#0 (ParallelGC)", "[GC task thread (ParallelGC)]"),
        ("VM Thread", "[VM Thread]"),
    ],
)
def test_threads_of_the_vm(thread, frame):
    """Their names in profiles by CPU time."""
    assert vm_frame(thread) == frame
