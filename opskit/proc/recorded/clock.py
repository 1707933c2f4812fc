"""The clock of a capture: it goes from mark to mark, each thread by itself."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from math import inf
from typing import TYPE_CHECKING

from opskit.errors import NoMoreSamples
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.proc.recorded.tape import Mark

_SHORTEST_S = 0.1  # of a pause that leads to the next mark
Place = tuple[int, float]  # the mark, and the time up to which was slept


class TapeClock:
    """Time passes in `sleep` alone: to the mark that is nearest to the end of the sleep, and at least to the next one.

    So what is looked at after a sleep is another sample, and none is counted twice. A thread begins where the one is that
    made the clock. `path`: the capture's file, for messages.
    """

    def __init__(self, marks: list[Mark], path: str = "the file") -> None:
        self._marks, self._path = marks, path
        self._threads = threading.local()
        self._maker = threading.get_ident()
        self._place: Place | None = None  # of the maker

    @property
    def mark(self) -> int:
        """The number of the mark."""
        place: Place | None = getattr(self._threads, "place", None)  # it is asked for at each file
        return self.place[0] if place is None else place[0]

    @property
    def place(self) -> Place:
        """The mark, and the time up to which was slept."""
        place: Place | None = getattr(self._threads, "place", None)
        if place is None:
            place = self._threads.place = self._place or self._begin()
        return place

    @property
    def gap_s(self) -> float:
        """The time between two samples, the median; 0 where there is one alone."""
        times = [mark.monotonic_s for mark in self._marks]
        gaps = sorted(after - before for before, after in zip(times, times[1:]))
        return gaps[len(gaps) // 2] if gaps else 0.0

    @property
    def next_gap_s(self) -> float:
        """The time until the next sample; infinite at the last one."""
        mark = self.mark
        return self._marks[mark + 1].monotonic_s - self.monotonic() if mark + 1 < len(self._marks) else inf

    @property
    def without(self) -> str:
        """Why nothing more can be said of what changes."""
        count = len(self._marks)
        held = f"the capture {self._path} has {plural(count, 'sample')}"
        if count < 2:
            return f"{held}: rates need two; capture with -c 2"
        return f"{held} and ends here: capture more of them with -c"

    def monotonic(self) -> float:
        """The monotonic time of the mark, in seconds."""
        mark = self.place[0]
        return self._marks[mark].monotonic_s if self._marks else 0.0

    def now(self) -> datetime:
        """The wall time of the mark."""
        return datetime.fromtimestamp(self._marks[self.mark].wall_s, timezone.utc)

    def go_to(self, place: Place) -> None:
        """Go (back) to a place."""
        self._threads.place = place
        if threading.get_ident() == self._maker:
            self._place = place

    def rewind(self) -> None:
        """Go back to the first mark."""
        self.go_to(self._begin())

    def sleep(self, seconds: float) -> None:
        """Go on, unless an earlier, shorter sleep in the same window has led further. Raises NoMoreSamples behind the last mark."""
        if seconds <= 0:
            return
        mark, ideal_s = self.place
        ideal_s += seconds
        self.go_to((self._nearest(mark, ideal_s) if ideal_s > self.monotonic() else mark, ideal_s))

    def step(self, seconds: float) -> None:
        """Go on to a later mark in any case, unless there is nothing to wait for. Raises NoMoreSamples."""
        if seconds > 0:
            self.go_to((self.mark, self.monotonic()))
            self.sleep(seconds)

    def pause(self, seconds: float) -> None:
        """Wait between two looks at the same: on to a later mark, unless it is short or there is none."""
        mark, ideal_s = self.place
        ideal_s += seconds
        goes_on = seconds >= _SHORTEST_S and ideal_s > self.monotonic() and mark + 1 < len(self._marks)
        self.go_to((self._nearest(mark, ideal_s) if goes_on else mark, ideal_s))

    def end_at(self, until_s: float) -> float:
        """The time of the later mark that is nearest to then: a window begins now. Raises NoMoreSamples."""
        mark, now_s = self.mark, self.monotonic()
        if until_s <= now_s:
            return until_s
        end_s = self._marks[self._nearest(mark, until_s)].monotonic_s
        self.go_to((mark, now_s))
        return end_s

    def _nearest(self, mark: int, time_s: float) -> int:
        now_s = self.monotonic()
        later = [each for each in range(mark + 1, len(self._marks)) if self._marks[each].monotonic_s > now_s]
        if not later:
            raise NoMoreSamples(self.without)
        return min(later, key=lambda each: abs(self._marks[each].monotonic_s - time_s))

    def _begin(self) -> Place:
        return 0, self._marks[0].monotonic_s if self._marks else 0.0
