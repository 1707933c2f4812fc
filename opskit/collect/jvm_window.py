"""Read every JVM twice within a short window, each time with its counters of that very moment. Nothing is sent.

Only the second reading is searched for JVMs that have ended. The kernel's log is read where one has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.found_jvms import found_jvms
from opskit.collect.jvm_monitors import MonitorWatch
from opskit.collect.jvm_troubles import STALL_COUNTERS, Killed, Stall, Suspects, killed_meanwhile
from opskit.collect.jvms import see_jvm
from opskit.errors import BadInput, NotPermitted
from opskit.jvm.perfdata.counters import HEAP_COUNTERS, PAUSE_COUNTERS
from opskit.jvm.perfdata.generations import GENERATION_COUNTERS, Generations, generations
from opskit.jvm.perfdata.stop_clock import STOP_COUNTERS, CounterReader
from opskit.proc.cgroup.tree import cgroup_mounts
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import DENIED, GONE
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.collect.jvm_monitors import Waits
    from opskit.collect.jvms import Seen
    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.proc.files.mountinfo import Mount

_COUNTERS = STOP_COUNTERS | GENERATION_COUNTERS
_COUNTERS |= {name.encode() for name in (*HEAP_COUNTERS, *PAUSE_COUNTERS, *STALL_COUNTERS)}
_STEPS, _MOST_STEPPED = 4, 32  # looks at the generations in a window; of so many JVMs
_MOST_JVMS = 150
_SOON_S = 0.05  # most of those that seem to wait for a safepoint do so for less


class Request(NamedTuple):
    """Which JVMs: those among `pids`, or all. `window_s` 0: one look, in which nothing has a rate."""

    pids: tuple[int, ...] = ()
    window_s: float = 1.0


class Pair(NamedTuple):
    """One JVM at the begin and the end of the window, and its generations `between`: (seconds of the host's clock, counters)."""

    before: Seen | None
    now: Seen
    between: Sequence[tuple[float, Generations]] = ()


class Facts(NamedTuple):
    """The JVMs, and what ended or stalled in the window. `denied`: processes of which it is unknown whether they are JVMs.

    `closed`: JVMs whose counters are another user's; `without`: those that share none. `waits`: by PID, for monitors;
    `unread`: JVMs whose memory was closed to us; `unlike`: those without a table of monitors; `crowded`: those with too many threads.
    `left_out`: JVMs that were not read, `unwatched`: for monitors, as there are too many for a short window.
    """

    pairs: Sequence[Pair]
    window_s: float
    denied: int = 0
    closed: int = 0
    without: int = 0
    killed: Sequence[Killed] = ()
    stalls: Mapping[int, Stall] = {}
    waits: Mapping[int, Waits] = {}
    unread: int = 0
    left_out: int = 0
    unwatched: int = 0
    unlike: int = 0
    crowded: int = 0


def collect(host: Host, ask: Request) -> Facts:
    """Look, wait, look again."""
    found = found_jvms(host, ask.pids)
    many, found = len(found.jvms[_MOST_JVMS:]), found._replace(jvms=found.jvms[:_MOST_JVMS])
    mounts = cgroup_mounts(host.fs, found.jvms[0].pid) if found.jvms else []
    refused = [jvm for jvm in found.jvms if jvm.perf is None]
    closed = sum(isinstance(jvm.no_perf, NotPermitted) for jvm in refused)
    counts = len(found.denied), closed, len(refused) - closed
    first = [seen for jvm in found.jvms if (seen := _see(host, jvm, mounts)) is not None]
    if not ask.window_s or not first:
        return Facts([Pair(None, seen) for seen in first], ask.window_s, *counts, left_out=many)
    end_s = host.end_of(ask.window_s)
    suspects = Suspects(host, first, patient=True)
    monitors = MonitorWatch(host, found.jvms)
    suspects.confirm_after(_SOON_S)
    between = _wait(host, first, end_s, monitors.look)
    suspects.confirm()
    pairs, gone = [], []
    for before in first:
        now = _see(host, before.jvm, mounts)
        if now is None:
            gone.append(before)
        else:
            pairs.append(Pair(before, now, between.get(before.jvm.pid, ())))
    waits = {each.jvm.pid: each for each in monitors.result()}
    killed, stalls = tuple(killed_meanwhile(host, gone)), suspects.stalls()
    return Facts(
        pairs, ask.window_s, *counts, killed, stalls, waits, monitors.closed, many, monitors.left_out, monitors.unlike,
        monitors.crowded,
    )  # fmt: skip


def _see(host: Host, jvm: Jvm, mounts: list[Mount]) -> Seen | None:
    """The JVM now; None where it has ended or is closed to us."""
    stat = host.fs.maybe(parse_stat, jvm.pid, "stat")
    if stat is None or stat.is_exiting or stat.start_ticks != jvm.start_ticks:
        return None
    now_s, at_s = host.now().timestamp() if host.fs.is_live else None, host.monotonic()
    perf = CounterReader(host.fs, jvm.perf, _COUNTERS).read()
    try:
        return see_jvm(host, jvm if perf is None else jvm._replace(perf=perf), mounts, None, now_s, at_s)
    except (*GONE, DENIED, BadInput):
        return None


def _wait(
    host: Host, seen: Sequence[Seen], until_s: float, look: Callable[[], None]
) -> dict[int, list[tuple[float, Generations]]]:
    """Wait; `look` and read the generations meanwhile: between collections of the old one, its growth is promotion."""
    clocks = [
        (each.jvm.pid, CounterReader(host.fs, each.jvm.perf, GENERATION_COUNTERS))
        for each in seen
        if each.reading.generations is not None
    ]
    found: dict[int, list[tuple[float, Generations]]] = {}
    step_s = max(0.0, until_s - host.monotonic()) / _STEPS
    for _ in range(_STEPS - 1 if len(clocks) <= _MOST_STEPPED else 0):
        if not host.can_look_after(step_s):
            break
        host.sleep(step_s)
        look()
        for pid, clock in clocks:
            at_s, perf = host.monotonic(), clock.read()
            now = None if perf is None else generations(perf)
            if now is not None:
                found.setdefault(pid, []).append((at_s, now))
    host.sleep(max(0.0, until_s - host.monotonic()))
    look()
    return found
