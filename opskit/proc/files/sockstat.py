"""/proc/net/sockstat (net/ipv4/proc.c): sockets in use, and the pages of their buffers.

`inuse` and `tw` (TIME-WAIT) are those of the network namespace; `orphan`, `alloc` and `mem` (pages) are of the whole machine.

sockets: used 290
TCP: inuse 27 orphan 0 tw 12 alloc 31 mem 8
UDP: inuse 5 mem 2
FRAG: inuse 0 memory 0
"""

from __future__ import annotations

from opskit.proc.lines import lines_of
from opskit.quantities import integer


def parse_sockstat(text: str) -> dict[str, int]:
    """The numbers by name, `TCP.orphan`; words of another form are left out."""
    rows = (line.partition(":") for line in lines_of(text))
    pairs = ((protocol, words[::2], words[1::2]) for protocol, _, rest in rows if (words := rest.split()))
    return {
        f"{protocol}.{name}": number
        for protocol, names, values in pairs
        for name, value in zip(names, values)
        if (number := integer(value)) is not None
    }


def parse_socket_pages(text: str) -> int:
    """The pages of TCP's and UDP's buffers, in slabs and outside of them."""
    numbers = parse_sockstat(text)
    return numbers.get("TCP.mem", 0) + numbers.get("UDP.mem", 0)
