"""The options that mean the same in every command, the types of their values, and help grouped by topic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opskit.quantities import bytes_of, integer, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

F = TypeVar("F", bound="Callable[..., Any]")
Decorator = "Callable[[F], F]"

SAMPLING, SHOW, OUTPUT, HOST = "Sampling", "Show", "Output", "Host"


class Option(click.Option):
    """An option with the heading that it stands below in the help; None: Options."""

    def __init__(self, *names: Any, group: str | None = None, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.group = group


def option(*names: str, group: str | None = None, **attributes: Any) -> Callable[[F], F]:
    """click.option() with a heading for the help."""
    return click.option(*names, cls=Option, group=group, **attributes)


class Duration(click.ParamType):
    """`500ms`, `10s`, `5m`, `1h` or a plain number of seconds; gives seconds, above 0 unless zero is allowed."""

    name = "duration"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds as a float."""
        seconds = seconds_of(str(value))
        if seconds is None or (seconds == 0 and not self.zero):
            self.fail(f"{value!r} is not a duration; write 500ms, 10s, 5m or a number of seconds", param, ctx)
        return seconds


class Size(click.ParamType):
    """`64K`, `10M`, `2G` (binary units) or a plain number of bytes; gives bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes as an int."""
        size = bytes_of(str(value))
        if size is None:
            self.fail(f"{value!r} is not a size; write 64K, 10M, 2G or a number of bytes", param, ctx)
        return size


class Pid(click.ParamType):
    """A process id: a whole number from 1 up."""

    name = "pid"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The pid as an int."""
        pid = integer(str(value))
        if pid is None or not 0 < pid < 2**31:
            self.fail(f"{value!r} is not a PID", param, ctx)
        return pid


class Regex(click.ParamType):
    """A regular expression."""

    name = "regex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        """The compiled expression."""
        import warnings

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # `[[` may once be a nested set
                return re.compile(value)
        except (re.error, OverflowError, RecursionError) as error:
            self.fail(f"{value!r} is not a regular expression: {error}", param, ctx)


def format_options(formats: Sequence[str]) -> list[Callable[[F], F]]:
    """-f, -o and --no-color, of every command."""
    return [
        option(
            "-f", "--format", "format_", type=click.Choice(formats), group=OUTPUT,
            help="Default: table on a terminal, text otherwise.",
        ),
        option(
            "-o", "--output", metavar="FILE", group=OUTPUT,
            help="Write to FILE; its suffix chooses the format; - is stdout.",
        ),
        option("--no-color", is_flag=True, group=OUTPUT, help="No colours (also: NO_COLOR in the environment)."),
    ]  # fmt: skip


HOST_OPTIONS: Sequence[Callable[[F], F]] = (
    option("--root", metavar="DIR", group=HOST, help="Read DIR/proc, DIR/sys, DIR/etc and DIR/tmp."),
    option("--proc", metavar="PATH", group=HOST, help="Read this proc tree (also: HOST_PROC)."),
)
# The run takes their values: `run.watch`, `run.top`, `run.uids`, `run.agreed()`.
WATCH: Sequence[Callable[[F], F]] = (
    option("-w", "--watch", is_flag=True, group=SAMPLING, help="Sample again and again, until Ctrl-C."),
    option(
        "-i", "--interval", type=Duration(), metavar="SECONDS", group=SAMPLING,
        help="With -w: time between samples (2 s).",
    ),
    option(
        "-c", "--count", type=click.IntRange(min=1), metavar="COUNT", group=SAMPLING,
        help="With -w: stop after COUNT samples.",
    ),
)  # fmt: skip
# As WATCH, for commands whose numbers are rates: -i without -w is the window of the one sample.
WINDOWED: Sequence[Callable[[F], F]] = (
    WATCH[0],
    option(
        "-i", "--interval", type=Duration(), metavar="SECONDS", group=SAMPLING,
        help="Show what changes in so many seconds; with -w: time between samples (2 s).",
    ),
    WATCH[2],
)  # fmt: skip
TOP: Sequence[Callable[[F], F]] = (
    option("-n", "--top", type=click.IntRange(min=0), metavar="N", group=SHOW, help="Show N rows; 0 shows all."),
)
USERS: Sequence[Callable[[F], F]] = (
    option(
        "-u", "--user", multiple=True, metavar="NAME", group=SHOW,
        help="Only this user's (name or uid); repeatable.",
    ),
)  # fmt: skip
