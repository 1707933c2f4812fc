"""The answer of `opskit io`: the verdict, what to type next, threads and files of a process, or processes and devices of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.quantities import agreeing, percent, plural, size
from opskit.render.report import Block, Report
from opskit.render.views.io.fields import DEVICE_COLUMNS, FILE, PROCESS_COLUMNS, thread_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.io.result import DeviceRow, Result
    from opskit.collect.io.facts import CgroupIo, Facts
    from opskit.render.fields import Field
    from opskit.render.report import About
    from opskit.render.shown import Shown

DEFAULT_TOP, _DEVICES, _FILES = 10, 5, 5


def target(result: Result) -> dict[str, object] | None:
    """What was asked about, for the head of the report."""
    process = result.facts.process
    return None if process is None else {"pid": process.pid, "command": process.command, "user": process.user}


def report(about: About, result: Result, shown: Shown) -> Report:
    """The whole answer."""
    blocks = _of_machine(result, shown) if result.facts.process is None else _of_process(result, shown)
    return Report(
        about, [*blocks], verdict=[*_verdict(result, shown)], footer=[*_footer(result.facts, shown)],
        summary=[*_summary(result.facts)], findings=result.findings,
    )  # fmt: skip


def _verdict(result: Result, shown: Shown) -> Iterator[str]:
    """The sentences, unless a finding below has them, and the next command, unless a finding names one."""
    said = [finding.summary for finding in result.findings]
    closer = next((finding.next for finding in result.findings if finding.next), None)
    if shown.on_screen:
        yield from (f"{summary}." for summary in said[:1])
    for sentence in result.verdict:
        if not any(sentence.rstrip(".") == summary for summary in said):
            yield f"{sentence.rstrip('.')}."
    following = closer or result.next
    if following is not None and (closer is None or shown.on_screen):
        yield f"next: {following}"


def _of_process(result: Result, shown: Shown) -> Iterator[Block[Any]]:
    rows = result.rows
    if rows:
        java = shown.text or any(row.thread.frames for row in rows)
        columns = thread_columns(text=shown.text, verbose=shown.verbose, java=java)
        yield _block(columns, rows, shown, DEFAULT_TOP, None)
    files = result.facts.files
    if files and not shown.text:
        yield _block(FILE, files, shown, _FILES, "files that were read or written", details=True)


def _of_machine(result: Result, shown: Shown) -> Iterator[Block[Any]]:
    if result.processes:
        yield _block(PROCESS_COLUMNS, result.processes, shown, DEFAULT_TOP, None)
    active = [row for row in result.devices if shown.verbose or _is_active(row)]
    if active:
        title = None if shown.text and not result.processes else "devices"
        yield _block(DEVICE_COLUMNS, active, shown, _DEVICES, title, details=not any(row.why for row in active))


def _block(
    columns: Sequence[Field[Any]],
    rows: Sequence[Any],
    shown: Shown,
    most: int,
    title: str | None,
    *,
    details: bool = False,
) -> Block[Any]:
    """On a terminal without the columns in which no row has a value: a why that nobody has takes no room."""
    kept = rows[: shown.first(most)]
    used = (
        [*columns]
        if shown.text
        else [each for each in columns if any(each.human(row) not in ("", "0") for row in kept)]
    )
    return Block(used, kept, len(rows), title, one_line=True, details=details)


def _is_active(row: DeviceRow) -> bool:
    device = row.device
    return bool(row.why or device.in_flight or device.reads or device.writes or device.flushes or device.discards)


def _summary(facts: Facts) -> Iterator[str]:
    if facts.host_some is not None:
        full = "" if facts.host_full is None else f", all of them {percent(facts.host_full)}"
        yield f"I/O pressure of the machine: some task waited {percent(facts.host_some)} of the time{full}"
    if facts.cgroup is not None:
        yield from _cgroup(facts.cgroup)
    if facts.dirty_bytes is not None and facts.process is None:
        yield f"page cache: {size(facts.dirty_bytes)} dirty, {size(facts.writeback_bytes or 0)} being written"


def _cgroup(cgroup: CgroupIo) -> Iterator[str]:
    parts = []
    if cgroup.some is not None:
        parts.append(f"I/O pressure {percent(cgroup.some)}")
    if cgroup.memory_limit_bytes is not None:
        parts.append(f"memory limit {size(cgroup.memory_limit_bytes)}")
    if cgroup.refaults is not None:
        parts.append(f"{cgroup.refaults:,.0f} refaults a second")
    parts += [f"{limit.device}: {limit.what} limited to {limit.limit:,.0f}" for limit in cgroup.limits]
    if parts:
        yield f"cgroup {cgroup.path}: {', '.join(parts)}"


def _footer(facts: Facts, shown: Shown) -> Iterator[str]:
    yield from facts.missing
    process = facts.process
    if shown.asked and process is not None and not facts.is_jvm:
        yield f"--ask: {process.pid} is not a JVM: its threads are shown without stacks"
    hidden = facts.thread_total - len(facts.threads)
    if process is not None and hidden > 0 and shown.verbose:
        yield f"{plural(hidden, 'other thread')} {agreeing(hidden, 'does', 'do')} not read or write"
