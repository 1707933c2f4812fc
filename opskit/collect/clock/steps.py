"""Watch the clock for steps and for its rate, ten times a second."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from opskit.collect.clock.facts import Rate, Step
from opskit.proc.kernel.clock_reads import read_pair

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.proc.kernel.clock_reads import ClockPair

EACH_S = 0.1
_LEAST_STEP_NS = 1_000_000
_MOST_STEPS = 100
_RATE_S, _MOST_RATE_S = 10.0, 60.0  # over a shorter time the rate is noise


class StepWatch:
    """Steps since it was made, the last hundred of them, and the rate in the last minute."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._first = self._base = host.fs.calls.ask(read_pair)
        self._pairs: deque[ClockPair] = deque([self._first])
        self.steps: deque[Step] = deque(maxlen=_MOST_STEPS)
        self.total = 0  # with those that are no longer kept
        self.is_leap = False  # a leap second is due: the kernel inserts it by a step of a second

    def watch(self, until_s: float) -> None:
        """Look until this time of the monotonic clock, or until the clock is set: at most ten times a second."""
        until_s = self._host.end_at(until_s)
        while (left_s := until_s - self._host.monotonic()) > 0:
            self._host.step(min(left_s, EACH_S))
            if self.look():
                return

    def look(self) -> bool:
        """Whether the clock was set since the last look. Small steps add up until they are seen."""
        now = self._host.fs.calls.ask(read_pair)
        by_ns = now.real_ns - self._base.real_ns
        self._keep(now)
        if abs(by_ns) <= _LEAST_STEP_NS + now.width_ns + self._base.width_ns:
            return False
        self._base = now
        stamp = self._host.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        at_s = now.at_s - self._first.at_s
        self.total += 1
        self.steps.append(Step(at_s, by_ns / 1e9, stamp, self.is_leap and abs(abs(by_ns) / 1e9 - 1) < 0.01))
        return True

    @property
    def watched_s(self) -> float:
        """How long."""
        return self._pairs[-1].at_s - self._first.at_s

    def rate(self) -> Rate | None:
        """Over the last minute; None: too short yet."""
        first, last = self._pairs[0], self._pairs[-1]
        window_s = last.at_s - first.at_s
        return (
            Rate((last.corrected_ns - first.corrected_ns) / window_s / 1e3, window_s) if window_s >= _RATE_S else None
        )

    def _keep(self, pair: ClockPair) -> None:
        """One pair a second is enough."""
        if len(self._pairs) > 1 and self._pairs[-1].at_s - self._pairs[-2].at_s < 1.0:
            self._pairs.pop()
        self._pairs.append(pair)
        while len(self._pairs) > 2 and pair.at_s - self._pairs[0].at_s > _MOST_RATE_S:
            self._pairs.popleft()
