"""/proc/net/sockstat (net/ipv4/proc.c): sockets in use, and the pages of their buffers, of all network namespaces.

sockets: used 290
TCP: inuse 27 orphan 0 tw 12 alloc 31 mem 8
UDP: inuse 5 mem 2
FRAG: inuse 0 memory 0
"""

from __future__ import annotations

from opskit.proc.lines import lines_of
from opskit.quantities import integer


def parse_socket_pages(text: str) -> int:
    """The pages of TCP's and UDP's buffers, in slabs and outside of them."""
    rows = (line.split() for line in lines_of(text) if line.startswith(("TCP:", "UDP:")))
    return sum(integer(value) or 0 for words in rows for key, value in zip(words[1::2], words[2::2]) if key == "mem")
