"""Names of threads and locks, and the sentence about one lock. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.analysis.jpmp.locks import ContendedLock, LockKey, Party


def party_name(party: Party) -> str:
    """`"pool-1-thread-3" #41`, or `virtual thread #22 "name"`."""
    number = "" if party.java_id is None else f" #{party.java_id}"
    if party.virtual:
        return f"virtual thread{number}" + (f' "{party.name}"' if party.name else "")
    return f'"{party.name}"{number}' if party.name else f"thread {party.native_id}"


def lock_name(key: LockKey) -> str:
    """`java.lang.Object@6ce3e8d10`."""
    return f"{key[0]}@{key[1]}"


def lock_line(lock: ContendedLock) -> str:
    """The sentence about one lock: how many threads it holds up, its owner, and where the chain of owners ends."""
    said = f"{lock_name((lock.class_name, lock.address))} holds up {plural(lock.held_up, 'thread')}"
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
