"""The Java threads of a JVM: their full names, by the TIDs that the JVM itself sees (OSThread::_thread_id).

Read in its memory, while threads start and end: a JavaThread counts only as long as its OSThread has the wanted TID.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.memory import u32, u64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.memory.objects import Objects
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_MOST_THREADS = 1 << 17
_LONGEST_NAME = 4096
VIRTUAL_THREAD = "java/lang/VirtualThread"


class JavaThreads:
    """The threads of one JVM. Raises NotSupported for a table without them."""

    def __init__(self, vm: VmStructs, memory: Memory, objects: Objects) -> None:
        self._vm, self._memory, self._objects = vm, memory, objects
        self._os_thread = vm.at(("JavaThread", "_osthread"), ("Thread", "_osthread"))
        self._tid = vm.at(("OSThread", "_thread_id"))
        self._object = vm.at(("JavaThread", "_threadObj"))
        self._object_type = vm.fields["JavaThread", "_threadObj"].type
        self._virtual = vm.find(("JavaThread", "_vthread"))  # since JDK 21
        self._threads: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._fresh: set[int] = set()
        self._is_listed = False

    def forget(self) -> None:
        """Read names and, where a TID is unknown, the list of threads anew from now on. Call it once per drain."""
        self._fresh.clear()
        self._is_listed = False

    def thread(self, tid: int) -> int:
        """The address of the JavaThread with this TID; 0: none has it now. Reads the list at most once until `forget`."""
        known = self._threads.get(tid, 0)
        if known and self._tid_of(known) == tid:
            return known
        if not self._is_listed:
            self._is_listed = True
            self._threads = {found: each for each in self._list() if (found := self._tid_of(each))}
        return self._threads.get(tid, 0)

    def name(self, tid: int) -> str | None:
        """The name of the Java thread; that which it had last where it has ended. None: no Java thread, or not readable."""
        if tid not in self._fresh:
            self._fresh.add(tid)
            thread = self.thread(tid)
            found = self._objects.string(self._objects.get(self._java_object(thread), "name")) if thread else None
            if found is not None and self._tid_of(thread) == tid:
                self._names[tid] = found[:_LONGEST_NAME]
        return self._names.get(tid)

    def mounted(self, tid: int) -> str | None:
        """The name or `#id` of the virtual thread that the thread carries now; None: it carries none."""
        thread = self.thread(tid)
        if not thread or self._virtual is None:
            return None
        current = self._objects.handle(thread + self._virtual, "OopHandle")
        return virtual_name(self._objects, current)

    def _java_object(self, thread: int) -> int:
        return self._objects.handle(thread + self._object, self._object_type)

    def _tid_of(self, thread: int) -> int:
        """The TID of a JavaThread; 0 where it has none, or is no longer there."""
        os_thread = u64(self._memory, thread + self._os_thread)
        return (u32(self._memory, os_thread + self._tid) or 0) if os_thread else 0

    def _list(self) -> Iterator[int]:
        """The JavaThreads: an array since JDK 12, before that a linked list."""
        head = self._vm.find(("ThreadsSMRSupport", "_java_thread_list"))
        if head is None:
            next_at = self._vm.at(("JavaThread", "_next"))
            thread = u64(self._memory, self._vm.at(("Threads", "_thread_list"))) or 0
            for _ in range(_MOST_THREADS):
                if not thread:
                    return
                yield thread
                thread = u64(self._memory, thread + next_at) or 0
            return
        threads = u64(self._memory, head) or 0
        count = u32(self._memory, threads + self._vm.at(("ThreadsList", "_length"))) or 0
        array = u64(self._memory, threads + self._vm.at(("ThreadsList", "_threads"))) or 0
        data = self._memory.read(array, 8 * min(count, _MOST_THREADS))
        for (thread,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8]):
            yield thread


def virtual_name(objects: Objects, thread: int) -> str | None:
    """The name of a virtual thread, or `#id` where it has none; None where no virtual thread is at this address."""
    if not thread or not objects.is_a(thread, VIRTUAL_THREAD):
        return None
    name, tid_at = objects.string(objects.get(thread, "name")), objects.field_at(thread, "tid")
    tid = u64(objects.memory, tid_at) if tid_at else None
    return name[:_LONGEST_NAME] if name else None if tid is None else f"#{tid}"
