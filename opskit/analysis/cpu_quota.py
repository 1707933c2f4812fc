"""A CPU quota that is used up: one code, one threshold and the same words in each command. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding
from opskit.analysis.limits.origin import container_of, docker_id
from opskit.analysis.unit_property import set_property
from opskit.quantities import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.proc.cgroup.limits import CpuLimit

THROTTLED_SHARE = 0.05  # of the scheduler periods
_PERIOD_US = 100_000  # by default
_FEWEST = 3  # throttled periods in a window; fewer are no rate
_HELD_SHARE = 0.01  # of the window, summed over the CPUs: less is the last moment of each period


def throttled_share(quota: CpuLimit) -> float:
    """Which part of the periods was throttled, 0 to 1; 0 where that is unknown."""
    return min(1.0, (quota.throttled_periods or 0) / quota.periods) if quota.periods else 0.0


def is_throttled(quota: CpuLimit, window_s: float | None) -> bool:
    """Whether the quota was used up in many periods of the window, and threads were held back for long; where that is unknown, for any time."""
    held_s = quota.throttled_s
    is_short = held_s is not None and window_s is not None and held_s < _HELD_SHARE * window_s
    return throttled_share(quota) >= THROTTLED_SHARE and not is_short


def is_rate(quota: CpuLimit) -> bool:
    """Whether enough periods of the window were throttled; fewer are a note."""
    return (quota.throttled_periods or 0) >= _FEWEST


def judge_quota(
    quota: CpuLimit, who: str, *, next_: str | None, window_s: float | None, is_note: bool = False
) -> Finding | None:  # fmt: skip
    """A finding about the cgroup. `quota`: with the periods of the window; `who`: `4242 (orders)`, which it holds back."""
    share = throttled_share(quota)
    if quota.cpus is None or not is_throttled(quota, window_s):
        return None
    is_note = is_note or not is_rate(quota)
    whole = max(1, math.ceil(2 * quota.cpus))
    command = _raised(quota, whole)
    return Finding(
        "cpu-throttled", "note" if is_note else "warning", Entity("cgroup", quota.path),
        f"{who} is throttled in {percent(share)} of the periods: its cgroup's quota is {quota.cpus:g} {'CPU' if quota.cpus == 1 else 'CPUs'}",
        f"cpu.stat of {quota.path}: {quota.throttled_periods or 0:,} of {quota.periods or 0:,} periods",
        f"raise cpu.max of {quota.path}: {command}" if command
        else f"raise the CPU quota of {quota.path}, or start fewer threads (-XX:ActiveProcessorCount)",
        next_, round(share, 4), None if window_s is None else round(window_s, 3),
    )  # fmt: skip


def _raised(quota: CpuLimit, cpus: int) -> str | None:
    """The command that allows so many CPUs: of the unit, of Docker, or a write to the file; None where another program sets it."""
    path, directory = quota.path, quota.directory
    if container_of(path):
        container = None if "kubepods" in path else docker_id(path)
        return container and shell.command("docker", "update", "--cpus", cpus, container)
    of_unit = set_property(path, f"CPUQuota={cpus * 100}%")
    if of_unit or directory is None:
        return of_unit
    if quota.version == 1:  # its period may be another one
        return shell.command(
            "echo", cpus * (quota.period_us or _PERIOD_US), shell.Syntax(">"), f"{directory}/cpu.cfs_quota_us"
        )
    return shell.command("echo", f"{cpus * _PERIOD_US} {_PERIOD_US}", shell.Syntax(">"), f"{directory}/cpu.max")


def most_throttled(quotas: Sequence[CpuLimit]) -> CpuLimit | None:
    """The one whose quota was used up most often; None where none was."""
    most = max(quotas, key=throttled_share, default=None)
    return most if most is not None and throttled_share(most) else None
