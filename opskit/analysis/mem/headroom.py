"""What is left to a process until the kernel kills it, what its heap and the rest may still take, and limits that would fit. Pure.

The kernel kills when anonymous, shared and kernel memory reach the limit: it reclaims page cache and slab first, and moves anonymous
memory to swap as far as there is any. Heap counts as it becomes resident: committed pages that were never touched are not in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.mem.machine import available
from opskit.analysis.mem.result import Growth, Headroom
from opskit.proc.cgroup.memory import swap_within, tightest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.collect.mem.facts import Facts, JvmMemory
    from opskit.proc.cgroup.memory import MemoryGroup
    from opskit.proc.files.smaps import Usage

MIB = 1 << 20
# Card tables, mark bitmaps, remembered sets and page tables: of each byte by which a heap grows. G1 of JDK 17: 3.9 % without sets.
_FOR_THE_COLLECTOR = 0.05
_STRICT = 2  # vm.overcommit_memory
_KERNEL_STACK_BYTES = 16 << 10  # x86-64 and arm64


def headroom(facts: Facts) -> Headroom | None:
    """The nearest end of its growth; None where neither a limit nor the machine's memory is known."""
    meminfo, swap = facts.host.meminfo, swap_for(facts)
    level, free = tightest(facts.levels, swap), available(meminfo, facts.host.arc)
    if level is None and free is None:
        return None
    left, swap_left = free, meminfo.get("SwapFree", 0)  # of which others may take more than this process
    if level is not None and level.left_bytes is not None:
        own = level.left_bytes, level.swap_left_bytes(swap)
        if free is None or sum(own) <= free + swap_left:
            left, swap_left = own
        else:
            level = None
    found = _of_heap(facts, Headroom(level, left, None, None, None, None, swap_left_bytes=swap_left))
    return _with_commit_limit(facts, _with_throttling(facts, found))._replace(growths=tuple(growths(facts)))


def swap_for(facts: Facts) -> int:
    """How much of the machine's free swap its cgroups leave to it."""
    return swap_within(facts.levels, facts.host.meminfo.get("SwapFree", 0))


def heap_resident_bytes(facts: Facts) -> int | None:
    """The heap in memory. ZGC without generations maps each page of its heap three times, which PSS counts once."""
    usage = usage_of(facts, "java-heap")
    return None if usage is None else min(usage.rss_bytes, max(usage.anonymous_bytes, usage.pss_bytes or 0))


def untouched_heap_bytes(facts: Facts) -> int:
    """Heap that counts and is not resident. ZGC's is a memfd: the cgroup is charged with all that is committed, touched or not."""
    jvm, usage = facts.jvm, usage_of(facts, "java-heap")
    if jvm is None or usage is None or not (jvm.collector or "").startswith("ZGC"):  # or ZGC-generational
        return 0
    return max(0, (jvm.heap_committed_bytes or 0) - (heap_resident_bytes(facts) or 0) - usage.swap_bytes)


def usage_of(facts: Facts, kind: str) -> Usage | None:
    """The memory of one row; None where there is none."""
    return next((row.usage for row in facts.rows if row.kind == kind), None)


def rss_of(facts: Facts, *kinds: str) -> int:
    """The resident memory of these rows."""
    return sum(row.usage.rss_bytes for row in facts.rows if row.kind in kinds)


def _of_heap(facts: Facts, found: Headroom) -> Headroom:
    """With what the heap may still take, and a heap or a limit that would fit."""
    jvm, usage, resident = facts.jvm, usage_of(facts, "java-heap"), heap_resident_bytes(facts)
    if jvm is None or jvm.heap_max_bytes is None or usage is None or resident is None or found.left_bytes is None:
        return found
    charged = resident + usage.swap_bytes + untouched_heap_bytes(facts)
    # Reserved huge pages are not in the memory controller, and taken at the start.
    growth = 0 if usage.hugetlb_bytes else max(0, jvm.heap_max_bytes - charged)
    level, left = found.level, found.left_bytes + found.swap_left_bytes
    unsure = unsure_bytes(facts, level) if level is not None else 0
    verdict = None if left < growth <= left + unsure else growth > left
    found = found._replace(
        heap_growth_bytes=growth, heap_resident_bytes=resident, can_be_killed=verdict,
        unsure_bytes=unsure if verdict is None else 0,
        others=tuple(_others(facts, level, growth)) if verdict else (),
    )  # fmt: skip
    return found if verdict is False else _with_fixes(found, jvm, growth, charged)


def _with_fixes(found: Headroom, jvm: JvmMemory, growth: int, charged: int) -> Headroom:
    """A heap or a limit that fits, without a need for swap."""
    left, level = found.left_bytes or 0, found.level
    heap = rounded_down(charged + round(left / (1 + _FOR_THE_COLLECTOR)))
    limit = None
    if level is not None and level.limit_bytes is not None:
        limit = rounded_up(level.limit_bytes + round(growth * (1 + _FOR_THE_COLLECTOR)) - left)
    return found._replace(fix_heap_bytes=heap if heap >= (jvm.heap_used_bytes or 0) else None, fix_limit_bytes=limit)


def rounded_down(count: int) -> int:
    """To tens of MiB, below 100 MiB to one."""
    step = 10 * MIB if count >= 100 * MIB else MIB
    return count // step * step


def rounded_up(count: int) -> int:
    """The same upwards."""
    step = 10 * MIB if count > 100 * MIB else MIB
    return -(-count // step) * step


def _others(facts: Facts, level: MemoryGroup | None, growth: int) -> Iterator[MemoryGroup]:
    swap = swap_for(facts)
    for each in facts.levels:
        if each is not level and each.left_bytes is not None and each.left_bytes + each.swap_left_bytes(swap) < growth:
            yield each


def unsure_bytes(facts: Facts, level: MemoryGroup) -> int:
    """Kernel memory of v1 that may be reclaimable slab: without this process's page tables and kernel stacks."""
    if not level.slab_unknown or level.kernel_bytes is None:
        return 0
    known = (facts.page_table_bytes or 0) + (facts.process.threads or 0) * _KERNEL_STACK_BYTES
    return max(0, level.kernel_bytes - known)


def _with_throttling(facts: Facts, found: Headroom) -> Headroom:
    """With the memory.high that is reached first."""
    high = [group for group in facts.levels if group.high_left_bytes is not None]
    first = min(high, key=lambda group: group.high_left_bytes or 0, default=None)
    if first is None or found.left_bytes is None or (first.high_left_bytes or 0) >= found.left_bytes:
        return found
    return found._replace(throttled_in=first, throttle_left_bytes=first.high_left_bytes)


def _with_commit_limit(facts: Facts, found: Headroom) -> Headroom:
    """With what strict overcommit leaves: it counts committed memory, resident or not."""
    meminfo, jvm = facts.host.meminfo, facts.jvm
    limit, used = meminfo.get("CommitLimit"), meminfo.get("Committed_AS")
    if facts.host.overcommit != _STRICT or limit is None or used is None:
        return found
    left = max(0, limit - used)
    known = jvm is not None and jvm.heap_max_bytes is not None and jvm.heap_committed_bytes is not None
    growth = (jvm.heap_max_bytes or 0) - (jvm.heap_committed_bytes or 0) if jvm is not None and known else 0
    return found._replace(commit_left_bytes=left, allocations_fail=growth > left)


def growths(facts: Facts) -> Iterator[Growth]:
    """What else of a JVM may grow, and what limits it."""
    jvm = facts.jvm
    if jvm is None:
        return
    if jvm.direct_max_bytes is not None:
        limit = "-XX:MaxDirectMemorySize, by default the maximum heap"
        yield Growth("direct", _rest(jvm.direct_max_bytes, jvm.direct_bytes), limit)
    if jvm.code_reserved_bytes is not None:
        yield Growth(
            "code-cache", _rest(jvm.code_reserved_bytes, rss_of(facts, "code-cache")), "-XX:ReservedCodeCacheSize"
        )
    if jvm.threads is not None and jvm.stack_bytes is not None:
        most = jvm.threads * jvm.stack_bytes
        yield Growth(
            "thread-stacks", _rest(most, rss_of(facts, "thread-stacks")), f"{jvm.threads:,} x {xss(jvm.stack_bytes)}"
        )
    if "vmStructs" not in jvm.sources:
        return  # else no limit and an unknown one would look the same
    unlimited = jvm.metaspace_max_bytes is None
    used = jvm.metaspace_committed_bytes or jvm.metaspace_used_bytes
    yield Growth(
        "metaspace",
        None if jvm.metaspace_max_bytes is None else _rest(jvm.metaspace_max_bytes, used),
        None if unlimited else "-XX:MaxMetaspaceSize",
    )


def _rest(most: int, used: int | None) -> int:
    return max(0, most - (used or 0))


def flag_size(count: int) -> str:
    """As a JVM's flags take it: 256m, 4g, 1500k."""
    for unit, power in (("g", 30), ("m", 20), ("k", 10)):
        if count and count % (1 << power) == 0:
            return f"{count >> power}{unit}"
    return str(count)


def xss(count: int) -> str:
    """The flag of a thread's stack."""
    return f"-Xss{flag_size(count)}"
