"""Locks that virtual threads wait for, from Thread.dump_to_file beside ordinary dumps, which lack these threads. Pure.

JDK 25 names the lock there, and the owner of a monitor. JDK 21 to 24 give stacks only: they tell the method that acquires a lock.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.analysis.jpmp.frames import application_frame, frame_name
from opskit.analysis.jpmp.lock_owners import is_of_virtual
from opskit.analysis.jpmp.locks import Contention, most_held_up_first, party_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.analysis.jpmp.locks import ContendedLock, Party
    from opskit.analysis.jpmp.stacks import Naming
    from opskit.jvm.dumps.thread_dump import ThreadDump

_NEAR = 16  # frames next to the leaf
_ACQUIRES = re.compile(
    r"java\.util\.concurrent\.locks\.((?:ReentrantLock|ReentrantReadWriteLock\$(?:Read|Write)Lock)\.(?:lock|tryLock)\w*"
    r"|StampedLock\.(?:read|write|tryRead|tryWrite)Lock\w*)"
)


class StackWaits(NamedTuple):
    """Virtual threads that wait in `method` (ReentrantLock.lock), called by `caller`; for one lock or for several.

    `waiters`: of the last dump that has any. `lasting`: those that wait there in all `dumps`; `samples`: dumps that have any.
    """

    method: str
    caller: str
    waiters: tuple[Party, ...]
    samples: int
    dumps: int
    lasting: int


def waits_by_stack(dumps: Sequence[ThreadDump], naming: Naming) -> tuple[StackWaits, ...]:
    """Group the virtual threads that acquire a lock by their stacks; for dumps without lines about locks."""
    found: dict[tuple[str, str], list[dict[int | None, Party]]] = {}
    for dump in dumps:
        here: dict[tuple[str, str], dict[int | None, Party]] = {}
        for thread in dump.threads:
            if thread.virtual and (place := _acquires(thread.stack.frames)) is not None:
                here.setdefault(place, {})[thread.java_id] = party_of(thread, naming)
        for place, waiters in here.items():
            found.setdefault(place, []).append(waiters)
    groups = [
        StackWaits(
            *place,
            tuple(each[-1].values()),
            len(each),
            len(dumps),
            len(set.intersection(*map(set, each))) if len(each) == len(dumps) else 0,
        )
        for place, each in found.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-len(group.waiters), group.method, group.caller)))


def _acquires(frames: Sequence[str]) -> tuple[str, str] | None:
    """The method that acquires a lock, and the application's frame that calls it."""
    names = [frame_name(frame) for frame in frames]
    for number, name in enumerate(names[:_NEAR]):
        if match := _ACQUIRES.fullmatch(name):
            return match[1], application_frame(names[number:]) or "the JDK"
    return None


def others_in(dump: ThreadDump, caller: str) -> list[Party]:
    """The threads in that method of the application that do not wait for a lock there: one of them may hold it."""
    return [
        party_of(thread)
        for thread in dump.threads
        if caller in map(frame_name, thread.stack.frames) and _acquires(thread.stack.frames) is None
    ]


def with_virtual(found: Contention, virtual: Contention) -> Contention:
    """Add the locks that virtual threads wait for or hold, and the owners that ordinary dumps do not list.

    A dump to a file names a lock by another number: it is the same one if the same thread waits for it.
    """
    locks = {lock.key: lock for lock in found.locks}
    of_waiter = {(party.java_id, lock.class_name): lock.key for lock in found.locks for party in lock.waiters}
    for lock in virtual.locks:
        key = next(filter(None, (of_waiter.get((party.java_id, lock.class_name)) for party in lock.waiters)), None)
        if key is not None:
            locks[key] = _joined(locks[key], lock)
        elif _is_virtual(lock):
            locks[lock.key] = lock
    deadlocks = (deadlock for deadlock in virtual.deadlocks if any(link.thread.virtual for link in deadlock.links))
    return Contention(most_held_up_first(locks.values()), (*found.deadlocks, *deadlocks))


def _joined(platform: ContendedLock, virtual: ContendedLock) -> ContendedLock:
    """One lock of both kinds of dumps: the virtual waiters of one, the address of the other, and the owner that is known."""
    if any(party.virtual for party in virtual.waiters):
        owned = platform if virtual.owner is None else virtual
        return virtual._replace(
            address=platform.address, owner=owned.owner, owner_unknown=owned.owner_unknown, chain=owned.chain
        )
    if platform.owner is not None or virtual.owner is None:
        return platform
    return platform._replace(owner=virtual.owner, owner_unknown=None, chain=virtual.chain)


def _is_virtual(lock: ContendedLock) -> bool:
    links = (party for link in lock.chain for party in (link.thread, link.owner))
    return any(party is not None and party.virtual for party in (*lock.waiters, lock.owner, *links))


def has_virtual(dumps: Iterable[ThreadDump]) -> bool:
    """Whether a dump has a virtual thread, or a thread that only a JVM with virtual threads has."""
    return any(is_of_virtual(thread) for dump in dumps for thread in dump.threads)
