"""How long the intervals of a picture over time should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.logs.hdr.record import Interval

if TYPE_CHECKING:
    from opskit.jvm.logs.hdr.spectrum import Spectrum

_POINTS = 120  # in a picture
_NEARLY = 0.95
_STEPS_S = (
    *(power * step for power in (0.001, 0.01, 0.1) for step in (1, 2, 5)),
    *(1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0),
)  # fmt: skip


class Times:
    """The time that intervals cover."""

    def __init__(self) -> None:
        self._begin_s: float | None = None
        self._end_s = 0.0
        self._covered_s, self._number = 0.0, 0

    def add(self, found: Interval | Spectrum) -> None:
        """Take an interval in."""
        if isinstance(found, Interval):
            end_s = found.begin_s + found.length_s
            if self._begin_s is None or found.begin_s < self._begin_s:
                self._begin_s = found.begin_s
            self._end_s = max(self._end_s, end_s) if self._number else end_s
            self._covered_s, self._number = self._covered_s + found.length_s, self._number + 1

    @property
    def fitting(self) -> float:
        """Seconds: about a hundred in the whole time, and no shorter than the log's own on average."""
        if self._begin_s is None:
            return 1.0
        span_s = self._end_s - self._begin_s
        least = max(span_s / _POINTS, self._covered_s / self._number) * _NEARLY
        return next((step for step in _STEPS_S if step >= least), max(span_s / _POINTS, _STEPS_S[-1]))
