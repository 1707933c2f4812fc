"""Errors of block devices and file systems, RAID arrays, devices that are offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Outcome
from opskit.analysis.host.devices import judge_devices, looked_at
from opskit.checks.gaps import no_rates
from opskit.collect.host.device_errors import collect_device_errors

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one window. Of processes: nothing, since devices are the machine's."""
    if look.pids:
        return Outcome()
    facts = collect_device_errors(look.host, look.window_s)
    gaps = () if look.window_s else no_rates(look.host.fs, "devices", "errors in a window")
    return Outcome(judge_devices(facts), looked_at(facts), gaps)
