"""Find contended locks, their owners, the chains behind them, and deadlocks. Pure.

The owner of a monitor is known from the frame that locked it; the owner of a java.util.concurrent lock only if the dump
lists ownable synchronizers (`jstack -l`), from its deadlock section, or (some dialects) from the line of the waiter.
Threads that wait for a notification (Object.wait, a Condition, an empty queue) do not wait for a lock.
"""

from __future__ import annotations

import re
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING

from opskit.analysis.jpmp.frames import frame_name
from opskit.analysis.jpmp.idle import is_idle
from opskit.analysis.jpmp.lock_owners import can_be_owned, why_unknown
from opskit.analysis.jpmp.stacks import SHORT_NAMES, Naming
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.jvm.dumps.thread_dump import Lock, Thread, ThreadDump, Waits

LockKey = tuple[str, str]  # class name, address

_RELOCKS = ("waiting to re-lock in wait()", "waiting to relock in wait()")
_MONITOR_WAITS, _RELEASES = ("waiting to lock", *_RELOCKS), ("waiting on", *_RELOCKS)
_PARKS = "parking to wait for"
# Parking on one of these is waiting for work or for a signal, not for a lock.
_SIGNALS = re.compile(
    r"ConditionObject|SynchronousQueue|LinkedTransferQueue|ForkJoin|Exchanger|FutureTask|CompletableFuture|Phaser|Thread(?:Builders)?\b"
)
_LONGEST_CHAIN = 100  # a hostile dump may have thousands of locks, each with a chain of thousands of links
SEVERAL = 2  # threads that a lock holds up, from which on it counts as crowded


class Party(NamedTuple):
    """A thread that waits or owns. `frames` are leaf first, with short names."""

    name: str
    java_id: int | None
    native_id: int | None
    state: str | None
    frames: tuple[str, ...]
    virtual: bool


class Link(NamedTuple):
    """`thread` waits for `lock`, which `owner` holds (None: unknown)."""

    thread: Party
    lock: LockKey
    owner: Party | None


class Deadlock(NamedTuple):
    """A cycle of waits. `reported`: by the JVM itself."""

    links: tuple[Link, ...]
    reported: bool


class ContendedLock(NamedTuple):
    """A lock that threads wait for, as in the last dump that shows it.

    `kind`: "monitor" or "synchronizer". `held_up`: the waiters, and the threads that wait for locks of the waiters. `chain`:
    what the owner waits for, and so on (at most 100 links). `samples`: of all `dumps` those in which it is contended;
    `crowded_samples`: those in which it holds up SEVERAL threads. `waited_at_least_s`: the longest wait of one thread over
    consecutive dumps.
    """

    class_name: str
    address: str
    kind: str
    waiters: tuple[Party, ...]
    held_up: int
    owner: Party | None
    owner_unknown: str | None
    chain: tuple[Link, ...]
    samples: int
    waited_at_least_s: float | None
    crowded_samples: int = 0
    dumps: int = 1

    @property
    def key(self) -> LockKey:
        """Class name and address."""
        return self[:2]

    @property
    def can_be_owned(self) -> bool:
        """Whether a thread holds it while others wait (not a semaphore or latch)."""
        return self.kind == "monitor" or can_be_owned(self.class_name)


class Contention(NamedTuple):
    """The contended locks, ordered by the number of threads they hold up, and the deadlocks."""

    locks: tuple[ContendedLock, ...]
    deadlocks: tuple[Deadlock, ...]


def contention(
    dumps: Sequence[ThreadDump], times_s: Sequence[float | None] | None = None, naming: Naming = SHORT_NAMES
) -> Contention:
    """Combine the waits of all dumps. `times_s`: when each was taken, all on one clock. `naming`: of the frames."""
    samples: Counter[LockKey] = Counter()
    crowded: Counter[LockKey] = Counter()
    latest: dict[LockKey, ContendedLock] = {}
    deadlocks: dict[frozenset[object], Deadlock] = {}
    waits = _Waits(times_s or [None] * len(dumps))
    for number, dump in enumerate(dumps):
        graph = _Graph(dump, naming)
        waits.look(number, graph.wanted)
        for lock in graph.contended():
            samples[lock.key] += 1
            crowded[lock.key] += lock.held_up >= SEVERAL
            latest[lock.key] = lock
        for deadlock in graph.deadlocks():
            deadlocks.setdefault(frozenset(link.thread[:3] for link in deadlock.links), deadlock)
    locks = [
        lock._replace(
            samples=samples[key],
            waited_at_least_s=waits.longest.get(key),
            crowded_samples=crowded[key],
            dumps=len(dumps),
        )
        for key, lock in latest.items()
    ]
    return Contention(most_held_up_first(locks), tuple(deadlocks.values()))


def most_held_up_first(locks: Iterable[ContendedLock]) -> tuple[ContendedLock, ...]:
    """Order by the number of threads that a lock holds up."""
    return tuple(
        sorted(
            locks, key=lambda lock: (-lock.held_up, -len(lock.waiters), -lock.samples, lock.class_name, lock.address)
        )
    )


class _Waits:
    """How long each thread has waited for the same lock over consecutive dumps."""

    def __init__(self, times_s: Sequence[float | None]) -> None:
        self._times_s = times_s
        self._since: dict[tuple[object, LockKey], float | None] = {}
        self.longest: dict[LockKey, float] = {}

    def look(self, number: int, wanted: Mapping[Thread, tuple[LockKey, Lock]]) -> None:
        now = self._times_s[number]
        since: dict[tuple[object, LockKey], float | None] = {}
        for thread, (key, _) in wanted.items():
            who = ((thread.name, thread.java_id, thread.native_id), key)
            begun = since[who] = self._since.get(who, now)
            if begun is not None and now is not None and now > begun:
                self.longest[key] = max(self.longest.get(key, 0.0), now - begun)
        self._since = since


class _Graph:
    """One dump's threads and what they wait for and hold."""

    def __init__(self, dump: ThreadDump, naming: Naming) -> None:
        self._dump, self._naming = dump, naming
        self._holder: dict[LockKey, Thread] = {}
        self.wanted: dict[Thread, tuple[LockKey, Lock]] = {}
        self._by_name: dict[str | None, list[Thread]] = {}
        self._by_java_id: dict[int | None, Thread] = {}
        for thread in dump.threads:
            self._note(thread)
            self._by_name.setdefault(thread.name, []).append(thread)
            self._by_java_id.setdefault(thread.java_id, thread)
        self._reported = [{_bare(link.address) for link in deadlock if link.address} for deadlock in dump.deadlocks]
        # By address: the owner, and the deadlock that names it.
        self._named_owners = {
            _bare(link.address): (link.owner, number)
            for number, deadlock in enumerate(dump.deadlocks)
            for link in deadlock
            if link.address
        }
        # By thread name and address: the first such waiter and its place.
        self._waits_for: dict[tuple[str | None, str], tuple[int, Thread]] = {}
        for place, (thread, (key, _)) in enumerate(self.wanted.items()):
            self._waits_for.setdefault((thread.name, key[1]), (place, thread))
        self._namesakes: dict[tuple[str, int], Thread | None] = {}
        self._parties: dict[Thread, Party] = {}
        self._links: dict[Thread, Link] = {}
        self._owner: dict[Thread, Thread | None] = {}
        for thread, (key, lock) in self.wanted.items():
            owner = self._owner_of(key, lock)
            # A thread that owns what it waits for was in wait() and must get its monitor back.
            self._owner[thread] = None if owner is thread else owner
        self._behind: dict[Thread, list[Thread]] = {}
        for thread, owner in self._owner.items():
            if owner is not None:
                self._behind.setdefault(owner, []).append(thread)
        self._cycle: dict[Thread, int] = {}  # the number of the cycle that a thread is in
        self._cycles = self._find_cycles()
        self._trees = self._find_trees()
        self._cycle_sizes = [sum(self._trees[thread][1] for thread in cycle) for cycle in self._cycles]

    def _note(self, thread: Thread) -> None:
        released = {lock.address for lock in thread.locks if lock.action in _RELEASES}
        if (wants := next((lock for lock in thread.locks if _is_wanted(thread, lock)), None)) is not None:
            self.wanted[thread] = _key(wants), wants
        for lock in thread.locks:
            if lock.action == "locked" and lock.address is not None and lock.address not in released:
                self._holder.setdefault(_key(lock), thread)

    def _owner_of(self, key: LockKey, lock: Lock) -> Thread | None:
        if (holder := self._holder.get(key)) is not None:
            return holder
        if lock.owner is not None:
            return self._named(lock.owner, None)
        owner, deadlock = self._named_owners.get(key[1], (None, None))
        return None if owner is None else self._named(owner, deadlock)

    def _named(self, name: str, deadlock: int | None) -> Thread | None:
        java_id = integer(name[1:]) if name.startswith("#") else None
        if java_id is not None:
            return self._by_java_id.get(java_id)
        candidates = self._by_name.get(name, [])
        if len(candidates) < 2 or deadlock is None:
            return candidates[0] if candidates else None
        if (name, deadlock) not in self._namesakes:
            # The first one that waits for a lock of this deadlock.
            places = ((name, address) for address in self._reported[deadlock])
            waiting = (self._waits_for[place] for place in places if place in self._waits_for)
            self._namesakes[name, deadlock] = min(waiting, default=(0, None), key=itemgetter(0))[1]
        return self._namesakes[name, deadlock]

    def contended(self) -> Iterable[ContendedLock]:
        """Every lock that has waiters."""
        waiters: dict[LockKey, list[Thread]] = {}
        for thread, (key, _) in self.wanted.items():
            waiters.setdefault(key, []).append(thread)
        for key, threads in waiters.items():
            lock = self.wanted[threads[0]][1]
            owner = self._owner[threads[0]]
            kind = "synchronizer" if lock.action == _PARKS else "monitor"
            yield ContendedLock(
                *key,
                kind,
                waiters=tuple(map(self._party, threads)),
                held_up=self._held_up_by(threads),
                owner=owner and self._party(owner),
                owner_unknown=None if owner else why_unknown(kind, key[0], threads, self._dump),
                chain=self._chain(owner),
                samples=1,
                waited_at_least_s=None,
            )

    def _held_up_by(self, waiters: Sequence[Thread]) -> int:
        """How many threads wait for a lock, for locks of its waiters, and so on; each counted once."""
        cycles = {self._cycle[thread] for thread in waiters if thread in self._cycle}
        held_up = sum(self._cycle_sizes[number] for number in cycles)
        end = 0
        for place, size, cycle in sorted((self._trees[thread] for thread in waiters), key=itemgetter(0)):
            if place >= end and cycle not in cycles:  # else it waits for another waiter
                held_up += size
                end = place + size
        return held_up

    def _find_trees(self) -> dict[Thread, tuple[int, int, int | None]]:
        """For each waiting thread: its place, the number of places with all threads that wait for it, their cycle."""
        order: list[Thread] = []
        ahead = [thread for thread in self.wanted if thread in self._cycle or self._owner[thread] not in self.wanted]
        cycle_of = {thread: self._cycle.get(thread) for thread in ahead}
        while ahead:
            thread = ahead.pop()
            order.append(thread)
            behind = [each for each in self._behind.get(thread, ()) if each not in self._cycle]
            cycle_of.update(dict.fromkeys(behind, cycle_of[thread]))
            ahead += behind
        sizes = dict.fromkeys(order, 1)
        for thread in reversed(order):
            owner = self._owner[thread]
            if owner in sizes and thread not in self._cycle:
                sizes[owner] += sizes[thread]
        return {thread: (place, sizes[thread], cycle_of[thread]) for place, thread in enumerate(order)}

    def _chain(self, owner: Thread | None) -> tuple[Link, ...]:
        links: list[Link] = []
        seen: set[Thread] = set()
        while owner is not None and owner not in seen and len(links) < _LONGEST_CHAIN and owner in self.wanted:
            seen.add(owner)
            links.append(self._link(owner))
            owner = self._owner[owner]
        return tuple(links)

    def _link(self, thread: Thread) -> Link:
        if thread not in self._links:  # chains share their links
            owner = self._owner[thread]
            self._links[thread] = Link(self._party(thread), self.wanted[thread][0], owner and self._party(owner))
        return self._links[thread]

    def _party(self, thread: Thread) -> Party:
        return self._parties.get(thread) or self._parties.setdefault(thread, party_of(thread, self._naming))

    def deadlocks(self) -> Iterable[Deadlock]:
        """The cycles among the waits, and deadlocks that the JVM reports although the stacks do not show them."""
        reported: set[str] = set().union(*self._reported)
        shown: set[str] = set()
        for cycle in self._cycles:
            addresses = {self.wanted[thread][0][1] for thread in cycle}
            shown |= addresses
            yield Deadlock(tuple(map(self._link, cycle)), reported=not addresses.isdisjoint(reported))
        for number, (deadlock, theirs) in enumerate(zip(self._dump.deadlocks, self._reported)):
            if theirs and not theirs & shown:
                yield Deadlock(tuple(self._as_reported(link, number) for link in deadlock), reported=True)

    def _find_cycles(self) -> list[list[Thread]]:
        cycles: list[list[Thread]] = []
        done: set[Thread] = set()
        for start in self.wanted:
            path: list[Thread] = []
            place: dict[Thread, int] = {}
            thread: Thread | None = start
            while thread is not None and thread in self.wanted and thread not in done and thread not in place:
                place[thread] = len(path)
                path.append(thread)
                thread = self._owner[thread]
            if thread is not None and thread in place:
                self._cycle.update(dict.fromkeys(path[place[thread] :], len(cycles)))
                cycles.append(path[place[thread] :])
            done.update(path)
        return cycles

    def _as_reported(self, link: Waits, deadlock: int) -> Link:
        def party(name: str) -> Party:
            thread = self._named(name, deadlock)
            return self._party(thread) if thread else Party(name, None, None, None, (), virtual=False)

        lock = link.lock_class or "?", _bare(link.address)
        return Link(party(link.thread), lock, None if link.owner is None else party(link.owner))


def _is_wanted(thread: Thread, lock: Lock) -> bool:
    """Whether a thread waits to get this lock, and not for a signal or for work."""
    if lock.address is None:
        return False
    if lock.action in _MONITOR_WAITS:
        # A thread that runs again may still show `waiting to lock`: only its state is right.
        return thread.stack.state in (None, "BLOCKED")
    if lock.action != _PARKS or lock.class_name is None or _SIGNALS.search(lock.class_name):
        return False
    if can_be_owned(lock.class_name):
        return True
    frames = tuple(map(frame_name, thread.stack.frames))
    return not (is_idle(thread.stack.state, frames) or any(map(_is_reserved, frames)))


def _is_reserved(frame: str) -> bool:
    """Whether Jetty's ReservedThreadExecutor$ReservedThread waits for work there."""
    owner, _, method = frame.rpartition(".")
    return owner.endswith("ReservedThread") and "wait" in method.lower()


def _key(lock: Lock) -> LockKey:
    return lock.class_name or "?", _bare(lock.address)


def _bare(address: str | None) -> str:
    """The address without 0x and leading zeros: dumps write it in both forms."""
    return (address or "").lower().removeprefix("0x").lstrip("0")


def party_of(thread: Thread, naming: Naming = SHORT_NAMES) -> Party:
    """The thread as one that waits or owns."""
    virtual = thread.virtual is True or thread.stack.role == "mounted"
    frames = tuple(frame_name(frame, full=naming.full, lines=naming.lines) for frame in thread.stack.frames)
    return Party(thread.name or "", thread.java_id, thread.native_id, thread.stack.state, frames, virtual)
