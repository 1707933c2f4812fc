"""The checks of a capture: nothing there waits or hangs, so that they run one after the other, each from the same moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.checks.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.proc.recorded.clock import TapeClock


class OneByOne(Turns):
    """In place of Turns: no thread is started. The clock is set back before each check, and ends where the last of them ended."""

    def __init__(self, clock: TapeClock) -> None:
        super().__init__()
        self._clock = clock
        self._begun = self._ended_at = clock.mark, clock.monotonic()

    def start(self, work: Callable[[], None]) -> None:
        """Do it now."""
        self._clock.go_to(self._begun)
        work()
        self._ended_at = max(self._ended_at, self._clock.place)

    def wait(self, until_s: float, is_done: Callable[[], bool] = lambda: False) -> bool:  # noqa: ARG002
        """All has been done."""
        self._clock.go_to(self._ended_at)
        return True
