"""Ports that the kernel chooses for connections (Documentation/networking/ip-sysctl.rst), of a network namespace.

net.ipv4.ip_local_port_range     32768	60999
net.ipv4.ip_local_reserved_ports 8080,9148-9160
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import integers, number_list

_LAST = 65535


def parse_port_range(text: str) -> tuple[int, int]:
    """The first and the last port. Raises BadInput."""
    numbers = integers(text.split())
    if numbers is None or len(numbers) != 2 or not 0 <= numbers[0] <= numbers[1] <= _LAST:
        raise BadInput("ip_local_port_range", "not two ports", 1, text)
    return numbers[0], numbers[1]


def parse_ports(text: str) -> frozenset[int]:
    """The ports of a list. Raises BadInput."""
    ports = number_list(text, _LAST + 1) if text.strip() else frozenset()
    if ports is None:
        raise BadInput("ip_local_reserved_ports", "not a list of ports", 1, text)
    return ports
