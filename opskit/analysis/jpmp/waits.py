"""What a thread waits for: the kind of wait, the library's method, and the method of the application that called it. Pure.

    Unsafe.park, LockSupport.parkNanos, SynchronousQueue.poll, ConcurrentBag.borrow, HikariPool.getConnection, OrderDao.load
      -> a connection, in HikariPool.getConnection, from OrderDao.load

The JDK's frames next to the leaf name the kind. A known pool or client between them and the application names it better.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from opskit.analysis.jpmp.libraries import bare, is_application, is_jdk
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Kind = Literal[
    "connection", "answer", "request", "lock", "future", "permit", "latch", "barrier", "room", "element", "signal",
    "notification", "unpark", "sleep", "thread", "process", "select", "accept", "memory", "result", "name", "connect", "input",
    "disk", "event",
]  # fmt: skip

_C = r"java\.util\.concurrent\."
_A_LOCK = rf"{_C}locks\.(?:ReentrantLock|ReentrantReadWriteLock\$\w+Lock|StampedLock(?:\$\w+)?)"
# The first match counts, from the leaf on: an outer frame of the JDK says more than an inner one, so these are tried in order.
_BY_JDK: Sequence[tuple[Kind, str]] = (
    ("name", r"java\.net\.(?:Inet\w*AddressImpl\.(?:lookupAllHostAddr|getHostByAddr)|InetAddress\.get(?:All)?By\w+)"),
    ("connect", r"java\.net\.(?:Socks)?Socket(?:Impl)?\.connect|sun\.nio\.ch\.(?:NioSocketImpl|SocketChannelImpl)\.connect"
                r"|java\.net\.(?:AbstractPlain|Plain)SocketImpl\.(?:connect|doConnect|socketConnect)"),
    ("accept", r"java\.net\.ServerSocket\.(?:impl)?[aA]ccept|sun\.nio\.ch\.(?:ServerSocketChannelImpl|NioSocketImpl)\.accept"
               r"|java\.net\.\w*PlainSocketImpl\.\w*[aA]ccept\w*"),
    ("answer", r"java\.net\.(?:Socket\$)?SocketInputStream\.(?:read|socketRead0?)|sun\.nio\.ch\.SocketChannelImpl\.(?:read|blockingRead)"
               r"|sun\.nio\.ch\.SocketAdaptor\$\w+\.read|sun\.nio\.ch\.SocketInputStream\.read|java\.net\.DatagramSocket\.receive"
               r"|sun\.nio\.ch\.NioSocketImpl(?:\$1)?\.read|sun\.nio\.ch\.DatagramChannelImpl\.receive\w*"),
    ("process", r"java\.lang\.(?:ProcessImpl|UNIXProcess|Process)\.waitFor\w*"),
    ("thread", r"java\.lang\.Thread\.join\w*"),
    ("future", rf"{_C}(?:AbstractExecutorService\.invoke(?:All|Any)|ExecutorCompletionService\.(?:take|poll)"
               rf"|\w*(?:FutureTask|CompletableFuture)\.(?:get|join)|ForkJoinTask\.(?:get|join|invoke\w*)|\w*StructuredTaskScope\w*\.join\w*)"),
    ("lock", rf"{_A_LOCK}\.\w*[lL]ock\w*"),
    ("permit", rf"{_C}Semaphore\.\w*[aA]cquire\w*"),
    ("latch", rf"{_C}CountDownLatch\.await"),
    ("barrier", rf"{_C}(?:CyclicBarrier|Phaser|Exchanger)\.\w+"),
    ("room", rf"{_C}\w+\.(?:put\w*|offer\w*|transfer)"),
    ("element", rf"{_C}[\w$]*(?:Queue|Deque)\.(?:take|poll)\w*"),
    ("signal", rf"{_C}locks\.[\w$]*ConditionObject\.await\w*"),
    ("select", r"sun\.nio\.ch\.(?:\w*Selector\w*(?:\$\w+)?|EPoll|KQueue|WEPoll)\.\w+"),
    ("sleep", rf"java\.lang\.Thread\.sleep\w*|{_C}TimeUnit\.sleep|java\.lang\.VirtualThread\.sleep\w*"),
    ("element", r"java\.lang\.ref\.ReferenceQueue\.\w+"),
    ("notification", r"java\.lang\.Object\.wait0?"),
    ("lock", rf"{_C}locks\.AbstractQueued\w*Synchronizer\.\w*[aA]cquire\w*"),
    ("unpark", rf"{_C}locks\.LockSupport\.park\w*|(?:sun\.misc|jdk\.internal\.misc)\.Unsafe\.park|java\.lang\.VirtualThread\.park\w*"),
    ("answer", r"sun\.nio\.ch\.(?:SocketDispatcher|NioSocketImpl|DatagramDispatcher|DatagramChannelImpl)\.\w+"),
    ("input", r"java\.io\.FileInputStream\.\w+"),
    ("disk", r"sun\.nio\.ch\.(?:\w*FileDispatcherImpl\.force0|FileChannelImpl\.(?:impl)?[fF]orce)|java\.io\.FileDescriptor\.sync0?"
             r"|java\.nio\.(?:Direct|Mapped)\w+\.force0?"),
)  # fmt: skip
_JDK_KINDS = [(kind, re.compile(pattern)) for kind, pattern in _BY_JDK]
_NETWORK: frozenset[Kind] = frozenset({"answer", "connect", "accept", "name"})
# Their class stands before the method, with any package before it: programs contain copies with other packages.
_BY_LIBRARY: Sequence[tuple[Kind, str]] = (
    ("connection", r"hikari\.pool\.HikariPool\.getConnection|dbcp2?\.(?:\w+\.)?(?:PoolingDataSource|BasicDataSource)\.getConnection"
                   r"|v2\.resourcepool\.BasicResourcePool\.\w+|tomcat\.jdbc\.pool\.ConnectionPool\.(?:borrowC|getC)onnection"
                   r"|druid\.pool\.DruidDataSource\.(?:getConnection\w*|pollLast|takeLast)|agroal\.pool\.ConnectionPool\.\w+"
                   r"|jedis\.(?:util\.)?\w*(?:Pool|ConnectionProvider)\.get(?:Resource|Connection)|redis\.clients\.util\.Pool\.getResource"
                   r"|PoolingHttpClientConnectionManager(?:\$\d)?\.(?:leaseConnection|get|lease)|AbstractConnPool\.getPoolEntryBlocking"
                   r"|MultiThreadedHttpConnectionManager\.doGetConnection|mongodb\.(?:internal\.)?connection\.\w*Pool\w*\.\w+"
                   r"|resourcepool\.ResourcePoolImpl\.reserve\w*|j2c\.FreePool\.queueRequest|jca\.[\w.]*ManagedConnectionPool\.getConnection"
                   r"|jolbox\.bonecp\.\w+\.getConnection\w*|vibur\.[\w.]+\.(?:getConnection|take\w*)|oracle\.ucp\.[\w.]+\.borrowConnection"
                   r"|io\.netty\.channel\.pool\.\w+\.acquire\w*|c3p0\.impl\.(?:\w+\.checkout\w+|AbstractPoolBackedDataSource\.getConnection)"),
    ("memory", r"clients\.producer\.internals\.BufferPool\.allocate"),
    ("result", r"clients\.producer\.(?:internals\.(?:ProducerMetadata|FutureRecordMetadata)\.\w+|KafkaProducer\.waitOnMetadata)"
               r"|reactor\.core\.publisher\.(?:Blocking\w+\.\w+|Mono\.block\w*|Flux\.block\w+)|rxjava\d?\.[\w.]*\.blocking\w+"
               r"|netty\.util\.concurrent\.\w+Promise\.(?:await\w*|sync\w*|get)"),
    ("answer", r"lettuce\.core\.(?:internal\.Futures|LettuceFutures|protocol\.AsyncCommand)\.await\w*"
               r"|grpc\.stub\.ClientCalls(?:\$\w+)?\.\w+|okhttp3\.internal\.http2\.\w+\.\w+"
               r"|jdk\.internal\.net\.http\.HttpClientImpl\.send"),
    ("connect", r"lettuce\.core\.AbstractRedisClient\.getConnection"),
    ("future", r"[\w$]*(?:Future|Promise)[\w$]*\.(?:get|join|await\w*|sync\w*)"),
)  # fmt: skip
_LIBRARY_KINDS = [(kind, re.compile(rf"(?:.*\.)?(?:{pattern})")) for kind, pattern in _BY_LIBRARY]
# A pool of any objects: what is around it may say which.
_OBJECT_POOL = re.compile(r".*\.pool2?\.(?:impl\.)?\w*ObjectPool\.borrowObject")
# Outer methods of the same call, which the user knows better.
_BETTER_KNOWN = re.compile(
    r"(?:.*\.)?(?:druid\.pool\.DruidDataSource\.getConnection|reactor\.core\.publisher\.(?:Mono|Flux)\.block\w*"
    r"|c3p0\.impl\.AbstractPoolBackedDataSource\.getConnection|dbcp2?\.(?:\w+\.)?BasicDataSource\.getConnection"
    r"|grpc\.stub\.ClientCalls\.blocking\w+|jedis\.JedisPool\.getResource|tomcat\.jdbc\.pool\.ConnectionPool\.getConnection"
    r"|netty\.util\.concurrent\.\w+Promise\.sync\w*|clients\.producer\.KafkaProducer\.waitOnMetadata)"
)
_MOST_FRAMES = 60  # from the leaf: a known pool is near


class Wait(NamedTuple):
    """What a thread waits for. `place`: the method of the JDK or library; `caller`: the nearest one of the application.

    Both are short frame names. `caller` is None where the thread has no frame of an application above `place`.
    """

    kind: Kind
    place: str
    caller: str | None


def wait_of(state: str | None, frames: Sequence[str]) -> Wait | None:
    """The wait of a thread in this stack; None where it does not wait. `frames`: short names, leaf first."""
    from opskit.analysis.jpmp.idle import waits_in_native

    if not frames:
        return None
    inner = [bare(frame) for frame in frames[:_MOST_FRAMES]]
    callers = (frame for frame in map(bare, frames) if is_application(frame))
    if state == "BLOCKED":
        own = next(callers, None)
        # A monitor belongs to no library: its place is the frame itself.
        return Wait("lock", inner[0], None if own == inner[0] else own)
    looks_up = _JDK_KINDS[0][1].fullmatch(inner[0]) is not None
    if not (state in ("WAITING", "TIMED_WAITING") or waits_in_native(inner) or looks_up):
        return None
    kind, at = _kind_by_jdk(inner)
    place = inner[at]
    if kind not in _NETWORK and kind != "lock":
        kind, place = _by_library(inner, kind) or (kind, place)
    return Wait(kind, place, next(callers, None))


def _kind_by_jdk(frames: Sequence[str]) -> tuple[Kind, int]:
    """The kind, and the index of the outermost frame of the JDK that belongs to the wait."""
    end = next((index for index, frame in enumerate(frames) if not is_jdk(frame)), len(frames))
    for kind, pattern in _JDK_KINDS:
        for index in range(end - 1, -1, -1):
            if pattern.fullmatch(frames[index]):
                return kind, index
    return "event", max(end - 1, 0)


def _by_library(frames: Sequence[str], kind: Kind) -> tuple[Kind, str] | None:
    """The known pool or client that the thread waits in, before any frame of the application."""
    found: tuple[Kind, str] | None = None
    objects: str | None = None
    for frame in frames:
        if is_application(frame):
            break
        known = next((each for each, pattern in _LIBRARY_KINDS if pattern.fullmatch(frame)), None)
        if known == "future" and is_jdk(frame):  # the JDK's are told by their outermost frame
            continue
        if known is not None and (found is None or found[0] == "future" or _BETTER_KNOWN.fullmatch(frame)):
            found = known, frame
        if _OBJECT_POOL.fullmatch(frame):
            objects = frame
    if found is None and objects is not None:
        return "connection" if "onnection" in objects else kind, objects
    return found
