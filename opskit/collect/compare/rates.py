"""Counters at several moments as measured facts: shares of the time, events a second, amounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from opskit.collect.compare.facts import BYTES, BYTES_PER_S, COUNT, CPUS, MEASURED, PER_S, SECONDS, SHARE, Fact
from opskit.collect.cpu_use import cpu_use
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.collect.compare.counters import JvmCounters, MachineCounters
    from opskit.collect.cpu_use import CpuUse

_LEAST_DISK_REQUESTS, _LEAST_SEGMENTS, _LEAST_PERIODS = 20, 200, 3
_LEAST_WANTED = 0.15  # of the window: of less, a few waits are chance
Between = Optional[float]


class Share(NamedTuple):
    """A share of the time between two moments."""

    name: str
    title: str
    of: Callable[[CpuUse], float]


_CPU = (
    Share("user", "CPU in programs", lambda use: use.user), Share("system", "CPU in the kernel", lambda use: use.system),
    Share("irq", "CPU in interrupts", lambda use: use.irq), Share("softirq", "CPU in softirqs", lambda use: use.softirq),
    Share("steal", "CPU stolen by the hypervisor", lambda use: use.steal),
)  # fmt: skip
_EVENTS = {
    "pswpin": "pages swapped in", "pswpout": "pages swapped out", "pgmajfault": "major page faults",
    "allocstall": "direct reclaims", "compact_stall": "memory compactions",
}  # fmt: skip
_NET = {"TcpExt.ListenOverflows": "listen queue overflows", "Udp.RcvbufErrors": "UDP packets dropped", "Tcp.InErrs": "bad TCP segments"}  # fmt: skip


def machine_rates(seen: Sequence[MachineCounters]) -> Iterator[Fact]:
    """The machine's measured facts; of one moment only what needs no second one."""
    last = seen[-1]
    total, available = last.memory.get("MemTotal"), last.memory.get("MemAvailable")
    if total and available is not None:
        yield _fact("host.memory_used", "memory", "memory used", 1 - available / total, SHARE)
    swap = last.memory.get("SwapTotal")
    if swap:
        yield _fact("host.swap_used", "memory", "swap used", 1 - last.memory.get("SwapFree", swap) / swap, SHARE)
    first = seen[0]
    window_s = last.at_s - first.at_s
    if len(seen) < 2 or window_s <= 0:
        return
    yield from _cpu_shares(seen)
    if first.switches is not None and last.switches is not None:
        count = max(0, last.switches - first.switches)
        yield _fact("host.switches", "CPU", "context switches", count / window_s, PER_S, events=count)
    for counters, titles, area in (("events", _EVENTS, "memory"), ("net", _NET, "network")):
        before, after = getattr(first, counters), getattr(last, counters)
        for name, title in titles.items():
            if name in before and name in after:
                count = max(0, after[name] - before[name])
                yield _fact(f"host.{name}", area, title, count / window_s, PER_S, events=count)
    yield from _resent(first, last)
    yield from _pressures(first, last, window_s, "host", "tasks")
    yield from _disks(first, last, window_s)


def _cpu_shares(seen: Sequence[MachineCounters]) -> Iterator[Fact]:
    pairs = [(seen[0], seen[-1]), *(zip(seen, seen[1:]) if len(seen) > 2 else ())]
    uses = [cpu_use(before.cpus, after.cpus) for before, after in pairs]
    for share in _CPU:
        values = [sum(map(share.of, use)) / len(use) for use in uses if use]
        if values:
            yield _fact(f"host.cpu.{share.name}", "CPU", share.title, values[0], SHARE, spread=values[1:])
    waits = []
    for before, after in pairs:
        passed = [now.since(before.cpus[cpu]) for cpu, now in after.cpus.items() if cpu in before.cpus]
        ticks = sum(each.total_ticks for each in passed)
        if ticks:
            waits.append(sum(each.iowait for each in passed) / ticks)
    if waits:
        yield _fact("host.cpu.iowait", "CPU", "CPU idle while a disk is awaited", waits[0], SHARE, spread=waits[1:])


def _resent(first: MachineCounters, last: MachineCounters) -> Iterator[Fact]:
    sent, again = (last.net.get(name, 0) - first.net.get(name, 0) for name in ("Tcp.OutSegs", "Tcp.RetransSegs"))
    if "Tcp.OutSegs" in first.net and sent >= _LEAST_SEGMENTS:
        yield _fact(
            "host.resent", "network", "TCP segments sent again", max(0, again) / sent, SHARE, events=max(0, again)
        )


def _disks(first: MachineCounters, last: MachineCounters, window_s: float) -> Iterator[Fact]:
    for name, now in last.disks.items():
        before = first.disks.get(name)
        passed = None if before is None else now.since(before)
        if passed is None or name.startswith(("loop", "ram", "sr", "zram")):
            continue
        yield _fact(f"disk.{name}.busy", "disk", f"{name} busy", min(1.0, passed.busy_ms / 1000 / window_s), SHARE, events=passed.finished)  # fmt: skip
        finished = passed.reads + passed.writes
        if finished >= _LEAST_DISK_REQUESTS:
            wait_s = (passed.read_ms + passed.write_ms) / finished / 1000
            yield _fact(f"disk.{name}.await", "disk", f"{name}: time of a request", wait_s, SECONDS, events=finished)


def jvm_rates(seen: Sequence[JvmCounters]) -> Iterator[Fact]:
    """A JVM's measured facts."""
    first, last = seen[0], seen[-1]
    if last.rss_bytes is not None:
        yield _fact("jvm.rss", "memory", "resident memory (RSS)", last.rss_bytes, BYTES)
    if last.swap_bytes is not None:
        yield _fact("jvm.swapped", "memory", "memory in swap", last.swap_bytes, BYTES)
    yield _fact("jvm.threads", "threads", "threads", last.threads, COUNT)
    for key, title in (("memory_share", "memory limit used"), ("fds_share", "file descriptors used of the limit")):
        if getattr(last, key) is not None:
            yield _fact(f"jvm.{key}", "limits", title, getattr(last, key), SHARE)
    window_s = last.at_s - first.at_s
    if len(seen) < 2 or window_s <= 0:
        return
    yield from _throttled(first, last)
    yield from _stops(first, last, window_s)
    values = [
        (after.cpu_s - before.cpu_s) / (after.at_s - before.at_s)
        for before, after in zip(seen, seen[1:])
        if after.at_s > before.at_s
    ]
    yield _fact(
        "jvm.cpu",
        "CPU",
        "CPUs used",
        max(0.0, last.cpu_s - first.cpu_s) / window_s,
        CPUS,
        spread=values if len(values) > 1 else (),
    )
    if None not in (first.waited_s, last.waited_s, first.ran_s, last.ran_s):
        waited, ran = max(0.0, last.waited_s - first.waited_s), max(0.0, last.ran_s - first.ran_s)  # type: ignore[operator]
        if waited + ran >= _LEAST_WANTED * window_s:
            yield _fact(
                "jvm.waits",
                "CPU",
                "threads waited for a CPU, of the time they wanted one",
                waited / (waited + ran),
                SHARE,
            )
    faults = max(0, last.major_faults - first.major_faults)
    yield _fact("jvm.major_faults", "memory", "major page faults of the JVM", faults / window_s, PER_S, events=faults)
    if first.io is not None and last.io is not None:
        passed = last.io.since(first.io)
        for name, title in (("disk_read_bytes", "read from storage"), ("disk_written_bytes", "written to storage")):
            yield _fact(f"jvm.{name}", "disk", title, getattr(passed, name) / window_s, BYTES_PER_S)
    yield from _pressures(first, last, window_s, "cgroup", "tasks of the cgroup")


def _pressures(
    first: MachineCounters | JvmCounters, last: MachineCounters | JvmCounters, window_s: float, of: str, who: str
) -> Iterator[Fact]:
    for name, total_us in last.pressure.items():
        if name in first.pressure:
            share = min(1.0, max(0, total_us - first.pressure[name]) / 1e6 / window_s)
            title = f"{who} waited for {'a CPU' if name == 'cpu' else name}"
            yield _fact(f"{of}.pressure.{name}", "pressure", title, share, SHARE)


def _throttled(first: JvmCounters, last: JvmCounters) -> Iterator[Fact]:
    """The share of the quota's periods in which it ran out. No quota: never."""
    if first.cpu is None or last.cpu is None:
        return
    if last.cpu.cpus is None:
        yield _fact("jvm.throttled", "cgroup", "throttled periods", 0.0, SHARE, since=0.0)
        return
    periods, throttled = last.cpu.periods, last.cpu.throttled_periods
    if periods is None or throttled is None or first.cpu.path != last.cpu.path:
        return
    since = throttled / periods if periods else 0.0
    passed, hit = periods - (first.cpu.periods or 0), throttled - (first.cpu.throttled_periods or 0)
    if passed < 0 or hit < 0:
        return
    # A quota counts no period while its cgroup is idle.
    share = hit / passed if passed >= _LEAST_PERIODS else 0.0
    yield _fact("jvm.throttled", "cgroup", "throttled periods", min(1.0, share), SHARE, events=hit, since=since)


def _stops(first: JvmCounters, last: JvmCounters, window_s: float) -> Iterator[Fact]:
    kinds = (
        ("gc", "time in GC pauses", "pauses", "pause_s"),
        ("stopped", "time at safepoints", "safepoints", "stopped_s"),
    )
    for key, title, counted, timed in kinds:
        number, number_before = getattr(last, counted), getattr(first, counted)
        seconds, before_s = getattr(last, timed), getattr(first, timed)
        if seconds is None or before_s is None:
            continue
        events = None if number is None or number_before is None else max(0, number - number_before)
        share = min(1.0, max(0.0, seconds - before_s) / window_s)
        yield _fact(
            f"jvm.{key}",
            "pauses",
            title,
            share,
            SHARE,
            events=events,
            since=min(1.0, seconds / last.age_s) if last.age_s else None,
        )


def _fact(
    key: str, area: str, name: str, value: float, unit: str, *, events: Between = None, since: Between = None,
    spread: Sequence[float] = (),
) -> Fact:  # fmt: skip
    low, high = (min(spread), max(spread)) if spread else (None, None)
    return Fact(key, MEASURED, area, name, value, unit, events, since, low, high)
