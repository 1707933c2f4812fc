"""The last class histogram against the first: what grew and what shrank. Pure."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from opskit.analysis.jmap_diff.names import Choice, Names
from opskit.analysis.jmap_diff.trend import Trend, times_s, trend
from opskit.jvm.dumps.class_names import is_vm
from opskit.jvm.dumps.histogram import sum_rows
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.jvm.dumps.histogram import Histogram


class Growth(NamedTuple):
    """One class (or package, or module): its numbers in the last histogram, and their difference from the first."""

    name: str
    instances: int
    bytes: int
    instances_diff: int
    bytes_diff: int


class Comparison(NamedTuple):
    """The last histogram against the first, and the trend between them.

    `rows`: what changed, in no order. `total`: all that was selected; `vm`: the VM's own `<...>` part of it; `everything`:
    the deselected rows too. `trend`: ranked, the likeliest leak first; empty for two histograms. `modules`: of each name,
    some with a version after an @. `came`: how many classes are new in the last one. `appeared`: names that the first
    one, which is cut, may have had all the same; `vanished`: the same of the last one; largest first.
    """

    rows: list[Growth]
    total: Growth
    vm: Growth
    everything: Growth
    trend: list[Trend]
    modules: Mapping[str, str]
    times_s: list[float] | None
    came: int
    appeared: list[str]
    vanished: list[str]

    @property
    def rest(self) -> Growth:
        """The total without the VM's own part."""
        return Growth("rest", *(one - other for one, other in zip(self.total[1:], self.vm[1:])))


def compare(histograms: Sequence[Histogram], choice: Choice) -> Comparison:
    """Compare two histograms or more, in the order they were taken."""
    first, last = histograms[0], histograms[-1]
    raw, gone = changes(first.rows, last.rows)
    names = Names(histograms, choice, gone)
    rows = _compared(names, raw, last.rows)
    everything = _total(raw, sum_rows(last.rows))
    times = times_s(histograms)
    series = [names.final(histogram.rows) for histogram in histograms] if len(histograms) > 2 else []
    return Comparison(
        rows=rows,
        total=_total(rows, sum_rows(names.final(last.rows))) if choice.is_partial else everything,
        vm=_vm_part(names, raw, last.rows),
        everything=everything,
        trend=trend(series, times, [histogram.cut is None for histogram in histograms]) if series else [],
        modules=names.modules if choice.by == "class" else {},
        times_s=times,
        came=len(last.rows) - (len(first.rows) - len(gone)),
        appeared=_largest_first(row for row in rows if row[1] == row[3] and row[2] == row[4]) if first.cut else [],
        vanished=_largest_first(row for row in rows if not row[1] and not row[2]) if last.cut else [],
    )


def _compared(names: Names, raw: list[Growth], last: Mapping[str, tuple[int, int]]) -> list[Growth]:
    """Rows under the names that are compared. Most names stay, and their rows are passed on."""
    folded = names.folded
    if names.choice.by != "class" or names.choice.is_partial:
        kept, others = [], raw
    else:
        kept = [row for row in raw if row[0] not in folded]
        others = [row for row in raw if row[0] in folded]
        last = {name: last[name] for name in folded if name in last}
    if not others:
        return kept
    differences = names.final({row[0]: (row[3], row[4]) for row in others})
    now = names.final(last)
    return kept + [
        Growth(name, *now.get(name, (0, 0)), instances, size)
        for name, (instances, size) in differences.items()
        if instances or size
    ]


def _vm_part(names: Names, raw: Sequence[Growth], last: Mapping[str, tuple[int, int]]) -> Growth:
    if not names.any_vm:
        return _total((), (0, 0))
    now = names.selected({name: counts for name, counts in last.items() if is_vm(name)})
    return _total([row for row in raw if is_vm(row.name) and names.is_selected(row.name)], sum_rows(now))


def _largest_first(rows: Iterable[Growth]) -> list[str]:
    return [row.name for row in sorted(rows, key=lambda row: -abs(row.bytes_diff))]


def changes(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> tuple[list[Growth], list[str]]:
    """A row for each name whose instances or bytes differ, and the names that vanished. An absent name counts 0."""
    nothing = (0, 0)
    left, make = dict(before), partial(tuple.__new__, Growth)  # half the time of Growth()
    was = left.pop
    rows = [
        make((name, now[0], now[1], now[0] - then[0], now[1] - then[1]))
        for name, now in after.items()
        if now != (then := was(name, nothing))
    ]
    rows += [Growth(name, 0, 0, -then[0], -then[1]) for name, then in left.items() if then != nothing]
    return rows, list(left)


def visible(rows: Iterable[Growth], sort: str, min_bytes: int) -> list[Growth]:
    """The rows whose bytes changed by `min_bytes` or more; sorted by instances, those with unchanged bytes too."""
    if sort == "instances" and min_bytes == 0:
        return list(rows)
    least = max(1, min_bytes)
    return [row for row in rows if abs(row[4]) >= least]


def order(rows: Sequence[Growth], sort: str) -> list[int]:
    """Indexes of the rows, largest growth first: in bytes, in instances or in proportion; or by name."""
    places = sorted(range(len(rows)), key=[row[4] for row in rows].__getitem__, reverse=True)
    if sort == "name":
        return sorted(places, key=lambda place: rows[place].name)
    if sort == "instances":
        return sorted(places, key=lambda place: rows[place].instances_diff, reverse=True)
    return sorted(places, key=lambda place: proportion(rows[place]), reverse=True) if sort == "growth" else places


def proportion(row: Growth) -> float:
    """The growth as a share of the first histogram: 1.0 is twice as much, infinity for a new row."""
    before = row.bytes - row.bytes_diff
    return row.bytes_diff / before if before else float("inf")


def _total(rows: Sequence[Growth], now: tuple[int, int]) -> Growth:
    return Growth("total", *now, sum(map(itemgetter(3), rows)), sum(map(itemgetter(4), rows)))
