"""How long a JVM has stood still at safepoints, by its own counters, read cheaply enough to be asked around each sample."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.jvm.perfdata.hsperfdata import PerfData, parse_hsperfdata
from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_LARGEST_FILE_BYTES = 16 << 20
_WANTED = frozenset(
    (
        b"sun.rt.safepointTime",
        b"sun.rt.safepointSyncTime",
        b"sun.os.hrt.frequency",
        b"java.property.java.vm.specification.version",
    )
)
_SYNC_APART_FROM = 13  # until then, sun.rt.safepointTime had the time until all threads stood still in it


def whole_stop_s(jdk: int | None, time_s: float, sync_s: float | None) -> float:
    """The whole stopped time out of safepointTime and safepointSyncTime, on the same footing for every JDK."""
    return time_s + (sync_s or 0.0) if jdk is not None and jdk >= _SYNC_APART_FROM else time_s


def jdk_of(perf: PerfData) -> int | None:
    """The feature release (8, 17, …) that the counters name."""
    text = perf.text("java.property.java.vm.specification.version") or perf.text("java.property.java.version") or ""
    first, _, rest = text.partition(".")
    number = rest.partition(".")[0] if first == "1" else first
    return integer(number)


def stopped_s(perf: PerfData) -> float | None:
    """Seconds at safepoints since the JVM's start, from the moment the first thread was stopped; None: not counted."""
    time_s = perf.ticks_s("sun.rt.safepointTime")
    return None if time_s is None else whole_stop_s(jdk_of(perf), time_s, perf.ticks_s("sun.rt.safepointSyncTime"))


class StopClock:
    """Reads the counter of one JVM again and again."""

    def __init__(self, fs: ProcFS, perf: PerfData | None) -> None:
        """`perf`: the counters as they were found; None, or with a file that is gone, and nothing is ever known."""
        self.fs = fs
        self._path = perf.source if perf is not None and perf.source.startswith("/") else None

    def read_s(self) -> float | None:
        """Seconds since the JVM's start; None where the JVM does not say."""
        if self._path is None:
            return None
        directory, name = posixpath.split(self._path)
        try:
            _, data = self.fs.read_untrusted(directory, name, _LARGEST_FILE_BYTES)
            return stopped_s(parse_hsperfdata(data, self._path, _WANTED))
        except (OSError, BadInput):
            return None
