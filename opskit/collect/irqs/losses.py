"""Measure what interrupts take of the CPUs on which clock ticks have found many softirqs: for at most a tenth of a second each.

Softirqs that a CPU has no time for otherwise run in its thread ksoftirqd/N, beside which other threads wait.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from opskit.interrupts import Guard, Interruptible
from opskit.proc.files.schedstat import parse_schedstat

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opskit.collect.irqs.facts import Cpu
    from opskit.host import Host
    from opskit.proc.kernel.children import Child, Send

LEAST_SOFTIRQ, MOST_CPUS = 0.06, 4
_ROUNDS, _ROUND_S, _LATE_S = 10, 0.01, 0.3
_USED = 0.9  # of the time that there is: a busy CPU comes late to the last round
_SPINS = 0.5  # of that time, at most
_STEALS = 0.02  # of a CPU: the hypervisor's part, which a thread may see as a loss too
_LEAST_NS = 5_000_000  # on the CPU: from less, nothing follows


def measure_losses(
    host: Host, cpus: Collection[int], until_s: float, softirq_threads: Mapping[int, int]
) -> dict[int, float]:
    """The share of each CPU's time that interrupts and softirqs take, until that time. `softirq_threads`: PIDs of ksoftirqd by CPU.

    A CPU is left out where opskit may not run, or gets no time: threads of a real-time class may keep it.
    """
    from opskit.errors import NotSupported
    from opskit.proc.kernel.children import start_child

    begun_s = host.monotonic()
    usable_s = (until_s - begun_s) * _USED
    rounds = max(1, min(_ROUNDS, int(usable_s * _SPINS / _ROUND_S)))
    before = _thread_times(host, cpus, softirq_threads)
    children: dict[Child, int] = {}
    with Guard():
        try:
            for cpu in cpus:
                children[start_child(partial(_on_cpu, cpu, rounds, usable_s / rounds))] = cpu
            with Interruptible():
                host.sleep(max(0.0, until_s - host.monotonic()))
                after = _thread_times(host, cpus, softirq_threads)
                elapsed_ms = (host.monotonic() - begun_s) * 1000
                answers = {cpu: _answer(child) for child, cpu in children.items()}
        except NotSupported:  # no process can be started
            return {}
        finally:
            for child in children:
                child.end()
    found = {}
    for cpu, lost in answers.items():
        if lost is not None:
            in_thread = min(max((after.get(cpu, 0.0) - before.get(cpu, 0.0)) / elapsed_ms, 0.0), 1.0)
            found[cpu] = in_thread + (1 - in_thread) * lost
    return found


def _thread_times(host: Host, cpus: Collection[int], softirq_threads: Mapping[int, int]) -> dict[int, float]:
    """The ms that ksoftirqd of each CPU has run."""
    known = {cpu: softirq_threads[cpu] for cpu in cpus if cpu in softirq_threads}
    times = {cpu: host.fs.maybe(parse_schedstat, pid, "schedstat") for cpu, pid in known.items()}
    return {cpu: time.cpu_ms for cpu, time in times.items() if time is not None}


def _on_cpu(cpu: int, rounds: int, apart_s: float, send: Send) -> None:
    from opskit.proc.kernel.children import pin
    from opskit.proc.kernel.lost_time import measure

    pin({cpu})
    measure(rounds, _ROUND_S, apart_s, send)


def _answer(child: Child) -> float | None:
    """The share that a child has lost of its time."""
    from opskit.proc.kernel.children import answer_of

    try:
        said = answer_of(child, _LATE_S)
    except OSError:
        return None
    return said["lost_ns"] / said["ran_ns"] if said["ran_ns"] >= _LEAST_NS else None


def with_loss(cpu: Cpu, share: float | None) -> Cpu:
    """The CPU with a measured softirq share; what is left of its time is divided as the ticks say."""
    if share is None:
        return cpu
    use = cpu.use
    if use.steal >= _STEALS:
        share = min(share, use.softirq)
    others = 1 - use.softirq
    if others <= 0:
        return cpu._replace(use=use._replace(softirq=share, user=1 - share), is_measured=True)
    factor = (1 - share) / others
    shares = (use.user, use.system, use.irq, use.steal, use.idle)
    user, system, irq, steal, idle = (each * factor for each in shares)
    return cpu._replace(
        use=use._replace(user=user, system=system, irq=irq, softirq=share, steal=steal, idle=idle), is_measured=True
    )
