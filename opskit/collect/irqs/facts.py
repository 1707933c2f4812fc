"""What is read of interrupts. None: unknown. Rates are a second, over the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.collect.cpu_use import CpuUse
    from opskit.proc.process import Process


TIMERS = ("arch_timer", "riscv-timer", "kvm guest vtimer")  # of a CPU, with a number like a device's


class Cpu(NamedTuple):
    """One CPU. `softirqs`: rates by name (NET_RX, TIMER, …). `interrupts`: of devices. `ipis`: rescheduling and function calls.

    `drops`: packets dropped since its backlog was full. `squeezes`: how often it ran out of budget with packets left. `steered`: how
    often another CPU woke it for packets that RPS or RFS gave it (each time one NET_RX, for any number of packets). `siblings`, `node`: where it is.
    """

    use: CpuUse
    softirqs: dict[str, float]
    interrupts: float
    ipis: float
    local_timer: float = 0.0
    processed: float | None = None
    drops: float | None = None
    squeezes: float | None = None
    steered: float | None = None
    node: int | None = None
    siblings: frozenset[int] = frozenset()
    is_measured: bool = False  # `use.softirq` is what a thread there lost to interrupts, not what ticks found


class Interrupt(NamedTuple):
    """A line of /proc/interrupts. `number`: of a device; None for the architecture's own (`name` LOC, RES, …). `devices`: as the kernel names them.

    `by_cpu`: rates. `affinity`: what is allowed, `effective`: the CPUs that get it. `interface`: the network interface it belongs to. `node`: of
    the device. `managed`: the kernel spreads it, and its affinity cannot be set (None: unknown).
    """

    number: int | None
    name: str
    devices: str
    by_cpu: dict[int, float]
    affinity: frozenset[int] = frozenset()
    effective: frozenset[int] = frozenset()
    interface: str | None = None
    node: int | None = None
    managed: bool | None = None

    @property
    def rate(self) -> float:
        """On all CPUs."""
        return sum(self.by_cpu.values())

    @property
    def is_of_device(self) -> bool:
        """Whether a device raises it, not a CPU or its timer."""
        return self.number is not None and self.devices not in TIMERS

    @property
    def label(self) -> str:
        """`irq 85 (eth0-rx-0)`; of the architecture's own its name."""
        if self.number is None:
            return self.name
        return f"irq {self.number} ({self.devices})" if self.devices else f"irq {self.number}"


class Queue(NamedTuple):
    """A receive (`rx`) or send (`tx`) queue of an interface, and the CPUs that RPS (rps_cpus) or XPS (xps_cpus) gives it; empty: off."""

    kind: str
    number: int
    cpus: frozenset[int]
    flows: int | None = None  # rps_flow_cnt: RFS


class Space(NamedTuple):
    """A network namespace that is not ours: its name of `ip netns`, or without one a process in it."""

    name: str | None
    pid: int | None = None

    @property
    def label(self) -> str:
        """`network namespace web`, `network namespace of 4242`."""
        return f"network namespace {self.name if self.name is not None else f'of {self.pid}'}"


class Interface(NamedTuple):
    """A network interface. `packets`: received a second. `node`: of its device. `space` None: it is in our network namespace.

    Other namespaces are read where a CPU processes packets that RPS steers to it, and only their interfaces with such queues are listed.
    """

    name: str
    packets: float
    queues: tuple[Queue, ...]
    driver: str | None = None
    node: int | None = None
    is_virtual: bool = False
    dropped: float = 0.0
    space: Space | None = None


class Pinned(NamedTuple):
    """A thread that may not run on all CPUs, and how much of one CPU it used in the window (0 to 1), which includes interrupts.

    `cpuset`: what it could be allowed; as small as `allowed` where its cpuset cgroup confines it. `is_idle_class`: it only takes what
    others leave (SCHED_IDLE, or nice 19).
    """

    process: Process
    tid: int
    name: str
    allowed: frozenset[int]
    running: float
    lost: float | None = None  # waiting for a CPU
    cpuset: frozenset[int] = frozenset()
    is_idle_class: bool = False


class Balancer(NamedTuple):
    """irqbalance. `banned`: CPUs that it leaves alone (None: its environment cannot be read), `banned_irqs`: interrupts, by --banirq.

    `one_shot`: it does not move them later. `ignores_isolation`: IRQBALANCE_BANNED_CPUS or …_CPULIST is set, so it does not look at isolcpus
    and nohz_full.
    """

    pid: int
    banned: frozenset[int] | None = frozenset()
    one_shot: bool = False
    banned_irqs: frozenset[int] = frozenset()
    ignores_isolation: bool = False


class Facts(NamedTuple):
    """One window of `window_s`. `isolated`: isolcpus and isolated partitions. `tickless`: nohz_full. `accounts_irqs`: irq and softirq time is measured, not sampled by ticks."""

    window_s: float
    cpus: tuple[Cpu, ...]
    interrupts: tuple[Interrupt, ...]
    interfaces: tuple[Interface, ...]
    pinned: tuple[Pinned, ...]
    balancer: Balancer | None
    isolated: frozenset[int] = frozenset()
    tickless: frozenset[int] = frozenset()
    accounts_irqs: bool | None = None
    missing: tuple[str, ...] = ()
    default_affinity: frozenset[int] = frozenset()
    max_backlog: int | None = None  # net.core.netdev_max_backlog: packets that a CPU's backlog holds
