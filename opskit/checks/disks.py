"""Space on local file systems, by bytes and by inodes, and file systems that turned read-only. Network file systems are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.host.disks import judge_disks, looked_at
from opskit.collect.host.file_systems import collect_file_systems

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.checks.look import Look

# Space that a deleted file takes is a cause of these.
_FULL = ("disk-full", "disk-nearly-full")


def check(look: Look) -> Outcome:
    """Judge one look; of processes: what they write to."""
    facts = collect_file_systems(look.host, look.pids)
    gaps = [Gap("disks", what, why) for what, why in facts.missing]
    findings = judge_disks(facts, of_processes=bool(look.pids))
    if not look.pids and any(each.code in _FULL and each.severity != "note" for each in findings):
        findings += _deleted(look)
    return Outcome(findings, looked_at(facts), gaps)


def _deleted(look: Look) -> list[Finding]:
    from opskit.analysis.fds.deleted import judge_full
    from opskit.collect.fds.deleted import collect_deleted

    return judge_full(collect_deleted(look.host))
