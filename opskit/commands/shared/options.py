"""The options that mean the same in every command, the types of their values, and help grouped by topic."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opskit.errors import UsageError
from opskit.host import Host
from opskit.quantities import bytes_of, integer, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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


# Below: what commands that are not yet declared by run.command() use.
def common(*formats: str) -> Callable[[F], F]:
    """-f, -o, --root, --proc and --no-color; the command gets them as `format_`, `output`, `root`, `proc`, `no_color`."""

    def decorate(function: F) -> F:
        for option in (
            click.option("--no-color", is_flag=True, help="No colours (also: NO_COLOR in the environment)."),
            click.option("--proc", metavar="PATH", help="Read this proc tree (also: HOST_PROC)."),
            click.option("--root", metavar="DIR", help="Read DIR/proc, DIR/sys, DIR/etc and DIR/tmp."),
            click.option(
                "-o", "--output", metavar="FILE", help="Write to FILE; its suffix chooses the format; - is stdout."
            ),
            click.option(
                "-f",
                "--format",
                "format_",
                type=click.Choice(formats),
                help="Default: table on a terminal, text otherwise.",
            ),
        ):
            function = option(function)
        return function

    return decorate


def watching(function: F) -> F:
    """-w with -i and -c; the command gets `watch`, `interval` (s, None: not given) and `count`."""
    for option in (
        click.option(
            "-c", "--count", type=click.IntRange(min=1), metavar="COUNT", help="With -w: stop after COUNT samples."
        ),
        click.option(
            "-i", "--interval", type=Duration(), metavar="SECONDS", help="With -w: time between samples (2 s)."
        ),
        click.option("-w", "--watch", is_flag=True, help="Sample again and again, until Ctrl-C."),
    ):
        function = option(function)
    return function


def top(function: F) -> F:
    """-n; the command gets `top`: None (not given), 0 (all) or the number of rows."""
    return click.option("-n", "--top", type=click.IntRange(min=0), metavar="N", help="Show N rows; 0 shows all.")(
        function
    )


def users(function: F) -> F:
    """-u, as often as wanted; the command gets `user`."""
    return click.option(
        "-u", "--user", multiple=True, metavar="NAME", help="Only this user's (name or uid); repeatable."
    )(function)


def check_watch(watch: bool, interval: float | None, count: int | None) -> None:
    """Raise UsageError where -i or -c stand without -w."""
    for name, value in (("-c/--count", count), ("-i/--interval", interval)):
        if value is not None and not watch:
            raise UsageError(f"{name} goes with -w/--watch: add -w to sample again and again")


def uids_of(host: Host, names: Iterable[str]) -> frozenset[int]:
    """The uids of -u. Raises UsageError where there is no such user."""
    uids = set()
    for name in names:
        uid = host.uid_of(name)
        if uid is None:
            raise UsageError(f"-u {name}: no such user; give a name of /etc/passwd or a uid")
        uids.add(uid)
    return frozenset(uids)


def open_host(root: str | None, proc: str | None, watch: bool = False) -> Host:
    """The host of --root and --proc, given to the command or to opskit itself. What it refuses to read is said at the end.

    Raises BadInput, and NotSupported for a `watch` over a copy.
    """
    context = click.get_current_context()
    outer = context.find_root().params
    host = Host.at(root or outer.get("root"), proc or outer.get("proc"))
    context.call_on_close(lambda: _say_what_was_refused(host))
    if watch:
        host.prove_moving("-w/--watch")
    return host


def _say_what_was_refused(host: Host) -> None:
    refused = host.fs.refused
    if not refused:
        return
    from opskit.escape import printable

    reasons = list(refused.values())
    counted = ", ".join(f"{reasons.count(reason)} {reason}" for reason in dict.fromkeys(reasons))
    files = "1 file was" if len(reasons) == 1 else f"{len(reasons)} files were"
    with contextlib.suppress(OSError):  # nobody reads stderr any more
        click.echo(printable(f"opskit: {files} not read: {counted}; the first: {next(iter(refused))}"), err=True)
