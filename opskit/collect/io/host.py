"""Read the machine's input and output over a window: its processes, threads in state D, block devices, pressure. Nothing is sent to anyone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.io.devices import added, devices, read_disks, read_stored_pages
from opskit.collect.io.facts import Facts, ProcessIo, Rates
from opskit.collect.io.processes import Scan, done, read_stats, scan
from opskit.collect.io.stalls import Stalls
from opskit.collect.schedule import window_end_s
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.pressure import parse_pressures, waiting_share
from opskit.proc.fs import optional
from opskit.proc.process import Process
from opskit.proc.visibility import coverage_lines
from opskit.quantities import integer, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opskit.collect.io.facts import Request
    from opskit.collect.io.processes import Done
    from opskit.host import Host
    from opskit.proc.files.diskstats import DiskStat
    from opskit.proc.files.stat import ProcStat

_MOST_LOOKS, _LOOKS_SHARE = 8, 0.02  # looks at all threads between the ends of a window, and their share of a CPU
_LOOK_AGAIN_S = 0.1  # threads in state D
_NOTHING = Rates(0, 0, 0, 0, 0, 0, 0)


class _Reading(NamedTuple):
    at_s: float
    scan: Scan
    disks: Mapping[str, DiskStat]
    pressure: Mapping[str, int]
    stored_pages: int | None


class HostReader:
    """Looks once, or again and again for a watch: then each window begins where the last one ended."""

    def __init__(self, host: Host, ask: Request, *, watch: bool = False) -> None:
        """Check the request. Raises NotSupported for a copy, which has no rates."""
        host.prove_moving("opskit io")
        self._host, self._ask, self._watches = host, ask, watch
        self._stalls = Stalls(host)
        self._last: _Reading | None = None
        self._known: dict[tuple[int, int], Process] = {}
        self._first_s = host.monotonic()
        self._reading_s = 0.0  # what a reading takes
        # What opskit itself reads is no answer.
        self._self = integer(optional(host.fs.link, "self", default=b"")) if host.is_own else None

    def look(self) -> Facts:
        """Read one window."""
        self.begin()
        self.wait()
        return self.end()

    def begin(self) -> None:
        """Read the begin of a window; in a watch it is the end of the last one."""
        if self._last is None or not self._watches:
            self._last = self._read()
        self._stalls.begin()

    def wait(self) -> None:
        """Let the window pass, and look at the threads in state D: at all threads as often as that is cheap."""
        host, window_s = self._host, self._ask.window_s
        begun_s = host.monotonic()
        end_s = begun_s + window_s
        if self._watches:
            end_s = window_end_s(self._first_s, begun_s, window_s, 1.25 * self._reading_s)
        end_s = host.end_at(end_s)
        looks = min(_MOST_LOOKS, int(_LOOKS_SHARE * (end_s - begun_s) / max(self._reading_s, 1e-3)))
        due_s = [begun_s + (end_s - begun_s) * (number + 1) / (looks + 1) for number in range(looks)]
        while (now_s := host.monotonic()) < end_s:
            if due_s and now_s >= due_s[0]:
                due_s = [each for each in due_s if each > now_s]
                self._stalls.look(read_stats(host.fs, host.fs.pids()))
            elif not looks:
                self._stalls.look_again()
            next_s = min(due_s[0] if due_s else end_s, end_s if looks else now_s + _LOOK_AGAIN_S, end_s)
            host.step(max(0.0, next_s - host.monotonic()))

    def end(self) -> Facts:
        """Read the end of the window."""
        before, after = self._last, self._read()
        self._last = after
        if before is None:
            before = after
        fs = self._host.fs
        window_s = max(after.at_s - before.at_s, 1e-6)
        did = done(before.scan, after.scan, window_s)
        found, uncounted = devices(fs, before.disks, after.disks, window_s)
        memory = fs.maybe(parse_meminfo, "meminfo", default={})
        return Facts(
            process=None,
            window_s=window_s,
            total=_sum(each.own for pid, each in did.items() if pid != self._self),
            processes=tuple(self._processes(after.scan, did)),
            devices=found,
            host_some=_share(before, after, "some", window_s),
            host_full=_share(before, after, "full", window_s),
            missing=tuple(self._missing(after.scan, uncounted)),
            dirty_bytes=memory.get("Dirty"),
            writeback_bytes=memory.get("Writeback"),
            stored_pages=added(before.stored_pages, after.stored_pages),
        )

    def _read(self) -> _Reading:
        host, fs = self._host, self._host.fs
        begun_s = host.monotonic()
        stats = read_stats(fs, fs.pids())
        self._stalls.look(stats)
        at_s = host.monotonic()
        reading = _Reading(
            at_s,
            scan(host, stats),
            read_disks(fs),
            fs.maybe(parse_pressures, "pressure", "io", default={}),
            read_stored_pages(fs),
        )
        self._reading_s = host.monotonic() - begun_s
        return reading

    def _processes(self, after: Scan, did: Mapping[int, Done]) -> Iterator[ProcessIo]:
        """Those that read, wrote or were in state D, of the users asked for."""
        stalled = self._stalls.threads()
        known, self._known = self._known, {}
        for pid, each in did.items():
            moved = any(rates is not None and any(rates) for rates in each)
            share = self._stalls.share(pid)
            if pid == self._self or not (moved or share or pid in stalled):
                continue
            stat = after.processes[pid].stat
            process = self._process(known, stat)
            if self._ask.uids and process.uid not in self._ask.uids:
                continue
            yield ProcessIo(process, each.own, stalled.get(pid, ()), share, each.children, stat.is_kernel_thread)

    def _process(self, known: Mapping[tuple[int, int], Process], stat: ProcStat) -> Process:
        key = stat.pid, stat.start_ticks
        found = known.get(key) or self._host.process(stat.pid)
        if found.start_ticks != stat.start_ticks:  # it has ended, and its PID may be another process's
            return Process(stat.pid, stat.comm, ppid=stat.ppid, start_ticks=stat.start_ticks, state="X")
        self._known[key] = found
        return found

    def _missing(self, after: Scan, uncounted: tuple[str, ...]) -> Iterator[str]:
        fs = self._host.fs
        own = [pid for pid, seen in after.processes.items() if not seen.stat.is_kernel_thread]
        yield from coverage_lines(fs, len(own) - len(after.denied), after.denied, after.vanished)
        for name in uncounted:
            yield f"{name}: the kernel does not count its requests (/sys/block/{name.replace('/', '!')}/queue/iostats is 0)"
        if self._stalls.left_out:
            yield f"{plural(self._stalls.left_out, 'more thread')} in state D"


def _sum(rates: Iterator[Rates | None]) -> Rates:
    return Rates(*map(sum, zip(_NOTHING, *(each for each in rates if each is not None))))


def _share(before: _Reading, after: _Reading, name: str, window_s: float) -> float | None:
    return waiting_share(before.pressure.get(name), after.pressure.get(name), window_s)
