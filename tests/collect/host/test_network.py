"""Interfaces of a network namespace, and of a copy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from netlab import own_network

from opskit.analysis.host.network import judge
from opskit.collect.host.network import collect
from opskit.host import Host

PROGRAM = """
import json, subprocess
from opskit.analysis.host.network import judge
from opskit.collect.host.network import collect
from opskit.host import Host
host = Host.at(None, None)
def ip(words): subprocess.run(["ip", *words.split()], check=True)
def codes(window_s): return [(each.code, each.severity, each.entity.id) for each in judge(collect(host, window_s)).copy()]
subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)  # of this network namespace
ip("link add one type veth peer name two")
ip("link add spare type veth peer name unused")
ip("addr add 10.9.9.1/24 dev one")
ip("link set one up"); ip("link set two up")
ip("route add default via 10.9.9.2")
told = {"healthy": codes(0.05)}
ip("link set two down")
told["down"] = codes(0.05)
def flap(_):
    for state in ("up", "down", "up"): ip(f"link set two {state}")
host.sleep = flap
told["flapping"] = codes(0.05)
print(json.dumps(told))
"""


@pytest.mark.usefixtures("root_only")
def test_a_veth_pair_whose_other_end_goes_down():
    """The default route leads through it; the device that nobody uses and the other end are no finding."""
    with own_network() as words:
        if not words:
            pytest.skip("needs root, nsenter (util-linux) and ip (iproute2)")
        done = subprocess.run(
            [*words, "unshare", "--mount", sys.executable, "-c", PROGRAM],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["healthy"] == []
    assert told["down"] == [["network-link-down", "warning", "one"]]
    assert told["flapping"] == [["link-flapping", "warning", "one"]]


def test_a_copy(tree):
    """It has no rates; the state of its links is known."""
    root = tree({
        "proc/meminfo": "MemTotal: 1 kB\n",
        "proc/net/dev": "eth0: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n",
        "proc/net/route": "Iface Destination\neth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n",
        "proc/net/stat/arp_cache": "entries table_fulls\n000003ff 00000002\n000003ff 00000001\n",
        "proc/sys/net/ipv4/neigh/default/gc_thresh3": "1024\n",
        "sys/class/net/eth0/device/vendor": "0x8086\n", "sys/class/net/eth0/flags": "0x1003\n",
        "sys/class/net/eth0/brport/state": "3\n", "sys/class/net/eth0/upper_br0/address": "",
        "sys/class/net/eth0/carrier": "0\n", "sys/class/net/eth0/carrier_changes": "3\n",
    })  # fmt: skip
    facts = collect(Host.at(str(root), None), 0.0)
    assert [(link.name, link.is_physical, link.has_carrier, link.speed_mbit, link.bridge) for link in facts.links] == [
        ("eth0", True, False, None, "br0")
    ]
    assert {each.code for each in judge(facts)} == {"network-link-down", "neighbour-table-nearly-full"}
