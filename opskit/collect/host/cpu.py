"""Utilisation and saturation of the CPUs over a window: what uptime, mpstat, sar -q and vmstat show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.cpu_use import cpu_use
from opskit.collect.windows import uneven_moments
from opskit.proc.cgroup.limits import cpu_limit
from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.files.cpu_times import parse_cpu_list, parse_cpu_times
from opskit.proc.files.loadavg import parse_loadavg
from opskit.proc.files.pressure import parse_averages, parse_pressure, waiting_share
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opskit.collect.cpu_use import CpuUse
    from opskit.host import Host
    from opskit.proc.cgroup.limits import CpuLimit
    from opskit.proc.files.cpu_times import CpuTime
    from opskit.proc.files.loadavg import Load
    from opskit.proc.files.pressure import Averages

_CPUS = ("sys", "devices", "system", "cpu")
_SMT_OFF = ("off", "forceoff")
_APART_S = 0.2


class Facts(NamedTuple):
    """`cpus`: each one's shares of the window; empty in a copy, whose `window_s` is 0. `iowait`: of the time of all CPUs.

    `pressure`: the share of the window in which some task waited for a CPU (PSI), `averages`: before it; None: no PSI. `offline`: CPUs that
    are there and not online; none where SMT was switched off as a whole. `quota`: of opskit's own cgroup, a container's limit.
    `runnable`: how many tasks ran or wanted to, on average, without opskit.
    """

    window_s: float
    cpus: tuple[CpuUse, ...]
    iowait: float
    online: int
    pressure: float | None
    averages: Averages | None
    load: Load | None
    offline: frozenset[int] = frozenset()
    quota: CpuLimit | None = None
    runnable: float | None = None


def collect(host: Host, window_s: float) -> Facts:
    """Look for one window; at once in a copy."""
    first, waited_us, begun_s = _times(host), _waited_us(host), host.monotonic()
    runnable = [*_runnable(host, host.end_at(begun_s + window_s))] if host.fs.has_rates else []
    last, now_us = _times(host), _waited_us(host)
    passed_s = max(host.monotonic() - begun_s, 1e-6) if host.fs.has_rates else 0.0
    levels = visible_levels(host.fs, "self", "cpu")[0]
    quota = cpu_limit(host.fs, levels) if levels else None
    return Facts(
        passed_s, cpu_use(first, last), _iowait(first, last), len(last), waiting_share(waited_us, now_us, passed_s),
        host.fs.maybe(parse_averages, "pressure", "cpu", default={}).get("some"), host.fs.maybe(parse_loadavg, "loadavg"), _offline(host),
        quota if quota is not None and quota.cpus is not None else None,
        sum(runnable) / len(runnable) if runnable else None,
    )  # fmt: skip


def _runnable(host: Host, until_s: float) -> Iterator[int]:
    """Until then, some looks at the run queues."""
    for _ in uneven_moments(host, _APART_S, until_s):
        load = host.fs.maybe(parse_loadavg, "loadavg")
        if load is not None:
            yield max(0, load.runnable - 1)


def _times(host: Host) -> Mapping[int, CpuTime]:
    return host.fs.maybe(parse_cpu_times, "stat", default={})


def _waited_us(host: Host) -> int | None:
    """A kernel that was started with psi=0 has the file, and does not let it be read."""
    return host.fs.maybe(parse_pressure, "pressure", "cpu")


def _iowait(first: Mapping[int, CpuTime], last: Mapping[int, CpuTime]) -> float:
    passed = [now.since(first[cpu]) for cpu, now in last.items() if cpu in first]
    return sum(each.iowait for each in passed) / max(sum(each.total_ticks for each in passed), 1)


def _offline(host: Host) -> frozenset[int]:
    """CPUs that may be added to a virtual machine are possible, and not present."""
    fs = host.fs
    if fs.maybe_root(str.strip, *_CPUS, "smt", "control") in _SMT_OFF:
        return frozenset()
    present = fs.maybe_root(parse_cpu_list, *_CPUS, "present") or frozenset()
    online = fs.maybe_root(parse_cpu_list, *_CPUS, "online") or present
    return present - online
