"""Gaps that several checks have: processes that could not be read, a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap
from opskit.proc.visibility import more_rights_show_more
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS


def why_denied(fs: ProcFS) -> str:
    """Why a process of another user could not be read, and whether root can."""
    return "permission denied" + (": run as root" if more_rights_show_more(fs) else " by a security module or sandbox")


def denied(fs: ProcFS, check: str, what: str, processes: int) -> list[Gap]:
    """`pipes of 3 processes`, and why; none where all were read."""
    return [Gap(check, f"{what} of {plural(processes, 'process', 'processes')}", why_denied(fs))] if processes else []


def no_rates(fs: ProcFS, check: str, what: str) -> list[Gap]:
    """What a copy cannot tell, nor a capture of one moment."""
    return [Gap(check, what, "one sample has no rates" if fs.is_live else "a copy has no rates")]
