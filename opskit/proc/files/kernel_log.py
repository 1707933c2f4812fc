r"""What the OOM killer writes to the kernel's log (mm/oom_kill.c), as syslog(2) gives it.

<3>[ 1215.612345] Memory cgroup out of memory: Killed process 4242 (java) total-vm:2703268kB, anon-rss:129520kB, …
<3>[ 9215.600000] Out of memory: Killed process 77 (java) total-vm:2703268kB, anon-rss:129520kB, …
"""

from __future__ import annotations

import re

from opskit.quantities import decimal, integer
from opskit.records import NamedTuple

_KILL = r"(?:<\d{1,4}>)?\[ {0,12}(\d{1,12}\.\d{1,9})\] (Memory cgroup out of memory|Out of memory): Killed process (\d{1,10}) \((.{0,15})\) "
_CGROUP = "Memory cgroup"


class OomKill(NamedTuple):
    """A process that was killed, by its PID in the initial PID namespace. `at_s`: since boot. `by_cgroup`: at a cgroup's limit."""

    pid: int
    at_s: float
    comm: str
    by_cgroup: bool


def parse_oom_kills(text: str) -> list[OomKill]:
    """The kills in the order of the log; none where its lines have no time."""
    kills = []
    for line in text.split("\n"):
        found = re.match(_KILL, line) if "Killed process " in line else None
        if found:
            at_s, pid = decimal(found[1]) or 0.0, integer(found[3]) or 0
            kills.append(OomKill(pid, at_s, found[4], found[2].startswith(_CGROUP)))
    return kills
