"""Profile what a process runs on the CPUs: perf events, unwound from outside by reading its memory."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Literal

from opskit.collect.cpu_rights import check_target, explained
from opskit.collect.cpu_target import UNKNOWN_KERNEL, CpuTarget
from opskit.errors import OpskitError
from opskit.host import scheduled_first
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import optional
from opskit.proc.kernel.cpu_samples import LARGEST_STACK_BYTES, LONGEST_PAUSE_S, CpuSampler, Scope
from opskit.proc.process import command_name
from opskit.proc.thread_cpu import ThreadCpu
from opskit.proc.thread_names import thread_name
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from opskit.collect.cpu_target import Target
    from opskit.host import Host
    from opskit.proc.kernel.cpu_samples import Sample
    from opskit.proc.thread_cpu import ThreadTimes
    from opskit.proc.unwind.cursor import End, Frame

    OpenTarget = Callable[[Host, int], Target]
    # Gets the number of samples so far, and the seconds left.
    Progress = Callable[[int, float], None]

__all__ = ["CpuProfile", "Scope", "StackKey", "ThreadOnCpu", "profile"]

DEFAULT_HZ = 99.0
_LOOK_S = 1.0  # how often to look whether the process and the CPUs are the same
_MOST_WAITING = 4096  # samples that are not unwound yet; then the kernel drops, and counts, further ones
# A larger copy of the stack is worth its cost where more than this share of the walks end at the end of the copy.
_TOO_DEEP_SHARE, _ENOUGH_WALKS = 0.02, 100


class StackKey(NamedTuple):
    """What samples are counted by. `virtual`: the virtual thread that ran on the thread; `tid`: as the process sees it."""

    tid: int
    virtual: str | None
    frames: tuple[Frame, ...]


class ThreadOnCpu(NamedTuple):
    """A thread during the run. `name`: full where the JVM has it; `cpu_ms`, `waited_ms`: by schedstat, None: unknown.

    They are unknown for a thread that ended during the run, as its schedstat ended with it.
    """

    name: str
    cpu_ms: float | None
    waited_ms: float | None
    samples: int


class CpuProfile(NamedTuple):
    """The samples of one run. `threads`: by TID as the process sees it, also those that ended.

    The TID of a thread in another PID namespace that ended before it could be read is that of our namespace, negative.
    `lost`: samples that the kernel dropped. `ends`: how many walks ended how. `cpu_ms`: of the whole process in the time
    that was sampled, with threads that ended; None where the process has ended. `kernel_seen`: whether the kernel's frames
    could be sampled. `debug_non_safepoints`, None: not a JVM, or unknown. `stack_bytes`: how much of each stack was copied
    at the end of the run. `missing`: sentences about what could not be read. `ended`: why the run ended early.
    """

    pid: int
    start_ticks: int | None
    name: str
    hz: float
    elapsed_s: float
    threads: Mapping[int, ThreadOnCpu]
    stacks: Mapping[StackKey, int]
    lost: int
    ends: Mapping[End, int]
    cpu_ms: float | None
    scope: Scope
    kernel_seen: bool
    debug_non_safepoints: bool | None = None
    missing: tuple[str, ...] = ()
    ended: Literal["interrupted", "exited"] | None = None
    stack_bytes: int = 0

    @property
    def samples(self) -> int:
        """All samples of the process that were received."""
        return sum(self.stacks.values())

    @property
    def sampled_ms(self) -> float:
        """The CPU time that the samples stand for: each of them for 1/hz seconds."""
        return self.samples * 1000 / self.hz

    @property
    def explained_share(self) -> float | None:
        """`sampled_ms` of the process's CPU time; None: unknown, or no CPU time. By chance it may be a little above 1.

        Lost samples and, without the kernel's frames, the time in the kernel are missing in it.
        """
        return self.sampled_ms / self.cpu_ms if self.cpu_ms else None


def profile(
    host: Host,
    pid: int,
    hz: float = DEFAULT_HZ,
    duration_s: float = 10.0,
    *,
    scope: Scope | None = None,
    progress: Progress | None = None,
    open_target: OpenTarget = CpuTarget,
) -> CpuProfile:
    """Sample a process for so long; Ctrl-C and its end give what there is so far.

    Raises NotPermitted and NotSupported with the reason, and what to do, where it cannot be sampled or its memory cannot
    be read; NoSuchProcess.
    """
    check_target(host, pid)
    with scheduled_first():
        run = _Run(host, pid, hz, scope, open_target)
        try:
            return run.sample(duration_s, progress)
        finally:
            run.close()


class _Run:
    """One run. TIDs of ours are those of our PID namespace, which samples have."""

    def __init__(self, host: Host, pid: int, hz: float, scope: Scope | None, open_target: OpenTarget) -> None:
        self.host, self.pid, self.hz = host, pid, hz
        self._open_target = open_target
        stat = host.fs.maybe(parse_stat, pid, "stat")
        self._start_ticks = None if stat is None else stat.start_ticks
        self._name = command_name(host.fs, pid)
        self._thread_cpu = ThreadCpu(host.fs, pid, host.clock_ticks)
        self._inner: dict[int, int] = {}  # our TID -> that of the process
        self._first_names: dict[int, str] = {}
        self._samples: Counter[int] = Counter()  # by our TID
        self._stacks: Counter[StackKey] = Counter()
        self._ends: Counter[End] = Counter()
        self._waiting: deque[Sample] = deque()
        self._execs = 0
        self._ended: Literal["interrupted", "exited"] | None = None
        with explained(host, pid, "memory"):
            self.target = open_target(host, pid)
        try:
            with explained(host, pid, "events"):
                self.sampler = CpuSampler(host.fs, pid, hz, scope=scope)
        except BaseException:
            self.target.close()
            raise

    def close(self) -> None:
        """End the sampling."""
        self.sampler.close()
        self.target.close()

    def sample(self, duration_s: float, progress: Progress | None) -> CpuProfile:
        """Run until the end of the time, Ctrl-C, or the end of the process."""
        host, ticks = self.host, self._cpu_ticks()
        self.sampler.drain()  # earlier samples are not part of that CPU time
        begun_s = host.monotonic()
        before = self._thread_cpu.read()
        try:
            self._sample_until(begun_s + duration_s, progress)
        except KeyboardInterrupt:
            self._ended = "interrupted"
        self.sampler.stop()
        ended_s, after_ticks = host.monotonic(), self._cpu_ticks()
        after = self._thread_cpu.read()
        if self._ended is None and not self._is_running():
            self._ended = "exited"
        self._drain()
        self._finish_waiting()
        known = ticks is not None and after_ticks is not None and self._ended != "exited"
        return CpuProfile(
            pid=self.pid,
            start_ticks=self._start_ticks,
            name=self._name,
            hz=self.hz,
            elapsed_s=ended_s - begun_s,
            threads=self._threads(before, after),
            stacks=self._stacks,
            lost=self.sampler.lost,
            ends=self._ends,
            cpu_ms=((after_ticks or 0) - (ticks or 0)) * 1000 / host.clock_ticks if known else None,
            scope=self.sampler.scope,
            kernel_seen=self.sampler.kernel_seen,
            debug_non_safepoints=self.target.debug_non_safepoints,
            missing=(*self.target.missing, *_unnamed_kernel(self._stacks)),
            ended=self._ended,
            stack_bytes=self.sampler.stack_bytes,
        )

    def _sample_until(self, ends_s: float, progress: Progress | None) -> None:
        now = self.host.monotonic
        look_s = now() + _LOOK_S
        while (left_s := ends_s - now()) > 0:
            if not self._waiting:
                self.host.sleep(min(self.sampler.pause_s, left_s))
            if len(self._waiting) < _MOST_WAITING:
                self._drain()
            self._unwind(now() + self.sampler.pause_s)
            if progress is not None:
                progress(sum(self._ends.values()), max(ends_s - now(), 0.0))
            if now() >= look_s:
                look_s = now() + _LOOK_S
                self._copy_more_of_stacks()
                optional(self.sampler.follow_cpus)
                if not self._is_running():
                    self._ended = "exited"
            if self._ended is not None:
                return

    def _drain(self) -> None:
        self._take(self.sampler.drain())

    def _take(self, found: list[Sample]) -> None:
        """Have these samples unwound, with the memory as it is now."""
        if self.sampler.execs != self._execs:
            self._execs = self.sampler.execs
            self._open_anew()
        if found:
            self.target.refresh()
            self._waiting += found

    def _unwind(self, until_s: float) -> None:
        """Unwind what waits, at most until the next drain is due."""
        waiting, now = self._waiting, self.host.monotonic
        walk, count, ends, stacks = self.target.walk, self._samples, self._ends, self._stacks
        while waiting:
            sample = waiting[0]
            tid = sample.tid
            inner = self._inner.get(tid)
            if inner is None:
                inner = self._meet(tid)
            stack = walk(sample)
            waiting.popleft()
            count[tid] += 1
            ends[stack.end] += 1
            stacks[StackKey(inner, stack.virtual, stack.frames)] += 1
            if now() >= until_s:
                return

    def _meet(self, tid: int) -> int:
        """Note the name of a thread when it is first sampled: it may end soon. Its TID as the process sees it."""
        inner = self._inner[tid] = optional(self._thread_cpu.inner_id, tid, default=-tid)
        name = thread_name(self.host.fs, self.pid, tid)
        self._first_names[tid] = name or self.sampler.names.get(tid) or "?"
        self.target.thread_name(inner)  # it keeps the name
        return inner

    def _copy_more_of_stacks(self) -> None:
        """Go on with the largest copy of the stack where too many walks end at the end of the copy."""
        walks, sampler = sum(self._ends.values()), self.sampler
        is_deep = walks >= _ENOUGH_WALKS and self._ends["dump"] > _TOO_DEEP_SHARE * walks
        if is_deep and sampler.stack_bytes < LARGEST_STACK_BYTES:
            with explained(self.host, self.pid, "events"):
                found = sampler.reopen(LARGEST_STACK_BYTES)
            self._take(found)

    def _open_anew(self) -> None:
        """Another program runs: its memory and its mappings are others."""
        self._finish_waiting()
        self.target.close()
        try:
            self.target = self._open_target(self.host, self.pid)
        except (OSError, OpskitError):
            self._ended = "exited"

    def _finish_waiting(self) -> None:
        while self._waiting:
            self._unwind(self.host.monotonic() + LONGEST_PAUSE_S)

    def _is_running(self) -> bool:
        stat = self.host.fs.maybe(parse_stat, self.pid, "stat")
        if stat is None or stat.start_ticks != self._start_ticks:
            return False
        return stat.state not in ("Z", "X") or stat.threads > 1

    def _cpu_ticks(self) -> int | None:
        stat = self.host.fs.maybe(parse_stat, self.pid, "stat")
        return None if stat is None else stat.user_ticks + stat.system_ticks

    def _threads(self, before: ThreadTimes, after: ThreadTimes) -> dict[int, ThreadOnCpu]:
        """The threads that used a CPU, by their TIDs as the process sees them."""
        ours = {inner: tid for tid, inner in self._inner.items()}
        used = {tid: _since(before.used_ms, after.used_ms, tid) for tid in after.used_ms}
        unsampled = {tid for tid, used_ms in used.items() if used_ms and tid not in ours}
        comms = self._thread_cpu.names(unsampled)
        found = {}
        for tid in sorted({*ours, *unsampled}):
            our_tid = ours.get(tid, 0)
            name = self.target.thread_name(tid) or self.sampler.names.get(our_tid) or self._first_names.get(our_tid)
            waited_ms = _since(before.waited_ms, after.waited_ms, tid)
            found[tid] = ThreadOnCpu(name or comms.get(tid, "?"), used.get(tid), waited_ms, self._samples[our_tid])
        return found


def _unnamed_kernel(stacks: Iterable[StackKey]) -> tuple[str, ...]:
    """A sentence where no function of the kernel has a name."""
    names = {frame.name for key in stacks for frame in key.frames if frame.kind == "kernel"}
    why = "/proc/kallsyms hides them (kernel.kptr_restrict, CAP_SYSLOG)"
    return (f"the names of the kernel's functions are missing: {why}",) if names == {UNKNOWN_KERNEL} else ()


def _since(before: Mapping[int, float], after: Mapping[int, float], tid: int) -> float | None:
    """What a counter of a thread grew by; a thread that was not there before began at 0."""
    now_ms, then_ms = after.get(tid), before.get(tid, 0.0)
    if now_ms is None:
        return None
    return now_ms - then_ms if now_ms >= then_ms else now_ms  # the TID was given again
