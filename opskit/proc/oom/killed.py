"""Who was killed for memory, of the kernel's log, by two lines of each report: what a quick look needs. Kernels since 5.0.

<6>[22158.031] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=java,pid=42,uid=0
<3>[22158.032] Memory cgroup out of memory: Killed process 42 (java) total-vm:…
<6>[22158.033] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,task=java,pid=43,uid=0
<3>[22158.034] Out of memory: Killed process 43 (java) total-vm:…

Names are chosen by users, and may look like the rest of a line: the PID is at its end. With memory.oom.group several processes are killed
after one `oom-kill:` line.
"""

from __future__ import annotations

import re

from opskit.proc.lines import lines_of
from opskit.quantities import decimal, integer
from opskit.records import NamedTuple

_FACILITY = 3  # bits of the priority below it; the kernel's own is 0
_LONGEST_LINE, _MOST = 4096, 10_000
_CHOSEN, _KILLED = "oom-kill:constraint=", "Killed process "
_RESUMED = ("PM: suspend exit", "PM: hibernation: hibernation exit")
_HEAD = re.compile(r"<(\d{1,4})>\[ *(\d{1,12}\.\d{1,9})\](?:\[[TC]\d{1,10}\])? ")
_SENTENCE = re.compile(
    r"(?:Memory cgroup out|Out) of memory(?: \([^)]{1,40}\))?: Killed process (\d{1,10}) \((.{0,80}?)\),? total-vm:"
)


class Killed(NamedTuple):
    """One process. `at_s`: since boot, without suspend. `cgroup`: the one at its limit; None: the machine, or unknown. `own`: its cgroup."""

    at_s: float
    pid: int
    name: str
    cgroup: str | None
    own: str | None


class KilledLog(NamedTuple):
    """The kills in the order of the log. `resumed_s`: when the machine was last resumed; None: never, by this log.

    `is_complete` False: a report has other lines, or lacks its beginning: the whole parser has to read it.
    """

    kills: tuple[Killed, ...]
    resumed_s: float | None
    is_complete: bool


def read_killed(text: str) -> KilledLog:
    """Read the log as kmsg.read_kernel_log gives it; lines of programs are left out."""
    kills: dict[tuple[int, int], Killed] = {}
    chosen: Killed | None = None
    resumed_s, is_complete, reports = None, True, 0
    for line in lines_of(text):
        if _CHOSEN not in line and _KILLED not in line and not any(word in line for word in _RESUMED):
            continue
        head = _HEAD.match(line)
        if head is None or len(line) > _LONGEST_LINE or len(kills) >= _MOST or (integer(head[1]) or 0) >> _FACILITY:
            continue
        at_s, message = decimal(head[2]) or 0.0, line[head.end() :]
        if message.startswith(_RESUMED):
            resumed_s = at_s
        elif message.startswith(_CHOSEN):
            chosen = _chosen(at_s, message)
            reports += 1
            if chosen is not None:
                kills[reports, chosen.pid] = chosen
        elif (sentence := _SENTENCE.match(message)) is not None:
            pid = integer(sentence[1]) or 0
            if chosen is None:
                is_complete = False
            else:
                kills.setdefault((reports, pid), chosen._replace(pid=pid, name=sentence[2]))
        elif message.startswith(_KILLED):  # before 5.0
            is_complete = False
    return KilledLog(tuple(kills.values()), resumed_s, is_complete)


def _chosen(at_s: float, message: str) -> Killed | None:
    """The line of a report. A name may look like what is before it: it is what is left between the others."""
    rest, _, ids = message.rpartition(",pid=")
    where, _, rest = rest.partition(",task_memcg=")
    own, _, name = rest.partition(",task=")
    pid = integer(ids.partition(",uid=")[0])
    if pid is None or not own.startswith("/"):
        return None
    return Killed(at_s, pid, name, where.partition(",oom_memcg=")[2] or None, own)
