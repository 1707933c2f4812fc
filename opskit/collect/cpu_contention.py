"""How many CPUs a paused JVM would get: what it shares them with, and the quota of its cgroup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.limits import cpu_limit
from opskit.proc.cgroup.tree import ancestry
from opskit.proc.files.loadavg import parse_cpu_count, parse_loadavg
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.host import Host

_LOOKS, _APART_S = 5, 0.04
_MOST_READ = 256  # threads of the JVM; of more, every second, third, … one stands for the others
_RUNNABLE = "R"


class Contention(NamedTuple):
    """What delays the work of a JVM at a safepoint, where its own Java threads are stopped.

    `others`: runnable threads of other processes, on average. `cpus`: of the machine. `quota_cpus` None: no quota.
    """

    others: float
    cpus: int
    quota_cpus: float | None = None

    @property
    def stretch(self) -> float:
        """How many times as long as on an idle machine its work takes: 1 or more."""
        shared = (self.others + self.cpus) / self.cpus if self.others >= 1 else 1.0
        quota = self.quota_cpus
        return shared if quota is None else max(shared, self.cpus / max(quota, 0.01))


def read_contention(host: Host, pid: int) -> Contention:
    """Look at the run queues some times within 0.2 s. What is unknown does not stretch."""
    cpus = host.fs.maybe(parse_cpu_count, "stat") or 1
    seen = [_others(host, pid)]
    for _ in range(_LOOKS - 1):
        host.pause(_APART_S)
        seen.append(_others(host, pid))
    levels = optional(ancestry, host.fs, pid, "cpu")
    quota = cpu_limit(host.fs, levels.levels).cpus if levels else None
    return Contention(sum(seen) / len(seen), cpus, quota)


def _others(host: Host, pid: int) -> int:
    """Runnable threads of processes other than the JVM and opskit, which reads the file while it runs."""
    load = host.fs.maybe(parse_loadavg, "loadavg")
    if load is None or load.runnable <= 1:
        return 0
    tids = optional(host.fs.tids, pid, default=[])
    each = len(tids) // _MOST_READ + 1
    states = (host.fs.maybe(parse_stat, pid, "task", tid, "stat") for tid in tids[::each])
    own = each * sum(stat is not None and stat.state == _RUNNABLE for stat in states)
    return max(0, load.runnable - 1 - own)
