"""The JSON object of `opskit cswitch`, its metrics and its CSV file."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.records import NamedTuple
from opskit.render.cells import TARGET, rate_at, rounded_at
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SHARE, TEXT, Field, list_of, of_part, record, records, sheet
from opskit.render.report import Metrics
from opskit.render.views.cswitch.bench import FIELD as BENCH
from opskit.render.views.cswitch.fields import CPU_ROW, HANDOFF, PROCESS_ROW, QUOTA, THREAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.cswitch.bench import Result as BenchResult
    from opskit.analysis.cswitch.moments import Moment
    from opskit.analysis.cswitch.result import Result
    from opskit.collect.cswitch.facts import Facts
    from opskit.render.report import Report, Sheet


class Answer(NamedTuple):
    """What was asked for: waits, and what a watch has seen so far; or with --bench costs. The other one is None."""

    waits: Result | None = None
    moments: Sequence[Moment] = ()
    bench: BenchResult | None = None


_PRESSURE: Field[Facts] = Field(
    "cpu_pressure", SHARE, value=rounded_at("pressure", 4),
    help="0 to 1, of the window: some task of its cgroup waited, or one of the machine where that has no PSI",
)  # fmt: skip
MACHINE: Sequence[Field[Facts]] = (
    Field("runnable", NUMBER, value=rounded_at("runnable", 2), help="tasks of the machine that wanted to run, on average"),
    Field("switches_per_s", NUMBER, value=rate_at("switches"), help="of the machine"),
)  # fmt: skip
MOMENT: Sequence[Field[Moment]] = (
    Field("at_s", NUMBER, value=rounded_at("at_s", 3), help="the end of the look, since the first one began"),
    Field("waiting", NUMBER, value=rounded_at("waiting", 4), help="of all threads together: 1 is one thread that always waits"),
    Field("running", NUMBER, value=rounded_at("running", 4), help="the same: 1 is one CPU"),
    Field("worst", TEXT, help="the thread, without a PID the process, that waited most"),
    Field("worst_waiting", SHARE, value=rounded_at("worst_waiting", 4)),
    Field("runnable", NUMBER, value=rounded_at("runnable", 2)),
    Field("switches_per_s", NUMBER, value=rate_at("switches")),
    Field("cpu_pressure", SHARE, value=rounded_at("pressure", 4)),
)  # fmt: skip
_WAITS: Sequence[Field[Result]] = (
    Field("process", record(TARGET), value=attrgetter("facts.process"), help="null: the machine"),
    Field("is_jvm", FLAG, value=lambda it: None if it.facts.process is None else it.facts.is_jvm),
    Field("window_s", NUMBER, value=rounded_at("facts.window_s", 3)),
    Field("thread_count", COUNT, value=attrgetter("facts.all_threads"), help="also those that neither ran nor waited"),
    Field("threads", records(THREAD), value=lambda it: [*it.rows] if it.facts.process is not None else None,
          help="of the process, those that ran or waited: the longest wait first"),
    Field("processes", records(PROCESS_ROW), value=lambda it: [*it.processes],
          help="of the machine, likewise; with a PID the others that used the CPUs for which its threads waited: their switches are null"),
    Field("cpus", records(CPU_ROW), value=lambda it: [*it.facts.cpus]),
    Field("isolated_cpus", list_of(ID), value=lambda it: sorted(it.facts.isolated), help="those that the scheduler leaves alone"),
    Field("cpuset", list_of(ID), value=lambda it: sorted(it.facts.cpuset), help="the CPUs that its cgroup, without a PID opskit's, allows"),
    Field("quotas", records(QUOTA), value=lambda it: [*it.facts.quotas], help="of the cgroups of the process"),
    Field("handoffs", records(HANDOFF), value=lambda it: [*it.facts.handoffs], help="pairs of its threads that switch often, looked at together"),
    *of_part("facts", (*MACHINE, _PRESSURE)),
    Field("cpu_pressure_of", TEXT, value=attrgetter("facts.pressure_of"), help="cgroup or machine"),
    Field("next", TEXT, help="the command line for a closer look"),
    Field("missing", list_of(TEXT), value=lambda it: [*it.facts.missing], help="what could not be read"),
)  # fmt: skip
DOCUMENT: Sequence[Field[Answer]] = (
    *of_part("waits", _WAITS),
    Field("samples", records(MOMENT), value=lambda it: [*it.moments] or None, help="with -w, the oldest first"),
    BENCH,
)

_NOT_A_METRIC = frozenset(
    (
        "start_ticks",
        "cpu",
        "allowed",
        "policy",
        "nice",
        "throttled_by",
        "why",
        "kernel_name",
        "worst_tid",
        "worst_name",
        "uid",
        "user",
    )
)


def complete(report: Report, answer: Answer) -> Report:
    """The report with its JSON object, metrics and CSV file."""
    return report._replace(
        document=(DOCUMENT, answer), metrics=partial(metrics, answer), sheet=partial(_rows, answer.waits)
    )


def complete_bench(report: Report, result: BenchResult) -> Report:
    """The same of --bench."""
    return report._replace(document=(DOCUMENT, Answer(bench=result)))


def metrics(answer: Answer) -> Iterator[Metrics]:
    """Threads or processes, CPUs, quotas, and what the machine did."""
    result = answer.waits
    if result is None:
        return
    facts = result.facts
    labels = {} if facts.process is None else {"pid": facts.process.pid, "command": facts.process.command}
    yield Metrics("opskit_cswitch", MACHINE, [facts])
    yield Metrics("opskit_cswitch", [_PRESSURE], [facts], labels)
    yield Metrics("opskit_cswitch_thread", _numbers(THREAD), result.rows, labels)
    yield Metrics("opskit_cswitch_process", _numbers(PROCESS_ROW), result.processes)
    yield Metrics("opskit_cswitch_cpu", CPU_ROW, facts.cpus)
    yield Metrics("opskit_cswitch_quota", QUOTA, facts.quotas, labels)


def _numbers(fields: Sequence[Field[Any]]) -> list[Field[Any]]:
    """Numbers and the labels that stay the same from one scrape to the next."""
    return [field for field in fields if field.name not in _NOT_A_METRIC]


def _rows(result: Result | None) -> Sheet:
    """The rows of the CSV file: threads, or without a process processes."""
    if result is None or result.facts.process is None:
        return sheet(PROCESS_ROW, () if result is None else result.processes)
    return sheet([field for field in THREAD if field.name != "allowed"], result.rows)
