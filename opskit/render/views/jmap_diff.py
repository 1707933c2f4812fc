"""How the comparison of class histograms is shown: fields, the lines of `-f text`, sentences, pictures."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from opskit.analysis.jmap_diff.compare import proportion
from opskit.analysis.jmap_diff.evidence import LEAST_HISTOGRAMS
from opskit.analysis.jmap_diff.spaces import LEAST_POINTS, objects_of
from opskit.analysis.jmap_diff.trend import growth_of
from opskit.escape import printable
from opskit.jvm.dumps.class_names import is_application, to_readable
from opskit.quantities import agreeing, duration, plural, signed_size, size
from opskit.records import NamedTuple
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SIZE, TEXT, Field, Kind, list_of, record, records
from opskit.render.report import Block, Report, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.analysis.jmap_diff.compare import Comparison, Growth
    from opskit.analysis.jmap_diff.judge import Result
    from opskit.analysis.jmap_diff.spaces import Forecast
    from opskit.analysis.jmap_diff.trend import Trend
    from opskit.jvm.dumps.histogram import Histogram
    from opskit.render.pictures.chart import Chart
    from opskit.render.report import About

_NAMED = 3  # how many classes a note names
_SUSPECTS_IN_TEXT = 5
_FORESEEABLE_MIN = 90 * 24 * 60
_LINES_IN_A_PICTURE = 8
_BARS_IN_A_PICTURE = 24
_PAUSES_IN_TEXT = 5


class Row(NamedTuple):
    """A Growth with its module."""

    name: str
    module: str | None
    instances: int
    bytes: int
    instances_diff: int
    bytes_diff: int


class Shown(NamedTuple):
    """What the document shows of a result: its first rows and trends."""

    result: Result
    rows: Sequence[Growth]
    trend: Sequence[Trend]


def _signed(count: int) -> str:
    return f"{count:+,d}"


def _proportion(row: Growth) -> str:
    part = proportion(row)
    return "new" if part == float("inf") else "gone" if row.bytes == 0 else f"{part * 100:+,.1f} %"


def _of_total(field: Field[Any], result: Result) -> object:
    return field.value(result.found.total)


_NAME: Field[Any] = Field("name", TEXT, "class", show=to_readable, help="as the JVM writes it")
_INSTANCES: Field[Any] = Field("instances", COUNT, "instances now", help="in the last histogram")
_BYTES: Field[Any] = Field("bytes", SIZE, "bytes now", help="in the last histogram, without what they refer to")
_INSTANCES_DIFF: Field[Any] = Field("instances_diff", COUNT, "instances", show=_signed, help="last - first")
_BYTES_DIFF: Field[Any] = Field("bytes_diff", SIZE, "bytes", show=signed_size, help="last - first")
_GROWN: Field[Growth] = Field("grown_by", TEXT, "grown by", _proportion, right=True, json=False)
_NUMBERS = (_INSTANCES, _BYTES, _INSTANCES_DIFF, _BYTES_DIFF)
CLASS: Sequence[Field[Row]] = (_NAME, Field("module", help="without its version"), *_NUMBERS)
_STEPS_GROWN: Field[Trend] = Field("steps_grown", COUNT)
_STEPS: Field[Trend] = Field("steps", COUNT, help="from one histogram to the next")
_PER_MIN: Field[Trend] = Field("bytes_per_min", NUMBER, "bytes per min", show=signed_size, help="least-squares slope")
_PER_STEP: Field[Trend] = Field("bytes_per_step", NUMBER, "bytes per step", show=signed_size, help="the same per step")
TREND: Sequence[Field[Trend]] = (
    Field("rank", COUNT),
    _NAME,
    _STEPS_GROWN,
    _STEPS,
    _PER_MIN,
    _PER_STEP,
    Field("steady", FLAG, help="grown in three of four steps or more"),
    Field("bytes", list_of(SIZE), help="in each histogram"),
)
HISTOGRAM: Sequence[Field[tuple[Histogram, float | None]]] = (
    Field("source", value=lambda pair: pair[0].source),
    Field("line", COUNT, value=lambda pair: pair[0].line),
    Field("rows", COUNT, value=lambda pair: len(pair[0].rows)),
    Field("total_instances", COUNT, value=lambda one: one[0].total and one[0].total.instances, help="its Total line"),
    Field("total_bytes", SIZE, value=lambda pair: pair[0].total and pair[0].total.bytes, help="its Total line"),
    Field("cut", value=lambda pair: pair[0].cut, help="why rows are missing; null where none are"),
    Field("moment", value=lambda pair: pair[0].moment, help="before full gc or after full gc, in a GC log"),
    Field("time_s", NUMBER, value=lambda pair: pair[0].stamp.time_s, help="since the epoch"),
    Field("uptime_s", NUMBER, value=lambda pair: pair[0].stamp.uptime_s),
    Field("pid", ID, value=lambda pair: pair[0].stamp.pid),
    Field("stopped_ms", NUMBER, value=lambda pair: None if pair[1] is None else round(pair[1] * 1000, 3)),
)
TOTAL: Sequence[Field[Result]] = (
    *(Field(field.name, field.kind, value=partial(_of_total, field)) for field in _NUMBERS),
    Field("partial", FLAG, value=lambda result: result.is_partial, help="the first or last histogram is cut"),
    Field("vm", record(_NUMBERS), value=lambda result: result.found.vm, help="the VM's own <...> rows"),
    Field("rest", record(_NUMBERS), value=lambda result: result.found.rest, help="without the VM's own rows"),
    Field("all_classes", record(_NUMBERS), value=lambda result: result.found.everything, help="deselected ones too"),
    Field(
        "by_total_lines",
        record((Field("instances_diff", COUNT, value=itemgetter(0)), Field("bytes_diff", SIZE, value=itemgetter(1)))),
        value=lambda result: result.printed,
        help="the difference of the Total lines, where rows are missing",
    ),
)
FORECAST: Sequence[Field[Forecast]] = (
    Field("space", help="heap, Metaspace, class space, direct memory or zlib's native memory"),
    Field("used_bytes", SIZE),
    Field("ceiling_bytes", SIZE, help="null: unknown"),
    Field("ceiling", help="the option, the cgroup or the machine that sets it"),
    Field("bytes_per_min", NUMBER, value=lambda one: one.per_min, help="null where the series supports no forecast"),
    Field("full_in_min", NUMBER),
)
DOCUMENT: Sequence[Field[Shown]] = (
    Field("classes", records(CLASS), value=lambda shown: named(shown.result.found, shown.rows)),
    Field("total", record(TOTAL), value=lambda shown: shown.result),
    Field("trend", records(TREND), value=lambda shown: [one._replace(rank=n) for n, one in enumerate(shown.trend, 1)]),
    Field("by", Kind({"enum": ["class", "package", "module"]}), value=lambda shown: shown.result.choice.by),
    Field("histograms", records(HISTOGRAM), value=lambda shown: shown.result.used),
    Field("heap_max_bytes", SIZE, value=lambda shown: (jvm := shown.result.facts.jvm) and jvm.heap_max_bytes),
    Field(
        "heap_full_in_min",
        NUMBER,
        value=lambda shown: (heap := shown.result.heap) and heap.full_in_min,
        help="at this slope; null where the growth may be garbage, or where the series supports no forecast",
    ),
    Field("forecasts", records(FORECAST), value=lambda shown: forecasts(shown.result), help="spaces that fill up"),
    Field("suspects", list_of(TEXT), value=lambda shown: [one.name for one in shown.result.suspects]),
    Field(
        "proof",
        Kind({"enum": ["reachable", "collected", "young", "none", "unknown"]}),
        value=lambda shown: shown.result.proof.kind,
        help="reachable objects only; collected: old collections between the histograms; others may count garbage",
    ),
    Field("live", FLAG, value=lambda shown: shown.result.facts.live if shown.result.facts.jvm else None),
    Field("saved", list_of(TEXT), value=lambda shown: shown.result.facts.saved, help="with --save"),
)


def report(about: About, result: Result, top: int | None) -> Report:
    """What keeps growing where there is a trend; then the last histogram against the first."""
    rows, trend = result.first(top), result.trend[: top or None]
    total = total_line(result)
    return Report(
        about,
        blocks(result, rows, trend),
        verdict=verdict(result),
        summary=[total],
        footer=[*_selection_notes(result), *_cut_notes(result), *result.oddities, *_cost_notes(result)],
        findings=result.findings,
        document=(DOCUMENT, Shown(result, rows, trend)),
        text=lambda: [
            *lines(result.rows, result.order[: top or None]),
            *(f"# {line}" for line in _asides(result)),
            f"# {total}",
        ],
        sheet=lambda: sheet(result, rows),
        chart=lambda: chart(result, top, total),
    )


def blocks(result: Result, rows: Sequence[Growth], trend: Sequence[Trend]) -> list[Block[Any]]:
    """The tables: what keeps growing where there is a trend, then the difference of the last and the first."""
    name: Field[Any] = Field("name", TEXT, result.choice.by, show=to_readable)
    difference = Block([name, _INSTANCES_DIFF, _BYTES_DIFF, _GROWN, _INSTANCES, _BYTES], rows, len(result.rows))
    if not result.suspects:
        return [difference] if rows else []
    columns: list[Field[Trend]] = [
        name,
        Field("steps_grown", TEXT, "steps grown", lambda one: f"{one.steps_grown} of {one.steps}", right=True),
        _PER_STEP if result.found.times_s is None else _PER_MIN,
        Field("first", SIZE, "first", lambda one: one.bytes[0]),
        Field("last", SIZE, "last", lambda one: one.bytes[-1]),
    ]
    for column in columns:
        column.right = column is not name
    total = sum(map(_is_growing, result.trend))
    growing = Block(
        columns, [*filter(_is_growing, trend)], total, "what keeps growing" if result.proof.proves else "what grew"
    )
    changed = Block(difference.columns, rows, difference.total, "the last against the first")
    return [block for block in (growing, changed) if block.rows]


def _is_growing(one: Trend) -> bool:
    return one.steps_grown > 0 and one.pace > 0


def lines(rows: Sequence[Growth], order: Iterable[int]) -> list[str]:
    """Class, instances, bytes: tabs between them, always signed; in that order.

    They are made in the order of memory, and the signs by hand, which halves the time of either.
    """
    harmless = "".join([row[0] for row in rows]).isprintable()  # one test for a hundred thousand names
    made = [
        f"{name if harmless else printable(name)}"
        f"\t{'+' if instances >= 0 else ''}{instances}\t{'+' if bytes_ >= 0 else ''}{bytes_}"
        for name, _, _, instances, bytes_ in rows
    ]
    return [made[place] for place in order]


def suspect_lines(result: Result) -> Iterator[str]:
    """The likeliest leaks, a sentence each."""
    kind = "suspect" if result.proof.proves else "possible suspect"
    for number, one in enumerate(result.suspects[:_SUSPECTS_IN_TEXT], 1):
        yield f"{kind} {number}: {printable(one.name)} grew {growth_of(one)}"


def verdict(result: Result) -> list[str]:
    """The answer in a sentence, then when a space is full, or why the growth may be garbage."""
    count = len(result.used)
    if count < 2:
        return [f"{plural(count, 'histogram')} taken; growth is shown from the second one on"]
    return [*_answer(result), *_forecast_lines(result), *_doubts(result)]


def _answer(result: Result) -> list[str]:
    suspects, proves = result.leaks, result.proof.proves
    said = [objects_of(one) for one in result.spaces]
    if not suspects:
        if said or (proves and result.heap):
            return said
        return (
            ["no class keeps growing: these histograms show no leak"]
            if proves and result.trend
            else [_most_grown(result)]
        )
    first, more = suspects[0], f", and {plural(len(suspects) - 1, 'more', 'more')}" if suspects[1:] else ""
    grows = "keeps growing" if proves else f"grew in {first.steps_grown} of {first.steps} steps"
    said.append(f"{to_readable(first.name)} {grows}{more}")
    fastest = max(suspects, key=lambda one: one.pace)
    if fastest is not first:
        said.append(f"{to_readable(fastest.name)} grows fastest of all that keep growing: {growth_of(fastest)}")
    return said


def _most_grown(result: Result) -> str:
    grown = sorted((row for row in result.rows if row.bytes_diff > 0), key=itemgetter(4), reverse=True)
    if not grown:
        return "nothing has grown"
    said = f"{to_readable(grown[0].name)} grew most: {_by(grown[0])}"
    own = next((row for row in grown if is_application(row.name)), None)
    if result.choice.by != "class" or own is None or own is grown[0]:
        return said
    return f"{said}; of the application's classes {to_readable(own.name)}: {_by(own)}"


def _by(row: Growth) -> str:
    return f"{signed_size(row.bytes_diff)}, {row.instances_diff:+,d} {agreeing(abs(row.instances_diff), 'instance')}"


def _doubts(result: Result) -> list[str]:
    """Why growth may be garbage; nothing where nothing has grown."""
    why = result.proof.why
    if why is None or len(result.used) < 2 or not any(row.bytes_diff > 0 for row in result.rows):
        return []
    return [why]


def _asides(result: Result) -> Iterator[str]:
    """What `-f text` adds to the rows; to those of two files nothing, since they claim no leak."""
    if result.facts.jvm is not None or len(result.used) >= LEAST_HISTOGRAMS:
        yield from (*suspect_lines(result), *_forecast_lines(result), *_doubts(result))


def forecasts(result: Result) -> list[Forecast]:
    """Those of all spaces that fill up, the heap first."""
    return [*([result.heap] if result.heap else []), *(one.forecast for one in result.spaces)]


def _forecast_lines(result: Result) -> Iterator[str]:
    """Which space is full first, and when."""
    heap, found = result.heap, forecasts(result)
    if heap is not None and heap.is_nearly_full:
        yield f"the heap is nearly full: {size(heap.used_bytes)} of {size(heap.ceiling_bytes)} in use after collections"
        return
    soonest = min(found, key=lambda one: float("inf") if one.full_in_min is None else one.full_in_min, default=None)
    if soonest is not None and soonest.full_in_min is not None and soonest.full_in_min <= _FORESEEABLE_MIN:
        space = "the heap" if soonest is heap else soonest.space
        yield f"at this slope {space} is full in {duration(soonest.full_in_min * 60)}"
    if found and len(result.proof.picked) < LEAST_POINTS:
        yield f"{len(result.proof.picked)} histograms are too few for a forecast: -c {LEAST_POINTS} or more"


def _selection_notes(result: Result) -> Iterator[str]:
    used, given = len(result.used), len(result.facts.samples)
    if used < given:
        yield f"{used} of {given} histograms are compared: those after a full GC, which hold no garbage"
    if used > 2 and result.found.times_s is None:
        yield "the times of these histograms are not all known: slopes are per histogram, not per minute"


def _cut_notes(result: Result) -> Iterator[str]:
    used = [histogram for histogram, _ in result.used]
    for histogram in used:
        for reason in filter(None, (histogram.cut and f"cut short: {histogram.cut}", *histogram.doubts)):
            yield f"{histogram.source}:{histogram.line}: {reason}"
    if result.is_partial:
        yield "rows that are cut off are not in the sums: the totals are partial"
    found = result.found
    for side, other, names in ((used[0], "last", found.appeared), (used[-1], "first", found.vanished)):
        if side.cut and names:
            more = f" and {len(names) - _NAMED:,d} more" if len(names) > _NAMED else ""
            yield (
                f"only the {other} histogram has {', '.join(map(to_readable, names[:_NAMED]))}{more}: "
                f"{side.source}:{side.line} is cut, and may have had them below the cut"
            )


def _cost_notes(result: Result) -> Iterator[str]:
    facts = result.facts
    if facts.jvm is None:
        return
    known = [pause_s for _, pause_s in result.used if pause_s is not None]
    if len(known) == len(result.used):
        few = known if len(known) <= _PAUSES_IN_TEXT else [min(known), max(known)]
        pauses = (", " if few is known else " to ").join(f"{pause_s * 1000:,.1f} ms" for pause_s in few)
        yield f"each histogram stopped the JVM (by hsperfdata): {pauses}"
    else:
        why = "a capture does not tell" if facts.replayed else "it shares no counters"
        yield f"how long each histogram stopped the JVM is unknown: {why}"
    if facts.late:
        yield f"{plural(facts.late, 'histogram')} came late: taking one is slow against the interval; give a longer -i"
    if result.findings and result.proof.proves and not facts.has_ended:
        yield "only a heap dump shows what holds these objects; it stops the JVM while it is written"


def total_line(result: Result) -> str:
    """All that was selected, the VM's own part of it, and the rest."""
    found, printed = result.found, result.printed
    total, vm, rest, everything = found.total, found.vm, found.rest, found.everything
    partial = "partial: " if result.is_partial else ""
    parts = [f"{partial}{total.instances_diff:+d} instances {total.bytes_diff:+d} bytes"]
    if vm.bytes or vm.bytes_diff:
        parts.append(f"of these the VM's own <...> rows {vm.instances_diff:+d} {vm.bytes_diff:+d}")
        parts.append(f"the rest {rest.instances_diff:+d} {rest.bytes_diff:+d}")
    if everything is not total:
        parts.append(f"all classes {everything.instances_diff:+d} {everything.bytes_diff:+d}")
    if printed is not None:
        parts.append(f"by the Total lines {printed[0]:+d} {printed[1]:+d}")
    return "; ".join(parts)


def named(found: Comparison, rows: Iterable[Growth]) -> Iterator[Row]:
    """The rows with their modules."""
    for row in rows:
        module = found.modules.get(row.name)
        yield Row(row.name, module and module.partition("@")[0], *row[1:])


def sheet(result: Result, rows: Sequence[Growth]) -> Sheet:
    """The rows as CSV; where there is a trend, with its numbers."""
    header = [field.name for field in CLASS]
    if not result.found.trend:
        return Sheet(header, named(result.found, rows))
    more = (_STEPS_GROWN, _STEPS, _PER_MIN, _PER_STEP)
    tails = {one.name: [field.value(one) for field in more] for one in result.trend}
    unknown = [None] * len(more)
    plain = ((*row, *tails.get(row.name, unknown)) for row in named(result.found, rows))
    return Sheet([*header, *(field.name for field in more)], plain)


def chart(result: Result, top: int | None, note: str) -> Chart:
    """The likeliest leaks as lines over time; of two histograms, what changed most as bars."""
    from opskit.render.pictures.chart import BarChart, Line, LineChart

    times_s = result.found.times_s
    if result.trend:
        xs = times_s or [float(number) for number in range(1, len(result.used) + 1)]
        most = result.trend[: min(top or _LINES_IN_A_PICTURE, _LINES_IN_A_PICTURE)]
        return LineChart(
            "What keeps growing",
            [Line(to_readable(one.name), list(zip(xs, one.bytes))) for one in most],
            x_is_time=times_s is not None,
            x_title=None if times_s else "histogram",
            note=note,
        )
    changed = sorted(result.first(None), key=lambda row: -abs(row.bytes_diff))[: top or _BARS_IN_A_PICTURE]
    changed.sort(key=lambda row: -row.bytes_diff)
    bars = [(to_readable(row.name), row.bytes_diff) for row in changed]
    return BarChart("What grew, and what shrank", bars, note=note)
