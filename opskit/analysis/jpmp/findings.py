"""Findings and sentences about deadlocks and about locks that hold up several threads. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.analysis.jpmp.locks import ContendedLock, Contention, Deadlock, LockKey, Party
    from opskit.collect.jpmp.facts import Facts
    from opskit.jvm.dumps.thread_dump import Waits

_ENOUGH_SAMPLES = 3  # in which a lock holds up several threads; fewer may be a moment of a busy, healthy JVM
_ENOUGH_SHARE = 0.5  # of all samples
_MOST_NAMES = 5


def reported_deadlock(facts: Facts, links: Sequence[Waits]) -> Finding:
    """A deadlock that the JVM reports itself."""
    seen = sum(links in dump.deadlocks for dump in facts.dumps)
    names = [f'"{link.thread}"' for link in links]
    return _deadlock(facts, names, f"reported by the JVM in {_of_dumps(seen, facts)}", _jpmp(facts, "--locks"))


def _deadlock(facts: Facts, names: Sequence[str], evidence: str, closer: str | None) -> Finding:
    shown = listed(names, _MOST_NAMES)
    summary = f"{plural(len(names), 'thread')} wait for each other until the JVM is restarted: {shown}"
    return Finding("jvm-deadlock", "error", _process(facts), summary, evidence, next=closer)


def lock_findings(facts: Facts, found: Contention) -> list[Finding]:
    """Every deadlock, and the locks that hold up several threads for another reason."""
    deadlocked = {link.thread[:3] for deadlock in found.deadlocks for link in deadlock.links}
    return [
        *(_found_deadlock(facts, deadlock) for deadlock in found.deadlocks),
        *(_contended(facts, lock) for lock in found.locks if _is_held_up(lock, facts, deadlocked)),
    ]


def _found_deadlock(facts: Facts, deadlock: Deadlock) -> Finding:
    names = [f'"{link.thread.name}"' for link in deadlock.links]
    evidence = "reported by the JVM" if deadlock.reported else "a circle of waits, not reported by the JVM"
    save = None if facts.live is None else _jpmp(facts, 3, "--save", f"jpmp-{facts.live.pid}")
    finding = _deadlock(facts, names, evidence, save)
    if not deadlock.reported and any(link.thread.state == "TIMED_WAITING" for link in deadlock.links):
        summary = f"{plural(len(names), 'thread')} wait for each other until one of them times out: {', '.join(names)}"
        return finding._replace(severity="note", summary=summary)
    return finding


def _is_held_up(lock: ContendedLock, facts: Facts, deadlocked: Iterable[object]) -> bool:
    """Whether one lock holds up several threads most of the time: not by a deadlock, and not in idle acceptors."""
    from opskit.analysis.jpmp.idle import waits_for_connections

    if lock.crowded_samples < max(_ENOUGH_SAMPLES, _ENOUGH_SHARE * len(facts.dumps)) or not lock.can_be_owned:
        return False
    owners = [party for party in (lock.owner, *(link.thread for link in lock.chain)) if party is not None]
    return not (
        any(owner[:3] in deadlocked for owner in owners)
        or any(waits_for_connections(party.frames) for party in (*owners, lock.waiters[0]))
    )


def _contended(facts: Facts, lock: ContendedLock) -> Finding:
    closer = None
    if lock.owner is not None and lock.owner.name:
        name = re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", lock.owner.name)
        closer = _jpmp(facts, "--by-thread", "--include", f"^{name}$")
    elif lock.kind == "synchronizer" and facts.live is not None:
        closer = _jpmp(facts, "--locks", "--synchronizers")
    waited = "" if lock.waited_at_least_s is None else f"; one thread waited at least {lock.waited_at_least_s:.1f} s"
    return Finding(
        "lock-contended",
        "warning",
        Entity("lock", lock_name(lock.key), inside=_process(facts)),
        lock_line(lock),
        f"contended in {_of_dumps(lock.samples, facts)}{waited}",
        next=closer,
        share=lock.crowded_samples / len(facts.dumps),
        window_s=None if facts.live is None else facts.live.elapsed_s,
    )


def _of_dumps(count: int, facts: Facts) -> str:
    return f"{count} of {plural(len(facts.dumps), 'dump')}"


def _process(facts: Facts) -> Entity:
    if facts.live is None:
        return Entity("file", " ".join(facts.files))
    return Entity("process", facts.live.pid, facts.live.start_ticks)


def _jpmp(facts: Facts, *words: object) -> str | None:
    """The command line of jpmp on the same target; None for standard input."""
    if facts.live is not None:
        return shell.command("opskit", "jpmp", facts.live.pid, *words)
    return None if "-" in facts.files else shell.command("opskit", "jpmp", *words, *shell.operands(*facts.files))


def listed(names: Sequence[str], most: int, comma: str = ", ") -> str:
    """The first of them: `main, worker-1, … 7 more`."""
    rest = len(names) - most
    return comma.join([*names[:most], f"… {rest} more"] if rest > 0 else names)


def party_name(party: Party) -> str:
    """`"pool-1-thread-3" #41`, or `virtual thread #22 "name"`."""
    number = "" if party.java_id is None else f" #{party.java_id}"
    if party.virtual:
        return f"virtual thread{number}" + (f' "{party.name}"' if party.name else "")
    return f'"{party.name}"{number}' if party.name else f"thread {party.native_id}"


def lock_name(key: LockKey) -> str:
    """`java.lang.Object@6ce3e8d10`."""
    return "@".join(key)


def lock_line(lock: ContendedLock) -> str:
    """The sentence about one lock: how many threads it holds up, its owner, and where the chain of owners ends."""
    said = f"{lock_name(lock.key)} holds up {plural(lock.held_up, 'thread')}"
    if lock.owner is None:
        return f"{said}; its owner is unknown: {lock.owner_unknown}"
    said += f"; held by {party_name(lock.owner)}"
    root = lock.owner
    for link in lock.chain:
        said += f", which waits for {lock_name(link.lock)}"
        if link.owner is None:
            return f"{said} of unknown owner"
        if link.owner == lock.owner or link.owner in (earlier.thread for earlier in lock.chain):
            return f"{said}: a deadlock"
        said += f" held by {party_name(link.owner)}"
        root = link.owner
    if root.frames:
        said += f", which is {f'{root.state} ' if root.state else ''}in {root.frames[0]}"
    return said
