"""`opskit hsperf-check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.analysis.hsperf_check.judge import judge
from opskit.analysis.hsperf_check.repairs import Outcome
from opskit.collect.hsperf_check import Request, collect
from opskit.collect.targets import resolve_jvm
from opskit.commands.shared.confirm import agreed
from opskit.commands.shared.declare import command
from opskit.commands.shared.options import Duration, option
from opskit.jvm.attach.target import DEFAULT_TIMEOUT_S
from opskit.quantities import plural
from opskit.render.views import hsperf_check as view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.hsperf_check.repairs import Repair
    from opskit.commands.shared.run import Run


@command("hsperf-check", formats=("table", "text", "json", "markdown"), needs={"yes": "fix", "timeout": "probe"})
@click.argument("targets", metavar="[PID|NAME]...", nargs=-1)
@option("--probe", is_flag=True, help="Attach for real and take a thread dump; leaves the listener in the JVM.")
@option("--timeout", type=Duration(), help=f"With --probe: wait this long for a JVM ({DEFAULT_TIMEOUT_S:g} s).")
@option("--fix", is_flag=True, help="Show the possible repairs; with --yes make them.")
@option("--yes", is_flag=True, help="With --fix: make the repairs without asking.")
def hsperf_check(run: Run, targets: tuple[str, ...], probe: bool, timeout: float | None, fix: bool, yes: bool) -> int:
    """Diagnose and repair why jstack, jps or jcmd cannot reach a JVM: sockets and hsperfdata in /tmp."""
    if probe or fix:
        run.host.prove_own()
    pids = tuple(dict.fromkeys(resolve_jvm(run.host, word, may_have_ended=True) for word in targets))
    ask = Request(pids, probe, timeout or DEFAULT_TIMEOUT_S)
    result = judge(collect(run.host, ask, run.progress))
    shown = view.Shown(result)
    if fix:
        repairs = [] if result.exit_code else _fix(run, result.repairs, yes=yes)
        before = result.findings
        if any(row.state == "done" for row in repairs):
            facts = collect(run.host, ask._replace(probe=False, again=True))
            result = judge(facts._replace(probes=result.facts.probes))
        shown = view.Shown(result, before, repairs)
    about = run.about({"pids": " ".join(map(str, pids))} if pids else None)
    return run.show(lambda: shown, lambda shown: view.report(about, shown))


def _fix(run: Run, repairs: Sequence[Repair], *, yes: bool) -> list[Outcome]:
    """What was or would be done, a row a repair."""
    doable = [repair for repair in repairs if repair.refused is None]
    refused = [Outcome(repair, "refused", why=repair.refused) for repair in repairs if repair.refused]
    if not doable:
        return refused
    if not yes:
        for repair in doable:
            run.progress(f"{repair.path}: {repair.change}")
    if not agreed(yes, f"Do {plural(len(doable), 'repair')}?"):
        return [*(Outcome(repair, "would") for repair in doable), *refused]
    from opskit.actions.repair_ownership import carry_out

    return [*carry_out(run.host, doable), *refused]
