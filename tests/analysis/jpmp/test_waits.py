"""What threads wait for, by the real stacks of libraries (shortened)."""

from __future__ import annotations

import pytest

from opskit.analysis.jpmp.libraries import is_application, method_name
from opskit.analysis.jpmp.waits import wait_of

PARK = ["jdk.internal.misc.Unsafe.park", "java.util.concurrent.locks.LockSupport.parkNanos"]
SYNC = "java.util.concurrent.locks.AbstractQueuedSynchronizer"
READ = ["sun.nio.ch.SocketDispatcher.read0", "sun.nio.ch.NioSocketImpl.read", "java.net.Socket$SocketInputStream.read"]
APP = ["com.shop.OrderDao.load", "com.shop.Servlet.get", "java.lang.Thread.run"]


@pytest.mark.parametrize(
    ("kind", "place", "frames"),
    [
        ("connection", "HikariPool.getConnection", [*PARK, "java.util.concurrent.SynchronousQueue.poll", "com.zaxxer.hikari.util.ConcurrentBag.borrow", "com.zaxxer.hikari.pool.HikariPool.getConnection", "com.zaxxer.hikari.HikariDataSource.getConnection"]),
        ("connection", "HikariPool.getConnection", [*PARK, "java.util.concurrent.SynchronousQueue.poll", "shaded.com.zaxxer.hikari.pool.HikariPool.getConnection", "org.hibernate.X.open"]),
        ("connection", "BasicDataSource.getConnection", ["java.lang.Object.wait", "org.apache.commons.pool.impl.GenericObjectPool.borrowObject", "org.apache.commons.dbcp.PoolingDataSource.getConnection", "org.apache.commons.dbcp.BasicDataSource.getConnection"]),
        ("connection", "BasicDataSource.getConnection", [*PARK, f"{SYNC}$ConditionObject.await", "org.apache.commons.pool2.impl.LinkedBlockingDeque.takeFirst", "org.apache.commons.pool2.impl.GenericObjectPool.borrowObject", "org.apache.commons.dbcp2.PoolingDataSource.getConnection", "org.apache.commons.dbcp2.BasicDataSource.getConnection"]),
        ("connection", "AbstractPoolBackedDataSource.getConnection", ["java.lang.Object.wait", "com.mchange.v2.resourcepool.BasicResourcePool.awaitAvailable", "com.mchange.v2.c3p0.impl.AbstractPoolBackedDataSource.getConnection"]),
        ("connection", "ConnectionPool.getConnection", [*PARK, "java.util.concurrent.CountDownLatch.await", "org.apache.tomcat.jdbc.pool.FairBlockingQueue.poll", "org.apache.tomcat.jdbc.pool.ConnectionPool.borrowConnection", "org.apache.tomcat.jdbc.pool.ConnectionPool.getConnection"]),
        ("connection", "DruidDataSource.getConnection", [*PARK, f"{SYNC}$ConditionObject.await", "com.alibaba.druid.pool.DruidDataSource.pollLast", "com.alibaba.druid.pool.DruidDataSource.getConnection"]),
        ("connection", "JedisPool.getResource", [*PARK, "org.apache.commons.pool2.impl.GenericObjectPool.borrowObject", "redis.clients.jedis.util.Pool.getResource", "redis.clients.jedis.JedisPool.getResource"]),
        ("connection", "PoolingHttpClientConnectionManager.get", ["java.lang.Object.wait", "org.apache.hc.core5.concurrent.BasicFuture.get", "org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManager$3.get"]),
        ("connection", "AbstractConnPool.getPoolEntryBlocking", [*PARK, "org.apache.http.pool.AbstractConnPool.getPoolEntryBlocking"]),
        ("memory", "BufferPool.allocate", [*PARK, f"{SYNC}$ConditionObject.await", "org.apache.kafka.clients.producer.internals.BufferPool.allocate"]),
        ("answer", "ClientCalls.blockingUnaryCall", [*PARK, "io.grpc.stub.ClientCalls$ThreadlessExecutor.waitAndDrain", "io.grpc.stub.ClientCalls.blockingUnaryCall"]),
        ("answer", "AsyncCommand.await", [*PARK, "java.util.concurrent.CountDownLatch.await", "io.lettuce.core.protocol.AsyncCommand.await"]),
        ("result", "Mono.block", [*PARK, "java.util.concurrent.CountDownLatch.await", "reactor.core.publisher.BlockingSingleSubscriber.blockingGet", "reactor.core.publisher.Mono.block"]),
        ("result", "DefaultPromise.sync", ["java.lang.Object.wait", "io.netty.util.concurrent.DefaultPromise.await", "io.netty.util.concurrent.DefaultPromise.sync"]),
        ("answer", "SocketInputStream.read", READ),
        ("answer", "SocketInputStream.read", [*READ, "sun.security.ssl.SSLSocketImpl$AppInputStream.read", "org.postgresql.core.PGStream.receive", "com.zaxxer.hikari.pool.HikariPool.getConnection"]),
        ("answer", "SocketInputStream.read", ["java.net.SocketInputStream.socketRead0", "java.net.SocketInputStream.read"]),
        ("permit", "Semaphore.acquire", [*PARK, f"{SYNC}.acquire", "java.util.concurrent.Semaphore.acquire"]),
        ("latch", "CountDownLatch.await", [*PARK, f"{SYNC}.acquire", "java.util.concurrent.CountDownLatch.await"]),
        ("future", "FutureTask.get", [*PARK, "java.util.concurrent.FutureTask.awaitDone", "java.util.concurrent.FutureTask.get"]),
        ("future", "CompletableFuture.join", [*PARK, "java.util.concurrent.ForkJoinPool.managedBlock", "java.util.concurrent.CompletableFuture.waitingGet", "java.util.concurrent.CompletableFuture.join"]),
        ("future", "AbstractExecutorService.invokeAll", [*PARK, "java.util.concurrent.FutureTask.get", "java.util.concurrent.AbstractExecutorService.invokeAll"]),
        ("lock", "ReentrantLock.lock", [*PARK, f"{SYNC}.acquire", "java.util.concurrent.locks.ReentrantLock$Sync.lock", "java.util.concurrent.locks.ReentrantLock.lock"]),
        ("room", "ArrayBlockingQueue.put", [*PARK, f"{SYNC}$ConditionObject.await", "java.util.concurrent.ArrayBlockingQueue.put"]),
    ],
)  # fmt: skip
def test_known_waits(kind, place, frames):
    """The pool or client is named, or the method of the JDK; a read within a pool is a wait for an answer."""
    state = "RUNNABLE" if "ocket" in frames[0] else "WAITING"
    wait = wait_of(state, [*frames, *APP])
    assert (wait.kind, method_name(wait.place), wait.caller) == (kind, place, APP[0])


def test_unknown_waits():
    """A pool of the application: the JDK's method, and the nearest of the application. A monitor: the frame itself."""
    wait = wait_of("WAITING", [*PARK, "java.util.concurrent.Semaphore.acquire", "com.acme.Pool.borrow", *APP])
    assert (method_name(wait.place), wait.caller) == ("Semaphore.acquire", "com.acme.Pool.borrow")
    assert wait_of("BLOCKED", ["com.shop.Cache.get", *APP])[:2] == ("lock", "com.shop.Cache.get")
    assert wait_of("RUNNABLE", ["java.util.HashMap.get", *APP]) is None
    assert wait_of("RUNNABLE", []) is None


def test_names_of_methods():
    """The innermost class; lambdas and anonymous classes have the name of what they are in."""
    assert method_name("com.shop.Dao.lambda$load$3") == "Dao.load"
    assert method_name("java.net.Socket$SocketInputStream.read") == "SocketInputStream.read"
    assert method_name("com.shop.Dao$1.run(I)V") == "Dao.run"
    assert method_name("main") == "main"
    assert is_application("com.shop.Dao.load")
    assert is_application("OrderDao.load")
    for frame in (
        "java.lang.Thread.run",
        "com.zaxxer.hikari.pool.X.y",
        "com.shop.Dao$$Lambda.run",
        "jdk.proxy2.$Proxy31.get",
    ):
        assert not is_application(frame)
