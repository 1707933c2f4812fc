"""How much time a log covers: the denominator of the stopped share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opskit.jvm.logs.timestamps import UNSTAMPED, Stamp, parse_stamp, uptimes_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.logs.safepoints.batch import Batch

_STAMPS_ARE_OFF = 0.1  # a line comes a little after its stop, and its stamp is of milliseconds
_RESTART_S = 1.0  # lines may come a little out of order; an uptime that falls by more is another JVM's


@dataclass
class Elapsed:
    """From the first date to the last; without dates by the time between safepoints that the log names; else by uptimes.

    `first` and `last`: stamps. `restarts`: how often the uptime fell back; each run of the JVM counts by itself.
    """

    first: Stamp = UNSTAMPED
    last: Stamp = UNSTAMPED
    restarts: int = 0
    _unstamped: bool = False
    _uptimes_only: bool = False
    _gaps_s: float = 0.0
    _gaps: int = 0
    _begun_s: float | None = None
    _runs_s: float = 0.0
    _run: list[float] = field(default_factory=list)  # first and last uptime of the run

    def add(self, batch: Batch) -> None:
        """Take in the stamps of a batch, in the order of time."""
        if self._begun_s is None:
            between_s, count = batch.application
            self._gaps_s += between_s
            self._gaps += count
        if not len(batch):
            return
        first, self.last = parse_stamp(batch.head(0)), parse_stamp(batch.head(-1))
        if first is UNSTAMPED and len(batch) > 1 and not self._unstamped:  # a line whose beginning was cut off
            first = parse_stamp(batch.heads[1])
        if self.first is UNSTAMPED:
            self.first = first
            self._begun_s = None if first.time_s is None else first.time_s - batch.stops_s[0]
        self._unstamped |= first is UNSTAMPED
        if first.time_s is None and first.uptime_s is not None:
            self._uptimes_only = True
            # Where the log has the time between safepoints, the first and the last uptime are enough.
            has_all = batch.application[1] >= len(batch) - 1 and self.last.uptime_s is not None
            uptimes = [first.uptime_s, self.last.uptime_s or 0.0] if has_all else uptimes_s(batch.heads)
            self._add_uptimes(uptimes, batch.stops_s)

    def _add_uptimes(self, uptimes: Sequence[float], stops_s: Sequence[float]) -> None:
        if not self._run:
            self._run = _run(uptimes[0], stops_s[0])
        elif uptimes[0] < self._run[1] - _RESTART_S:
            self._restart(uptimes[0], stops_s[0])
        if uptimes != sorted(uptimes):
            for uptime, stop in zip(uptimes, stops_s):
                if uptime < self._run[1] - _RESTART_S:
                    self._restart(uptime, stop)
                self._run[1] = max(uptime, self._run[1])
        self._run[1] = max(uptimes[-1], self._run[1])

    def _restart(self, uptime_s: float, stop_s: float) -> None:
        self.restarts += 1
        self._runs_s += self._run[1] - self._run[0]
        self._run = _run(uptime_s, stop_s)

    def seconds(self, safepoints: int, stopped_s: float) -> float | None:
        """The time that these safepoints cover, stops included; None where nothing covers all of them."""
        by_gaps = self._gaps_s + stopped_s if self._gaps and self._gaps >= safepoints - 1 else None
        if self._begun_s is None and by_gaps is not None:
            return by_gaps
        stamped = None
        if self._begun_s is not None and self.last.time_s is not None:
            stamped = None if self._uptimes_only else self.last.time_s - self._begun_s
        elif self._run:
            stamped = self._runs_s + self._run[1] - self._run[0]
        # One stamp alone spans nothing but its stop; stamps of a clock that was set, or of a log given twice, span anything.
        if stamped is None or self._unstamped or safepoints < 2 or stamped < stopped_s * (1 - _STAMPS_ARE_OFF):
            return by_gaps
        return max(stamped, stopped_s)


def _run(uptime_s: float, stop_s: float) -> list[float]:
    """A run of the JVM with one stop: what came before it is in another log."""
    return [max(uptime_s - stop_s, 0.0), uptime_s]
