"""Sums of the intervals of HdrHistogram logs, in bounded memory. Only counts are added, and only of equal cells.

sums = Sums(Choice(tags="read|write", by_s=10.0)); facts = collect(Request(names), sums.add)
sums.series(), sums.apart, sums.left, sums.likely_unit
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.analysis.hdr.cells import Full, Space
from opskit.analysis.hdr.printed import series_of
from opskit.analysis.hdr.total import Total
from opskit.analysis.hdr.values import scale_of
from opskit.errors import BadInput, UsageError
from opskit.jvm.logs.hdr.spectrum import Spectrum
from opskit.quantities import listed, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.hdr.result import Series
    from opskit.analysis.moments import Moment
    from opskit.jvm.logs.hdr.record import Interval, Layout

_MOST_SERIES = _MOST_TAGS = 1000
_MOST_PRINTED = 100
_MOST_COMPARED = 1000  # intervals, to tell the unit
_TO_MS = {"ns": 1e6, "us": 1e3, "ms": 1.0, "s": 1e-3}  # so many are a millisecond
_ROUNDED_MS = 0.00051


class Choice(NamedTuple):
    """What is summed. Without `merge` there is a series for each file and tag; with it one over all files and tags.

    `ignore_tags`: intervals of one file count together, whatever their tag. `tags`: a regular expression that is searched in the
    tag ("" where there is none). `since`, `until`: an interval counts that begins in between, at `since` included; a date without
    a zone is in UTC, as the log's are. `by_s`: seconds of each of Series.periods.
    """

    merge: bool = False
    ignore_tags: bool = False
    tags: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    by_s: float | None = None


class Apart(NamedTuple):
    """Counts that were not added although one series was asked for: each layout has a series of its own. `why`: a sentence."""

    files: tuple[str, ...]
    tag: str | None
    layouts: tuple[str, ...]
    why: str


class Sums:
    """The sums of intervals. Raises UsageError for an invalid expression."""

    def __init__(self, choice: Choice | None = None) -> None:
        self.choice = choice or Choice()
        self.intervals = self.outside = self.other_tags = (
            0  # taken; outside of since and until; of tags that are not chosen
        )
        self._space = Space()
        self._totals: dict[tuple[str | None, str | None, Layout], Total] = {}
        self._printed: list[Spectrum] = []
        self._tags: dict[str | None, None] = {}
        self._units = set(_TO_MS)
        self._compared = 0
        self._full: dict[str, int] = {}
        try:
            self._matching = None if self.choice.tags is None else re.compile(self.choice.tags)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"{self.choice.tags!r} is not a regular expression: {error}") from None

    def add(self, found: Interval | Spectrum) -> bool:
        """Count an interval, or keep what was printed; whether it was chosen (for --split: write its `line`).

        Raises BadInput for times that the choice has and the file has not, UsageError where --by gives too many periods.
        """
        if isinstance(found, Spectrum):
            return self._print(found)
        if not self._is_chosen(found.tag):
            return False
        if not self._within(found):
            self.outside += 1
            return False
        self._compare(found)
        choice = self.choice
        together = choice.merge or choice.ignore_tags
        key = (None if choice.merge else found.file, None if together else found.tag, found.payload.layout)
        total = self._totals.get(key)
        if total is None:
            if len(self._totals) >= _MOST_SERIES:
                return self._leave(
                    f"there are more than {_MOST_SERIES:,} series; choose with --tag, or use --ignore-tags"
                )
            total = Total(found, key[1], self._space, choice.by_s, merged=together)
        try:
            total.add(found)
        except Full as why:
            return self._leave(str(why) or "their counts are too many to add; choose with --tag, or give fewer logs")
        self._totals[key] = total
        self.intervals += 1
        return True

    def _is_chosen(self, tag: str | None) -> bool:
        if len(self._tags) < _MOST_TAGS:
            self._tags[tag] = None
        if self._matching is None or self._matching.search(tag or ""):
            return True
        self.other_tags += 1
        return False

    def _print(self, found: Spectrum) -> bool:
        if self.choice.since is not None or self.choice.until is not None:
            raise BadInput(found.file, "what a load generator printed has no times: leave out --since and --until")
        if not self._is_chosen(found.name):
            return False
        if len(self._printed) >= _MOST_PRINTED:
            return self._leave(f"more than {_MOST_PRINTED} outputs of load generators are not shown")
        self._printed.append(found)
        return True

    def _leave(self, why: str) -> bool:
        self._full[why] = self._full.get(why, 0) + 1
        return False

    def _within(self, interval: Interval) -> bool:
        for moment, before in ((self.choice.since, False), (self.choice.until, True)):
            if moment is None:
                continue
            if moment.clock == "uptime":
                at_s = interval.since_start_s
            elif interval.dated:
                at_s = interval.begin_s
            else:
                problem = "the log has no date to compare with; give the time since its start (90s, 5m)"
                raise BadInput(interval.file, problem, interval.number)
            if (at_s < moment.at_s) != before:
                return False
        return True

    def _compare(self, interval: Interval) -> None:
        top, most = interval.counts.top, interval.most
        if top < 0 or not most or self._compared >= _MOST_COMPARED:
            return
        self._compared += 1
        payload = interval.payload
        scale = scale_of(payload.layout)
        ratio = payload.ratio if payload.layout.decimal else 1
        least, highest = scale.lowest(top) * ratio, scale.highest(top) * ratio
        self._units = {
            unit for unit in self._units if least / _TO_MS[unit] - _ROUNDED_MS <= most <= highest / _TO_MS[unit] + _ROUNDED_MS
        }  # fmt: skip

    def series(self) -> list[Series]:
        """All series, in the order of their first interval, then what was printed. Nothing can be added afterwards."""
        return [*(total.series() for total in self._totals.values()), *map(series_of, self._printed)]

    @property
    def apart(self) -> list[Apart]:
        """What was not added although it was asked for, and why."""
        groups: dict[tuple[str | None, str | None], list[Total]] = {}
        for (file, tag, _), total in self._totals.items():
            groups.setdefault((file, tag), []).append(total)
        found = [_apart(tag, totals) for (_, tag), totals in groups.items() if len(totals) > 1]
        if self.choice.merge and self._printed and len(self._printed) + len(self._totals) > 1:
            files = tuple(dict.fromkeys(each.file for each in self._printed))
            why = f"{listed(files, 3)}: percentiles cannot be added, and a printed histogram has no counts"
            found.append(Apart(files, None, (), why))
        return found

    @property
    def left(self) -> list[str]:
        """Sentences on intervals that were left out, because something has an end."""
        return [f"{plural(number, 'interval')} left out: {why}" for why, number in self._full.items()]

    @property
    def likely_unit(self) -> str | None:
        """The unit of the values if the column Interval_Max is in ms: ns, us, ms or s; None: no unit or several fit all intervals."""
        return next(iter(self._units)) if self._compared and len(self._units) == 1 else None

    @property
    def tags(self) -> list[str | None]:
        """All tags that were seen, chosen or not: the first 1,000."""
        return list(self._tags)


def _apart(tag: str | None, totals: Sequence[Total]) -> Apart:
    layouts = tuple(str(total.layout) for total in totals)
    files = tuple(dict.fromkeys(file for total in totals for file in total.files))
    parts = "; ".join(f"{layout}: {_source(total, len(files) > 1)}" for layout, total in zip(layouts, totals))
    return Apart(files, tag, layouts, f"counts of different cells cannot be added ({parts})")


def _source(total: Total, several: bool) -> str:
    tags = [tag or "no tag" for tag in total.tags]
    return " of ".join([listed(tags, 3)] + [listed(list(total.files), 3)] * several)
