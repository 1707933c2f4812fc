"""Options that name checks of `opskit doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opskit.catalog import CHECKS
from opskit.commands.shared.options import option
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class CheckNames(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Names of checks, separated by commas."""

    name = "check"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:  # noqa: ARG002
        """The names. Raises UsageError."""
        names = tuple(str(value).split(","))
        for name in names:
            if name not in CHECKS:
                import difflib

                near = difflib.get_close_matches(name.lower(), CHECKS, n=1, cutoff=0.5)
                meant = f", did you mean {near[0]!r}?" if near else ""
                given = param.opts[-1] if param is not None else self.name
                raise UsageError(f"{given}: no check is named {name!r}{meant}; the checks are {', '.join(CHECKS)}")
        return names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        """The names that begin so."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in CHECKS if name.startswith(incomplete)]


def check_option(name: str, line: str) -> Callable[[Any], Any]:
    """An option that names checks."""
    return option(name, type=CheckNames(), multiple=True, metavar="CHECK", help=line)


def chosen_checks(only: Sequence[Sequence[str]], skip: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The checks to run, in the order of the catalog. Raises UsageError where none is left."""
    wanted, unwanted = ({name for names in given for name in names} for given in (only, skip))
    chosen = tuple(name for name in CHECKS if (not wanted or name in wanted) and name not in unwanted)
    if not chosen:
        raise UsageError("--skip leaves out every check: nothing is left to do")
    return chosen
