"""A command as a declaration: its formats, its shared options, and which options exclude or need each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opskit import host as host_module
from opskit.commands.shared.options import HOST_OPTIONS, OUTPUT, WINDOWED, format_options
from opskit.commands.shared.output import Output
from opskit.commands.shared.run import Run, open_host
from opskit.commands.shared.unseen import Unseen
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def command(
    name: str,
    *,
    formats: Sequence[str],
    options: Sequence[Sequence[Callable[[Any], Any]]] = (),
    exclusive: Sequence[tuple[str, str]] = (),
    needs: Mapping[str, str] | None = None,
    plotted: bool = True,
    unsuffixed: str = "text",
    writes_nothing: bool = False,
    to_file: bool = True,
) -> Callable[[Callable[..., int]], click.Command]:
    """Make a click command of `function(run, **own options)`; its docstring is the help.

    `formats`: what -f and the suffix of -o may choose. `options`: WATCH, TOP, USERS.
    `exclusive`: pairs of parameters that exclude each other. `needs`: a parameter, and the one without which it has no effect.
    `plotted`: matplotlib draws svg and png. `unsuffixed`: the format of a file of -o without a suffix.
    `writes_nothing`: not even its own OOM score. `to_file`: -o takes the report; else it is the command's own.
    """
    rules = {"count": "watch", **({} if WINDOWED in options else {"interval": "watch"}), **(needs or {})}

    def decorate(function: Callable[..., int]) -> click.Command:
        shared = [
            *(each for group in options for each in group),
            *format_options(formats, to_file=to_file),
            *HOST_OPTIONS,
        ]

        def call(**given: Any) -> int:
            if not (writes_nothing or isinstance(click.get_current_context().find_root().obj, Unseen)):
                host_module.be_killed_first()
            made = click.get_current_context().command
            _check_rules(made, given, exclusive, rules)
            root, proc, captures = given.pop("root"), given.pop("proc"), given.pop("captures")
            chosen = given.pop("format_"), given.pop("output") if to_file else None, given.pop("no_color")
            out = Output.choose(*chosen, formats, plotted=plotted, unsuffixed=unsuffixed)
            kept = {key: given.pop(key) for key in ("watch", "interval", "count", "top", "user") if key in given}
            host = open_host(root, proc, captures, watch=kept.get("watch", False))
            if host.is_recorded and out.findings is None:
                from opskit.commands.shared.only_live import check_answerable

                check_answerable(host, name, given, _option_names(made))
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
    names = _option_names(made)
    for one, other in exclusive:
        if _is_given(given, one) and _is_given(given, other):
            raise UsageError(f"{names[one]} and {names[other]} exclude each other: choose one")
    for one, other in needs.items():
        if other in names and _is_given(given, one) and not _is_given(given, other):
            raise UsageError(f"{names[one]} goes with {names[other]}: add {names[other].rpartition('/')[2]}")


def refuse(given: Mapping[str, Any], unwanted: Sequence[str], why: str) -> None:
    """Raise UsageError for a given one of these parameters: `--save goes with a live JVM, not with files`."""
    for parameter in click.get_current_context().command.params:
        if parameter.name in unwanted and _is_given(given, str(parameter.name)):
            raise UsageError(f"{parameter.opts[-1]} {why}")


def _is_given(given: Mapping[str, Any], name: str) -> bool:
    return given.get(name) not in (None, False, ())


def _option_names(made: click.Command) -> dict[str, str]:
    return {str(parameter.name): _option_name(parameter) for parameter in made.params}


def _option_name(parameter: click.Parameter) -> str:
    """`-w/--watch`; an argument's name in capitals."""
    return "/".join(parameter.opts) if isinstance(parameter, click.Option) else str(parameter.name).upper()
