"""Pools of threads over several dumps: counts, progress, objects, and what is concluded."""

from __future__ import annotations

import pytest

from opskit.analysis.jpmp.exhaustion import troubles
from opskit.analysis.jpmp.pools import overview, sentence
from opskit.jvm.dumps.thread_dump import Lock, Stack, Thread, ThreadDump
from opskit.proc.socket_waits import Peer

PARK = ("jdk.internal.misc.Unsafe.park(Native Method)",)
RUN = ("java.util.concurrent.ThreadPoolExecutor.runWorker(X)", "java.lang.Thread.run(X)")
APP = ("OrderDao.load(OrderDao.java:7)", *RUN)
HIKARI = Stack((*PARK, "com.zaxxer.hikari.pool.HikariPool.getConnection(X)", *APP), "TIMED_WAITING")
GET = Stack((*PARK, "java.util.concurrent.FutureTask.get(X)", *APP), "WAITING")
READ = Stack(("sun.nio.ch.SocketDispatcher.read0(X)", "java.net.Socket$SocketInputStream.read(X)", *APP), "RUNNABLE")
IDLE = Stack((*PARK, "java.util.concurrent.ThreadPoolExecutor.getTask(X)", *RUN), "WAITING")
TASK = Stack(("com.shop.Report.add(X)", "java.util.concurrent.FutureTask.run(X)", *RUN), "RUNNABLE")


def dump(*groups):
    """A dump of (pool, stack, threads) with native ids 100 for the first pool, 200 for the second, …."""
    threads = [
        Thread(stack, f"{pool}-{number}", 100 * place + number, number)
        for place, (pool, stack, count) in enumerate(groups, 1)
        for number in range(1, count + 1)
    ]
    return ThreadDump("HotSpot", threads)


def codes(*dumps, cpu_ms=0.0):
    """The codes and severities found."""
    cpu = None if cpu_ms is None else {thread.native_id: cpu_ms for each in dumps for thread in each.threads}
    return [(each.kind, each.severity) for each in troubles(overview(dumps, cpu))]


def test_a_count_is_the_median():
    """A wait in one of three dumps is left out; the name of a pool is without its number."""
    dumps = [dump(("exec", HIKARI, 4)), dump(("exec", HIKARI, 4)), dump(("exec", READ, 4))]
    (pool,) = overview(dumps[::-1]).pools
    assert (
        sentence(pool) == "exec (4 threads): 4 wait for a connection in HikariPool.getConnection (from OrderDao.load)"
    )
    assert pool.waits[0].dumps == 2
    one = overview([dump(("exec", READ, 1))]).pools[0]
    assert sentence(one) == "exec-1 (1 thread): 1 waits for an answer in SocketInputStream.read (from OrderDao.load)"


def test_peers_are_told_apart():
    """Those that are waited for by address; clients of a port of this JVM wait for nothing, and are asked by it."""
    peers = {101: Peer("10.0.0.7", 6379), 102: Peer("10.0.0.7", 6379), 103: Peer("[::1]", 40000, inbound=True)}
    words = [each.words() for each in overview([dump(("exec", READ, 4))], None, peers).pools[0].waits]
    assert words[0].startswith("2 wait for an answer of 10.0.0.7:6379 in")
    assert any(each.startswith("1 waits for a request of [::1] in") for each in words)
    assert any(each.startswith("1 waits for an answer in") for each in words)


def test_two_connection_pools_are_told_apart():
    """By the object that their threads wait on."""
    threads = [
        thread._replace(locks=(Lock("parking to wait for", "a0" if number < 5 else "b0", "T", 0),))
        for number, thread in enumerate(dump(("exec", HIKARI, 8)).threads)
    ]
    words = [each.words() for each in overview([ThreadDump("HotSpot", threads)]).pools[0].waits]
    assert [each.split(" in ")[0] for each in words] == [
        "5 wait for a connection of the pool <0xa0>",
        "3 wait for a connection of the pool <0xb0>",
    ]


@pytest.mark.parametrize(
    ("expected", "dumps", "cpu_ms"),
    [
        ([("connections-exhausted", "warning"), ("pool-exhausted", "warning")], [dump(("e", HIKARI, 5))] * 3, 0.1),
        ([], [dump(("e", HIKARI, 5))] * 3, 50.0),  # they get one after a while
        ([("connections-exhausted", "warning")], [dump(("e", HIKARI, 5))] * 3, None),
        ([("connections-exhausted", "note")], [dump(("e", HIKARI, 5))], 0.0),
        ([("connections-exhausted", "warning")], [dump(("e", HIKARI, 50))], 0.0),
        ([], [dump(("e", HIKARI, 1))] * 3, 0.0),
        ([("pool-waits-for-itself", "error")], [dump(("e", GET, 4), ("o", IDLE, 2))] * 2, 0.0),
        ([("pool-waits-for-itself", "warning")], [dump(("e", GET, 4))], 0.0),
        ([("pool-waits-for-itself", "warning")], [dump(("e", GET, 4))] * 2, None),
        ([], [dump(("e", GET, 4), ("o", TASK, 1))] * 2, 50.0),  # another pool runs the tasks
        ([], [dump(("e", GET, 4))] * 2, 50.0),
        ([], [dump(("e", IDLE, 4))] * 2, 0.0),
        ([], [dump(("e", READ, 4))] * 2, 0.0),  # whose answer is unknown: they may read the requests of clients
    ],
)
def test_what_is_concluded(expected, dumps, cpu_ms):
    """Findings need several dumps without progress; one dump gives less certainty."""
    assert codes(*dumps, cpu_ms=cpu_ms) == expected


def test_a_delayed_task_is_no_standstill():
    """The worker waits until a scheduled task is due."""
    lock = Lock("parking to wait for", "a0", "java.util.concurrent.ScheduledThreadPoolExecutor$ScheduledFutureTask", 0)
    one = ThreadDump("HotSpot", [dump(("e", GET, 1)).threads[0]._replace(locks=(lock,))])
    assert codes(one, one) == []
