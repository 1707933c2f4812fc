"""`opskit doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opskit.catalog import CHECKS
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SAMPLING, SHOW, WATCH, Duration, option
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.doctor.result import Result
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report
    from opskit.render.views.doctor.answer import Shown

FORMATS = ("table", "text", "json", "markdown", "prometheus")
_INTERVAL_S = 10.0
_SHOWN_S, _SHOWN_SAMPLES = 60.0, 3  # how long a finding is marked as new or gone: the longer one
_WAIT_S = 5.0  # for another run with the same state file, besides the deadline
_STATE = "--since-file"
_EVERY = "With -w: time between samples (500ms, 10s, 5m; default 10s)."


class CheckName(click.ParamType):  # type: ignore[type-arg, unused-ignore]
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
                option_name = param.opts[-1] if param is not None else "--only"
                raise UsageError(
                    f"{option_name}: no check is named {name!r}{meant}; the checks are {', '.join(CHECKS)}"
                )
        return names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        """The names that begin so."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in CHECKS if name.startswith(incomplete)]


def _check(name: str, line: str) -> Callable[[Any], Any]:
    return option(name, type=CheckName(), multiple=True, metavar="CHECK", help=line)


@command(
    "doctor", formats=FORMATS, writes_nothing=True, exclusive=[("only", "skip"), ("watch", "since_file")],
    options=((WATCH[0], option("-i", "--interval", type=Duration(), group=SAMPLING, help=_EVERY), WATCH[2]),),
)  # fmt: skip
@click.argument("targets", metavar="[PID|NAME]...", nargs=-1)
@option("--ask", is_flag=True, help="Take a thread dump of the JVMs that are named, stuck or slow; run programs.")
@option("--deadline", type=Duration(), default="2s", show_default=True, help="Report after this time what is known.")
@_check("--only", "Run only this check; repeatable.")
@_check("--skip", "Leave out this check; repeatable.")
@option(_STATE, metavar="FILE", help="Report what changed since the last run with this FILE.")
@option("--all", "all_", is_flag=True, group=SHOW, help="Show everything: notes, all effects, evidence, fixes.")
@option("-v", "--verbose", is_flag=True, group=SHOW, help="Show what was checked, and what that took.")
def doctor(
    run: Run,
    targets: tuple[str, ...],
    ask: bool,
    deadline: float,
    only: tuple[tuple[str, ...], ...],
    skip: tuple[tuple[str, ...], ...],
    since_file: str | None,
    all_: bool,
    verbose: bool,
) -> int:
    """Find what is wrong with a host or its processes: every check at once, causes above their symptoms.

    `opskit 4242` and `opskit orders` are short for `opskit doctor 4242` and `opskit doctor orders`.
    """
    from opskit.checks.run import Request
    from opskit.render.views.doctor.answer import Shown

    request = Request(targets, _chosen(only, skip), ask, deadline)
    shown = Shown(all_, verbose, run.redraws, run.watching)
    if since_file is not None:
        return _since(run, request, shown, since_file)
    return _show(run, request, shown)


def _chosen(only: Sequence[Sequence[str]], skip: Sequence[Sequence[str]]) -> tuple[str, ...]:
    wanted, unwanted = ({name for names in given for name in names} for given in (only, skip))
    chosen = tuple(name for name in CHECKS if (not wanted or name in wanted) and name not in unwanted)
    if not chosen:
        raise UsageError("--skip leaves out every check: nothing is left to do")
    return chosen


def _show(run: Run, request: Any, shown: Shown) -> int:
    from opskit.analysis.doctor.watched import Tracker

    run.interval_s = run.interval_s if run.has_interval else _INTERVAL_S
    tracker = Tracker(max(_SHOWN_S, _SHOWN_SAMPLES * run.interval_s)) if run.watching else None

    def view(result: Result) -> Report:
        return _report(run, result, shown, watched=tracker.update(result) if tracker is not None else None)

    return run.show(lambda: _look(run, request), view, fit_height=not shown.all_ and not shown.verbose)


def _since(run: Run, request: Any, shown: Shown, path: str) -> int:
    from opskit.actions.state_file import StateFile
    from opskit.analysis.doctor.state import check_scope, compare, dump_state, parse_state

    first = click.get_current_context().meta.get("opskit.word")  # of `opskit orders`
    words = request.words if first is None else (first, *request.words[1:])
    with StateFile(path, _STATE, run.host, request.deadline_s + _WAIT_S) as file:
        before = None if file.text is None else parse_state(file.text, path)
        if before is not None:
            check_scope(before, run.host.name, words, path)
        result = _look(run, request)
        changes = compare(result, before, run.host.name, words)
        report = _report(run, result, shown, changes=changes)
        if result.seen.checked:
            file.write(dump_state(changes.state))
        run.out.emit(report, fit_height=not shown.all_ and not shown.verbose)
    return report.exit_code or 0


def _look(run: Run, request: Any) -> Result:
    from opskit.analysis.doctor.judge import judge
    from opskit.checks.run import run_checks

    return judge(run_checks(run.host, request))


def _report(run: Run, result: Result, shown: Shown, **changes: Any) -> Report:
    from opskit.proc.process import command_name
    from opskit.render.views.doctor.answer import Answer
    from opskit.render.views.doctor.report import report

    places = result.seen.places
    names = {pid: places[pid].name if pid in places else command_name(run.host.fs, pid) for pid in result.seen.pids}
    subjects = [f"{pid} ({name})" for pid, name in names.items()]
    target = {"pid" if len(names) == 1 else "pids": ", ".join(map(str, names))} if names else None
    return report(run.about(target), Answer(result, run.host.name, subjects, **changes), shown)
