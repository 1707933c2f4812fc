"""The quick look of `opskit doctor` at interrupts: the counters twice, and threads only where a CPU spends time on interrupts.

Nothing is measured on a CPU, and no other network namespace is entered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.cpu_use import cpu_use
from opskit.collect.irqs.collect import Collector, usual_cpus
from opskit.collect.irqs.pinned import ThreadScan
from opskit.proc.files.cpu_times import parse_cpu_times

if TYPE_CHECKING:
    from collections.abc import Collection

    from opskit.collect.irqs.facts import Facts, Pinned
    from opskit.host import Host

_DECIDES = 0.3  # of the window, after which it is known whether threads are read
_HOT = 0.06  # of a CPU's time, in interrupts and softirqs


class _Pinned:
    """The threads that are pinned, from when they were read; none where no CPU was hot."""

    def __init__(self, host: Host, scan: ThreadScan | None) -> None:
        self._host, self._scan, self._begun_s = host, scan, host.monotonic()
        self.balancers: list[int] = [] if scan is None else scan.balancers

    def end(self, _elapsed_s: float, online: frozenset[int]) -> tuple[Pinned, ...]:
        """As ThreadScan.end(), for its own time."""
        if self._scan is None:
            return ()
        return self._scan.end(max(self._host.monotonic() - self._begun_s, 1e-6), online)


class QuickCollector(Collector):
    """Looks once. `pids`: the processes whose threads are read; none: all."""

    enters_namespaces = False

    def __init__(self, host: Host, window_s: float, pids: Collection[int] = ()) -> None:
        super().__init__(host, window_s)
        self._pids = pids

    def look(self) -> Facts:
        """Read one window. Raises NotSupported where the CPUs are unknown."""
        host = self._host
        first = self._read()
        end_s = host.end_at(first.at_s + self._window_s)
        if host.can_look_after(_DECIDES * self._window_s / 2):
            host.sleep(_DECIDES * self._window_s)
        now = host.fs.maybe(parse_cpu_times, "stat", default={})
        # The samples of a capture may be too far apart to decide first.
        is_hot = now == first.times or any(use.irq + use.softirq >= _HOT for use in cpu_use(first.times, now))
        has_window = not host.is_recorded or host.monotonic() < end_s
        scan = ThreadScan(host, usual_cpus(first.topology), self._pids) if is_hot and has_window else None
        threads = _Pinned(host, scan)
        host.sleep(max(0.0, end_s - host.monotonic()))
        return self._facts(first, self._read(), threads, {})
