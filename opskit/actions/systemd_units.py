"""Ask systemd for its failed units: systemctl, which asks PID 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.actions.programs import ask_program
from opskit.collect.host.units import COMMAND, parse_units
from opskit.errors import NotSupported

if TYPE_CHECKING:
    from opskit.collect.host.units import Unit
    from opskit.host import Host

_TIMEOUT_S = 1.5
_LONGEST = 120


def runs_systemd(host: Host) -> bool:
    """Whether systemd is this machine's init (sd_booted(3))."""
    return host.is_own and host.fs.has_our_root and host.fs.root_exists("run", "systemd", "system")


def failed_units(host: Host) -> list[Unit]:
    """The units. Raises NotSupported with the reason where systemctl gives no answer; OSError."""
    answer = host.fs.calls.ask(ask_program, COMMAND, _TIMEOUT_S)
    if answer is None:
        raise NotSupported("systemctl is not installed")
    code, text = answer
    if code is None:
        raise NotSupported(f"systemctl did not end within {_TIMEOUT_S:g} s")
    if code:
        said = next((line.strip() for line in text.splitlines() if line.strip()), f"exit code {code}")
        raise NotSupported(f"systemctl: {said[:_LONGEST]}")
    return parse_units(text)
