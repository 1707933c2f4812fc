"""The JSON object of `opskit io`, its metrics and its CSV file."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from opskit.render.cells import TARGET, rate_at, rounded_at
from opskit.render.fields import COUNT, FLAG, NUMBER, SHARE, SIZE, TEXT, Field, list_of, record, records, sheet
from opskit.render.report import Metrics
from opskit.render.views.io.fields import DEVICE, FILE, PROCESS, RATES, THREAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from opskit.analysis.io.result import Result
    from opskit.collect.io.facts import CgroupIo, IoLimit
    from opskit.render.report import Report, Sheet

_LIMIT: Sequence[Field[IoLimit]] = (
    Field("path"),
    Field("device", help="major:minor, or its name"),
    Field("what", help="rbps, wbps, riops or wiops"),
    Field("limit", NUMBER),
    Field("used", NUMBER, value=rate_at("used"), help="a second"),
)
_CGROUP: Sequence[Field[CgroupIo]] = (
    Field("path"),
    Field("some", SHARE, value=rounded_at("some"), help="I/O pressure: some task waited; null: unknown"),
    Field("full", SHARE, value=rounded_at("full"), help="the same of all its tasks"),
    Field("memory_some", SHARE, value=rounded_at("memory_some"), help="memory pressure"),
    Field("refaults_per_s", NUMBER, value=rate_at("refaults"), help="pages that were read again soon after they were dropped"),
    Field("memory_limit_bytes", SIZE),
    Field("usage_bytes", SIZE),
    Field("cache_bytes", SIZE),
    Field("limits", records(_LIMIT), value=lambda it: [*it.limits]),
)  # fmt: skip
DOCUMENT: Sequence[Field[Result]] = (
    Field("process", record(TARGET), value=attrgetter("facts.process"), help="null: the machine"),
    Field("window_s", NUMBER, value=rounded_at("facts.window_s")),
    Field("total", record(RATES), value=attrgetter("facts.total"), help="of the process, or of all that could be read"),
    Field("is_jvm", FLAG, value=attrgetter("facts.is_jvm")),
    Field("threads", records(THREAD), value=lambda it: [*it.rows], help="those that read or write"),
    Field("thread_total", COUNT, value=attrgetter("facts.thread_total"), help="of the process"),
    Field("ended_threads", record(RATES), value=attrgetter("facts.ended"), help="threads that ended in the window"),
    Field("files", records(FILE), value=lambda it: [*it.facts.files]),
    Field("cgroup", record(_CGROUP), value=attrgetter("facts.cgroup")),
    Field("processes", records(PROCESS), value=lambda it: [*it.processes], help="of the machine"),
    Field("devices", records(DEVICE), value=lambda it: [*it.devices], help="of the machine, those that were ever used"),
    Field("pressure_some", SHARE, value=rounded_at("facts.host_some"), help="I/O pressure of the machine; null: unknown"),
    Field("pressure_full", SHARE, value=rounded_at("facts.host_full")),
    Field("dirty_bytes", SIZE, value=attrgetter("facts.dirty_bytes")),
    Field("writeback_bytes", SIZE, value=attrgetter("facts.writeback_bytes")),
    Field("next", help="the command for a closer look"),
    Field("missing", list_of(TEXT), value=lambda it: [*it.facts.missing], help="what could not be read"),
)  # fmt: skip
_NO_LABEL = ("why", "start_ticks", "path", "looks", "fd", "uid", "user", "flags", "mount_point", "in_flight")
_IN_FLIGHT: Field[Any] = Field("in_flight", NUMBER, value=attrgetter("device.in_flight"))


def complete(report: Report, result: Result) -> Report:
    """The report with its JSON object, metrics and CSV file."""
    return report._replace(document=(DOCUMENT, result), metrics=partial(metrics, result), sheet=partial(_sheet, result))


def metrics(result: Result) -> Iterator[Metrics]:
    """Threads of a process, or processes and devices of the machine."""
    facts = result.facts
    yield Metrics(
        "opskit_io",
        [field for field in DOCUMENT if field.name.startswith(("pressure_", "dirty_", "writeback_"))],
        [result],
    )
    if facts.process is None:
        yield Metrics("opskit_io_process", _plain(PROCESS), result.processes)
        yield Metrics("opskit_io_device", [*_plain(DEVICE), _IN_FLIGHT], result.devices)
        return
    labels = {"pid": facts.process.pid, "command": facts.process.command}
    if facts.total is not None:
        yield Metrics("opskit_io_total", RATES, [facts.total], labels)
    yield Metrics("opskit_io_thread", _plain(THREAD), result.rows, labels)
    if facts.cgroup is not None:
        yield Metrics("opskit_io_cgroup", _CGROUP, [facts.cgroup], labels)


def _plain(fields: Sequence[Field[Any]]) -> list[Field[Any]]:
    """What identifies a row, and its numbers: a label that changes would make another series of each value."""
    return [field for field in fields if field.name not in _NO_LABEL]


def _sheet(result: Result) -> Sheet:
    if result.facts.process is not None:
        return sheet(_flat(THREAD), result.rows)
    return sheet(_flat(PROCESS), result.processes)


def _flat(fields: Sequence[Field[Any]]) -> list[Field[Any]]:
    """Those that fit into a cell."""
    return [field for field in fields if field.kind.schema.get("type") not in ("array", "object")]
