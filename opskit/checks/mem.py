"""Memory: what is available, what holds it where it is short, cgroups near their limit, the commit limit. No smaps, no trend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.mem.groups import judge_groups
from opskit.collect.mem.groups import collect_groups
from opskit.proc.files.meminfo import parse_meminfo
from opskit.quantities import plural, size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.analysis.finding import Finding
    from opskit.checks.look import Look
    from opskit.proc.compressed import Arc

_NAME = "mem"


def check(look: Look) -> Outcome:
    """Judge one look; of processes: the limits of their cgroups."""
    fs = look.host.fs
    meminfo = fs.maybe(parse_meminfo, "meminfo", default={})
    groups = collect_groups(look.host, look.pids, meminfo.get("SwapFree", 0))
    gaps = [Gap(_NAME, what, why) for what, why in groups.missing]
    seen = [f"{plural(groups.looked_at, 'cgroup')}, {groups.limited:,} with a memory limit"]
    findings = [*judge_groups(groups)]
    if not look.pids:
        found, available = _of_host(look)
        findings = [*found, *findings]
        seen.insert(0, f"{size(meminfo.get('MemTotal', 0))} of memory, {available}")
    return Outcome(findings, seen, gaps)


def _of_host(look: Look) -> tuple[Sequence[Finding], str]:
    from opskit.analysis.mem.commit import judge_commit
    from opskit.analysis.mem.host import judge_host
    from opskit.analysis.mem.machine import available, supply
    from opskit.collect.mem.host import collect_host

    def is_short(meminfo: Mapping[str, int], arc: Arc | None) -> bool:
        return supply(available(meminfo, arc), meminfo["MemTotal"]) == "short"

    result = judge_host(collect_host(look.host, is_short=is_short))
    commit = judge_commit(result.facts.meminfo, look.host.sysctl("vm", "overcommit_memory"))
    free = result.available_bytes
    return [*result.findings, *commit], "available: unknown" if free is None else f"{size(free)} available"
