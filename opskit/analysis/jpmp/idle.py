"""Who only waits: in natives that cost nothing although they are RUNNABLE, and for work that has not come. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Natives and JDK methods that a thread is in while it waits; a thread in one of the natives is RUNNABLE all the same.
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
# Of these, what may read a pipe or a terminal, and a file of the page cache's just as well: then it is work.
_MAY_READ_A_FILE = re.compile(r"java\.io\.FileInputStream\.\w+")
_READS_A_FILE = re.compile(r"sun\.nio\.ch\.\w*FileDispatcherImpl\.\w+")  # or a socket, up to JDK 10
_FILE_CHANNEL = "sun.nio.ch.FileChannelImpl."
# Waiting for a lock is not waiting for work.
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
_THE_JDKS_OWN = re.compile(r"(?:java|javax|jdk|sun|com\.sun)\.")
_SHALLOW = 3  # frames of the application's own: a loop that waits, not a request on its way


def waits_in_native(frames: Sequence[str]) -> bool:
    """Whether a thread uses no CPU where it stands, whatever its state says. `frames`: frame_names, leaf first."""
    frames = _bare(frames)
    if not frames or not any(pattern.fullmatch(frames[0]) for pattern in (_SLEEPS, _PARKS, _SELECTS, _READS)):
        return False
    return _READS_A_FILE.fullmatch(frames[0]) is None or not any(
        frame.startswith(_FILE_CHANNEL) for frame in frames[:6]
    )


def may_read_file(frames: Sequence[str]) -> bool:
    """Whether what looks like waiting may be the reading of a file, which costs CPU. `frames`: frame_names, leaf first."""
    return bool(frames) and _MAY_READ_A_FILE.fullmatch(_bare(frames[:1])[0]) is not None


def _bare(frames: Sequence[str]) -> Sequence[str]:
    """Without the descriptors that SAP's frames have: `read(I)I`."""
    return [frame.partition("(")[0] for frame in frames]


def _wants_work(frame: str) -> bool:
    """Whether it is the method of a queue, pool or the like that gives work, or waits for it."""
    owner, point, method = frame.rpartition(".")
    if not point or not _WANTS_WORK.fullmatch(method):
        return False
    simple = max(owner.rfind("."), owner.rfind("$"))
    name = _WORD.fullmatch(owner, simple + 1) if simple >= 0 else None
    return name is not None and _CLASS_WITH_WORK.search(owner, simple + 1) is not None


def is_idle(state: str | None, frames: Sequence[str]) -> bool:
    """Whether a thread waits for work to come: asleep, in an empty pool or queue, in accept or select.

    One that waits in the middle of a request (for a lock, a connection, an answer) is not idle. `frames` are
    frame_names, leaf first.
    """
    if not frames:
        return True
    frames = _bare(frames)
    waits = state in ("WAITING", "TIMED_WAITING") or waits_in_native(frames)
    if not waits or state == "BLOCKED" or any(_ACQUIRES.match(frame) for frame in frames[:6]):
        return False
    if _SLEEPS.fullmatch(frames[0]) or _SELECTS.fullmatch(frames[0]):
        return True
    if any(map(_wants_work, frames)):
        return True
    return sum(not _THE_JDKS_OWN.match(frame) for frame in frames) <= _SHALLOW
