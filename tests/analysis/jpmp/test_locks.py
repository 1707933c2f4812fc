"""Who waits for whom, from the records alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.jpmp.lock_owners import NO_OWNER_IN_DUMP
from opskit.analysis.jpmp.locks import contention
from opskit.jvm.dumps.thread_dump import Lock, Stack, Thread, ThreadDump, Waits

SYNC = "java.util.concurrent.locks.ReentrantLock$NonfairSync"


def thread(name, *locks, state="BLOCKED", frames=("com.example.A.run(A.java:1)",), java_id=None):
    return Thread(Stack(tuple(frames), state), name, java_id=java_id, locks=tuple(locks))


def wants(address, class_name="java.lang.Object", owner=None):
    return Lock("waiting to lock", address, class_name, 0, owner)


def holds(address, class_name="java.lang.Object", depth=0):
    return Lock("locked", address, class_name, depth)


def dump(*threads, deadlocks=()):
    return ThreadDump("HotSpot", threads, deadlocks=deadlocks)


def test_waiters_chain_and_root():
    """Two wait for one who waits for a third: three are held up by the root's lock, two by the other."""
    found = contention(
        [
            dump(
                thread("root", holds("0x0a"), state="TIMED_WAITING"),
                thread("middle", wants("0xA"), holds("0xb")),
                thread("one", wants("b")),
                thread("two", wants("0x000b")),
            )
        ]
    )
    assert not found.deadlocks
    first, second = found.locks
    assert (first.address, first.held_up, [w.name for w in first.waiters]) == ("a", 3, ["middle"])
    assert (second.address, second.held_up, [w.name for w in second.waiters]) == ("b", 2, ["one", "two"])
    assert (first.owner.name, second.owner.name) == ("root", "middle")
    assert [(link.thread.name, link.owner.name) for link in second.chain] == [("middle", "root")]
    assert first.chain == ()


def test_a_monitor_that_was_released_in_wait_is_not_held():
    """Object.wait gives the monitor back: a thread in wait() does not hold up others."""
    waiting = thread("waiting", Lock("waiting on", "1", "X", 0), holds("1", "X", 1), state="WAITING")
    [lock] = contention([dump(waiting, thread("wants", wants("1", "X")))]).locks
    assert lock.owner is None
    assert lock.owner_unknown == NO_OWNER_IN_DUMP


def test_waiting_for_work_is_no_contention():
    """Conditions, empty queues and Object.wait are not contended locks."""
    park = "jdk.internal.misc.Unsafe.park(Native Method)"
    idle = thread(
        "pool-1-thread-1",
        Lock("parking to wait for", "5", "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject", 0),
        state="WAITING",
        frames=(park, "java.util.concurrent.LinkedBlockingQueue.take(LinkedBlockingQueue.java:1)"),
    )
    waits = thread("w", Lock("waiting on", "6", "java.lang.Object", 0), state="WAITING")
    assert contention([dump(idle, waits)]).locks == ()


def test_owners_of_synchronizers_are_unknown_until_they_are_listed():
    """Without `Locked ownable synchronizers` the owner is unknown; with them (depth None) it is known."""
    parked = thread("parked", Lock("parking to wait for", "7", SYNC, 0), state="WAITING")
    [unknown] = contention([dump(parked, thread("holder", state="RUNNABLE"))]).locks
    assert unknown.owner is None
    assert "--synchronizers" in unknown.owner_unknown
    [known] = contention([dump(parked, thread("holder", holds("7", SYNC, None), state="RUNNABLE"))]).locks
    assert (known.owner.name, known.owner_unknown, known.kind) == ("holder", None, "synchronizer")


def test_deadlocks_that_the_jvm_does_not_report_are_found_and_marked():
    """A cycle of monitors is a deadlock, reported or not."""
    cycle = (
        thread("A", wants("2"), holds("1"), java_id=1),
        thread("B", wants("3"), holds("2"), java_id=2),
        thread("C", wants("1"), holds("3"), java_id=3),
        thread("behind", wants("1")),
    )
    [deadlock] = contention([dump(*cycle)]).deadlocks
    assert not deadlock.reported
    assert {link.thread.name for link in deadlock.links} == {"A", "B", "C"}
    told = ((Waits("A", "java.lang.Object", "0x2", "B"), Waits("B", "java.lang.Object", "0x3", "C")),)
    [deadlock] = contention([dump(*cycle, deadlocks=told)]).deadlocks
    assert deadlock.reported


def test_a_deadlock_that_only_the_jvm_sees_is_told_as_it_tells_it():
    """Over ReentrantLocks without -l, the stacks do not show the owners; the JVM's own section does."""
    a = thread("A", Lock("parking to wait for", "11", SYNC, 0), state="WAITING")
    b = thread("B", Lock("parking to wait for", "12", SYNC, 0), state="WAITING")
    told = ((Waits("A", SYNC, "0x11", "B"), Waits("B", SYNC, "0x12", "A")),)
    found = contention([dump(a, b, deadlocks=told)])
    [deadlock] = found.deadlocks
    assert deadlock.reported
    assert {(link.thread.name, link.owner.name) for link in deadlock.links} == {("A", "B"), ("B", "A")}
    assert {lock.owner.name for lock in found.locks} == {"A", "B"}


def test_over_samples_contention_is_counted_and_timed():
    """Samples with contention, and the longest wait of one thread over consecutive dumps."""
    busy = dump(thread("h", holds("1"), state="RUNNABLE"), thread("w", wants("1")))
    free = dump(thread("h", state="RUNNABLE"), thread("w", state="RUNNABLE"))
    [lock] = contention([busy, busy, free, busy], [0.0, 2.0, 3.0, 9.0]).locks
    assert (lock.samples, lock.waited_at_least_s) == (3, 2.0)
    [lock] = contention([busy, busy]).locks
    assert lock.waited_at_least_s is None


def test_namesakes_are_told_apart():
    """Two pairs of equal names in two deadlocks: four threads, two cycles."""
    threads = (
        thread("A", wants("2"), holds("1"), java_id=1),
        thread("B", wants("1"), holds("2"), java_id=2),
        thread("A", wants("4"), holds("3"), java_id=3),
        thread("B", wants("3"), holds("4"), java_id=4),
    )
    assert len(contention([dump(*threads)]).deadlocks) == 2


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25))
def test_whatever_waits_for_whatever_it_ends(edges):
    """Any graph of waits: every waiter is counted once, every deadlock is a cycle of its own links."""
    threads = [
        thread(f"t{number}", wants(f"{wanted}"), holds(f"{held}"), java_id=number)
        for number, (wanted, held) in enumerate(edges)
    ]
    found = contention([dump(*threads)])
    assert sum(len(lock.waiters) for lock in found.locks) == len(threads)
    for deadlock in found.deadlocks:
        names = [link.thread.name for link in deadlock.links]
        owners = [link.owner.name for link in deadlock.links]
        assert owners == names[1:] + names[:1]
        assert len(names) > 1
    for lock in found.locks:
        assert len(lock.waiters) <= lock.held_up <= len(threads)
