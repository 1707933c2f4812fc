"""Limits on tasks: of every cgroup, of users, of the kernel; of a process that was asked about, its threads. cswitch has CPU quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.collect.limits.sweep import Request, collect
from opskit.errors import OpskitError
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge the cgroups, users and the kernel; of processes that were asked about how many more threads they can start."""
    if look.pids:
        return _of_processes(look)
    facts = collect(look.host, Request(look.window_s))
    looked_at = [plural(facts.processes, "process", "processes"), plural(facts.cgroups, "cgroup")]
    findings: list[Finding] = []
    if facts.tasks or facts.users or facts.totals:
        from opskit.analysis.limits.sweep import judge

        findings = judge(facts)
    return Outcome(findings, looked_at)


def _of_processes(look: Look) -> Outcome:
    findings: list[Finding] = []
    gaps = []
    for pid in look.pids:
        try:
            findings += _of_process(look, pid)
        except OpskitError as error:
            gaps.append(Gap("limits", f"limits of {pid}", str(error)))
    return Outcome(findings, [plural(len(look.pids) - len(gaps), "process", "processes")], gaps)


def _of_process(look: Look, pid: int) -> list[Finding]:
    from opskit.analysis.limits.judge import judge as judge_process
    from opskit.collect.limits.collect import Collector, request_for

    ask = request_for(look.host, pid, uses=False)._replace(traces=look.ask)
    found = Collector(look.host, ask).look()
    # fds has the finding about open files.
    return judge_process(found._replace(open_files=None)).findings
