"""`opskit doctor`."""

from __future__ import annotations

from contextlib import closing
from posixpath import normpath
from typing import TYPE_CHECKING, Any

import click

from opskit.commands.shared.checks import check_option, chosen_checks, follower, look_once, started_for_s
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SAMPLING, SHOW, WATCH, Duration, option
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    used_s = 0.0 if run.watching else started_for_s()
    request = Request(targets, chosen_checks(only, skip), ask, deadline, used_s)
    shown = Shown(all_, verbose, run.redraws, run.watching)
    if since_file is not None:
        _check_file(since_file, run.out.path)
        return _since(run, request, shown, since_file)
    return _show(run, request, shown)


def _check_file(path: str, output: str | None) -> None:
    if path in ("", "-"):
        raise UsageError(f"{_STATE} {path!r} is not a file name: name a file that is kept for the next run")
    if output is not None and normpath(path) == normpath(output):
        raise UsageError(f"-o and {_STATE} name the same file {path}: name two")


def _show(run: Run, request: Request, shown: Shown) -> int:
    from opskit.analysis.doctor.watched import Tracker

    tracker = None
    if run.watching:
        from opskit.checks.run import preload

        run.interval_s = run.interval_s if run.has_interval else _INTERVAL_S
        tracker = Tracker(max(_SHOWN_S, _SHOWN_SAMPLES * run.interval_s))
        preload(request.checks)

    words = _typed(request.words)

    def view(result: Result) -> Report:
        return _report(run, result, shown, words, watched=tracker.update(result) if tracker is not None else None)

    look = follower(run, request) if run.watching else lambda: look_once(run, request)
    return run.show(look, view, fit_height=not shown.all_ and not shown.verbose)


def _since(run: Run, request: Request, shown: Shown, path: str) -> int:
    from opskit.actions.state_file import StateFile
    from opskit.analysis.doctor.state import check_scope, compare, dump_state, parse_state

    words = _typed(request.words)
    with closing(StateFile(path, _STATE, run.host, request.deadline_s + _WAIT_S)) as file:
        before = None if file.text is None else parse_state(file.text, path)
        if before is not None:
            check_scope(before, run.host.name, words, path)
        result = look_once(run, request)
        changes = compare(result, before, run.host.name, words)
        report = _report(run, result, shown, words, changes=changes)
        run.out.emit(report, fit_height=not shown.all_ and not shown.verbose)  # first: what was not reported stays new
        if result.seen.checked:
            file.write(dump_state(changes.state))
    return report.exit_code or 0


def _typed(words: Sequence[str]) -> Sequence[str]:
    """The words as they were typed: `opskit orders` has found the PID already."""
    first = click.get_current_context().meta.get("opskit.word")
    return words if first is None else (first, *words[1:])


def _report(run: Run, result: Result, shown: Shown, words: Sequence[str], **changes: Any) -> Report:
    from opskit.proc.process import command_name
    from opskit.render.views.doctor.answer import Answer, asked_pids
    from opskit.render.views.doctor.report import report

    seen = result.seen
    names = {pid: place.name for pid, place in seen.places.items()}
    names.update((pid, command_name(run.host.fs, pid)) for pid in (*seen.pids, *asked_pids(seen)) if pid not in names)
    if len(words) == len(seen.pids):  # a name that was typed says more than `java`
        names.update((pid, word) for pid, word in zip(seen.pids, words) if not word.isdigit())
    target = {"pid" if len(seen.pids) == 1 else "pids": ", ".join(map(str, seen.pids))} if seen.pids else None
    return report(run.about(target), Answer(result, run.host.name, names, **changes), shown, format_=run.format)
