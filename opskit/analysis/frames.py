"""Frames as people read them, threads by their pool, and which of them only wait. Pure.

A frame comes as the dump has it, `java.base@17/java.lang.Thread.run(Thread.java:840)`, or `…run(java.base@17/Thread.java:840)`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LAMBDA = re.compile(r"\$\$Lambda(?:\$\d+)?/(?:0x)?[0-9a-f]+")
_HIDDEN = re.compile(r"/0x[0-9a-f]+")

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
    r"|java\.io\.(?:FileInputStream|RandomAccessFile)\.(?:read0|readBytes0?)"
)
# Waiting for a lock is not waiting for work.
_ACQUIRES = re.compile(
    r"java\.util\.concurrent\.locks\.(?:AbstractQueued\w*Synchronizer|StampedLock)\.\w*[aA]cquire\w*"
)
_WANTS_WORK = re.compile(
    r"[.$]\w*(?:Queue|Executor|Pool|Timer|TimerThread|Selector|Reactor|Worker|Poller|ExecuteThread|ThreadImpl|Scheduler)\w*"
    r"\.(?:take\w*|poll\w*|getTask|mainLoop|awaitWork|idleJobPoll|reservedWait|waitForRequest|remove|runIdle|waitForWork|idle\w*)$"
)
_THE_JDKS_OWN = re.compile(r"(?:java|javax|jdk|sun|com\.sun)\.")
_SHALLOW = 3  # frames of the application's own: a loop that waits, not a request on its way

_POOL_NUMBER = re.compile(
    r"\d+(?= \([^()]*\)$)|(?:(?<=[-#_(':. ])\d+(?=$|[)'\]\s-])|\d+$)(?!.*(?:[-#_(':. ]\d+(?:$|[)'\]\s-])|\d+$))"
)
_VM_NUMBER = re.compile(r"#?\d+(?= \(|$)")


def frame_name(frame: str, *, full: bool = False, lines: bool = False) -> str:
    """`java.lang.Thread.run` for the frame; with `lines`, `(Thread.java:840)` behind it.

    Module and class loader go, hidden classes and lambdas lose the number that changes with every start, unless `full`.
    """
    name, place = frame, ""
    if frame.endswith(")"):
        name, _, place = frame[:-1].rpartition("(")
    if not full:
        if "/" in name:
            name = _HIDDEN.sub("", _LAMBDA.sub("$$Lambda", name))
        name = name[name.rfind("/") + 1 :]
    if lines and place:
        name += f"({place.rpartition('/')[2]})"
    return name


def short(frame: str) -> str:
    """A leading `java` cut to `j`, as the shell script of old had it."""
    return "j" + frame[4:] if frame.startswith("java") else frame


def pool_of(thread: str) -> str:
    """`pool-1-thread-17` -> `pool-1-thread-*`: the number that tells a thread from its fellows."""
    return _POOL_NUMBER.sub("*", thread, count=1)


def vm_frame(thread: str) -> str:
    """How a thread without frames shows where CPU is told: `GC Thread#3` -> `[GC Thread]`."""
    return f"[{_VM_NUMBER.sub('', thread)}]"


def waits_in_native(frame: str) -> bool:
    """Whether a thread whose top frame is this uses no CPU there, whatever its state says. `frame` is a frame_name."""
    return any(pattern.fullmatch(frame) for pattern in (_SLEEPS, _PARKS, _SELECTS, _READS))


def is_idle(state: str | None, frames: Sequence[str]) -> bool:
    """Whether a thread waits for work to come: asleep, in an empty pool or queue, in accept or select.

    One that waits in the middle of a request (for a lock, a connection, an answer) is not idle. `frames` are
    frame_names, leaf first.
    """
    if not frames:
        return True
    waits = state in ("WAITING", "TIMED_WAITING") or waits_in_native(frames[0])
    if not waits or state == "BLOCKED" or any(_ACQUIRES.match(frame) for frame in frames[:6]):
        return False
    if _SLEEPS.fullmatch(frames[0]) or _SELECTS.fullmatch(frames[0]):
        return True
    if any(_WANTS_WORK.search(frame) for frame in frames):
        return True
    return sum(not _THE_JDKS_OWN.match(frame) for frame in frames) <= _SHALLOW
