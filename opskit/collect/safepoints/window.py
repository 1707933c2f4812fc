"""Read the safepoint counters of all JVMs twice within a short window; nothing is sent. See live.py for the counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.found_jvms import hotspot_jvms
from opskit.jvm.perfdata.counters import GC_COUNTERS, gc_work
from opskit.jvm.perfdata.stop_clock import STOP_COUNTERS, CounterReader, jdk_of, stopped_s
from opskit.proc.cgroup.owner import owner_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.boot_time import age_s, parse_uptime
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm

_COUNTERS = STOP_COUNTERS | {b"sun.rt.safepoints"} | frozenset(name.encode() for name in GC_COUNTERS)


class Request(NamedTuple):
    """Which JVMs: those among `pids`, or all."""

    pids: tuple[int, ...] = ()
    window_s: float = 1.0


class Stops(NamedTuple):
    """Since the JVM's start, at a moment: safepoints, seconds stopped (TTSP included), of TTSP, and in GC pauses. None: unknown."""

    at_s: float
    safepoints: int
    stopped_s: float
    ttsp_s: float | None
    gc_s: float | None


class Watched(NamedTuple):
    """One JVM at the begin and at the end. `place`: the cgroup of its container, pod or unit."""

    jvm: Jvm
    jdk: int | None
    age_s: float | None
    place: str | None
    before: Stops
    now: Stops


class Facts(NamedTuple):
    """The JVMs that count safepoints."""

    watched: Sequence[Watched]


def collect(host: Host, ask: Request) -> Facts:
    """Look, wait, look again."""
    found = [jvm for jvm in hotspot_jvms(host, ask.pids).jvms if jvm.perf is not None]
    clocks = [(jvm, CounterReader(host.fs, jvm.perf, _COUNTERS)) for jvm in found]
    first = [(jvm, clock, stops) for jvm, clock in clocks if (stops := _read(host, clock)) is not None]
    if not first:
        return Facts(())
    host.sleep(ask.window_s)
    uptime_s = host.fs.maybe(parse_uptime, "uptime")
    return Facts([
        Watched(
            jvm, jvm.perf and jdk_of(jvm.perf), age_s(uptime_s, jvm.start_ticks or 0, host.clock_ticks), _place(host, jvm), before, now
        )
        for jvm, clock, before in first
        if (now := _read(host, clock)) is not None
    ])  # fmt: skip


def _read(host: Host, clock: CounterReader) -> Stops | None:
    at_s, perf = host.monotonic(), clock.read()
    if perf is None:
        return None
    safepoints, stopped = perf.number("sun.rt.safepoints"), stopped_s(perf)
    if safepoints is None or stopped is None:
        return None
    return Stops(at_s, safepoints, stopped, perf.ticks_s("sun.rt.safepointSyncTime"), gc_work(perf).pause_s)


def _place(host: Host, jvm: Jvm) -> str | None:
    owner = owner_of(host.fs.maybe(parse_cgroup, jvm.pid, "cgroup", default=[]))
    return None if owner is None else owner.path
