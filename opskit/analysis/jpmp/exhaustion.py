"""Pools that stand still: no connection is free, no worker is free, or every worker waits for tasks of its own pool. Pure.

A dump shows neither the queue of a pool nor its size. What is concluded, from what the threads do:

a pool of connections    most of its waiting threads make no progress
a pool for itself        all workers wait for tasks, and no other thread runs one: they can only be in the pool's own queue
a pool of workers        all workers, numbered without a gap, wait in requests and make no progress
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from opskit.analysis.jpmp.frames import literal
from opskit.analysis.jpmp.libraries import is_application, method_name
from opskit.analysis.jpmp.pools import place_name
from opskit.quantities import listed, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.analysis.finding import Entity, Finding, Severity
    from opskit.analysis.jpmp.pools import Member, Overview, Pool
    from opskit.analysis.jpmp.waits import Wait

_FEWEST = 2  # threads that wait for a connection; one is a moment of any pool
_MANY = 10  # in a single dump
_MOST_HOLDERS = 2
_RUNS = re.compile(
    r"(?:.*\.)?(?:ThreadPoolExecutor(?:\$Worker)?\.run(?:Worker|Task)|ForkJoinWorkerThread\.run|ForkJoinPool\.runWorker"
    r"|QueuedThreadPool\S*\.runJob|EnhancedQueueExecutor\$ThreadBody\.run|ExecuteThread\.run)"
)
_RUNS_A_FUTURE = re.compile(
    r"java\.util\.concurrent\.(?:FutureTask\.run|CompletableFuture\$\w+\.run|ForkJoinTask\.doExec)"
)
_FUTURE_TASK = re.compile(r"java\.util\.concurrent\.(?:FutureTask|AbstractExecutorService)\.\w+")
_CONNECTION_PROXY = (
    r"hikari\.pool\.(?:Hikari)?Proxy|dbcp2?\.(?:\w+\.)?(?:Delegating|PoolableConn|PoolGuard)|v2\.c3p0\.impl\.NewProxy"
    r"|druid\.pool\.DruidPooled|tomcat\.jdbc\.pool\.\w*(?:Proxy|Interceptor|Facade)|agroal\.pool\.wrapper|\.jdbc\.\w*(?:Statement|Connection)\."
    r"|jedis\.\w*Jedis\.|http\.impl\.execchain|http\.impl\.classic"
)
_PROXY = re.compile(_CONNECTION_PROXY)
_NUMBER = re.compile(r"(\d+)\D*$")
# Where a worker waits in the middle of a request; one that waits for an element or sleeps may be in a loop of its own.
_IN_A_REQUEST = frozenset(
    {"connection", "answer", "lock", "future", "permit", "room", "memory", "result", "latch", "connect"}
)


class Trouble(NamedTuple):
    """One conclusion. `kind` is the code of the finding, `pool` its subject, `pattern` matches the frames to look at next."""

    kind: str
    severity: Severity
    pool: str
    said: str
    evidence: str
    pattern: str
    inverted: bool = False  # look at the stacks without the pattern


def findings_of(found: Overview, process: Entity, jpmp: Callable[..., str | None]) -> list[Finding]:
    """The findings. `jpmp`: the command line of `opskit jpmp` on the same target, with these options."""
    from opskit.analysis.finding import Entity, Finding

    findings = []
    for each in troubles(found):
        closer = jpmp("--by-thread", "--exclude" if each.inverted else "--include", each.pattern)
        entity = Entity("pool", each.pool, inside=process)
        findings.append(
            Finding(each.kind, each.severity, entity, each.said, each.evidence, next=closer, window_s=found.window_s)
        )
    return findings


def troubles(found: Overview) -> list[Trouble]:
    """The pools that stand still, causes before their effects."""
    own = [trouble for pool in found.pools if (trouble := _waits_for_itself(pool, found))]
    stuck = {trouble.pool for trouble in own}
    busy = [_exhausted(pool, found) for pool in found.pools if pool.name not in stuck]
    return [*_connections(found), *own, *filter(None, busy)]


def _connections(found: Overview) -> Iterator[Trouble]:
    """The pools of connections that threads of any pool wait for."""
    members = [member for pool in found.pools for member in pool.members]
    typical: Counter[str] = Counter()
    dumps: Counter[str] = Counter()
    for pool in found.pools:
        for each in pool.waits:
            if each.wait.kind == "connection":
                typical[each.wait.place] += each.threads
                dumps[each.wait.place] = max(dumps[each.wait.place], each.dumps)
    for place, number in typical.most_common():
        waiting = [member for member in members if member.wait and member.wait[:2] == ("connection", place)]
        using = [m for m in members if m not in waiting and any(map(_PROXY.search, m.frames[:-1]))]
        still = _still(waiting)
        if number < _FEWEST or dumps[place] < found.dumps or not _is_standstill(waiting, still, found):
            continue
        callers = Counter(member.wait.caller for member in waiting if member.wait and member.wait.caller)
        caller = f" (from {method_name(callers.most_common(1)[0][0])})" if callers else ""
        name = method_name(place).partition(".")[0]
        said = f"pool {name} is exhausted: {plural(number, 'thread waits', 'threads wait')} for a connection{caller}; {_users(using)}"
        yield Trouble(
            "connections-exhausted",
            "warning" if found.dumps > 1 or number >= _MANY else "note",  # a few may be a moment of a busy pool
            name,
            said,
            _evidence(found, still, len(waiting)),
            literal(place),
            inverted=True,
        )


def _is_standstill(waiting: Sequence[Member], still: int | None, found: Overview) -> bool:
    """Whether the threads stay in their wait. Where connections are only in demand, they change hands between two dumps."""
    if found.dumps == 1:
        pools = [pool for pool in found.pools if any(member in waiting for member in pool.members)]
        return len(waiting) * 2 >= sum(len(pool.members) - pool.idle for pool in pools)
    if still is None:
        return all(member.is_still is not False for member in waiting)
    return still * 2 >= len(waiting)


def _users(using: Sequence[Member]) -> str:
    """What the threads do that use a connection."""
    if not using:
        return "no thread is in a call of one: they are held during something else, or were not given back"
    doing = Counter(_activity(member) for member in using)
    counted = [f"{number} in {what}" for what, number in doing.most_common()]
    return f"{plural(len(using), 'thread uses', 'threads use')} one: {listed(counted, _MOST_HOLDERS)}"


def _activity(member: Member) -> str:
    at = member.wait.place if member.wait else member.frames[0]
    caller = next(filter(is_application, member.frames), None)
    return method_name(at) + (f" (from {method_name(caller)})" if caller and caller != at else "")


def _waits_for_itself(pool: Pool, found: Overview) -> Trouble | None:
    """All workers wait for tasks that only they could run."""
    workers = pool.members
    waits = {member.wait for member in workers}
    if not workers or None in waits or not all(any(map(_RUNS.fullmatch, member.frames)) for member in workers):
        return None
    kinds = {wait.kind for wait in waits if wait}
    still = _still(workers)
    if not kinds <= {"future", "latch"} or (found.dumps > 1 and any(member.is_still is False for member in workers)):
        return None
    if any(member.object and member.object[0].endswith("ScheduledFutureTask") for member in workers):
        return None  # the time of a delayed task ends the wait
    others = [member for other in found.pools if other is not pool for member in other.members]
    tasks = all(wait and _FUTURE_TASK.fullmatch(wait.place) for wait in waits)
    if any(_may_complete(member, only_tasks=tasks) for member in others):
        return None
    clients = 0 if tasks else sum(member.idle and _is_event_loop(member) for member in others)
    certain = "future" in kinds and not clients and still == len(workers)
    if clients and len(workers) < _FEWEST:
        return None
    first = max(pool.waits, key=lambda each: each.threads).wait if pool.waits else next(filter(None, waits))
    who = f"all {len(workers)} threads wait" if len(workers) > 1 else "its only thread waits"
    what = "for tasks" if kinds == {"future"} else "for what tasks do"
    said = f"pool {pool.name} waits for itself: {who} in {place_name(first)} {what} that {'only' if certain else 'probably only'} this pool can run"
    doubt = "; an event loop may end the wait" if clients else ""
    if not clients and not certain and found.dumps == 1:
        doubt = "; a second dump would prove it"
    evidence = f"{_evidence(found, still, len(workers))}; no other thread runs a task{doubt}"
    return Trouble(
        "pool-waits-for-itself", "error" if certain else "warning", pool.name, said, evidence, _caller_pattern(first)
    )


def _may_complete(member: Member, *, only_tasks: bool) -> bool:
    """Whether the thread may run what others wait for: a task, or where anything can end the wait, any code of its own."""
    if member.idle:
        return False
    if any(map(_RUNS_A_FUTURE.fullmatch, member.frames)):
        return True
    return (
        not only_tasks
        and (member.wait is None or member.wait.kind not in ("future", "latch", "thread"))
        and any(map(is_application, member.frames))
    )


def _is_event_loop(member: Member) -> bool:
    """Whether it is idle in a selector that may belong to a client; those of servers accept connections or read requests."""
    servers = ("tomcat", "jetty", "undertow", "xnio", "sun.net.httpserver")
    selects = any(frame.startswith("sun.nio.ch.") or "epoll" in frame for frame in member.frames[:4])
    return selects and not any(name in frame for frame in member.frames for name in servers)


def _exhausted(pool: Pool, found: Overview) -> Trouble | None:
    """All workers of a pool of fixed size wait in requests and make no progress."""
    workers = pool.members
    if (
        pool.grew
        or not all(any(map(_RUNS.fullmatch, member.frames)) for member in workers)
        or not _is_numbered(workers)
    ):
        return None
    waits = [member.wait for member in workers]
    queue = _waits_for_its_tasks(pool, found)
    outbound = all(each.peer is not None for each in pool.waits if each.wait.kind == "answer")
    in_request = all(wait and wait.kind in _IN_A_REQUEST for wait in waits) and outbound
    if not (in_request or (queue and None not in waits)) or found.dumps < 2 or _still(workers) != len(workers):
        return None
    if len(workers) < _FEWEST and not queue:
        return None
    most = pool.waits[0]
    evidence = f"{_evidence(found, len(workers), len(workers))}{queue and f'; {queue}'}"
    free = f"none of its {len(workers)} threads is free" if len(workers) > 1 else "its only thread is not free"
    said = f"pool {pool.name} is exhausted: {free}; {most.threads:,} {most.verb} {most.for_what or f'in {place_name(most.wait)}'}"
    return Trouble("pool-exhausted", "warning", pool.name, said, evidence, _caller_pattern(pool.waits[0].wait))


def _waits_for_its_tasks(pool: Pool, found: Overview) -> str:
    """The threads outside of the pool that wait for tasks or for room, if no other pool is busy with them."""
    others = [member for other in found.pools if other is not pool for member in other.members if not member.idle]
    if any(member.wait is None and any(map(_RUNS_A_FUTURE.fullmatch, member.frames)) for member in others):
        return ""
    waiting = sum(member.wait is not None and member.wait.kind in ("future", "room") for member in others)
    return f"{plural(waiting, 'other thread waits', 'other threads wait')} for tasks to be done" if waiting else ""


def _is_numbered(members: Sequence[Member]) -> bool:
    """Whether the names end in 1 to N or 0 to N - 1: no thread of the pool has ended, and none is somebody else's."""
    found = [_NUMBER.search(member.name) for member in members]
    numbers = sorted(int(match[1][-9:]) for match in found if match)
    return numbers in ([*range(1, len(members) + 1)], [*range(len(members))])


def _still(members: Sequence[Member]) -> int | None:
    states = [member.is_still for member in members]
    return None if None in states or not states else sum(map(bool, states))


def _evidence(found: Overview, still: int | None, of: int) -> str:
    if found.dumps == 1:
        return "in the only dump: whether they make progress needs a second one"
    window = "" if found.window_s is None else f" in {found.window_s:.1f} s"
    if still is None:
        return f"in {found.dumps} of {found.dumps} dumps"
    all_of = "all" if still == of else f"{still:,}"
    return f"{all_of} of {of:,} in the same stack in {found.dumps} of {found.dumps} dumps, without CPU time{window}"


def _caller_pattern(wait: Wait) -> str:
    return literal(wait.caller or wait.place)
