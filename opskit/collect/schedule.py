"""Samples on a fixed schedule: start + n x interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.host import Host


def schedule(host: Host, interval_s: float, count: int | None) -> Iterator[tuple[int, float]]:
    """Wait for each sample; yield its number from 1 and how late it is in seconds. Slots that have passed are skipped.

    An interval of 0: one after the other, none is late.
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
            host.sleep(-late)
            late = 0.0
        number += 1
        yield number, late
        slot = max(slot + 1, int((host.monotonic() - start) // interval_s))
