"""Take class histograms of a running JVM, on a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.cpu_contention import Contention, read_contention
from opskit.collect.heap_size import heap_size
from opskit.collect.jmap_diff import Facts, Limits, Sample, Target
from opskit.collect.memory_limits import read_limits, read_room
from opskit.collect.replayed import go_to_reply, recorded_samples, taken_s
from opskit.collect.schedule import schedule
from opskit.errors import CannotWrite, NotSupported, OpskitError
from opskit.jvm.attach.connect import client_of
from opskit.jvm.discover import find_jvm
from opskit.jvm.dumps.heap_info import HeapInfo, parse_heap_info
from opskit.jvm.dumps.histogram_reader import parse_histograms
from opskit.jvm.logs.timestamps import Stamp
from opskit.jvm.memory.direct_memory import DirectMemory
from opskit.jvm.perfdata.counters import heap
from opskit.jvm.perfdata.gc_counts import COLLECTION_COUNTERS, GcCounts, gc_counts
from opskit.jvm.perfdata.stop_clock import STOP_COUNTERS, CounterReader, stopped_s
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.recorded.replies import HISTOGRAM
from opskit.quantities import duration, plural, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.jvm.perfdata.hsperfdata import PerfData

# Measured: 160 million small objects, 3.7 GiB, G1, JDK 17, 2 CPUs.
_S_PER_GIB, _LIVE_S_PER_GIB = 2.3 / 3.7, 9.4 / 3.7
_LEAST_S, _LIVE_LEAST_S = 0.005, 0.02
_TIMEOUT_S, _TIMEOUT_PAUSES = 30.0, 10
_METASPACE, _CLASS_SPACE = "sun.gc.metaspace.used", "sun.gc.compressedclassspace.used"
_COUNTERS = STOP_COUNTERS | COLLECTION_COUNTERS | {_METASPACE.encode(), _CLASS_SPACE.encode()}
_MOST_KEPT = 64  # of a watch without an end; a trend needs no more
_NOTABLE_STRETCH = 1.25
_TREND = 3  # as many histograms make one


class Request(NamedTuple):
    """Which histograms to take: every `interval_s` seconds, `histograms` of them (None: until Ctrl-C).

    `live`: reachable objects only; each histogram runs a full GC. `timeout_s`: how long to wait for one; None: by its estimated pause.
    """

    pid: int
    interval_s: float
    histograms: int | None
    live: bool = False
    timeout_s: float | None = None


def pause_estimate_s(used_bytes: int, *, live: bool) -> float:
    """About how long one histogram pauses a JVM, in seconds."""
    per_gib, least = (_LIVE_S_PER_GIB, _LIVE_LEAST_S) if live else (_S_PER_GIB, _LEAST_S)
    return max(least, used_bytes / (1 << 30) * per_gib)


class Collector:
    """The histograms of one JVM so far. `pause_s` and `cost`, a sentence, estimate what each one costs."""

    def __init__(self, host: Host, ask: Request, save: Callable[[str, bytes], str] | None = None) -> None:
        """`save(name, raw text)` keeps a histogram and gives its path. Nothing is sent to the JVM before look()."""
        host.prove_asking(ask.pid)
        self.host, self.ask, self._save = host, ask, save
        jvm = find_jvm(host.fs, ask.pid, host.clock_ticks)
        if host.is_recorded:
            self.ask = ask = ask._replace(histograms=_of_capture(host, jvm, ask))
        self.pause_s, self.cost = _cost(host, jvm, ask)
        timeout_s = ask.timeout_s or max(_TIMEOUT_S, _TIMEOUT_PAUSES * self.pause_s)
        self._client = client_of(host.fs, ask.pid, timeout_s)
        self._counters = CounterReader(host.fs, jvm.perf, _COUNTERS)
        self._direct = DirectMemory(host.fs, ask.pid)
        self._samples: list[Sample] = []
        self._taken = 0
        self._saved: list[str] = []
        self._target = _target(host, jvm)
        self._limits = Limits()

    def look(self) -> Facts:
        """Take one more histogram. Raises CannotWrite, and what AttachClient raises."""
        at, begun_s, before = self.host.now(), self.host.monotonic(), self._counters.read()
        text = self._client.histogram(live=self.ask.live)
        after = self._counters.read()
        self._taken += 1
        if self._save is not None:
            name = f"histogram-{self.ask.pid}-{at:%Y%m%dT%H%M%S}.{at.microsecond // 1000:03d}Z.txt"
            self._saved.append(self._save(name, text.encode("utf-8", "backslashreplace")))
        # A class's name may look like another histogram: the first one counts.
        found = parse_histograms(text, f"histogram {self._taken} of {self.ask.pid}")
        stamp = Stamp(at.timestamp(), begun_s, self.ask.pid)
        if self.host.is_recorded:
            at_s = taken_s(self.host, self.ask.pid, HISTOGRAM)
            stamp = Stamp(at_s, at_s, self.ask.pid)
        histogram = found[0]._replace(stamp=stamp)
        info = self._heap_info(after)
        then, now = (_counts(perf, info) for perf in (before, after))
        pause_s = None if self.host.is_recorded else _pause_s(before, after)
        sample = Sample(histogram, pause_s, then, now, info, self._direct.read_bytes())
        self._samples = [*_thinned(self._samples), sample]
        if self._taken == _TREND:
            self._limits = read_limits(self._client)
            if self._target.heap_max_bytes is None and self._limits.heap is not None:
                self._target = self._target._replace(heap_max_bytes=round(self._limits.heap))
        if self._taken >= _TREND:
            self._limits = self._limits._replace(room=read_room(self.host, self.ask.pid))
        return self._facts()

    def _heap_info(self, perf: PerfData | None) -> HeapInfo | None:
        """The heap and Metaspace now; None where the JVM does not answer. JDK 25 leaves Metaspace out: its counters have it."""
        try:
            info = parse_heap_info(self._client.jcmd("GC.heap_info"))
        except OpskitError:
            return None
        if perf is None or info.metaspace_bytes is not None:
            return info
        return info._replace(metaspace_bytes=perf.number(_METASPACE), class_space_bytes=perf.number(_CLASS_SPACE))

    def collect(self, progress: Callable[[str], None]) -> Facts:
        """Take all of them. After Ctrl-C or an error, the facts have those taken so far; without any, the error is raised."""
        ask, late = self.ask, 0
        interrupted, ended = False, None
        try:
            replayed = ((number, 0.0) for number in range(1, 1 + (ask.histograms or 0)))
            for number, late_s in (
                replayed if self.host.is_recorded else schedule(self.host, ask.interval_s, ask.histograms)
            ):
                if self.host.is_recorded:
                    go_to_reply(self.host, ask.pid, HISTOGRAM, next_one=number > 1)
                late += late_s > ask.interval_s / 2
                self.look()
                if number != ask.histograms:
                    taken = f"{number} of {plural(ask.histograms or 0, 'histogram')} taken"
                    progress(f"{taken}; the next in {ask.interval_s:g} s; Ctrl-C shows what there is so far")
        except KeyboardInterrupt:
            interrupted = True
        except OpskitError as error:
            if not self._samples or isinstance(error, CannotWrite):
                raise
            ended = error
        return self._facts()._replace(late=late, interrupted=interrupted, error=ended)

    def _facts(self) -> Facts:
        saved = None if self._save is None else [*self._saved]
        return Facts(
            [*self._samples], self._target, self.ask.live, saved, limits=self._limits, replayed=self.host.is_recorded
        )


def _of_capture(host: Host, jvm: Jvm, ask: Request) -> int:
    """As many histograms as a capture has, at most so many as are asked for (None: all). Raises NotSupported where it has one."""
    client_of(host.fs, jvm.pid).histogram(live=ask.live)  # raises what says why there is none
    found = recorded_samples(host, jvm.pid, HISTOGRAM, ask.histograms)
    if found < 2:
        who = f"{jvm.pid} ({jvm.main})"
        raise NotSupported(
            f"the capture has one class histogram of {who}, and one shows no growth; capture with --ask --what histogram -c 2"
        )
    return found


def _thinned(samples: list[Sample]) -> list[Sample]:
    """All of them; of too many every second one, and the first: a long watch keeps its whole length in bounded memory."""
    return samples if len(samples) < _MOST_KEPT else samples[::2]


def _pause_s(before: PerfData | None, after: PerfData | None) -> float | None:
    stops = [stopped_s(perf) for perf in (before, after) if perf is not None]
    return stops[1] - stops[0] if len(stops) == 2 and stops[0] is not None and stops[1] is not None else None


def _counts(perf: PerfData | None, info: HeapInfo | None) -> GcCounts | None:
    """The collections of the counters; without them the collector alone."""
    return gc_counts(perf) if perf is not None else info and GcCounts(info.collector)


def _target(host: Host, jvm: Jvm) -> Target:
    perf = jvm.perf
    sizes = heap(perf) if perf else None
    jdk = (perf.text("java.property.java.version") or perf.text("java.property.java.vm.version")) if perf else None
    unit = unit_of(host.fs.maybe(parse_cgroup, jvm.pid, "cgroup", default=[]))
    return Target(jvm.pid, jvm.start_ticks, jvm.main, jdk, unit, sizes.max_bytes if sizes else None)


def _cost(host: Host, jvm: Jvm, ask: Request) -> tuple[float, str]:
    """The estimated pause in seconds, and a sentence about it."""
    if host.is_recorded:
        return 0.0, f"{plural(ask.histograms or 0, 'class histogram')} of {jvm.pid} ({jvm.main}) in the capture"
    used, what = heap_size(host, jvm.pid, jvm.perf)
    contention = read_contention(host, jvm.pid)
    pause_s = pause_estimate_s(used or 0, live=ask.live) * contention.stretch
    walks_reachable = jvm.perf is not None and gc_counts(jvm.perf).walks_reachable
    how = "each histogram, by a full GC," if ask.live and not walks_reachable else "each histogram"
    lasts = duration(float(f"{pause_s:.2g}"))
    return pause_s, f"{jvm.pid} ({jvm.main}): {what} {size(used)}: {how} stops it for about {lasts}{_why(contention)}"


def _why(contention: Contention) -> str:
    """What makes the pause longer than on an idle machine; empty: nothing."""
    quota, cpus = contention.quota_cpus, plural(contention.cpus, "CPU")
    if contention.stretch < _NOTABLE_STRETCH:
        return ""
    times = f", {contention.stretch:.1f} times as long as on an idle machine: "
    if quota is not None and contention.cpus / quota >= contention.stretch:
        return f"{times}its cgroup has a quota of {quota:g} of {cpus}"
    return f"{times}{plural(round(contention.others), 'thread')} of other processes for {cpus}"
