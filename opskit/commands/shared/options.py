"""The options that mean the same in every command, the types of their values, and help grouped by topic."""

from __future__ import annotations

import re
from math import isnan
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opskit.quantities import bytes_of, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

F = TypeVar("F", bound="Callable[..., Any]")
Decorator = "Callable[[F], F]"

SAMPLING, SHOW, OUTPUT, HOST = "Sampling", "Show", "Output", "Host"


class Option(click.Option):
    """An option with its heading in the help; None: Options."""

    def __init__(self, *names: Any, group: str | None = None, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.group = group


def option(*names: str, group: str | None = None, **attributes: Any) -> Callable[[F], F]:
    """click.option() with a heading for the help."""
    return click.option(*names, cls=Option, group=group, **attributes)


class _Quantity(click.ParamType):
    examples = ""

    def parse(self, text: str) -> float | None:
        """The value; None for what is not one."""
        raise NotImplementedError

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The value, or invalid usage."""
        found = self.parse(str(value))
        if found is None:
            self.fail(f"{value!r} is not a {self.name}; write {self.examples}", param, ctx)
        return found


class Duration(_Quantity):
    """`500ms`, `10s`, `5m`, `1h` or a plain number of seconds; gives seconds, above 0 unless zero is allowed."""

    name, examples = "duration", "500ms, 10s, 5m or a number of seconds"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def parse(self, text: str) -> float | None:
        """Seconds."""
        seconds = seconds_of(text)
        return None if seconds == 0 and not self.zero else seconds


class Number(click.FloatRange):
    """A number within bounds. nan, which passes every comparison, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or invalid usage."""
        number: float = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class Size(_Quantity):
    """`64K`, `10M`, `2G` (binary units) or a plain number of bytes; gives bytes."""

    name, examples = "size", "64K, 10M, 2G or a number of bytes"
    parse = staticmethod(bytes_of)


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


def format_options(formats: Sequence[str], *, to_file: bool = True) -> list[Callable[[F], F]]:
    """-f, -o and --no-color, of every command; not `to_file`: without -o, which means something else there."""
    choice, default = click.Choice(formats), "Output format; default: table on a terminal, text otherwise."
    place = "Write to FILE; its suffix chooses the format; - is stdout."
    return [
        option("-f", "--format", "format_", type=choice, group=OUTPUT, help=default),
        *([option("-o", "--output", metavar="FILE", group=OUTPUT, help=place)] if to_file else ()),
        option("--no-color", is_flag=True, group=OUTPUT, help="No colours (also: NO_COLOR in the environment)."),
    ]


def _interval(line: str) -> Callable[[F], F]:
    return option("-i", "--interval", type=Duration(), group=SAMPLING, help=line)


_COUNT = click.IntRange(min=1)
HOST_OPTIONS: Sequence[Callable[[F], F]] = (
    option(
        "--from",
        "captures",
        type=click.Path(),
        multiple=True,
        metavar="CAPTURE",
        group=HOST,
        help="Read a file of opskit capture instead of this machine.",
    ),
    option("--root", metavar="DIR", group=HOST, help="Read DIR/proc, DIR/sys, DIR/etc and DIR/tmp."),
    option("--proc", metavar="PATH", group=HOST, help="Read this proc tree (also: HOST_PROC)."),
)
# The run has their values: `run.watching`, `run.interval_s`, `run.count`, `run.top`, `run.uids`.
WATCH: Sequence[Callable[[F], F]] = (
    option("-w", "--watch", is_flag=True, group=SAMPLING, help="Sample repeatedly until Ctrl-C."),
    _interval("With -w: time between samples (500ms, 10s, 5m; default 2s)."),
    option("-c", "--count", type=_COUNT, metavar="COUNT", group=SAMPLING, help="With -w: stop after COUNT samples."),
)
# As WATCH, for commands whose numbers are rates: -i without -w is the window of the one sample.
_WINDOW = _interval("Show the shares of this time (500ms, 10s, 5m); with -w: time between samples (2s).")
WINDOWED: Sequence[Callable[[F], F]] = (WATCH[0], _WINDOW, WATCH[2])
TOP: Sequence[Callable[[F], F]] = (
    option("-n", "--top", type=click.IntRange(min=0), metavar="N", group=SHOW, help="Show N rows; 0 shows all."),
)
_USER_HELP = "Show only processes of this user (name or uid); repeatable."
USERS: Sequence[Callable[[F], F]] = (
    option("-u", "--user", multiple=True, metavar="NAME", group=SHOW, help=_USER_HELP),
)
