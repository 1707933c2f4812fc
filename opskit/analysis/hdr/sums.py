"""Sums of the intervals of HdrHistogram logs, in bounded memory. Only counts are added, and only of equal cells.

sums = Sums(Choice(tags="read|write", by_s=10.0))
facts = collect(Request(names), sums.add)
series, apart = sums.series(), sums.apart
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.hdr.result import Series
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.moments import Moment
    from opskit.jvm.logs.hdr.record import Interval
    from opskit.jvm.logs.hdr.spectrum import Spectrum


class Choice(NamedTuple):
    """What is summed. Without `merge` there is a series for each file and tag; with it one over all files and tags.

    `ignore_tags`: intervals of one file count together, whatever their tag. `tags`: a regular expression that is searched in the
    tag ("" where there is none). `since`, `until`: an interval counts that begins within. `by_s`: seconds of each of Series.periods.
    """

    merge: bool = False
    ignore_tags: bool = False
    tags: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    by_s: float | None = None


class Apart(NamedTuple):
    """Series that would be one, and are not: their cells differ. `layouts`: (what it is called, how many series, a file), `why` a sentence."""

    tag: str | None
    files: tuple[str, ...]
    why: str


class Sums:
    """The sums of intervals. Raises UsageError for an invalid expression; BadInput where something has too many periods."""

    def __init__(self, choice: Choice | None = None) -> None:
        self.choice = choice or Choice()
        self.intervals = self.outside = self.other_tags = (
            0  # taken; outside of since and until; of tags that are not chosen
        )

    def add(self, found: Interval | Spectrum) -> bool:
        """Count an interval; whether it was chosen (for --split: take its `line`)."""
        raise NotImplementedError

    def series(self) -> list[Series]:
        """All series, in the order of their first interval."""
        raise NotImplementedError

    @property
    def apart(self) -> Sequence[Apart]:
        """What was not added although it was asked for, and why."""
        raise NotImplementedError

    @property
    def likely_unit(self) -> str | None:
        """The unit of the values if the column Interval_Max is in ms: ns, us, ms or s; None: it fits none, or none of all intervals."""
        raise NotImplementedError

    @property
    def tags(self) -> Sequence[str | None]:
        """All tags that were seen, chosen or not (at most 1,000)."""
        raise NotImplementedError
