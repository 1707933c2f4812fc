"""Facts of `opskit clock`, as the collector gives them: a healthy machine, and what may be wrong with it."""

from __future__ import annotations

from opskit.collect.clock.answers import Answer
from opskit.collect.clock.facts import Daemon, Facts, Server, Source, View
from opskit.proc.kernel.adjtimex import UNSYNCHRONISED, KernelClock
from opskit.proc.kernel.clock_reads import ReadCost
from opskit.proc.kernel.sntp import Exchange
from opskit.proc.process import Process
from opskit.proc.sntp import Reply
from opskit.proc.zones import Zone

GOOD = KernelClock("TIME_OK", 0x2001, 0.0, 0.012, 0.0004, -11.25, 37)
BAD = KernelClock("TIME_ERROR", UNSYNCHRONISED, 0.0, 16.0, 16.0, 0.0, 0)
CHRONYD = Daemon("chronyd", 412, 4000, may_set=True, age_s=86400.0, shares_network=True)
TRACKING = Answer("chronyd", ("chronyc", "-n", "tracking"), True, "10.0.0.1", False, 3, 0.000021, 0.0042, pid=412)
LOST = TRACKING._replace(is_synchronised=False, reference=None, stratum=0, offset_s=None, error_s=None)
UTC_ZONE = Zone("/etc/localtime", "Etc/UTC", 0.0)
HEALTHY = Facts(
    0.5, GOOD, None, Source("tsc", ("tsc", "hpet", "acpi_pm"), ReadCost(24.0, 110.0)), UTC_ZONE, (CHRONYD,), sees_all=True, is_virtual=False
)  # fmt: skip
BARE = HEALTHY._replace(kernel=BAD, daemons=())


def server(offset_s=0.0, *, delay_s=0.0002, problem=None, **reply):
    """A server's answer."""
    given = {
        "leap": 0,
        "stratum": 2,
        "root_delay_s": 0.001,
        "root_dispersion_s": 0.0005,
        "reference": b"\x0a\0\0\2",
        "received": 1,
        "sent": 1,
    }
    exchange = Exchange("10.0.0.1", offset_s, delay_s, Reply(**{**given, **reply}), 4)
    return Server("10.0.0.1", 123, None if problem else exchange, problem)


def view(zone=UTC_ZONE, **given):
    """A process's view."""
    return View(Process(4242, "orders", 1000, "app", 1, 777, "S", 4), zone, **given)
