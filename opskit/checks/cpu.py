"""Utilisation and saturation of the CPUs. Who waits for them is judged by the check `cswitch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.checks.gaps import no_rates
from opskit.proc.files.pressure import NONE_HERE
from opskit.quantities import percent, plural

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one window. Of processes: nothing, since the CPUs are the machine's."""
    if look.pids:
        return Outcome()
    from opskit.analysis.cswitch.causes import mean
    from opskit.analysis.host.cpu import judge
    from opskit.collect.host.cpu import collect

    facts = collect(look.host, look.window_s)
    gaps, looked_at = [], [plural(facts.online, "CPU")]
    if facts.cpus:
        looked_at.append(f"{percent(1 - mean(use.idle for use in facts.cpus))} used")
    if facts.load is not None:
        looked_at.append(f"load average {facts.load.load1:g}")
    if facts.quota is not None:
        looked_at.append(f"a quota of {facts.quota.cpus:g} CPUs")
    if not look.host.fs.has_rates:
        gaps += no_rates(look.host.fs, "cpu", "use of the CPUs")
    elif not facts.cpus:
        gaps.append(Gap("cpu", "use of the CPUs", f"{look.host.fs.proc}/stat shows none"))
    if facts.averages is None:
        gaps.append(Gap("cpu", "CPU pressure", NONE_HERE))
    return Outcome(judge(facts), looked_at, gaps)
