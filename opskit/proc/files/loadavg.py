"""/proc/loadavg (proc_loadavg(5)): how many tasks want to run; and the CPUs in /proc/stat.

0.20 0.18 0.12 3/80 11206
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import decimal, integer, integers
from opskit.records import NamedTuple


class Load(NamedTuple):
    """`load1` is the average over a minute, with tasks in uninterruptible sleep; `runnable` is now, opskit included.

    `tasks` are all threads of the machine, `last_pid` is the last id that was given out (None: not in the line).
    """

    load1: float
    runnable: int
    tasks: int
    last_pid: int | None = None


def parse_loadavg(text: str) -> Load:
    """Parse the line. Raises BadInput."""
    words = text.split()
    load1 = decimal(words[0]) if len(words) > 3 else None
    counts = integers(words[3].split("/")) if len(words) > 3 else None
    if load1 is None or counts is None or len(counts) != 2:
        raise BadInput("loadavg", "not `1min 5min 15min runnable/tasks pid`", found=text)
    return Load(load1, counts[0], counts[1], integer(words[4]) if len(words) > 4 else None)


def parse_cpu_count(text: str) -> int | None:
    """The CPUs that are online, of /proc/stat; None where it lists none."""
    return sum(line.startswith("cpu") and integer(line[3:4]) is not None for line in text.splitlines()) or None
