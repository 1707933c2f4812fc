"""When a deadlock or a contended lock is a finding, and when a busy JVM is healthy."""

from __future__ import annotations

import shlex

import pytest

from opskit.analysis.jpmp.judge import Weighing, judge, judge_locks
from opskit.collect.jpmp.collect import Facts, Sampled, Schedule
from opskit.errors import UsageError
from opskit.jvm.dumps.thread_dump import Lock, Stack, Thread, ThreadDump, Waits
from opskit.jvm.profiles import WeightedStack

REENTRANT = "java.util.concurrent.locks.ReentrantLock$NonfairSync"
SEMAPHORE = "java.util.concurrent.Semaphore$NonfairSync"
DEEP = tuple(f"com.example.Layer{number}.call(Layer.java:1)" for number in range(5))


def thread(name, *locks, state="BLOCKED", frames=("com.example.A.run(A.java:1)",)):
    return Thread(Stack(tuple(frames), state), name, locks=tuple(locks))


def wants(address, class_name="java.lang.Object"):
    return Lock("waiting to lock", address, class_name, 0)


def parks(address, class_name=REENTRANT):
    return Lock("parking to wait for", address, class_name, 0)


def holds(address, class_name="java.lang.Object", depth=0):
    return Lock("locked", address, class_name, depth)


def dump(*threads, deadlocks=()):
    return ThreadDump("HotSpot", threads, deadlocks=deadlocks)


def of_jvm(*dumps):
    live = Sampled(7, 42, "Main", Schedule(len(dumps)))
    live.dumps, live.times_s, live.elapsed_s = list(dumps), [float(number) for number in range(len(dumps))], 9.0
    return Facts(dumps, live=live)


BUSY = dump(thread("the (holder)", holds("1"), state="RUNNABLE"), thread("a", wants("1")), thread("b", wants("1")))
FREE = dump(thread("the (holder)", state="RUNNABLE"), thread("a", state="RUNNABLE"))


def codes(facts):
    return [finding.code for finding in judge_locks(facts).findings]


def test_a_lock_that_holds_up_several_threads_in_several_dumps():
    """A warning about the lock in its process, how long it was, and the command that shows its owner."""
    [finding] = judge_locks(of_jvm(BUSY, BUSY, FREE, BUSY)).findings
    assert (finding.code, finding.severity, finding.class_) == ("lock-contended", "warning", "slow")
    assert (finding.entity.kind, finding.entity.id) == ("lock", "java.lang.Object@1")
    assert finding.entity.inside[:3] == ("process", 7, 42)
    assert finding.summary.startswith('holds up 2 threads; held by "the (holder)"')
    assert finding.evidence == "contended in 3 of 4 dumps; one thread waited at least 1.0 s"
    assert (finding.share, finding.window_s) == (0.75, 9.0)
    assert shlex.split(finding.next) == ["opskit", "jpmp", "7", "--by-thread", "--include", r"^the \(holder\)$"]


def test_a_saved_dump_is_named_in_the_next_command():
    """As a file; standard input cannot be read again."""
    [finding] = judge_locks(Facts([BUSY] * 3, files=("-x", "b"))).findings
    assert finding.entity.inside.kind == "file"
    assert finding.next.endswith("-- -x b")
    assert judge_locks(Facts([BUSY] * 3, files=("-",))).findings[0].next is None


@pytest.mark.parametrize(
    "dumps",
    [
        [BUSY],
        [BUSY] * 2,
        [BUSY] * 3 + [FREE] * 4,
        [dump(thread("h", holds("1"), state="RUNNABLE"), thread("a", wants("1")))] * 9,
    ],
    ids=["a moment", "two moments", "now and then", "one waiter"],
)
def test_what_a_healthy_busy_jvm_shows_is_no_finding(dumps):
    """Short waits for a lock belong to every program with threads."""
    assert codes(of_jvm(*dumps)) == []


@pytest.mark.parametrize(
    "threads",
    [
        [thread("acceptor", holds("1"), state="RUNNABLE", frames=("java.net.PlainSocketImpl.socketAccept(Native)",)),
         thread("a", wants("1")), thread("b", wants("1"))],
        [thread("muxer", holds("1"), state="RUNNABLE", frames=("weblogic.socket.PosixSocketMuxer.poll(Native)", *DEEP)),
         thread("a", wants("1")), thread("b", wants("1"))],
        [thread(name, parks("2"), state="WAITING", frames=(
            "jdk.internal.misc.Unsafe.park(Native)", "java.util.concurrent.locks.ReentrantLock.lock(R.java:1)",
            "sun.nio.ch.ServerSocketChannelImpl.accept(S.java:1)", *DEEP)) for name in "abc"],
        [thread(name, parks("3", SEMAPHORE), state="WAITING", frames=("jdk.internal.misc.Unsafe.park(Native)", *DEEP)) for name in "abc"],
    ],
    ids=["acceptors behind a monitor", "an application server's muxer", "acceptors behind a lock", "a semaphore"],
)  # fmt: skip
def test_idle_acceptors_and_semaphores_are_no_finding(threads):
    """They wait for connections; a semaphore has no owner."""
    assert codes(of_jvm(*[dump(*threads)] * 5)) == []


def test_a_lock_without_known_owner_asks_for_synchronizers():
    """The next command walks the heap, which is the user's choice."""
    frames = ("jdk.internal.misc.Unsafe.park(Native)", *DEEP)
    waiting = dump(*(thread(name, parks("2"), state="WAITING", frames=frames) for name in "ab"))
    [finding] = judge_locks(of_jvm(*[waiting] * 3)).findings
    assert finding.next == "opskit jpmp 7 --locks --synchronizers"


CIRCLE = thread("A", wants("2"), holds("1")), thread("B", wants("1"), holds("2"))


def test_a_deadlock_is_an_error_and_explains_the_locks_behind_it():
    """One finding, not one more for each lock that it blocks."""
    stuck = dump(*CIRCLE, thread("c", wants("1")), thread("d", wants("1")))
    [finding] = judge_locks(of_jvm(stuck, stuck, stuck)).findings
    assert (finding.code, finding.severity, finding.class_) == ("jvm-deadlock", "error", "stuck")
    assert '"A", "B"' in finding.summary
    assert finding.next == "opskit capture 7 --ask"


def test_a_cycle_that_times_out_is_a_note():
    """A tryLock with a timeout ends it."""
    timed = dump(
        thread("A", parks("2"), holds("1", REENTRANT, None), state="TIMED_WAITING", frames=DEEP),
        thread("B", parks("1"), holds("2", REENTRANT, None), state="WAITING", frames=DEEP),
    )
    links = ((Waits("A", REENTRANT, "0x2", "B", timed=True), Waits("B", REENTRANT, "0x1", "A")),)
    reported = timed._replace(deadlocks=links)
    for found in (judge_locks(of_jvm(timed)), judge_locks(of_jvm(reported)), judge(of_jvm(reported), Weighing())):
        [finding] = found.findings
        assert (finding.code, finding.severity) == ("jvm-deadlock", "note")
        assert "until one of them times out" in finding.summary


def test_the_deadlocks_that_the_jvm_reports_are_findings_of_every_profile():
    """Once for all dumps; the next command shows the locks."""
    links = ((Waits("A", "a.Lock", "0x1", "B"), Waits("B", "a.Lock", "0x2", "A")),)
    found = judge(of_jvm(dump(*CIRCLE, deadlocks=links), dump(*CIRCLE, deadlocks=links), FREE), Weighing())
    [finding] = found.findings
    assert (finding.code, finding.evidence) == ("jvm-deadlock", "reported by the JVM in 2 of 3 dumps")
    assert finding.next == "opskit jpmp 7 --locks"


def test_profiles_have_no_locks():
    """Collapsed stacks alone."""
    with pytest.raises(UsageError, match="contain no lock information"):
        judge_locks(Facts(stacks=[WeightedStack(("a",), samples=1)], files=("x.folded",)))
