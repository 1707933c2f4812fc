"""Read the machine's clock, what synchronises it, and a process's own view of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.clock.daemons import find_daemons
from opskit.collect.clock.facts import Facts
from opskit.collect.clock.machine import is_virtual, read_rtc, read_source
from opskit.collect.clock.steps import StepWatch
from opskit.errors import NotSupported
from opskit.proc.fs import optional
from opskit.proc.kernel.adjtimex import read_kernel_clock
from opskit.proc.kernel.clock_reads import read_cost
from opskit.proc.namespaces import container_evidence, in_initial
from opskit.proc.zones import machine_zone

if TYPE_CHECKING:
    from opskit.collect.clock.facts import Request
    from opskit.host import Host
    from opskit.proc.fs import ProcFS
    from opskit.proc.kernel.adjtimex import KernelClock

_FRESH_ERROR_S = 1.0  # of maxerror, which grows by this in 33 minutes
_MACHINE_S = 10.0  # how long a watch keeps what rarely changes: daemons, clocksource, RTC


class Collector:
    """Looks once, or with `watch` once an interval, and at once when the clock is set."""

    def __init__(self, host: Host, ask: Request, *, watch: bool = False) -> None:
        """Raises NotSupported for a copy, NoSuchProcess."""
        if not host.fs.is_live:
            raise NotSupported(
                f"{host.fs.proc} is a copy, and the clock of its machine is not this one; run opskit clock there"
            )
        self._host, self._ask = host, ask
        self._given = self._server = self._steps = None
        if ask.pid is not None:
            from opskit.collect.given_pids import GivenPids

            self._given = GivenPids(host, (ask.pid,), "clock", shows_all=False)
        if ask.server is not None:
            from opskit.collect.clock.server import ServerReader

            self._server = ServerReader(host, ask.server)
        self._begun_s = host.monotonic()
        self._steps = StepWatch(host) if watch else None
        self._last: Facts | None = None
        self._machine_s = 0.0  # when that was read
        self._machine_steps = 0  # after how many steps: the RTC was compared with the clock

    def look(self) -> Facts:
        """Read all. A later look of a watch waits for its turn, or for a step."""
        steps = self._steps
        if steps is not None and self._last is not None:
            self._wait(steps)
        pid = next(iter(self._given.living()), None) if self._given else None
        kernel, problem = _kernel_clock(self._host.fs)
        at_s = self._host.monotonic() - self._begun_s
        facts = self._machine(at_s)._replace(kernel=kernel, kernel_problem=problem)
        if steps is not None:
            steps.look()
            steps.is_leap = kernel is not None and (
                kernel.leap is not None or kernel.state in ("TIME_OOP", "TIME_WAIT")
            )
            facts = facts._replace(
                watched_s=steps.watched_s,
                steps=tuple(steps.steps),
                older_steps=steps.total - len(steps.steps),
                rate=steps.rate(),
            )
        if self._server is not None:
            facts = facts._replace(server=self._server.look())
        if pid is not None:
            from opskit.collect.clock.view import read_view

            facts = facts._replace(view=read_view(self._host, self._host.process(pid)))
        self._last = facts
        return facts

    def _wait(self, steps: StepWatch) -> None:
        """Until the next multiple of the interval: a step in between ends the wait, and is shown at once."""
        interval_s = self._ask.interval_s
        slot = (self._host.monotonic() - self._begun_s) // interval_s + 1
        steps.watch(self._host.end_at(self._begun_s + slot * interval_s))

    def _machine(self, at_s: float) -> Facts:
        """What rarely changes is read again after some seconds, and when the clock was set."""
        last, host, steps = self._last, self._host, self._steps.total if self._steps else 0
        if last is not None and at_s - self._machine_s < _MACHINE_S and steps == self._machine_steps:
            return last._replace(at_s=at_s)
        self._machine_s, self._machine_steps = at_s, steps
        return read_machine(host, at_s)


def read_quick(host: Host) -> Facts:
    """What costs little, without any wait: no server, RTC, or cost of a read. Raises NotSupported for a copy."""
    kernel, problem = _kernel_clock(host.fs)
    is_good = kernel is not None and kernel.is_synchronised and kernel.most_error_s < _FRESH_ERROR_S
    daemons = () if is_good else find_daemons(host)  # a daemon has just told the kernel that its clock is right
    source = read_source(host.fs, None)
    return Facts(
        0.0, kernel, problem, source, machine_zone(host.fs, host.now()), daemons, _sees_all(host.fs), container_evidence(host.fs),
        None if is_good else is_virtual(host.fs, source.current), faked_by=_faked_by(host.fs),
    )  # fmt: skip


def read_machine(host: Host, at_s: float) -> Facts:
    """The machine without what the kernel's clock says."""
    fs = host.fs
    source = read_source(fs, optional(fs.calls.ask, read_cost))
    return Facts(
        at_s, None, None, source, machine_zone(fs, host.now()), find_daemons(host), _sees_all(fs), container_evidence(fs),
        is_virtual(fs, source.current), read_rtc(host), faked_by=_faked_by(fs),
    )  # fmt: skip


def _sees_all(fs: ProcFS) -> bool:
    """Whether no process of the machine is hidden from us."""
    if in_initial(fs, "pid") is False:
        return False
    if "hidepid=" not in fs.maybe(str, "self", "mountinfo", default=""):
        return True
    from opskit.proc.visibility import hides_processes

    return not hides_processes(fs)


def _faked_by(fs: ProcFS) -> str | None:
    """A library that lies to opskit itself. Few runs need the parser of the maps."""
    maps = fs.maybe(str, "self", "maps", default="")
    if "faketime" not in maps and "datefudge" not in maps:
        return None
    from opskit.proc.fake_time import library_in

    return library_in(maps)


def _kernel_clock(fs: ProcFS) -> tuple[KernelClock | None, str | None]:
    try:
        return fs.calls.ask(read_kernel_clock), None
    except OSError as error:
        return None, f"adjtimex(2): {error.strerror}"
