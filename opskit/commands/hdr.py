"""`opskit hdr`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command
from opskit.commands.shared.moments import moment
from opskit.commands.shared.options import SHOW, TOP, Duration, Regex, option
from opskit.commands.shared.output import exit_code
from opskit.errors import BadInput, UsageError
from opskit.records import NamedTuple

if TYPE_CHECKING:
    import re

    from opskit.actions.split_log import Splitter
    from opskit.analysis.hdr.judge import Side
    from opskit.analysis.hdr.sums import Choice
    from opskit.analysis.moments import Moment
    from opskit.commands.shared.run import Run
    from opskit.jvm.logs.hdr.spectrum import Spectrum

_INTERRUPTED = 130
_LOGS, _PICTURES, _TIMELINE, _STDIN = "Logs", ("svg", "png"), "timeline", "-"
_FORMATS = ("table", "text", "json", "csv", "markdown", "hgrm", *_PICTURES)
_moment = moment("the time since the log's start")


class _Asked(NamedTuple):
    """The options that say what is summed."""

    by: float | None
    merge: bool
    ignore_tags: bool
    tag: re.Pattern[str] | None
    since: Moment | None
    until: Moment | None


@command("hdr", formats=_FORMATS, options=(TOP,), exclusive=[("split", "diff"), ("by", "diff")])
@click.argument("logs", metavar="LOG... | -", nargs=-1, required=True)
@option("--by", type=Duration(), group=_LOGS, metavar="T", help="A row for each interval of this length (10s, 1m).")
@option("--merge", is_flag=True, group=_LOGS, help="Add all logs and tags: one row.")
@option("--ignore-tags", is_flag=True, group=_LOGS, help="Add the tags of each log.")
@option("--tag", type=Regex(), metavar="RE", group=_LOGS, help="Only tags in which this is found.")
@option("--since", type=_moment, metavar="T", group=_LOGS, help="Start at this date or time since the start (10m).")
@option("--until", type=_moment, metavar="T", group=_LOGS, help="End at this date or time since the start.")
@option("--diff", metavar="OTHER", group=_LOGS, help="Compare with this log, tag by tag.")
@option("--split", metavar="DIR", group=_LOGS, help="Write a log for each tag into DIR.")
@option("--unit", type=click.Choice(["ns", "us", "ms", "s"]), group=SHOW, help="The unit of the log's values.")
@option("-v", "--verbose", is_flag=True, group=SHOW, help="More of each series; JSON: every cell.")
def hdr(
    run: Run,
    logs: tuple[str, ...],
    diff: str | None,
    split: str | None,
    unit: str | None,
    verbose: bool,
    **asked: object,
) -> int:
    """Show the percentiles of HdrHistogram logs: per tag, over time, in pictures, compared with another log."""
    from opskit.analysis.hdr.judge import judge
    from opskit.render.views.hdr import report as view

    ask = _Asked(**asked)  # type: ignore[arg-type]
    over_time = _check(run, ask, logs, diff)
    choice = _choice(ask, logs, over_time)
    splitter = None if split is None else _splitter(split)
    now = _read(logs, choice, splitter)
    other = None
    if diff is not None:
        dated = [each for each in (ask.since, ask.until) if each is not None and each.clock != "uptime"]
        other = _read([diff], choice._replace(since=None, until=None) if dated else choice)
    result = judge(now, other, unit)
    written = None if splitter is None else splitter.write()
    if written == []:
        raise BadInput(logs[0], "no log with intervals: there is nothing to split")
    shown = view.Shown(
        raw=run.format == "text", json=run.format == "json", verbose=verbose, top=run.top, over_time=over_time, hgrm=run.format == "hgrm",
        written=written, directory=split,
    )  # fmt: skip
    report = view.report(run.about(view.target(result, diff)), result, shown)
    run.out.emit(report, fit_height=run.top is None)
    return _INTERRUPTED if result.facts.interrupted else exit_code(report)


def _check(run: Run, ask: _Asked, logs: tuple[str, ...], diff: str | None) -> bool:
    """Whether the picture is one over time: with --by, or in a file that is named so. Raises UsageError."""
    drawn = run.format in _PICTURES
    named = drawn and run.out.path is not None and _TIMELINE in os.path.basename(run.out.path).lower()
    if named and diff is not None:
        raise UsageError(f"-o {run.out.path}: --diff draws percentile curves; choose a name without {_TIMELINE!r}")
    if diff == _STDIN and diff in logs:
        raise UsageError("standard input can be read once: give it as the log or to --diff")
    if run.format == "hgrm" and (diff is not None or ask.by is not None):
        option, instead = "--by" if diff is None else "--diff", "which is one distribution; write two files, or -f csv"
        raise UsageError(f"{option} has no place in a .hgrm file, {instead}")
    return named or (drawn and ask.by is not None)


def _choice(ask: _Asked, logs: tuple[str, ...], over_time: bool) -> Choice:
    from opskit.analysis.hdr.sums import Choice

    choice = Choice(ask.merge, ask.ignore_tags, ask.tag and ask.tag.pattern, ask.since, ask.until, ask.by)
    if ask.by is None and over_time:
        choice = choice._replace(by_s=_fitting(logs, choice))
    return choice


def _fitting(logs: tuple[str, ...], choice: Choice) -> float:
    """An interval for a picture: the logs are read once for their times alone. Raises UsageError for a pipe."""
    from opskit.analysis.hdr.times import Times
    from opskit.collect.hdr.collect import collect
    from opskit.collect.hdr.facts import Request
    from opskit.proc.user_files import is_read_once, source_name

    for pipe in filter(is_read_once, logs):
        raise UsageError(f"a picture over time of {source_name(pipe)} needs the length of its intervals: add --by 10s")
    times = Times(choice.since, choice.until)
    collect(Request(logs), times.add)
    return times.fitting


def _read(logs: tuple[str, ...] | list[str], choice: Choice, splitter: Splitter | None = None) -> Side:
    from opskit.analysis.hdr.judge import side
    from opskit.analysis.hdr.sums import Sums
    from opskit.collect.hdr.collect import collect
    from opskit.collect.hdr.facts import Request
    from opskit.jvm.logs.hdr.record import Interval

    sums = Sums(choice)

    def take(found: Interval | Spectrum) -> None:
        passed = sums.outside + sums.other_tags
        sums.add(found)
        if splitter is not None and isinstance(found, Interval) and sums.outside + sums.other_tags == passed:
            splitter.add(found.file, found.tag, found.header, found.line)

    return side(collect(Request(logs), take), sums)


def _splitter(directory: str) -> Splitter:
    from opskit.actions.split_log import Splitter
    from opskit.proc.user_files import scratch_file

    return Splitter(directory, scratch_file)
