"""Trees of machines for `opskit irqs`, in the kernel's formats: two readings of their counters, and what does not change between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trees import Link

from opskit.host import Host
from opskit.proc.cpu_masks import cpu_mask
from opskit.proc.fs import ProcFS
from opskit.quantities import number_ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

SECONDS, HZ = 2.0, 100
KINDS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
OLD_FIELDS, NEW_FIELDS = 9, 15  # of softnet_stat: before Linux 2.6.35, since 6.0
_CPUS = "sys/devices/system/cpu"
_WRAPS = (1 << 32) - 1000  # where the interrupts begin: they wrap in the window


class Machine:
    """A machine. Rates are a second; shares are (user, system, irq, softirq) of the CPUs that do not idle."""

    def __init__(self, online: Collection[int], possible: Collection[int] = (), release: str = "6.12.9") -> None:
        self.online, self.possible = sorted(online), sorted(possible or online)
        self.shares: dict[int, tuple[float, float, float, float]] = {}
        self.interrupts: dict[str, tuple[dict[int, int], str]] = {}
        self.softirqs: dict[str, dict[int, int]] = {}
        self.softnet: dict[int, tuple[int, int, int, int]] = {}  # packets, drops, squeezes, steered
        self.packets: dict[str, int] = {"lo": 0}
        self.running: dict[int, float] = {}
        self.fields = NEW_FIELDS
        self.net = "proc/thread-self/net"  # since Linux 3.17
        self.read_only: list[str] = []  # files that nobody may write
        self.still: dict[str, str | bytes | Link] = {
            f"{_CPUS}/online": number_ranges(self.online) + "\n",
            f"{_CPUS}/isolated": "\n",
            f"{_CPUS}/nohz_full": "(null)\n",
            "proc/sys/kernel/osrelease": f"{release}\n",
            "proc/sys/net/core/netdev_max_backlog": "1000\n",
            "proc/irq/default_smp_affinity": cpu_mask(self.possible) + "\n",
        }
        self.process(1, "init", number_ranges(self.online))

    def place(self, nodes: Mapping[int, Iterable[int]], siblings: int) -> None:
        """NUMA nodes, a package each; a core's second thread has a number that is so much higher."""
        for node, cpus in nodes.items():
            listed = number_ranges(cpus)
            self.still[f"sys/devices/system/node/node{node}/cpulist"] = f"{listed}\n"
            for cpu in cpus:
                base = f"{_CPUS}/cpu{cpu}/topology"
                self.still[f"{base}/core_siblings_list"] = f"{listed}\n"
                self.still[f"{base}/thread_siblings_list"] = f"{cpu % siblings},{cpu % siblings + siblings}\n"
                self.still[f"{base}/physical_package_id"] = f"{node}\n"

    def isolate(self, cpus: str) -> None:
        """As isolcpus=CPUS nohz_full=CPUS on the kernel's command line does."""
        self.still[f"{_CPUS}/isolated"] = self.still[f"{_CPUS}/nohz_full"] = f"{cpus}\n"

    def interrupt(
        self, number: int, chip: str, device: str, rates: dict[int, int], allowed: Collection[int] = (), *,
        node: int | None = None, managed: bool = False,
    ) -> None:  # fmt: skip
        """A device's interrupt; it goes where it comes now."""
        self.interrupts[str(number)] = rates, f"{chip}      {device}"
        base = f"proc/irq/{number}"
        self.still[f"{base}/smp_affinity"] = cpu_mask(allowed or self.online) + "\n"
        self.still[f"{base}/smp_affinity_list"] = number_ranges(allowed or self.online) + "\n"
        self.still[f"{base}/effective_affinity_list"] = number_ranges(rates) + "\n"
        self.still[f"{base}/node"] = f"{-1 if node is None else node}\n"
        if managed:
            self.read_only.append(f"{base}/smp_affinity")

    def interface(
        self, name: str, driver: str, packets: int, queues: Iterable[str], irqs: Iterable[int] = (), *, node: int = -1
    ) -> None:
        """A PCI network card. `queues`: the rps_cpus of each receive queue."""
        pci = "devices/pci0000:80/0000:80:01.0/0000:81:00.0"
        place = f"sys/{pci}/net/{name}"
        self.packets[name] = packets
        self.still[f"sys/class/net/{name}"] = Link(f"../../{pci}/net/{name}")
        self.still[f"{place}/device"] = Link("../..")
        self.still[f"sys/{pci}/driver"] = Link(f"../../../../bus/pci/drivers/{driver}")
        self.still[f"sys/{pci}/numa_node"] = f"{node}\n"
        self.still.update((f"sys/{pci}/msi_irqs/{irq}", "msix\n") for irq in irqs)
        for at, mask in enumerate(queues):
            self.still[f"{place}/queues/rx-{at}/rps_cpus"] = f"{mask}\n"
            self.still[f"{place}/queues/rx-{at}/rps_flow_cnt"] = "0\n"
            self.still[f"{place}/queues/tx-{at}/xps_cpus"] = "0\n"

    def process(
        self, pid: int, name: str, allowed: str, running: float = 0.0, words: Iterable[str] = (), *,
        uid: int = 0, **environ: str,
    ) -> None:  # fmt: skip
        """A process of one thread, which may use these CPUs."""
        stat = f"{pid} ({name}) R 1 {pid} {pid} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {8000 + pid} 0 0 0\n"
        status = f"Name:\t{name}\nState:\tR (running)\nPid:\t{pid}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nThreads:\t1\nCpus_allowed_list:\t{allowed}\n"
        for base in (f"proc/{pid}", f"proc/{pid}/task/{pid}"):
            self.still.update({f"{base}/stat": stat, f"{base}/status": status, f"{base}/comm": f"{name}\n"})
        self.still[f"proc/{pid}/cmdline"] = "".join(f"{word}\0" for word in words or [name])
        self.still[f"proc/{pid}/environ"] = "".join(f"{key}={value}\0" for key, value in environ.items())
        self.running[pid] = running

    def host(self, tree: Callable[[Mapping[str, object]], Path]) -> Host:
        """The machine: its counters grow while opskit sleeps."""
        root = tree({**self.still, **self._counters(0)})
        for name in self.read_only:
            (root / name).chmod(0o444)
        host, seconds = Host(ProcFS(str(root / "proc"), str(root))), [0.0]

        def sleep(_: float) -> None:
            seconds[0] += SECONDS
            tree(self._counters(seconds[0]))

        host.monotonic, host.sleep = (lambda: 1000.0 + seconds[0]), sleep
        return host

    def _counters(self, seconds: float) -> dict[str, str]:
        ran = {
            f"proc/{pid}/task/{pid}/schedstat": f"{5_000_000 + round(share * seconds * 1e9)} 7000 12\n"
            for pid, share in self.running.items()
        }
        return {
            "proc/stat": "".join(self._times(cpu, seconds) for cpu in self.online) + "ctxt 5\n",
            "proc/interrupts": self._interrupts(seconds),
            "proc/softirqs": self._softirqs(seconds),
            f"{self.net}/softnet_stat": "".join(self._softnet(cpu, seconds) for cpu in self.online),
            f"{self.net}/dev": "Inter-|   Receive\n face |bytes\n"
            + "".join(
                f"{name:>6}: 1 {round(rate * seconds)} 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
                for name, rate in self.packets.items()
            ),
            **ran,
        }

    def _times(self, cpu: int, seconds: float) -> str:
        user, system, irq, softirq = self.shares.get(cpu, (0.01, 0.0, 0.0, 0.0))
        idle = 1 - user - system - irq - softirq
        ticks = [5000 + round(share * seconds * HZ) for share in (user, 0, system, idle, 0, irq, softirq)]
        return f"cpu{cpu} {' '.join(map(str, ticks))} 0 0 0\n"

    def _interrupts(self, seconds: float) -> str:
        lines = [" " * 11 + " ".join(f"CPU{cpu:<7}" for cpu in self.online)]
        for name, (rates, text) in self.interrupts.items():
            counts = (_WRAPS + round(rates.get(cpu, 0) * seconds) & 0xFFFFFFFF for cpu in self.online)
            lines.append(f"{name:>4}: {' '.join(f'{number:>10}' for number in counts)}  {text}")
        return "\n".join([*lines, " ERR:          0", ""])

    def _softirqs(self, seconds: float) -> str:
        lines = [" " * 20 + " ".join(f"CPU{cpu:<7}" for cpu in self.possible)]
        for kind in KINDS:
            rates = self.softirqs.get(kind, {})
            counts = (40 + round(rates.get(cpu, 0) * seconds) for cpu in self.possible)
            lines.append(f"{kind:>12}: {' '.join(f'{number:>10}' for number in counts)}")
        return "\n".join([*lines, ""])

    def _softnet(self, cpu: int, seconds: float) -> str:
        packets, dropped, squeezed, steered = (round(rate * seconds) for rate in self.softnet.get(cpu, (0, 0, 0, 0)))
        words = [packets, dropped, squeezed, 0, 0, 0, 0, 0, 0, steered, 0, 0, cpu, 0, 0]
        return " ".join(f"{word:08x}" for word in words[: self.fields]) + "\n"
