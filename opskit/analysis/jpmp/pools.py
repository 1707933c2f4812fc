"""What the threads of each pool wait for, over all dumps. Pure.

A pool is the threads whose names differ in one number. Counts are typical ones: the median over the dumps, so a wait that
is rarely seen has none. A thread is still if it is in the same wait in every dump and used no CPU time between them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opskit.analysis.jpmp.frames import frame_name, pool_of
from opskit.analysis.jpmp.idle import is_idle
from opskit.analysis.jpmp.libraries import method_name
from opskit.analysis.jpmp.waits import Wait, wait_of
from opskit.quantities import agreeing, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from opskit.jvm.dumps.thread_dump import Stack, Thread, ThreadDump
    from opskit.proc.socket_waits import Peer

_STILL_MS = 1.0  # CPU time of a thread that stays in one wait: less than any request takes
_MOST_PEERS = 3
_MOST_SINGLES = 3
_WAITS_ON = ("parking to wait for", "waiting on")
_SECOND = 2  # the dumps from which on a thread can be said to stay where it is
_FOR = {
    "connection": "a connection",
    "answer": "an answer",
    "request": "a request",
    "lock": "a lock",
    "future": "the result of a task",
    "permit": "a permit",
    "latch": "a latch",
    "barrier": "other threads",
    "room": "room in a queue",
    "element": "an element of a queue",
    "signal": "a signal",
    "notification": "a notification",
    "unpark": "another thread",
    "thread": "the end of a thread",
    "process": "the end of a process",
    "select": "an event of a channel",
    "accept": "a client",
    "memory": "buffer memory",
    "result": "a result",
    "name": "an answer of the name service (DNS)",
    "connect": "a TCP connection",
    "input": "input",
    "disk": "the disk (fsync)",
    "event": "an event",
}


class Waiting(NamedTuple):
    """Threads of a pool in the same wait. `peer`: the address whose answer they wait for; None: unknown, or not a socket.

    `dumps`: those that show such a thread. `still`: threads without progress; None where the dumps do not show that.
    """

    threads: int
    wait: Wait
    peer: str | None
    dumps: int
    still: int | None

    @property
    def verb(self) -> str:
        """What the threads do: `wait`, `waits`, `sleep`, `sleeps`."""
        return (
            agreeing(self.threads, "sleeps", "sleep")
            if self.wait.kind == "sleep"
            else agreeing(self.threads, "waits", "wait")
        )

    @property
    def for_what(self) -> str:
        """`for an answer of 10.0.0.7:6379`; empty for a sleep."""
        whose = "" if self.peer is None else f" {'to' if self.wait.kind == 'connect' else 'of'} {self.peer}"
        return "" if self.wait.kind == "sleep" else f"for {_FOR[self.wait.kind]}{whose}"

    def words(self, *, with_verb: bool = True) -> str:
        """`200 wait for a connection in HikariPool.getConnection (from OrderDao.load)`."""
        verb = self.verb if with_verb or self.wait.kind == "sleep" else ""
        return " ".join(filter(None, (f"{self.threads:,}", verb, self.for_what, "in", place_name(self.wait))))


class Member(NamedTuple):
    """A thread of a pool in the last dump. `is_still`, `object`: None where the dumps do not show it.

    `object`: class and address of what the thread waits on.
    """

    native_id: int | None
    name: str
    frames: tuple[str, ...]
    state: str | None
    wait: Wait | None
    idle: bool
    is_still: bool | None
    object: tuple[str, str] | None = None


class Pool(NamedTuple):
    """The threads of a pool. `threads` and `idle`: in the last dump; `waits`: most threads first; `grew`: since the first dump."""

    name: str
    threads: int
    idle: int
    waits: Sequence[Waiting]
    members: Sequence[Member]
    grew: bool

    @property
    def waiting(self) -> int:
        """The number of threads that wait within a request."""
        return sum(each.threads for each in self.waits)

    @property
    def head(self) -> str:
        """`http-nio-8080-exec (250 threads)`."""
        return f"{self.name} ({plural(self.threads, 'thread')})"


class Overview(NamedTuple):
    """The pools of a JVM, those with most waiting threads first. `dumps`: how many were read."""

    pools: Sequence[Pool]
    dumps: int
    window_s: float | None = None

    @property
    def idle(self) -> int:
        """The number of threads that wait for work."""
        return sum(pool.idle for pool in self.pools)


def place_name(wait: Wait) -> str:
    """`HikariPool.getConnection (from OrderDao.load)`."""
    place, caller = method_name(wait.place), method_name(wait.caller or "")
    return f"{place} (from {caller})" if caller and caller != place else place


_Seen = tuple[bool, "Wait | None"]  # idle, wait


def overview(
    dumps: Sequence[ThreadDump],
    cpu_ms: Mapping[int, float] | None = None,
    peers: Mapping[int, Peer] | None = None,
    window_s: float | None = None,
) -> Overview:
    """Judge over all dumps. `cpu_ms`: of each native id between the first and the last; `peers`: of sockets in the last one."""
    known: dict[Stack, _Seen] = {}
    alike: dict[tuple[str, ...], Wait] = {}
    names: dict[str, str] = {}
    by_pool: dict[str, list[dict[Hashable, tuple[Thread, _Seen]]]] = {}
    for number, dump in enumerate(dumps):
        for thread in dump.threads:
            stack, name = thread.stack, thread.name
            if not stack.frames or stack.role == "carrier" or name is None:
                continue
            seen = known.get(stack) or known.setdefault(stack, _look(stack, alike))
            pool = _virtual_pool(thread) if stack.role == "mounted" or thread.virtual else ""
            pool = pool or names.get(name) or names.setdefault(name, pool_of(name))
            of_dumps = by_pool.get(pool) or by_pool.setdefault(pool, [{} for _ in dumps])
            of_dumps[number][thread[1:4]] = thread, seen
    pools = [_pool(name, each, cpu_ms, peers or {}) for name, each in by_pool.items()]
    pools.sort(key=lambda pool: (-pool.waiting, -pool.threads, pool.name))
    return Overview(pools, len(dumps), window_s)


def _look(stack: Stack, alike: dict[tuple[str, ...], Wait]) -> _Seen:
    """Waits that are shown alike are one: several lambdas of a method."""
    frames = tuple(map(frame_name, stack.frames))
    idle = is_idle(stack.state, frames)
    wait = None if idle else wait_of(stack.state, frames)
    if wait is None:
        return idle, None
    return idle, alike.setdefault((wait.kind, method_name(wait.place), method_name(wait.caller or "")), wait)


def _virtual_pool(thread: Thread) -> str:
    if thread.name:
        return ""
    return f"virtual threads of {thread.container}" if thread.container else "virtual threads"


def _pool(
    name: str,
    dumps: Sequence[Mapping[Hashable, tuple[Thread, _Seen]]],
    cpu_ms: Mapping[int, float] | None,
    peers: Mapping[int, Peer],
) -> Pool:
    last = next((each for each in reversed(dumps) if each), {})
    members = [_member(key, thread, seen, dumps, cpu_ms) for key, (thread, seen) in last.items()]
    counts = [Counter(seen[1] for _, seen in each.values() if seen[1]) for each in dumps]
    waits = []
    for wait in {wait: None for count in counts for wait in count}:
        typical = sorted(count[wait] for count in counts)[(len(counts) - 1) // 2]  # the lower median
        if typical:
            theirs = [member for member in members if member.wait == wait]
            still = [member.is_still for member in theirs]
            known = None if None in still or not still else sum(filter(None, still))
            seen = sum(count[wait] > 0 for count in counts)
            waits += _by_peer(Waiting(typical, wait, None, seen, known), theirs, peers)
    waits.sort(key=lambda each: (-each.threads, each.wait.kind, each.wait.place, each.peer or ""))
    one = next(iter(last.values()))[0].name if len(last) == 1 else None
    plain = one or name.rstrip("*").rstrip("-#_ :") or name if name.endswith("*") else name
    grew = len(last) > len(next((each for each in dumps if each), last))
    return Pool(plain, len(last), sum(member.idle for member in members), waits, members, grew)


def _member(
    key: Hashable,
    thread: Thread,
    seen: _Seen,
    dumps: Sequence[Mapping[Hashable, tuple[Thread, _Seen]]],
    cpu_ms: Mapping[int, float] | None,
) -> Member:
    is_still: bool | None = None
    if len(dumps) >= _SECOND and seen[1] is not None:
        is_still = all(key in each and each[key][1][1] == seen[1] for each in dumps)
        used = None if cpu_ms is None or thread.native_id is None else cpu_ms.get(thread.native_id)
        # A virtual thread has no CPU time of its own.
        if is_still and (used is None or thread.virtual or thread.stack.role):
            is_still = None
        elif is_still and used is not None:
            is_still = used < _STILL_MS
    frames = tuple(map(frame_name, thread.stack.frames))
    on = next((lock for lock in thread.locks if lock.action in _WAITS_ON and lock.class_name and lock.address), None)
    what = None if on is None else (on.class_name or "", on.address or "")
    return Member(thread.native_id, thread.name or "", frames, thread.stack.state, seen[1], seen[0], is_still, what)


def _by_peer(waiting: Waiting, members: Sequence[Member], peers: Mapping[int, Peer]) -> list[Waiting]:
    """The same threads, by the peer of each one's socket in the last dump, or by the connection pool that several wait on."""
    if waiting.wait.kind == "connection":
        return _by_object(waiting, members)
    if waiting.wait.kind not in ("answer", "connect"):
        return [waiting]
    ends = (peers.get(each.native_id or 0) for each in members)
    met = Counter(peer for peer in ends if peer is not None)
    if not met:
        return [waiting]
    inbound = Counter({peer: number for peer, number in met.items() if peer.inbound})
    clients = sum(inbound.values())
    found = []
    if clients:
        hosts = {peer.host for peer in inbound}
        whose = next(iter(hosts)) if len(hosts) == 1 else plural(len(hosts), "client")
        found.append(
            waiting._replace(threads=clients, wait=waiting.wait._replace(kind="request"), peer=whose, still=None)
        )
    outbound = (met - inbound).most_common()
    for place, (peer, number) in enumerate(outbound):
        if place == _MOST_PEERS:
            found.append(waiting._replace(threads=sum(rest for _, rest in outbound[place:]), peer="other addresses"))
            break
        still = None if waiting.still is None else min(number, waiting.still)
        found.append(waiting._replace(threads=number, peer=peer.address, still=still))
    rest = waiting.threads - sum(met.values())
    return [*found, waiting._replace(threads=rest)] if rest > 0 else found


def _by_object(waiting: Waiting, members: Sequence[Member]) -> list[Waiting]:
    """The same threads, by the pool of connections where the dump shows several; some pools have an object for each thread."""
    met = Counter(each.object for each in members if each.object is not None)
    if len(met) < _SECOND or min(met.values()) < _SECOND or sum(met.values()) != waiting.threads:
        return [waiting]
    return [
        waiting._replace(threads=number, peer=f"the pool <0x{what[1]}>", still=None)
        for what, number in met.most_common()
    ]


def summed_singles(pools: Sequence[Pool]) -> list[Pool]:
    """The pools, where many threads have names of their own with these as one pool."""
    singles = [pool for pool in pools if pool.threads == 1]
    if len(singles) <= _MOST_SINGLES:
        return [*pools]
    counts: Counter[tuple[Wait, str | None]] = Counter()
    for pool in singles:
        counts.update({(each.wait, each.peer): each.threads for each in pool.waits})
    waits = [Waiting(number, wait, peer, 0, None) for (wait, peer), number in counts.most_common()]
    members = [member for pool in singles for member in pool.members]
    summed = Pool("threads with names of their own", len(members), 0, waits, members, grew=False)
    return sorted([*(pool for pool in pools if pool.threads > 1), summed], key=lambda pool: -pool.waiting)


def sentence(pool: Pool, most: int | None = None) -> str:
    """`http-nio-8080-exec (250 threads): 200 wait for a connection in HikariPool.getConnection (from OrderDao.load); …`."""
    shown = [each.words(with_verb=number == 0) for number, each in enumerate(pool.waits[:most])]
    rest = sum(each.threads for each in pool.waits[len(shown) :])
    more = [f"{plural(rest, 'more waits', 'more wait')} elsewhere"] if rest else []
    return f"{pool.head}: {'; '.join([*shown, *more])}"
