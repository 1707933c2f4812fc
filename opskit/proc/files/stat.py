"""/proc/PID/stat (proc_pid_stat(5), fs/proc/array.c): one line; comm may hold spaces, parentheses and newlines.

4242 (java) S 1 4242 4242 0 -1 1077936384 16233 0 12 0 310 45 0 0 20 0 35 0 8675309 …
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import integer, integers, signed
from opskit.records import NamedTuple

# Flags, major faults, utime, stime, threads, start; counted from the state.
_UNSIGNED = (6, 9, 11, 12, 17, 19)
_FLAGS, _NICE, _CPU, _POLICY = 6, 16, 36, 38
_PF_EXITING, _PF_KTHREAD, _PF_NO_SETAFFINITY = 0x00000004, 0x00200000, 0x04000000


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
    major_faults: int
    session: int | None = None
    children_minor_faults: int | None = None  # of the children that were reaped

    @property
    def is_kernel_thread(self) -> bool:
        """Whether it is a kernel thread: no exe, no user memory."""
        return bool(self.flags & _PF_KTHREAD)

    @property
    def is_exiting(self) -> bool:
        """Whether it is ending: its memory may be gone."""
        return bool(self.flags & _PF_EXITING)


class Placement(NamedTuple):
    """How a thread is scheduled. `cpu`: the one it ran on last; None: unknown. `policy`: SCHED_OTHER 0, FIFO 1, RR 2, BATCH 3, IDLE 5.

    `is_bound`: a kernel thread whose CPUs nobody can change.
    """

    state: str
    nice: int
    cpu: int | None
    policy: int
    is_bound: bool = False


def parse_placement(text: str) -> Placement:
    """The same line. Raises BadInput where it is cut short."""
    words = text[text.rfind(")") + 1 :].split(None, _POLICY + 1)
    numbers = [signed(words[at]) for at in (_NICE, _CPU, _POLICY)] if len(words) > _POLICY else [None]
    if len(numbers) < 3 or numbers[0] is None or numbers[2] is None:
        raise BadInput("stat", "cut short", found=text)
    is_bound = bool((integer(words[_FLAGS]) or 0) & _PF_NO_SETAFFINITY)
    return Placement(words[0], numbers[0], numbers[1], numbers[2], is_bound)


def parse_stat(text: str) -> ProcStat:
    """Parse the line; the last `)` ends comm. Raises BadInput where it is cut short."""
    opening, closing = text.find("("), text.rfind(")")
    words = text[closing + 1 :].split(None, 22) if 0 <= opening < closing else []
    if len(words) < 22:
        raise BadInput("stat", "cut short", found=text)
    pid, ppid = integer(text[:opening].strip()), signed(words[1])
    numbers = integers([words[at] for at in _UNSIGNED])
    if pid is None or ppid is None or numbers is None:
        raise BadInput("stat", "not the numbers of a stat line", found=text)
    flags, major_faults, user_ticks, system_ticks, threads, start_ticks = numbers
    return ProcStat(
        pid, text[opening + 1 : closing], words[0], ppid, flags, user_ticks, system_ticks, threads, start_ticks,
        major_faults, signed(words[3]), integer(words[8]),
    )  # fmt: skip


def parse_block_ticks(text: str) -> int | None:
    """Clock ticks that a thread has waited for storage and swap (field 42); it stays 0 where kernel.task_delayacct is off."""
    words = text[text.rfind(")") + 1 :].split(None, 40)
    return integer(words[39]) if len(words) > 39 else None


def parse_terminal(text: str) -> int | None:
    """The number of the controlling terminal (field 7), 0 where there is none."""
    words = text[text.rfind(")") + 1 :].split(None, 6)
    return signed(words[4]) if len(words) > 5 else None
