"""Safepoints: how long the application stood still, what for, and how much of it was the way there. Pure.

A stop is the whole time that the application's threads were held: the time to the safepoint (TTSP, from the request until
the last thread has stopped) and the operation. Times are in seconds; None where the log or the JVM does not say.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from itertools import count as numbers
from typing import TYPE_CHECKING, NamedTuple, cast

from opskit.analysis.distribution import Distribution, Scratch, percentiles
from opskit.errors import BadInput
from opskit.jvm.logs.log_timestamps import UNSTAMPED, Stamp, parse_stamp, uptimes_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.jvm.logs.safepoint_log import Batch

PERCENTS = (50.0, 90.0, 99.0, 99.9)
_MOST_POINTS = 6000
_MOST_OPERATIONS = 1000  # HotSpot has about a hundred; a hostile log may have a new one in each line
_OTHERS = b"(others)"
_MOST_MINUTES = 1_000_000  # two years
_STAMPS_ARE_OFF = 0.1  # a line comes a little after its stop, and its stamp is of milliseconds
_RESTART_S = 1.0  # lines may come a little out of order; an uptime that falls by more is another JVM's


class Stop(NamedTuple):
    """One safepoint. `time`: the date as the log has it, "" without one; it is the moment at which the stop was over.

    `late_threads` are those that a SafepointTimeout named.
    """

    stopped_s: float
    ttsp_s: float | None
    operation: str | None
    stamp: Stamp
    late_threads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Window:
    """Which part of a log counts: between two moments, each an uptime or a date. None: open on that side.

    A date with a zone is compared as `utc`, one without in the log's own zone.
    """

    since: Moment | None = None
    until: Moment | None = None

    def holds(self, stamp: Stamp) -> bool | None:
        """Whether a stop that was over then counts; None where the stamp cannot tell."""
        for moment, is_lower in ((self.since, True), (self.until, False)):
            if moment is None:
                continue
            at = moment.of(stamp)
            if at is None:
                return None
            if at < moment.at_s if is_lower else at > moment.at_s:
                return False
        return True


class Moment(NamedTuple):
    """`at_s` on one of a stamp's clocks: "uptime", "utc" or "local"."""

    at_s: float
    clock: str

    def of(self, stamp: Stamp) -> float | None:
        """What that clock says in a stamp."""
        return {"uptime": stamp.uptime_s, "utc": stamp.utc_s, "local": stamp.local_s}[self.clock]


@dataclass(frozen=True)
class Operation:
    """All safepoints of one VM operation; `name` None: the log does not name it. `p99_s` is of the stops."""

    name: str | None
    safepoints: int
    stopped_s: float
    stopped_avg_s: float
    p99_s: float
    stopped_max_s: float
    ttsp_s: float | None


@dataclass
class Minute:
    """One minute; a stop counts where it ended, its time in every minute that it covers. `label`: a date or an uptime."""

    label: str
    safepoints: int = 0
    stopped_s: float = 0.0
    ttsp_s: float | None = None
    stopped_max_s: float = 0.0
    operation: str | None = None

    @property
    def share(self) -> float:
        """The part of the minute that the application stood still."""
        return min(self.stopped_s / 60, 1.0)


@dataclass(frozen=True)
class Point:
    """One dot of the timeline: the slowest stop of its operation at about that time. `at_s`: on the timeline's clock."""

    at_s: float
    stopped_s: float
    ttsp_s: float | None
    operation: str | None


@dataclass(frozen=True)
class Summary:
    """What a log's safepoints come to. `elapsed_s`: the time that the log covers, stops included.

    `ttsp_count`: how many tell their TTSP. `slower`: (how many, seconds) above the threshold that was asked for.
    `restarts`: how often the uptime fell back. `percentiles`: (stop, TTSP) for each of PERCENTS.
    """

    safepoints: int
    stopped_s: float
    ttsp_s: float | None
    ttsp_count: int
    elapsed_s: float | None
    percentiles: Sequence[tuple[float | None, float | None]]
    stopped_max_s: float | None
    ttsp_max_s: float | None
    operations: Sequence[Operation]
    worst: Sequence[Stop]
    minutes: Sequence[Minute] | None
    slower: tuple[int, float] | None
    first: Stamp
    last: Stamp
    restarts: int
    outside: int
    undated: int

    @property
    def stopped_avg_s(self) -> float | None:
        """The mean stop."""
        return self.stopped_s / self.safepoints if self.safepoints else None

    @property
    def ttsp_avg_s(self) -> float | None:
        """The mean time to the safepoint, of those that tell it."""
        return None if self.ttsp_s is None or not self.ttsp_count else self.ttsp_s / self.ttsp_count

    @property
    def stopped_share(self) -> float | None:
        """The part of the time that the application stood still."""
        return self.stopped_s / self.elapsed_s if self.elapsed_s else None

    @property
    def ttsp_share(self) -> float | None:
        """The part of the stopped time that was the way to the safepoint; only where all stops tell it."""
        if self.ttsp_s is None or self.ttsp_count < self.safepoints or not self.stopped_s:
            return None
        return self.ttsp_s / self.stopped_s


class Timeline:
    """The slowest stop of each operation in each stretch of time; stretches grow so that a few thousand points are kept."""

    def __init__(self) -> None:
        self.clock: str | None = None
        self._width_s = 1e-3
        self._points: dict[tuple[int, str | None], Point] = {}

    def add(self, stops: Iterable[tuple[float, Stop]], clock: str) -> None:
        """Take stops in, each with its time on the clock ("utc", "uptime" or "number")."""
        self.clock = self.clock or clock
        for at_s, stop in stops:
            self._put(Point(at_s, stop.stopped_s, stop.ttsp_s, stop.operation))
        while len(self._points) > _MOST_POINTS:
            points, self._points = self._points, {}
            if len({place for place, _ in points}) > 1:
                self._width_s *= 2
                for point in points.values():
                    self._put(point)
            else:  # operations without number at one moment
                slowest = heapq.nlargest(_MOST_POINTS // 2, points.items(), key=lambda item: item[1].stopped_s)
                self._points = dict(slowest)

    def _put(self, point: Point) -> None:
        key = (int(point.at_s / self._width_s), point.operation)
        known = self._points.get(key)
        if known is None or point.stopped_s > known.stopped_s:
            self._points[key] = point

    @property
    def points(self) -> list[Point]:
        """In the order of time."""
        return sorted(self._points.values(), key=lambda point: point.at_s)


class Collector:
    """Sums up batch after batch, in the order of time, in a fixed amount of memory (but for what was asked to be listed).

    `top`: how many of the worst are kept (0: all). `slower_than_s`: keep only those above it.
    """

    def __init__(
        self,
        scratch: Scratch,
        *,
        top: int = 10,
        slower_than_s: float | None = None,
        window: Window | None = None,
        by_minute: bool = False,
        timeline: Timeline | None = None,
    ) -> None:
        self._scratch, self._window, self._timeline = scratch, window, timeline
        self._worst = _Worst(top, slower_than_s)
        self._minutes = _Minutes() if by_minute else None
        self._operations: dict[bytes | None, _OperationSums] = {}
        self._ttsps = Distribution(scratch)
        self._clock = _Elapsed()
        self._numbers = numbers(1)
        self.safepoints = self.outside = self.undated = 0

    def add(self, batch: Batch) -> Batch:
        """Count a batch; what of it lies within the window."""
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
        if self._minutes is not None or self._timeline is not None:
            self._in_time(list(stops_of(batch)))
        return batch

    def _within(self, batch: Batch, window: Window) -> Batch:
        verdicts = [window.holds(parse_stamp(head)) for head in batch.heads]
        self.undated += verdicts.count(None)
        self.outside += verdicts.count(False)
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
                stops[name] = [stop]
                ttsps[name] = [ttsp]
        for name, values in stops.items():
            self._sums(name).add(values, ttsps[name])

    def _sums(self, name: bytes | None) -> _OperationSums:
        if name not in self._operations:
            if len(self._operations) >= _MOST_OPERATIONS:
                name = _OTHERS
            if name in self._operations:
                return self._operations[name]
            self._operations[name] = _OperationSums(Distribution(self._scratch))
        return self._operations[name]

    def _in_time(self, stops: Sequence[Stop]) -> None:
        if self._timeline is not None:
            if stops[0].stamp.utc_s is not None:
                self._timeline.add(((stop.stamp.utc_s or 0.0, stop) for stop in stops), "utc")
            elif stops[0].stamp.uptime_s is not None:
                self._timeline.add(((stop.stamp.uptime_s or 0.0, stop) for stop in stops), "uptime")
            else:
                self._timeline.add(((float(next(self._numbers)), stop) for stop in stops), "number")
        if self._minutes is not None:
            for stop in stops:
                self._minutes.count(stop)

    @property
    def first(self) -> Stamp:
        """The stamp of the first one that counts."""
        return self._clock.first

    def summary(self) -> Summary:
        """All that was counted. Raises BadInput where its minutes are too many."""
        stops = [sums.stops for sums in self._operations.values()]
        stopped_s = sum(sums.total for sums in stops)
        maxima = [sums.maximum for sums in stops if sums.maximum is not None]
        named = {name for name in self._operations if name is not None}
        return Summary(
            safepoints=self.safepoints,
            stopped_s=stopped_s,
            ttsp_s=self._ttsps.total if self._ttsps.count else None,
            ttsp_count=self._ttsps.count,
            elapsed_s=self._clock.elapsed_s(self.safepoints, stopped_s),
            percentiles=list(zip(percentiles(stops, PERCENTS), percentiles([self._ttsps], PERCENTS))),
            stopped_max_s=max(maxima, default=None),
            ttsp_max_s=self._ttsps.maximum,
            operations=sorted(
                (sums.finish(name) for name, sums in self._operations.items()), key=lambda row: -row.stopped_s
            )
            if named
            else [],
            worst=self._worst.found(),
            minutes=None if self._minutes is None else self._minutes.rows(),
            slower=self._worst.slower,
            first=self._clock.first,
            last=self._clock.last,
            restarts=self._clock.restarts,
            outside=self.outside,
            undated=self.undated,
        )


def stops_of(batch: Batch) -> Iterator[Stop]:
    """A batch as one record a safepoint."""
    for index, (stop, ttsp, operation, head) in enumerate(
        zip(batch.stops_s, batch.ttsps_s or repeat(None), batch.operations or repeat(None), batch.heads)
    ):
        yield Stop(stop, ttsp, _text(operation), parse_stamp(head), tuple(map(_text_of, batch.late.get(index, ()))))


def _text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _text(data: bytes | None) -> str | None:
    return None if data is None else _text_of(data)


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
            told_s = sum(cast("Sequence[float]", ttsps))
        except TypeError:
            known = _known(ttsps)
            if not known:
                return
            told_s = sum(known)
        self.ttsp_s = (self.ttsp_s or 0.0) + told_s

    def finish(self, name: bytes | None) -> Operation:
        stops = self.stops
        (p99,) = percentiles([stops], (99.0,))
        return Operation(
            _text(name),
            stops.count,
            stops.total,
            stops.total / stops.count,
            p99 or 0.0,
            stops.maximum or 0.0,
            self.ttsp_s,
        )


class _Worst:
    """The longest stops, longest first; the earlier one first where two are alike."""

    def __init__(self, top: int, slower_than_s: float | None) -> None:
        self._top, self._least = top, slower_than_s
        self._heap: list[tuple[float, int, Stop]] = []
        self._numbers = numbers(0, -1)
        self.slower = None if slower_than_s is None else (0, 0.0)

    def add(self, batch: Batch) -> None:
        floor = -1.0 if self._least is None else self._least
        if self.slower is not None:
            above = [stop for stop in batch.stops_s if stop > floor]
            self.slower = self.slower[0] + len(above), self.slower[1] + sum(above)
        full = self._top and len(self._heap) >= self._top
        floor = max(floor, self._heap[0][0]) if full else floor
        if max(batch.stops_s) <= floor:
            return
        indexes = [index for index, stop in enumerate(batch.stops_s) if stop > floor]
        if self._top:
            indexes = sorted(heapq.nlargest(self._top, indexes, key=batch.stops_s.__getitem__))
        for stop in stops_of(batch.select(indexes)):
            entry = (stop.stopped_s, next(self._numbers), stop)
            if self._top and len(self._heap) >= self._top:
                heapq.heappushpop(self._heap, entry)
            else:
                heapq.heappush(self._heap, entry)

    def found(self) -> list[Stop]:
        return [stop for _, _, stop in sorted(self._heap, reverse=True)]


@dataclass
class _Elapsed:
    """How much time a log covers.

    From the first date to the last; where it has no dates, by the time that it tells to lie between safepoints; else by the
    uptimes, a run of the JVM at a time.
    """

    first: Stamp = UNSTAMPED
    last: Stamp = UNSTAMPED
    restarts: int = 0
    unstamped: bool = False
    uptimes_only: bool = False
    told_s: float = 0.0
    told: int = 0
    begun_s: float | None = None
    runs_s: float = 0.0
    run: list[float] = field(default_factory=list)  # first and last uptime of the run

    def add(self, batch: Batch) -> None:
        if self.begun_s is None:
            between_s, told = batch.application
            self.told_s += between_s
            self.told += told
        if not len(batch):
            return
        first, self.last = parse_stamp(batch.head(0)), parse_stamp(batch.head(-1))
        if first is UNSTAMPED and len(batch) > 1 and not self.unstamped:  # a line whose beginning was cut off
            first = parse_stamp(batch.heads[1])
        if self.first is UNSTAMPED:
            self.first = first
            self.begun_s = None if first.utc_s is None else first.utc_s - batch.stops_s[0]
        self.unstamped |= first is UNSTAMPED
        if first.utc_s is None and first.uptime_s is not None:
            self.uptimes_only = True
            # Where the time between safepoints is told, uptimes need not be looked at one by one.
            told_all = batch.application[1] >= len(batch) - 1 and self.last.uptime_s is not None
            self._uptimes(
                [first.uptime_s, self.last.uptime_s or 0.0] if told_all else uptimes_s(batch.heads), batch.stops_s
            )

    def _uptimes(self, uptimes: Sequence[float], stops_s: Sequence[float]) -> None:
        if not self.run:
            self.run = _run(uptimes[0], stops_s[0])
        elif uptimes[0] < self.run[1] - _RESTART_S:
            self._restart(uptimes[0], stops_s[0])
        if uptimes != sorted(uptimes):
            for uptime, stop in zip(uptimes, stops_s):
                if uptime < self.run[1] - _RESTART_S:
                    self._restart(uptime, stop)
                self.run[1] = max(uptime, self.run[1])
        self.run[1] = max(uptimes[-1], self.run[1])

    def _restart(self, uptime_s: float, stop_s: float) -> None:
        self.restarts += 1
        self.runs_s += self.run[1] - self.run[0]
        self.run = _run(uptime_s, stop_s)

    def elapsed_s(self, safepoints: int, stopped_s: float) -> float | None:
        told = self.told_s + stopped_s if self.told and self.told >= safepoints - 1 else None
        if self.begun_s is None and told is not None:
            return told
        stamped = None
        if self.begun_s is not None and self.last.utc_s is not None:
            stamped = None if self.uptimes_only else self.last.utc_s - self.begun_s
        elif self.run:
            stamped = self.runs_s + self.run[1] - self.run[0]
        # One stamp alone spans nothing but its stop; stamps of a clock that was set, or of a log given twice, span anything.
        if stamped is None or self.unstamped or safepoints < 2 or stamped < stopped_s * (1 - _STAMPS_ARE_OFF):
            return told
        return max(stamped, stopped_s)


def _run(uptime_s: float, stop_s: float) -> list[float]:
    """A run of the JVM, as far as one stop tells of it: what came before it is another log's."""
    return [max(uptime_s - stop_s, 0.0), uptime_s]


class _Minutes:
    """The minutes in which something stopped; those that a stop covers as a whole are kept as ranges, since a stop may last years."""

    def __init__(self) -> None:
        self._minutes: dict[tuple[str, int], Minute] = {}
        self._covered: dict[tuple[str, int], int] = {}  # by how many stops more, from that minute on

    def count(self, stop: Stop) -> None:
        """Count a stop where it ended, its time in every minute that it covers."""
        stamp = stop.stamp
        at_s = stamp.local_s if stamp.local_s is not None else stamp.uptime_s
        clock = "date" if stamp.local_s is not None else "uptime"
        if at_s is None:
            return
        number = int(at_s // 60)
        label = stamp.text[:16] if clock == "date" else None
        row = self._minute(clock, number, label)
        row.safepoints += 1
        if stop.ttsp_s is not None:
            row.ttsp_s = (row.ttsp_s or 0.0) + stop.ttsp_s
        if stop.stopped_s >= row.stopped_max_s:
            row.stopped_max_s, row.operation = stop.stopped_s, stop.operation
        here_s = at_s - number * 60
        if stop.stopped_s <= here_s or number <= 0:
            row.stopped_s += stop.stopped_s
            return
        row.stopped_s += here_s
        whole, first_s = divmod(stop.stopped_s - here_s, 60)
        first = number - int(whole) - 1  # in which it began
        if first < 0:
            first, first_s = 0, stop.stopped_s - here_s - (number - 1) * 60
        if first_s:
            self._minute(clock, first, None).stopped_s += first_s
        if first + 1 < number:
            for minute, more in ((first + 1, 1), (number, -1)):
                self._covered[clock, minute] = self._covered.get((clock, minute), 0) + more

    def rows(self) -> list[Minute]:
        """In the order of time. Raises BadInput where they are too many."""
        borders = sorted(self._covered)
        ranges = [(clock, begin, end) for (clock, begin), (_, end) in zip(borders, borders[1:])]
        deep = accumulate(self._covered[border] for border in borders)
        held = [(stops, *each) for stops, each in zip(deep, ranges) if stops]
        covered = sum(end - begin for _, _, begin, end in held)
        if covered + len(self._minutes) > _MOST_MINUTES:
            raise BadInput(
                "--by minute",
                f"its stops cover {covered:,} minutes, and at most {_MOST_MINUTES:,} are listed; --since and --until choose some",
            )
        for stops, clock, begin, end in held:
            for number in range(begin, end):
                self._minute(clock, number, None).stopped_s += stops * 60
        return [self._minutes[key] for key in sorted(self._minutes)]

    def _minute(self, clock: str, number: int, label: str | None) -> Minute:
        found = self._minutes.get((clock, number))
        if found is None:
            label = label or (f"{number * 60}s" if clock == "uptime" else minute_label(number))
            found = self._minutes[clock, number] = Minute(label)
        return found


def minute_label(number: int) -> str:
    """A minute since the epoch, as `2026-01-31T10:05`."""
    from datetime import datetime, timedelta, timezone

    return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(minutes=number)).strftime("%Y-%m-%dT%H:%M")
