"""`opskit jvms`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.analysis.jvms import judge
from opskit.collect.jvms import Collector, Request
from opskit.collect.targets import resolve_jvm
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SHOW, TOP, USERS, WINDOWED, option
from opskit.render.views.jvms import report as view

if TYPE_CHECKING:
    from opskit.commands.shared.run import Run


@command("jvms", formats=("table", "text", "json", "markdown"), options=(USERS, TOP, WINDOWED))
@click.argument("targets", metavar="[PID|NAME]...", nargs=-1)
@option(
    "--sort", type=click.Choice(["pid", "heap", "cpu", "rss", "uptime"]), default="pid", show_default=True, group=SHOW,
    help="Sort the rows: by pid ascending, otherwise the largest first.",
)  # fmt: skip
@option("--vm-args", is_flag=True, group=SHOW, help="Show the JVM's options; values of -D and of agents are hidden.")
@option("--show-properties", is_flag=True, group=SHOW, help="Show these values, too: they may hold passwords.")
def jvms(run: Run, targets: tuple[str, ...], sort: str, vm_args: bool, show_properties: bool) -> int:
    """List JVMs: CPU, heap, memory limit, time in GC and at safepoints, whether jstack and opskit can attach."""
    pids = tuple(dict.fromkeys(resolve_jvm(run.host, word, may_have_ended=True) for word in targets))
    if run.window_s is not None:
        run.host.prove_moving("-i/--interval")
    ask = Request(pids, run.uids, run.window_s, history=run.watching and run.format == "json")
    collector = Collector(run.host, ask)
    shown = view.Shown(vm_args or show_properties, show_properties, run.top, run.out.is_screen, run.redraws)
    about = {"pids": " ".join(map(str, pids))} if pids else None
    return run.show(
        lambda: judge(collector.look(), sort, worst_first=shown.live),
        lambda result: view.report(run.about(about), result, shown, is_text=run.format == "text"),
        fit_height=run.top is None,
        sleep=collector.sleep,
    )
