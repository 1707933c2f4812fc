"""Samples on a fixed schedule: start + n x interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.host import Host

_NEXT_S = 1e-9  # the next sample is at least so far away


def schedule(
    host: Host, interval_s: float, count: int | None, sleep: Callable[[float], None] | None = None
) -> Iterator[tuple[int, float]]:
    """Wait for each sample; yield its number from 1 and how late it is in seconds. Slots that have passed are skipped.

    An interval of 0: one after the other, none is late. `sleep` waits for so many seconds, by default the host does.
    """
    start = host.monotonic()
    number = slot = 0
    while count is None or number < count:
        if not interval_s:
            number += 1
            yield number, 0.0
            continue
        late = host.monotonic() - (start + slot * interval_s)
        if late < 0:
            host.end_at(start + slot * interval_s)  # there is more of a capture
            (sleep or host.sleep)(-late)
            late = 0.0
        number += 1
        yield number, late
        slot = max(slot + 1, int((host.monotonic() - start) // interval_s))


def schedule_of_capture(
    host: Host, interval_s: float, count: int | None, sleep: Callable[[float], None] | None = None
) -> Iterator[tuple[int, float]]:
    """As `schedule`, of a capture: it ends with NoMoreSamples. An interval of 0: every sample, one after the other."""
    number = 0
    while count is None or number < count:
        number += 1
        begun_s = host.monotonic()
        yield number, 0.0
        if host.monotonic() == begun_s and (count is None or number < count):  # the look had no window of its own
            end_s = host.end_of(interval_s or _NEXT_S)
            (sleep or host.sleep)(interval_s or end_s - begun_s)


def window_end_s(first_s: float, begun_s: float, window_s: float, after_s: float) -> float:
    """When the window of a look ends that began at `begun_s`, in a watch whose first look began at `first_s`.

    The look takes `after_s` more, and ends where the next one is due; of those dates the first that leaves half a window.
    """
    passed = int((begun_s - first_s) / window_s + 0.5)
    return max(first_s + (passed + 1) * window_s - after_s, begun_s + window_s / 4)
