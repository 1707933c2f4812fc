r"""IPv4 routes: /proc/PID/net/route (net/ipv4/fib_trie.c). Addresses are hexadecimal, in the byte order of the machine.

Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0

IPv6 addresses: /proc/PID/net/if_inet6 (net/ipv6/addrconf.c): address, index, prefix, scope, flags, name.

fd000000000000000000000000000002 04 40 00 82     eth0
"""

from __future__ import annotations

from opskit.proc.lines import lines_of
from opskit.quantities import hexadecimal

_GATEWAY = 0x2  # include/uapi/linux/route.h, RTF_GATEWAY
_GLOBAL = "00"  # net/ipv6.h, IPV6_ADDR_ANY: neither link-local nor of this host


def parse_routes(text: str) -> dict[str, bool]:
    """The interfaces with routes, and whether one of them leads to a gateway."""
    found: dict[str, bool] = {}
    for line in lines_of(text):
        words = line.split()
        flags = hexadecimal(words[3]) if len(words) > 7 else None
        if flags is not None:
            found[words[0]] = found.get(words[0], False) or bool(flags & _GATEWAY)
    return found


def parse_global_addresses(text: str) -> set[str]:
    """The interfaces that have an IPv6 address of more than their link."""
    rows = (line.split() for line in lines_of(text))
    return {words[5] for words in rows if len(words) == 6 and words[3] == _GLOBAL}
