"""The JSON object of `opskit mem`, and its metrics."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.records import NamedTuple
from opskit.render.fields import COUNT, NUMBER, SIZE, TEXT, Field, Kind, list_of, of_part, record, records
from opskit.render.report import Metrics, Report
from opskit.render.views.mem import files, host
from opskit.render.views.mem.fields import (
    DETAILS,
    GROWTH,
    HEADROOM,
    HUGE_LIMIT,
    JVM,
    LEVEL_DOCUMENT,
    MACHINE,
    MALLOC,
    MEMBER,
    PART,
    PROCESS,
    ROW,
    SAMPLE,
    SLOPE,
    SUSPECT,
    UNHELD,
    USAGE,
)
from opskit.render.views.mem.rows import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.mem.files import FileResult
    from opskit.analysis.mem.host import HostResult
    from opskit.analysis.mem.result import Result
    from opskit.collect.mem.facts import Facts


class Answer(NamedTuple):
    """What was asked for: a process, the machine, or files that hold memory. The others are None."""

    process: Result | None = None
    host: HostResult | None = None
    files: FileResult | None = None


def _of(name: str, kind: Kind = TEXT, *, help: str = "", whole: bool = False) -> Field[Answer]:  # noqa: A002
    """A value of the result (`whole`) or of its facts."""
    read = attrgetter(name if whole else f"facts.{name}")
    return Field(name, kind, value=lambda answer: answer.process and read(answer.process), help=help)


DOCUMENT: Sequence[Field[Answer]] = (
    _of("process", record(PROCESS)),
    Field("unit", value=lambda it: it.process and _unit(it.process.facts), help="container, pod or systemd unit"),
    _of("total", record(USAGE), help="of the whole process"),
    _of("page_table_bytes", SIZE),
    Field("age_s", NUMBER, value=lambda it: it.process and _rounded(it.process.facts.age_s), help="since the process started"),
    Field(
        "rows", records((*ROW, *GROWTH, DETAILS)), value=lambda it: it.process and lines_of(it.process),
        help="the largest first; their sum is the total",
    ),
    _of("why_sums_only", help="why there are no rows"),
    _of("parts", records(PART), help="mapped files, libraries and named mappings"),
    _of("malloc", record(MALLOC)),
    _of("jvm", record(JVM)),
    _of("levels", records(LEVEL_DOCUMENT), help="the memory cgroups, the process's own first"),
    _of("members", records(MEMBER), help="the processes of the cgroup whose limit comes first, the largest first"),
    _of("members_unread", COUNT, help="processes of that cgroup that could not be read"),
    _of("unheld", records(UNHELD), help="files of a tmpfs that no process has open: they hold memory until they are removed"),
    _of("huge_limits", records(HUGE_LIMIT), help="limits of reserved huge pages"),
    _of("levels_unknown", help="why some or all of them are not known"),
    Field("machine", record(MACHINE), value=lambda it: it.process and it.process.facts.host),
    _of("missing", list_of(TEXT), help="what could not be read"),
    _of("headroom", record(HEADROOM), help="what is left until the kernel kills", whole=True),
    _of("suspects", records(SUSPECT), help="what holds the memory, the most important first", whole=True),
    _of("slopes", records(SLOPE), help="with -w", whole=True),
    _of("samples", records(SAMPLE), help="with -w, the oldest first", whole=True),
    *of_part("host", host.DOCUMENT),
    *of_part("files", files.DOCUMENT),
)  # fmt: skip


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)


def _unit(facts: Facts) -> str | None:
    return facts.owner.label if facts.owner else None


_STATE: Sequence[Field[Result]] = (
    Field("page_table_bytes", SIZE, value=attrgetter("facts.page_table_bytes"), help="page tables"),
)
_REASONS = ("unknown", "incomplete", "runtime")
_NOT_OF_JAVA = ("main", "release", "collector")


def _of_process(result: Result) -> Iterator[Metrics]:
    """The figures of one process, for Prometheus; each sample names the process."""
    facts = result.facts
    labels: dict[str, object] = {"pid": facts.process.pid, "command": facts.process.command}
    if facts.jvm is not None:
        labels["main"] = facts.jvm.main
    lines = lines_of(result)
    yield Metrics("opskit_mem", (*ROW, *GROWTH), lines, labels)
    yield Metrics("opskit_mem_process", USAGE, [facts.total], labels)
    yield Metrics("opskit_mem_process", _STATE, [result], labels)
    yield Metrics(
        "opskit_mem_malloc", [field for field in MALLOC if field.name not in _REASONS], _some(facts.malloc), labels
    )
    yield Metrics(
        "opskit_mem_jvm", [field for field in JVM if field.name not in _NOT_OF_JAVA], _some(facts.jvm), labels
    )
    yield Metrics(
        "opskit_mem_cgroup", [field for field in LEVEL_DOCUMENT if field.name != "version"], facts.levels, labels
    )
    yield Metrics("opskit_mem_headroom", HEADROOM, _some(result.headroom), labels)


def _some(row: Any) -> list[Any]:
    return [] if row is None else [row]


_SENTENCES = ("note", "next", "name")  # of the machine's uses: no labels


def _of_host(result: HostResult) -> Iterator[Metrics]:
    """The machine's uses of memory, its processes by command and cgroup, tmpfs mounts and huge pages."""
    yield Metrics("opskit_mem_use", [field for field in host.USE if field.name not in _SENTENCES], result.parts)
    yield Metrics("opskit_mem_processes", host.GROUP, result.groups)
    yield Metrics("opskit_mem_tmpfs", host.MOUNT, host.tmpfs_mounts(result))
    yield Metrics("opskit_mem_huge_pages", host.POOL, result.facts.pools)


def complete(report: Report, answer: Answer) -> Report:
    """The report with its JSON object and its metrics."""
    return report._replace(document=(DOCUMENT, answer), metrics=partial(_metrics, answer))


def _metrics(answer: Answer) -> Iterator[Metrics]:
    if answer.process is not None:
        yield from _of_process(answer.process)
    if answer.host is not None:
        yield from _of_host(answer.host)
    if answer.files is not None:
        yield Metrics("opskit_mem_file", files.FILE, answer.files.rows)
