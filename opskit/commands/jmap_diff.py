"""`opskit jmap-diff`: what grew between class histograms, and what keeps growing."""

from __future__ import annotations

import gc
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from opskit import shell
from opskit.analysis import jmap_diff as analysis
from opskit.collect.targets import WhichJvm, is_file, is_pid, resolve_jvm
from opskit.commands.shared.options import Duration, Size, common, open_host, top
from opskit.commands.shared.output import CSV, PICTURES, SUFFIXES, Output, about
from opskit.errors import BadInput, NoSuchProcess, UsageError
from opskit.escape import printable
from opskit.jvm.dumps.histogram import Histogram, parse_histograms
from opskit.jvm.logs.timestamps import read_stamp
from opskit.proc.user_files import STDIN, read_text, source_name
from opskit.render.report import Report
from opskit.render.views import jmap_diff as view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.commands.histograms import Taken
    from opskit.host import Host

_BEFORE_A_COLLECTION = 5_000_000  # objects: a collection would only walk through all rows, which are kept to the end


@dataclass(frozen=True)
class Options:
    """How to show it."""

    choice: analysis.Choice
    sort: str
    top: int | None
    min_bytes: int


class Pattern(click.ParamType):
    """A regular expression, searched in the class names as the JVM writes them."""

    name = "re"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        """The compiled expression."""
        try:
            return re.compile(str(value))
        except (re.error, OverflowError, RecursionError) as error:
            self.fail(f"{value!r} is no regular expression: {error}", param, ctx)


@click.command(name="jmap-diff", help=__doc__.partition(": ")[2] if __doc__ else None)
@click.argument("words", metavar="BEFORE AFTER [MORE]... | [PID]", nargs=-1)
@click.option("-i", "--interval", type=Duration(), metavar="SECONDS", help="With a PID: between two histograms (30 s).")
@click.option("-c", "--count", type=click.IntRange(min=2), metavar="COUNT", help="With a PID: how many (2).")
@click.option("--live", is_flag=True, help="With a PID: only what is reachable, by a full GC each.")
@click.option("--yes", is_flag=True, help="With a PID: go ahead where each stops the JVM for more than 1 s.")
@click.option(
    "--timeout",
    type=Duration(),
    metavar="SECONDS",
    help="With a PID: how long to wait for a histogram (30 s, or 10 times what it should take).",
)
@click.option("--save", metavar="DIR", help="With a PID: keep each histogram's raw text in DIR.")
@click.option(
    "--by", type=click.Choice(["class", "package", "module"]), default="class", show_default=True, help="Roll up."
)
@click.option(
    "--sort",
    type=click.Choice(["bytes", "instances", "growth", "name"]),
    default="bytes",
    show_default=True,
    help="By the difference in bytes or instances, by the growth in proportion, or by name.",
)
@top
@click.option("--min-bytes", type=Size(), default="0", metavar="SIZE", help="Leave out smaller differences.")
@click.option("--include", type=Pattern(), metavar="RE", help="Only classes whose name has RE in it.")
@click.option("--exclude", type=Pattern(), metavar="RE", help="No classes whose name has RE in it.")
@click.option("--no-vm", is_flag=True, help="Leave out the VM's own <...> rows (JDK 5 to 7).")
@click.option("--no-fold", is_flag=True, help="Keep lambdas, hidden classes, proxies and accessors apart.")
@common("table", "text", "json", "csv", "markdown")
def command(
    words: tuple[str, ...],
    interval: float | None,
    count: int | None,
    live: bool,
    yes: bool,
    timeout: float | None,
    save: str | None,
    by: str,
    sort: str,
    top: int | None,
    min_bytes: int,
    include: re.Pattern[str] | None,
    exclude: re.Pattern[str] | None,
    no_vm: bool,
    no_fold: bool,
    format_: str | None,
    output: str | None,
    root: str | None,
    proc: str | None,
    no_color: bool,
) -> int:
    """Options, collect, analyse, emit."""
    options = Options(analysis.Choice(by, not no_fold, not no_vm, include, exclude), sort, top, min_bytes)
    taking = {
        "-i/--interval": interval, "-c/--count": count, "--live": live, "--yes": yes, "--timeout": timeout, "--save": save
    }  # fmt: skip
    files = _files(words)
    if files:
        for name, value in taking.items():
            if value:
                raise UsageError(f"{name} goes with a PID: the histograms of files are there already")
    out = Output.choose(format_, output, no_color, {**SUFFIXES, **CSV, **PICTURES})
    host = open_host(root, proc)
    if files:
        gc.set_threshold(_BEFORE_A_COLLECTION)
        out.emit(_report(host, options, _read(files)), fit_height=top is None)
        return 0
    from opskit.commands import histograms

    plan = histograms.Plan(
        interval or histograms.DEFAULT_INTERVAL_S, count or histograms.DEFAULT_COUNT, live, yes, save, timeout
    )
    taken = histograms.take(host, _pid(host, words), plan)
    if taken.error or taken.interrupted:
        click.echo(printable(f"opskit: {taken.error or 'interrupted'}"), err=True)
    if len(taken.histograms) > 1:
        out.emit(_report(host, options, taken.histograms, taken, live=live), fit_height=top is None)
    else:
        kept = f"; it is in {taken.saved[0]}" if taken.saved else ""
        click.echo(printable(f"opskit: only one histogram was taken, and one shows no growth{kept}"), err=True)
    if taken.interrupted:
        return 130
    failed = taken.error is not None and not isinstance(taken.error, NoSuchProcess)  # a JVM may end
    return 2 if failed or len(taken.histograms) < 2 else 0


def _pid(host: Host, words: Sequence[str]) -> int:
    try:
        return resolve_jvm(host, words[0] if words else None)
    except WhichJvm as unclear:
        no_file = f" (and there is no such file: {words[0]})" if words else "; or two files"
        raise WhichJvm(f"{unclear}{no_file}", unclear.lines) from None


def _files(words: Sequence[str]) -> tuple[str, ...]:
    """The files that are meant; none where a JVM is. Raises UsageError."""
    if not words or (len(words) == 1 and not is_file(words[0])):
        return ()
    if is_pid(words[0]):
        raise UsageError(f"a PID or files, not both: {words[0]} is a PID (a file of that name is ./{words[0]})")
    for word in words[1:]:
        if is_pid(word) and not os.path.lexists(word):
            raise UsageError(f"a PID or files, not both: {word} is a PID, {words[0]} a file")
    if words.count(STDIN) > 1:
        raise UsageError("- is standard input, and can be read only once")
    return tuple(words)


def _read(files: Sequence[str]) -> list[Histogram]:
    """All histograms of all files, in the order given. Raises BadInput where there is only one."""
    found: list[Histogram] = []
    for file in files:
        inside = parse_histograms(read_text(file, "jmap-diff"), source_name(file))
        if len(inside) == 1 and len(files) > 2 and inside[0].stamp.time_s is None:
            named = read_stamp(file)  # our own --save, and many a script, put the time into the name
            inside = [replace(inside[0], stamp=replace(inside[0].stamp, time_s=named.time_s))]
        found += inside
    if len(found) == 1:
        raise BadInput(
            found[0].source, "this is a single histogram; give another one to compare it with, or a PID to take them"
        )
    return found


def _report(
    host: Host, options: Options, histograms: Sequence[Histogram], taken: Taken | None = None, *, live: bool = False
) -> Report:
    used = analysis.comparable(histograms)
    found = analysis.compare(used, options.choice)
    visible = analysis.visible(found.rows, options.sort, options.min_bytes)
    order = analysis.order(visible, options.sort)
    rows = [visible[place] for place in order]
    trend = [one for one in found.trend if abs(one.bytes[-1] - one.bytes[0]) >= options.min_bytes]
    found = replace(found, rows=rows, trend=trend)
    shown, suspects = (rows[: options.top], trend[: options.top]) if options.top else (rows, trend)
    partial = any(histogram.cut for histogram in (used[0], used[-1]))
    printed = _by_total_lines(used) if partial and not options.choice.is_partial else None
    total = view.total_line(found, partial=partial, printed=printed)
    full_in_min = None
    if taken is not None and taken.heap_max_bytes is not None and used[-1].total is not None:
        full_in_min = analysis.minutes_until_full(found.trend, used[-1].total.bytes, taken.heap_max_bytes)
    footer = [
        *view.selection_notes(len(histograms), used),
        *view.cut_notes(used, found),
        *analysis.oddities(used, found.came),
    ]
    return Report(
        about(host, _target(taken)),
        blocks=view.blocks(found, options.choice.by, shown, suspects),
        verdict=[*view.verdict(found), *view.full_lines(full_in_min)],
        summary=[total],
        footer=[*footer, *_live_notes(found, taken, live=live)],
        text=lambda: [
            *view.lines(visible, order[: options.top or None]),
            *(f"# {line}" for line in (*view.suspect_lines(trend), *view.full_lines(full_in_min))),
            f"# {total}",
        ],
        data=lambda: {
            "classes": [view.row_object(found, row) for row in shown],
            "total": view.total_object(found, partial=partial, printed=printed),
            "trend": [view.trend_object(rank, one) for rank, one in enumerate(suspects, 1)],
            "by": options.choice.by,
            "histograms": [
                view.histogram_object(histogram, stop_s)
                for histogram, stop_s in zip(used, taken.stops_s if taken else [None] * len(used))
            ],
            "heap_max_bytes": taken and taken.heap_max_bytes,
            "heap_full_in_min": full_in_min,
            "live": live if taken else None,
            "saved": taken.saved if taken else None,
        },
        sheet=lambda: view.sheet(found, shown, trend),
        chart=lambda: view.chart(found, rows, options.top, total),
    )


def _by_total_lines(used: Sequence[Histogram]) -> tuple[int, int] | None:
    """What the Total lines of the first and the last say, where both have one."""
    first, last = used[0].total, used[-1].total
    return None if first is None or last is None else (last.instances - first.instances, last.bytes - first.bytes)


def _target(taken: Taken | None) -> dict[str, object] | None:
    if taken is None:
        return None
    perf = taken.jvm.perf
    return {
        "pid": taken.jvm.pid,
        "main": taken.jvm.main,
        "jdk": perf and (perf.text("java.property.java.version") or perf.text("java.property.java.vm.version")),
        "unit": taken.unit,
    }


def _live_notes(found: analysis.Comparison, taken: Taken | None, *, live: bool) -> list[str]:
    if taken is None:
        return []
    notes = list(view.cost_notes(taken.stops_s, taken.late, live=live))
    if found.trend and found.trend[0].steady and not isinstance(taken.error, NoSuchProcess):
        dump = shell.command("jcmd", taken.jvm.pid, "GC.heap_dump", "FILE")
        notes.append(f"who holds them only a heap dump tells: {dump} (it stops the JVM)")
    return notes
