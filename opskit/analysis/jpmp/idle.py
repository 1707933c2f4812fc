"""Which threads wait: in native methods that use no CPU although RUNNABLE, and for work to arrive. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
# These may read a pipe or terminal (a wait) or a cached file (work).
_MAY_READ_A_FILE = re.compile(r"java\.io\.FileInputStream\.\w+")
_READS_A_FILE = re.compile(r"sun\.nio\.ch\.\w*FileDispatcherImpl\.\w+")  # or a socket, up to JDK 10
_FILE_CHANNEL = "sun.nio.ch.FileChannelImpl."
# Waiting for a lock is not idle.
_ACQUIRES = re.compile(
    r"java\.util\.concurrent\.locks\.(?:AbstractQueued\w*Synchronizer|StampedLock)\.\w*[aA]cquire\w*"
)
_CLASS_WITH_WORK = re.compile(
    r"Queue|Executor|Pool|Timer|TimerThread|Selector|Reactor|Worker|Poller|ExecuteThread|ThreadImpl|Scheduler"
)
_WANTS_WORK = re.compile(
    r"take\w*|poll\w*|getTask|mainLoop|awaitWork|idleJobPoll|reservedWait|waitForRequest|remove|runIdle|waitForWork|idle\w*"
)
_WORD = re.compile(r"\w+")
_JDK = re.compile(r"(?:java|javax|jdk|sun|com\.sun)\.")
_NETWORK = ("sun.nio.ch.", "java.net.")
_ACCEPTS = re.compile(r"[aA]ccept|[sS]elect")
_POLLS = re.compile(r"(?:poll|accept|epollWait|socketAccept)\d?")  # native methods of application servers, too
_NEAR = 10  # frames next to the leaf
_SHALLOW = 3  # frames of the application: a loop that waits, not a request in progress


def waits_for_connections(frames: Sequence[str]) -> bool:
    """Whether a thread is in accept or select, or waits for the lock of one, as idle servers do. `frames`: as for is_idle."""
    frames = _bare(frames[:_NEAR])
    if frames and (_SELECTS.fullmatch(frames[0]) or _POLLS.fullmatch(frames[0].rpartition(".")[2])):
        return True
    return any(frame.startswith(_NETWORK) and _ACCEPTS.search(frame.rpartition(".")[2]) for frame in frames)


def waits_in_native(frames: Sequence[str]) -> bool:
    """Whether a thread uses no CPU here, whatever its state. `frames`: short names, leaf first."""
    frames = _bare(frames)
    if not frames or not any(pattern.fullmatch(frames[0]) for pattern in (_SLEEPS, _PARKS, _SELECTS, _READS)):
        return False
    return not (_READS_A_FILE.fullmatch(frames[0]) and any(frame.startswith(_FILE_CHANNEL) for frame in frames[:6]))


def may_read_file(frames: Sequence[str]) -> bool:
    """Whether this apparent wait may read a file, which uses CPU. `frames`: short names, leaf first."""
    return bool(frames) and _MAY_READ_A_FILE.fullmatch(_bare(frames[:1])[0]) is not None


def _bare(frames: Sequence[str]) -> Sequence[str]:
    """The frames without the descriptors of SAP's JVM: `read(I)I`."""
    return [frame.partition("(")[0] for frame in frames]


def _wants_work(frame: str) -> bool:
    """Whether the frame is a method of a queue or pool that waits for work."""
    owner, point, method = frame.rpartition(".")
    if not point or not _WANTS_WORK.fullmatch(method):
        return False
    simple = max(owner.rfind("."), owner.rfind("$"))
    name = _WORD.fullmatch(owner, simple + 1) if simple >= 0 else None
    return name is not None and _CLASS_WITH_WORK.search(owner, simple + 1) is not None


def is_idle(state: str | None, frames: Sequence[str]) -> bool:
    """Whether a thread waits for work: asleep, in an empty pool or queue, in accept or select.

    A wait within a request (for a lock, a connection, a reply) is not idle. `frames`: short names, leaf first.
    """
    if not frames:
        return True
    frames = _bare(frames)
    waits = state in ("WAITING", "TIMED_WAITING") or waits_in_native(frames)
    if not waits or state == "BLOCKED" or any(_ACQUIRES.match(frame) for frame in frames[:6]):
        return False
    if _SLEEPS.fullmatch(frames[0]) or _SELECTS.fullmatch(frames[0]) or any(map(_wants_work, frames)):
        return True
    return sum(not _JDK.match(frame) for frame in frames) <= _SHALLOW
