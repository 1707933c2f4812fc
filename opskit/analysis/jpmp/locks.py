"""Who waits for whom: contended locks, who holds them, the chains behind them, deadlocks. Pure.

A dump names a monitor's holder by the frame that locked it; a java.util.concurrent lock's only where it lists ownable
synchronizers (`jstack -l`), in its deadlock section, or (some dialects) beside the waiter. Waiting for a notification
(Object.wait, a Condition, an empty queue) is not waiting for a lock: such threads are not counted here.
"""

from __future__ import annotations

import re
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from opskit.analysis.frames import frame_name
from opskit.analysis.idle import is_idle
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.jvm.dumps.thread_dump import Lock, Thread, ThreadDump, Waits

LockKey = tuple[str, str]  # class name, address

_MONITOR_WAITS = ("waiting to lock", "waiting to re-lock in wait()", "waiting to relock in wait()")
_PARKS = "parking to wait for"
_RELEASES = ("waiting on", "waiting to re-lock in wait()", "waiting to relock in wait()")
# What these park on is no lock: whoever waits there waits for work or for a signal.
_SIGNALS = re.compile(
    r"ConditionObject|SynchronousQueue|LinkedTransferQueue|ForkJoin|Exchanger|FutureTask|CompletableFuture|Phaser|Thread(?:Builders)?\b"
)
_LONGEST_CHAIN = 100  # links that are told; a hostile dump may have thousands of locks, each with a chain of thousands
_OWNED = re.compile(r"ReentrantLock\$|ReentrantReadWriteLock\$")
ASK_FOR_SYNCHRONIZERS = "java.util.concurrent locks do not tell it; --synchronizers does, and walks the heap for it"
NO_OWNER = "it has no owner: whoever releases, counts down or opens it ends the wait"
NOBODY_SEEN = (
    "no thread of this dump holds it: the VM, a virtual thread that the dump leaves out, or it was just released"
)


class Party(NamedTuple):
    """A thread as a side of a wait. `frames` leaf first, as people read them."""

    name: str
    java_id: int | None
    native_id: int | None
    state: str | None
    frames: tuple[str, ...]
    virtual: bool


class Link(NamedTuple):
    """`thread` waits for `lock`, which `owner` holds (None: nobody tells)."""

    thread: Party
    lock: LockKey
    owner: Party | None


class Deadlock(NamedTuple):
    """A circle of waits. `reported`: the JVM itself says so."""

    links: tuple[Link, ...]
    reported: bool


class ContendedLock(NamedTuple):
    """One lock that threads wait for, as the last dump that shows it has it.

    `kind`: "monitor" or "synchronizer". `held_up`: the waiters, and those that wait for what the waiters hold. `owner`
    None: `owner_unknown` says why. `chain`: what the owner waits for in turn, and so on, the root last (of at most 100 links);
    empty where the owner does not wait. `samples`: how many dumps show it contended. `waited_at_least_s`: how long one thread has stood
    there without a break; None where the dumps do not tell when they were taken, or there is one only.
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


class Contention(NamedTuple):
    """What the dumps say of locks: those that hold up most threads first."""

    locks: tuple[ContendedLock, ...]
    deadlocks: tuple[Deadlock, ...]


def contention(dumps: Sequence[ThreadDump], times_s: Sequence[float | None] | None = None) -> Contention:
    """Put the dumps' waits together. `times_s`: when each was taken, on any one clock."""
    samples: Counter[LockKey] = Counter()
    latest: dict[LockKey, ContendedLock] = {}
    deadlocks: dict[frozenset[object], Deadlock] = {}
    waits = _Waits(times_s or [None] * len(dumps))
    for number, dump in enumerate(dumps):
        graph = _Graph(dump)
        waits.look(number, graph.wanted)
        for lock in graph.contended():
            key = (lock.class_name, lock.address)
            samples[key] += 1
            latest[key] = lock
        for deadlock in graph.deadlocks():
            deadlocks.setdefault(frozenset(link.thread[:3] for link in deadlock.links), deadlock)
    locks = [
        lock._replace(samples=samples[key], waited_at_least_s=waits.longest.get(key)) for key, lock in latest.items()
    ]
    locks.sort(key=lambda lock: (-lock.held_up, -len(lock.waiters), -lock.samples, lock.class_name, lock.address))
    return Contention(tuple(locks), tuple(deadlocks.values()))


class _Waits:
    """For how long the same thread has waited for the same lock, from dump to dump."""

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

    def __init__(self, dump: ThreadDump) -> None:
        self._dump = dump
        self._holder: dict[LockKey, Thread] = {}
        self.wanted: dict[Thread, tuple[LockKey, Lock]] = {}
        for thread in dump.threads:
            self._note(thread)
        self._by_name: dict[str | None, list[Thread]] = {}
        self._by_java_id: dict[int | None, Thread] = {}
        for thread in dump.threads:
            self._by_name.setdefault(thread.name, []).append(thread)
            self._by_java_id.setdefault(thread.java_id, thread)
        self._reported = [{_bare(link.address) for link in deadlock if link.address} for deadlock in dump.deadlocks]
        # By address: who holds it, and which deadlock says so.
        self._told = {
            _bare(link.address): (link.owner, number)
            for number, deadlock in enumerate(dump.deadlocks)
            for link in deadlock
            if link.address
        }
        # By name and address: the first thread that waits for it, with its place.
        self._waits_for: dict[tuple[str | None, str], tuple[int, Thread]] = {}
        for place, (thread, (key, _)) in enumerate(self.wanted.items()):
            self._waits_for.setdefault((thread.name, key[1]), (place, thread))
        self._namesakes: dict[tuple[str, int], Thread | None] = {}
        self._parties: dict[Thread, Party] = {}
        self._links: dict[Thread, Link] = {}
        self._owner: dict[Thread, Thread | None] = {}
        for thread, (key, lock) in self.wanted.items():
            owner = self._owner_of(key, lock)
            self._owner[thread] = (
                None if owner is thread else owner
            )  # it was in wait(), and has to get its monitor back
        self._behind: dict[Thread, list[Thread]] = {}
        for thread, owner in self._owner.items():
            if owner is not None:
                self._behind.setdefault(owner, []).append(thread)
        self._circle: dict[Thread, int] = {}  # of those that are in one, its number
        self._circles = self._find_circles()
        self._trees = self._find_trees()
        self._circle_sizes = [sum(self._trees[thread][1] for thread in circle) for circle in self._circles]

    def _note(self, thread: Thread) -> None:
        released = {lock.address for lock in thread.locks if lock.action in _RELEASES}
        wants = next((lock for lock in thread.locks if _is_wanted(thread, lock)), None)
        if wants is not None:
            self.wanted[thread] = _key(wants), wants
        for lock in thread.locks:
            if lock.action == "locked" and lock.address is not None and lock.address not in released:
                self._holder.setdefault(_key(lock), thread)

    def _owner_of(self, key: LockKey, lock: Lock) -> Thread | None:
        holder = self._holder.get(key)
        if holder is not None:
            return holder
        if lock.owner is not None:
            return self._named(lock.owner, None)
        owner, deadlock = self._told.get(key[1], (None, None))
        return None if owner is None else self._named(owner, deadlock)

    def _named(self, name: str, deadlock: int | None) -> Thread | None:
        java_id = integer(name[1:]) if name.startswith("#") else None
        if java_id is not None:
            return self._by_java_id.get(java_id)
        candidates = self._by_name.get(name, [])
        if len(candidates) < 2 or deadlock is None:
            return candidates[0] if candidates else None
        if (name, deadlock) not in self._namesakes:
            # The first of those that wait for what the deadlock says they wait for.
            waiting = (
                self._waits_for[name, each] for each in self._reported[deadlock] if (name, each) in self._waits_for
            )
            self._namesakes[name, deadlock] = min(waiting, default=(0, None), key=itemgetter(0))[1]
        return self._namesakes[name, deadlock]

    def contended(self) -> Iterable[ContendedLock]:
        """Every lock that somebody waits for."""
        waiters: dict[LockKey, list[Thread]] = {}
        for thread, (key, _) in self.wanted.items():
            waiters.setdefault(key, []).append(thread)
        for key, threads in waiters.items():
            lock = self.wanted[threads[0]][1]
            owner = self._owner[threads[0]]
            kind = "synchronizer" if lock.action == _PARKS else "monitor"
            yield ContendedLock(
                class_name=key[0],
                address=key[1],
                kind=kind,
                waiters=tuple(map(self._party, threads)),
                held_up=self._held_up_by(threads),
                owner=None if owner is None else self._party(owner),
                owner_unknown=None if owner is not None else _why_unknown(kind, key[0]),
                chain=self._chain(owner),
                samples=1,
                waited_at_least_s=None,
            )

    def _held_up_by(self, waiters: Sequence[Thread]) -> int:
        """How many wait for a lock, and for what its waiters hold, and so on; each once."""
        circles = {self._circle[thread] for thread in waiters if thread in self._circle}
        held_up = sum(self._circle_sizes[number] for number in circles)
        end = 0
        for place, size, circle in sorted((self._trees[thread] for thread in waiters), key=itemgetter(0)):
            if place >= end and circle not in circles:  # else it is behind another one of them
                held_up += size
                end = place + size
        return held_up

    def _find_trees(self) -> dict[Thread, tuple[int, int, int | None]]:
        """Of each waiting thread: its place, how many places it takes with all behind it, and the circle that all this leads to."""
        order: list[Thread] = []
        circle_of: dict[Thread, int | None] = {}
        ahead = [thread for thread in self.wanted if thread in self._circle or self._owner[thread] not in self.wanted]
        circle_of.update((thread, self._circle.get(thread)) for thread in ahead)
        while ahead:
            thread = ahead.pop()
            order.append(thread)
            behind = [each for each in self._behind.get(thread, ()) if each not in self._circle]
            circle_of.update(dict.fromkeys(behind, circle_of[thread]))
            ahead += behind
        sizes = dict.fromkeys(order, 1)
        for thread in reversed(order):
            owner = self._owner[thread]
            if owner in sizes and thread not in self._circle:
                sizes[owner] += sizes[thread]
        return {thread: (place, sizes[thread], circle_of[thread]) for place, thread in enumerate(order)}

    def _chain(self, owner: Thread | None) -> tuple[Link, ...]:
        links: list[Link] = []
        seen: set[Thread] = set()
        while owner is not None and owner not in seen and len(links) < _LONGEST_CHAIN and owner in self.wanted:
            seen.add(owner)
            links.append(self._link(owner))
            owner = self._owner[owner]
        return tuple(links)

    def _link(self, thread: Thread) -> Link:
        found = self._links.get(thread)
        if found is None:
            owner = self._owner[thread]
            party = None if owner is None else self._party(owner)
            found = self._links[thread] = Link(self._party(thread), self.wanted[thread][0], party)
        return found

    def _party(self, thread: Thread) -> Party:
        return self._parties.get(thread) or self._parties.setdefault(thread, _party(thread))

    def deadlocks(self) -> Iterable[Deadlock]:
        """The circles among the waits; those that the JVM reports though the stacks do not show them come as it tells them."""
        reported: set[str] = set().union(*self._reported)
        for circle in self._circles:
            addresses = {self.wanted[thread][0][1] for thread in circle}
            yield Deadlock(tuple(map(self._link, circle)), reported=not addresses.isdisjoint(reported))
        shown = {self.wanted[thread][0][1] for circle in self._circles for thread in circle}
        for number, (deadlock, theirs) in enumerate(zip(self._dump.deadlocks, self._reported)):
            if theirs and not theirs & shown:
                yield Deadlock(tuple(self._as_told(link, number) for link in deadlock), reported=True)

    def _find_circles(self) -> list[list[Thread]]:
        circles: list[list[Thread]] = []
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
                self._circle.update(dict.fromkeys(path[place[thread] :], len(circles)))
                circles.append(path[place[thread] :])
            done.update(path)
        return circles

    def _as_told(self, link: Waits, deadlock: int) -> Link:
        thread = self._named(link.thread, deadlock)
        owner = None if link.owner is None else self._named(link.owner, deadlock)
        return Link(
            self._party(thread) if thread else _unseen(link.thread),
            (link.lock_class or "?", _bare(link.address or "")),
            self._party(owner) if owner else _unseen(link.owner) if link.owner is not None else None,
        )


def _is_wanted(thread: Thread, lock: Lock) -> bool:
    """Whether a thread cannot go on before it has this lock (and not: until somebody signals, or work comes)."""
    if lock.address is None:
        return False
    if lock.action in _MONITOR_WAITS:
        # A thread that runs again says `waiting to lock` of a monitor that it has just got: its state tells.
        return thread.stack.state in (None, "BLOCKED")
    if lock.action != _PARKS or lock.class_name is None or _SIGNALS.search(lock.class_name):
        return False
    return _OWNED.search(lock.class_name) is not None or not is_idle(
        thread.stack.state, tuple(map(frame_name, thread.stack.frames))
    )


def _why_unknown(kind: str, class_name: str) -> str:
    if kind == "monitor":
        return NOBODY_SEEN
    return ASK_FOR_SYNCHRONIZERS if _OWNED.search(class_name) else NO_OWNER


def _key(lock: Lock) -> LockKey:
    return lock.class_name or "?", _bare(lock.address or "")


def _bare(address: str | None) -> str:
    """Dumps write one address with and without 0x and leading zeros."""
    return (address or "").lower().removeprefix("0x").lstrip("0")


def _party(thread: Thread) -> Party:
    virtual = thread.virtual is True or thread.stack.role == "mounted"
    frames = tuple(map(frame_name, thread.stack.frames))
    return Party(thread.name or "", thread.java_id, thread.native_id, thread.stack.state, frames, virtual)


def _unseen(name: str) -> Party:
    return Party(name, None, None, None, (), virtual=False)
