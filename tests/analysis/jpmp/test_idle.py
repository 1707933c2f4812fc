"""Which threads wait for work, which wait within a request, and which RUNNABLE ones use no CPU."""

from __future__ import annotations

import pytest

from opskit.analysis.jpmp.idle import is_idle, may_read_file, parks_or_selects, returns_often, waits_in_native


@pytest.mark.parametrize(
    "frame",
    [
        "java.lang.Thread.sleep",
        "java.lang.Thread.sleepNanos0",
        "java.lang.Object.wait0",
        "sun.misc.Unsafe.park",
        "jdk.internal.misc.Unsafe.park",
        "sun.nio.ch.EPoll.wait",
        "sun.nio.ch.EPollArrayWrapper.epollWait",
        "java.net.SocketInputStream.socketRead0",
        "sun.nio.ch.SocketDispatcher.read0",
        "sun.nio.ch.Net.poll",
        "java.net.PlainSocketImpl.socketAccept",
        "java.io.FileInputStream.readBytes",
        "java.lang.ref.Reference.waitForReferencePendingList",
        "io.netty.channel.epoll.Native.epollWait0",
        "sun.nio.ch.FileDispatcherImpl.force0",
        "sun.nio.ch.UnixFileDispatcherImpl.force0",
        "java.io.FileDescriptor.sync0",
        "java.nio.MappedMemoryUtils.force0",
    ],
)
def test_natives_that_wait(frame):
    """They are RUNNABLE in the dump, but use no CPU."""
    assert waits_in_native([frame])
    assert waits_in_native([f"{frame}(Ljava/io/FileDescriptor;[BIII)I"])


def test_reading_a_file_is_work():
    """A channel of a file; one of a socket, which had the same native once, waits. A stream may be either."""
    native = "sun.nio.ch.FileDispatcherImpl.read0"
    assert not waits_in_native([native, "sun.nio.ch.FileDispatcherImpl.read", "sun.nio.ch.FileChannelImpl.read"])
    assert waits_in_native([native, "sun.nio.ch.SocketDispatcher.read", "sun.nio.ch.SocketChannelImpl.read"])
    assert not waits_in_native(["java.io.RandomAccessFile.readBytes"])
    assert may_read_file(["java.io.FileInputStream.readBytes"])
    assert not may_read_file(["java.net.SocketInputStream.socketRead0"])


@pytest.mark.parametrize(
    "frame",
    ["java.lang.Thread.yield", "java.util.HashMap.get", "a.Thread.sleeper", "sun.nio.ch.SocketDispatcher.write0"],
)
def test_what_may_run(frame):
    """Anything else may."""
    assert not waits_in_native([frame])


def test_an_fsync_is_a_wait_within_a_request():
    """RUNNABLE without CPU time, below a channel of a file too; the thread is not idle."""
    frames = ["sun.nio.ch.FileDispatcherImpl.force0", "sun.nio.ch.FileDispatcherImpl.force", "sun.nio.ch.FileChannelImpl.force",
              "a.Log.flush"]  # fmt: skip
    assert waits_in_native(frames)
    assert not is_idle("RUNNABLE", frames)


@pytest.mark.parametrize(("frame", "short_wait", "returns"), [
    ("jdk.internal.misc.Unsafe.park", True, False), ("sun.nio.ch.EPoll.wait", True, False), ("java.lang.Thread.sleep", False, False),
    ("jdk.internal.misc.Unsafe.unpark", False, True), ("sun.misc.Unsafe.unpark(Ljava/lang/Object;)V", False, True),
    ("sun.nio.ch.SocketDispatcher.writev0", False, True), ("sun.nio.ch.EventFD.set0", False, True),
    ("sun.nio.ch.SocketDispatcher.read0", False, True), ("java.lang.ClassLoader.defineClass0", False, True),
    ("java.lang.ClassLoader.defineClass1", False, True), ("java.util.HashMap.get", False, False),
])  # fmt: skip
def test_natives_of_dumps(frame, short_wait, returns):
    """Parks and selects may hide short work; threads stop at the return of natives that are called often."""
    assert (parks_or_selects([frame]), returns_often(frame)) == (short_wait, returns)


JDK_PARK = ["jdk.internal.misc.Unsafe.park", "java.util.concurrent.locks.LockSupport.park"]
RUN_WORKER = [
    "java.util.concurrent.ThreadPoolExecutor.runWorker",
    "java.util.concurrent.ThreadPoolExecutor$Worker.run",
    "java.lang.Thread.run",
]
GET_TASK = ["java.util.concurrent.ThreadPoolExecutor.getTask", *RUN_WORKER]
IN_POOL = ["com.example.Task.run", *RUN_WORKER]
HIKARI = [
    *JDK_PARK,
    "java.util.concurrent.SynchronousQueue.poll",
    "com.zaxxer.hikari.util.ConcurrentBag.borrow",
    "com.zaxxer.hikari.pool.HikariPool.getConnection",
    "com.example.OrderDao.load",
    *RUN_WORKER,
]
REQUEST = [f"com.example.shop.Layer{n}.call" for n in range(8)]


@pytest.mark.parametrize(
    ("idle", "state", "frames"),
    [
        (True, "RUNNABLE", []),
        (True, "TIMED_WAITING", ["java.lang.Thread.sleep", "com.example.Worker.run", "java.lang.Thread.run"]),
        (
            True,
            "RUNNABLE",
            ["sun.nio.ch.EPoll.wait", "sun.nio.ch.SelectorImpl.select", "com.example.Loop.run", "java.lang.Thread.run"],
        ),
        (True, "WAITING", [*JDK_PARK, "java.util.concurrent.ThreadPoolExecutor.getTask", "java.lang.Thread.run"]),
        (True, "WAITING", [*JDK_PARK, "org.apache.tomcat.util.threads.TaskQueue.take", *GET_TASK]),
        (True, "WAITING", [*JDK_PARK, "com.example.Worker.run", "java.lang.Thread.run"]),
        (
            True,
            "WAITING",
            [
                *JDK_PARK,
                "java.util.concurrent.LinkedBlockingQueue.take",
                "com.example.Consumer.run",
                "java.lang.Thread.run",
            ],
        ),
        (
            True,
            "WAITING",
            [*JDK_PARK, "java.util.concurrent.ForkJoinPool.runWorker", "java.util.concurrent.ForkJoinWorkerThread.run"],
        ),
        (True, "WAITING", ["java.lang.Object.wait", "java.util.TimerThread.mainLoop", "java.util.TimerThread.run"]),
        (True, "WAITING", [*JDK_PARK, "java.util.concurrent.CountDownLatch.await", "com.example.Main.main"]),
        (False, "TIMED_WAITING", ["java.lang.Thread.sleep", *REQUEST]),
        (False, "RUNNABLE", ["sun.nio.ch.EPoll.wait", *REQUEST]),
        (False, "WAITING", [*JDK_PARK, "org.apache.tomcat.util.threads.TaskQueue.take", *REQUEST]),
        (False, "RUNNABLE", ["java.net.SocketInputStream.socketRead0", "com.example.Server.run"]),
        (False, "TIMED_WAITING", HIKARI),
        (False, "WAITING", [*JDK_PARK, "java.util.concurrent.Semaphore.acquire", *IN_POOL]),
        (False, "WAITING", [*JDK_PARK, "java.util.concurrent.CountDownLatch.await", *IN_POOL]),
        (False, "WAITING", [*JDK_PARK, "java.util.concurrent.FutureTask.get", *IN_POOL]),
        (False, "WAITING", [*JDK_PARK, "java.util.concurrent.CompletableFuture.join", *IN_POOL]),
        (False, "WAITING", [*JDK_PARK, "java.util.concurrent.LinkedBlockingQueue.take", *IN_POOL]),
        (
            False,
            "WAITING",
            [*JDK_PARK, "java.util.concurrent.Semaphore.acquire", "com.shop.TaskPool.getTask", *IN_POOL],
        ),
        (False, "WAITING", [*JDK_PARK, "java.util.concurrent.ThreadPoolExecutor.awaitTermination", *IN_POOL]),
        (False, "WAITING", [*JDK_PARK, "java.util.concurrent.CompletableFuture.get", *REQUEST]),
        (
            False,
            "RUNNABLE",
            ["java.net.SocketInputStream.socketRead0", "org.postgresql.core.VisibleBufferedInputStream.read", *REQUEST],
        ),
        (False, "BLOCKED", ["com.example.Worker.run"]),
        (
            False,
            "WAITING",
            [*JDK_PARK, "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire", "com.example.Worker.run"],
        ),
        (False, "RUNNABLE", ["java.util.HashMap.get", "com.example.Worker.run"]),
        (False, None, ["jdk.internal.vm.Continuation.run", "java.lang.VirtualThread.runContinuation"]),
    ],
)
def test_idle_is_who_waits_for_work(idle, state, frames):
    """A thread that waits for a lock, a connection or an answer in the middle of a request is not idle."""
    assert is_idle(state, frames) is idle
