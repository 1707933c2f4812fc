"""`opskit safepoints`: how long a JVM stands still, for what, and how much of it is the way there."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from opskit.analysis.safepoints import Moment, Window
from opskit.collect.targets import WhichJvm, is_file, is_pid, resolve_jvm
from opskit.commands.shared.options import Duration, common, open_host, top
from opskit.commands.shared.output import CSV, PICTURES, SUFFIXES, Output
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.host import Host

DEFAULT_TOP = 10


class LogTime(click.ParamType):
    """`2026-01-31T10:05[:30][+0100]`, or an uptime: `90s`, `5m`, `2h`, a number of seconds. Gives a Moment."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Moment:
        """The moment, and the clock it is told by."""
        text = str(value).strip()
        if len(text) >= 10 and text[4:5] == "-":
            return self._date(text, param, ctx)
        try:
            return Moment(Duration(zero=True).convert(text, param, ctx), "uptime")
        except click.BadParameter:
            self.fail(
                f"{value!r} is no time; write a date as in the log (2026-01-31T10:05, 2026-01-31T10:05:30+0100) "
                "or the JVM's uptime (90s, 5m, 2h)",
                param,
                ctx,
            )

    def _date(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> Moment:
        plain = text.replace(",", ".").replace(" ", "T", 1)
        plain = plain[:-1] + "+0000" if plain.endswith("Z") else plain
        for shape in ("%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"):
            for zone in ("", "%z"):
                try:
                    found = datetime.strptime(plain, shape + zone)  # noqa: DTZ007  (then the log's own zone is meant)
                except ValueError:
                    continue
                if found.tzinfo is None:
                    return Moment(found.replace(tzinfo=timezone.utc).timestamp(), "local")
                return Moment(found.timestamp(), "utc")
        return self.fail(f"{text!r} is no date; write 2026-01-31T10:05 or 2026-01-31T10:05:30.5+0100", param, ctx)


@click.command(name="safepoints", help=__doc__.partition(": ")[2] if __doc__ else None)
@click.argument("targets", metavar="[PID | LOG... | -]", nargs=-1)
@click.option("-i", "--interval", type=Duration(), metavar="SECONDS", help="Live: time between samples (1 s).")
@click.option("-c", "--count", type=click.IntRange(min=1), metavar="COUNT", help="Live: how many intervals (10).")
@click.option("--since", type=LogTime(), metavar="T", help="Logs: from this date or uptime on.")
@click.option("--until", type=LogTime(), metavar="T", help="Logs: up to this date or uptime.")
@top
@click.option("--slower-than", type=Duration(zero=True), metavar="DURATION", help="Logs: list only longer stops.")
@click.option("--by", type=click.Choice(["operation", "minute"]), help="Logs: sum up by operation (default) or minute.")
@common("table", "text", "json", "csv", "markdown", "svg", "png")
def command(
    targets: tuple[str, ...],
    interval: float | None,
    count: int | None,
    since: Moment | None,
    until: Moment | None,
    top: int | None,
    slower_than: float | None,
    by: str | None,
    format_: str | None,
    output: str | None,
    root: str | None,
    proc: str | None,
    no_color: bool,
) -> int:
    """Options, collect, analyse, emit."""
    out = Output.choose(format_, output, no_color, SUFFIXES | CSV | PICTURES)
    host = open_host(root, proc)
    if targets and (len(targets) > 1 or is_file(targets[0])):
        _refuse({"-i/--interval": interval, "-c/--count": count}, "samples a live JVM; these are logs")
        for name in targets:
            if is_pid(name):
                raise UsageError(f"{name} is a PID, and a PID stands alone; a file of that name is ./{name}")
        from opskit.commands import safepoints_log

        window = Window(since, until) if since or until else None
        # What is slower was asked for by its time: then their number is not limited too, unless -n says so.
        listed = (0 if slower_than is not None else DEFAULT_TOP) if top is None else top
        options = safepoints_log.Options(
            targets, window, listed, slower_than, by, every_stop=top is None, fit_height=top is None
        )
        return safepoints_log.run(host, out, options)
    words = {"--since": since, "--until": until, "--slower-than": slower_than, "--by": by, "-n/--top": top}
    _refuse(words, "is about logs; a live JVM tells only sums")
    if out.format in PICTURES.values():
        raise UsageError("a picture is drawn of logs; a live JVM tells only sums: run it with -Xlog:safepoint:FILE")
    from opskit.commands import safepoints_live

    return safepoints_live.run(host, out, _jvm(host, targets), interval or 1.0, count or 10)


def _refuse(options: Mapping[str, object], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"{name} {why}")


def _jvm(host: Host, targets: tuple[str, ...]) -> int:
    try:
        return resolve_jvm(host, targets[0] if targets else None)
    except WhichJvm as error:
        if not targets:
            raise
        raise WhichJvm(f"there is no file {targets[0]}, and {error}", error.lines) from None
