"""What tests/support/fuzz.py feeds to the parsers of `opskit irqs`."""

from __future__ import annotations

from opskit.collect.irqs.jitter import parse_cpus
from opskit.proc.cpu_masks import parse_cpu_mask
from opskit.proc.files.interrupts import parse_interrupts
from opskit.proc.files.net_dev import parse_net_dev
from opskit.proc.files.softirqs import parse_softirqs, softirqs_since
from opskit.proc.files.softnet_stat import parse_softnet_stat

INTERRUPTS = (
    b"           CPU0       CPU2\n 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n"
    b" 85:   30482124         19  PCI-MSI 1048576-edge      eth0-rx-0, eth0-tx-0\nLOC:  30121272   30113403   Local timer interrupts\nERR:          0\n"
)


def grown(text: str) -> object:
    """Since boot, with the devices."""
    found = parse_interrupts(text)
    none = found._replace(lines=dict.fromkeys(found.lines, "0 " * len(found.cpus)))
    return found.since(none), [found.devices(name) for name in found.lines]


def softirqs(text: str) -> object:
    """Since boot."""
    found = parse_softirqs(text)
    return softirqs_since(found, found)


TEXT = {
    "proc interrupts": (grown, INTERRUPTS),
    "proc softirqs": (softirqs, b"    CPU0       CPU1\n  HI:     0     2\nNET_RX:   98870372  100384062\n"),
    "proc softnet_stat": (
        lambda text: parse_softnet_stat(text, [0, 1]),
        b"08327861 00000000 00000025 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 0 0\n",
    ),
    "proc net dev": (parse_net_dev, b"Inter-|\n face |\n    lo: 2178 22 0 0 0 0 0 0 217 22 0 0 0 0 0 0\n"),
    "cpu mask": (parse_cpu_mask, b"000000ff,ffffffff\n"),
    "option jitter": (parse_cpus, b"0-3,8"),
}
