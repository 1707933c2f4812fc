"""Contended locks on a terminal: a line for each lock, below it the holder and its stack, one frame a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jpmp.frames import short
from opskit.analysis.jpmp.judge import lock_name, party_name
from opskit.quantities import listed, plural
from opskit.render.views.jpmp.document import owner_words

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from opskit.analysis.jpmp.locks import ContendedLock, LockKey

DETAIL = 9  # the most: 8 frames of the holder
_SHOWN_NAMES = 3


def lock_lines(lock: ContendedLock, dead: Collection[LockKey], detail: int, width: int | None) -> list[str]:
    """The lines of one lock. `detail` 0: its holder only; 1: one frame too; 2 and more: one frame less, and the waiters."""
    times = f"{lock.samples} of {plural(lock.dumps, 'dump')}"
    if lock.waited_at_least_s is not None:
        times += f", ≥ {lock.waited_at_least_s:.1f} s"
    mark = "DEADLOCK, " if lock.key in dead else ""
    head, tail = f"{lock.held_up} held up  ", f"  {mark}{times}"
    room = None if width is None else width - len(head) - len(tail)
    lines = [head + fitted_name(lock_name(lock.key), room) + tail]
    owner = owner_words(lock)
    if lock.owner is None:
        lines.append(f"  its owner is {owner}" if owner.startswith("unknown") else f"  held by {owner}")
    else:
        lines.append(" ".join(filter(None, ("  held by", owner, lock.owner.state))))
        frames = [*map(short, lock.owner.frames)]
        lines += [f"    {frame}" for frame in frames[: min(detail, max(1, detail - 1))]]
    if detail >= 2:
        lines.append(f"  waiting: {listed([*map(party_name, lock.waiters)], _SHOWN_NAMES)}")
    return lines


def fitted_name(name: str, room: int | None) -> str:
    """The name with as many packages shortened to their first letter as it takes: `j.u.concurrent.Semaphore@1f`."""
    if room is None or len(name) <= room:
        return name
    parts: Sequence[str] = name.split(".")
    for number in range(len(parts)):
        fitted = ".".join([*(part[:1] for part in parts[:number]), *parts[number:]])
        if len(fitted) <= room:
            return fitted
    return parts[-1]
