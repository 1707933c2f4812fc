"""The gap of processes that could not be read."""

from __future__ import annotations

from opskit.analysis.doctor.seen import Gap
from opskit.proc.visibility import more_rights_show_more
from opskit.quantities import plural


def denied(check: str, what: str, processes: int) -> list[Gap]:
    """`pipes of 3 processes`, and why; none where all were read."""
    if not processes:
        return []
    return [Gap(check, f"{what} of {plural(processes, 'process', 'processes')}", why_denied())]


def why_denied() -> str:
    """`permission denied: run as root`."""
    return "permission denied" + (": run as root" if more_rights_show_more() else " by a security module or sandbox")
