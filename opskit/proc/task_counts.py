"""How many threads each process and user runs: what RLIMIT_NPROC and kernel.pid_max count (kernel/fork.c, kernel/pid.c)."""

from __future__ import annotations

from opskit.proc.files.loadavg import parse_loadavg
from opskit.proc.files.status import parse_status
from opskit.proc.fs import ProcFS, optional
from opskit.proc.namespaces import in_initial, namespace
from opskit.proc.visibility import hides_processes, is_mounted_with_hidepid
from opskit.records import NamedTuple

RESERVED_PIDS = 300  # include/linux/pid.h: once the pids have wrapped, those below are not given out again


class ProcessTasks(NamedTuple):
    """One process: its real uid, its threads, and how many of these have an id of RESERVED_PIDS or more."""

    pid: int
    uid: int
    threads: int
    high_ids: int


class TaskCounts(NamedTuple):
    """All processes of this proc tree. `hidden`: there are more, left out by hidepid or not copied."""

    processes: tuple[ProcessTasks, ...]
    hidden: bool

    @property
    def threads(self) -> int:
        """All visible threads."""
        return sum(process.threads for process in self.processes)

    @property
    def high_ids(self) -> int:
        """Threads whose id is in the range that the kernel keeps reusing."""
        return sum(process.high_ids for process in self.processes)

    def of_uid(self, uid: int) -> int:
        """Threads of a real uid, in all user namespaces."""
        return sum(process.threads for process in self.processes if process.uid == uid)

    def of_user(self, fs: ProcFS, uid: int, in_namespace: bytes | None) -> int:
        """Threads of a real uid in this user namespace; None: in all. One with an unreadable namespace counts too."""
        if in_namespace is None:
            return self.of_uid(uid)
        own = (process for process in self.processes if process.uid == uid)
        return sum(each.threads for each in own if namespace(fs, each.pid, "user") in (None, in_namespace))


def read_task_counts(fs: ProcFS) -> TaskCounts:
    """Read every process's status once; those that vanish meanwhile are left out."""
    hidden = hides_processes(fs) if fs.is_own() else is_mounted_with_hidepid(fs)
    found = ((pid, fs.maybe(_uid_and_threads, pid, "status")) for pid in fs.pids())
    processes = tuple(ProcessTasks(pid, *each, _high_ids(fs, pid, each[1])) for pid, each in found if each)
    return TaskCounts(processes, hidden or _is_copied_in_part(fs, processes))


def _is_copied_in_part(fs: ProcFS, processes: tuple[ProcessTasks, ...]) -> bool:
    """Whether a copy holds fewer threads than the machine had. In a pid namespace loadavg counts other tasks as well."""
    if fs.is_live or in_initial(fs, "pid", 1) is False:
        return False
    load = fs.maybe(parse_loadavg, "loadavg")
    return load is None or load.tasks > sum(process.threads for process in processes)


def _uid_and_threads(text: str) -> tuple[int, int]:
    status = parse_status(text)
    return status.real_uid, status.threads or 1


def _high_ids(fs: ProcFS, pid: int, threads: int) -> int:
    if pid >= RESERVED_PIDS:
        return threads
    if threads == 1:
        return 0
    tids = optional(fs.tids, pid)
    return threads if tids is None else sum(tid >= RESERVED_PIDS for tid in tids)
