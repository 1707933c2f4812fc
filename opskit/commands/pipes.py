"""`opskit pipes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.analysis.pipes.judge import judge
from opskit.collect.pipes import Collector, Request
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import TOP, USERS, WATCH, option
from opskit.render.views import pipes as view

if TYPE_CHECKING:
    from opskit.commands.shared.run import Run


@command(
    "pipes", formats=("table", "text", "json", "markdown"), options=(USERS, TOP, WATCH),
    exclusive=[("by_process", "by_user")],
)  # fmt: skip
@click.argument("targets", metavar="[PID|NAME]...", nargs=-1)
@option("--by-process", is_flag=True, help="Show the processes of each pipe with their fds.")
@option("--by-user", is_flag=True, help="Show each user's pipes, fds and capacity against fs.pipe-user-pages-soft.")
@option("--ends", is_flag=True, help="Show read and write ends, the processes on the other side, one-sided pipes.")
@option(
    "--fill",
    is_flag=True,
    help="Show bytes queued and capacity, who is blocked on a full pipe or FIFO, and ends of file that cannot come.",
)
@option("--fifos", is_flag=True, help="Include named FIFOs.")
@option("--threads", is_flag=True, help="Include threads with an unshared fd table.")
@option("--sort", type=click.Choice(["fds", "inode"]), default="fds", show_default=True, help="Sort the pipes.")
def pipes(
    run: Run, targets: tuple[str, ...], by_process: bool, by_user: bool, ends: bool, fill: bool, fifos: bool,
    threads: bool, sort: str,
) -> int:  # fmt: skip
    """List open pipes: their processes, full and one-sided pipes, processes that keep gaining pipes."""
    from opskit.collect.targets import resolve_process

    pids = tuple(resolve_process(run.host, word, "pipes") for word in targets)
    is_text = run.format == "text"
    identify = not is_text or ends or fill or fifos or by_user or bool(pids)
    ask = Request(
        pids, run.uids, processes=identify, commands=by_process and not identify, ends=ends, fill=fill, owners=by_user,
        fifos=fifos or fill, threads=threads,
    )  # fmt: skip
    collector = Collector(run.host, ask, watch=run.watching)
    about = {"pids": " ".join(map(str, pids))} if pids else None
    shown = view.Shown(by_process, by_user, ends, fill, run.top)
    return run.show(
        lambda: judge(collector.look(), sort),
        lambda result: view.report(run.about(about), result, shown, is_text=is_text),
        fit_height=run.top is None,
    )
