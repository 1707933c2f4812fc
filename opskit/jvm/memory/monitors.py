"""Which Java threads wait for a monitor, and who holds it, read in a JVM's memory: no attach, no safepoint, no pause.

JavaThread::_current_pending_monitor is the ObjectMonitor that a thread wants to enter. Its `_owner` is, by release and lock mode:

    the address of a JavaThread               up to JDK 23
    an address in a thread's stack            a stack lock that others have inflated (up to JDK 23)
    a thread's _monitor_owner_id              from JDK 24 on
    1, anonymous                              inflated by others: the holder has the object on its LockStack (JDK 21 on)

Source: src/hotspot/share/runtime/objectMonitor.hpp, lockStack.hpp. What is read changes meanwhile: only what two looks show is so.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from opskit.jvm.memory.threads import java_threads
from opskit.proc.memory import u32, u64
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

_ANONYMOUS = 1
_WORD_BYTES = 8
_HIGHEST = 1 << 64
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
        self._os_thread = vm.at(("JavaThread", "_osthread"), ("Thread", "_osthread"))
        self._tid = vm.at(("OSThread", "_thread_id"))
        owner = vm.field(("ObjectMonitor", "_owner"))
        locks, top, base = (
            vm.find(name) for name in (("JavaThread", "_lock_stack"), ("LockStack", "_top"), ("LockStack", "_base[0]"))
        )
        self._at = _At(
            owner.at,
            vm.at(("ObjectMonitor", "_object")),
            vm.at(("JavaThread", "_stack_base"), ("Thread", "_stack_base")),
            vm.at(("JavaThread", "_stack_size"), ("Thread", "_stack_size")),
            owner.type == "int64_t",
            vm.find(("JavaThread", "_monitor_owner_id")),
            None if locks is None or top is None or base is None else (locks + top, locks + base),
        )

    def waits(self, most: int) -> dict[int, Wait] | None:
        """By the address of each thread that waits for a monitor of another; None: the JVM has more threads than `most`."""
        threads: list[int] = []
        for thread in java_threads(self._vm, self._memory):
            threads.append(thread)
            if len(threads) > most:
                return None
        wanted = {thread: monitor for thread in threads if (monitor := u64(self._memory, thread + self._pending))}
        holders = _Holders(self._memory, self._at, threads)
        found = {thread: Wait(monitor, holders.of(monitor)) for thread, monitor in wanted.items()}
        # HotSpot forgets the wish of a thread only after it got the monitor; a stopped JVM may stay between the two.
        return {thread: wait for thread, wait in found.items() if wait.holder != thread}

    def tid(self, thread: int) -> int:
        """The TID of a thread, as the JVM itself sees it; 0: it has ended."""
        os_thread = u64(self._memory, thread + self._os_thread)
        return (u32(self._memory, os_thread + self._tid) or 0) if os_thread else 0


class _At(NamedTuple):
    """Offsets of fields; `id` and `locks` (top, base) None: this release has none. `has_ids`: owners are numbers."""

    owner: int
    object: int
    stack: int
    stack_size: int
    has_ids: bool
    id: int | None
    locks: tuple[int, int] | None


class _Holders:
    """The threads of one look by what their monitors may say of them. Each thread is read a bounded number of times."""

    def __init__(self, memory: Memory, at: _At, threads: Sequence[int]) -> None:
        self._memory, self._at, self._threads = memory, at, threads
        self._all = set(threads)
        self._known: dict[int, int] = {}

    def of(self, monitor: int) -> int:
        """The thread that holds a monitor; 0: none, or unknown."""
        if monitor not in self._known:
            self._known[monitor] = self._find(monitor)
        return self._known[monitor]

    def _find(self, monitor: int) -> int:
        owner = u64(self._memory, monitor + self._at.owner)
        if not owner:
            return 0
        if owner == _ANONYMOUS and self._at.locks is not None:
            handle = u64(self._memory, monitor + self._at.object)
            wanted = (u64(self._memory, handle) or 0) if handle else 0
            return next((self._locks[wanted >> shift] for shift in _SHIFTS if wanted >> shift in self._locks), 0)
        if self._at.has_ids:
            return self._ids.get(owner, 0)
        return owner if owner in self._all else self._by_stack(owner)

    @cached_property
    def _ids(self) -> dict[int, int]:
        at = self._at.id
        found = [] if at is None else [(u64(self._memory, thread + at), thread) for thread in self._threads]
        return {number: thread for number, thread in found if number}

    @cached_property
    def _locks(self) -> dict[int, int]:
        """The objects on the LockStacks."""
        found: dict[int, int] = {}
        top_at, base_at = self._at.locks or (0, 0)
        for thread in self._threads:
            top = u32(self._memory, thread + top_at) or 0  # the offset in the thread of the first free place
            for at in range(base_at, min(top, base_at + _MOST_LOCKS * _WORD_BYTES), _WORD_BYTES):
                lock = u64(self._memory, thread + at)
                if lock:
                    found[lock] = thread
        return found

    @cached_property
    def _stacks(self) -> list[tuple[int, int, int]]:
        """The end, the begin and the thread of each stack, by addresses."""
        found = []
        for thread in self._threads:
            base = u64(self._memory, thread + self._at.stack)
            size = u64(self._memory, thread + self._at.stack_size)
            if base and size and size < base:
                found.append((base - size, base, thread))
        return sorted(found)

    def _by_stack(self, address: int) -> int:
        place = bisect_right(self._stacks, (address, _HIGHEST, 0)) - 1
        if place < 0:
            return 0
        _, base, thread = self._stacks[place]
        return thread if address < base else 0
