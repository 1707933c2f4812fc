"""Judge one thread dump of a JVM: deadlocks, locks that hold up threads, pools that stand still. Pure.

One dump proves a deadlock. That a lock or a pool holds up threads may be a moment of a busy JVM: a finding about it says `in one
dump`, and is a warning only where the holder waits or sleeps itself.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.jpmp.exhaustion import findings_of
from opskit.analysis.jpmp.idle import waits_for_connections
from opskit.analysis.jpmp.judge import judge_locks, lock_name, party_name
from opskit.analysis.jpmp.pools import overview
from opskit.analysis.jvm_monitors import lock_of
from opskit.collect.jpmp.collect import Facts as Dumps
from opskit.collect.jpmp.collect import Sampled, Schedule
from opskit.quantities import duration, plural
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from opskit.analysis.jpmp.locks import ContendedLock, Contention, Deadlock, LockKey, Party
    from opskit.collect.one_dump import Asked, Facts
    from opskit.jvm.dumps.thread_dump import ThreadDump

_MANY = 5  # threads that one lock holds up; fewer are a moment of any busy JVM
_RESTS = ("WAITING", "TIMED_WAITING")


def judge(facts: Facts) -> list[Finding]:
    """The findings about all of them; each summary names its process."""
    found = (finding for asked in facts.asked if asked.dump is not None for finding in _of_dump(asked, asked.dump))
    return most_severe_first(found)


def _of_dump(asked: Asked, dump: ThreadDump) -> Iterator[Finding]:
    process = _process(asked)
    live = Sampled(asked.jvm.pid, asked.jvm.start_ticks, asked.jvm.main, Schedule(1))
    live.dumps, live.times_s, live.java_major = [dump], [0.0], asked.java_major
    locks = judge_locks(Dumps([dump], live=live))
    dead = {link.thread[:3] for each in locks.contention.deadlocks for link in each.links}
    for deadlock in locks.contention.deadlocks:
        yield _deadlock(asked, process, deadlock, locks.contention)
    for lock in locks.contention.locks:
        yield from _held_up(asked, process, lock, dead)
    others = [each for each in locks.findings if each.code not in ("jvm-deadlock", "lock-contended")]
    for finding in [*others, *findings_of(overview([dump]), process, partial(_jpmp, asked))]:
        entity = process if finding.entity.kind == "process" else finding.entity._replace(inside=process)
        yield finding._replace(
            entity=entity, summary=f"{_who(asked)}, in one dump: {finding.summary}", evidence=f"{finding.evidence}; {_paused(asked)}"
        )  # fmt: skip


def _who(asked: Asked) -> str:
    return f"{asked.jvm.pid} ({asked.jvm.main})"


def _jpmp(asked: Asked, *words: object) -> str:
    return command("opskit", "jpmp", asked.jvm.pid, *words)


def _process(asked: Asked) -> Entity:
    inside = None if asked.place is None else Entity("cgroup", asked.place)
    return Entity("process", asked.jvm.pid, asked.jvm.start_ticks, inside)


def _paused(asked: Asked) -> str:
    if asked.paused_s is not None:
        return f"the dump paused it for {duration(asked.paused_s)}"
    return "the dump paused it" + ("" if asked.took_s is None else f" for at most {duration(asked.took_s)}")


def _deadlock(asked: Asked, process: Entity, deadlock: Deadlock, found: Contention) -> Finding:
    links = deadlock.links
    first, rest = links[0], len(links) - 2
    waits = f"{_name(first.thread)} waits for {_short(first.lock)} held by {_name(first.owner)}"
    timed = any(link.thread.state == "TIMED_WAITING" for link in links)
    others = max((lock.held_up for lock in found.locks if _is_of(lock, deadlock)), default=0) - len(links)
    evidence = ["reported by the JVM" if deadlock.reported else "a cycle of waits, not reported by the JVM"]
    evidence += [f"{plural(rest, 'more thread')} in the cycle"] if rest > 0 else []
    evidence += [f"{plural(others, 'other thread')} wait for their locks"] if others > 0 else []
    return Finding(
        "jvm-deadlock", "note" if timed else "error", process,
        f"deadlock of {plural(len(links), 'thread')} in {_who(asked)}: {waits}{', until one of them times out' if timed else ''}",
        "; ".join((*evidence, _paused(asked))), next=_jpmp(asked, "--locks"),
    )  # fmt: skip


def _id_of(lock: ContendedLock) -> str:
    """As of a look at the JVM's memory, so that both make one finding."""
    return lock_name(lock.key) if lock.owner is None else lock_of(lock.owner.name)


def _short(lock: LockKey) -> str:
    """`ReentrantLock$NonfairSync@fffd63e0`."""
    return lock_name(lock).rpartition(".")[2]


def _is_of(lock: ContendedLock, deadlock: Deadlock) -> bool:
    return lock.owner is not None and lock.owner[:3] in {link.thread[:3] for link in deadlock.links}


def _name(party: Party | None) -> str:
    return (
        "an unknown thread"
        if party is None
        else party_name(party)
        if party.virtual or not party.name
        else f'"{party.name}"'
    )


def _held_up(asked: Asked, process: Entity, lock: ContendedLock, dead: Container[object]) -> Iterator[Finding]:
    """Several threads wait for a lock, or for locks of those that do; not those of a deadlock, nor idle acceptors."""
    owners = [party for party in (lock.owner, *(link.thread for link in lock.chain)) if party is not None]
    if lock.held_up < _MANY or not lock.can_be_owned or any(owner[:3] in dead for owner in owners):
        return
    if any(waits_for_connections(party.frames) for party in (*owners, lock.waiters[0])):
        return
    holder = next((link.owner for link in reversed(lock.chain) if link.owner is not None), lock.owner)
    if lock.owner is None or holder is None:
        severity, whose = "note", f" whose holder is unknown: {lock.owner_unknown}"
    else:
        severity = "warning" if holder.state in _RESTS else "note"
        at = f", which is {holder.state or 'seen'} in {holder.frames[0]}" if holder.frames else ""
        whose = f" of {_name(lock.owner)}" + (f", and that for {_name(holder)}" if holder != lock.owner else "") + at
    yield Finding(
        "lock-contended", "warning" if severity == "warning" else "note", Entity("lock", _id_of(lock), inside=process),
        f"{plural(lock.held_up, 'thread')} of {_who(asked)} wait for a lock{whose}",
        f"{lock_name(lock.key)} in one dump: whether it lasts needs a second one; {_paused(asked)}",
        next=_jpmp(asked, "--locks"),
    )  # fmt: skip
