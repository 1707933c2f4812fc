"""A quick look at storage over a window: devices, threads that stay in state D, limits of cgroups, pressure. No calls, no positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.io.devices import devices, read_disks, read_stored_pages
from opskit.collect.io.facts import Facts, IoLimit, ProcessIo
from opskit.collect.io.sleeps import may_wait_for_fuse
from opskit.collect.io.stalls import Stalls
from opskit.proc.cgroup.io import device_limits
from opskit.proc.cgroup.sweep import all_cgroups, cgroups_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.pressure import NONE_HERE, Averages, parse_averages, parse_pressures, waiting_share
from opskit.proc.files.stat import ProcStat, parse_stat
from opskit.proc.fs import optional
from opskit.proc.process import Process, command_name
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opskit.collect.io.facts import StalledThread
    from opskit.host import Host
    from opskit.proc.cgroup.io import DeviceLimit
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.files.diskstats import DiskStat

_MOST_THREADS = 5000  # of processes with several; a look costs some 15 us each
_LOOK_AGAIN_S = 0.25
_MOST_CGROUPS = 2000
_STATE, _THREADS = 0, 17  # words of /proc/PID/stat behind the name
_V2_FILE = "io.pressure"


class Waiter(NamedTuple):
    """A process with a thread in state D at the end of the window. `cgroups`: its paths; `where`: wchan of its threads."""

    process: Process
    cgroups: frozenset[str]
    where: tuple[str | None, ...]


class QuickIo(NamedTuple):
    """`facts`: devices, and processes with threads in state D all the time. `limits`: of cgroups, with the use in the window.

    `pressed`: by path, the share of the window in which tasks of these cgroups waited for storage (v2). `waiters`: looked for only where
    the machine has much pressure, and for limits. `averages`: of the machine's pressure. `missing`: what is unknown, and why.
    """

    facts: Facts
    limits: tuple[IoLimit, ...] = ()
    pressed: Mapping[str, float] = {}
    waiters: tuple[Waiter, ...] = ()
    averages: Averages | None = None
    processes: int = 0
    missing: tuple[tuple[str, str], ...] = ()


class _Reading(NamedTuple):
    at_s: float
    disks: Mapping[str, DiskStat]
    pressure: Mapping[str, int]
    stored_pages: int | None
    limits: Sequence[DeviceLimit]
    pressed: Mapping[str, int]


def collect_quick(
    host: Host, window_s: float, pids: Sequence[int], is_pressed: Callable[[float, Averages | None], bool]
) -> QuickIo:
    """Read, wait and read again. `is_pressed`: whether a share of the window is worth a second look at all processes."""
    return _Look(host, pids).read(window_s, is_pressed)


class _Look:
    def __init__(self, host: Host, pids: Sequence[int]) -> None:
        self._host, self._fs, self._pids = host, host.fs, pids
        self._stalls = Stalls(host)
        self._levels = _levels_of(host, pids)
        self._left_out = 0
        self._seen = 0

    def read(self, window_s: float, is_pressed: Callable[[float, Averages | None], bool]) -> QuickIo:
        host, fs = self._host, self._fs
        before = self._read()
        self._stalls.look(self._stats())
        self._stalls.begin()
        first = self._waiters() if before.limits else ()
        end_s = host.end_at(before.at_s + window_s)
        while (left_s := end_s - host.monotonic()) > 0:
            host.step(min(_LOOK_AGAIN_S, left_s))
            self._stalls.look_again()
        after = self._read()
        elapsed_s = max(after.at_s - before.at_s, 1e-6)
        some, full = (
            waiting_share(before.pressure.get(name), after.pressure.get(name), elapsed_s) for name in ("some", "full")
        )
        averages = fs.maybe(parse_averages, "pressure", "io", default={}).get("some")
        stalled = self._stalls.threads()
        limits = tuple(_limits(before.limits, after.limits, elapsed_s))
        wants_waiters = not self._pids and some is not None and is_pressed(some, averages)
        if wants_waiters or limits:  # who is in state D only now and then is seen by one of two looks
            self._stalls.look(self._stats())
        last = self._waiters() if wants_waiters or limits else ()
        waiters = tuple({each.process.pid: each for each in (*first, *last)}.values())
        found, uncounted = devices(fs, before.disks, after.disks, elapsed_s)
        facts = Facts(
            process=None, window_s=elapsed_s, processes=tuple(self._processes(stalled)), devices=found, host_some=some,
            host_full=full, stored_pages=_added(before.stored_pages, after.stored_pages),
        )  # fmt: skip
        pressed = {
            path: share
            for path, total in after.pressed.items()
            if (share := waiting_share(before.pressed.get(path), total, elapsed_s)) is not None
        }
        return QuickIo(facts, limits, pressed, waiters, averages, self._seen, tuple(self._missing(uncounted, some)))

    def _read(self) -> _Reading:
        fs, host = self._fs, self._host
        limits = [limit for level in self._levels for limit in device_limits(fs, (level,))]
        limited = {limit.path for limit in limits}
        pressed = {
            level.path: total
            for level in self._levels
            if (level.path in limited or self._pids)
            and (total := fs.maybe_root(parse_pressures, level.directory.lstrip("/"), _V2_FILE, default={}).get("some"))
            is not None
        }
        return _Reading(
            host.monotonic(), {} if self._pids else read_disks(fs), fs.maybe(parse_pressures, "pressure", "io", default={}),
            read_stored_pages(fs), limits, pressed,
        )  # fmt: skip

    def _stats(self) -> dict[int, ProcStat]:
        """The processes that are in state D, or have threads that may be."""
        fs = self._fs
        every = may_wait_for_fuse(fs)
        found, threads = {}, 0
        self._left_out = self._seen = 0
        for pid in self._pids or fs.pids():
            text = optional(fs.read, pid, "stat")
            if text is None:
                continue
            self._seen += 1
            words = text[text.rfind(b")") + 1 :].split(None, _THREADS + 1)
            if len(words) <= _THREADS or not (every or words[_STATE] == b"D" or words[_THREADS] != b"1"):
                continue
            stat = optional(parse_stat, text.decode("utf-8", "surrogateescape"))
            if stat is None:
                continue
            if stat.threads > 1:
                threads += stat.threads
                if threads > _MOST_THREADS:
                    self._left_out += 1
                    continue
            found[pid] = stat
        return found

    def _processes(self, stalled: Mapping[int, Sequence[StalledThread]]) -> Iterable[ProcessIo]:
        for pid, threads in stalled.items():
            stat = self._fs.maybe(parse_stat, pid, "stat")
            if stat is not None:
                process = Process(pid, command_name(self._fs, pid), ppid=stat.ppid, start_ticks=stat.start_ticks)
                share = self._stalls.share(pid)
                yield ProcessIo(process, None, tuple(threads), share, is_kernel_thread=stat.is_kernel_thread)

    def _waiters(self) -> tuple[Waiter, ...]:
        found = []
        for each in self._processes(self._stalls.threads()):
            if not each.is_kernel_thread:
                paths = {one.path for one in self._fs.maybe(parse_cgroup, each.process.pid, "cgroup", default=())}
                found.append(Waiter(each.process, frozenset(paths - {"/"}), tuple(one.where for one in each.stalled)))
        return tuple(found)

    def _missing(self, uncounted: Sequence[str], some: float | None) -> Iterable[tuple[str, str]]:
        if self._left_out:
            yield (
                f"threads in state D of {plural(self._left_out, 'process', 'processes')}",
                f"only {_MOST_THREADS:,} threads are looked at",
            )
        if uncounted and not self._pids:
            yield f"requests of {', '.join(uncounted[:3])}", "the kernel does not count them (queue/iostats is 0)"
        if some is None and not self._pids:
            yield "IO pressure", NONE_HERE


def _levels_of(host: Host, pids: Sequence[int]) -> tuple[Level, ...]:
    """The cgroups that may limit devices."""
    fs = host.fs
    if not pids:
        return (all_cgroups(fs, "blkio") or all_cgroups(fs, "io"))[:_MOST_CGROUPS]
    found = cgroups_of(fs, pids, "blkio") or cgroups_of(fs, pids, "io")
    return tuple(level for level in found if level.path != "/")


def _limits(before: Sequence[DeviceLimit], after: Sequence[DeviceLimit], elapsed_s: float) -> Iterable[IoLimit]:
    first = {(each.path, each.device, each.what): each.used for each in before}
    for each in after:
        gained = _added(first.get((each.path, each.device, each.what)), each.used)
        used = None if gained is None else gained / elapsed_s
        yield IoLimit(each.path, each.device, each.what, float(each.limit), used)


def _added(then: int | None, now: int | None) -> int | None:
    return None if then is None or now is None else max(0, now - then)
