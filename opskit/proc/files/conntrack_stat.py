"""Connection tracking of a network namespace: /proc/PID/net/stat/nf_conntrack (net/netfilter/nf_conntrack_standalone.c).

A line of names and one of hexadecimal numbers for each CPU. `entries` is the number of connections, the same in each line:

entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error …
00000012  00000000 00000000 00000000 00000003 00000000 00000000 00000001 00000000 00000000 00000000 00000000 00000000 …
"""

from __future__ import annotations

from opskit.proc.lines import lines_of
from opskit.quantities import hexadecimal


def parse_conntrack_stat(text: str) -> dict[str, int]:
    """The counters of all CPUs together, `Conntrack.drop`; a column without a number in each line is left out."""
    names, *rows = [line.split() for line in lines_of(text)] or [[]]
    columns = [[hexadecimal(word) for word in column] for column in zip(*rows)]
    return {
        f"Conntrack.{name}": sum(number or 0 for number in column)
        for name, column in zip(names, columns)
        if name != "entries" and None not in column
    }
