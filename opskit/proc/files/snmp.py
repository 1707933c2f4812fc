"""Counters of a network namespace since it was made: /proc/PID/net/snmp and netstat (net/ipv4/proc.c, include/uapi/linux/snmp.h).

Two lines for each protocol, the names and the numbers:

Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens … InSegs OutSegs RetransSegs InErrs OutRsts
Tcp: 1 200 120000 -1 27 … 1837 1744 3 0 12
TcpExt: SyncookiesSent … ListenOverflows ListenDrops …
TcpExt: 0 … 21 21 …
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.lines import lines_of
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Collection


def parse_counters(text: str, wanted: Collection[str] = ()) -> dict[str, int]:
    """The counters by name, `Tcp.RetransSegs`: the wanted ones, by default all. Lines and numbers of another form are left out."""
    lines = lines_of(text)
    found = {}
    for names, numbers in zip(lines[::2], lines[1::2]):
        protocol, _, rest = names.partition(":")
        other, _, values = numbers.partition(":")
        if protocol != other:
            continue
        for name, value in zip(rest.split(), values.split()):
            key = f"{protocol}.{name}"
            if (not wanted or key in wanted) and (number := integer(value)) is not None:
                found[key] = number
    return found
