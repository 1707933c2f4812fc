"""Locks of virtual threads beside those of ordinary dumps, from the records alone."""

from __future__ import annotations

from opskit.analysis.jpmp.judge import judge_locks
from opskit.analysis.jpmp.locks import contention
from opskit.analysis.jpmp.stacks import Naming
from opskit.analysis.jpmp.virtual_waits import waits_by_stack, with_virtual
from opskit.collect.jpmp.collect import Facts
from opskit.jvm.dumps.thread_dump import Lock, Stack, Thread, ThreadDump

SYNC = "java.util.concurrent.locks.ReentrantLock$NonfairSync"
IN_LOCK = (
    "java.base/java.lang.VirtualThread.park(V.java:1)",
    "java.base/java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire(A.java:1)",
    "java.base/java.util.concurrent.locks.ReentrantLock.lock(R.java:1)",
    "com.example.Cart.add(Cart.java:12)",
    "java.base/java.lang.VirtualThread.run(V.java:1)",
)


def thread(name, number, *locks, virtual=None, state="WAITING", frames=("com.example.A.b(A.java:1)",)):
    return Thread(Stack(tuple(frames), state), name, java_id=number, locks=locks, virtual=virtual)


def parks(address):
    return Lock("parking to wait for", address, SYNC, 0)


def ordinary(*threads):
    return ThreadDump("HotSpot", threads)


def to_file(*threads):
    return ThreadDump("Thread.dump_to_file JSON", threads)


def test_a_lock_of_both_kinds_of_threads_is_one():
    """It has another number in each dump; the platform thread that waits for it joins them."""
    plain = contention([ordinary(thread("p", 5, parks("f00")))])
    virtual = contention(
        [to_file(thread("p", 5, parks("77")), *(thread("", n, parks("77"), virtual=True) for n in (8, 9)))]
    )
    [lock] = with_virtual(plain, virtual).locks
    assert (lock.address, lock.held_up) == ("f00", 3)
    assert [party.java_id for party in lock.waiters] == [5, 8, 9]


def test_locks_without_virtual_threads_are_those_of_the_ordinary_dumps():
    """The other dump adds nothing, not even a lock that it alone has."""
    plain = contention([ordinary(thread("p", 5, parks("f00")))])
    other = contention([to_file(thread("p", 5, parks("77")), thread("q", 6, parks("78")))])
    assert with_virtual(plain, other) == plain


def test_stacks_tell_who_waits_where_the_dump_names_no_lock():
    """Grouped by the method that acquires and its caller; those who wait in all dumps are counted."""
    first = to_file(*(thread("", n, virtual=True, state=None, frames=IN_LOCK) for n in (1, 2, 3)))
    second = to_file(*(thread("", n, virtual=True, state=None, frames=IN_LOCK) for n in (2, 3, 4)))
    [group] = waits_by_stack([first, second], Naming(lines=True))
    assert (group.method, group.caller, group.samples, group.lasting) == (
        "ReentrantLock.lock",
        "com.example.Cart.add",
        2,
        2,
    )
    assert [party.java_id for party in group.waiters] == [2, 3, 4]
    assert group.waiters[0].frames[3] == "com.example.Cart.add(Cart.java:12)"
    assert waits_by_stack([to_file(thread("p", 1, frames=IN_LOCK))], Naming()) == ()


def test_saved_dumps_of_virtual_threads_are_judged_alike():
    """Three dumps in which two threads wait all the time: a warning; in fewer: a sentence."""
    dump = to_file(*(thread("", n, virtual=True, state=None, frames=IN_LOCK) for n in (1, 2)))._replace(
        version="21.0.8+9"
    )
    [finding] = judge_locks(Facts([dump] * 3, files=("x",))).findings
    assert finding.summary.startswith(
        "2 virtual threads wait in ReentrantLock.lock, called by com.example.Cart.add; JDK 21 "
    )
    assert judge_locks(Facts([dump] * 2, files=("x",))).findings == []


def test_ordinary_dumps_of_a_jvm_with_virtual_threads_do_not_deny_their_waits():
    """A carrier or the timer of virtual threads gives the JVM away."""
    carrier = Thread(Stack(("jdk.internal.vm.Continuation.run(C.java:1)",), None, "carrier"), "ForkJoinPool-1-worker-1")
    timer = thread("VirtualThread-unparker", 9)
    for dump in (ordinary(carrier), ordinary(timer)):
        assert (
            judge_locks(Facts([dump], files=("x",))).unseen
            == "an ordinary thread dump has no virtual threads that wait"
        )
    assert judge_locks(Facts([ordinary(thread("main", 1))], files=("x",))).unseen is None
