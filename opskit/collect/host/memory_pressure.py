"""Read over a window whether tasks wait for memory: pressure (PSI), swap activity, reclaim; and which cgroup has the most of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.limits import memory_limit_of
from opskit.proc.cgroup.sweep import all_cgroups
from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.compressed import read_zram_bytes
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.pressure import NONE_HERE, Averages, parse_averages, parse_pressures, waiting_share
from opskit.proc.files.vmstat import parse_vmstat
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

# Of /proc/vmstat: pages, and events; the names of reclaim changed with the kernel.
_EVENTS = (
    "pswpin", "pswpout", "pgmajfault", "pgscan_direct", "pgscan_kswapd", "pgsteal_direct", "workingset_refault_anon",
    "workingset_refault_file", "workingset_refault", "oom_kill",
)  # fmt: skip
_STALLS = "allocstall"
_MOST_CGROUPS = 2000
_AT_LIMIT = 0.98
_FILE = "memory.pressure"


class Pressure(NamedTuple):
    """Shares of the window in which some, or all, of the tasks waited for memory; `averages` by the kernel. `path`: of a cgroup, None: the machine."""

    path: str | None
    some: float | None
    full: float | None
    averages: Averages | None


class PressureFacts(NamedTuple):
    """One window. `rates`: events a second, of _EVENTS and `allocstall`; empty without a window. `host` None: this kernel has no PSI.

    `groups`: the cgroups with pressure, the most first: looked for where the machine has some, or those of the processes that were asked
    about. `at_limit`: cgroups of v1, which has no pressure, that are at their memory limit.
    """

    window_s: float
    page_bytes: int
    meminfo: Mapping[str, int]
    rates: Mapping[str, float]
    host: Pressure | None
    groups: tuple[Pressure, ...] = ()
    at_limit: tuple[str, ...] = ()
    zram_bytes: int = 0
    looked_at: int = 0
    missing: tuple[tuple[str, str], ...] = ()


class _Reading(NamedTuple):
    at_s: float
    events: Mapping[str, int]
    totals: Mapping[str, int]


def collect_memory_pressure(
    host: Host, window_s: float, pids: Sequence[int], is_pressed: Callable[[Pressure], bool]
) -> PressureFacts:
    """Read, wait and read again. `is_pressed`: whether the cgroups are looked at, too. With `pids`: their cgroups alone."""
    fs = host.fs
    own = _levels_of(fs, pids)
    before, firsts = _read(host), {level: _totals(fs, level) for level in own}
    after = before
    if window_s:
        host.sleep(window_s)
        after = _read(host)
    elapsed_s = after.at_s - before.at_s
    averages = fs.maybe(parse_averages, "pressure", "memory", default={})
    machine = (
        Pressure(None, *_shares(before.totals, after.totals, elapsed_s), averages.get("some")) if averages else None
    )
    groups = [_pressure(fs, level, first, elapsed_s) for level, first in firsts.items()]
    at_limit: tuple[str, ...] = ()
    if machine is not None and not pids and is_pressed(machine):
        groups = [found for level in _most_pressed(fs) if (found := _pressure(fs, level, {}, 0.0)) is not None]
        at_limit = tuple(_at_limit(fs))
    return PressureFacts(
        elapsed_s, host.page_bytes, fs.maybe(parse_meminfo, "meminfo", default={}), _rates(before, after), machine,
        tuple(found for found in groups if found is not None), at_limit, read_zram_bytes(fs), len(own),
        tuple(_missing(machine, window_s, pids, own, is_live=fs.is_live)),
    )  # fmt: skip


def _missing(
    machine: Pressure | None, window_s: float, pids: Sequence[int], own: Sequence[Level], *, is_live: bool
) -> Iterator[tuple[str, str]]:
    if not window_s:
        yield "swap activity and pressure", "one sample has no rates" if is_live else "a copy has no rates"
    elif pids and not own:
        yield (
            f"memory pressure of {plural(len(pids), 'process', 'processes')}",
            "their cgroups have no memory.pressure (cgroup v2, PSI)",
        )
    elif machine is None:
        yield "memory pressure", NONE_HERE


def _levels_of(fs: ProcFS, pids: Sequence[int]) -> tuple[Level, ...]:
    """The cgroups of these processes that have pressure, without those above."""
    found: dict[str, Level] = {}
    for pid in pids:
        levels, _ = visible_levels(fs, pid, "")
        if levels and levels[0].version == 2 and levels[0].has(fs, _FILE):
            found[levels[0].path] = levels[0]
    return tuple(found.values())


def _read(host: Host) -> _Reading:
    fs = host.fs
    vmstat = fs.maybe(parse_vmstat, "vmstat", default={})
    stalls = sum(number for name, number in vmstat.items() if name.startswith(_STALLS))
    events = {name: vmstat[name] for name in _EVENTS if name in vmstat}
    return _Reading(
        host.monotonic(), {**events, _STALLS: stalls}, fs.maybe(parse_pressures, "pressure", "memory", default={})
    )


def _totals(fs: ProcFS, level: Level) -> Mapping[str, int]:
    return fs.maybe_root(parse_pressures, level.directory.lstrip("/"), _FILE, default={})


def _shares(before: Mapping[str, int], after: Mapping[str, int], elapsed_s: float) -> tuple[float | None, float | None]:
    some, full = (waiting_share(before.get(name), after.get(name), elapsed_s) for name in ("some", "full"))
    return some, full


def _pressure(fs: ProcFS, level: Level, first: Mapping[str, int], elapsed_s: float) -> Pressure | None:
    averages = fs.maybe_root(parse_averages, level.directory.lstrip("/"), _FILE, default={})
    shares = _shares(first, _totals(fs, level), elapsed_s) if first else (None, None)
    return Pressure(level.path, *shares, averages.get("some")) if averages else None


def _rates(before: _Reading, after: _Reading) -> Mapping[str, float]:
    elapsed_s = after.at_s - before.at_s
    if elapsed_s <= 0:
        return {}
    return {
        name: max(0, number - before.events[name]) / elapsed_s
        for name, number in after.events.items()
        if name in before.events
    }


def _most_pressed(fs: ProcFS) -> list[Level]:
    """The cgroups of v2, those with the highest pressure of the last 10 s first, of equal ones the deepest."""
    found = []
    for level in all_cgroups(fs, "memory")[:_MOST_CGROUPS]:
        if level.version == 2:
            averages = fs.maybe_root(parse_averages, level.directory.lstrip("/"), _FILE, default={}).get("some")
            if averages is not None and averages.of_10_s:
                found.append((averages.of_10_s, level.path.count("/"), level))
    return [level for *_, level in sorted(found, key=lambda each: each[:2], reverse=True)]


def _at_limit(fs: ProcFS) -> Iterator[str]:
    for level in all_cgroups(fs, "memory")[:_MOST_CGROUPS]:
        if level.version == 1:
            limit = memory_limit_of(fs, level)
            if limit is not None and limit.limit_bytes and (limit.usage or 0) >= _AT_LIMIT * limit.limit_bytes:
                yield level.path
