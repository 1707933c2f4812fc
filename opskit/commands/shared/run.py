"""A command as a declaration: its formats, shared options and rules; and the run that it gets: host, output, schedule, prompt.

@command("pipes", formats=("table", "text", "json"), options=(TOP, WATCH), exclusive=[("by_process", "by_user")])
@option("--by-process", is_flag=True, help="Show the processes of each pipe.")
def pipes(run: Run, by_process: bool) -> int:
ask = Request(...)
return run.show(lambda: judge(collect(run.host, ask)), lambda result: report(run.about(), result))
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opskit.commands.shared.options import HOST_OPTIONS, OUTPUT, WINDOWED, format_options
from opskit.commands.shared.output import Output, about, exit_code, progress
from opskit.errors import UsageError
from opskit.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.render.report import About, Report

T = TypeVar("T")
DEFAULT_INTERVAL_S = 2.0


class Run:
    """What every command works with. Options that it does not have are None, False or empty.

    `top`: None (not given), 0 (all) or a number of rows. `uids`: those of -u. `watching`: whether -w was given; `window_s`: -i
    without -w.
    """

    def __init__(self, host: Host, out: Output, shared: Mapping[str, Any]) -> None:
        self.host, self.out = host, out
        self.watching: bool = shared.get("watch", False)
        self.window_s: float | None = None if self.watching else shared.get("interval")
        self.interval_s: float = shared.get("interval") or DEFAULT_INTERVAL_S
        self.count: int | None = shared.get("count")
        self.top: int | None = shared.get("top")
        self.uids = _uids_of(host, shared.get("user", ()))
        self.progress = progress

    @property
    def format(self) -> str:
        """`table`, `text`, `json` or another one."""
        return self.out.format

    def about(self, target: Mapping[str, object] | None = None) -> About:
        """The head of the report: where, when and on what."""
        return about(self.host, target)

    def show(self, look: Callable[[], T], view: Callable[[T], Report], *, fit_height: bool = False) -> int:
        """Look, show, and give the exit code; with -w again and again on the schedule.

        0; 1 where the (last) report has an error or a warning; 130 after Ctrl-C. `fit_height`: a table leaves out rows
        that the terminal has no room for.
        """
        if self.watching:
            from opskit.commands.shared.watch import run_watch

            return run_watch(self, lambda: view(look()), fit_height=fit_height)
        report = view(look())
        self.out.emit(report, fit_height=fit_height)
        return exit_code(report)


def command(
    name: str,
    *,
    formats: Sequence[str],
    options: Sequence[Sequence[Callable[[Any], Any]]] = (),
    exclusive: Sequence[tuple[str, str]] = (),
    needs: Mapping[str, str] | None = None,
    plotted: bool = True,
) -> Callable[[Callable[..., int]], click.Command]:
    """Make a click command of `function(run, **own options)`; its docstring is the help.

    `formats`: what -f takes and -o knows by suffix, the first ones on terminals and pipes. `options`: WATCH, TOP, USERS.
    `exclusive`: pairs of parameters that exclude each other. `needs`: a parameter, and the one without which it has no effect.
    `plotted`: matplotlib draws svg and png.
    """
    rules = {"count": "watch", **({} if WINDOWED in options else {"interval": "watch"}), **(needs or {})}

    def decorate(function: Callable[..., int]) -> click.Command:
        shared = [*(each for group in options for each in group), *format_options(formats), *HOST_OPTIONS]

        def call(**given: Any) -> int:
            made = click.get_current_context().command
            _check_rules(made, given, exclusive, rules)
            root, proc = given.pop("root"), given.pop("proc")
            out = Output.choose(
                given.pop("format_"), given.pop("output"), given.pop("no_color"), formats, plotted=plotted
            )
            kept = {key: given.pop(key) for key in ("watch", "interval", "count", "top", "user") if key in given}
            host = _open_host(root, proc, watch=kept.get("watch", False))
            return function(Run(host, out, kept), **given)

        call.__doc__ = function.__doc__
        for each in reversed(shared):  # click reverses the order in which decorators were applied
            each(call)
        call.__click_params__ += getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        return click.command(name=name, cls=Command)(call)

    return decorate


class Command(click.Command):
    """A command whose help lists its options by topic, and that explains `-5`, which click takes for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words. Raises UsageError for a negative number."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name[1:2] in (*"0123456789", "."):
                raise UsageError(f"{self.name}: {error.option_name}… is negative: give a number from 0 up") from None
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A section a topic, those of its own before the shared ones."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            line = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if line is not None:
                topic = getattr(parameter, "group", None) or (OUTPUT if "--help" in parameter.opts else "Options")
                sections.setdefault(topic, []).append(line)
        for topic, lines in sections.items():
            with formatter.section(topic):
                formatter.write_dl(lines)


def _check_rules(
    made: click.Command, given: Mapping[str, Any], exclusive: Sequence[tuple[str, str]], needs: Mapping[str, str]
) -> None:
    names = {str(parameter.name): _option_name(parameter) for parameter in made.params}
    for one, other in exclusive:
        if _is_given(given, one) and _is_given(given, other):
            raise UsageError(f"{names[one]} and {names[other]} exclude each other: choose one")
    for one, other in needs.items():
        if _is_given(given, one) and not _is_given(given, other):
            raise UsageError(f"{names[one]} goes with {names[other]}: add {names[other].rpartition('/')[2]}")


def refuse(given: Mapping[str, Any], unwanted: Sequence[str], why: str) -> None:
    """Raise UsageError for a given one of these parameters: `--save goes with a live JVM, not with files`."""
    for parameter in click.get_current_context().command.params:
        if parameter.name in unwanted and _is_given(given, str(parameter.name)):
            raise UsageError(f"{parameter.opts[-1]} {why}")


def _is_given(given: Mapping[str, Any], name: str) -> bool:
    return given.get(name) not in (None, False, ())


def _option_name(parameter: click.Parameter) -> str:
    """`-w/--watch`; an argument's name in capitals."""
    return "/".join(parameter.opts) if isinstance(parameter, click.Option) else str(parameter.name).upper()


def _uids_of(host: Host, names: Sequence[str]) -> frozenset[int]:
    uids = {name: host.uid_of(name) for name in names}
    for name, uid in uids.items():
        if uid is None:
            raise UsageError(f"-u {name}: no such user; give a name of /etc/passwd or a uid")
    return frozenset(uid for uid in uids.values() if uid is not None)


def _open_host(root: str | None, proc: str | None, *, watch: bool) -> Host:
    """The host of --root and --proc, given to the command or to opskit itself. What it refuses to read is said at the end."""
    context = click.get_current_context()
    outer = context.find_root().params
    host = Host.at(root or outer.get("root"), proc or outer.get("proc"))
    context.call_on_close(partial(_say_what_was_refused, host))
    if watch:
        host.prove_moving("-w/--watch")
    return host


def _say_what_was_refused(host: Host) -> None:
    refused = host.fs.refused
    if not refused:
        return
    from opskit.escape import printable
    from opskit.quantities import plural

    reasons = list(refused.values())
    counted = ", ".join(f"{reasons.count(reason)} {reason}" for reason in dict.fromkeys(reasons))
    were = "was" if len(reasons) == 1 else "were"
    line = f"opskit: {plural(len(reasons), 'file')} {were} not read: {counted}; the first: {next(iter(refused))}"
    with contextlib.suppress(OSError):  # stderr is closed
        click.echo(printable(line), err=True)
