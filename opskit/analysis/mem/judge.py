"""The answer about a process's memory: what ends its growth, what holds the most, how fast it grows, and what is wrong. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.mem.headroom import headroom, swap_for, unsure_bytes
from opskit.analysis.mem.result import Result
from opskit.analysis.mem.suspects import is_waste, suspects, waste_share
from opskit.analysis.mem.trend import trend
from opskit.analysis.mem.words import fate, ways_out, who
from opskit.analysis.near_limit import is_near_limit
from opskit.proc.cgroup.memory import tightest
from opskit.proc.ranges import KINDS
from opskit.quantities import duration, percent, plural, short_size, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.analysis.mem.result import Headroom, Slope, Suspect
    from opskit.analysis.mem.trend import Trend
    from opskit.collect.mem.facts import Facts, Member
    from opskit.proc.cgroup.memory import MemoryGroup

_SOON_S = 24 * 3600.0
_LEAST_RISE, _RISE_OF_RSS = 4 << 20, 0.01  # in the looks; less is shown and is no finding
_OF_LIMIT = 0.1  # shared memory without a process: from then on it is a waste
_OF_CGROUPS = ("memory-near-limit", "memory-throttled", "oom-counted")
_SUMS = {"rss": "resident memory", "cgroup": "the memory of its cgroup", "direct": "direct buffers"}
# A row that explains another: direct buffers are malloced, a class loader takes three times more of malloc than of metaspace.
_EXPLAINS = (
    ("direct", "malloc-mmapped"),
    ("direct", "malloc-arenas"),
    ("metaspace", "malloc-arenas"),
    ("class-space", "metaspace"),
)


def judge(facts: Facts, samples: Sequence[Facts] = ()) -> Result:
    """The last look and what follows. `samples`: the looks of -w, the oldest first, with the last one or without it."""
    found = headroom(facts)
    looks = samples if samples and samples[-1] is facts else [*samples, facts]
    growth = trend(looks, found)
    level = tightest(facts.levels, swap_for(facts))
    ranked = suspects(facts, level, growth.steady)
    findings = [
        *_limits(facts, found),
        *_growth(facts, growth, looks),
        *_wastes(facts, ranked, level),
        *_kills(facts, looks),
    ]
    return Result(facts, found, ranked, growth.slopes, most_severe_first(findings), samples)


def _finding(
    facts: Facts, code: str, severity: Severity, summary: str, evidence: str, *, level: MemoryGroup | None = None,
    share: float | None = None, fix: str | None = None, next_: str | None = None, window_s: float | None = None,
) -> Finding:  # fmt: skip
    process = facts.process
    inside = Entity("cgroup", level.path) if level is not None else None
    entity = Entity("process", process.pid, process.start_ticks, inside)
    if inside is not None and code in _OF_CGROUPS:
        entity = inside
    share = None if share is None else round(share, 4)
    return Finding(code, severity, entity, f"{who(facts)} {summary}", evidence, fix, next_, share, window_s)


def _limits(facts: Facts, found: Headroom | None) -> Iterator[Finding]:
    if found is None or found.left_bytes is None:
        return
    watch = shell.command("opskit", "mem", facts.process.pid, "-w")
    level, growth = found.level, found.heap_growth_bytes
    if found.can_be_killed:
        yield _finding(
            facts, "memory-heap-outgrows-limit", "warning", f"{fate(level)}: {_outgrows(found)}",
            _evidence(facts, level), level=level, next_=watch,
        )  # fmt: skip
    elif level is not None and _is_near(facts, level) and not found.swap_left_bytes:
        used = level.pinned_bytes or 0
        yield _finding(
            facts, "memory-near-limit", "warning",
            f"is near the end: {size(used)} of {level.path} cannot be reclaimed, {percent(used / (level.limit_bytes or 1))} of its limit of "
            f"{size(level.limit_bytes)}", _evidence(facts, level), level=level, share=used / (level.limit_bytes or 1), next_=watch,
        )  # fmt: skip
    if found.allocations_fail:
        yield _finding(
            facts, "memory-commit-limit", "warning",
            f"cannot grow its heap to its maximum: vm.overcommit_memory is 2, and the commit limit leaves {size(found.commit_left_bytes)}; "
            "allocations then fail (Cannot allocate memory)", "CommitLimit and Committed_AS of /proc/meminfo",
            next_=shell.command("grep", "-i", "commit", "/proc/meminfo"),
        )  # fmt: skip
    high, left = found.throttled_in, found.throttle_left_bytes
    if high is not None and left is not None and (growth or 0) + (not left) > left + found.swap_left_bytes:
        now = "is slowed down by the kernel" if not left else "will be slowed down by the kernel before it is killed"
        yield _finding(
            facts, "memory-throttled", "warning", f"{now}: memory.high of {high.path} is {size(high.high_bytes)}, which leaves {size(left)}",
            f"memory.high and memory.stat of {high.path}", level=high, next_=watch,
        )  # fmt: skip


def _is_near(facts: Facts, level: MemoryGroup) -> bool:
    used = (level.pinned_bytes or 0) - unsure_bytes(facts, level)
    return level.limit_bytes is not None and is_near_limit(used, level.limit_bytes)


def _outgrows(found: Headroom) -> str:
    """`its heap may grow 58.3 MiB beyond the limit of 400 MiB of cgroup /orders; -Xmx190m, or a limit of 460 MiB would fit`."""
    level, beyond = found.level, size((found.heap_growth_bytes or 0) - (found.all_left_bytes or 0))
    swap = " and its swap" if found.swap_left_bytes else ""
    end = (
        "what the machine has"
        if level is None
        else f"the limit of {short_size(level.limit_bytes)} of cgroup {level.path}"
    )
    ways = ways_out(found)
    return f"its heap may grow {beyond} beyond {end}{swap}" + (f"; {ways} would fit" if ways else "")


def _evidence(facts: Facts, level: MemoryGroup | None) -> str:
    if level is None:
        return "MemAvailable and SwapFree of /proc/meminfo"
    counted = {"anon": level.anon_bytes, "shmem": level.shmem_bytes, "kernel": level.kernel_bytes}
    parts = ", ".join(f"{name} {size(amount)}" for name, amount in counted.items() if amount)
    others = [member.anon_bytes or 0 for member in facts.members if member.pid != facts.process.pid]
    shared = (
        f"; {plural(len(others), 'other process', 'other processes')} in it hold{'s' if len(others) == 1 else ''} {size(sum(others))}"
        if others
        else ""
    )
    return f"memory.stat of {level.path}: {parts}{shared}"


def _growth(facts: Facts, growth: Trend, looks: Sequence[Facts]) -> Iterator[Finding]:
    """The row that grows fastest, of those that reach a limit soon."""
    least = max(_LEAST_RISE, _RISE_OF_RSS * facts.total.rss_bytes)
    rising = [slope for slope in growth.slopes if growth.rises.get(slope.kind, 0) >= least]
    soon = [slope for slope in rising if slope.full_in_s is not None and slope.full_in_s <= _SOON_S]
    rows = [slope for slope in soon if slope.kind not in ("rss", "cgroup") and not _is_explained(slope, growth)]
    first = max(rows or soon, key=lambda slope: growth.steady[slope.kind], default=None)
    if first is None:
        return
    rate, end = f"{size(growth.steady[first.kind] * 60)} a minute", f"full in {duration(first.full_in_s)}"
    what, next_ = KINDS.get(first.kind) or _SUMS.get(first.kind, first.kind), _closer(facts, first)
    summary = f"keeps growing: {what} by {rate}, {end}"
    if first.kind == "cgroup" and "rss" not in growth.steady:
        other = _grown_most(facts, looks)
        whose = (
            "by other processes or files in memory" if other is None else f"most of it {other.command} ({other.pid})"
        )
        summary = f"shares a limit with what keeps growing: {what} grows by {rate}, {whose}; {end}"
        next_ = shell.command("opskit", "mem", *(("--files",) if other is None else (other.pid, "-w")))
    yield _finding(
        facts, "memory-keeps-growing", "warning", summary, "the looks of -w: it grows steadily, without the Java heap", next_=next_,
    )  # fmt: skip


def _grown_most(facts: Facts, looks: Sequence[Facts]) -> Member | None:
    """The other process of the tightest cgroup that grew by the most between the first look and the last; None: none did."""
    before = {member.pid: _held(member) for member in looks[0].members}
    grown = [
        (_held(member) - before.get(member.pid, 0), member)
        for member in facts.members
        if member.pid != facts.process.pid
    ]
    most, member = max(grown, key=lambda each: each[0], default=(0, None))
    return member if most >= _LEAST_RISE else None


def _held(member: Member) -> int:
    return (member.anon_bytes or 0) + (member.shmem_bytes or 0)


def _is_explained(slope: Slope, growth: Trend) -> bool:
    steady = growth.steady
    return any(
        slope.kind == effect and steady.get(cause, 0.0) >= (0.15 if cause == "metaspace" else 0.5) * steady[slope.kind]
        for cause, effect in _EXPLAINS
    )


def _closer(facts: Facts, slope: Slope) -> str:
    pid = facts.process.pid
    if slope.kind in ("shared-memory", "mapped-files"):
        return shell.command("opskit", "mem", "--files")
    if facts.jvm is None:
        return shell.command("opskit", "mem", pid, "-v")
    if slope.kind == "thread-stacks":
        return shell.command("opskit", "jpmp", pid)
    return shell.command("opskit", "jmap-diff", pid, "--live", "-c", 5)


def _wastes(facts: Facts, ranked: Sequence[Suspect], level: MemoryGroup | None) -> Iterator[Finding]:
    for each in ranked:
        if each.code == "memory-in-arenas" and is_waste(facts):
            summary = f"wastes memory: {each.summary}; that is {waste_share(facts)} of its RSS"
        elif (
            each.code == "memory-of-dead-process"
            and level is not None
            and each.bytes >= _OF_LIMIT * (level.limit_bytes or each.bytes)
        ):
            summary = f"has less memory than its limit: {each.summary}"
        else:
            continue
        yield _finding(facts, each.code, "warning", summary, each.evidence, level=level, fix=each.fix, next_=each.next)


def _kills(facts: Facts, looks: Sequence[Facts]) -> Iterator[Finding]:
    """Kills in its cgroups: of the window an error, of before a note."""
    first = {group.path: group.oom_kills for group in looks[0].levels}
    for group in facts.levels:
        if group.oom_kills and group.limit_bytes is not None:
            before = first.get(group.path)
            lately = 0 if before is None else max(0, group.oom_kills - before)
            times = plural(lately or group.oom_kills, "process", "processes")
            when = "in the window" if lately else "since it was made"
            yield _finding(
                facts, "oom-counted", "error" if lately else "note",
                f"runs in {group.path}, in which the kernel killed {times} {when}", f"oom_kill of {group.path}", level=group,
                next_=shell.command("opskit", "oom"),
            )  # fmt: skip
            return
