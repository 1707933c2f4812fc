"""How waits for a CPU are shown: the answer, the threads or processes that wait longest, what the CPUs did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.quantities import agreeing, duration, percent, plural
from opskit.render.cells import rate_text
from opskit.render.report import Block, Report
from opskit.render.views.cswitch.fields import (
    ALLOWED,
    AVERAGE_WAIT,
    AVERAGE_WAIT_MS,
    COMMAND,
    CPU,
    CPU_ROW,
    MIGRATIONS,
    MOVED,
    NAME,
    PID,
    QUOTA,
    THROTTLED,
    TID,
    USER,
    WHY,
    WORST,
    WORST_WAITS,
    switches_of,
    waits_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.cswitch.result import ProcessRow, Result, Row
    from opskit.collect.cswitch.facts import CpuLoad, Facts
    from opskit.render.fields import Field
    from opskit.render.report import About
    from opskit.render.shown import Shown

DEFAULT_TOP = 10
OTHERS_TOP = 3  # of the processes beside the one that was asked for
_LOST = 0.1  # of a CPU: taken by interrupts or the hypervisor; such a CPU is shown without -v


TEXT_THREADS: Sequence[Field[Row]] = (
    TID, *waits_of("thread"), THROTTLED, AVERAGE_WAIT_MS, *switches_of("thread"), MIGRATIONS, CPU, WHY, NAME,
)  # fmt: skip
TEXT_PROCESSES: Sequence[Field[ProcessRow]] = (
    PID, *waits_of("waits"), *switches_of("waits"), MOVED, USER, WHY, COMMAND,
)  # fmt: skip
PROCESSES: Sequence[Field[ProcessRow]] = (
    *waits_of("waits"), *switches_of("waits"), MOVED, PID, USER, COMMAND, WORST_WAITS, WORST, WHY,
)  # fmt: skip
OTHERS: Sequence[Field[ProcessRow]] = (*waits_of("waits"), MOVED, PID, USER, COMMAND, WORST_WAITS, WORST)


def target(result: Result) -> dict[str, object] | None:
    """What was asked about, for the head of the report."""
    process = result.facts.process
    return None if process is None else {"pid": process.pid, "user": process.user}


def report(about: About, result: Result, shown: Shown) -> Report:
    """The answer, the rows, what the machine did meanwhile."""
    return Report(
        about,
        [*_blocks(result, shown)],
        verdict=[*result.verdict, *_next(result, shown)],
        summary=[*_machine(result.facts)],
        footer=[*_footer(result.facts, shown)],
        findings=result.findings,
    )


def _next(result: Result, shown: Shown) -> Iterator[str]:
    """The closer look, unless a finding below names it."""
    closer = next((each.next for each in result.findings if each.next), None)
    if closer is None or shown.on_screen:
        following = closer or result.next
        if following is not None:
            yield f"next: {following}"


def _blocks(result: Result, shown: Shown) -> Iterator[Block[Any]]:
    if result.rows:
        rows = result.rows[: shown.first(DEFAULT_TOP)]
        yield Block([*_thread_columns(rows, shown)], rows, len(result.rows), one_line=True)
    if result.processes:
        processes = result.processes[: shown.first(OTHERS_TOP if result.rows else DEFAULT_TOP)]
        columns = TEXT_PROCESSES if shown.text else OTHERS if result.rows else _with_why(PROCESSES, processes)
        title = None if shown.text or not result.rows else "other processes on these CPUs"
        yield Block(columns, processes, len(result.processes), title, one_line=True, details=bool(result.rows))
    cpus = [load for load in result.facts.cpus if shown.verbose or _is_taken(load)]
    if cpus:
        title = None if shown.text else "CPUs"
        yield Block(_cpu_columns(cpus, shown), cpus, len(cpus), title, one_line=True, details=True)
    quotas = [quota for quota in result.facts.quotas if shown.verbose or quota.throttled_periods]
    if quotas:
        title = None if shown.text else "CPU quotas of its cgroups"
        yield Block(QUOTA, quotas, len(quotas), title, one_line=True, details=True)


def _thread_columns(rows: Sequence[Row], shown: Shown) -> Iterator[Field[Row]]:
    """The columns that have something to say: no throttling, no reason, no column."""
    if shown.text:
        yield from TEXT_THREADS
        return
    yield from waits_of("thread")
    if any(row.thread.throttled for row in rows):
        yield THROTTLED
    yield from (AVERAGE_WAIT, *switches_of("thread"), MIGRATIONS, CPU)
    yield from (*((ALLOWED,) if shown.verbose else ()), TID, NAME)
    yield from _with_why((WHY,), rows) if any(row.why for row in rows) else ()


def _with_why(columns: Sequence[Field[Any]], rows: Sequence[Row | ProcessRow]) -> Sequence[Field[Any]]:
    return columns if any(row.why for row in rows) else [column for column in columns if column is not WHY]


def _cpu_columns(cpus: Sequence[CpuLoad], shown: Shown) -> Sequence[Field[CpuLoad]]:
    """Without the last one where no thread is pinned."""
    return CPU_ROW if shown.text or any(load.pinned for load in cpus) else CPU_ROW[:-1]


def _is_taken(load: CpuLoad) -> bool:
    """Whether a good part of the CPU goes to no thread, which no thread's numbers show."""
    return load.use.softirq + load.use.irq + load.use.steal >= _LOST


def _machine(facts: Facts) -> Iterator[str]:
    """`2 CPUs over 2.0 s: user 93 %, system 6 %, idle 0 %; 8.1 tasks runnable; 15,204 switches/s`."""
    said = [each for each in (_use_of_all(facts), *_whole(facts)) if each]
    if said:
        cpus = plural(len(facts.cpus), "CPU") if facts.cpus else "the machine"
        yield f"{cpus} over {duration(facts.window_s)}: {'; '.join(said)}"


def _use_of_all(facts: Facts) -> str:
    """What all CPUs did, on average; without what is zero."""
    if not facts.cpus:
        return ""
    shares = {
        name: sum(getattr(load.use, name) for load in facts.cpus) / len(facts.cpus)
        for name in ("user", "system", "softirq", "irq", "steal", "idle")
    }
    return ", ".join(f"{name} {percent(share)}" for name, share in shares.items() if share >= 0.0005 or name == "idle")


def _whole(facts: Facts) -> Iterator[str]:
    if facts.runnable is not None:
        runnable = f"{facts.runnable:.1f}"
        yield f"{runnable} {agreeing(1 if runnable == '1.0' else 2, 'task')} runnable"
    if facts.switches is not None:
        yield f"{rate_text(facts.switches)} switches/s"
    if facts.pressure is not None:
        whose = "of its cgroup" if facts.pressure_of == "cgroup" else "of the machine"
        yield f"some task {whose} waited {percent(facts.pressure)} of the time (PSI)"


def _footer(facts: Facts, shown: Shown) -> Iterator[str]:
    """Threads that are not shown, what could not be read, what an option did not do."""
    moved = len(facts.threads) if facts.process is not None else sum(each.threads for each in facts.processes)
    still = facts.all_threads - moved
    if still > 0 and shown.verbose:
        little = "neither ran nor waited" if facts.process is not None else "ran and waited for under 0.1 % of the time"
        yield f"{plural(still, 'thread')} {little}"
    yield from dict.fromkeys(facts.missing)
    if shown.asked and facts.process is not None and not facts.is_jvm:
        yield f"--ask: {facts.process.pid} is not a JVM: its threads have no Java names"
