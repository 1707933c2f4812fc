"""Which Java threads wait for a monitor, and who holds it, read in a JVM's memory: no attach, no safepoint, no pause.

JavaThread::_current_pending_monitor is the ObjectMonitor that a thread wants to enter. Its `_owner` is, by release and lock mode:

    the address of a JavaThread               up to JDK 23
    an address in a thread's stack            a stack lock that others have inflated (up to JDK 23)
    a thread's _monitor_owner_id              from JDK 24 on
    1, anonymous                              inflated by others: the holder has the object on its LockStack (JDK 21 on)

Source: src/hotspot/share/runtime/objectMonitor.hpp, lockStack.hpp. What is read changes meanwhile: only what two looks show is so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.memory.threads import java_threads
from opskit.proc.memory import u32, u64
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_ANONYMOUS = 1
_WORD_BYTES = 8
_MOST_LOCKS = 64  # on a LockStack; HotSpot's has 8
_SHIFTS = (0, 13, 14, 15, 16)  # of a generational ZGC's pointer; a LockStack has plain addresses
# What is read here, of a table of 2,000 fields.
TYPES = frozenset({
    "JavaThread", "Thread", "OSThread", "ObjectMonitor", "LockStack", "ThreadsSMRSupport", "ThreadsList", "Threads",
})  # fmt: skip


class Wait(NamedTuple):
    """A thread that wants a monitor, and the thread that holds it, by addresses; `holder` 0: unknown."""

    monitor: int
    holder: int


class Monitors:
    """The monitors of one JVM. Raises NotSupported for a table without them."""

    def __init__(self, vm: VmStructs, memory: Memory) -> None:
        self._vm, self._memory = vm, memory
        self._pending = vm.at(("JavaThread", "_current_pending_monitor"), ("Thread", "_current_pending_monitor"))
        owner = vm.field(("ObjectMonitor", "_owner"))
        self._owner, self._has_ids = owner.at, owner.type == "int64_t"
        self._object = vm.at(("ObjectMonitor", "_object"))
        self._stack = vm.at(("JavaThread", "_stack_base"), ("Thread", "_stack_base"))
        self._stack_size = vm.at(("JavaThread", "_stack_size"), ("Thread", "_stack_size"))
        self._os_thread = vm.at(("JavaThread", "_osthread"), ("Thread", "_osthread"))
        self._tid = vm.at(("OSThread", "_thread_id"))
        self._id = vm.find(("JavaThread", "_monitor_owner_id"))
        locks, top, base = (
            vm.find(name) for name in (("JavaThread", "_lock_stack"), ("LockStack", "_top"), ("LockStack", "_base[0]"))
        )
        self._locks = None if locks is None or top is None or base is None else (locks + top, locks + base)

    def waits(self, most: int) -> dict[int, Wait] | None:
        """By the address of each thread that waits for a monitor; None: the JVM has more threads than `most`."""
        threads: list[int] = []
        for thread in java_threads(self._vm, self._memory):
            threads.append(thread)
            if len(threads) > most:
                return None
        wanted = {thread: monitor for thread in threads if (monitor := u64(self._memory, thread + self._pending))}
        holders = {monitor: self._holder(monitor, threads) for monitor in set(wanted.values())}
        return {thread: Wait(monitor, holders[monitor]) for thread, monitor in wanted.items()}

    def tid(self, thread: int) -> int:
        """The TID of a thread, as the JVM itself sees it; 0: it has ended."""
        os_thread = u64(self._memory, thread + self._os_thread)
        return (u32(self._memory, os_thread + self._tid) or 0) if os_thread else 0

    def _holder(self, monitor: int, threads: Iterable[int]) -> int:
        owner = u64(self._memory, monitor + self._owner)
        if not owner:
            return 0
        if owner == _ANONYMOUS and self._locks is not None:
            return self._by_lock_stack(monitor, threads, *self._locks)
        if self._has_ids:
            at = self._id
            return 0 if at is None else next((each for each in threads if u64(self._memory, each + at) == owner), 0)
        return next((each for each in threads if each == owner or self._has_on_stack(each, owner)), 0)

    def _has_on_stack(self, thread: int, address: int) -> bool:
        base, size = u64(self._memory, thread + self._stack), u64(self._memory, thread + self._stack_size)
        return base is not None and size is not None and base - size <= address < base

    def _by_lock_stack(self, monitor: int, threads: Iterable[int], top_at: int, base_at: int) -> int:
        handle = u64(self._memory, monitor + self._object)
        wanted = u64(self._memory, handle) if handle else None
        if not wanted:
            return 0
        for thread in threads:
            top = u32(self._memory, thread + top_at) or 0  # the offset in the thread of the first free place
            for at in range(base_at, min(top, base_at + _MOST_LOCKS * _WORD_BYTES), _WORD_BYTES):
                lock = u64(self._memory, thread + at)
                if lock and any(wanted >> shift == lock for shift in _SHIFTS):
                    return thread
        return 0
