"""The JSON object of `opskit clock`, and its metrics."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from opskit.render.fields import COUNT, FLAG, ID, NUMBER, TEXT, TOTAL, Field, list_of, of_part, record, records
from opskit.render.report import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.clock.result import Result
    from opskit.collect.clock.answers import Answer
    from opskit.collect.clock.facts import Daemon, Server, Step, View
    from opskit.proc.kernel.adjtimex import KernelClock
    from opskit.proc.zones import Zone
    from opskit.render.report import Report

ZONE: Sequence[Field[Zone]] = (
    Field("source", help="TZ, -Duser.timezone or /etc/localtime"),
    Field("name"),
    Field("utc_offset_s", NUMBER),
    Field("is_missing", FLAG, help="TZ names no file: the C library uses UTC"),
)
DAEMON: Sequence[Field[Daemon]] = (
    Field("name"),
    Field("pid", ID),
    Field("may_set", FLAG, help="it has CAP_SYS_TIME over the machine"),
    Field("age_s", NUMBER),
)
ANSWER: Sequence[Field[Answer]] = (
    Field("daemon"),
    Field("pid", ID),
    Field("tool", value=lambda it: " ".join(it.tool)),
    Field("is_synchronised", FLAG),
    Field("reference", help="the server that it follows"),
    Field("stratum", COUNT),
    Field("offset_s", NUMBER, help="what has to be added to the clock"),
    Field("error_s", NUMBER, help="half of the round trip to the reference clock, and its dispersion"),
    Field("age_s", NUMBER, help="since it used a time of a server"),
    Field("interval_s", NUMBER, help="how often it does"),
    Field("problem"),
)
STEP: Sequence[Field[Step]] = (
    Field("at_s", NUMBER, value=lambda it: round(it.at_s, 3), help="since the watch began"),
    Field("by_s", NUMBER, value=lambda it: round(it.by_s, 9), help="positive: the clock was set ahead"),
    Field("time_utc", help="by the new clock"),
    Field("in_leap_second", FLAG),
)
SERVER: Sequence[Field[Server]] = (
    Field("name"),
    Field("port", ID),
    Field("address", value=lambda it: it.exchange and it.exchange.address),
    Field("offset_s", NUMBER, value=lambda it: it.exchange and it.exchange.offset_s, help="what has to be added to our clock"),
    Field("delay_s", NUMBER, value=lambda it: it.exchange and it.exchange.delay_s, help="the round trip"),
    Field("stratum", COUNT, value=lambda it: it.exchange and it.exchange.reply.stratum),
    Field("leap", COUNT, value=lambda it: it.exchange and it.exchange.reply.leap, help="its leap indicator; 3: it is not synchronised"),
    Field("root_delay_s", NUMBER, value=lambda it: it.exchange and it.exchange.reply.root_delay_s),
    Field("root_dispersion_s", NUMBER, value=lambda it: it.exchange and it.exchange.reply.root_dispersion_s),
    Field("replies", COUNT, value=lambda it: it.exchange and it.exchange.replies),
    Field("ago_s", NUMBER, value=lambda it: round(it.ago_s, 3), help="when it was asked"),
    Field("problem"),
)  # fmt: skip
KERNEL: Sequence[Field[KernelClock]] = (
    Field("state", help="TIME_OK, TIME_ERROR: not synchronised, or of a leap second"),
    Field("flags", list_of(TEXT), value=lambda it: [*it.flags]),
    Field("is_synchronised", FLAG),
    Field("offset_s", NUMBER),
    Field("most_error_s", NUMBER),
    Field("estimated_error_s", NUMBER),
    Field("rate_ppm", NUMBER, help="the correction of the hardware's rate"),
    Field("tai_s", COUNT, help="TAI - UTC; 0: not set"),
    Field("leap", help="inserted or deleted at the end of this UTC day"),
)
VIEW: Sequence[Field[View]] = (
    Field("pid", ID, value=attrgetter("process.pid")),
    Field("command", value=attrgetter("process.command")),
    Field("zone", record(ZONE)),
    Field("faked_by", help="a library that replaces the clock functions"),
    Field("fake", help="its FAKETIME"),
    Field(
        "monotonic_offset_s",
        NUMBER,
        value=lambda it: it.offsets and it.offsets.monotonic_s,
        help="of its time namespace",
    ),
    Field("boottime_offset_s", NUMBER, value=lambda it: it.offsets and it.offsets.boottime_s),
)
DOCUMENT: Sequence[Field[Result]] = (
    Field("state", value=attrgetter("sync.state"), help="synchronised, unsynchronised, stale or unknown"),
    Field("by", value=attrgetter("sync.by"), help="the daemon"),
    Field("why", value=attrgetter("sync.why")),
    Field("error_s", NUMBER, value=attrgetter("sync.error_s"), help="the clock is right within this"),
    Field("server", record(SERVER), value=attrgetter("facts.server")),
    Field("timezone_offset_s", COUNT, value=lambda it: it.skew and it.skew.zone_s, help="what the offset to the server matches"),
    Field("steps", records(STEP), value=lambda it: None if it.facts.watched_s is None else [*it.facts.steps], help="with -w; the last hundred"),
    Field("steps_total", COUNT, value=lambda it: None if it.facts.watched_s is None else it.facts.steps_total, help="seen in this watch"),
    Field("watched_s", NUMBER, value=lambda it: it.facts.watched_s and round(it.facts.watched_s, 3)),
    Field("measured_rate_ppm", NUMBER, value=lambda it: it.facts.rate and it.facts.rate.ppm, help="MONOTONIC against MONOTONIC_RAW, with -w"),
    Field("process", record(VIEW), value=attrgetter("facts.view")),
    Field("kernel", record(KERNEL), value=attrgetter("facts.kernel"), help="adjtimex(2)"),
    Field("daemons", records(DAEMON), value=lambda it: [*it.facts.daemons]),
    Field("answers", records(ANSWER), value=lambda it: [*it.answers], help="of the daemons' clients"),
    Field("clocksource", value=attrgetter("facts.source.current")),
    Field("clocksources", list_of(TEXT), value=lambda it: [*it.facts.source.available]),
    Field("read_ns", NUMBER, value=lambda it: it.facts.source.cost and it.facts.source.cost.read_ns, help="clock_gettime(CLOCK_REALTIME)"),
    Field("syscall_ns", NUMBER, value=lambda it: it.facts.source.cost and it.facts.source.cost.syscall_ns, help="getppid(2)"),
    Field("is_slow_source", FLAG, help="a read of the clock is a real system call"),
    Field("rtc_ahead_s", NUMBER, value=lambda it: it.facts.rtc and it.facts.rtc.ahead_s, help="of the system clock, exact to half a second"),
    Field("rtc_keeps", value=lambda it: it.facts.rtc and it.facts.rtc.keeps, help="UTC or LOCAL, by /etc/adjtime"),
    Field("zone", record(ZONE), value=attrgetter("facts.zone")),
    Field("is_virtual", FLAG, value=attrgetter("facts.is_virtual"), help="a hypervisor runs this machine"),
    Field("container", value=attrgetter("facts.container"), help="what shows that opskit runs in a container"),
)  # fmt: skip

_BY_SERVER = ("offset_s", "delay_s", "stratum", "name")
_METRICS: Sequence[Field[Result]] = (
    Field("synchronised", FLAG, value=lambda it: None if it.sync.state == "unknown" else it.sync.state == "synchronised"),
    *(field for field in DOCUMENT if field.name in ("error_s", "is_slow_source", "rtc_ahead_s")),
    Field("read_s", NUMBER, value=lambda it: it.facts.source.cost and round(it.facts.source.cost.read_ns / 1e9, 12), help="clock_gettime(CLOCK_REALTIME)"),
    Field("syscall_s", NUMBER, value=lambda it: it.facts.source.cost and round(it.facts.source.cost.syscall_ns / 1e9, 12), help="getppid(2)"),
    Field("rate_ratio", NUMBER, value=lambda it: it.facts.kernel and round(it.facts.kernel.rate_ppm / 1e6, 12), help="the correction of the hardware's rate"),
    Field("measured_rate_ratio", NUMBER, value=lambda it: it.facts.rate and round(it.facts.rate.ppm / 1e6, 12), help="MONOTONIC against MONOTONIC_RAW, with -w"),
    Field("steps", TOTAL, value=lambda it: None if it.facts.watched_s is None else it.facts.steps_total, help="seen in this watch"),
    *of_part("facts.kernel", [field for field in KERNEL if field.name in ("most_error_s", "estimated_error_s", "tai_s")]),
)  # fmt: skip


def metrics(result: Result) -> Iterator[Metrics]:
    """The clock, the server, and what each daemon says."""
    yield Metrics("opskit_clock", _METRICS, [result])
    if result.facts.server is not None:
        yield Metrics(
            "opskit_clock_server", [each for each in SERVER if each.name in _BY_SERVER], [result.facts.server]
        )
    answered = [
        field
        for field in ANSWER
        if field.name in ("daemon", "pid", "is_synchronised", "offset_s", "error_s", "stratum", "age_s")
    ]
    yield Metrics("opskit_clock_daemon", answered, result.answers)


def complete(report: Report, result: Result) -> Report:
    """The report with its JSON object and metrics."""
    return report._replace(document=(DOCUMENT, result), metrics=partial(metrics, result))
