"""Reads the files that may have set a process's limits: limits.conf, its unit's files, sysctl.d."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.limits.facts import LimitSources
from opskit.proc.config.pam_limits import account_of, pam_limits
from opskit.proc.config.sysctl_d import sysctl_settings
from opskit.proc.config.systemd_units import manager_settings, owner_of_path, unit_of_path, unit_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.proc.cgroup.tree import Membership
    from opskit.proc.files.status import Status
    from opskit.proc.fs import ProcFS


def read_sources(fs: ProcFS, status: Status, memberships: Sequence[Membership], user: str) -> LimitSources:
    """Read the files. One that cannot be read is named in `pam.unread`; missing ones set nothing."""
    account = account_of(fs, user, status.real_uid, status.real_gid, status.groups)
    paths = sorted({member.path for member in memberships}, key=lambda path: (-len(path), path))
    owner = next((owner for path in paths if (owner := owner_of_path(path))), None)
    return LimitSources(
        user,
        pam_limits(fs, account),
        owner and owner.unit,
        {unit: unit_settings(fs, unit) for path in paths for unit in _units_on(path)},
        manager_settings(fs),
        sysctl_settings(fs),
        owner is not None and owner.manager_uid is not None,
    )


def _units_on(path: str) -> list[str]:
    parts = path.split("/")
    found = (unit_of_path("/".join(parts[:count])) for count in range(2, len(parts) + 1))
    return [unit for unit in dict.fromkeys(found) if unit]
