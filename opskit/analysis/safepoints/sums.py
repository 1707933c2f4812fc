"""Sums of a log's safepoints: the whole, by operation, the longest; in a fixed amount of memory."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count as numbers
from itertools import repeat
from typing import TYPE_CHECKING, cast

from opskit.analysis.distribution import Distribution, Scratch, percentiles
from opskit.analysis.safepoints.minutes import Minute, Minutes, Timeline
from opskit.analysis.safepoints.stops import Stop, Totals, Window, stops_of, text_of
from opskit.jvm.logs.timestamps import UNSTAMPED, Stamp, parse_stamp, uptimes_s
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.jvm.logs.safepoints.batch import Batch

PERCENTS = (50.0, 90.0, 99.0, 99.9)
_MOST_OPERATIONS = 1000  # HotSpot has about a hundred; a hostile log may have a new one in each line
_OTHERS = b"(others)"
_STAMPS_ARE_OFF = 0.1  # a line comes a little after its stop, and its stamp is of milliseconds
_RESTART_S = 1.0  # lines may come a little out of order; an uptime that falls by more is another JVM's


class Operation(NamedTuple):
    """All safepoints of one VM operation; `name` None: the log does not name it. `share`: of all stopped time."""

    name: str | None
    safepoints: int
    stopped_s: float
    stopped_avg_s: float
    stopped_p99_s: float
    stopped_max_s: float
    ttsp_s: float | None
    share: float | None = None


class Slower(NamedTuple):
    """How many stops are above the threshold that was asked for, and their time."""

    safepoints: int
    stopped_s: float


class Summary(NamedTuple):
    """The sums of a log's safepoints. `percentiles`: (stop, TTSP) for each of PERCENTS.

    `restarts`: how often the uptime fell back. `outside`: safepoints beyond --since and --until; `undated`: those that have
    nothing to compare with.
    """

    totals: Totals
    percentiles: Sequence[tuple[float | None, float | None]]
    operations: Sequence[Operation]
    worst: Sequence[Stop]
    minutes: Sequence[Minute] | None
    slower: Slower | None
    timeline: Timeline | None
    first: Stamp
    last: Stamp
    restarts: int
    outside: int
    undated: int


class Sums:
    """The sums of batches that are added in the order of time.

    `top`: how many of the longest are kept (0: all). `slower_than_s`: keep only those above it.
    """

    def __init__(
        self,
        scratch: Scratch,
        window: Window | None = None,
        top: int = 10,
        slower_than_s: float | None = None,
        *,
        by_minute: bool = False,
        timeline: bool = False,
    ) -> None:
        self._scratch = scratch
        self._window = window if window != Window() else None
        self._timeline = Timeline() if timeline else None
        self._worst = _Worst(top, slower_than_s)
        self._minutes = Minutes() if by_minute else None
        self._in_time: list[Timeline | Minutes] = [one for one in (self._timeline, self._minutes) if one is not None]
        self._operations: dict[bytes | None, _OperationSums] = {}
        self._ttsps = Distribution(scratch)
        self._clock = _Elapsed()
        self.safepoints = self._outside = self._undated = 0

    def add(self, batch: Batch) -> Batch:
        """Count a batch; gives what of it lies within the window."""
        if self._window is not None:
            batch = self._within(batch, self._window)
        self._clock.add(batch)
        if not len(batch):
            return batch
        self.safepoints += len(batch)
        self._by_operation(batch)
        if batch.ttsps_s is not None:
            try:
                self._ttsps.extend(cast("Sequence[float]", batch.ttsps_s))
            except TypeError:  # the few columns that have a None
                self._ttsps.extend(_known(batch.ttsps_s))
        self._worst.add(batch)
        if self._in_time:
            stops = list(stops_of(batch))
            for one in self._in_time:
                one.add(stops)
        return batch

    def listed(self, batches: Iterable[Batch]) -> Iterator[Stop]:
        """Count batches, and give each of their stops that lies above the threshold."""
        for batch in batches:
            for stop in stops_of(self.add(batch)):
                if self._worst.least_s is None or stop.stopped_s > self._worst.least_s:
                    yield stop

    def _within(self, batch: Batch, window: Window) -> Batch:
        verdicts = [window.holds(parse_stamp(head)) for head in batch.heads]
        self._undated += verdicts.count(None)
        self._outside += verdicts.count(False)
        return batch.select([index for index, verdict in enumerate(verdicts) if verdict])

    def _by_operation(self, batch: Batch) -> None:
        if batch.operations is None:
            self._sums(None).add(batch.stops_s, batch.ttsps_s)
            return
        stops: dict[bytes | None, list[float]] = {}
        ttsps: dict[bytes | None, list[float | None]] = {}
        for name, stop, ttsp in zip(batch.operations, batch.stops_s, batch.ttsps_s or repeat(None)):
            try:
                stops[name].append(stop)
                ttsps[name].append(ttsp)
            except KeyError:
                stops[name], ttsps[name] = [stop], [ttsp]
        for name, values in stops.items():
            self._sums(name).add(values, ttsps[name])

    def _sums(self, name: bytes | None) -> _OperationSums:
        if name not in self._operations:
            name = name if len(self._operations) < _MOST_OPERATIONS else _OTHERS
            return self._operations.setdefault(name, _OperationSums(Distribution(self._scratch)))
        return self._operations[name]

    def summary(self) -> Summary:
        """All that was counted. Raises BadInput where its minutes are too many."""
        stops = [sums.stops for sums in self._operations.values()]
        stopped_s = sum(sums.total for sums in stops)
        operations = []
        if any(name is not None for name in self._operations):
            rows = (sums.finish(name, stopped_s) for name, sums in self._operations.items())
            operations = sorted(rows, key=lambda row: -row.stopped_s)
        longest = [sums.maximum for sums in stops if sums.maximum is not None]
        ttsps = self._ttsps
        totals = Totals(
            self.safepoints, stopped_s, ttsps.total if ttsps.count else None, self._clock.seconds(self.safepoints, stopped_s),
            ttsps.count, max(longest, default=None), ttsps.maximum,
        )  # fmt: skip
        return Summary(
            totals, percentiles=list(zip(percentiles(stops, PERCENTS), percentiles([ttsps], PERCENTS))),
            operations=operations, worst=self._worst.found(),
            minutes=None if self._minutes is None else self._minutes.rows(), slower=self._worst.slower,
            timeline=self._timeline, first=self._clock.first, last=self._clock.last, restarts=self._clock.restarts,
            outside=self._outside, undated=self._undated,
        )  # fmt: skip


def _known(values: Sequence[float | None]) -> Sequence[float]:
    return [value for value in values if value is not None]


@dataclass
class _OperationSums:
    stops: Distribution
    ttsp_s: float | None = None

    def add(self, stops: list[float], ttsps: Sequence[float | None] | None) -> None:
        self.stops.extend(stops)
        if ttsps is None:
            return
        try:
            known_s = sum(cast("Sequence[float]", ttsps))
        except TypeError:
            if not (known := _known(ttsps)):
                return
            known_s = sum(known)
        self.ttsp_s = (self.ttsp_s or 0.0) + known_s

    def finish(self, name: bytes | None, all_s: float) -> Operation:
        stops = self.stops
        (p99,) = percentiles([stops], (99.0,))
        return Operation(
            None if name is None else text_of(name), stops.count, stops.total, stops.total / stops.count, p99 or 0.0,
            stops.maximum or 0.0, self.ttsp_s, stops.total / all_s if all_s else None,
        )  # fmt: skip


class _Worst:
    """The longest stops, longest first; the earlier one first where two are alike."""

    def __init__(self, top: int, slower_than_s: float | None) -> None:
        self._top, self.least_s = top, slower_than_s
        self._heap: list[tuple[float, int, Stop]] = []
        self._numbers = numbers(0, -1)
        self.slower = None if slower_than_s is None else Slower(0, 0.0)

    def add(self, batch: Batch) -> None:
        floor = -1.0 if self.least_s is None else self.least_s
        if self.slower is not None:
            above = [stop for stop in batch.stops_s if stop > floor]
            self.slower = Slower(self.slower.safepoints + len(above), self.slower.stopped_s + sum(above))
        if self._top and len(self._heap) >= self._top:
            floor = max(floor, self._heap[0][0])
        if max(batch.stops_s) <= floor:
            return
        indexes = [index for index, stop in enumerate(batch.stops_s) if stop > floor]
        if self._top:
            indexes = sorted(heapq.nlargest(self._top, indexes, key=batch.stops_s.__getitem__))
        for stop in stops_of(batch.select(indexes)):
            push = heapq.heappushpop if self._top and len(self._heap) >= self._top else heapq.heappush
            push(self._heap, (stop.stopped_s, next(self._numbers), stop))

    def found(self) -> list[Stop]:
        return [stop for _, _, stop in sorted(self._heap, reverse=True)]


@dataclass
class _Elapsed:
    """How much time a log covers.

    By its first and last date; without dates by the log's times between safepoints; else by uptimes. `first` and
    `last`: stamps. `restarts`: how often the uptime fell back; each run of the JVM counts by itself.
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
        # A single stamp spans only its stop. Stamps of a clock that was set, or of a log given twice, are useless.
        if stamped is None or self._unstamped or safepoints < 2 or stamped < stopped_s * (1 - _STAMPS_ARE_OFF):
            return by_gaps
        return max(stamped, stopped_s)


def _run(uptime_s: float, stop_s: float) -> list[float]:
    """A run of the JVM with one stop: what came before it is in another log."""
    return [max(uptime_s - stop_s, 0.0), uptime_s]
