"""The options that mean the same in every command, and the types of their values."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opskit.errors import UsageError
from opskit.host import Host
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

F = TypeVar("F", bound="Callable[..., Any]")

_DURATION = r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(ms|s|m|h)?"  # compiled where one is given
_SECONDS = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0}
_SIZE = r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})([KMGTP]?)(?:i?B)?"


class Duration(click.ParamType):
    """`500ms`, `10s`, `5m`, `1h` or a plain number of seconds; gives seconds, above 0 unless zero is allowed."""

    name = "duration"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds as a float."""
        match = re.fullmatch(_DURATION, str(value).strip())
        seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
        if not match or (seconds <= 0 and not self.zero) or seconds > 1e9:
            self.fail(f"{value!r} is no duration; write 500ms, 10s, 5m or a number of seconds", param, ctx)
        return seconds


class Size(click.ParamType):
    """`64K`, `10M`, `2G` (binary units) or a plain number of bytes; gives bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes as an int."""
        match = re.fullmatch(_SIZE, str(value).strip(), re.IGNORECASE)
        if not match:
            self.fail(f"{value!r} is no size; write 64K, 10M, 2G or a number of bytes", param, ctx)
        return int(float(match[1]) * 1024 ** " KMGTP".index(match[2].upper() or " "))


class Pid(click.ParamType):
    """A process id: a whole number from 1 up."""

    name = "pid"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The pid as an int."""
        pid = integer(str(value))
        if pid is None or not 0 < pid < 2**31:
            self.fail(f"{value!r} is no pid", param, ctx)
        return pid


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
    from opskit.escape import printable  # noqa: PLC0415

    reasons = list(refused.values())
    counted = ", ".join(f"{reasons.count(reason)} {reason}" for reason in dict.fromkeys(reasons))
    files = "1 file was" if len(reasons) == 1 else f"{len(reasons)} files were"
    with contextlib.suppress(OSError):  # nobody reads stderr any more
        click.echo(printable(f"opskit: {files} not read: {counted}; the first: {next(iter(refused))}"), err=True)
