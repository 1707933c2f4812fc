"""The Java threads of a JVM: their full names, by the TIDs that the JVM itself sees (OSThread::_thread_id).

Read in its memory, while threads start and end: a JavaThread counts only as long as its OSThread has the wanted TID.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.memory import u32, u64

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.jvm.memory.objects import Objects
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_MOST_THREADS = 1 << 17
_LONGEST_NAME = 4096
_MOST_UNREAD = 64
_COMM_BYTES = 15  # that the kernel keeps of a name
VIRTUAL_THREAD = "java/lang/VirtualThread"


class JavaThreads:
    """The threads of one JVM. Raises NotSupported for a table without them."""

    def __init__(
        self, vm: VmStructs, memory: Memory, objects: Objects, comm: Callable[[int], str | None] | None = None
    ) -> None:
        """`comm`: the kernel's name of a thread by the JVM's TID, which proves a name that a collector may have moved."""
        self._vm, self._memory, self._objects, self._comm = vm, memory, objects, comm
        self._os_thread = vm.at(("JavaThread", "_osthread"), ("Thread", "_osthread"))
        self._tid = vm.at(("OSThread", "_thread_id"))
        self._object = vm.field(("JavaThread", "_threadObj"))
        self._threads: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._fresh: set[int] = set()
        self._unread: set[int] = set()
        self._is_listed = False

    def forget(self) -> None:
        """Read names and, where a TID is unknown, the list of threads anew from now on. Call it once per drain.

        Names that could not be read while a collector moved them are tried again.
        """
        self._fresh.clear()
        self._is_listed = False
        unread, self._unread = self._unread, set()
        for tid in unread:
            self.name(tid)

    def thread(self, tid: int) -> int:
        """The address of the JavaThread with this TID; 0: none has it now. Reads the list at most once until `forget`."""
        known = self._threads.get(tid, 0)
        if known and self._tid_of(known) == tid:
            return known
        if not self._is_listed:
            self._is_listed = True
            self._threads = {
                found: each for each in java_threads(self._vm, self._memory) if (found := self._tid_of(each))
            }
        return self._threads.get(tid, 0)

    def name(self, tid: int) -> str | None:
        """The name of the Java thread; that which it had last where it has ended. None: no Java thread, or not readable."""
        if tid not in self._fresh:
            self._fresh.add(tid)
            thread = self.thread(tid)
            found = self._read_name(tid, thread) if thread else None
            if found is not None and self._tid_of(thread) == tid:
                self._names[tid] = found[:_LONGEST_NAME]
            elif thread and tid not in self._names and len(self._unread) < _MOST_UNREAD:
                self._unread.add(tid)
        return self._names.get(tid)

    def _read_name(self, tid: int, thread: int) -> str | None:
        """The name in the java.lang.Thread that refers back to the JavaThread; None: it is elsewhere by now."""
        objects = self._objects
        java = objects.handle(thread + self._object.at, self._object.type)
        back = objects.field_at(java, "eetop")
        if not back or u64(self._memory, back) != thread:
            return None
        name = objects.string(objects.get(java, "name", is_current=True))
        if name is None and self._comm is not None:
            name, comm = objects.string(objects.get(java, "name"), is_current=False), self._comm(tid)
            is_proven = (
                name is not None
                and comm
                and name.encode("utf-8", "replace")[:_COMM_BYTES] == comm.encode("utf-8", "replace")
            )
            return name if is_proven else None
        return name

    def _tid_of(self, thread: int) -> int:
        """The TID of a JavaThread; 0 where it has none, or is no longer there."""
        os_thread = u64(self._memory, thread + self._os_thread)
        return (u32(self._memory, os_thread + self._tid) or 0) if os_thread else 0


def java_threads(vm: VmStructs, memory: Memory) -> Iterator[int]:
    """The addresses of the JavaThreads: an array since JDK 12, before that a linked list. Raises NotSupported."""
    head = vm.find(("ThreadsSMRSupport", "_java_thread_list"))
    if head is None:
        next_at = vm.at(("JavaThread", "_next"))
        thread = u64(memory, vm.at(("Threads", "_thread_list"))) or 0
        for _ in range(_MOST_THREADS):
            if not thread:
                return
            yield thread
            thread = u64(memory, thread + next_at) or 0
        return
    threads = u64(memory, head) or 0
    count = u32(memory, threads + vm.at(("ThreadsList", "_length"))) or 0
    array = u64(memory, threads + vm.at(("ThreadsList", "_threads"))) or 0
    data = memory.read(array, 8 * min(count, _MOST_THREADS))
    for (thread,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8]):
        yield thread


def virtual_name(objects: Objects, thread: int) -> str | None:
    """The name of a virtual thread, or `#id` where it has none; None where no virtual thread is at this address."""
    if not thread or not objects.is_a(thread, VIRTUAL_THREAD):
        return None
    name, tid_at = objects.string(objects.get(thread, "name", is_current=True)), objects.field_at(thread, "tid")
    tid = u64(objects.memory, tid_at) if tid_at else None
    return name[:_LONGEST_NAME] if name else None if tid is None else f"#{tid}"
