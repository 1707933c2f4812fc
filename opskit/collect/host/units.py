"""systemd's units that have failed, as `systemctl show` prints them: a block of NAME=VALUE lines for each, and an empty line.

Id=web.service
Type=simple
Result=exit-code
ExecMainCode=1
ExecMainStatus=3
ActiveState=failed
StateChangeTimestampMonotonic=22608320093
"""

from __future__ import annotations

from opskit.proc.lines import lines_of
from opskit.quantities import integer
from opskit.records import NamedTuple

_PROPERTIES = (
    "Id", "Type", "Result", "ExecMainCode", "ExecMainStatus", "NRestarts", "ActiveState", "SubState",
    "StateChangeTimestampMonotonic", "TriggeredBy", "Slice",
)  # fmt: skip
# A service that systemd starts again and again is never `failed` for long: its state is `auto-restart`.
COMMAND = ("systemctl", "show", "--no-pager", "--state=failed,auto-restart", f"--property={','.join(_PROPERTIES)}", "*")
_MOST = 200


class Unit(NamedTuple):
    """A unit. `type_`: of a service, `oneshot` or another; `result`: why it failed; `status`: the exit code, or the signal where `was_killed`.

    `since_s`: on CLOCK_MONOTONIC; None: unknown. `restarts`: since it was started by hand. `slice_`: the cgroup above it.
    """

    name: str
    type_: str
    result: str
    status: int | None
    was_killed: bool
    restarts: int
    is_restarting: bool
    since_s: float | None
    triggered_by: str
    slice_: str


def parse_units(text: str) -> list[Unit]:
    """The units, without those that have no name."""
    units: list[Unit] = []
    values: dict[str, str] = {}
    for line in (*lines_of(text), ""):
        name, equals, value = line.partition("=")
        if equals and name in _PROPERTIES:
            values[name] = value
        elif not line:
            if values.get("Id") and len(units) < _MOST:
                units.append(_unit(values))
            values = {}
    return units


def _unit(values: dict[str, str]) -> Unit:
    code = integer(values.get("ExecMainCode", ""))  # CLD_EXITED 1, CLD_KILLED 2, CLD_DUMPED 3
    since_us = integer(values.get("StateChangeTimestampMonotonic", ""))
    return Unit(
        values["Id"], values.get("Type", ""), values.get("Result", ""),
        integer(values.get("ExecMainStatus", "")) if code else None, code in (2, 3),
        integer(values.get("NRestarts", "")) or 0, values.get("SubState") == "auto-restart",
        since_us / 1e6 if since_us else None, values.get("TriggeredBy", ""), values.get("Slice", ""),
    )  # fmt: skip
