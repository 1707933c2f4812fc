"""What `opskit clock` reads. None: unknown, or not asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.proc.files.timens_offsets import TimeOffsets
    from opskit.proc.kernel.adjtimex import KernelClock
    from opskit.proc.kernel.clock_reads import ReadCost
    from opskit.proc.kernel.sntp import Exchange
    from opskit.proc.process import Process
    from opskit.proc.zones import Zone


class Request(NamedTuple):
    """The process whose view is wanted, the time server to ask, as (host, port), and the time between two looks of a watch."""

    pid: int | None = None
    server: tuple[str, int] | None = None
    interval_s: float = 2.0


class Source(NamedTuple):
    """The clocksource, those there are, and what a read costs."""

    current: str | None
    available: tuple[str, ...]
    cost: ReadCost | None


class Rtc(NamedTuple):
    """The hardware clock, read as UTC. `ahead_s`: of the system clock, exact to half a second; `keeps`: UTC or LOCAL by /etc/adjtime."""

    name: str
    ahead_s: float
    keeps: str | None


class Daemon(NamedTuple):
    """A process with the name of a time daemon. `may_set`: it has CAP_SYS_TIME over the machine, which only root can give.

    `shares_network`: it is in our network namespace, where its client finds it.
    """

    name: str
    pid: int
    start_ticks: int | None
    may_set: bool | None
    age_s: float | None
    shares_network: bool | None


class Step(NamedTuple):
    """The clock was set: `by_s` ahead (or back, negative), seen at this time of the watch, and by the new clock."""

    at_s: float
    by_s: float
    time_utc: str
    in_leap_second: bool = False


class Rate(NamedTuple):
    """How much faster than the hardware the clock ran in this time, in parts per million."""

    ppm: float
    window_s: float


class Server(NamedTuple):
    """A time server's answer, or why there is none. `ago_s`: when it was asked."""

    name: str
    port: int
    exchange: Exchange | None
    problem: str | None
    ago_s: float = 0.0


class View(NamedTuple):
    """A process's own view of time. `faked_by`: the library in its memory that replaces clock_gettime; `fake`: its FAKETIME.

    `offsets`: of its time namespace; `zone` None: its environment cannot be read. `problems`: what could not be read, and why.
    """

    process: Process
    zone: Zone | None
    faked_by: str | None = None
    fake: str | None = None
    offsets: TimeOffsets | None = None
    is_java: bool = False
    problems: tuple[str, ...] = ()


class Facts(NamedTuple):
    """A look. `sees_all`: no process of the machine is hidden; `container`: what shows that opskit runs in one.

    `is_virtual`: a hypervisor runs this machine. `steps`: of the watch, the oldest first, without the `older_steps` that are no longer kept.
    `faked_by`: a library that lies to opskit itself.
    """

    at_s: float
    kernel: KernelClock | None
    kernel_problem: str | None
    source: Source
    zone: Zone
    daemons: Sequence[Daemon]
    sees_all: bool
    container: str | None = None
    is_virtual: bool | None = None
    rtc: Rtc | None = None
    watched_s: float | None = None
    steps: Sequence[Step] = ()
    older_steps: int = 0
    rate: Rate | None = None
    server: Server | None = None
    view: View | None = None
    faked_by: str | None = None

    @property
    def steps_total(self) -> int:
        """Of the whole watch."""
        return self.older_steps + len(self.steps)
