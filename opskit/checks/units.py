"""systemd's failed units, which systemctl tells: only with --ask, since it is a program and asks PID 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.actions.systemd_units import failed_units, runs_systemd
from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.host.units import judge

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Ask once. Of processes: nothing."""
    if look.pids:
        return Outcome()
    if not look.host.is_own:
        return Outcome(gaps=[Gap("units", "systemd units", f"{look.host.fs.proc} is not this machine's")])
    if not runs_systemd(look.host):
        return Outcome(looked_at=["no systemd units: systemd is not the init here"])
    return Outcome(judge(failed_units(look.host), look.host.monotonic()), ["units of systemd"])
