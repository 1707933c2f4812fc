"""Which threads wait: in native methods that use no CPU although RUNNABLE, and for work to arrive. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.analysis.jpmp.libraries import bare, is_application
from opskit.analysis.jpmp.waits import wait_of

if TYPE_CHECKING:
    from collections.abc import Sequence

# Methods in which a thread waits; in one of the native methods its state is RUNNABLE.
_SLEEPS = re.compile(
    r"java\.lang\.(?:Thread\.sleep\w*|VirtualThread\.(?:sleep|park)\w*)|java\.util\.concurrent\.TimeUnit\.sleep"
)
_PARKS = re.compile(
    r"(?:sun\.misc|jdk\.internal\.misc)\.Unsafe\.park|java\.lang\.Object\.wait0?|java\.util\.concurrent\.locks\.LockSupport\.park\w*"
    r"|java\.lang\.VirtualThread\.park\w*|jdk\.internal\.vm\.Continuation\.yield\w*"
)
_SELECTS = re.compile(
    r"sun\.nio\.ch\.(?:EPoll\.wait|EPollArrayWrapper\.epollWait|PollArrayWrapper\.poll0|PollSelectorImpl\.poll"
    r"|KQueue\.poll|KQueueArrayWrapper\.kevent0|DevPollArrayWrapper\.poll0|WEPoll\.wait|WindowsSelectorImpl\$SubSelector\.poll0"
    r"|EPollPort\$EventHandlerTask\.poll|Net\.(?:poll|accept)|ServerSocketChannelImpl\.accept0|UnixDomainSockets\.accept0"
    r"|Iocp\.getQueuedCompletionStatus)"
    r"|java\.net\.(?:PlainSocketImpl|DualStackPlainSocketImpl|TwoStacksPlainSocketImpl)\.(?:socketAccept|accept0|waitForNewConnection)"
    r"|(?:io\.netty|[\w.]+\.io\.netty)\.channel\.(?:epoll|kqueue)\.Native\.\w*[wW]ait\w*|io\.netty\.channel\.uring\.Native\.\w+"
    r"|java\.lang\.ref\.Reference\.waitForReferencePendingList|jdk\.internal\.misc\.Signal\.\w+"
    r"|sun\.nio\.fs\.\w+\.(?:poll|read)|org\.eclipse\.swt\.internal\.[\w.]+\.(?:WaitMessage|g_main_context_\w+|\w*poll\w*)"
    r"|sun\.awt\.[\w.]+\.(?:eventLoop|waitForEvents|run)|java\.lang\.ProcessHandleImpl\.waitForProcessExit0"
    r"|java\.lang\.(?:UNIXProcess|ProcessImpl)\.waitFor\w*"
)
_READS = re.compile(
    r"java\.net\.(?:SocketInputStream\.socketRead0|PlainDatagramSocketImpl\.(?:receive0|peek\w*))"
    r"|java\.net\.PlainSocketImpl\.socketConnect"
    r"|sun\.nio\.ch\.(?:SocketDispatcher|FileDispatcherImpl|UnixFileDispatcherImpl|UnixDomainSockets|DatagramChannelImpl|DatagramDispatcher)"
    r"\.(?:read0|readv0|receive0|recvfrom0)"
    r"|sun\.nio\.ch\.(?:Net|UnixDomainSockets)\.(?:connect0|pollConnect\w*)"
    r"|java\.io\.FileInputStream\.(?:read0|readBytes0?)"
)
# Writes to the disk are awaited: RUNNABLE, without CPU.
_SYNCS = re.compile(
    r"sun\.nio\.ch\.\w*FileDispatcherImpl\.force0|java\.io\.FileDescriptor\.sync0?"
    r"|java\.nio\.Mapped(?:ByteBuffer|MemoryUtils)\.force0"
)
# Threads in native methods stop at a safepoint when they return. Those that are called often and take little CPU are seen there.
_RETURNS = re.compile(
    r"sun\.nio\.ch\.\w+\.(?:p?(?:read|write)v?0|send0|sendto0|drain1?|interrupt|set0|wakeup0?)"
    r"|(?:sun\.misc|jdk\.internal\.misc)\.Unsafe\.unpark|java\.lang\.ClassLoader\.defineClass[0-2]"
    r"|java\.net\.Socket(?:Output|Input)Stream\.socket\w+0|java\.io\.(?:File(?:Out|In)putStream|RandomAccessFile)\.(?:read|write)(?:Bytes)?0?"
)
# These may read a pipe or terminal (a wait) or a cached file (work).
_MAY_READ_A_FILE = re.compile(r"java\.io\.FileInputStream\.\w+")
_READS_A_FILE = re.compile(r"sun\.nio\.ch\.\w*FileDispatcherImpl\.\w+")  # or a socket, up to JDK 10
_FILE_CHANNEL = "sun.nio.ch.FileChannelImpl."
# Where the worker loop of a pool, timer or event loop waits for the next task. Nothing else calls these methods.
_LOOPS = re.compile(
    r"java\.util\.concurrent\.(?:ThreadPoolExecutor\.getTask|ForkJoinPool\.(?:awaitWork|idleAwaitWork|runWorker))"
    r"|java\.util\.TimerThread\.mainLoop|java\.lang\.ref\.(?:Reference\$ReferenceHandler|Finalizer\$FinalizerThread)\.run"
    r"|java\.lang\.ref\.ReferenceQueue\.remove\w*|jdk\.internal\.ref\.CleanerImpl\.run"
    r"|(?:.*\.)?netty\.(?:util\.(?:concurrent\.\w+EventExecutor\.(?:takeTask|confirmShutdown)|HashedWheelTimer\$Worker\.waitForNextTick)"
    r"|channel\.(?:\w+\.)?\w*(?:EventLoop|IoHandler)\.(?:select|epollWait\w*|kqueueWait\w*|run))"
    r"|org\.apache\.tomcat\.util\.(?:net\.(?:\w+Endpoint\$(?:Poller|Acceptor|AsyncTimeout)|Acceptor)|threads\.ThreadPoolExecutor)"
    r"\.(?:run|getTask|serverSocketAccept)|org\.apache\.catalina\.(?:core\.StandardServer\.await|core\.ContainerBase\$\w+\.run)"
    r"|org\.apache\.kafka\.clients\.consumer\.(?:\w+\.)*\w*Consumer\.poll"
    r"|sun\.rmi\.transport\.tcp\.TCPTransport\.handleMessages|java\.lang\.ProcessHandleImpl\S*\.\w+|com\.intellij\.rt\.\S+\.AppMainV2\$1\.run"
    r"|org\.eclipse\.swt\.widgets\.Display\.sleep|java\.awt\.(?:EventQueue\.getNextEvent|EventDispatchThread\.pumpEvents\w*)"
    r"|okhttp3\.internal\.concurrent\.TaskRunner\S*\.(?:awaitTaskToRun|coordinatorWait)"
    r"|(?:.*\.)?[\w$]*(?:Executor|Pool|Thread|Worker|Runner|Scheduler|Timer)[\w$]*"
    r"\.(?:getTask|awaitWork|mainLoop|takeTask|idleJobPoll|reservedWait|waitForRequest|waitForWork|waitForTask|runIdle|waitGet_)"
)
# Methods that run a task that somebody gave to a pool: what they call is work, and no loop of a thread's own.
_RUNS_A_TASK = re.compile(
    r"(?:.*\.)?(?:ThreadPoolExecutor(?:\$Worker)?\.(?:runWorker|runTask)|ForkJoin\w+\.(?:doExec|runWorker|exec)|FutureTask\.run\w*"
    r"|CompletableFuture\$\w+\.run|QueuedThreadPool\S*\.runJob|EnhancedQueueExecutor\S*\.\w+|VirtualThread\.run|ExecuteThread\.execute"
    r"|\w+(?:EventExecutor|EventLoop)\.(?:runAllTasks\w*|safeExecute|runTask))"
)
# What a loop of a thread's own may wait in. Waiting for a lock, a future, a connection or an answer is part of a request.
_FOR_WORK = frozenset({"element", "signal", "notification", "unpark", "sleep", "select", "accept", "input", "event"})
_IN_MAIN = frozenset({"latch", "thread", "result"})
_NETWORK = ("sun.nio.ch.", "java.net.")
_ACCEPTS = re.compile(r"[aA]ccept|[sS]elect")
_POLLS = re.compile(r"(?:poll|accept|epollWait|socketAccept)\d?")  # native methods of application servers, too
_NEAR = 10  # frames next to the leaf
_SHALLOW = 3  # frames of the application: a loop that waits, not a request in progress


def waits_for_connections(frames: Sequence[str]) -> bool:
    """Whether a thread is in accept or select, or waits for the lock of one, as idle servers do. `frames`: as for is_idle."""
    frames = [*map(bare, frames[:_NEAR])]
    if frames and (_SELECTS.fullmatch(frames[0]) or _POLLS.fullmatch(frames[0].rpartition(".")[2])):
        return True
    return any(frame.startswith(_NETWORK) and _ACCEPTS.search(frame.rpartition(".")[2]) for frame in frames)


def waits_in_native(frames: Sequence[str]) -> bool:
    """Whether a thread uses no CPU here, whatever its state. `frames`: short names, leaf first."""
    frames = [*map(bare, frames[:_NEAR])]
    if not frames or not any(pattern.fullmatch(frames[0]) for pattern in (_SLEEPS, _PARKS, _SELECTS, _READS, _SYNCS)):
        return False
    if _SYNCS.fullmatch(frames[0]):
        return True
    return not (_READS_A_FILE.fullmatch(frames[0]) and any(frame.startswith(_FILE_CHANNEL) for frame in frames[:6]))


def parks_or_selects(frames: Sequence[str]) -> bool:
    """Whether the thread parks, or selects channels: short waits, begun and ended by work that may never be seen. `frames`: as above."""
    return bool(frames) and any(pattern.fullmatch(bare(frames[0])) for pattern in (_PARKS, _SELECTS))


def returns_often(frame: str) -> bool:
    """Whether dumps show threads in this native method more often than they run it: they stop at its return."""
    return _RETURNS.fullmatch(bare(frame)) is not None


def may_read_file(frames: Sequence[str]) -> bool:
    """Whether this apparent wait may read a file, which uses CPU. `frames`: short names, leaf first."""
    return bool(frames) and _MAY_READ_A_FILE.fullmatch(bare(frames[0])) is not None


def is_idle(state: str | None, frames: Sequence[str]) -> bool:
    """Whether a thread waits for work: in the worker loop of its pool, or in a loop of its own.

    A wait within a request (for a lock, a connection, a future, an answer) is not idle. `frames`: short names, leaf first.
    """
    if not frames:
        return True
    frames = [*map(bare, frames)]
    if not (state in ("WAITING", "TIMED_WAITING") or (state != "BLOCKED" and waits_in_native(frames))):
        return False
    if (loop := _loop_of(frames)) is not None:
        return not any(is_application(frame) for frame in frames[:loop])
    wait = wait_of(state, frames)
    if wait is None or wait.kind not in _FOR_WORK | (_IN_MAIN if frames[-1].endswith(".main") else frozenset()):
        return False
    own = sum(map(is_application, frames))  # none: a loop of a library, which may run in a pool
    return own == 0 or (own <= _SHALLOW and not any(map(_RUNS_A_TASK.fullmatch, frames)))


def _loop_of(frames: Sequence[str]) -> int | None:
    """The index of the frame that waits for the next task of a pool, where no task runs inside of it."""
    for index, frame in enumerate(frames):
        if _LOOPS.fullmatch(frame):
            # A method of the application with such a name may be part of a task.
            in_task = is_application(frame) and any(map(_RUNS_A_TASK.fullmatch, frames[index:]))
            return None if in_task else index
        if _RUNS_A_TASK.fullmatch(frame):
            return None
    return None
