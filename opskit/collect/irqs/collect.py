"""Read what interrupts do to each CPU over a window: two readings of the kernel's counters, the affinities, who is pinned where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from opskit.collect.cpu_use import cpu_use
from opskit.collect.irqs.facts import TIMERS, Balancer, Cpu, Facts, Interrupt
from opskit.collect.irqs.interfaces import other_interfaces, our_interfaces
from opskit.collect.irqs.pinned import ThreadScan
from opskit.collect.schedule import window_end_s
from opskit.collect.softirq_losses import accounts_irqs, measuring_losses, recorded_losses, with_loss, worth_measuring
from opskit.proc.cpu_masks import parse_cpu_mask
from opskit.proc.cpu_topology import read_topology
from opskit.proc.files.cpu_times import parse_cpu_times
from opskit.proc.files.interrupts import number_of, parse_interrupts
from opskit.proc.files.net_dev import parse_net_dev
from opskit.proc.files.softirqs import parse_softirqs, softirqs_since
from opskit.proc.files.softnet_stat import parse_softnet_stat
from opskit.proc.irq_affinity import IrqAffinity, read_affinity
from opskit.proc.irqbalance import read_irqbalance
from opskit.proc.release import kernel_release
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.collect.cpu_use import CpuUse
    from opskit.collect.irqs.facts import Pinned
    from opskit.collect.irqs.interfaces import OurInterface
    from opskit.host import Host
    from opskit.proc.cpu_topology import Topology
    from opskit.proc.files.cpu_times import CpuTime
    from opskit.proc.files.interrupts import Interrupts
    from opskit.proc.files.net_dev import NetDev
    from opskit.proc.files.softnet_stat import SoftnetCpu

_NET = ("thread-self/net", "self/net")  # since Linux 3.17, and before it; `net` alone is that of the main thread
_RESERVED, _REST = (
    0.02,
    1.25,
)  # what a watch keeps free behind its window: at first of the interval, then of the last look
_MOST_AFFINITIES = 128
_DECIDES = 0.25  # of the window, after which it is known where many softirqs are
_LEAST_STEERED, _LEAST_SOFTIRQ = 20.0, 0.03  # a second; of the CPU's time: less is not worth a look at other namespaces
_IPIS = ("Rescheduling interrupts", "Function call interrupts")


class _Reading(NamedTuple):
    """The counters of one moment, and the threads since then."""

    at_s: float
    topology: Topology
    times: Mapping[int, CpuTime]
    interrupts: Interrupts | None
    softirqs: dict[str, dict[int, int]]
    softnet: Mapping[int, SoftnetCpu]
    devices: Mapping[str, NetDev]


class Threads(Protocol):
    """The threads that may not use all CPUs, over a window."""

    balancers: list[int]

    def end(self, elapsed_s: float, online: frozenset[int], /) -> tuple[Pinned, ...]:
        """Those that ran, the busiest first."""


class Collector:
    """Looks once, or again and again for a watch: then each window begins where the last one ended."""

    enters_namespaces = True  # to see which interfaces there steer packets to a CPU

    def __init__(self, host: Host, window_s: float, watch: bool = False) -> None:
        """Check the tree. Raises NotSupported for a copy, which has no rates."""
        host.prove_moving("opskit irqs")
        self._host, self._window_s, self._watches = host, window_s, watch
        self._release = kernel_release(host.fs)
        self._net = next((place for place in _NET if host.fs.maybe(str, place, "dev") is not None), _NET[0])
        self._begun_s = host.monotonic()
        self._after_s = _RESERVED * window_s
        self._kept: tuple[_Reading, ThreadScan] | None = None

    def look(self) -> Facts:
        """Read one window. Raises NotSupported where the CPUs are unknown."""
        begun_s = self._host.monotonic()
        first, threads = self._kept or self._begin()
        end_s = first.at_s + self._window_s
        if self._watches:
            end_s = window_end_s(self._begun_s, begun_s, self._window_s, self._after_s)
        end_s = self._host.end_at(end_s)
        losses = self._losses(first, end_s)
        last = self._read()
        facts = self._facts(first, last, threads, losses)
        if self._watches:
            self._kept = last, self._scan(last)
        self._after_s = _REST * (self._host.monotonic() - last.at_s)
        return facts

    def _begin(self) -> tuple[_Reading, ThreadScan]:
        """The threads first: looking at thousands of them takes a part of the window."""
        threads = ThreadScan(self._host, usual_cpus(read_topology(self._host.fs)))
        return self._read(), threads

    def _scan(self, reading: _Reading) -> ThreadScan:
        return ThreadScan(self._host, usual_cpus(reading.topology))

    def _read(self) -> _Reading:
        fs = self._host.fs
        topology = read_topology(fs)
        return _Reading(
            self._host.monotonic(),
            topology,
            fs.maybe(parse_cpu_times, "stat", default={}),
            fs.maybe(parse_interrupts, "interrupts"),
            fs.maybe(parse_softirqs, "softirqs", default={}),
            fs.maybe(lambda text: parse_softnet_stat(text, topology.online), self._net, "softnet_stat", default={}),
            fs.maybe(parse_net_dev, self._net, "dev", default={}),
        )

    def _losses(self, first: _Reading, end_s: float) -> Mapping[int, float]:
        """Wait for the window. In its last part, measure the CPUs with most softirqs where the kernel only samples their time."""
        host, hot = self._host, []
        left_alone = first.topology.isolated | first.topology.tickless
        if host.is_recorded:
            host.sleep(max(0.0, end_s - host.monotonic()))
            return recorded_losses(host, first.times, left_alone)
        if host.is_own and accounts_irqs(first.times) is False:
            host.sleep(max(0.0, (end_s - host.monotonic()) * _DECIDES))
            now = host.fs.maybe(parse_cpu_times, "stat", default={})
            hot = worth_measuring(first.times, now, left_alone)
        with measuring_losses(host, hot, end_s) as losses:
            host.sleep(max(0.0, end_s - host.monotonic()))
            return losses()

    def _facts(self, first: _Reading, last: _Reading, threads: Threads, losses: Mapping[int, float]) -> Facts:
        host, topology = self._host, last.topology
        elapsed_s = max(last.at_s - first.at_s, 1e-6)
        ours = our_interfaces(host.fs, first.devices, last.devices, elapsed_s)
        interrupts = self._interrupts(first, last, elapsed_s, ours)
        cpus = tuple(_measured(cpu, losses.get(cpu.use.cpu)) for cpu in _cpus(first, last, elapsed_s, interrupts))
        interfaces = tuple(each.interface for each in ours)
        steered = _steered_from_elsewhere(cpus, ours)
        others, missing = other_interfaces(host, steered) if steered and self.enters_namespaces else ((), ())
        left_alone = topology.isolated | topology.tickless
        usual = host.fs.maybe(parse_cpu_mask, "irq", "default_smp_affinity")
        balancers = [read_irqbalance(host.fs, pid, left_alone) for pid in threads.balancers]
        return Facts(
            elapsed_s,
            cpus,
            interrupts,
            (*interfaces, *others),
            threads.end(elapsed_s, frozenset(topology.online)),
            Balancer(*balancers[0]) if balancers else None,
            topology.isolated,
            topology.tickless,
            accounts_irqs(last.times),
            (*_unread(last), *missing),
            usual or frozenset(),
            host.sysctl("net", "core", "netdev_max_backlog"),
        )

    def _interrupts(
        self, first: _Reading, last: _Reading, elapsed_s: float, interfaces: Sequence[OurInterface]
    ) -> tuple[Interrupt, ...]:
        """Those that came in the window, the most frequent first; the affinities of the most frequent ones."""
        if first.interrupts is None or last.interrupts is None:
            return ()
        grown = last.interrupts.since(first.interrupts)
        found = []
        for at, name in enumerate(sorted(grown, key=lambda name: -sum(grown[name].values()))):
            number = number_of(name)
            rates = {cpu: count / elapsed_s for cpu, count in grown[name].items()}
            devices = last.interrupts.text(name).strip() if number is None else last.interrupts.devices(name)
            affinity = IrqAffinity()
            if number is not None and at < _MOST_AFFINITIES:
                affinity = read_affinity(self._host.fs, number, self._release)
            interface = None if number is None else _interface_of(number, devices, interfaces)
            found.append(
                Interrupt(
                    number, name, devices, rates, affinity.allowed, affinity.effective, interface, affinity.node,
                    affinity.managed,
                )
            )  # fmt: skip
        return tuple(found)


def _measured(cpu: Cpu, share: float | None) -> Cpu:
    return cpu if share is None else cpu._replace(use=with_loss(cpu.use, share), is_measured=True)


def usual_cpus(topology: Topology) -> frozenset[int]:
    """The CPUs of a thread that nobody has pinned: the scheduler leaves alone those that are isolated."""
    online = frozenset(topology.online)
    return online - topology.isolated or online


def _unread(reading: _Reading) -> list[str]:
    """What the machine does not show."""
    pairs = (
        (reading.times, "/proc/stat", "what takes the time of the CPUs is unknown"),
        (reading.interrupts, "/proc/interrupts", "interrupts are unknown"),
        (reading.softirqs, "/proc/softirqs", "the kinds of softirqs are unknown"),
        (reading.softnet, "/proc/net/softnet_stat", "packets and drops of each CPU are unknown"),
    )
    return [f"{path} cannot be read: {what}" for found, path, what in pairs if not found]


def _cpus(first: _Reading, last: _Reading, elapsed_s: float, interrupts: Sequence[Interrupt]) -> tuple[Cpu, ...]:
    softirqs = softirqs_since(first.softirqs, last.softirqs)
    sums = {kind: _sums(interrupts, kind) for kind in ("device", "ipi", "timer")}
    return tuple(
        _cpu(use, {kind: count / elapsed_s for kind, count in softirqs.get(use.cpu, {}).items()}, sums, first, last)
        for use in cpu_use(first.times, last.times)
    )


def _cpu(
    use: CpuUse, softirqs: dict[str, float], sums: Mapping[str, Mapping[int, float]], first: _Reading, last: _Reading
) -> Cpu:
    number, elapsed_s, place = use.cpu, last.at_s - first.at_s, last.topology.place(use.cpu)
    then, now = first.softnet.get(number), last.softnet.get(number)
    added = now.since(then) if now is not None and then is not None else None
    steered = None if added is None or added.steered is None else added.steered / elapsed_s
    return Cpu(
        use,
        softirqs,
        sums["device"].get(number, 0.0),
        sums["ipi"].get(number, 0.0),
        sums["timer"].get(number, 0.0),
        added and added.processed / elapsed_s,
        added and added.dropped / elapsed_s,
        added and added.squeezed / elapsed_s,
        steered,
        place.node,
        place.siblings,
    )


def _kind(interrupt: Interrupt) -> str:
    """`device`, `ipi`, `timer`, or empty for the architecture's other ones."""
    if interrupt.name == "LOC" or interrupt.devices in TIMERS:
        return "timer"
    if interrupt.number is None:
        return "ipi" if interrupt.name in ("RES", "CAL") or interrupt.devices in _IPIS else ""
    return "device"


def _sums(interrupts: Sequence[Interrupt], kind: str) -> dict[int, float]:
    """The rates of all interrupts of a kind by CPU."""
    sums: dict[int, float] = {}
    for interrupt in interrupts:
        if _kind(interrupt) == kind:
            for cpu, rate in interrupt.by_cpu.items():
                sums[cpu] = sums.get(cpu, 0.0) + rate
    return sums


def _interface_of(number: int, devices: str, interfaces: Sequence[OurInterface]) -> str | None:
    """The interface that an interrupt belongs to: by its device, or by a driver's name such as `eth0-rx-0`."""
    for each in interfaces:
        if number in each.irqs:
            return each.interface.name
    names = {name.strip() for name in devices.split(",")}
    for each in interfaces:
        wanted = each.interface.name
        if not each.interface.is_virtual and any(name == wanted or name.startswith(f"{wanted}-") for name in names):
            return wanted
    return None


def _steered_from_elsewhere(cpus: Sequence[Cpu], interfaces: Sequence[OurInterface]) -> frozenset[int]:
    """The CPUs that get packets by RPS, which none of our interfaces that receive any is set to give them."""
    explained: set[int] = set()
    for each in interfaces:
        if each.interface.packets:
            explained.update(*(queue.cpus for queue in each.interface.queues if queue.kind == "rx"))
    return frozenset(
        cpu.use.cpu
        for cpu in cpus
        if (cpu.steered or 0) >= _LEAST_STEERED and cpu.use.softirq >= _LEAST_SOFTIRQ and cpu.use.cpu not in explained
    )
