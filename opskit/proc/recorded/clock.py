"""The clock of a capture: it goes from mark to mark, each thread by itself."""

from __future__ import annotations

import threading
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.proc.recorded.tape import Mark


_SHORTEST_S = 0.1  # of a pause that leads to the next mark


class TapeClock(threading.local):
    """Sleeping goes on to the mark that is nearest to the end of the sleep, at least to the next one."""

    def __init__(self, marks: list[Mark]) -> None:
        self.mark = 0
        self._marks = marks
        self._ideal_s = marks[0].monotonic_s if marks else 0.0

    def monotonic(self) -> float:
        """The monotonic time of the mark, in seconds."""
        return self._marks[self.mark].monotonic_s

    def now(self) -> datetime:
        """The wall time of the mark."""
        return datetime.fromtimestamp(self._marks[self.mark].wall_s, timezone.utc)

    @property
    def place(self) -> tuple[int, float]:
        """The mark, and the time up to which was slept."""
        return self.mark, max(self._ideal_s, self.monotonic())

    def go_to(self, place: tuple[int, float]) -> None:
        """Go (back) to a place."""
        self.mark, self._ideal_s = place

    def rewind(self) -> None:
        """Go back to the first mark."""
        self.mark, self._ideal_s = 0, self._marks[0].monotonic_s

    def sleep(self, seconds: float) -> None:
        """Go on, unless an earlier, shorter sleep has led beyond that. Raises NotSupported behind the last mark."""
        if seconds > 0:
            self._ideal_s += seconds
            if self._ideal_s > self.monotonic():
                self._prove_more()
                self._go_on()

    def pause(self, seconds: float) -> None:
        """Wait between two looks at the same: on to a later mark, unless it is short or there is none."""
        self._ideal_s += seconds
        if seconds >= _SHORTEST_S and self._ideal_s > self.monotonic() and self.mark + 1 < len(self._marks):
            self._go_on()

    def end_of(self, end_s: float) -> float:
        """When a window ends that should end then: at the latest with the last mark. Raises NotSupported if none of it is left."""
        if end_s <= self.monotonic():
            return end_s
        self._prove_more()
        self._ideal_s = max(self._ideal_s, self.monotonic())
        return min(end_s, self._marks[-1].monotonic_s)

    def _go_on(self) -> None:
        later = range(self.mark + 1, len(self._marks))
        self.mark = min(later, key=lambda mark: abs(self._marks[mark].monotonic_s - self._ideal_s))

    def _prove_more(self) -> None:
        if self.mark + 1 >= len(self._marks):
            samples = plural(len(self._marks), "sample")
            raise NotSupported(f"the capture has {samples}: it ends here; capture more of them with -c")
