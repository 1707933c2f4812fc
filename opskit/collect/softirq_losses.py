"""Measure what interrupts take of the CPUs on which clock ticks have found many softirqs: for at most a tenth of a second each.

Softirqs that a CPU has no time for otherwise run in its thread ksoftirqd/N, beside which other threads wait.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from opskit.collect.cpu_use import cpu_use
from opskit.errors import NotSupported
from opskit.host import Host
from opskit.interrupts import Guard, Interruptible
from opskit.proc.files.cpu_times import parse_cpu_times
from opskit.proc.files.schedstat import parse_schedstat
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import ProcFS, optional

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from opskit.collect.cpu_use import CpuUse
    from opskit.proc.files.cpu_times import CpuTime
    from opskit.proc.kernel.children import Child, Send

_LEAST_SOFTIRQ, _MOST_CPUS = 0.06, 4
_LEAST_TICKS = 2  # in softirqs: one may be chance
_MOST_S, _ROUND_S = 0.1, 0.01
_LATE_S, _LATE = 0.3, 0.2  # of the time that there is: how long to wait for an answer behind it
_USED = 0.9  # of the time that there is: a busy CPU comes late to the last round
_SPINS = 0.5  # of that time, at most
_STEALS = 0.02  # of a CPU: the hypervisor's part, which a thread may see as a loss too
_NOW_S = 0.4
_LEAST_NS = 5_000_000  # on the CPU: from less, nothing follows


def accounts_irqs(times: Mapping[int, CpuTime]) -> bool | None:
    """Whether the kernel measures irq time: a tick never finds an interrupt, since it is one itself."""
    return any(time.irq for time in times.values()) if times else None


def worth_measuring(before: Mapping[int, CpuTime], now: Mapping[int, CpuTime], but: Collection[int] = ()) -> list[int]:
    """The CPUs on which ticks have found most softirqs, where those are many; without the CPUs `but`."""
    hot = [
        use
        for use in cpu_use(before, now)
        if use.softirq >= _LEAST_SOFTIRQ
        and now[use.cpu].since(before[use.cpu]).softirq >= _LEAST_TICKS
        and use.cpu not in but
    ]
    return [use.cpu for use in sorted(hot, key=lambda use: -use.softirq)[:_MOST_CPUS]]


@contextmanager
def measuring_losses(
    host: Host, cpus: Collection[int], until_s: float, most_s: float = _MOST_S
) -> Iterator[Callable[[], dict[int, float]]]:
    """Measure until that time, each CPU for so long. The function returns the share of its time that interrupts and softirqs take.

    A CPU is left out where opskit may not run, or gets no time: threads of a real-time class may keep it. All are where there is too little time.
    """
    begun_s = host.monotonic()
    usable_s = (until_s - begun_s) * _USED
    rounds = min(round(min(most_s, _MOST_S) / _ROUND_S), int(usable_s * _SPINS / _ROUND_S))
    if not cpus or rounds <= 0:
        yield dict
        return
    from opskit.proc.kernel.children import start_child

    apart_s = max(usable_s / rounds, _ROUND_S)
    late_s = min(_LATE_S, _LATE * (until_s - begun_s))
    threads = dict(_softirq_threads(host, cpus))
    before = _thread_times(host, threads)
    children: dict[Child, int] = {}

    def end() -> dict[int, float]:
        after = _thread_times(host, threads)
        elapsed_ms = (host.monotonic() - begun_s) * 1000
        found = {}
        for child, cpu in children.items():
            lost = _answer(child, until_s + late_s - host.monotonic())
            if lost is not None:
                in_thread = min(max((after.get(cpu, 0.0) - before.get(cpu, 0.0)) / elapsed_ms, 0.0), 1.0)
                found[cpu] = in_thread + (1 - in_thread) * lost
        return found

    with Guard():
        try:
            with suppress(NotSupported):  # no process can be started
                for at, cpu in enumerate(cpus):
                    # By turns: a thread that is measured keeps the one from its CPU that sends to the others.
                    begin_s = at * apart_s / len(cpus)
                    children[start_child(partial(_on_cpu, cpu, begin_s, rounds, apart_s))] = cpu
            with Interruptible():
                yield end
        finally:
            for child in children:
                child.end()


def recorded_losses(host: Host, before: Mapping[int, CpuTime], but: Collection[int]) -> dict[int, float]:
    """The shares on a capture, at the end of a window that began with `before`: they were measured when it was made."""
    now = host.fs.maybe(parse_cpu_times, "stat", default={})
    hot = worth_measuring(before, now, but) if host.is_own and accounts_irqs(before) is False else []
    nothing: dict[int, float] = {}
    return optional(host.fs.calls.ask, losses_now, tuple(hot), default=nothing) if hot else nothing


def losses_now(cpus: tuple[int, ...]) -> dict[int, float]:
    """Measure on this machine, for less than half a second."""
    host = Host(ProcFS())
    with measuring_losses(host, cpus, host.monotonic() + _NOW_S) as losses:
        host.sleep(_NOW_S)
        return losses()


def _softirq_threads(host: Host, cpus: Collection[int]) -> Iterator[tuple[int, int]]:
    """Each CPU with the PID of its ksoftirqd. The kernel starts them first: few processes are read."""
    wanted = {b"ksoftirqd/%d\n" % cpu: cpu for cpu in cpus}
    for pid in host.fs.pids():
        cpu = wanted.get(optional(host.fs.read, pid, "comm", default=b""))
        stat = None if cpu is None else host.fs.maybe(parse_stat, pid, "stat")
        if cpu is not None and stat is not None and stat.is_kernel_thread:
            yield cpu, pid
            del wanted[b"ksoftirqd/%d\n" % cpu]
            if not wanted:
                return


def _thread_times(host: Host, threads: Mapping[int, int]) -> dict[int, float]:
    """The ms that ksoftirqd of each CPU has run."""
    times = {cpu: host.fs.maybe(parse_schedstat, pid, "schedstat") for cpu, pid in threads.items()}
    return {cpu: time.cpu_ms for cpu, time in times.items() if time is not None}


def _on_cpu(cpu: int, begin_s: float, rounds: int, apart_s: float, send: Send) -> None:
    from opskit.proc.kernel.children import pin
    from opskit.proc.kernel.lost_time import measure

    pin({cpu})
    measure(begin_s, rounds, _ROUND_S, apart_s, send)


def _answer(child: Child, timeout_s: float) -> float | None:
    """The share that a child has lost of its time."""
    from opskit.proc.kernel.children import answer_of

    try:
        said = answer_of(child, timeout_s)
    except OSError:
        return None
    return said["lost_ns"] / said["ran_ns"] if said["ran_ns"] >= _LEAST_NS else None


def with_loss(use: CpuUse, share: float) -> CpuUse:
    """The CPU with a measured softirq share; what is left of its time is divided as the ticks say."""
    if use.steal >= _STEALS:
        share = min(share, use.softirq)
    others = 1 - use.softirq
    if others <= 0:
        return use._replace(softirq=share, user=1 - share)
    factor = (1 - share) / others
    user, system, irq, steal, idle = (each * factor for each in (use.user, use.system, use.irq, use.steal, use.idle))
    return use._replace(user=user, system=system, irq=irq, softirq=share, steal=steal, idle=idle)
