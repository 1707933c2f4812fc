"""/proc/PID/stat (proc_pid_stat(5), fs/proc/array.c): one line; comm may hold spaces, parentheses and newlines.

4242 (java) S 1 4242 4242 0 -1 1077936384 16233 0 12 0 310 45 0 0 20 0 35 0 8675309 …
"""

from __future__ import annotations

import re

from opskit.errors import BadInput
from opskit.quantities import integer
from opskit.records import NamedTuple

# State, ppid, flags, major faults, utime, stime, threads, start, vsize, rss.
_BEHIND_COMM = re.compile(
    r" (\S+) (-?N)(?: \S+){4} (N)(?: \S+){2} (N) \S+ (N) (N)(?: \S+){4} (N) \S+ (N) (N) (-?N)(?!\S)".replace(
        "N", "[0-9]{1,20}"
    )
)
_FIELDS = 22
_PF_EXITING, _PF_KTHREAD = 0x00000004, 0x00200000


class ProcStat(NamedTuple):
    """A process or thread. Times are in clock ticks since boot (`start`) or of CPU (`user`, `system`)."""

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
        """Whether it is a kernel thread: no exe, no user memory."""
        return bool(self.flags & _PF_KTHREAD)

    @property
    def is_exiting(self) -> bool:
        """Whether it is ending: its memory may be gone."""
        return bool(self.flags & _PF_EXITING)


def parse_stat(text: str) -> ProcStat:
    """Parse the line; the last `)` ends comm. Raises BadInput where it is cut short."""
    opening, closing = text.find("("), text.rfind(")")
    match = _BEHIND_COMM.match(text, closing + 1) if 0 <= opening < closing else None
    pid = integer(text[:opening].strip())
    if match is None or pid is None:
        whole = 0 <= opening < closing and len(text[closing:].split()) > _FIELDS
        raise BadInput("stat", "not the numbers of a stat line" if whole else "cut short", found=text)
    state, *words = match.groups()
    numbers = [int(word) for word in words]  # a number: twenty digits at most
    ppid, flags, major_faults, user_ticks, system_ticks, threads, start_ticks, vsize_bytes, rss_pages = numbers
    return ProcStat(
        pid, text[opening + 1 : closing], state, ppid, flags, user_ticks, system_ticks, threads, start_ticks,
        vsize_bytes, rss_pages, major_faults,
    )  # fmt: skip
