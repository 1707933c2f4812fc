"""Judge systemd's failed units: a service that is down, and a job that did not do its work. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.escape import printable
from opskit.quantities import duration
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.host.units import Unit

_OLD_S = 86_400.0
_LOOPS = 3  # restarts
_SERVES = ("service", "socket", "mount", "automount", "path")
_RESULTS = {
    "timeout": "it did not start or stop in time",
    "watchdog": "it did not answer its watchdog",
    "oom-kill": "a process of it was killed for memory",
    "start-limit-hit": "it was started too often",
    "protocol": "it did not say that it is ready",
    "resources": "a resource was missing",
    "core-dump": "it crashed (core dump)",
}


def judge(units: Sequence[Unit], now_s: float) -> list[Finding]:
    """The findings, the newest failure first within each severity; `now_s` on CLOCK_MONOTONIC."""
    newest = sorted(units, key=lambda unit: -(unit.since_s or 0.0))
    return most_severe_first(finding for unit in newest for finding in _of(unit, now_s))


def _of(unit: Unit, now_s: float) -> Iterator[Finding]:
    ago_s = None if unit.since_s is None else max(0.0, now_s - unit.since_s)
    if unit.is_restarting and unit.restarts < _LOOPS:
        return  # it is started again, as its unit file wants it
    name = printable(unit.name)
    is_job = unit.type_ == "oneshot" or unit.name.rpartition(".")[2] not in _SERVES
    # A job that failed long ago and is not repeated is history; a service that is down stays a problem.
    is_history = is_job and not unit.triggered_by and ago_s is not None and ago_s > _OLD_S
    severity: Severity = "note" if is_history else "warning"
    if unit.is_restarting:
        said = f"{name} ends and is restarted again and again, {unit.restarts:,} times so far"
    else:
        said = f"{name} failed{'' if ago_s is None else f' {duration(ago_s)} ago'}"
    yield Finding(
        "unit-job-failed" if is_job else "unit-failed", severity, Entity("cgroup", _path(unit)), f"{said}: {_why(unit)}",
        f"systemctl: Result={printable(unit.result)}", next=command("journalctl", "-n", "30", "--no-pager", "-u", unit.name),
    )  # fmt: skip


def _why(unit: Unit) -> str:
    if unit.result in _RESULTS:
        return _RESULTS[unit.result]
    if unit.status is not None and (unit.was_killed or unit.result == "signal"):
        return f"signal {unit.status} ended it"
    return f"exit code {unit.status}" if unit.status else printable(unit.result) or "the reason is unknown"


def _path(unit: Unit) -> str:
    """The path of its cgroup: `a-b.slice` is in `a.slice`."""
    stem = unit.slice_.removesuffix(".slice")
    parts = [part for part in stem.split("-") if part]
    above = ["-".join(parts[: number + 1]) + ".slice" for number in range(len(parts))]
    return "/" + "/".join([*above, unit.name])
