"""Total time of a JVM at safepoints, from its own counters."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from opskit.jvm.launch import major_of
from opskit.jvm.perfdata.counters import GC_COUNTERS, gc_work
from opskit.jvm.perfdata.hsperfdata import PerfData, parse_hsperfdata
from opskit.proc.fs import optional

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_LARGEST_FILE_BYTES = 16 << 20
JDK = "java.property.java.vm.specification.version"
_TIME, _SYNC = "sun.rt.safepointTime", "sun.rt.safepointSyncTime"
STOP_COUNTERS = frozenset(name.encode() for name in (_TIME, _SYNC, JDK, "sun.os.hrt.frequency"))
_OF_COLLECTIONS = frozenset(name.encode() for name in GC_COUNTERS)
_SYNC_APART_FROM = 13  # before, sun.rt.safepointTime included the time to safepoint


def whole_stop_s(jdk: int | None, time_s: float, sync_s: float | None) -> float:
    """Time at safepoints including the time to safepoint, in seconds, for any JDK."""
    return time_s + (sync_s or 0.0) if jdk is not None and jdk >= _SYNC_APART_FROM else time_s


def jdk_of(perf: PerfData) -> int | None:
    """The feature release (8, 17, …) in the counters."""
    return major_of(perf.text(JDK) or perf.text("java.property.java.version") or "")


def stopped_s(perf: PerfData) -> float | None:
    """Seconds at safepoints since the JVM's start, time to safepoint included; None if the counters lack it."""
    time_s = perf.ticks_s(_TIME)
    return None if time_s is None else whole_stop_s(jdk_of(perf), time_s, perf.ticks_s(_SYNC))


class CounterReader:
    """Reads some counters of one JVM repeatedly. `perf`: the counters found before; every reading is None without their file."""

    def __init__(self, fs: ProcFS, perf: PerfData | None, wanted: frozenset[bytes] | None) -> None:
        self.fs, self.wanted = fs, wanted
        self._path = perf.source if perf is not None and perf.source.startswith("/") else None

    def read(self) -> PerfData | None:
        """The wanted counters now (`wanted` None: all); None if unknown."""
        return None if self._path is None else optional(self._read, self._path)

    def _read(self, path: str) -> PerfData:
        _, data = self.fs.read_untrusted(*posixpath.split(path), _LARGEST_FILE_BYTES)
        return parse_hsperfdata(data, path, self.wanted)


class StopClock(CounterReader):
    """Reads how long one JVM has been at safepoints."""

    def __init__(self, fs: ProcFS, perf: PerfData | None) -> None:
        super().__init__(fs, perf, STOP_COUNTERS)

    def read_s(self) -> float | None:
        """Seconds at safepoints since the JVM's start; None if unknown."""
        perf = self.read()
        return None if perf is None else stopped_s(perf)


class SamplingClock(CounterReader):
    """Reads how long one JVM has been at safepoints for anything but collections."""

    def __init__(self, fs: ProcFS, perf: PerfData | None) -> None:
        super().__init__(fs, perf, STOP_COUNTERS | _OF_COLLECTIONS)

    def read_s(self) -> float | None:
        """Seconds since the JVM's start; None if unknown. GC pauses are left out where they are counted."""
        perf = self.read()
        stopped = None if perf is None else stopped_s(perf)
        return None if perf is None or stopped is None else stopped - (gc_work(perf).pause_s or 0.0)
