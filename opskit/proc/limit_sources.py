"""The files that may have set a process's limits: limits.conf, its unit's files, sysctl.d. Read in one go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opskit.proc.config.pam_limits import PamLimits, account_of, pam_limits
from opskit.proc.config.systemd_units import is_of_user_manager, manager_settings, unit_of_path, unit_settings
from opskit.proc.files.sysctl import Setting, sysctl_settings

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS
    from opskit.proc.thread_limits import Situation


@dataclass(frozen=True)
class Origins:
    """`unit` is the process's systemd unit; `units` holds the settings of every unit on its cgroups' paths.

    `of_user_manager`: a user's own systemd runs the unit, which came by a session of PAM's itself.
    """

    user: str
    pam: PamLimits
    unit: str | None
    units: dict[str, dict[str, Setting]]
    manager: dict[str, Setting]
    sysctl: dict[str, Setting]
    of_user_manager: bool = False

    @property
    def in_service(self) -> bool:
        """Whether systemd started the process as a service, which does not read limits.conf."""
        return bool(
            self.unit
            and self.unit.endswith(".service")
            and not self.unit.startswith("user@")
            and not self.of_user_manager
        )


def read_origins(fs: ProcFS, situation: Situation, user: str) -> Origins:
    """Read the files. One that cannot be read is named in `pam.unread`; missing ones set nothing."""
    status = situation.status
    account = account_of(fs, user, status.real_uid, status.real_gid, status.groups)
    paths = {member.path for member in situation.memberships}
    named = sorted(((path, unit) for path in paths if (unit := unit_of_path(path))), key=lambda pair: -len(pair[0]))
    units = {unit: unit_settings(fs, unit) for path in paths for unit in _units_on(path)}
    return Origins(
        user,
        pam_limits(fs, account),
        named[0][1] if named else None,
        units,
        manager_settings(fs),
        sysctl_settings(fs),
        bool(named) and is_of_user_manager(named[0][0]),
    )


def _units_on(path: str) -> list[str]:
    parts = path.split("/")
    found = (unit_of_path("/".join(parts[:count])) for count in range(2, len(parts) + 1))
    return [unit for unit in dict.fromkeys(found) if unit]
