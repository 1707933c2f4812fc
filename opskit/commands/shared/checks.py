"""The checks of `opskit doctor`: options that name them, one look, and many."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from opskit.catalog import CHECKS
from opskit.commands.shared.options import option
from opskit.errors import OpskitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.doctor.result import Result
    from opskit.checks.run import Request
    from opskit.commands.shared.run import Run


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
        """The names that begin so, behind those that are complete."""
        from click.shell_completion import CompletionItem

        *done, last = incomplete.split(",")
        return [
            CompletionItem(",".join([*done, name])) for name in CHECKS if name.startswith(last) and name not in done
        ]


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


def started_for_s() -> float:
    """How long the start of opskit took: on an overloaded machine longer than a deadline."""
    begun_s: float | None = click.get_current_context().meta.get("opskit.begun")
    return 0.0 if begun_s is None else time.monotonic() - begun_s


def look_once(run: Run, request: Request) -> Result:
    """Run the checks, and rank what they saw. What shows it is imported meanwhile."""
    from opskit.checks.run import run_checks

    def import_the_rest() -> None:
        import_module("opskit.analysis.doctor.judge")
        from opskit.render.views.doctor.report import module_of

        import_module(module_of(run.format))
        import_module(f"opskit.render.formats.{'page' if run.format == 'table' else run.format}")

    seen = run_checks(run.host, request, import_the_rest)
    from opskit.analysis.doctor.judge import judge

    if run.out.findings is not None:  # its report has none of its own
        run.out.findings.extend(finding for each in seen.checked for finding in each.outcome.findings)
    return judge(seen)


def follower(run: Run, request: Request) -> Callable[[], Result]:
    """Look again and again at the same processes, until they have ended: NoSuchProcess."""
    from opskit.collect.given_pids import GivenPids

    given: list[GivenPids] = []

    def look() -> Result:
        words = [str(pid) for each in given for pid in each.living()]
        try:
            result = look_once(run, request._replace(words=tuple(words)) if given else request)
        except OpskitError:
            for each in given:
                each.living()
            raise
        if not given and result.seen.pids:
            given.append(GivenPids(run.host, result.seen.pids, "doctor"))
        return result

    return look
