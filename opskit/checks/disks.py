"""Space on local file systems, by bytes and by inodes, and file systems that turned read-only. Network file systems are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.host.disks import judge_disks, looked_at
from opskit.collect.host.file_systems import collect_file_systems

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one look; of processes: what they write to."""
    facts = collect_file_systems(look.host, look.pids)
    gaps = [Gap("disks", what, why) for what, why in facts.missing]
    return Outcome(judge_disks(facts, of_processes=bool(look.pids)), looked_at(facts), gaps)
