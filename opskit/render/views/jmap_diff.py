"""How differences of class histograms are shown: columns for tables, lines for text, keys for JSON, pictures."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from opskit.analysis.jmap_diff import pace_of, proportion, times_s
from opskit.escape import printable
from opskit.jvm.dumps.class_names import to_readable
from opskit.quantities import size, whole
from opskit.render.report import Block, Column, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.jmap_diff import Comparison, Growth, Trend
    from opskit.jvm.dumps.histogram import Histogram
    from opskit.render.pictures.chart import Chart

_NAMED = 3  # how many classes a footer names
_SUSPECTS_IN_TEXT = 5
_FORESEEABLE_MIN = 90 * 24 * 60
_LINES_IN_A_PICTURE = 8  # more of them nobody tells apart
_BARS_IN_A_PICTURE = 24


def signed_size(count: float | None) -> str:
    """A signed number of bytes for people: +62.0 MiB."""
    if count is None:
        return "unknown"
    return ("+" if count >= 0 else "-") + size(abs(count))


def duration(minutes: float) -> str:
    """How long something still takes, in the unit that fits: 40 s, 12 min, 3 h, 5 days."""
    for limit, factor, unit in ((2, 60, "s"), (120, 1, "min"), (48 * 60, 1 / 60, "h")):
        if minutes < limit:
            return f"{minutes * factor:.0f} {unit}"
    return f"{minutes / 60 / 24:,.0f} days"


def _proportion(row: Growth) -> str:
    part = proportion(row)
    return "new" if part == float("inf") else "gone" if row.bytes == 0 else f"{part * 100:+,.1f} %"


def columns(by: str) -> list[Column[Growth]]:
    """The table's columns: names as people write them."""
    return [
        Column(by, lambda row: row.name, to_readable),
        Column("instances", lambda row: row.instances_diff, lambda count: f"{count:+,d}", right=True),
        Column("bytes", lambda row: row.bytes_diff, signed_size, right=True),
        Column("grown by", lambda row: row, _proportion, right=True),
        Column("instances now", lambda row: row.instances, whole, right=True),
        Column("bytes now", lambda row: row.bytes, size, right=True),
    ]


def trend_columns(by: str, *, timed: bool) -> list[Column[Trend]]:
    """The suspects' columns."""
    return [
        Column(by, lambda one: one.name, to_readable),
        Column("steps grown", lambda one: f"{one.steps_grown} of {one.steps}", right=True),
        Column("bytes per min", lambda one: one.bytes_per_min, signed_size, right=True)
        if timed
        else Column("bytes per step", lambda one: one.bytes_per_step, signed_size, right=True),
        Column("first", lambda one: one.bytes[0], size, right=True),
        Column("last", lambda one: one.bytes[-1], size, right=True),
    ]


def blocks(found: Comparison, by: str, rows: Sequence[Growth], suspects: Sequence[Trend]) -> list[Block[Any]]:
    """The tables: what keeps growing where there is a trend, then the difference of the last and the first."""
    difference = Block(columns(by), rows, len(found.rows))
    growing = [one for one in suspects if one.steps_grown and pace_of(one) > 0]
    if not found.trend:
        return [difference]
    total = sum(one.steps_grown > 0 and pace_of(one) > 0 for one in found.trend)
    return [
        Block(trend_columns(by, timed=found.times_s is not None), growing, total, "what keeps growing"),
        Block(difference.columns, rows, difference.total, "the last against the first"),
    ]


def lines(rows: Sequence[Growth], order: Sequence[int]) -> list[str]:
    """Class, instances, bytes: tabs between them, always signed; in that order.

    They are made in the order in which they lie in memory, and the signs by hand, which halves the time of either.
    """
    harmless = "".join([row[0] for row in rows]).isprintable()  # at once: of a hundred thousand names hardly one is not
    made = [
        f"{name if harmless else printable(name)}"
        f"\t{'+' if instances >= 0 else ''}{instances}\t{'+' if bytes_ >= 0 else ''}{bytes_}"
        for name, _, _, instances, bytes_ in rows
    ]
    return [made[place] for place in order]


def suspect_lines(trend: Sequence[Trend]) -> Iterator[str]:
    """The likeliest suspects, a sentence each."""
    for number, one in enumerate([one for one in trend if one.steady][:_SUSPECTS_IN_TEXT], 1):
        yield (f"suspect {number}: {printable(one.name)} grew in {one.steps_grown} of {one.steps} steps, {pace(one)}")


def verdict(found: Comparison) -> list[str]:
    """The answer in a sentence."""
    if not found.trend:
        most = max(found.rows, key=itemgetter(4), default=None)
        if most is None or most.bytes_diff <= 0:
            return ["nothing has grown"]
        return [
            f"{to_readable(most.name)} grew most: {signed_size(most.bytes_diff)}, {most.instances_diff:+,d} instances"
        ]
    first = found.trend[0]
    if not first.steady:
        return ["no class grew in nearly every step: these histograms show no leak"]
    said = [
        f"{to_readable(first.name)} keeps growing: in {first.steps_grown} of {first.steps} steps, {pace(first)}, "
        f"{size(first.bytes[-1])} by now"
    ]
    fastest = max((one for one in found.trend if one.steady), key=pace_of)
    if fastest is not first:
        said.append(f"{to_readable(fastest.name)} grows fastest of all that keep growing: {pace(fastest)}")
    return said


def selection_notes(given: int, used: Sequence[Histogram]) -> Iterator[str]:
    """What was not compared, and what that means for the slopes."""
    if len(used) < given:
        yield f"{len(used)} of {given} histograms are compared: those after a full GC, which hold no garbage"
    if len(used) > 2 and times_s(used) is None:
        yield "when these histograms were taken is not known of all: slopes are by histogram, not by time"


def cut_notes(used: Sequence[Histogram], found: Comparison) -> Iterator[str]:
    """Which histograms are not whole, and what follows from that."""
    for histogram in used:
        for reason in filter(None, (histogram.cut and f"cut short: {histogram.cut}", *histogram.doubts)):
            yield f"{histogram.source}:{histogram.line}: {reason}"
    if used[0].cut or used[-1].cut:
        yield "what is cut off is not in the sums: the totals are partial"
    for side, other, names in ((used[0], "last", found.appeared), (used[-1], "first", found.vanished)):
        if side.cut and names:
            more = f" and {len(names) - _NAMED:,d} more" if len(names) > _NAMED else ""
            yield (
                f"only the {other} histogram has {', '.join(map(to_readable, names[:_NAMED]))}{more}: "
                f"{side.source}:{side.line} is cut, and may have had them below the cut"
            )


def pace(one: Trend) -> str:
    """How fast: by the minute where the times are known."""
    if one.bytes_per_min is None:
        return f"{signed_size(one.bytes_per_step)} a histogram"
    return f"{signed_size(one.bytes_per_min)} a minute"


def total_line(found: Comparison, *, partial: bool, printed: tuple[int, int] | None) -> str:
    """All that was chosen, what of it is the VM's own, and the rest. `printed`: by the Total lines, where rows are missing."""
    total, vm = found.total, found.vm
    parts = [f"{'partial: ' if partial else ''}{total.instances_diff:+d} instances {total.bytes_diff:+d} bytes"]
    if vm.bytes or vm.bytes_diff:
        parts.append(f"of these the VM's own <...> rows {vm.instances_diff:+d} {vm.bytes_diff:+d}")
        parts.append(f"the rest {total.instances_diff - vm.instances_diff:+d} {total.bytes_diff - vm.bytes_diff:+d}")
    if found.everything is not total:
        parts.append(f"all classes {found.everything.instances_diff:+d} {found.everything.bytes_diff:+d}")
    if printed is not None:
        parts.append(f"by the Total lines {printed[0]:+d} {printed[1]:+d}")
    return "; ".join(parts)


HEADER = ("name", "module", "instances", "bytes", "instances_diff", "bytes_diff")
_NUMBERS = HEADER[2:]


def sheet(found: Comparison, rows: Sequence[Growth], trend: Sequence[Trend]) -> Sheet:
    """The rows for spreadsheets; with a trend its numbers behind them."""
    plain = ((row.name, _module(found, row.name), *row[1:]) for row in rows)
    if not found.trend:
        return Sheet(HEADER, plain)
    tails = {one.name: (one.steps_grown, one.steps, one.bytes_per_min, one.bytes_per_step) for one in trend}
    more = ("steps_grown", "steps", "bytes_per_min", "bytes_per_step")
    return Sheet((*HEADER, *more), ((*row, *tails.get(str(row[0]), (None,) * 4)) for row in plain))


def row_object(found: Comparison, row: Growth) -> dict[str, Any]:
    """One class for JSON."""
    return {"name": row.name, "module": _module(found, row.name), **{name: getattr(row, name) for name in _NUMBERS}}


def _module(found: Comparison, name: str) -> str | None:
    module = found.modules.get(name)
    return module and module.partition("@")[0]


def total_object(found: Comparison, *, partial: bool, printed: tuple[int, int] | None) -> dict[str, Any]:
    """The totals for JSON."""

    def numbers(row: Growth) -> dict[str, int]:
        return {name: getattr(row, name) for name in _NUMBERS}

    total, vm = numbers(found.total), numbers(found.vm)
    return {
        **total,
        "partial": partial,
        "vm": vm,
        "rest": {name: total[name] - vm[name] for name in total},
        "all_classes": numbers(found.everything),
        "by_total_lines": printed and {"instances_diff": printed[0], "bytes_diff": printed[1]},
    }


def trend_object(rank: int, one: Trend) -> dict[str, Any]:
    """One class's trend for JSON."""
    return {
        "rank": rank,
        "name": one.name,
        "steps_grown": one.steps_grown,
        "steps": one.steps,
        "bytes_per_min": one.bytes_per_min,
        "bytes_per_step": one.bytes_per_step,
        "steady": one.steady,
        "bytes": one.bytes,
    }


def full_lines(minutes: float | None) -> list[str]:
    """When the heap is full, where that can be said and is not beyond all planning."""
    if minutes is None or minutes > _FORESEEABLE_MIN:
        return []
    return [f"at this slope the heap is full in {duration(minutes)}"]


def cost_notes(stops_s: Sequence[float | None], late: int, *, live: bool) -> Iterator[str]:
    """What taking the histograms cost the JVM, and what they hold."""
    known = [stop_s for stop_s in stops_s if stop_s is not None]
    if len(known) == len(stops_s):
        yield f"each histogram stopped the JVM (by hsperfdata): {', '.join(f'{stop_s * 1000:,.1f} ms' for stop_s in known)}"
    else:
        yield "how long each histogram stopped the JVM is not known: it shares no counters"
    if late:
        yield f"{late} histograms came late: taking one is slow against the interval; give a longer -i"
    if not live:
        yield "garbage is counted too; --live counts what is reachable only, by a full GC each"


def histogram_object(histogram: Histogram, stop_s: float | None) -> dict[str, Any]:
    """What a histogram is, for JSON; `total_*` by its Total line."""
    total = histogram.total
    return {
        "source": histogram.source,
        "line": histogram.line,
        "rows": len(histogram.rows),
        "total_instances": total and total.instances,
        "total_bytes": total and total.bytes,
        "cut": histogram.cut,
        "moment": histogram.moment,
        "time_s": histogram.stamp.time_s,
        "uptime_s": histogram.stamp.uptime_s,
        "pid": histogram.stamp.pid,
        "stopped_ms": None if stop_s is None else round(stop_s * 1000, 3),
    }


def chart(found: Comparison, rows: Sequence[Growth], top: int | None, note: str) -> Chart:
    """The lines of the likeliest suspects over time; the bars of what changed most where there are two histograms."""
    from opskit.render.pictures.chart import BarChart, Line, LineChart

    if found.trend:
        xs = found.times_s or [float(number) for number in range(1, len(found.trend[0].bytes) + 1)]
        return LineChart(
            "What keeps growing",
            [
                Line(to_readable(one.name), list(zip(xs, one.bytes)))
                for one in found.trend[: min(top or _LINES_IN_A_PICTURE, _LINES_IN_A_PICTURE)]
            ],
            x_is_time=found.times_s is not None,
            x_title=None if found.times_s else "histogram",
            note=note,
        )
    most = sorted(rows, key=lambda row: -abs(row.bytes_diff))[: top or _BARS_IN_A_PICTURE]
    most.sort(key=lambda row: -row.bytes_diff)
    return BarChart("What grew, and what shrank", [(to_readable(row.name), row.bytes_diff) for row in most], note=note)
