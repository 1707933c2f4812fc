"""Read every JVM: its counters, CPU, memory, cgroup limits, and whether opskit could attach to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jvm_troubles import Killed, Stall, killed_before, killed_meanwhile, sleeps, stalls, vm_thread
from opskit.errors import BadInput, NoSuchProcess, NotAJvm, NotPermitted
from opskit.jvm.attach.target import Stopped, frozen_in, why_stopped
from opskit.jvm.discover import Survey, check_identifiable, find_jvm, survey
from opskit.jvm.launch import jdk_release, parse_words
from opskit.jvm.perfdata.counters import GcWork, Heap, gc_work, heap, running_pause_s
from opskit.jvm.perfdata.generations import GENERATION_COUNTERS, Generations, generations
from opskit.jvm.perfdata.stop_clock import CounterReader, stopped_s
from opskit.proc.cgroup.limits import CpuLimit, MemoryLimit, cpu_limit, frozen_by, memory_limit, oom_kills
from opskit.proc.cgroup.owner import CgroupOwner, owner_of
from opskit.proc.cgroup.tree import cgroup_mounts, levels_of, parse_cgroup
from opskit.proc.files.boot_time import age_s, parse_uptime
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.visibility import coverage_lines
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Optional

    from opskit.host import Host
    from opskit.jvm.attach.attachable import Attachable
    from opskit.jvm.discover import Jvm
    from opskit.jvm.perfdata.hsperfdata import PerfData
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.files.mountinfo import Mount

    # (PID, start ticks): a later process with the same PID is another one.
    Key = tuple[int, Optional[int]]


_STEP_S, _STEP_EACH_S = 0.25, 0.02  # between looks at the generations: with many JVMs it takes 2 % of a CPU


class Request(NamedTuple):
    """What to read, without `pids` and `uids` of every JVM; twice, `window_s` apart; `history`: keep the readings of all looks."""

    pids: tuple[int, ...] = ()
    uids: frozenset[int] = frozenset()
    window_s: float | None = None
    history: bool = False


class Reading(NamedTuple):
    """The numbers of a JVM that change. CPU, pauses and periods count since its start (or its cgroup's); None: unknown."""

    at_s: float  # of a clock that only goes forward
    age_s: float | None
    cpu_s: float | None
    gc: GcWork
    stopped_s: float | None  # at safepoints
    cpu: CpuLimit | None
    heap: Heap | None
    rss_bytes: int | None
    threads: int | None
    file_bytes: int | None = None  # of the resident memory: mapped files, which the kernel reclaims
    generations: Generations | None = None  # Serial, Parallel, CMS, G1
    between: Sequence[tuple[float, Generations]] = ()  # since the reading before


class Seen(NamedTuple):
    """One JVM. `release` is its JDK's version where its counters lack it; `words` are its command line. None: unknown."""

    jvm: Jvm
    reading: Reading
    user: str
    place: CgroupOwner | None
    memory: MemoryLimit | None
    attach: Attachable | None
    release: str | None
    words: tuple[str, ...] = ()
    stopped: Stopped | None = None  # by a signal, a debugger or its cgroup
    memory_levels: tuple[Level, ...] = ()
    oom_kills: Mapping[str, int] = {}  # by cgroup, as of this look
    vm_thread: int | None = None
    vm_sleeps: int | None = None

    @property
    def key(self) -> Key:
        """Its identity."""
        return self.jvm.pid, self.jvm.start_ticks


class Facts(NamedTuple):
    """One look, and the readings `before` it."""

    seen: Sequence[Seen]
    before: Mapping[Key, Reading]
    history: Sequence[tuple[float, Mapping[Key, Reading]]]  # seconds since the first look, readings; if asked for
    scanned: int
    denied: int
    vanished: int
    users: Sequence[str]  # names of those asked about
    advice: str | None  # what to do about missing rights
    coverage: Sequence[str]  # sentences about processes that were not read
    complete: bool  # no process of a copy is unreadable
    killed: Sequence[Killed] = ()  # by the OOM killer
    stalls: Mapping[int, Stall] = {}  # by PID: no safepoint is reached


class Collector:
    """Look once, or repeatedly for a watch."""

    def __init__(self, host: Host, ask: Request) -> None:
        self.host, self.ask = host, ask
        self._before: dict[Key, Reading] = {}
        self._history: list[tuple[float, Mapping[Key, Reading]]] = []
        self._begun = host.monotonic()
        self._last: dict[Key, Seen] = {}
        self._clocks: list[tuple[Key, CounterReader]] = []
        self._between: dict[Key, list[tuple[float, Generations]]] = {}
        self._killed: list[Killed] = []
        self._has_looked = False

    def look(self) -> Facts:
        """Read every JVM that was asked for. Raises NoSuchProcess when all of them have ended, NotAJvm, NotPermitted."""
        if self.ask.window_s is not None and not self._before:
            now_s = self._now_s()
            first = self._read(self._find()[0], now_s)
            self._before = {seen.key: seen.reading for seen in first}
            self._clocks = self._generation_clocks(first)
            self.sleep(self.ask.window_s)
        known = len(self._killed)
        if not self._has_looked:
            self._has_looked = True
            self._killed += killed_before(self.host, self.ask.pids) if not self.ask.uids else ()
        now_s = self._now_s()
        found, ended = self._find()
        self._note_killed(found)
        if ended is not None and not found.jvms and len(self._killed) == known:
            raise ended
        seen = [
            each._replace(reading=each.reading._replace(between=self._between.get(each.key, ())))
            for each in self._read(found, now_s)
        ]
        self._between, self._clocks = {}, self._generation_clocks(seen)
        self._last = {each.key: each for each in seen}
        slow = stalls(self.host, seen)
        from opskit.jvm.attach.attachable import NO_SAFEPOINT

        seen = [each._replace(attach=NO_SAFEPOINT) if each.attach and each.jvm.pid in slow else each for each in seen]
        before, self._before = self._before, {each.key: each.reading for each in seen}
        if self.ask.history:
            self._history.append((self.host.monotonic() - self._begun, self._before))
        fs = self.host.fs
        foreign = any(isinstance(each.jvm.no_perf, NotPermitted) for each in seen)
        counts = len(found.scanned), len(found.denied), len(found.vanished)
        # A JVM whose maps are unreadable is recognized by its threads or command line.
        coverage = coverage_lines(fs, counts[0], found.denied, counts[2], may_be_meant=not seen)
        return Facts(
            seen, before, self._history, *counts,
            users=[self.host.user_name(uid) for uid in sorted(self.ask.uids)],
            advice=how_to_be_allowed(fs, "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH") if foreign else None,
            coverage=list(coverage),
            complete=fs.is_live or not found.denied,
            killed=tuple(self._killed),
            stalls=slow,
        )  # fmt: skip

    def sleep(self, seconds: float) -> None:
        """Wait for the next look. Meanwhile read the generations: between collections of the old one, its growth is promotion."""
        end_s = self.host.end_of(seconds)
        step_s = max(_STEP_S, _STEP_EACH_S * len(self._clocks))
        while self._clocks and self.host.monotonic() + 2 * step_s < end_s and self.host.can_look_after(step_s):
            self.host.sleep(step_s)
            for key, clock in self._clocks:
                perf = clock.read()
                now = None if perf is None else generations(perf)
                if now is not None:
                    self._between.setdefault(key, []).append((self.host.monotonic(), now))
        self.host.sleep(max(0.0, end_s - self.host.monotonic()))

    def _generation_clocks(self, seen: Sequence[Seen]) -> list[tuple[Key, CounterReader]]:
        return [
            (each.key, CounterReader(self.host.fs, each.jvm.perf, GENERATION_COUNTERS))
            for each in seen
            if each.reading.generations is not None
        ]

    def _find(self) -> tuple[Survey, NoSuchProcess | None]:
        """The JVMs that were asked for, without those that ended since the last look or were killed, and the error for these."""
        fs, ask, known = self.host.fs, self.ask, self._before
        if not ask.pids:
            found = survey(fs, self.host.clock_ticks)
            check_identifiable(fs, found)
            return found._replace(jvms=[jvm for jvm in found.jvms if not ask.uids or jvm.uid in ask.uids]), None
        found = Survey([], [], [], [])
        ended: NoSuchProcess | None = None
        for pid in ask.pids:
            jvm = None
            try:
                jvm = find_jvm(fs, pid, self.host.clock_ticks)
            except (NoSuchProcess, NotAJvm):  # later also a zombie, or another program with that PID
                if not known and all(pid != killed.pid for killed in self._killed):
                    raise
            if jvm is None or (known and (pid, jvm.start_ticks) not in known):
                ended = NoSuchProcess(pid, "it ended while it was watched")
            elif not ask.uids or jvm.uid in ask.uids:
                found.jvms.append(jvm)
        return found, ended

    def _note_killed(self, found: Survey) -> None:
        """Note the JVMs that were killed since the last look."""
        alive = {(jvm.pid, jvm.start_ticks) for jvm in found.jvms}
        gone = [seen for key, seen in self._last.items() if key not in alive]
        self._killed += killed_meanwhile(self.host, gone)

    def _now_s(self) -> float | None:
        """The wall clock before the counters are read, so that no pause seems longer than it is; None: a copy, which has no now."""
        return self.host.now().timestamp() if self.host.fs.is_live else None

    def _read(self, found: Survey, now_s: float | None) -> list[Seen]:
        mounts = cgroup_mounts(self.host.fs, found.jvms[0].pid) if found.jvms else []
        ours = self.host.our_ids if self.host.is_own else None
        seen = []
        for jvm in found.jvms:
            try:
                seen.append(see_jvm(self.host, jvm, mounts, ours, now_s))
            except GONE:
                pass
            except (DENIED, BadInput):
                found.denied.append(jvm.pid)
        return seen


def see_jvm(
    host: Host,
    jvm: Jvm,
    mounts: list[Mount],
    ours: tuple[int, int] | None,
    now_s: float | None,
    at_s: float | None = None,
) -> Seen:
    """What is seen of a JVM with these counters. `ours`: our IDs, for whether it could be attached to; None: unknown.

    `now_s`, `at_s`: by the wall clock and by the host's when its counters were read; `at_s` None: about now. Raises GONE and DENIED.
    """
    fs = host.fs
    tid = vm_thread(host, jvm.pid) if jvm.perf is not None and fs.is_live else None
    slept = sleeps(host, jvm.pid, tid)
    stat = fs.load(parse_stat, jvm.pid, "stat")
    status = fs.load(parse_status, jvm.pid, "status")
    place, memory, cpu, frozen, levels = _cgroups(host, jvm, mounts)
    gc, stopped = _stops(jvm.perf, now_s)
    reading = Reading(
        at_s=host.monotonic() if at_s is None else at_s,
        age_s=age_s(fs.maybe(parse_uptime, "uptime"), stat.start_ticks, host.clock_ticks),
        cpu_s=(stat.user_ticks + stat.system_ticks) / host.clock_ticks,
        gc=gc,
        stopped_s=stopped,
        cpu=cpu,
        heap=heap(jvm.perf) if jvm.perf else None,
        rss_bytes=status.bytes_of("VmRSS"),
        threads=stat.threads,
        file_bytes=status.bytes_of("RssFile"),
        generations=generations(jvm.perf) if jvm.perf else None,
    )
    attach = None
    if ours is not None:
        from opskit.jvm.attach.attachable import attachable

        attach = attachable(fs, jvm, status, stat.state, frozen, ours)
    release = None if jvm.perf else jdk_release(fs, jvm).get("JAVA_VERSION")
    words = tuple(fs.maybe(parse_words, jvm.pid, "cmdline", default=()))
    return Seen(
        jvm, reading, host.user_name(jvm.uid), place, memory, attach, release, words,
        stopped=why_stopped(fs, jvm.pid, stat.state, frozen=False) or (frozen_in(frozen) if frozen else None),
        memory_levels=levels, oom_kills=oom_kills(fs, levels), vm_thread=tid, vm_sleeps=slept,
    )  # fmt: skip


def _stops(perf: PerfData | None, now_s: float | None) -> tuple[GcWork, float | None]:
    """GC work and time at safepoints, with the pause that is going on. `now_s` None: unknown."""
    if perf is None:
        return GcWork(None, None, None), None
    work, stopped = gc_work(perf), stopped_s(perf)
    going_on_s = 0.0 if now_s is None else running_pause_s(perf, now_s)
    if work.pause_s is not None:
        work = work._replace(pause_s=work.pause_s + going_on_s)
    return work, None if stopped is None or stopped < 0 else stopped + going_on_s


def _cgroups(
    host: Host, jvm: Jvm, mounts: list[Mount]
) -> tuple[CgroupOwner | None, MemoryLimit | None, CpuLimit | None, str | None, tuple[Level, ...]]:
    """Its container, pod or unit; its tightest memory limit and CPU quota; the cgroup that is frozen; those of its memory."""
    memberships = host.fs.maybe(parse_cgroup, jvm.pid, "cgroup")
    if memberships is None:
        return None, None, None, None, ()
    fs, names = host.fs, ("memory", "cpu", "freezer")
    memory, cpu, freezer = (levels_of(fs, memberships, controller, mounts) for controller in names)
    if not freezer and memory and memory[0].version == 2:
        freezer = memory
    limit, quota = memory_limit(fs, memory) if memory else None, cpu_limit(fs, cpu) if cpu else None
    return owner_of(memberships), limit, quota, frozen_by(fs, freezer) if freezer else None, memory or ()
