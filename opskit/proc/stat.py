"""/proc/PID/stat (proc_pid_stat(5), fs/proc/array.c): one line; comm may hold spaces, parentheses and newlines.

4242 (java) S 1 4242 4242 0 -1 1077936384 16233 0 12 0 310 45 0 0 20 0 35 0 8675309 …
"""

from __future__ import annotations

from typing import NamedTuple

from opskit.errors import BadInput
from opskit.quantities import integer, integers, signed

_COUNTS = (6, 9, 11, 12, 17, 19, 20)  # flags, major faults, utime, stime, threads, start, vsize: behind comm, from 0
_PF_EXITING, _PF_KTHREAD = 0x00000004, 0x00200000


class ProcStat(NamedTuple):
    """A process's or thread's state. Times are in clock ticks since boot (`start`) or of CPU (`user`, `system`)."""

    pid: int
    comm: str
    state: str
    ppid: int
    flags: int
    user_ticks: int
    system_ticks: int
    threads: int
    start_ticks: int
    vsize_bytes: int
    rss_pages: int
    major_faults: int

    @property
    def is_kernel_thread(self) -> bool:
        """Whether the kernel itself runs it: no exe, no user memory."""
        return bool(self.flags & _PF_KTHREAD)

    @property
    def is_exiting(self) -> bool:
        """Whether it is about to be gone: its memory may already be."""
        return bool(self.flags & _PF_EXITING)


def parse_stat(text: str) -> ProcStat:
    """Parse the line; the last `)` ends comm. Raises BadInput where it is cut short."""
    opening, closing = text.find("("), text.rfind(")")
    fields = text[closing + 2 :].split()
    if opening < 0 or closing < opening or len(fields) < 22:
        raise BadInput("stat", "cut short", found=text)
    pid, numbers = integer(text[:opening].strip()), integers(fields[index] for index in _COUNTS)
    ppid, rss_pages = signed(fields[1]), signed(fields[21])
    if pid is None or numbers is None or ppid is None or rss_pages is None:
        raise BadInput("stat", "not the numbers of a stat line", found=text)
    flags, major_faults, user_ticks, system_ticks, threads, start_ticks, vsize_bytes = numbers
    return ProcStat(
        pid, text[opening + 1 : closing], fields[0], ppid, flags, user_ticks, system_ticks, threads, start_ticks,
        vsize_bytes, rss_pages, major_faults,
    )  # fmt: skip
