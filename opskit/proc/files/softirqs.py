"""Softirqs since boot by kind and CPU: /proc/softirqs (fs/proc/softirqs.c). CPUs that are possible but offline have a column too.

              CPU0       CPU1
    HI:          0          0
 TIMER:    2983133    3430305
NET_RX:   98870372  100384062
"""

from __future__ import annotations

from opskit.proc.counters import added_32
from opskit.proc.cpu_columns import split_columns
from opskit.quantities import integers


def parse_softirqs(text: str) -> dict[str, dict[int, int]]:
    """The counters of each CPU by kind; a line of another form is left out. Raises BadInput without the line of CPUs."""
    cpus, lines = split_columns("softirqs", text)
    found = {}
    for name, rest in lines.items():
        words = rest.split()
        counts = integers(words) if len(words) == len(cpus) else None
        if counts is not None:
            found[name] = dict(zip(cpus, counts))
    return found


def softirqs_since(before: dict[str, dict[int, int]], after: dict[str, dict[int, int]]) -> dict[int, dict[str, int]]:
    """By how much each kind has grown, by CPU."""
    grown: dict[int, dict[str, int]] = {}
    for kind, counts in after.items():
        then = before.get(kind, {})
        for cpu, count in counts.items():
            if cpu in then:
                grown.setdefault(cpu, {})[kind] = added_32(count, then[cpu])
    return grown
