"""When the windows of a collector end: one after another without a gap in a watch, on the watch's schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.schedule import window_end_s

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.host import Host

# What a watch keeps free behind its window: at first of the interval, then of what the last look took there, for judging too.
_RESERVED, _REST = 0.1, 1.25
# At even gaps, looks at work that repeats at a multiple of the gap would always see the same moment of it; a regular sequence of
# gaps (golden ratio) is in step with other paces. So they are random: minstd, since `random` takes 5 ms to import.
_FACTOR, _MODULUS, _UNEVEN = 48271, 2**31 - 1, 0.9


def uneven_step(step_s: float, dice: int) -> tuple[float, int]:
    """A step that is up to 45 % shorter or longer, and the next `dice`; the first one is 1."""
    dice = dice * _FACTOR % _MODULUS
    return step_s * (1 + (dice / _MODULUS - 0.5) * _UNEVEN), dice


def uneven_moments(host: Host, step_s: float, end_s: float) -> Iterator[None]:
    """Moments until `end_s`, `step_s` apart on average, and the end itself."""
    dice = 1
    while (left_s := end_s - host.monotonic()) > 0:
        gap_s, dice = uneven_step(step_s, dice)
        host.step(min(gap_s, left_s))
        yield


class Windows:
    """The ends of windows of `window_s`. A single look has a whole window from when it begins to wait."""

    def __init__(self, host: Host, window_s: float, *, watch: bool) -> None:
        self._host, self._window_s, self._watch = host, window_s, watch
        self._begun_s = host.monotonic()
        self._after_s = _RESERVED * window_s

    def end_s(self, begun_s: float) -> float:
        """When the window of a look that began then ends."""
        if not self._watch:
            return self._host.end_of(self._window_s)
        return self._host.end_at(window_end_s(self._begun_s, begun_s, self._window_s, self._after_s))

    def look_done(self, ended_s: float) -> None:
        """The look is complete, whose window ended then: the next one keeps as much time free."""
        self._after_s = _REST * (self._host.monotonic() - ended_s)
