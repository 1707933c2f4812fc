"""Samples of what a process runs on the CPUs, by perf_event_open(2): registers, a copy of the stack, the kernel's frames.

    with CpuSampler(fs, pid, hz=99) as sampler:
        sleep(sampler.pause_s)
        for sample in sampler.drain(): …

A software cpu-clock interrupts every 1/hz seconds of CPU time. Nothing is sent to the process, and nothing of it stops.
A sample of another process is dropped before it is copied.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.fs import GONE
from opskit.proc.kernel import perf_event as perf
from opskit.proc.kernel.sample_events import LONGEST_PAUSE_S, SampleEvents, Scope
from opskit.records import NamedTuple

if TYPE_CHECKING:
    import mmap
    from collections.abc import Sequence
    from types import TracebackType

    from opskit.proc.fs import ProcFS
    from opskit.proc.kernel.sample_events import CpuRing

__all__ = ["LARGEST_STACK_BYTES", "LONGEST_PAUSE_S", "CpuSampler", "Sample", "Scope", "read_sample"]

STACK_BYTES, LARGEST_STACK_BYTES = 16 << 10, 65528  # the kernel takes multiples of 8 below 64 KiB
_SHORTEST_PAUSE_S = 0.02
_ABI_64 = 2
_MARKERS = (1 << 64) - 4095  # PERF_CONTEXT_KERNEL, …
_HEAD, _HEAD_BYTES, _IDS_AT = struct.Struct("=QIIQ"), 24, 8  # ip, pid, tid, time
_TWO_IDS, _FORK = struct.Struct("=II"), struct.Struct("=IIII")
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


class CpuSampler:
    """Samples one process from its start until `close`. `scope`: as asked for, or else the widest that is permitted.

    `names`: of threads that were started or renamed meanwhile, as the kernel cuts them (15 bytes), by TID; without those
    that ended before they were sampled.
    `execs`: how often the process started another program. `pause_s`: how long to wait before the next `drain`.
    """

    def __init__(
        self, fs: ProcFS, pid: int, hz: float, stack_bytes: int = STACK_BYTES, scope: Scope | None = None
    ) -> None:
        """Raise OSError as SampleEvents does."""
        self.fs, self.pid, self.hz, self.stack_bytes = fs, pid, hz, stack_bytes
        self.names: dict[int, str] = {}
        self.execs = 0
        self._lost = 0.0
        self._sampled: set[int] = set()
        self._ended: list[int] = []
        self._events = SampleEvents(fs, pid, hz, stack_bytes, scope)
        self.pause_s = self._events.longest_pause_s

    def __enter__(self) -> CpuSampler:  # noqa: PYI034  (Self is newer than Python 3.9)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def scope(self) -> Scope:
        """Of the events that are open."""
        return self._events.scope

    @property
    def kernel_seen(self) -> bool:
        """Whether samples are taken in the kernel too, with its frames."""
        return self._events.kernel_seen

    @property
    def lost(self) -> int:
        """The samples of the process that the kernel dropped, rounded up.

        Where a ring has samples of other processes too, the process's share in the same drain is taken: the ring has
        the first ones, so that it is an estimate.
        """
        return round(self._lost + 0.4999)

    @property
    def fds(self) -> int:
        """How many fds are open."""
        return self._events.fds

    def stop(self) -> None:
        """Take no more samples; what the rings have is still drained."""
        self._events.control(perf.DISABLE)

    def close(self) -> None:
        """End the events."""
        self._events.close()

    def drain(self) -> list[Sample]:
        """The samples since the last call, CPU by CPU."""
        found: list[Sample] = []
        fill = 0.0
        ended, self._ended = self._ended, []  # all of their samples were drained
        for each in self._events.rings.values():
            self._drain(each, found)
            fill = max(fill, each.ring.fill)
        self._sampled.update([each.tid for each in found])
        for tid in ended:
            if tid not in self._sampled:
                self.names.pop(tid, None)
        if fill > 0.5:
            self.pause_s = max(self.pause_s / 2, _SHORTEST_PAUSE_S)
        elif fill < 0.25:
            self.pause_s = min(self.pause_s * 1.5, self._events.longest_pause_s)
        return found

    def reopen(self, stack_bytes: int) -> list[Sample]:
        """Copy so much of each stack from now on, if there is memory for it. The samples until now. Raises OSError."""
        self.stop()
        found = self.drain()
        self._events.close()
        try:
            self._events = SampleEvents(self.fs, self.pid, self.hz, stack_bytes, self.scope)
            self.stack_bytes = stack_bytes
        except GONE:
            pass  # the process has ended: no event is open
        except OSError:
            self._events = SampleEvents(self.fs, self.pid, self.hz, self.stack_bytes, self.scope)
        self.pause_s = self._events.longest_pause_s
        return found

    def follow_cpus(self) -> None:
        """Sample CPUs that came online, no longer those that went offline. Raises OSError, NotSupported."""
        self._events.follow_cpus()

    def _drain(self, each: CpuRing, found: list[Sample]) -> None:
        ours, id_bytes, first_id = self.pid, self._events.id_bytes, each.first_id
        ids, unpack_word = _TWO_IDS.unpack_from, _WORD.unpack_from
        begun, others, lost = len(found), 0, 0.0
        for kind, misc, data, begin, end in each.ring.waiting():
            if kind != perf.RECORD_SAMPLE:
                lost += self._note(each, kind, misc, bytes(data[begin:end]))
                continue
            pid, tid = ids(data, begin + _IDS_AT)
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

    def _note(self, each: CpuRing, kind: int, misc: int, body: bytes) -> float:
        """Take in a record that is not a sample: how many samples it says are lost."""
        if kind == perf.RECORD_LOST:
            return _TWO_WORDS.unpack_from(body)[1]  # type: ignore[no-any-return]
        if kind == perf.RECORD_THROTTLE:
            time_ns, event = _TWO_WORDS.unpack_from(body)
            each.throttled_ns[event] = time_ns
        elif kind == perf.RECORD_UNTHROTTLE:
            time_ns, event = _TWO_WORDS.unpack_from(body)
            paused_ns: int = time_ns - each.throttled_ns.pop(event, time_ns)
            return max(paused_ns, 0) * self.hz / 1e9
        elif kind == perf.RECORD_COMM:
            pid, tid = _TWO_IDS.unpack_from(body)
            if pid == self.pid:
                self.names[tid] = body[_TWO_IDS.size :].partition(b"\0")[0].decode("utf-8", "surrogateescape")
                self.execs += bool(misc & perf.BY_EXEC)
        elif kind == perf.RECORD_FORK:
            pid, _, tid, parent = _FORK.unpack_from(body)
            if pid == self.pid and parent in self.names:
                self.names[tid] = self.names[parent]
        elif kind == perf.RECORD_EXIT:
            pid, _, tid, _ = _FORK.unpack_from(body)
            if pid == self.pid:
                self._ended.append(tid)
                for ring in self._events.rings.values():
                    ring.first_id.pop(tid, None)  # the TID may be given again
        return 0.0
