"""How contended locks and deadlocks are shown: sentences, columns, keys for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.analysis.frames import short
from opskit.quantities import whole
from opskit.render.report import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.locks import ContendedLock, Deadlock, Link, LockKey, Party

_SHOWN_WAITERS = 3
_SHOWN_FRAMES = 8


def party_name(party: Party) -> str:
    """`"pool-1-thread-3" #41`, or `virtual thread #22 "name"`."""
    number = "" if party.java_id is None else f" #{party.java_id}"
    if party.virtual:
        return f"virtual thread{number}" + (f' "{party.name}"' if party.name else "")
    return f'"{party.name}"{number}' if party.name else f"thread {party.native_id}"


def lock_name(key: LockKey) -> str:
    """`java.lang.Object@6ce3e8d10`."""
    return f"{key[0]}@{key[1]}"


def deadlock_line(deadlock: Deadlock) -> str:
    """The sentence about one deadlock."""
    said = "; ".join(
        f"{party_name(link.thread)} waits for {lock_name(link.lock)} held by "
        + (party_name(link.owner) if link.owner else "an unknown owner")
        for link in deadlock.links
    )
    unreported = "" if deadlock.reported else ", which the dump does not report"
    return f"deadlock of {len(deadlock.links)} threads{unreported}: {said}"


def lock_line(lock: ContendedLock) -> str:
    """The sentence about the lock that holds up most: how many, by whom, and where the chain ends."""
    name = lock_name((lock.class_name, lock.address))
    said = f"{name} holds up {lock.held_up} thread{'s' * (lock.held_up != 1)}"
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
        said += (
            f", which is {root.state or 'at'} in {root.frames[0]}" if root.state else f", which is in {root.frames[0]}"
        )
    return said


def _waiters(lock: ContendedLock) -> str:
    shown = [party_name(waiter) for waiter in lock.waiters[:_SHOWN_WAITERS]]
    rest = len(lock.waiters) - len(shown)
    return ", ".join(shown) + (f", … {rest} more" if rest else "")


def _owner(lock: ContendedLock) -> str:
    if lock.owner is None:
        return f"unknown: {lock.owner_unknown}"
    return party_name(lock.owner)


def _stack(lock: ContendedLock) -> str:
    if lock.owner is None:
        return ""
    frames = list(map(short, lock.owner.frames))
    shown = frames[:_SHOWN_FRAMES]
    return ",".join(shown) + (f",… {len(frames) - len(shown)} more" if len(frames) > len(shown) else "")


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"


COLUMNS: list[Column[ContendedLock]] = [
    Column("held up", lambda lock: lock.held_up, whole, right=True),
    Column("waiters", lambda lock: len(lock.waiters), whole, right=True),
    Column("samples", lambda lock: lock.samples, whole, right=True),
    Column("waited at least", lambda lock: lock.waited_at_least_s, _seconds, right=True),
    Column("lock", lambda lock: lock_name((lock.class_name, lock.address))),
    Column("held by", _owner),
    Column("holder stack", _stack),
    Column("who waits", _waiters),
]


def party_object(party: Party | None) -> dict[str, Any] | None:
    """A thread for JSON."""
    if party is None:
        return None
    return {
        "name": party.name,
        "java_id": party.java_id,
        "native_id": party.native_id,
        "state": party.state,
        "virtual": party.virtual,
        "frames": list(party.frames),
    }


def _link_object(link: Link) -> dict[str, Any]:
    return {
        "thread": party_object(link.thread),
        "lock_class": link.lock[0],
        "address": link.lock[1],
        "owner": party_object(link.owner),
    }


def lock_object(lock: ContendedLock) -> dict[str, Any]:
    """One contended lock for JSON."""
    return {
        "class": lock.class_name,
        "address": lock.address,
        "kind": lock.kind,
        "waiters": [party_object(waiter) for waiter in lock.waiters],
        "waiter_count": len(lock.waiters),
        "held_up": lock.held_up,
        "owner": party_object(lock.owner),
        "owner_unknown": lock.owner_unknown,
        "chain": [_link_object(link) for link in lock.chain],
        "samples": lock.samples,
        "waited_at_least_s": lock.waited_at_least_s,
    }


def deadlock_objects(deadlocks: Sequence[Deadlock]) -> list[dict[str, Any]]:
    """The deadlocks for JSON."""
    return [
        {"reported": deadlock.reported, "links": [_link_object(link) for link in deadlock.links]}
        for deadlock in deadlocks
    ]
