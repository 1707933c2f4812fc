"""Judge who waits for whose monitor: deadlocks, and monitors that were held for a whole window while others waited. Pure.

Every look at the JVM showed the same waits, so that a cycle of them is a deadlock. Locks of java.util.concurrent are not seen.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opskit.analysis.finding import Entity, Finding
from opskit.quantities import duration, plural
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opskit.analysis.finding import Severity
    from opskit.collect.jvm_monitors import Waits

_SHORTEST_S = 0.2  # of the looks; less proves nothing
_MANY = 5  # threads that wait for one all the time; fewer are no reason to call somebody
_NAME_BYTES = 15
_LONGEST = 80  # characters of a thread's name in a sentence
# One thread of a server accepts or selects with a lock, and the others wait for their turn: they are idle.
_SERVES = frozenset({
    "accept", "accept4", "poll", "ppoll", "epoll_wait", "epoll_pwait", "epoll_pwait2", "select", "pselect6", "read",
    "recvfrom", "recvmsg", "recvmmsg", "io_getevents", "io_uring_enter",
})  # fmt: skip


def find_waits(waits: Waits, process: Entity) -> Iterator[Finding]:
    """The findings about one JVM."""
    if waits.seconds < _SHORTEST_S:
        return
    holders = {thread: wait.holder for thread, wait in waits.waits.items()}
    cycles = cycles_of(holders)
    dead = {thread for cycle in cycles for thread in cycle}
    if cycles:
        yield _deadlock(waits, process, holders, cycles)
    for holder, number in Counter(_roots(holders, dead).values()).most_common():
        if number >= _MANY and holder in waits.parties and holder not in waits.awake:
            yield _held(waits, process, holder, number)


def cycles_of(holders: Mapping[int, int]) -> list[list[int]]:
    """The cycles of threads that each wait for the next. `holders`: the holder of what a thread waits for."""
    cycles: list[list[int]] = []
    done: set[int] = set()
    for start in holders:
        path: list[int] = []
        thread = start
        while thread in holders and thread not in done:
            done.add(thread)
            path.append(thread)
            thread = holders[thread]
        if thread in path:
            cycles.append(path[path.index(thread) :])
    return cycles


def _roots(holders: Mapping[int, int], dead: set[int]) -> dict[int, int]:
    """By thread the one at the end of its waits, which waits for no monitor itself; without those behind a deadlock."""
    found = {}
    for start in holders:
        thread, seen = start, {start}
        while thread in holders and holders[thread] not in seen and not seen & dead:
            thread = holders[thread]
            seen.add(thread)
        if thread and not seen & dead:
            found[start] = thread
    return found


def _who(waits: Waits) -> str:
    return f"{waits.jvm.pid} ({waits.jvm.main})"


def _name(waits: Waits, thread: int) -> str:
    found = waits.parties.get(thread)
    if found is None:
        return "an unknown thread"
    return f'"{found.name}"' if len(found.name) <= _LONGEST else f'"{found.name[: _LONGEST - 1]}…"'


def lock_of(name: str) -> str:
    """The name of a lock as a part of a finding's entity, by its holder; the kernel cuts some names of threads."""
    return f"held by {name.encode('utf-8', 'surrogateescape')[:_NAME_BYTES].decode('utf-8', 'replace')}"


def _looked(waits: Waits) -> str:
    return f"the same in all looks at JavaThread::_current_pending_monitor in its memory, for {duration(waits.seconds)}"


def _deadlock(waits: Waits, process: Entity, holders: Mapping[int, int], cycles: list[list[int]]) -> Finding:
    cycle, more = cycles[0], len(cycles) - 1
    first = min(cycle, key=lambda thread: _name(waits, thread))
    dead = {thread for each in cycles for thread in each}
    behind = len(holders) - len(dead) - len(_roots(holders, dead))
    said = [f"{plural(len(cycle) - 2, 'more thread')} in the cycle"] if len(cycle) > 2 else []
    said += [f"{plural(more, 'more deadlock')}"] if more else []
    said += [f"{plural(behind, 'other thread')} wait for their monitors"] if behind > 0 else []
    return Finding(
        "jvm-deadlock", "error", process,
        f"deadlock of {plural(len(cycle), 'thread')} in {_who(waits)}: {_name(waits, first)} waits for a monitor held by "
        f"{_name(waits, holders[first])}",
        "; ".join((*said, _looked(waits))), next=command("opskit", "jpmp", waits.jvm.pid, "--locks"),
        window_s=round(waits.seconds, 3),
    )  # fmt: skip


def _held(waits: Waits, process: Entity, holder: int, number: int) -> Finding:
    party = waits.parties[holder]
    # A thread that runs may let go of a busy lock and take it again: the looks cannot tell.
    severity: Severity = "note" if party.call is None or party.call in _SERVES else "warning"
    doing = f", which sleeps in {party.call}" if party.call else ""
    return Finding(
        "lock-contended", severity, Entity("lock", lock_of(party.name), inside=process),
        f"{plural(number, 'thread')} of {_who(waits)} wait for a monitor held by {_name(waits, holder)}{doing}",
        _looked(waits), next=command("opskit", "jpmp", waits.jvm.pid, "--locks"), window_s=round(waits.seconds, 3),
    )  # fmt: skip
