"""Stopped time by the minute, and the slowest stops over time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate
from itertools import count as numbers
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.jvm.logs.timestamps import EPOCH, UNSTAMPED
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.safepoints.stops import Stop

_MOST_POINTS = 6000
_MOST_MINUTES = 1_000_000  # two years


@dataclass
class Minute:
    """One minute; a stop counts where it ended, its time in every minute that it covers. `minute`: a date or an uptime."""

    minute: str
    safepoints: int = 0
    stopped_s: float = 0.0
    ttsp_s: float | None = None
    stopped_max_s: float = 0.0
    operation: str | None = None

    @property
    def share(self) -> float:
        """The part of the minute in which the application was stopped."""
        return min(self.stopped_s / 60, 1.0)


class Minutes:
    """The minutes in which something stopped; those that a stop covers as a whole are kept as ranges, since a stop may last years."""

    def __init__(self) -> None:
        self._minutes: dict[tuple[str, int], Minute] = {}
        self._covered: dict[tuple[str, int], int] = {}  # by how many stops more, from that minute on

    def add(self, stops: Sequence[Stop]) -> None:
        """Count stops, without those that have no stamp."""
        for stop in stops:
            clock, at_s = (
                ("uptime", stop.stamp.uptime_s) if stop.stamp.local_s is None else ("date", stop.stamp.local_s)
            )
            if at_s is not None:
                self._count(stop, clock, at_s)

    def _count(self, stop: Stop, clock: str, at_s: float) -> None:
        number = int(at_s // 60)
        row = self._minute(clock, number, stop.stamp.text[:16] if clock == "date" else None)
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
            many = f"its stops cover {covered:,} minutes, and at most {_MOST_MINUTES:,} are listed"
            raise BadInput("--by minute", f"{many}; choose some by --since and --until")
        for stops, clock, begin, end in held:
            for number in range(begin, end):
                self._minute(clock, number, None).stopped_s += stops * 60
        return [self._minutes[key] for key in sorted(self._minutes)]

    def _minute(self, clock: str, number: int, label: str | None) -> Minute:
        if (clock, number) not in self._minutes:
            if not label:
                label = (
                    f"{number * 60}s" if clock == "uptime" else f"{EPOCH + timedelta(minutes=number):%Y-%m-%dT%H:%M}"
                )
            self._minutes[clock, number] = Minute(label)
        return self._minutes[clock, number]


class Point(NamedTuple):
    """One dot of the timeline: the slowest stop of its operation at about that time. `at_s`: on the timeline's clock."""

    at_s: float
    stopped_s: float
    ttsp_s: float | None
    operation: str | None


class Timeline:
    """The slowest stop of each operation in each stretch of time; stretches grow so that a few thousand points are kept."""

    def __init__(self) -> None:
        self.clock: str | None = None
        self._width_s = 1e-3
        self._numbers = numbers(1)
        self._points: dict[tuple[int, str | None], Point] = {}

    def add(self, stops: Sequence[Stop]) -> None:
        """Add stops. The first stamp decides the clock: "utc", "uptime" or "number". Stops without its stamp are left out."""
        first = next((stop.stamp for stop in stops if stop.stamp is not UNSTAMPED), UNSTAMPED)
        clock = "utc" if first.time_s is not None else "uptime" if first.uptime_s is not None else "number"
        clock = self.clock = self.clock or clock
        for stop in stops:
            stamp = stop.stamp
            at_s = (
                stamp.time_s if clock == "utc" else stamp.uptime_s if clock == "uptime" else float(next(self._numbers))
            )
            if at_s is not None:
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
