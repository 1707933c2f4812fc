"""How long a JVM has stood still at safepoints, by its own counters, read cheaply enough to be asked around each sample."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.jvm.hsperfdata import PerfData, parse_hsperfdata

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_LARGEST_FILE_BYTES = 16 << 20
_SYNC_APART_FROM = 13  # until then, sun.rt.safepointTime had the time until all threads stood still in it


def stopped_s(perf: PerfData) -> float | None:
    """Seconds at safepoints since the JVM's start, from the moment the first thread was stopped; None: not counted."""
    stopped = perf.ticks_s("sun.rt.safepointTime")
    if stopped is None:
        return None
    release = (perf.text("java.property.java.vm.specification.version") or "").partition(".")[0]
    apart = release.isdigit() and int(release) >= _SYNC_APART_FROM
    return stopped + ((perf.ticks_s("sun.rt.safepointSyncTime") or 0.0) if apart else 0.0)


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
            return stopped_s(parse_hsperfdata(data, self._path))
        except (OSError, BadInput):
            return None
