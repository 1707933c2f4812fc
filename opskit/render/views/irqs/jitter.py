"""How the hiccup meter's answer is shown: a row of percentiles for each CPU, the longest stalls with their time, what it cannot see."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.analysis.irqs.jitter import PERCENTS
from opskit.quantities import duration, percent
from opskit.render.cells import or_dash, rounded, rounded_at, share_field
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SECONDS, SHARE, TEXT, Field, list_of, record, records, sheet
from opskit.render.report import Block, Metrics, Report
from opskit.render.views.irqs.fields import cpus_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.irqs.jitter import Moment, Result, Row
    from opskit.collect.irqs.real_time import RealTime
    from opskit.render.report import About

_TOP_STALLS = 5
_NS = 9  # digits of seconds
_or_dash = or_dash(duration)
_WORTH_S = 0.001  # a stall that is listed without -v


def _percentile(place: int) -> Field[Row]:
    name = f"p{PERCENTS[place]:g}"
    return Field(
        f"{name.replace('.', '_')}_s", SECONDS, name, lambda row: rounded(row.percentiles_s[place], _NS), show=_or_dash,
        rank={3: 4, 4: 6}.get(place, 0), help=f"{PERCENTS[place]:g} % are not later",
    )  # fmt: skip


ROW: Sequence[Field[Row]] = (
    Field("cpu", ID, "CPU", attrgetter("meter.cpu")),
    Field("samples", COUNT, "samples", rank=5, help="wake-ups; spin: gaps of 5 us or more"),
    Field("least_s", SECONDS, "least", rounded_at("least_s", _NS), show=_or_dash, rank=7),
    *map(_percentile, range(len(PERCENTS))),
    Field("most_s", SECONDS, "longest", rounded_at("most_s", _NS), show=_or_dash),
    Field("stalls", COUNT, "stalls", attrgetter("meter.stall_count"), rank=3, help="of 300 us or more; spin: of 5 us"),
    Field("lost", SHARE, "lost", rounded_at("lost", 5), show=or_dash(percent), rank=2, help="spin: share of the time that was lost in gaps"),
    Field("measuring", SHARE, "measuring", lambda row: round(row.cpu, 4), rank=8, help="share of the CPU that measuring took"),
    Field("elapsed_s", NUMBER, value=lambda row: round(row.meter.elapsed_s, 3)),
)  # fmt: skip


def _stall_fields(result: Result) -> Sequence[Field[Moment]]:
    """With the time of day at which a stall ended."""

    def at(row: Moment) -> str:
        ended = result.facts.began + timedelta(seconds=row.stall.at_s)
        return f"{ended:%H:%M:%S.%f}"[:-3]

    return (
        Field("lasted", SECONDS, "stall", attrgetter("stall.lasted_s"), show=duration),
        Field("cpu", ID, "CPU"),
        Field("at", TEXT, "ended at (UTC)", at),
        Field("after", SECONDS, "after", attrgetter("stall.at_s"), show=duration),
    )


STALL: Sequence[Field[Moment]] = (
    Field("cpu", ID),
    Field("lasted_s", NUMBER, value=rounded_at("stall.lasted_s", _NS)),
    Field("at_s", NUMBER, value=lambda it: round(it.stall.at_s, 6), help="its end, since the begin"),
)
FAILED: Sequence[Field[tuple[int, str]]] = (
    Field("cpu", ID, value=lambda it: it[0]),
    Field("why", value=lambda it: it[1]),
)
REAL_TIME: Sequence[Field[RealTime]] = (
    Field("pid", ID, "pid", attrgetter("process.pid")),
    Field("start_ticks", ID, value=attrgetter("process.start_ticks")),
    Field("command", TEXT, "process", attrgetter("process.command"), shrinks=12),
    Field("tid", ID, "tid"),
    Field("name", TEXT, "thread", shrinks=12),
    Field("policy", TEXT, "policy", help="sched(7): fifo, rr, deadline"),
    Field("allowed", list_of(ID), value=lambda it: sorted(it.allowed), help="CPUs that it may run on"),
    Field("allowed_text", TEXT, "CPUs", lambda it: cpus_text(it.allowed), json=False, shrinks=8),
    Field("cpu", ID, "last on", help="the CPU that it ran on last"),
    share_field("running", "running", "running", help="0 to 1 of a CPU"),
    Field("slice_s", SECONDS, "at a time", rounded_at("slice_s", _NS), show=or_dash(duration), help="how long it kept a CPU on average"),
)  # fmt: skip
JITTER: Sequence[Field[Result]] = (
    Field("began_utc", TEXT, value=lambda it: f"{it.facts.began:%Y-%m-%dT%H:%M:%S.%f}Z"),
    Field("window_s", NUMBER, value=attrgetter("facts.ask.window_s"), help="that was asked for"),
    Field("spin", FLAG, value=attrgetter("facts.ask.spin")),
    Field("interrupted", FLAG, value=attrgetter("facts.interrupted"), help="ended early: see each CPU's elapsed_s"),
    Field("cpus", records(ROW), value=lambda it: [*it.rows]),
    Field("stalls", records(STALL), value=lambda it: [*it.stalls], help="the longest ones first, of each CPU at most 100"),
    Field("real_time", records(REAL_TIME), value=lambda it: [*it.facts.real_time], help="threads that run before the meters, the busiest first"),
    Field("hogged", list_of(ID), value=lambda it: [blame.cpu for blame in it.hogs], help="CPUs whose stalls these threads cause"),
    Field("failed", records(FAILED), value=lambda it: [*it.facts.failed], help="CPUs that could not be measured"),
    Field("unseen", TEXT, help="what this meter cannot see"),
)  # fmt: skip
FIELD: Field[Any] = Field("jitter", record(JITTER), help="of --jitter")


def report(about: About, result: Result, *, text: bool, verbose: bool, top: int | None) -> Report:
    """The CPUs, then the longest stalls."""
    return Report(
        about,
        [*_blocks(result, text=text, verbose=verbose, top=top)],
        verdict=result.verdict,
        footer=[result.unseen, *(f"CPU {cpu} could not be measured: {why}" for cpu, why in result.facts.failed)],
        metrics=partial(_metrics, result),
        sheet=lambda: sheet(ROW, result.rows),
        exit_code=130 if result.facts.interrupted else None,
    )


def _blocks(result: Result, *, text: bool, verbose: bool, top: int | None) -> Iterator[Block[Any]]:
    columns = ROW if result.facts.ask.spin else [field for field in ROW if field.name != "lost"]
    rows: Sequence[Row] = result.rows
    if not text:
        rows = sorted(rows, key=lambda row: -(row.most_s or 0.0))
    if rows:
        yield Block(columns, rows[: top or None], len(rows), one_line=True)
    stalls = [each for each in result.stalls if verbose or each.stall.lasted_s >= _WORTH_S]
    if stalls and not (text and not verbose):
        most = top or (None if verbose or top == 0 else _TOP_STALLS)
        yield Block(_stall_fields(result), stalls[:most], len(stalls), "longest stalls", one_line=True, details=True)
    threads = result.facts.real_time
    if threads and verbose:
        yield Block(REAL_TIME, threads, len(threads), "real-time threads", one_line=True, details=True)


def _metrics(result: Result) -> Iterator[Metrics]:
    yield Metrics("opskit_irqs_jitter", ROW, result.rows)
    named = [field for field in REAL_TIME if field.name in ("pid", "command", "tid", "name", "policy", "running")]
    yield Metrics("opskit_irqs_jitter_real_time", named, result.facts.real_time)
