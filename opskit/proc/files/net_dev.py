"""Packets by network interface: /proc/PID/net/dev (net/core/net-procfs.c), of the network namespace of that process.

Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 217887262102 228696056    0    0    0     0          0         0 217887262102 228696056    0    0    0     0       0          0
"""

from __future__ import annotations

from opskit.proc.lines import lines_of
from opskit.quantities import integers
from opskit.records import NamedTuple

_COLUMNS = 16


class NetDev(NamedTuple):
    """Counters since the interface was made: packets received, of them dropped by the kernel or the device; packets sent.

    `fifo`, `frame`: of the errors on receiving, an overrun of the device's buffer, and damaged frames. `carrier`: of those on sending, a lost carrier
    and aborted frames.
    """

    received: int
    dropped: int
    sent: int
    received_bytes: int = 0
    errors: int = 0
    fifo: int = 0
    frame: int = 0
    sent_bytes: int = 0
    sent_errors: int = 0
    sent_dropped: int = 0
    collisions: int = 0
    carrier: int = 0

    def since(self, before: NetDev) -> NetDev:
        """What has been added; 0 for a counter that was reset."""
        return NetDev(*(max(0, now - then) for now, then in zip(self, before)))


def parse_net_dev(text: str) -> dict[str, NetDev]:
    """The interfaces by name; lines of another form, as the two of the heading, are left out."""
    found = {}
    for line in lines_of(text):
        name, colon, rest = line.rpartition(":")  # `eth0:1` was an interface's name once
        words = rest.split(None, _COLUMNS)
        numbers = integers(words[:_COLUMNS]) if colon and len(words) >= _COLUMNS else None
        if numbers is not None:
            found[name.strip()] = NetDev(
                numbers[1], numbers[3], numbers[9], numbers[0], numbers[2], numbers[4], numbers[5],
                numbers[8], numbers[10], numbers[11], numbers[13], numbers[14],
            )  # fmt: skip
    return found
