"""Queues of network interfaces with RPS, RFS and XPS; their devices, drivers, nodes and interrupts."""

from __future__ import annotations

import os

import pytest
from trees import Link

from opskit.proc.fs import ProcFS
from opskit.proc.net_queues import NetQueue, is_virtual, network_links, read_device, read_queues

PCI = "devices/pci0000:00/0000:00:03.0"


@pytest.fixture
def fs(tree):
    """A function of files below /sys."""

    def write(files):
        root = tree({f"sys/{name}": content for name, content in files.items()})
        return ProcFS(str(root / "proc"), str(root))

    return write


def card(place, **files):
    """eth0 with its device two levels above."""
    return {
        "class/net/eth0": Link(f"../../{place}/net/eth0"),
        f"{place}/net/eth0/device": Link("../.."),
        **{f"{place}/net/eth0/{name}": content for name, content in files.items()},
    }


def test_queues_in_order(fs):
    """By kind and number; masks of any number of words; flows of RFS. Other names are no queues."""
    found = read_queues(
        fs(
            card(
                PCI,
                **{
                    "queues/rx-10/rps_cpus": "00000001,00000000,80000001\n",
                    "queues/rx-10/rps_flow_cnt": "4096\n",
                    "queues/rx-2/rps_cpus": "0\n",
                    "queues/rx-2/rps_flow_cnt": "0\n",
                    "queues/tx-0/xps_cpus": "f\n",
                    "queues/tx-x/xps_cpus": "f\n",
                    "queues/other": "",
                },
            )
        ),
        "eth0",
    )
    assert found == (
        NetQueue("rx", 2, frozenset(), 0),
        NetQueue("rx", 10, frozenset({0, 31, 64}), 4096),
        NetQueue("tx", 0, frozenset({0, 1, 2, 3})),
    )


@pytest.mark.parametrize("mask", ["", "x", "0x3", "1,,2", "123456789", "-1", "3 4"])
def test_a_damaged_mask(fs, mask):
    """RPS counts as off."""
    assert read_queues(fs(card(PCI, **{"queues/rx-0/rps_cpus": mask})), "eth0") == (NetQueue("rx", 0, frozenset()),)


def test_a_pci_card(fs):
    """Its interrupts are those of its MSI; its node, its driver."""
    files = {f"{PCI}/msi_irqs/{number}": "msix\n" for number in (85, 86)}
    files.update({f"{PCI}/numa_node": "1\n", f"{PCI}/driver": Link("../../../bus/pci/drivers/ixgbe")})
    device = read_device(fs({**card(PCI), **files}), "eth0")
    assert device == ((), "ixgbe", 1, {85, 86})


def test_a_virtio_card_has_its_interrupts_one_level_above(fs):
    """The PCI device has the interrupts and the node, virtio the driver."""
    files = {f"{PCI}/msi_irqs/25": "msix\n", f"{PCI}/numa_node": "-1\n"}
    files[f"{PCI}/virtio1/driver"] = Link("../../../../bus/virtio/drivers/virtio_net")
    device = read_device(fs({**card(f"{PCI}/virtio1"), **files}), "eth0")
    assert device == ((), "virtio_net", None, {25})


def test_which_interfaces_are_virtual(fs):
    """Those below /sys/devices/virtual."""
    found = network_links(fs({**card(PCI), "class/net/veth1": Link("../../devices/virtual/net/veth1")}))
    assert {name: is_virtual(link) for name, link in found.items()} == {"eth0": False, "veth1": True}


def test_an_interface_that_is_gone(fs):
    """Nothing is known of it."""
    empty = fs({"class/other": ""})
    assert read_device(empty, "eth0") == ((), None, None, frozenset())
    assert network_links(empty) == {}


def test_this_machine():
    """Loopback is virtual and has a receive queue."""
    fs = ProcFS()
    links = network_links(fs)
    if not os.path.exists("/sys/class/net/lo/queues/rx-0"):
        pytest.skip("needs sysfs of our network namespace")
    assert is_virtual(links["lo"])
    device = read_device(fs, "lo")
    assert (device.driver, device.node, device.irqs) == (None, None, frozenset())
    assert [queue.number for queue in device.queues if queue.kind == "rx"] == [0]
