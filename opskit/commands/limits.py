"""`opskit limits`: why a thread cannot be started, and how many more can until then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.analysis.limits.judge import judge, with_probe
from opskit.analysis.limits.probe import Probed, probe_plan
from opskit.collect.limits.collect import Collector, request_for
from opskit.collect.targets import resolve_process
from opskit.commands.shared.confirm import agreed
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import SHOW, WATCH, Size, option
from opskit.errors import NotSupported, UsageError
from opskit.escape import printable
from opskit.render.views import limits as view

if TYPE_CHECKING:
    from opskit.analysis.limits.judge import HeadroomSample, LimitsResult
    from opskit.commands.shared.run import Run

PROBE = "Probe"


@command(
    "limits",
    formats=("table", "text", "json", "markdown"),
    options=(WATCH,),
    exclusive=[("probe", "watch")],
    needs={"in_cgroup": "probe", "yes": "probe"},
)
@click.argument("process", metavar="[PID|NAME]", required=False)
@option("--all", "every", is_flag=True, group=SHOW, help="Add the other rlimits and how much of each is used.")
@option(
    "-v",
    "--verbose",
    is_flag=True,
    group=SHOW,
    help="Show every limit, where it was read, who set it, how to raise it.",
)
@option("--stack", type=Size(), help="Assume threads with a stack of SIZE (512K, 8M, 1G).")
@option(
    "--probe",
    is_flag=True,
    group=PROBE,
    help="Verify the answer: start a few threads in a child with the process's limits and user.",
)
@option("--in-cgroup", is_flag=True, group=PROBE, help="With --probe: start them inside the process's pids cgroup.")
@option("--yes", is_flag=True, group=PROBE, help="With --probe: go ahead without asking.")
def limits(
    run: Run,
    process: str | None,
    every: bool,
    verbose: bool,
    stack: int | None,
    probe: bool,
    in_cgroup: bool,
    yes: bool,
) -> int:
    """Show why a process cannot start a thread, how many more can start, and who set the limit.

    Without an argument: for a program started from this shell.
    """  # fmt: skip
    if stack == 0:
        raise UsageError("--stack 0: a thread needs a stack; write 512K, 8M, 1G")
    pid = None if process is None else resolve_process(run.host, process, "limits")
    collector = Collector(run.host, request_for(run.host, pid, uses=every))
    samples: list[HeadroomSample] = []

    def look() -> LimitsResult:
        result = judge(collector.look(), stack, samples if run.watching else None)
        samples[:] = result.samples or ()
        return with_probe(result, _probe(run, result, in_cgroup, yes)) if probe else result

    shown = view.Shown(columns=run.format != "table", short=not (verbose or every))
    return run.show(
        look, lambda result: view.report(run.about(view.target(result.facts)), result, shown), fit_height=run.watching
    )


def _probe(run: Run, result: LimitsResult, in_cgroup: bool, yes: bool) -> Probed | None:
    facts = result.facts
    plan = probe_plan(facts, result.headroom, in_cgroup=in_cgroup)
    if plan is None:
        raise NotSupported("--probe: the headroom is unknown, and so is half of it; nothing was started")
    run.host.prove_own(plan.pid)
    if plan.threads == 0:
        return Probed(plan, None)
    click.echo(printable(view.plan_line(plan, facts.ask.process.user or str(plan.uid))), err=True)
    if not agreed(yes, "Start them?"):
        click.echo("Nothing was changed; add --yes", err=True)
        return None
    from opskit.actions.probe import run_probe

    return Probed(plan, run_probe(run.host, plan))
