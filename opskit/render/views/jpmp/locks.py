"""Contended locks and deadlocks: sentences, and fields for tables and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jpmp.frames import short
from opskit.analysis.jpmp.lock_sentences import lock_name, party_name
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, TEXT, Field, list_of, record, records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.jpmp.locks import ContendedLock, Deadlock, Link, Party

_SHOWN_WAITERS = 3
_SHOWN_FRAMES = 8


def deadlock_line(deadlock: Deadlock) -> str:
    """The sentence about one deadlock."""
    said = "; ".join(
        f"{party_name(link.thread)} waits for {lock_name(link.lock)} held by "
        + (party_name(link.owner) if link.owner else "an unknown owner")
        for link in deadlock.links
    )
    unreported = "" if deadlock.reported else ", which the dump does not report"
    return f"deadlock of {len(deadlock.links)} threads{unreported}: {said}"


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


COLUMNS: Sequence[Field[ContendedLock]] = (
    Field("held_up", COUNT, "held up"),
    Field("waiter_count", COUNT, "waiters", lambda lock: len(lock.waiters)),
    Field("samples", COUNT, "samples"),
    Field("waited_at_least_s", NUMBER, "waited at least", show=_seconds),
    Field("lock", TEXT, "lock", lambda lock: lock_name((lock.class_name, lock.address))),
    Field("owner", TEXT, "held by", _owner),
    Field("owner_stack", TEXT, "holder stack", _stack),
    Field("waiters", TEXT, "who waits", _waiters),
)
PARTY: Sequence[Field[Party]] = (
    Field("name"),
    Field("java_id", ID),
    Field("native_id", ID),
    Field("state"),
    Field("virtual", FLAG),
    Field("frames", list_of(TEXT), value=lambda party: list(party.frames)),
)
LINK: Sequence[Field[Link]] = (
    Field("thread", record(PARTY)),
    Field("lock_class", value=lambda link: link.lock[0]),
    Field("address", value=lambda link: link.lock[1]),
    Field("owner", record(PARTY)),
)
LOCK: Sequence[Field[ContendedLock]] = (
    Field("class", value=lambda lock: lock.class_name),
    Field("address"),
    Field("kind", help="monitor or synchronizer"),
    Field("waiters", records(PARTY)),
    Field("waiter_count", COUNT, value=lambda lock: len(lock.waiters)),
    Field("held_up", COUNT, help="the waiters, and the threads that wait for locks of the waiters"),
    Field("owner", record(PARTY)),
    Field("owner_unknown", help="why owner is null"),
    Field("chain", records(LINK), help="what the owner waits for, and so on"),
    Field("samples", COUNT, help="dumps in which it is contended"),
    Field("waited_at_least_s", NUMBER),
)
DEADLOCK: Sequence[Field[Deadlock]] = (
    Field("reported", FLAG, help="by the JVM itself"),
    Field("links", records(LINK)),
)
