"""Shares of time and of limits of each JVM, and what is wrong with them. Pure.

Shares are of the window between two looks; with one look, of the time since the JVM's start. 100 % of CPU is one CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.cpu_quota import judge_quota
from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.near_limit import is_near_limit
from opskit.analysis.thresholds import GC_SHARE
from opskit.analysis.young_collections import Rates, frees_little, rates
from opskit.quantities import duration, percent, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.jvm_troubles import Killed, Stall
    from opskit.collect.jvms import Facts, Key, Reading, Seen
    from opskit.proc.cgroup.limits import CpuLimit

GC_PERCENT = 100 * GC_SHARE
_FEW = 3  # pauses or periods in a window; fewer are no rate
# Since a JVM's start: in the first seconds it warms up, and what happened days ago may be over.
_WARM_S, _LATELY_S = 10.0, 24 * 3600.0
_JUST_NOW_S = 900.0  # since a kill: it may have been restarted, and the cause mended


class Shares(NamedTuple):
    """Percents of the window: CPU, GC pauses, safepoints; and of the scheduler periods in it, those throttled. None: unknown."""

    window_s: float | None
    cpu_percent: float | None
    gc_percent: float | None
    stopped_percent: float | None
    throttled_percent: float | None


class Row(NamedTuple):
    """A JVM, the reading before, and its shares. `memory_percent`: resident memory of the limit; None: no limit.

    `rates`: of allocation and promotion; None with one look, and for collectors that do not count them.
    """

    seen: Seen
    before: Reading | None
    shares: Shares
    memory_percent: float | None
    rates: Rates | None = None

    def since(self, count: Callable[[Reading], int | None]) -> int:
        """By how much a counter grew in the window."""
        return (count(self.seen.reading) or 0) - ((count(self.before) or 0) if self.before else 0)


class Sample(NamedTuple):
    """A JVM in one look of a watch."""

    key: Key
    reading: Reading
    shares: Shares
    rates: Rates | None


class Result(NamedTuple):
    """The rows in their order, and what was found."""

    facts: Facts
    rows: list[Row]
    findings: list[Finding]

    @property
    def samples(self) -> Iterator[tuple[float, list[Sample]]]:
        """(seconds since the first look, the JVMs) of each look, if they were kept."""
        before: Mapping[Key, Reading] = {}
        for at_s, look in self.facts.history:
            yield at_s, [_sample(key, now, before.get(key)) for key, now in look.items()]
            before = look


def judge(facts: Facts, sort: str = "pid", *, worst_first: bool = False) -> Result:
    """Order the JVMs, and make the findings about them. `worst_first`: those with findings before the others."""
    rows = [row_of(seen, facts.before.get(seen.key)) for seen in facts.seen]
    found = _once(finding for row in rows for find in _CHECKS for finding in find(row))
    stuck = (finding for row in rows for finding in find_stuck(row, facts.stalls.get(row.seen.jvm.pid)))
    findings = most_severe_first([*find_kills(facts.killed), *stuck, *found])
    rows = ordered(rows, sort)
    if worst_first:
        worst = [finding.entity for finding in findings if finding.severity != "note"]
        rows.sort(key=lambda row: next((at for at, entity in enumerate(worst) if _is_of(row, entity)), len(worst)))
    return Result(facts, rows, findings)


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Without what several JVMs of a cgroup say of the cgroup."""
    first: dict[tuple[str, Entity], Finding] = {}
    for each in findings:
        first.setdefault((each.code, each.entity), each)
    return [*first.values()]


def _is_of(row: Row, entity: Entity) -> bool:
    """Whether an entity is this JVM, or the cgroup that limits it."""
    seen = row.seen
    if entity.kind == "cgroup":
        return entity.id in {limit.path for limit in (seen.reading.cpu, seen.memory) if limit is not None}
    return entity.id == seen.jvm.pid


def row_of(seen: Seen, before: Reading | None) -> Row:
    """Its shares and rates since `before`, or since its start."""
    rss, limit = seen.reading.rss_bytes, seen.memory.limit_bytes if seen.memory else None
    return Row(
        seen,
        before,
        shares(seen.reading, before),
        100.0 * rss / limit if rss is not None and limit else None,
        _rates(seen.reading, before),
    )


def _sample(key: Key, now: Reading, before: Reading | None) -> Sample:
    return Sample(key, now, shares(now, before), _rates(now, before))


def _rates(now: Reading, before: Reading | None) -> Rates | None:
    if before is None:
        return None
    return rates([(before.at_s, before.generations), *now.between, (now.at_s, now.generations)])


def shares(now: Reading, before: Reading | None = None) -> Shares:
    """The shares of the window since `before`, or since the JVM's start."""
    window_s = now.age_s if before is None else now.at_s - before.at_s

    def share(total: Callable[[Reading], float | None]) -> float | None:
        later, earlier = total(now), 0.0 if before is None else total(before)
        return None if later is None or earlier is None else _percent(later - earlier, window_s)

    gc, stopped = _capped(share(lambda reading: reading.gc.pause_s)), _capped(share(lambda reading: reading.stopped_s))
    return Shares(
        window_s,
        share(lambda reading: reading.cpu_s),
        gc,
        # A pause is counted a moment before its stop.
        stopped if gc is None or now.stopped_s is None else max(stopped or 0.0, gc),
        _throttled(now.cpu, before.cpu if before else None),
    )


def _percent(part: float, whole: float | None) -> float | None:
    """None if a counter ran backwards, or no time has passed."""
    return 100.0 * part / whole if whole is not None and whole > 0 and part >= 0 else None


def _capped(share: float | None) -> float | None:
    """A share of the time. A stop is counted when it ends, so that a window may get more of it than fits."""
    return None if share is None else min(share, 100.0)


def _throttled(now: CpuLimit | None, before: CpuLimit | None) -> float | None:
    if now is None or now.periods is None or now.throttled_periods is None:
        return None
    periods, throttled = now.periods, now.throttled_periods
    if before is not None:
        if before.path != now.path or before.periods is None or before.throttled_periods is None:
            return None
        periods, throttled = periods - before.periods, throttled - before.throttled_periods
    return _percent(throttled, periods) if periods or throttled else 0.0


_ORDERS: dict[str, Callable[[Row], float | None]] = {
    "heap": lambda row: row.seen.reading.heap and row.seen.reading.heap.used_bytes,
    "cpu": lambda row: row.shares.cpu_percent,
    "rss": lambda row: row.seen.reading.rss_bytes,
    "uptime": lambda row: row.seen.reading.age_s,
}


def ordered(rows: Sequence[Row], by: str) -> list[Row]:
    """By pid, or with the largest heap, cpu, rss or uptime first; unknown ones last."""
    value = _ORDERS.get(by)

    def key(row: Row) -> tuple[bool, float, int]:
        number = 0 if value is None else value(row)
        return number is None, -(number or 0), row.seen.jvm.pid

    return sorted(rows, key=key)


def _found(
    row: Row, code: str, summary: str, evidence: str, next_: str, share: float | None, *, events: int | None = None
) -> Finding:
    """`share` in percent; with `events` of the window: a note for a few of them, the JVM's first seconds, or days."""
    jvm, window_s = row.seen.jvm, None if events is None else row.shares.window_s
    is_note = events is not None and events < _FEW
    if window_s is not None and row.before is None:
        is_note = is_note or not _WARM_S <= window_s <= _LATELY_S
    inside = Entity("cgroup", row.seen.place.path) if row.seen.place else None
    return Finding(
        code,
        "note" if is_note else "warning",
        Entity("process", jvm.pid, jvm.start_ticks, inside),
        f"{jvm.main} {summary}",
        evidence,
        next=next_,
        share=None if share is None else round(share / 100, 4),
        window_s=None if window_s is None else round(window_s, 3),
    )


def _gc(row: Row) -> Iterator[Finding]:
    reading, share = row.seen.reading, row.shares.gc_percent
    if share is not None and share >= GC_PERCENT:
        full = f"; heap: {size(reading.heap.used_bytes)} of {size(reading.heap.max_bytes)}" if reading.heap else ""
        yield _found(
            row, "jvm-gc-share", f"spends {percent(share / 100)} of the time in GC pauses{full}",
            f"{reading.gc.pauses:,} pauses since its start, by sun.gc.collector.*.time of its hsperfdata",
            shell.command("opskit", "jmap-diff", row.seen.jvm.pid, "-c", 5), share,
            events=row.since(lambda reading: reading.gc.pauses),
        )  # fmt: skip


def find_throttling(row: Row) -> Iterator[Finding]:
    """The CPU quota of its cgroup runs out."""
    jvm, now, window_s = row.seen.jvm, row.seen.reading.cpu, row.shares.window_s
    if now is None or row.shares.throttled_percent is None:
        return
    gained = row.since(lambda reading: reading.cpu and reading.cpu.throttled_periods)
    quota = now._replace(
        periods=row.since(lambda reading: reading.cpu and reading.cpu.periods),
        throttled_periods=gained,
        throttled_s=None,
    )
    is_note = row.before is None and window_s is not None and not _WARM_S <= window_s <= _LATELY_S
    closer = shell.command("opskit", "cswitch", jvm.pid)
    found = judge_quota(quota, f"{jvm.pid} ({jvm.main})", next_=closer, window_s=window_s, is_note=is_note)
    yield from () if found is None else (found,)


def find_near_limit(row: Row) -> Iterator[Finding]:
    """Its memory, or what its heap may grow to, is near the limit of its cgroup."""
    pid, reading, memory = row.seen.jvm.pid, row.seen.reading, row.seen.memory
    limit = memory.limit_bytes if memory else None
    if memory is None or not limit:
        return
    # ZGC without generations maps its heap three times: VmRSS counts each, the cgroup counts one.
    files = reading.file_bytes
    counted = memory.usage_bytes if memory.pinned_bytes is None else memory.pinned_bytes
    held = min((reading.rss_bytes or 0) - (files or 0), limit if counted is None else counted)
    if is_near_limit(held, limit):
        yield _found(
            row, "memory-near-limit",
            f"has {size(held)} resident{'' if files is None else ' without mapped files'}, {percent(held / limit)} of its cgroup's limit of "
            f"{size(limit)}, at which the kernel kills it; raise the limit, or lower -Xmx",
            f"VmRSS{'' if files is None else ' and RssFile'} of /proc/{pid}/status, memory limit of {memory.path}",
            shell.command("opskit", "mem", pid), 100 * held / limit,
        )._replace(entity=Entity("cgroup", memory.path))  # fmt: skip
    if reading.heap and reading.heap.max_bytes > limit:
        yield _found(
            row, "memory-heap-outgrows-limit",
            f"may grow its heap to {size(reading.heap.max_bytes)}, above its cgroup's memory limit of {size(limit)}; lower "
            "-Xmx or -XX:MaxRAMPercentage, or raise the limit",
            f"maxCapacity of the generations in its hsperfdata, memory limit of {memory.path}",
            shell.command("opskit", "jvms", pid, "--vm-args"), None,
        )  # fmt: skip


def find_kills(killed: Sequence[Killed]) -> Iterator[Finding]:
    """A finding for each kill; earlier ones, of which a JVM that is started again and again has many, are one note."""
    earlier = sorted((jvm for jvm in killed if _is_earlier(jvm)), key=lambda jvm: jvm.ago_s or 0.0)
    yield from (_killed(jvm, "error") for jvm in killed if not _is_earlier(jvm))
    if earlier:
        yield _killed(earlier[0], "note", len(earlier) - 1)


def _is_earlier(jvm: Killed) -> bool:
    return jvm.replaced or (jvm.ago_s is not None and jvm.ago_s > _JUST_NOW_S)


def _killed(jvm: Killed, severity: Severity, before: int = 0) -> Finding:
    """`before`: how many were killed before it within a day."""
    when = "while it was watched" if jvm.ago_s is None else f"{duration(jvm.ago_s)} ago"
    limit = f" at the limit of {size(jvm.limit_bytes)} of {jvm.cgroup}" if jvm.limit_bytes else ""
    more = f", and {before:,} more in the last 24 h" if before else ""
    inside = None if jvm.cgroup is None else Entity("cgroup", jvm.cgroup)
    return Finding(
        "oom-killed", severity, Entity("process", jvm.pid, jvm.start_ticks, inside),
        f"{jvm.main} was killed by the kernel's OOM killer{limit} {when}{more}; raise the limit, or lower -Xmx or what it uses outside "
        "of its heap", jvm.evidence,
        next=shell.command("opskit", "oom"),
    )  # fmt: skip


def find_stuck(row: Row, stall: Stall | None) -> Iterator[Finding]:
    """What keeps all of a JVM from running."""
    jvm, stopped = row.seen.jvm, row.seen.stopped
    process = Entity("process", jvm.pid, jvm.start_ticks)
    if stopped is not None:
        fix = stopped.resume if stopped.command else None
        summary = f"{jvm.main} {stopped.why}: nothing in it runs" + ("" if fix else f"; {stopped.resume}")
        severity: Severity = "error" if fix else "warning"  # a debugger or a pause is often intended
        yield Finding("process-stopped", severity, process, summary, f"/proc/{jvm.pid}/stat, and its cgroups", fix)
    elif stall is not None:
        late, top = "", shell.command("top", "-H", "-p", jvm.pid)
        if stall.thread is not None:
            tid, name, used = stall.thread
            late = f"; thread {name!r} (tid {tid}) used {percent(used)} of a CPU meanwhile"
            top = shell.command("perf", "record", "-g", "-t", tid)
        yield Finding(
            "safepoint-not-reached", "error", process,
            f"{jvm.main} is stuck: a safepoint was requested, and its threads have not stopped for {duration(stall.seconds)} or more{late}",
            "the VM thread polls, and no counter of its hsperfdata has moved", next=top,
        )  # fmt: skip


def find_young(row: Row) -> Iterator[Finding]:
    """Young collections free almost nothing."""
    yield from frees_little(row.seen, row.rates)


_CHECKS = (_gc, find_young, find_throttling, find_near_limit)
