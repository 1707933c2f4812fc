"""What is known of the owner of a lock where a dump does not name it. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.dumps.thread_dump import Thread, ThreadDump

_OWNED = re.compile(r"ReentrantLock\$|ReentrantReadWriteLock\$")
_SHARED, _WRITES = "ReentrantReadWriteLock$", "ReentrantReadWriteLock$WriteLock."
_ASK_FOR_OWNER = "an ordinary dump does not list it; --synchronizers finds it (walks the heap)"
_ASK_FOR_WRITER = "readers, which the JVM does not record, or a writer, which --synchronizers finds (walks the heap)"
ASK_FOR_SYNCHRONIZERS = (_ASK_FOR_OWNER, _ASK_FOR_WRITER)
NO_OWNER = "it has no owner: releasing, counting down or opening it ends the wait"
HELD_BY_READERS = "held by readers; the JVM does not record which"
HELD_BY_READERS_OR_VIRTUAL = "held by readers or by a virtual thread; the JVM does not record which"
NOT_RECORDED = "dumps of virtual threads do not record it"
NO_OWNER_IN_DUMP = "no thread in this dump holds it: the VM or an unlisted virtual thread does, or it was just released"


def can_be_owned(class_name: str) -> bool:
    """Whether a thread holds a java.util.concurrent lock of this class while others wait (not a semaphore or latch)."""
    return _OWNED.search(class_name) is not None


def why_unknown(kind: str, class_name: str, waiters: Sequence[Thread], dump: ThreadDump) -> str:
    """Why the owner of a lock is unknown. `kind`: "monitor" or "synchronizer"."""
    if kind != "monitor" and not can_be_owned(class_name):
        return NO_OWNER
    if kind != "monitor" and not dump.lists_owners:
        asks = _ASK_FOR_WRITER if _SHARED in class_name else _ASK_FOR_OWNER
        return NOT_RECORDED if any(thread.virtual for thread in waiters) else asks
    if _SHARED in class_name and any(_WRITES in frame for thread in waiters for frame in thread.stack.frames):
        # A writer waits, and no writer has it that the dump can name.
        unlisted = any(map(is_of_virtual, dump.threads)) and not any(thread.virtual for thread in dump.threads)
        return HELD_BY_READERS_OR_VIRTUAL if unlisted else HELD_BY_READERS
    return NO_OWNER_IN_DUMP


def is_of_virtual(thread: Thread) -> bool:
    """Whether the thread is virtual, or one that only a JVM with virtual threads has."""
    return thread.virtual is True or thread.stack.role is not None or thread.name == "VirtualThread-unparker"
