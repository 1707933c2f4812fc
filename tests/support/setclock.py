"""A clock that a test sets."""

from __future__ import annotations

from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.kernel.clock_reads import ClockPair


class SetClock:
    """It goes on by sleeping only. `sets`: by how many ns it is set at which time; `by_ns`: by how many it is set from now on."""

    def __init__(self, sets=(), ppm=0.0):
        self.now_s, self.sets, self.by_ns, self.ppm = 100.0, list(sets), 0, ppm
        self.host = Host(ProcFS())
        self.host.monotonic = lambda: self.now_s
        self.host.sleep = self.sleep

    def sleep(self, seconds):
        self.now_s += seconds

    def read(self):
        by_ns = self.by_ns + sum(by for at_s, by in self.sets if at_s <= self.now_s)
        return ClockPair(self.now_s, 10**18 + by_ns, round((self.now_s - 100) * self.ppm * 1e3), 300)
