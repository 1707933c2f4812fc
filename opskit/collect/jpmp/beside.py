"""What is measured beside a CPU profile: what the threads had of the CPUs, and which program runs where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jpmp.load import LoadMeter
from opskit.errors import OpskitError
from opskit.jvm.discover import find_jvm
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import parse_cgroup

if TYPE_CHECKING:
    from opskit.collect.cpu_profile import CpuProfile
    from opskit.collect.jpmp.load import Load
    from opskit.host import Host


class Beside:
    """Reads the counters when it is made, and again for `measure`.

    `main`: of a JVM, None: no JVM, or unknown. `unit`: the container, pod or unit of the process.
    """

    def __init__(self, host: Host, pid: int) -> None:
        try:
            jvm = find_jvm(host.fs, pid, host.clock_ticks)
        except OpskitError:
            jvm = None
        self.is_jvm = jvm is not None
        self.main = None if jvm is None else jvm.main or None
        memberships = host.fs.maybe(parse_cgroup, pid, "cgroup")
        self.unit = None if memberships is None else unit_of(memberships)
        self._meter = LoadMeter(host, pid, None if jvm is None else jvm.perf)

    def named(self, taken: CpuProfile) -> CpuProfile:
        """The profile with the JVM's main class or jar as its name."""
        return taken if self.main is None else taken._replace(name=self.main)

    def measure(self) -> Load:
        """What happened meanwhile."""
        return self._meter.measure()
