"""Queues of network interfaces and the CPUs that they are steered to (Documentation/networking/scaling.rst).

/sys/class/net/eth0/queues/rx-0/rps_cpus       00000000,0000000f    RPS: the CPUs that process what it receives; 0: off
/sys/class/net/eth0/queues/rx-0/rps_flow_cnt   4096                 RFS
/sys/class/net/eth0/queues/tx-0/xps_cpus       00000000,00000001    XPS: the CPUs that send through it
/sys/class/net/eth0 -> ../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0
/sys/class/net/eth0/device/msi_irqs/85         of a PCI device; a virtio device is below one

sysfs shows the network namespace that it was mounted in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cpu_masks import parse_cpu_mask
from opskit.proc.fs import ids, optional
from opskit.quantities import integer, signed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.fs import ProcFS

SYSFS = ("sys",)
_MOST_QUEUES = 1024
_DEVICES = (("device",), ("device", ".."))  # PCI, or virtio below it
_NOBODY: frozenset[int] = frozenset()


class NetQueue(NamedTuple):
    """A queue: `rx` or `tx`, its number, the CPUs of RPS or XPS (empty: off), and the flows of RFS."""

    kind: str
    number: int
    cpus: frozenset[int]
    flows: int | None = None


class NetDevice(NamedTuple):
    """What an interface is made of. `irqs`: of its device; empty for a virtual one, and where that is unknown."""

    queues: tuple[NetQueue, ...]
    driver: str | None
    node: int | None
    irqs: frozenset[int]


def network_links(fs: ProcFS, sysfs: tuple[str, ...] = SYSFS) -> Mapping[str, str]:
    """Where the device of each interface of a sysfs is; empty where that cannot be listed."""
    empty: dict[str, str] = {}
    return optional(fs.root_links, *sysfs, "class", "net", default=empty)


def is_virtual(link: str) -> bool:
    """Whether an interface has no device (veth, bridge, loopback), by its link."""
    return "/devices/virtual/" in link


def read_queues(fs: ProcFS, name: str, sysfs: tuple[str, ...] = SYSFS) -> tuple[NetQueue, ...]:
    """The queues of an interface by kind and number."""
    base = (*sysfs, "class", "net", name, "queues")
    found = []
    for each in fs.names_root(*base)[:_MOST_QUEUES]:
        kind, _, digits = each.partition("-")
        number = integer(digits)
        if number is None or kind not in ("rx", "tx"):
            continue
        cpus = fs.maybe_root(parse_cpu_mask, *base, each, "rps_cpus" if kind == "rx" else "xps_cpus")
        flows = fs.maybe_root(_number, *base, each, "rps_flow_cnt") if kind == "rx" else None
        found.append(NetQueue(kind, number, cpus or _NOBODY, flows))
    return tuple(sorted(found))


def read_device(fs: ProcFS, name: str, sysfs: tuple[str, ...] = SYSFS) -> NetDevice:
    """An interface with its queues and its device."""
    base = (*sysfs, "class", "net", name)
    node = None
    irqs: list[int] = []
    for below in _DEVICES:
        if not irqs:
            irqs = ids(fs.names_root(*base, *below, "msi_irqs"))
        if node is None:
            node = fs.maybe_root(_signed, *base, *below, "numa_node")
    links: Mapping[str, str] = optional(fs.root_links, *base, "device", default={})
    driver = links.get("driver", "").rpartition("/")[2] or None
    return NetDevice(read_queues(fs, name, sysfs), driver, None if node is None or node < 0 else node, frozenset(irqs))


def _number(text: str) -> int | None:
    return integer(text.strip())


def _signed(text: str) -> int | None:
    return signed(text.strip())
