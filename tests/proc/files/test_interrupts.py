"""Interrupts by CPU: x86 and arm64, offline CPUs, devices' names, counters that wrap."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.interrupts import number_of, parse_interrupts

X86 = """\
           CPU0       CPU2
   0:        171          0   IO-APIC-edge      timer
  23:          0         21   IO-APIC-fasteoi   ehci_hcd:usb1, ehci_hcd:usb2
  27:          4          0   IO-APIC-edge
  85:         14 4294967290   PCI-MSI-edge      p7p1-rx-0
 216:          9          1  PCI-MSIX-0000:00:03.0    1-edge      virtio1-input.0
 LOC:     418851     409978   Local timer interrupts
 RES:    1069726      92676   Rescheduling interrupts
 ERR:          0
"""
ARM64 = """\
           CPU0       CPU1       CPU2       CPU3
 11:    2066214    1932321    1812002    1755001     GICv3  27 Level     arch_timer
 44:       1200          0          0          0       MSI 524288 Edge      eth0-TxRx-0
IPI0:     23412      30011      18999      17000       Rescheduling interrupts
Err:          0
"""


def test_the_numbers_devices_and_cpus():
    """A CPU that is offline has no column; a line without a driver has no device."""
    found = parse_interrupts(X86)
    assert found.cpus == (0, 2)
    assert found.counts("85") == [14, 4294967290]
    assert [found.devices(name) for name in ("0", "23", "27", "85", "216")] == [
        "timer", "ehci_hcd:usb1, ehci_hcd:usb2", "", "p7p1-rx-0", "virtio1-input.0",
    ]  # fmt: skip
    assert found.text("RES").strip() == "Rescheduling interrupts"
    assert found.counts("ERR") is None
    assert (number_of("85"), number_of("LOC"), number_of("IPI0")) == (85, None, None)


def test_arm64_has_numbers_for_its_timer_and_names_for_ipis():
    """The trigger is a word of its own."""
    found = parse_interrupts(ARM64)
    assert (found.devices("11"), found.devices("44")) == ("arch_timer", "eth0-TxRx-0")
    assert found.counts("IPI0") == [23412, 30011, 18999, 17000]


def test_what_has_been_added():
    """Lines that moved, CPUs where they did; a counter of 32 bits wraps; a CPU that came meanwhile is left out."""
    later = X86.replace("4294967290", "         4").replace("1069726", "1069730").replace("418851 ", "418851 ")
    assert parse_interrupts(later).since(parse_interrupts(X86)) == {"85": {2: 10}, "RES": {0: 4}}
    more = parse_interrupts(later.replace("CPU2", "CPU3"))
    assert more.since(parse_interrupts(X86)) == {"RES": {0: 4}}
    assert parse_interrupts(X86).since(parse_interrupts(X86.replace("1069726", "1069730"))) == {}, "it began anew"


@pytest.mark.parametrize("text", ["", "\n", "x y\n", "CPU0 CPUx\n", "  1: 5 timer\n"])
def test_another_heading(text):
    """It is no /proc/interrupts."""
    with pytest.raises(BadInput):
        parse_interrupts(text)


@pytest.mark.parametrize("line", ["24:", "24: 1", "24: x y z", "no colon", "24: 1 -2 a", ":"])
def test_damaged_lines(line):
    """They count nothing."""
    found = parse_interrupts(f"CPU0 CPU1\n{line}\n")
    assert found.since(parse_interrupts("CPU0 CPU1\n")) == {}


def test_a_machine_of_192_cpus():
    """Each column is its CPU's."""
    heading = " ".join(f"CPU{cpu}" for cpu in range(192))
    line = " ".join(str(cpu * 10) for cpu in range(192))
    found = parse_interrupts(f"{heading}\n 300: {line}  ITS-MSI   5-edge      mlx5_comp0@pci:0000:81:00.0\n")
    assert found.since(parse_interrupts(f"{heading}\n 300: {'0 ' * 192} x\n"))["300"][191] == 1910
    assert found.devices("300") == "mlx5_comp0@pci:0000:81:00.0"
