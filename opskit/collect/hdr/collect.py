"""Read the intervals of HdrHistogram logs, and what a load generator printed of its histogram.

sums = Sums(Choice(merge=True))
facts = collect(ask, sums.add)
series = sums.series()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.hdr.facts import Facts, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.jvm.logs.hdr.record import Interval
    from opskit.jvm.logs.hdr.spectrum import Spectrum


class Reader:
    """A reader of logs; it opens all of them first. Raises BadInput and NotPermitted before anything is read."""

    def __init__(self, ask: Request) -> None:
        raise NotImplementedError

    def found(self) -> Iterator[Interval | Spectrum]:
        """The intervals of all logs in the order of time, then the spectra. Raises BadInput where there is none of them."""
        raise NotImplementedError

    def facts(self, *, interrupted: bool = False) -> Facts:
        """What was read so far."""
        raise NotImplementedError


def collect(ask: Request, take: Callable[[Interval | Spectrum], object]) -> Facts:
    """Read all logs; each interval is taken as it comes, and not kept. Ctrl-C ends it: what was read counts."""
    raise NotImplementedError
