"""`opskit tcp`: whether the network is slow, this application or the peer's, for each TCP connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SHOW, TOP, USERS, WINDOWED, option

if TYPE_CHECKING:
    from opskit.analysis.tcp.closing import Look
    from opskit.analysis.tcp.moments import Moment
    from opskit.analysis.tcp.result import Result
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

FORMATS = ("table", "text", "json", "markdown", "csv", "prometheus")


@command("tcp", formats=FORMATS, options=(USERS, TOP, WINDOWED), exclusive=[("listen", "peer"), ("listen", "ask")])
@click.argument("targets", metavar="[PID|NAME]...", nargs=-1)
@option("--peer", metavar="ADDR[:PORT]", help="Show only connections with this address, network (10.0.0.0/8) or port.")
@option("--listen", is_flag=True, help="Show listening sockets: who waits for accept, the backlog, overflows.")
@option("--ask", is_flag=True, help="Ask a JVM for one thread dump: the Java stacks that wait on a connection.")
@option("-v", "--verbose", is_flag=True, group=SHOW, help="Show every connection, CLOSE-WAIT and the local ports used.")
def tcp(run: Run, targets: tuple[str, ...], peer: str | None, listen: bool, ask: bool, verbose: bool) -> int:
    """Show what makes TCP connections slow: this application, the peer's, the network, or nothing."""
    from opskit.analysis.tcp.judge import judge
    from opskit.collect.tcp.collect import Collector
    from opskit.collect.tcp.facts import Request
    from opskit.render.views.tcp import report as view

    network = None
    if peer is not None:
        from opskit.collect.tcp.peer import parse_peer

        network = parse_peer(peer)
    if run.window_s is not None:
        run.host.prove_moving("-i/--interval")
    pids = _pids(run, targets)
    collector = Collector(run.host, Request(pids, run.interval_s, network, ask, run.uids), watch=run.watching)
    shown = view.Shown(run.format == "text", verbose, listen, run.top, ask, run.watching)
    about = {"pid": " ".join(map(str, pids)) or None, "peer": peer}
    closed: list[Look] = []
    moments: list[Moment] = []

    def look() -> Result:
        facts = collector.look()
        if run.watching:
            from opskit.analysis.tcp.closing import closing_look
            from opskit.analysis.watched import keep

            keep(closed, closing_look(facts))
        return judge(facts, closed)

    def show(result: Result) -> Report:
        report = view.report(run.about(about), result, shown)
        if run.format not in ("json", "prometheus", "csv"):
            return report
        from opskit.analysis.tcp.moments import moment_of
        from opskit.analysis.watched import keep
        from opskit.render.views.tcp.document import complete

        if run.watching:
            keep(moments, moment_of(result))
        return complete(report, result, shown, moments)

    return run.show(look, show, fit_height=run.top is None and not verbose)


def _pids(run: Run, targets: tuple[str, ...]) -> tuple[int, ...]:
    """The processes that are meant, each once."""
    if not targets:
        return ()
    from opskit.collect.targets import resolve_process

    return tuple(dict.fromkeys(resolve_process(run.host, word, "tcp") for word in targets))
