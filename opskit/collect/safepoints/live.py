"""Samples a live JVM's safepoint counters on a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.safepoints.counters import Probe, Reading
from opskit.collect.schedule import schedule
from opskit.errors import NoSuchProcess
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.loadavg import parse_cpu_count
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.host import Host


class Request(NamedTuple):
    """Which JVM, and how often. `intervals` None: until Ctrl-C or its end."""

    pid: int
    interval_s: float = 1.0
    intervals: int | None = 10


class Facts(NamedTuple):
    """What was read so far. `jdk`: the feature release; `java`: the version as text. `pressure_of`: "cgroup" or "machine".

    `late_samples`: how many came late. `ended`: what happened to the JVM meanwhile.
    """

    pid: int
    start_ticks: int
    name: str
    java: str | None
    jdk: int | None
    unit: str | None
    cpus: int | None
    pressure_of: str | None
    readings: Sequence[Reading]
    late_samples: int = 0
    interrupted: bool = False
    ended: NoSuchProcess | None = None


def collect(host: Host, ask: Request, seen: Callable[[Facts], None] = lambda _: None) -> Facts:
    """Sample, and call `seen` after each interval. Ctrl-C and the end of the JVM end it; what was read so far counts.

    Raises what Probe raises, and NoSuchProcess and KeyboardInterrupt before the first interval is over.
    """
    host.prove_moving(f"safepoints {ask.pid}")
    probe = Probe(host, ask.pid)
    readings: list[Reading] = []
    java, name = probe.perf.text("java.property.java.version"), host.process(ask.pid).command
    unit = host.fs.maybe(lambda text: unit_of(parse_cgroup(text)), ask.pid, "cgroup")
    cpus = host.fs.maybe(parse_cpu_count, "stat")
    facts = Facts(ask.pid, probe.start_ticks, name, java, probe.jdk, unit, cpus, None, readings)
    try:
        for _, late_s in schedule(host, ask.interval_s, None if ask.intervals is None else ask.intervals + 1):
            readings.append(probe.read())
            late = facts.late_samples + (late_s > 0.5 * ask.interval_s)
            facts = facts._replace(pressure_of=probe.pressure_of, late_samples=late)
            if len(readings) > 1:
                seen(facts)
    except (KeyboardInterrupt, NoSuchProcess) as end:
        if len(readings) < 2:
            raise
        return facts._replace(ended=end) if isinstance(end, NoSuchProcess) else facts._replace(interrupted=True)
    return facts
