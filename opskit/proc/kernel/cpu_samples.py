"""Samples of what a process runs on the CPUs, by perf_event_open(2): registers, a copy of the stack, the kernel's frames.

    with CpuSampler(fs, pid, hz=99) as sampler:
        sleep(sampler.pause_s)
        for sample in sampler.drain(): …

A software cpu-clock interrupts every 1/hz seconds of CPU time. Nothing is sent to the process, and nothing of it stops.

Scope `cpus`: one event per CPU, of all processes; a sample of another process is dropped before it is copied. It needs
CAP_PERFMON, or kernel.perf_event_paranoid 0 or less. Scope `threads`: one event per thread and CPU, which new threads
inherit; the owner of the process may open them, without the kernel's frames where perf_event_paranoid is 2.
"""

from __future__ import annotations

import errno
import mmap
import resource
import struct
import time
from typing import TYPE_CHECKING, Literal

from opskit.proc.files.cpu_times import read_online_cpus
from opskit.proc.fs import GONE, optional
from opskit.proc.kernel import perf_event as perf
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from opskit.proc.fs import ProcFS

# Events of every CPU, or of the process's threads only.
Scope = Literal["cpus", "threads"]

STACK_BYTES, LARGEST_STACK_BYTES = 16 << 10, 65528  # the kernel takes multiples of 8 below 64 KiB
LONGEST_PAUSE_S, _SHORTEST_PAUSE_S = 0.2, 0.02
# Room for four pauses: on a busy machine opskit itself may wait for a CPU.
_PAUSES = 4
_RINGS_BYTES = 128 << 20
_FEWEST_RECORDS = 3
_SAMPLE_BYTES = 512  # without the stack, with the frames of the kernel
_MOST_PASSES = 50

# Bits of REGS_USER, in their order in a sample: BX BP SP IP R10 R12 R13 R14 R15. Unwinding needs no others.
_REGISTERS = (1, 6, 7, 8, 18, 20, 21, 22, 23)
_REGISTER_MASK = sum(1 << bit for bit in _REGISTERS)
_ABI_64 = 2
_MARKERS = (1 << 64) - 4095  # PERF_CONTEXT_KERNEL, …
_FLAGS = (
    perf.DISABLED | perf.EXCLUDE_HV | perf.EXCLUDE_IDLE | perf.COMM | perf.TASK | perf.WATERMARK
    | perf.EXCLUDE_CALLCHAIN_USER | perf.COMM_EXEC | perf.USE_CLOCKID
)  # fmt: skip
_FIELDS = perf.IP | perf.TID | perf.TIME | perf.CALLCHAIN | perf.REGS_USER | perf.STACK_USER
_HEAD, _HEAD_BYTES, _PID_AT = struct.Struct("=QIIQ"), 24, 8  # ip, pid, tid, time
_TWO_IDS, _COMM, _FORK = struct.Struct("=II"), struct.Struct("=II"), struct.Struct("=IIII")
_WORD, _TWO_WORDS, _REGS = struct.Struct("=Q"), struct.Struct("=QQ"), struct.Struct("=9Q")
_REGS_BYTES = 72


class Sample(NamedTuple):
    """One sample of a thread.

    `registers`: of user mode, by DWARF number (proc/unwind/cursor.py), None where not sampled; empty where no user code ran.
    `kernel`: the kernel's program counters, leaf first; empty in user mode or without the right to see them.
    `stack`: the bytes from the stack pointer up. `time_ns`: CLOCK_MONOTONIC.
    """

    tid: int
    time_ns: int
    in_kernel: bool
    kernel: Sequence[int]
    registers: Sequence[int | None]
    stack: bytes


def read_sample(data: bytes | mmap.mmap, begin: int, end: int, *, in_kernel: bool, id_bytes: int = 0) -> Sample | None:
    """The sample in the body of a record; None where its sizes do not fit. `id_bytes`: of a field ID before the call chain."""
    at = begin + _HEAD_BYTES + id_bytes
    if at + 8 > end:
        return None
    _, _, tid, time_ns = _HEAD.unpack_from(data, begin)
    count = _WORD.unpack_from(data, at)[0]
    at += 8
    if count > (end - at) // 8:
        return None
    kernel: tuple[int, ...] = ()
    if count:
        kernel = tuple([pc for pc in struct.unpack_from(f"={count}Q", data, at) if pc < _MARKERS])
        at += 8 * count
    if at + 8 > end:
        return None
    abi = _WORD.unpack_from(data, at)[0]
    at += 8
    registers: tuple[int | None, ...] = ()
    if abi:
        if at + _REGS_BYTES > end:
            return None
        bx, bp, sp, ip, r10, r12, r13, r14, r15 = _REGS.unpack_from(data, at)
        at += _REGS_BYTES
        if abi == _ABI_64:
            registers = (
                None, None, None, bx, None, None, bp, sp, None, None, r10, None, r12, r13, r14, r15, ip,
            )  # fmt: skip
    if at + 8 > end:
        return None
    size = _WORD.unpack_from(data, at)[0]
    at += 8
    if not size:
        return Sample(tid, time_ns, in_kernel, kernel, registers, b"")
    if size > end - at - 8:
        return None
    used = _WORD.unpack_from(data, at + size)[0]
    return Sample(tid, time_ns, in_kernel, kernel, registers, data[at : at + min(used, size)])


def ring_pages(hz: float, stack_bytes: int, cpus: int, page_bytes: int = mmap.PAGESIZE) -> int:
    """The pages of each CPU's ring, a power of two: room for some pauses, bounded on a machine with many CPUs."""
    wanted = hz * (stack_bytes + _SAMPLE_BYTES) * LONGEST_PAUSE_S * _PAUSES
    most = max(_RINGS_BYTES // cpus, _FEWEST_RECORDS * (stack_bytes + _SAMPLE_BYTES))
    return 1 << (round(min(wanted, most)) // page_bytes).bit_length()


class _CpuRing:
    """The ring of one CPU and the fds of the events that write into it, the ring's own first."""

    def __init__(self, fd: int, ring: perf.Ring) -> None:
        self.fds, self.ring = [fd], ring
        self.first_id: dict[int, int] = {}  # by thread: the event whose samples count
        self.throttled_ns: dict[int, int] = {}

    def control(self, action: int) -> None:
        for fd in self.fds:
            perf.control(fd, action)

    def close(self) -> None:
        self.ring.close()
        while self.fds:
            perf.close(self.fds.pop())


class CpuSampler:
    """Samples one process from its start until `close`. `scope`: as asked for, or else the widest that is permitted.

    `lost`: samples of the process that the kernel dropped; where a ring has other processes' samples too, their share is
    taken out. `names`: of threads that were started or renamed meanwhile, as the kernel cuts them (15 bytes), by TID.
    `execs`: how often the process started another program. `pause_s`: how long to wait before the next `drain`.
    """

    scope: Scope
    kernel_seen = True

    def __init__(
        self, fs: ProcFS, pid: int, hz: float, stack_bytes: int = STACK_BYTES, scope: Scope | None = None
    ) -> None:
        """Raise OSError as perf_event_open(2) and mmap(2) do: EACCES, EPERM, EMFILE, …; ESRCH where the process has ended."""
        self.fs, self.pid, self.hz, self.stack_bytes = fs, pid, hz, stack_bytes
        self.names: dict[int, str] = {}
        self.execs = 0
        self._lost = 0.0
        self._rings: dict[int, _CpuRing] = {}
        self._nofile: tuple[int, int] | None = None
        cpus = read_online_cpus(fs)
        self._pages = ring_pages(hz, stack_bytes, len(cpus))
        try:
            self._open(cpus, scope)
            for each in self._rings.values():
                each.control(perf.ENABLE)
        except BaseException:
            self.close()
            raise
        self.pause_s = self._longest_pause_s()

    def __enter__(self) -> CpuSampler:  # noqa: PYI034  (Self is newer than Python 3.9)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def lost(self) -> int:
        """The samples of the process that the kernel dropped, about."""
        return round(self._lost + 0.4999)

    @property
    def fds(self) -> int:
        """How many fds are open."""
        return sum(len(each.fds) for each in self._rings.values())

    def stop(self) -> None:
        """Take no more samples; what the rings have is still drained."""
        for each in self._rings.values():
            each.control(perf.DISABLE)

    def close(self) -> None:
        """End the events."""
        self._end()
        if self._nofile is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, self._nofile)
            self._nofile = None

    def _end(self) -> None:
        while self._rings:
            self._rings.popitem()[1].close()

    def drain(self) -> list[Sample]:
        """The samples since the last call, CPU by CPU."""
        found: list[Sample] = []
        fill = 0.0
        for each in self._rings.values():
            self._drain(each, found)
            fill = max(fill, each.ring.fill)
        if fill > 0.5:
            self.pause_s = max(self.pause_s / 2, _SHORTEST_PAUSE_S)
        elif fill < 0.25:
            self.pause_s = min(self.pause_s * 1.5, self._longest_pause_s())
        return found

    def follow_cpus(self) -> None:
        """Open events on CPUs that came online, and end those of CPUs that went offline (scope `cpus` only)."""
        online = read_online_cpus(self.fs) if self.scope == "cpus" else []
        if online:
            for cpu in self._rings.keys() - set(online):
                self._rings.pop(cpu).close()
            for cpu in online:
                if cpu not in self._rings:
                    self._open_cpu(cpu, -1)
                    self._rings[cpu].control(perf.ENABLE)

    def _longest_pause_s(self) -> float:
        room_s = self._pages * mmap.PAGESIZE / self.hz / (self.stack_bytes + _SAMPLE_BYTES)
        return max(min(LONGEST_PAUSE_S, room_s / 2), _SHORTEST_PAUSE_S)

    def _drain(self, each: _CpuRing, found: list[Sample]) -> None:
        ours, id_bytes, first_id = self.pid, self._id_bytes, each.first_id
        ids, unpack_word = _TWO_IDS.unpack_from, _WORD.unpack_from
        begun, others, lost = len(found), 0, 0.0
        for kind, misc, data, begin, end in each.ring.waiting():
            if kind != perf.RECORD_SAMPLE:
                lost += self._note(each, kind, misc, bytes(data[begin:end]))
                continue
            pid, tid = ids(data, begin + _PID_AT)
            if pid != ours:
                others += 1
                continue
            if id_bytes:
                number = unpack_word(data, begin + _HEAD_BYTES)[0]
                if first_id.setdefault(tid, number) != number:
                    continue  # opened, and inherited as well
            sample = read_sample(data, begin, end, in_kernel=misc & perf.MODE == perf.KERNEL_MODE, id_bytes=id_bytes)
            if sample is None:
                lost += 1
            else:
                found.append(sample)
        if lost:
            mine = len(found) - begun
            self._lost += lost * mine / (mine + others) if others else lost

    def _note(self, each: _CpuRing, kind: int, misc: int, body: bytes) -> float:
        """Take in a record that is not a sample: how many samples it says are lost."""
        if kind == perf.RECORD_LOST:
            return _TWO_WORDS.unpack_from(body)[1]  # type: ignore[no-any-return]
        if kind == perf.RECORD_THROTTLE:
            time_ns, event = _TWO_WORDS.unpack_from(body)
            each.throttled_ns[event] = time_ns
        elif kind == perf.RECORD_UNTHROTTLE:
            time_ns, event = _TWO_WORDS.unpack_from(body)
            return max(time_ns - each.throttled_ns.pop(event, time_ns), 0) * self.hz / 1e9
        elif kind == perf.RECORD_COMM:
            pid, tid = _COMM.unpack_from(body)
            if pid == self.pid:
                self.names[tid] = body[_COMM.size :].partition(b"\0")[0].decode("utf-8", "surrogateescape")
                self.execs += bool(misc & perf.BY_EXEC)
        elif kind == perf.RECORD_FORK:
            pid, _, tid, parent = _FORK.unpack_from(body)
            if pid == self.pid and parent in self.names:
                self.names[tid] = self.names[parent]
        elif kind == perf.RECORD_EXIT and self._id_bytes:
            for ring in self._rings.values():
                ring.first_id.pop(_FORK.unpack_from(body)[2], None)  # the TID may be given again
        return 0.0

    def _open(self, cpus: list[int], scope: Scope | None) -> None:
        if scope != "threads":
            try:
                self._open_cpus(cpus)
                return
            except PermissionError:
                self._end()
                if scope is not None:
                    raise
        try:
            self._open_threads(cpus)
        except PermissionError:
            self._end()
            self.kernel_seen = False
            self._open_threads(cpus)

    @property
    def _id_bytes(self) -> int:
        return 8 if self.scope == "threads" else 0

    def _attr(self) -> perf.Attr:
        flags = _FLAGS | (0 if self.kernel_seen else perf.EXCLUDE_KERNEL)
        fields = _FIELDS
        if self.scope == "threads":
            flags, fields = flags | perf.INHERIT, fields | perf.ID
        return perf.Attr(
            perf.SOFTWARE, perf.CPU_CLOCK, round(1e9 / self.hz), fields, flags, perf.NEVER_WAKE, _REGISTER_MASK,
            self.stack_bytes, time.CLOCK_MONOTONIC,
        )  # fmt: skip

    def _open_cpus(self, cpus: list[int]) -> None:
        self.scope, self.kernel_seen = "cpus", True
        for cpu in cpus:
            self._open_cpu(cpu, -1)
        if not self._rings:
            raise OSError(errno.ENODEV, "no CPU is online")

    def _open_threads(self, cpus: list[int]) -> None:
        """Open events for all threads, until a list of the threads shows no new one: those are started by threads without an event."""
        self.scope = "threads"
        seen: set[int] = set()
        for _ in range(_MOST_PASSES):
            fresh = [tid for tid in optional(self.fs.tids, self.pid, default=[]) if tid not in seen]
            if not fresh:
                break
            self._raise_nofile((len(seen) + len(fresh)) * len(cpus))
            for tid in fresh:
                for cpu in cpus:
                    self._open_cpu(cpu, tid)
            seen.update(fresh)
        if not self._rings:
            raise ProcessLookupError(errno.ESRCH, f"no thread of {self.pid} is left")

    def _open_cpu(self, cpu: int, tid: int) -> None:
        """An event of a thread (-1: of all processes) on a CPU, which shares the CPU's ring."""
        try:
            fd = perf.open_event(self._attr(), tid, cpu)
        except OSError as error:
            if isinstance(error, GONE) or error.errno in (errno.ENODEV, errno.ENXIO):  # it ended; the CPU went offline
                return
            raise
        try:
            shared = self._rings.get(cpu)
            if shared is not None:
                perf.control(fd, perf.SET_OUTPUT, shared.fds[0])
                shared.fds.append(fd)
            else:
                self._rings[cpu] = _CpuRing(fd, self._ring(fd))
        except BaseException:
            perf.close(fd)
            raise

    def _ring(self, fd: int) -> perf.Ring:
        """As large as the limits of locked memory allow (kernel.perf_event_mlock_kb, RLIMIT_MEMLOCK)."""
        while True:
            try:
                return perf.Ring(fd, self._pages)
            except OSError:
                if self._pages * mmap.PAGESIZE // 2 < _FEWEST_RECORDS * (self.stack_bytes + _SAMPLE_BYTES):
                    raise
                self._pages //= 2

    def _raise_nofile(self, fds: int) -> None:
        """Raise the soft limit of our open files as far as needed and permitted."""
        soft, hard = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = fds + 256
        if soft not in (resource.RLIM_INFINITY, hard) and soft < needed:
            self._nofile = self._nofile or limits
            wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
