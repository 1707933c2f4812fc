"""How long the intervals of a picture over time should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.logs.hdr.record import Interval

if TYPE_CHECKING:
    from opskit.analysis.moments import Moment
    from opskit.jvm.logs.hdr.spectrum import Spectrum

_POINTS = 120  # in a picture
_NEARLY = 0.95
_STEPS_S = (
    *(power * step for power in (0.001, 0.01, 0.1) for step in (1, 2, 5)),
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0),
)  # fmt: skip


class Times:
    """The time that the intervals between two moments cover; None: open on that side."""

    def __init__(self, since: Moment | None = None, until: Moment | None = None) -> None:
        self._since, self._until = since, until
        self._begin_s: float | None = None
        self._end_s = 0.0
        self._covered_s, self._number = 0.0, 0

    def add(self, found: Interval | Spectrum) -> None:
        """Take an interval in."""
        if isinstance(found, Interval) and self._within(found):
            end_s = found.begin_s + found.length_s
            if self._begin_s is None or found.begin_s < self._begin_s:
                self._begin_s = found.begin_s
            self._end_s = max(self._end_s, end_s) if self._number else end_s
            self._covered_s, self._number = self._covered_s + found.length_s, self._number + 1

    def _within(self, interval: Interval) -> bool:
        since, until = (
            None if moment is None else moment.at_s - (interval.since_start_s if moment.clock == "uptime" else interval.begin_s)
            for moment in (self._since, self._until)
        )  # fmt: skip
        return (since is None or since <= 0) and (until is None or until > 0)

    @property
    def fitting(self) -> float:
        """Seconds: about a hundred in the whole time, and no shorter than the log's own on average."""
        if self._begin_s is None:
            return 1.0
        span_s = self._end_s - self._begin_s
        least = max(span_s / _POINTS, self._covered_s / self._number) * _NEARLY
        return next((step for step in _STEPS_S if step >= least), max(span_s / _POINTS, _STEPS_S[-1]))
