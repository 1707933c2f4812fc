"""What is measured beside a CPU profile: what the threads had of the CPUs, and where the process runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jpmp.load import LoadMeter
from opskit.errors import OpskitError
from opskit.jvm.discover import read_perfdata
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import parse_cgroup

if TYPE_CHECKING:
    from opskit.collect.jpmp.load import Load
    from opskit.host import Host


class Beside:
    """Reads the counters when it is made, and again for `measure`. `unit`: the container, pod or unit of the process."""

    def __init__(self, host: Host, pid: int) -> None:
        try:
            perf = read_perfdata(host.fs, pid)
        except OpskitError:
            perf = None
        memberships = host.fs.maybe(parse_cgroup, pid, "cgroup")
        self.unit = None if memberships is None else unit_of(memberships)
        self._meter = LoadMeter(host, pid, perf)

    def measure(self) -> Load:
        """What happened meanwhile."""
        return self._meter.measure()
