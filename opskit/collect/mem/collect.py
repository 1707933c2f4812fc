"""Read who holds the memory of one process, and what limits it. Nothing is sent to it unless it is asked for, and nothing stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.given_pids import refuse_thread
from opskit.collect.mem.facts import Facts
from opskit.collect.mem.limits import read_host_memory, read_huge_limits, read_levels, read_sharing
from opskit.errors import BadInput, NoSuchProcess, NotSupported
from opskit.proc.cgroup.owner import owner_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.boot_time import age_s, parse_uptime
from opskit.proc.files.smaps import Usage, parse_smaps_rollup
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import GONE, Refused
from opskit.proc.rights import how_to_be_allowed
from opskit.quantities import duration, size

if TYPE_CHECKING:
    from opskit.collect.mem.divide import Divided, Divider
    from opskit.collect.mem.facts import Request
    from opskit.host import Host
    from opskit.proc.files.status import Status
    from opskit.proc.process import Process

MOST_UNASKED_BYTES = 32 << 30  # resident; above it only --exact reads the mappings
_S, _S_PER_GIB = 0.15, 0.04  # CPU time of a look
_RIGHT = "CAP_SYS_PTRACE"


def collect(host: Host, ask: Request) -> Facts:
    """One look. Raises NoSuchProcess; NotSupported for kernel threads and zombies, which have no memory, and for a thread of a process."""
    return Collector(host, ask).look()


def exact_s(host: Host, pid: int) -> float | None:
    """How much CPU time a look with --exact takes, by the resident memory; None of a process that has none, or has ended."""
    status = host.fs.maybe(parse_status, pid, "status")
    resident = status.bytes_of("VmRSS") if status is not None else None
    return None if resident is None else _exact_s(resident)


def _exact_s(resident_bytes: int) -> float:
    return _S + resident_bytes / (1 << 30) * _S_PER_GIB


class Collector:
    """Looks at one process, again and again."""

    def __init__(self, host: Host, ask: Request) -> None:
        self._host, self._ask = host, ask
        self._start_ticks: int | None = None
        self._divider: Divider | None = None
        self._first_s = host.monotonic()

    def look(self) -> Facts:
        """Read everything. Raises as `collect` does, NoSuchProcess also where the process ends meanwhile."""
        host, pid = self._host, self._ask.pid
        fs, at_s = host.fs, host.monotonic() - self._first_s
        before = self._start_ticks
        process = self._process()
        status = fs.maybe(parse_status, pid, "status")
        if status is None:
            raise self._ended()
        refuse_thread(host, process)
        resident = status.bytes_of("VmRSS")
        if resident is None:
            raise NotSupported(self._why_without_memory(process)) if before is None else self._ended()
        divided, why, missing = self._divided(status, resident)
        levels, levels_unknown = read_levels(fs, pid)
        memory = read_host_memory(host, pid)
        sharing = read_sharing(host, pid, levels, memory.meminfo.get("SwapFree", 0))
        uptime_s = fs.maybe(parse_uptime, "uptime")
        return Facts(
            process, fs.maybe(lambda text: owner_of(parse_cgroup(text)), pid, "cgroup"), divided.total, status.bytes_of("VmPTE"),
            divided.rows, divided.parts, divided.malloc, divided.jvm, levels, levels_unknown, memory,
            why, (*missing, *divided.missing), at_s, None if process.start_ticks is None else age_s(uptime_s, process.start_ticks, host.clock_ticks),
            *sharing, read_huge_limits(fs, pid),
        )  # fmt: skip

    def _process(self) -> Process:
        process = self._host.process(self._ask.pid)
        if process.start_ticks is None or (self._start_ticks or process.start_ticks) != process.start_ticks:
            raise self._ended()
        self._start_ticks = process.start_ticks
        return process

    def _ended(self) -> NoSuchProcess:
        return NoSuchProcess(self._ask.pid, "" if self._start_ticks is None else "it has ended")

    def _why_without_memory(self, process: Process) -> str:
        stat = self._host.fs.maybe(parse_stat, process.pid, "stat")
        who = f"{process.pid} ({process.command})"
        if stat is not None and stat.is_kernel_thread:
            return f"{who} is a kernel thread, which has no memory of its own"
        if process.has_ended:
            return (
                f"{who} is a zombie: it has ended, and its memory is freed; its parent {process.ppid} has not reaped it"
            )
        return f"{who} has no memory: it is ending, or has not begun"

    def _divided(self, status: Status, resident: int) -> tuple[Divided, str | None, tuple[str, ...]]:
        """The memory by kinds, or the sums and why there are only these; and what is missing."""
        if resident > MOST_UNASKED_BYTES and not self._ask.exact:
            takes = duration(_exact_s(resident))
            why = f"{size(resident)} are resident: reading each mapping takes about {takes} of CPU time (--exact)"
            return self._sums(status), why, ()
        try:
            return self._by_kinds(status)
        except GONE:
            if self._host.fs.exists(self._ask.pid):  # a copy without the file
                return self._sums(status), f"{self._host.fs.path(self._ask.pid, 'smaps')} is not in this proc tree", ()
            raise self._ended() from None
        except OSError as error:
            sums = self._sums(status)._replace(missing=())  # whatever it is, the same rights are lacking
            missing = () if isinstance(error, Refused) else (f"memory by kinds: {self._advice()}",)
            return sums, f"its mappings cannot be read: {error.strerror}", missing
        except BadInput as error:
            return self._sums(status), str(error), ()

    def _by_kinds(self, status: Status) -> tuple[Divided, str | None, tuple[str, ...]]:
        from opskit.collect.mem.divide import Divider

        if self._divider is None:
            self._divider = Divider(self._host, self._ask)
        found = self._divider.divide(status)
        if not found.total.rss_bytes and not found.rows:
            raise self._ended()
        missing = () if self._divider.reads_memory else (f"malloc's arenas and large blocks: {self._advice()}",)
        return found, None, missing

    def _sums(self, status: Status) -> Divided:
        """What smaps_rollup tells, or without ptrace rights status."""
        from opskit.collect.mem.divide import Divided, jvm_of

        total = self._host.fs.maybe(parse_smaps_rollup, self._ask.pid, "smaps_rollup") or _usage(status)
        jvm, _, missing = jvm_of(self._host, self._ask, ())
        return Divided(total, (), (), None, jvm, missing)

    def _advice(self) -> str:
        pid = self._ask.pid
        return how_to_be_allowed(self._host.fs, _RIGHT, "opskit", "mem", pid, pid=pid)


def _usage(status: Status) -> Usage:
    """The sums of /proc/PID/status, which everyone may read. They are up to 64 pages a thread behind."""
    return Usage(
        rss_bytes=status.bytes_of("VmRSS") or 0,
        pss_bytes=None,
        anonymous_bytes=status.bytes_of("RssAnon") or 0,
        hugetlb_bytes=status.bytes_of("HugetlbPages") or 0,
        swap_bytes=status.bytes_of("VmSwap") or 0,
        locked_bytes=status.bytes_of("VmLck") or 0,
    )
