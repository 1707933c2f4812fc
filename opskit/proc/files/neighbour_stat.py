"""The table of neighbours (ARP, NDP): /proc/PID/net/stat/arp_cache and ndisc_cache (net/core/neighbour.c).

A line of names and one of hexadecimal numbers for each CPU. `entries` is the number in the table, the same in each line, and counts
all network namespaces:

entries  allocs   destroys hash_grows lookups  hits     res_failed … unresolved_discards table_fulls
00000004 000003b9 000003a4 00000000   00000b0b 0000010d 00000067   … 00000000            00000000
"""

from __future__ import annotations

from opskit.proc.lines import lines_of
from opskit.quantities import hexadecimal
from opskit.records import NamedTuple


class Neighbours(NamedTuple):
    """Entries now, and how often a new one was refused since boot. None: not in this kernel's file."""

    entries: int
    refused: int | None


def parse_neighbours(text: str) -> Neighbours | None:
    """The table; None for another text."""
    names, *rows = [line.split() for line in lines_of(text)] or [[]]
    columns = {name: [hexadecimal(word) for word in column] for name, column in zip(names, zip(*rows))}
    entries = columns.get("entries")
    if not entries or entries[0] is None:
        return None
    refused = columns.get("table_fulls")
    return Neighbours(entries[0], None if refused is None else sum(number or 0 for number in refused))
