"""One stop of the application, with the time to safepoint (TTSP) and the operation in it; which stops count.

A stop is the whole time that the application's threads are held: TTSP (from the request until the last thread has
stopped) and the operation. Times are in seconds; None is unknown.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from opskit.jvm.logs.timestamps import Stamp, parse_stamp
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.moments import Moment
    from opskit.jvm.logs.safepoints.batch import Batch

_CLOCKS = {"uptime": "uptime_s", "utc": "time_s", "local": "local_s"}


class Stop(NamedTuple):
    """One safepoint. `stamp`: when the stop was over. `late_threads`: those that a SafepointTimeout named."""

    stopped_s: float
    ttsp_s: float | None
    operation: str | None
    stamp: Stamp
    late_threads: tuple[str, ...] = ()


class Totals(NamedTuple):
    """Safepoints together. `elapsed_s`: the time that they cover, stops included. `ttsp_count`: how many have a TTSP."""

    safepoints: int
    stopped_s: float
    ttsp_s: float | None = None
    elapsed_s: float | None = None
    ttsp_count: int = 0
    stopped_max_s: float | None = None
    ttsp_max_s: float | None = None

    @property
    def stopped_avg_s(self) -> float | None:
        """The mean stop."""
        return self.stopped_s / self.safepoints if self.safepoints else None

    @property
    def ttsp_avg_s(self) -> float | None:
        """The mean TTSP of those that have one."""
        return None if self.ttsp_s is None or not self.ttsp_count else self.ttsp_s / self.ttsp_count

    @property
    def stopped_share(self) -> float | None:
        """The part of the time in which the application was stopped, at most 1: a stop may have begun before it."""
        return min(self.stopped_s / self.elapsed_s, 1.0) if self.elapsed_s else None

    @property
    def ttsp_share(self) -> float | None:
        """The part of the stopped time that was TTSP, at most 1; only where all stops have one."""
        if self.ttsp_s is None or self.ttsp_count < self.safepoints or not self.stopped_s:
            return None
        return min(self.ttsp_s / self.stopped_s, 1.0)


def stops_of(batch: Batch) -> Iterator[Stop]:
    """A batch as one record a safepoint."""
    for index, (stop, ttsp, operation, head) in enumerate(
        zip(batch.stops_s, batch.ttsps_s or repeat(None), batch.operations or repeat(None), batch.heads)
    ):
        late = tuple(map(text_of, batch.late.get(index, ())))
        yield Stop(stop, ttsp, None if operation is None else text_of(operation), parse_stamp(head), late)


def text_of(name: bytes) -> str:
    """The name of an operation or a thread."""
    return name.decode("utf-8", "surrogateescape")


class Window(NamedTuple):
    """Which part of a log counts: between two moments, each an uptime or a date. None: open on that side.

    A date with a zone is compared as "utc", one without in the log's own zone.
    """

    since: Moment | None = None
    until: Moment | None = None

    def holds(self, stamp: Stamp) -> bool | None:
        """Whether a stop that was over then counts; None where the stamp does not have that clock."""
        for moment, is_lower in ((self.since, True), (self.until, False)):
            if moment is None:
                continue
            at_s = getattr(stamp, _CLOCKS[moment.clock])
            if at_s is None:
                return None
            if at_s < moment.at_s if is_lower else at_s > moment.at_s:
                return False
        return True
