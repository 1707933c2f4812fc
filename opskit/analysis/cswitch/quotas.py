"""The command that raises a CPU quota. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell

if TYPE_CHECKING:
    from opskit.collect.cswitch.quick import CgroupQuota

_TIMES, _STEP = 2, 0.5  # the advice: twice as much, in steps of half a CPU
_PERIOD_US = 100_000
_SHORT_ID = 12


def quota_fix(quota: CgroupQuota) -> str:
    """What doubles it: of systemd's unit, of Docker's container, else of the cgroup's file. A pod's limits are in its specification."""
    from opskit.analysis.limits.fix import set_property
    from opskit.analysis.limits.limit import Limit
    from opskit.analysis.limits.origin import container_of

    cpus = max(_STEP, -(-_TIMES * quota.cpus // _STEP) * _STEP)
    container = container_of(quota.path)
    if "kubepods" in quota.path:
        return "raise resources.limits.cpu of the container in its pod's specification"
    if container is not None and "docker" in quota.path:
        return shell.command("docker", "update", "--cpus", f"{cpus:g}", container[:_SHORT_ID])
    limit = Limit("cpu.max", "", quota.cpus, None, quota.directory, quota.path)
    of_unit = set_property(limit, f"CPUQuota={100 * cpus:g}%")
    if of_unit is not None:
        return of_unit
    if quota.version == 1:
        wanted: object = round(cpus * (quota.period_us or _PERIOD_US))
        return shell.command("echo", wanted, shell.Syntax(">"), f"{quota.directory}/cpu.cfs_quota_us")
    wanted = f"{round(cpus * _PERIOD_US)} {_PERIOD_US}"
    return shell.command("echo", wanted, shell.Syntax(">"), f"{quota.directory}/cpu.max")
