"""The command that sets a property of a systemd unit by its cgroup's path. Pure."""

from __future__ import annotations

from opskit import shell
from opskit.proc.config.systemd_units import owner_of_path


def set_property(path: str, assignment: str) -> str | None:
    """`systemctl set-property app.service TasksMax=100`; None where the cgroup is no unit's own."""
    found = owner_of_path(path)
    if found is None or not found.is_own:
        return None
    words = ("set-property", *shell.operands(found.unit), assignment)
    if found.manager_uid is None:
        return shell.command("systemctl", *words)
    # Root's own `systemctl --user` is another manager, which may have a unit of this name.
    as_user = ("sudo", "-u", f"#{found.manager_uid}", f"XDG_RUNTIME_DIR=/run/user/{found.manager_uid}")
    return shell.command(*as_user, "systemctl", "--user", *words)
