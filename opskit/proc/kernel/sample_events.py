"""Events that sample a process by a software cpu-clock (perf_event_open(2)), and their rings in shared memory, one per CPU.

Scope `cpus`: one event per CPU, of all processes. It needs CAP_PERFMON, or kernel.perf_event_paranoid 0 or less. Scope
`threads`: one event per thread and CPU, which new threads inherit. The owner of the process may open them, without the
kernel's frames where perf_event_paranoid is 2.
"""

from __future__ import annotations

import errno
import mmap
import resource
from typing import TYPE_CHECKING, Literal

from opskit.proc.files.cpu_times import parse_cpu_list, read_online_cpus
from opskit.proc.files.status import parse_status
from opskit.proc.fs import GONE, optional
from opskit.proc.kernel import perf_event as perf

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

# Events of every CPU, or of the process's threads only.
Scope = Literal["cpus", "threads"]

LONGEST_PAUSE_S = 0.2
SAMPLE_BYTES = 512  # without the stack, with the frames of the kernel
# Room for four pauses: on a busy machine opskit itself may wait for a CPU.
_PAUSES = 4
_RINGS_BYTES = 128 << 20
_FEWEST_RECORDS = 3
_MOST_PASSES = 50
_SPARE_FDS = 1024  # for the files of the process's code, too

# Bits of REGS_USER, in their order in a sample: BX BP SP IP R10 R12 R13 R14 R15. Unwinding needs no others.
_REGISTERS = sum(1 << bit for bit in (1, 6, 7, 8, 18, 20, 21, 22, 23))
_FLAGS = (
    perf.DISABLED | perf.EXCLUDE_HV | perf.EXCLUDE_IDLE | perf.COMM | perf.TASK | perf.WATERMARK
    | perf.EXCLUDE_CALLCHAIN_USER | perf.COMM_EXEC | perf.USE_CLOCKID
)  # fmt: skip
_FIELDS = perf.IP | perf.TID | perf.TIME | perf.CALLCHAIN | perf.REGS_USER | perf.STACK_USER


def ring_pages(hz: float, stack_bytes: int, cpus: int, page_bytes: int = mmap.PAGESIZE) -> int:
    """The pages of each CPU's ring, a power of two: room for some pauses, bounded on a machine with many CPUs."""
    wanted = hz * (stack_bytes + SAMPLE_BYTES) * LONGEST_PAUSE_S * _PAUSES
    most = max(_RINGS_BYTES // cpus, _FEWEST_RECORDS * (stack_bytes + SAMPLE_BYTES))
    return 1 << (round(min(wanted, most)) // page_bytes).bit_length()


def most_fds() -> int:
    """Our hard limit of open files."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


class CpuRing:
    """The ring of one CPU and the fds of the events that write into it, the ring's own first.

    `first_id`: by thread, the event whose samples count: a thread may have inherited one, and been listed as well.
    `throttled_ns`: by event, when the kernel began to throttle it.
    """

    def __init__(self, fd: int, ring: perf.Ring) -> None:
        self.fds, self.ring = [fd], ring
        self.first_id: dict[int, int] = {}
        self.throttled_ns: dict[int, int] = {}

    def control(self, action: int) -> None:
        """ENABLE or DISABLE its events."""
        for fd in self.fds:
            perf.control(fd, action)

    def close(self) -> None:
        """End its events."""
        self.ring.close()
        while self.fds:
            perf.close(self.fds.pop())


def _allowed_cpus(status: str) -> frozenset[int] | None:
    return parse_cpu_list(parse_status(status).fields.get("Cpus_allowed_list", ""))


class _NoRoom(OSError):  # noqa: N818
    """There is no memory for rings of this size."""


class SampleEvents:
    """The events of a process, enabled. `rings`: by CPU. `kernel_seen`: whether samples are taken in the kernel too.

    `id_bytes`: of the field ID in each sample.
    """

    scope: Scope
    kernel_seen = True

    def __init__(self, fs: ProcFS, pid: int, hz: float, stack_bytes: int, scope: Scope | None = None) -> None:
        """Raise OSError as perf_event_open(2) does: EACCES, EPERM, EMFILE, …; ESRCH where the process has ended.

        ENOMEM: no memory for the rings, within the limits of locked memory. `scope` None: the widest that is permitted.
        """
        self.rings: dict[int, CpuRing] = {}
        self._fs, self._pid, self._hz, self._stack_bytes = fs, pid, hz, stack_bytes
        self._nofile: tuple[int, int] | None = None
        self._online = read_online_cpus(fs)
        self._pages = ring_pages(hz, stack_bytes, len(self._online))
        try:
            self._open(scope)
            self.control(perf.ENABLE)
        except BaseException:
            self.close()
            raise

    @property
    def id_bytes(self) -> int:
        """The length of the field ID in each sample: only events of threads have it."""
        return 8 if self.scope == "threads" else 0

    @property
    def fds(self) -> int:
        """How many fds are open, with the copy that each mmap keeps."""
        return sum(len(each.fds) + 1 for each in self.rings.values())

    @property
    def longest_pause_s(self) -> float:
        """How long a busy CPU takes to fill half of its ring, at most the longest pause between two drains."""
        room_s = self._pages * mmap.PAGESIZE / self._hz / (self._stack_bytes + SAMPLE_BYTES)
        return min(LONGEST_PAUSE_S, room_s / 2)

    def control(self, action: int) -> None:
        """ENABLE or DISABLE all events."""
        for each in self.rings.values():
            each.control(action)

    def close(self) -> None:
        """End all events."""
        self._end()
        if self._nofile is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, self._nofile)
            self._nofile = None

    def follow_cpus(self) -> None:
        """Open events on CPUs that came online, and end those of CPUs that went offline (scope `cpus` only).

        Raises OSError, NotSupported.
        """
        if self.scope == "threads":
            return
        before, self._online = self._online, read_online_cpus(self._fs)
        for cpu in self.rings.keys() & (set(before) - set(self._online)):
            self.rings.pop(cpu).close()
        for cpu in self._existing():
            if cpu not in self.rings:
                self._open_event(cpu, -1)
                if cpu in self.rings:
                    self.rings[cpu].control(perf.ENABLE)

    def _existing(self) -> list[int]:
        """The CPUs that are online, and those that the process may use: a container may be shown too few (lxcfs)."""
        allowed = self._fs.maybe(_allowed_cpus, self._pid, "status")
        return sorted({*self._online, *(allowed or ())})

    def _end(self) -> None:
        while self.rings:
            self.rings.popitem()[1].close()

    def _open(self, scope: Scope | None) -> None:
        """Open the events of the widest scope that is permitted, with rings as large as the limits of locked memory allow."""
        scopes: list[Scope] = ["cpus", "threads"] if scope is None else [scope]
        for each in scopes:
            for self.kernel_seen in (True, False) if each == "threads" else (True,):
                try:
                    self._open_scope(each)
                    return
                except PermissionError as error:
                    self._end()
                    refused = error
        raise refused

    def _open_scope(self, scope: Scope) -> None:
        self.scope = scope
        while True:
            try:
                self._open_cpus() if scope == "cpus" else self._open_threads(self._online)
                return
            except _NoRoom:
                self._end()
                if self._pages * mmap.PAGESIZE // 2 < _FEWEST_RECORDS * (self._stack_bytes + SAMPLE_BYTES):
                    raise
                self._pages //= 2

    def _attr(self) -> perf.Attr:
        flags = _FLAGS | (0 if self.kernel_seen else perf.EXCLUDE_KERNEL)
        fields = _FIELDS
        if self.scope == "threads":
            flags, fields = flags | perf.INHERIT, fields | perf.ID
        return perf.Attr(
            perf.SOFTWARE, perf.CPU_CLOCK, round(1e9 / self._hz), fields, flags, perf.NEVER_WAKE, _REGISTERS,
            self._stack_bytes, perf.MONOTONIC,
        )  # fmt: skip

    def _open_cpus(self) -> None:
        self._raise_nofile(2 * len(self._online))
        for cpu in self._existing():
            self._open_event(cpu, -1)
        if not self.rings:
            raise OSError(errno.ENODEV, "no CPU is online")

    def _open_threads(self, cpus: list[int]) -> None:
        """Open events for all threads, until a list of the threads shows no new one: those are started by threads without an event."""
        seen: set[int] = set()
        for _ in range(_MOST_PASSES):
            fresh = [tid for tid in optional(self._fs.tids, self._pid, default=[]) if tid not in seen]
            if not fresh:
                break
            self._raise_nofile((len(seen) + len(fresh) + 1) * len(cpus))
            for tid in fresh:
                for cpu in cpus:
                    self._open_event(cpu, tid)
            seen.update(fresh)
        if not self.rings:
            raise ProcessLookupError(errno.ESRCH, f"no thread of {self._pid} is left")

    def _open_event(self, cpu: int, tid: int) -> None:
        """An event of a thread (-1: of all processes) on a CPU, which shares the CPU's ring."""
        try:
            fd = perf.open_event(self._attr(), tid, cpu)
        except OSError as error:
            # EINVAL: beyond the CPUs that this kernel can have.
            is_absent = error.errno in (errno.ENODEV, errno.ENXIO) or (
                error.errno == errno.EINVAL and cpu not in self._online
            )
            if isinstance(error, GONE) or is_absent:  # the thread ended; the CPU went offline, or never was
                return
            raise
        try:
            shared = self.rings.get(cpu)
            if shared is not None:
                perf.control(fd, perf.SET_OUTPUT, shared.fds[0])
                shared.fds.append(fd)
            else:
                self.rings[cpu] = CpuRing(fd, self._ring(fd))
        except BaseException:
            perf.close(fd)
            raise

    def _ring(self, fd: int) -> perf.Ring:
        try:
            return perf.Ring(fd, self._pages)
        except OSError as error:  # EPERM: beyond kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK
            if error.errno == errno.EMFILE:
                raise
            raise _NoRoom(errno.ENOMEM, "no memory for a ring buffer") from error

    def _raise_nofile(self, fds: int) -> None:
        """Raise the soft limit of our open files as far as needed and permitted."""
        soft, hard = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = fds + _SPARE_FDS
        if soft not in (resource.RLIM_INFINITY, hard) and soft < needed:
            self._nofile = self._nofile or limits
            wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
