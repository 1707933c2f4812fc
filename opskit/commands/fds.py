"""`opskit fds`: which file descriptors leak, who is near a limit, which deleted files are still held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from opskit.collect.fds.facts import Request
from opskit.commands.shared.declare import command, refuse
from opskit.commands.shared.options import SHOW, TOP, WATCH, option

if TYPE_CHECKING:
    from opskit.analysis.fds.result import DeletedResult, HostResult, Result
    from opskit.collect.fds.facts import Facts
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

FORMATS = ("table", "text", "json", "csv", "markdown", "prometheus")


@command("fds", formats=FORMATS, options=(TOP, WATCH))
@click.argument("process", metavar="[PID|NAME]", required=False)
@option(
    "--deleted",
    is_flag=True,
    help="List deleted files that are still open or mapped, by file system, and who holds them.",
)
@option(
    "--ask",
    is_flag=True,
    help="Take one thread dump of a JVM: the Java stacks of the threads that wait on descriptors.",
)
@option("-v", "--verbose", is_flag=True, group=SHOW, help="Show every row, and the threads that wait on descriptors.")
def fds(run: Run, process: str | None, deleted: bool, ask: bool, verbose: bool) -> int:
    """Show which file descriptors of a process leak, and when its limit is reached. Without an argument: of the host."""
    if deleted or process is None:
        refuse({"ask": ask}, ["ask"], "goes with a process and without --deleted: opskit fds PID")
    pid = None
    if process is not None:
        from opskit.collect.targets import resolve_process

        pid = resolve_process(run.host, process, "fds")
    if ask:
        run.host.prove_asking(pid)
    top = 0 if verbose and run.top is None else run.top
    if deleted:
        return _deleted(run, pid, top)
    return _host(run, top) if pid is None else _process(run, Request(pid, ask), verbose)


def _process(run: Run, request: Request, verbose: bool) -> int:
    from opskit.analysis.fds.growth import kept
    from opskit.analysis.fds.judge import judge
    from opskit.collect.fds.collect import Collector
    from opskit.render.shown import Shown
    from opskit.render.views.fds import process as view

    shown = Shown(run.format == "text", run.watching, verbose, run.top, request.ask, run.redraws)
    collector = Collector(run.host, request, run.watching)
    samples: list[Facts] = []

    def look() -> Result:
        facts = collector.look()
        samples[:] = kept([*samples, facts])
        return judge(facts, samples)

    def show(result: Result) -> Report:
        return _whole(run, view.report(run.about(view.target(result)), result, shown), process=result)

    return run.show(look, show, fit_height=run.top is None and not verbose)


def _host(run: Run, top: int | None) -> int:
    from opskit.analysis.fds.host import judge_host
    from opskit.collect.fds.host import collect_host
    from opskit.render.views.fds import host as view

    def show(result: HostResult) -> Report:
        return _whole(run, view.report(run.about(), result, top, is_text=run.format == "text"), host=result)

    return run.show(lambda: judge_host(collect_host(run.host)), show, fit_height=top is None)


def _deleted(run: Run, pid: int | None, top: int | None) -> int:
    from opskit.analysis.fds.deleted import judge_deleted
    from opskit.analysis.fds.of_process import held_by
    from opskit.collect.fds.deleted import collect_deleted
    from opskit.render.views.fds import deleted as view

    def look() -> DeletedResult:
        facts = collect_deleted(run.host, pid)
        return judge_deleted(facts if pid is None else held_by(facts, pid))

    def show(result: DeletedResult) -> Report:
        about = run.about(None if pid is None else {"pid": pid})
        return _whole(run, view.report(about, result, top, is_text=run.format == "text"), deleted=result)

    return run.show(look, show, fit_height=top is None)


def _whole(run: Run, report: Report, **answer: Any) -> Report:
    """The report with its JSON object and its metrics, where they are asked for."""
    if run.format not in ("json", "prometheus"):
        return report
    from opskit.render.views.fds.document import Answer, complete

    return complete(report, Answer(**answer))
