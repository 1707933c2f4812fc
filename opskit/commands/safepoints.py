"""`opskit safepoints`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.analysis.safepoints.stops import Window
from opskit.collect.targets import is_file, is_pid, resolve_jvm
from opskit.commands.shared.declare import command
from opskit.commands.shared.moments import moment
from opskit.commands.shared.options import SAMPLING, TOP, Duration, option
from opskit.commands.shared.output import exit_code
from opskit.errors import NoSuchProcess, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.moments import Moment
    from opskit.analysis.safepoints.live import Result
    from opskit.collect.safepoints.live import Facts
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

_TOP, _INTERVAL_S, _COUNT, _FAILED, _INTERRUPTED = 10, 1.0, 10, 2, 130
_LOGS, _PICTURES = "Logs", ("svg", "png")
_INTERVAL_HELP, _COUNT_HELP = "Live: time between samples (1 s).", "Live: number of intervals (10)."


_moment = moment("the JVM's uptime")


@command("safepoints", formats=("table", "text", "json", "csv", "markdown", "svg", "png"), options=(TOP,))
@click.argument("targets", metavar="[PID | NAME | LOG... | -]", nargs=-1)
@option("-w", "--watch", "endless", is_flag=True, group=SAMPLING, help="Live: sample until Ctrl-C.")
@option("-i", "--interval", "interval_s", type=Duration(), group=SAMPLING, help=_INTERVAL_HELP)
@option("-c", "--count", "intervals", type=click.IntRange(min=1), metavar="COUNT", group=SAMPLING, help=_COUNT_HELP)
@option("--since", type=_moment, metavar="T", group=_LOGS, help="Start at this date or uptime (2h).")
@option("--until", type=_moment, metavar="T", group=_LOGS, help="End at this date or uptime.")
@option("--slower-than", type=Duration(zero=True), group=_LOGS, help="List only stops longer than this.")
@option("--by", type=click.Choice(["operation", "minute"]), group=_LOGS, help="Sum by operation (default) or minute.")
def safepoints(
    run: Run,
    targets: tuple[str, ...],
    endless: bool,
    interval_s: float | None,
    intervals: int | None,
    since: Moment | None,
    until: Moment | None,
    slower_than: float | None,
    by: str | None,
) -> int:
    """Show the pauses of a live JVM or of its logs: how long, what caused them, time to safepoint (TTSP)."""
    if targets and (len(targets) > 1 or is_file(targets[0])):
        live = {"-w/--watch": endless or None, "-i/--interval": interval_s, "-c/--count": intervals}
        _refuse(live, "samples a live JVM; these are logs")
        for name in filter(is_pid, targets):
            rule = "name one JVM, or logs; a file of that name is"
            raise UsageError(f"{name} is a PID, the others are logs: {rule} ./{name}")
        return _logs(run, targets, Window(since, until), slower_than, by)
    words = {"--since": since, "--until": until, "--slower-than": slower_than, "--by": by, "-n/--top": run.top}
    _refuse(words, "is for logs; a live JVM counts only sums")
    if run.format in _PICTURES:
        advice = "start it with -Xlog:safepoint:file=FILE"
        raise UsageError(f"a picture is drawn of logs; a live JVM counts only sums: {advice}")
    return _live(run, targets, interval_s or _INTERVAL_S, intervals or (None if endless else _COUNT))


def _refuse(options: Mapping[str, object], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"{name} {why}")


def _logs(run: Run, names: tuple[str, ...], window: Window, slower_than: float | None, by: str | None) -> int:
    from opskit.analysis.distribution import Scratch
    from opskit.analysis.safepoints.logs import judge
    from opskit.analysis.safepoints.sums import Sums
    from opskit.collect.safepoints.logs import Reader, Request, collect
    from opskit.proc.user_files import scratch_file
    from opskit.render.formats import csv
    from opskit.render.views.safepoints import logs as view

    # A threshold limits the list already.
    top = run.top if run.top is not None else _TOP if slower_than is None else 0
    timeline = run.format in _PICTURES
    sums = Sums(Scratch(scratch_file), window, top, slower_than, by_minute=by == "minute", timeline=timeline)
    every_stop = run.format == "csv" and by is None and run.top is None
    if every_stop:  # in the order of time, as they are read
        reader = Reader(Request(names))
        rows = view.stop_sheet(sums.listed(reader.batches()))
        run.out.write_parts(part.encode("utf-8", "backslashreplace") for part in csv.parts(rows))
        facts = reader.facts()
    else:
        facts = collect(Request(names), sums.add)
    result = judge(facts, sums.summary())
    report = view.report(run.about(view.target(result)), result, by)
    if every_stop:
        run.out.say_aside(report)
    else:
        run.out.emit(report, fit_height=run.top is None)
    return _INTERRUPTED if facts.interrupted else exit_code(report)


def _live(run: Run, targets: tuple[str, ...], interval_s: float, count: int | None) -> int:
    from opskit.analysis.safepoints.live import judge
    from opskit.collect.safepoints.live import Request, collect
    from opskit.render.views.safepoints import live as view

    out = run.out
    streamed = run.format == "text" and out.path is None
    painted = out.is_screen

    def report(result: Result) -> Report:
        return view.report(run.about(view.target(result.facts)), result)

    def seen(facts: Facts) -> None:
        if painted:
            out.repaint(out.render(report(judge(facts)), fit_height=True))
        elif streamed:
            out.write(view.newest_line(facts))

    facts = collect(
        run.host, Request(resolve_jvm(run.host, next(iter(targets), None), or_file=True), interval_s, count), seen
    )
    last = report(judge(facts))
    if streamed:
        out.write("".join(f"{line}\n" for line in view.closing_lines(judge(facts))))
        out.say_aside(last)
    elif painted:
        seen(facts)
    else:
        out.emit(last)
    if facts.ended is not None and not isinstance(facts.ended, NoSuchProcess):
        return _FAILED
    return _INTERRUPTED if facts.interrupted else exit_code(last)
