"""`opskit doctor`."""

from __future__ import annotations

from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from opskit.commands.shared.checks import check_option, chosen_checks
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SAMPLING, SHOW, WATCH, Duration, option

if TYPE_CHECKING:
    from opskit.analysis.doctor.result import Result
    from opskit.checks.run import Request
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report
    from opskit.render.views.doctor.answer import Shown

FORMATS = ("table", "text", "json", "markdown", "prometheus")
_INTERVAL_S = 10.0
_SHOWN_S, _SHOWN_SAMPLES = 60.0, 3  # how long a finding is marked as new or gone: the longer one
_WAIT_S = 5.0  # for another run with the same state file, besides the deadline
_STATE = "--since-file"
_EVERY = "With -w: time between samples (500ms, 10s, 5m; default 10s)."


@command(
    "doctor", formats=FORMATS, exclusive=[("only", "skip"), ("watch", "since_file")], writes_nothing=True,
    options=((WATCH[0], option("-i", "--interval", type=Duration(), group=SAMPLING, help=_EVERY), WATCH[2]),),
)  # fmt: skip
@click.argument("targets", metavar="[PID|NAME]...", nargs=-1)
@option("--ask", is_flag=True, help="Take a thread dump of the JVMs that are named, stuck or slow; run programs.")
@option("--deadline", type=Duration(), default="2s", show_default=True, help="Report after this time what is known.")
@check_option("--only", "Run only this check; repeatable.")
@check_option("--skip", "Leave out this check; repeatable.")
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

    request = Request(targets, chosen_checks(only, skip), ask, deadline)
    shown = Shown(all_, verbose, run.redraws, run.watching)
    if since_file is not None:
        return _since(run, request, shown, since_file)
    return _show(run, request, shown)


def _show(run: Run, request: Request, shown: Shown) -> int:
    from opskit.analysis.doctor.watched import Tracker

    tracker = None
    if run.watching:
        from opskit.checks.run import preload

        run.interval_s = run.interval_s if run.has_interval else _INTERVAL_S
        tracker = Tracker(max(_SHOWN_S, _SHOWN_SAMPLES * run.interval_s))
        preload(request.checks)

    def view(result: Result) -> Report:
        return _report(run, result, shown, watched=tracker.update(result) if tracker is not None else None)

    return run.show(lambda: _look(run, request), view, fit_height=not shown.all_ and not shown.verbose)


def _since(run: Run, request: Request, shown: Shown, path: str) -> int:
    from opskit.actions.state_file import StateFile
    from opskit.analysis.doctor.state import check_scope, compare, dump_state, parse_state

    first = click.get_current_context().meta.get("opskit.word")  # of `opskit orders`
    words = request.words if first is None else (first, *request.words[1:])
    with closing(StateFile(path, _STATE, run.host, request.deadline_s + _WAIT_S)) as file:
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


def _look(run: Run, request: Request) -> Result:
    from opskit.checks.run import run_checks

    def import_the_rest() -> None:
        for name in ("analysis.doctor.judge", "render.views.doctor.report", f"render.formats.{_module(run.format)}"):
            import_module(f"opskit.{name}")

    seen = run_checks(run.host, request, import_the_rest)
    from opskit.analysis.doctor.judge import judge

    return judge(seen)


def _module(format_: str) -> str:
    return "page" if format_ == "table" else format_


def _report(run: Run, result: Result, shown: Shown, **changes: Any) -> Report:
    from opskit.proc.process import command_name
    from opskit.render.views.doctor.answer import Answer
    from opskit.render.views.doctor.report import report

    places = result.seen.places
    names = {pid: places[pid].name if pid in places else command_name(run.host.fs, pid) for pid in result.seen.pids}
    subjects = [f"{pid} ({name})" for pid, name in names.items()]
    target = {"pid" if len(names) == 1 else "pids": ", ".join(map(str, names))} if names else None
    return report(run.about(target), Answer(result, run.host.name, subjects, **changes), shown)
