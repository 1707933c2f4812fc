"""What the facts mean: sentences, findings, commands to type. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.dentry import drop as drops
from opskit.analysis.dentry import lookups as lookups_
from opskit.analysis.dentry.caches import inodes_by_owner, of_kind
from opskit.analysis.dentry.usage import WATCHED, Sample, Usage, cache_growth_per_min, growth_per_min, measure, share
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.analysis.mem.machine import USES, Beside, divide, held_most
from opskit.quantities import percent, size, whole
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.dentry.drop import Drop, Dropped
    from opskit.analysis.dentry.lookups import Lookups
    from opskit.collect.dentry import Facts

LARGE_SHARE = 0.10  # of RAM: from here on a cache gets a sentence
LITTLE_SHARE = 0.01  # of RAM: less than this is not worth dropping
MOSTLY = 0.5
_CULPRIT, _MEM = "opskit dentry --culprit", "opskit mem"
_RECLAIM_FROM_BYTES = 16 << 20  # less is not worth a command


class Result(NamedTuple):
    """The answer. `ways`: commands that help. `samples`, `growth`, `lookups` and `drop` only where they were asked for.

    `growth` per minute by number, `cache_growth` by slab; `negative_growth`: of negative dentries during the trace.
    """

    usage: Usage
    verdict: Sequence[str]
    findings: Sequence[Finding] = ()
    ways: Sequence[str] = ()
    notes: Sequence[str] = ()
    samples: tuple[Sample, ...] | None = None
    growth: Mapping[str, float | None] | None = None
    cache_growth: Mapping[str, float | None] | None = None
    lookups: Lookups | None = None
    negative_growth: int | None = None
    drop: Drop | None = None


def judge(facts: Facts, max_percent: float | None = None, earlier: tuple[Sample, ...] | None = None) -> Result:
    """Judge one look. `max_percent`: --check; `earlier`: the samples of a watch so far, None without a watch."""
    usage = measure(facts)
    found = findings(usage, max_percent)
    typed = tuple(command for one in found for command in (one.fix, one.next) if command)
    helpful = [way for way in ways(usage) if not way.endswith(typed)]
    notes = list(facts.missing)
    if usage.caches is not None and not of_kind(usage.caches, "dentry"):
        notes.append("slabinfo lists no dentry cache, and /sys/kernel/slab does not say which cache holds the dentries")
    sentences = [*verdict(usage), *(holds_the_memory(facts.meminfo) if is_innocent(usage) else ())]
    result = Result(usage, sentences, found, helpful, notes)
    if earlier is None:
        return result
    numbers = {name: getattr(usage, name) for name in WATCHED}
    samples = (*earlier, Sample(facts.at_s, numbers, {cache.name: cache.size_bytes for cache in usage.caches or ()}))
    return result._replace(samples=samples, growth=growth_per_min(samples), cache_growth=cache_growth_per_min(samples))


def judge_lookups(before: Facts, after: Facts, seen: Lookups, max_percent: float | None = None) -> Result:
    """Judge a trace of failed lookups, with the looks before and after it."""
    result = judge(after, max_percent)
    counts = [facts.state and facts.state.negative for facts in (before, after)]
    grown = None if counts[0] is None or counts[1] is None else counts[1] - counts[0]
    estimated = (
        f"{seen.counted:,} of {seen.total:,} failed lookups were read, the others are shared out in proportion: "
        "counts are estimates, the total is the kernel's own"
    )
    notes = result.notes if seen.counted >= seen.total else [*result.notes, estimated]
    sentences = [*lookups_.verdict(seen, grown), *result.verdict]
    return result._replace(verdict=sentences, notes=notes, lookups=seen, negative_growth=grown)


def judge_drop(done: Dropped, before: Facts, after: Facts, max_percent: float | None = None) -> Result:
    """Judge a drop by the looks before and after it."""
    was, usage = measure(before), measure(after)
    drop = drops.compare(done, was, usage)
    sentences = [drops.verdict(drop), *(() if done.level == "pagecache" else little_to_free(was))]
    found = [] if max_percent is None else findings(usage, max_percent)
    notes = [*drops.notes(drop), *(after.missing if any(row.by is None for row in drop.changes) else ())]
    return Result(usage, sentences, found, notes=notes, drop=drop)


def mostly(part: int | None, whole: int | None) -> bool:
    """Whether a part is known to be half of the whole, or more."""
    return (share(part, whole) or 0) >= MOSTLY


def verdict(usage: Usage) -> list[str]:
    """The sentences, most important first."""
    return [_dentries(usage), *_other_slabs(usage), *(() if is_innocent(usage) else little_to_free(usage))]


def is_innocent(usage: Usage) -> bool:
    """Whether dentries and inodes are known to take little of RAM: then nothing is advised against them."""
    dentries, inodes = usage.of_ram(usage.dentry_bytes), usage.of_ram(usage.inode_slab_bytes)
    reclaimable = usage.of_ram(usage.reclaimable_bytes)  # has both
    if reclaimable is None:
        return dentries is not None and inodes is not None and max(dentries, inodes) < LARGE_SHARE
    return max(dentries or 0, inodes or 0, reclaimable) < LARGE_SHARE


def holds_the_memory(meminfo: Mapping[str, int]) -> Iterator[str]:
    """The sentence about what holds the most, and the command that says more."""
    total = meminfo.get("MemTotal", 0)
    if not total or "AnonPages" not in meminfo:
        yield f"What holds the memory: {_MEM}"
        return
    # Reclaimable slab is what is innocent here; what the unaccounted rest is, other files say.
    held = [
        part for part in held_most(divide(meminfo, Beside())) if part.kind not in ("slab-reclaimable", "unaccounted")
    ]
    large = held[:1] + [part for part in held[1:2] if part.bytes >= total * LITTLE_SHARE]
    named = [f"{USES[part.kind]} with {size(part.bytes)} ({percent(part.bytes / total)} of RAM)" for part in large]
    yield f"The most memory is held by {', then '.join(named)}: {_MEM}" if named else f"What holds the memory: {_MEM}"


def little_to_free(usage: Usage) -> Iterator[str]:
    """The sentence that dropping is not worth it, where that is known."""
    part = usage.of_ram(usage.reclaimable_bytes)
    if part is not None and part < LITTLE_SHARE:
        yield f"Dropping dentries and inodes would free little: reclaimable slab is {percent(part)} of RAM."


def _dentries(usage: Usage) -> str:
    amount, part = usage.dentry_bytes, usage.of_ram(usage.dentry_bytes)
    if amount is None:
        return "The size of the dentry cache is unknown: neither slabinfo nor dentry-state could be read."
    about = "about " if usage.dentry_slab_bytes is None else ""
    of_ram = "" if part is None else f" ({percent(part)} of RAM)"
    start = f"The dentry cache holds {about}{size(amount)}{of_ram}"
    large = part is not None and part >= LARGE_SHARE
    negative = usage.negative_share
    if part is not None and not large:
        start += ": it is not the cause of high memory use"
    elif large and mostly(usage.in_use, usage.dentries):
        start += f", {percent(share(usage.in_use, usage.dentries))} of it in use, which a drop does not free"
    elif large and usage.available_bytes is not None:
        start += ", reclaimable and already counted in MemAvailable"
    elif large:
        start += ", reclaimable (this kernel has no MemAvailable, and `free` counts it as used)"
    if negative is not None:
        start += f"; {percent(negative)} of it are negative entries"
        if negative >= MOSTLY:
            start += ": a program keeps looking for files that do not exist"
    if not large:
        return f"{start}."
    program = "the program that makes them" if negative is None else "that program"
    then = "dentries come back with use" if negative is not None and negative < MOSTLY else f"find {program}"
    return f"{start}. Dropping helps only for now: {then}."


def _other_slabs(usage: Usage) -> Iterator[str]:
    inodes, pinned = usage.inode_slab_bytes, usage.unreclaimable_bytes
    part = usage.of_ram(inodes) or 0
    if part >= LARGE_SHARE:
        first = inodes_by_owner(usage.caches or ())[0]
        yield (
            f"Inode caches hold {size(inodes)} ({percent(part)} of RAM), most of it for {first.owner} "
            f"({size(first.size_bytes)}): a program walks, or creates, many files."
        )
    part = usage.of_ram(pinned) or 0
    if part >= LARGE_SHARE:
        yield (
            f"Unreclaimable slab holds {size(pinned)} ({percent(part)} of RAM), which a drop does not free: "
            f"its owner is the driver or subsystem that the largest caches belong to."
        )


def findings(usage: Usage, max_percent: float | None = None) -> list[Finding]:
    """The findings. `max_percent` (--check): of RAM, for dentries and inodes; then the others are notes."""
    others = list(_findings(usage))
    if max_percent is None:
        return others
    others = [finding._replace(severity="note") for finding in others]
    both = usage.dentry_and_inode_bytes
    part = usage.of_ram(both)
    if part is None or part * 100 <= max_percent:
        return others
    above = Finding(
        "dentry-share", "error", HOST,
        f"dentries and inodes take {percent(part)} of RAM, more than {max_percent:g} %",
        f"slabinfo: {size(both)} of {size(usage.ram_bytes)}", next=_CULPRIT, share=part,
    )  # fmt: skip
    return [above, *others]


def _findings(usage: Usage) -> Iterator[Finding]:
    held = (usage.negative or 0) * usage.object_bytes
    part = usage.of_ram(held)
    if mostly(usage.negative, usage.dentries) and part is not None and part >= LITTLE_SHARE:
        large = (usage.of_ram(usage.dentry_bytes) or part) >= LARGE_SHARE
        yield Finding(
            "dentry-negative", "warning" if large else "note", HOST,
            f"{whole(usage.negative)} negative dentries (about {size(held)}) stand for files that do not exist",
            "/proc/sys/fs/dentry-state", next=_CULPRIT, share=part,
        )  # fmt: skip
    for one in usage.groups:
        group, slab = one.group, one.group.slab_reclaimable_bytes
        slab = one.dentry_inode_bytes if slab is None else slab
        part = share(slab, group.limit_bytes)
        if part is not None and part >= MOSTLY:
            yield Finding(
                "dentry-cgroup", "warning", Entity("cgroup", group.path, inside=HOST),
                f"reclaimable slab takes {percent(part)} of this cgroup's memory limit",
                f"{size(slab)} of {size(group.limit_bytes)}", one.reclaim_command, share=part,
            )  # fmt: skip
    if usage.vfs_cache_pressure == 0:
        yield Finding(
            "dentry-pressure", "warning", HOST,
            "vm.vfs_cache_pressure is 0: the kernel never reclaims dentries and inodes, and can run out of memory",
            "/proc/sys/vm/vfs_cache_pressure", "sysctl vm.vfs_cache_pressure=100",
        )  # fmt: skip
    if usage.drop_slab_count:
        yield Finding(
            "dentry-dropped", "note", HOST,
            f"dentries and inodes were dropped {times(usage.drop_slab_count)} since boot",
            "/proc/vmstat: drop_slab", next="grep -rs drop_caches /etc/cron* /etc/systemd /var/spool/cron",
        )  # fmt: skip


def times(count: int | None) -> str:
    """`never`, `once`, `31 times`; `unknown` for None."""
    if count is None:
        return "unknown"
    return ("never", "once")[count] if count < 2 else f"{count:,} times"


def exceeds(usage: Usage, max_percent: float) -> bool | None:
    """Whether dentries and inodes take more than that of RAM; None where that is unknown."""
    part = usage.of_ram(usage.dentry_and_inode_bytes)
    if part is not None:
        return part * 100 > max_percent
    bound = usage.of_ram(usage.reclaimable_bytes)  # includes both
    return False if bound is not None and bound * 100 <= max_percent else None


def ways(usage: Usage) -> list[str]:
    """What to type, the gentlest command first; nothing where these caches are innocent."""
    if is_innocent(usage):
        return []
    large = (usage.of_ram(usage.dentry_bytes) or 0) >= LARGE_SHARE
    negative = mostly(usage.negative, usage.dentries)
    search = negative or (large and usage.negative is None)
    found = [f"find the program that looks for absent files: {_CULPRIT}"] if search else []
    # Linux before 2.6.19 does not report what of the slabs is reclaimable.
    to_free = usage.dentry_bytes if usage.reclaimable_bytes is None else usage.reclaimable_bytes
    if (usage.of_ram(to_free) or 0) < LITTLE_SHARE:
        return found
    pressure = usage.vfs_cache_pressure
    if pressure is not None:
        more = shell.command("sysctl", f"vm.vfs_cache_pressure={100 if pressure < 100 else pressure * 2}")
        found.append(f"make the kernel reclaim these caches sooner: {more} (now {pressure})")
    largest = usage.groups[0] if usage.groups else None
    if largest and largest.reclaim_command and (largest.own_slab_reclaimable_bytes or 0) >= _RECLAIM_FROM_BYTES:
        found.append(f"reclaim from one cgroup: {largest.reclaim_command}")
    if usage.deletes == 0 and negative:
        found.append("let deleted files leave no negative entry: sysctl fs.dentry-negative=1")
    found.append("drop all that is unused, host-wide: opskit dentry --drop")
    return found
