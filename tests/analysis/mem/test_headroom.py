"""What is left until a kill: limits, swap, memory.high, the machine, strict overcommit; and fixes that suffice."""

from __future__ import annotations

import random

import memfacts
import pytest
from memfacts import MIB, mib

from opskit.analysis.mem.headroom import flag_size, headroom, heap_resident_bytes, rounded_down, rounded_up
from opskit.collect.mem.facts import HostMemory, Row
from opskit.proc.compressed import Arc
from opskit.proc.process import Process

APP = memfacts.ORDERS


def with_heap(usage, **changes):
    rows = (Row("java-heap", usage, 256 * MIB, 1), *memfacts.ROWS[1:])
    return memfacts.facts(rows=rows, total=memfacts.total(rows), **changes)


def with_level(**changes):
    return memfacts.facts(levels=(APP._replace(**changes), memfacts.SLICE))


def with_meminfo(facts, *, overcommit=0, **meminfo):
    return facts._replace(host=facts.host._replace(meminfo={**facts.host.meminfo, **meminfo}, overcommit=overcommit))


def test_the_example():
    """The heap may grow by 160 MiB, and the limit leaves 102: a heap of 190 MiB fits, or a limit of 470."""
    found = headroom(memfacts.facts())
    assert found.level == APP
    assert (found.left_bytes, found.heap_growth_bytes, found.can_be_killed) == (102 * MIB, 256 * MIB - mib(95.7), True)
    # 95.7 + 102 / 1.05 = 192.8, and 400 + 160.3 * 1.05 - 102 = 466.3
    assert (found.fix_heap_bytes, found.fix_limit_bytes) == (190 * MIB, 470 * MIB)


def test_a_heap_that_fits_is_no_problem_and_gets_no_fix():
    found = headroom(with_level(limit_bytes=500 * MIB))
    assert (found.can_be_killed, found.fix_heap_bytes, found.fix_limit_bytes) == (False, None, None)
    assert found.left_bytes == 202 * MIB


def test_the_heap_of_zgc_counts_as_it_is_committed():
    """It is a memfd, of which the cgroup is charged with every page; another collector's heap counts as it is touched."""
    jvm = memfacts.JVM._replace(heap_committed_bytes=240 * MIB)
    assert headroom(memfacts.facts(jvm=jvm)).can_be_killed
    for collector in ("ZGC", "ZGC-generational"):
        found = headroom(memfacts.facts(jvm=jvm._replace(collector=collector)))
        assert (found.heap_growth_bytes, found.can_be_killed) == (16 * MIB, False)


def test_page_cache_changes_nothing():
    """It counts against the limit, and is reclaimed before anything is killed."""
    full = APP._replace(usage_bytes=400 * MIB, cache_bytes=102 * MIB)
    found = headroom(memfacts.facts(levels=(full, memfacts.SLICE)))
    assert (found.left_bytes, found.can_be_killed) == (102 * MIB, True)


def test_the_fixes_suffice():
    """With the fix, the heap and what its collector needs fit; both are whole MiB, and what is not needed is not asked for."""
    for seed in range(500):
        chance = random.Random(seed)  # noqa: S311
        resident, most, limit = chance.randrange(1, 900), chance.randrange(100, 1000), chance.randrange(150, 1000)
        pinned = chance.randrange(resident, 1000 + resident)
        facts = with_heap(memfacts.usage(resident), jvm=memfacts.JVM._replace(heap_max_bytes=most * MIB, heap_used_bytes=None),
                          levels=(APP._replace(limit_bytes=limit * MIB, pinned_bytes=pinned * MIB),))  # fmt: skip
        found = headroom(facts)
        left, growth = max(0, limit - pinned), max(0, most - resident)
        assert found.can_be_killed == (growth > left)
        if found.can_be_killed:
            fix, new = found.fix_heap_bytes / MIB, found.fix_limit_bytes / MIB
            assert fix == int(fix)
            assert fix - resident <= left / 1.05 + 1e-3
            assert new == int(new)
            assert new - limit + left >= growth * 1.05 - 1e-3
            assert new - (limit - left + growth * 1.05) <= 10
        else:
            assert found.fix_heap_bytes is None


def test_a_heap_smaller_than_what_is_used_is_no_fix():
    """The next collection may not free it: only a larger limit helps."""
    found = headroom(with_level(pinned_bytes=399 * MIB)._replace(jvm=memfacts.JVM._replace(heap_used_bytes=mib(95.5))))
    assert found.fix_heap_bytes == 96 * MIB  # 95.7 and 1 MiB that is left
    found = headroom(with_level(pinned_bytes=400 * MIB)._replace(jvm=memfacts.JVM._replace(heap_used_bytes=mib(95.5))))
    assert (found.fix_heap_bytes, found.fix_limit_bytes) == (None, 570 * MIB)


def test_resident_counts_and_not_committed():
    """Pages that are committed and were never touched still have to become resident; a heap touched at the start does not grow."""
    touched = with_heap(memfacts.usage(256), jvm=memfacts.JVM._replace(heap_touched=True))
    assert headroom(touched).heap_growth_bytes == 0
    assert headroom(touched).can_be_killed is False
    committed = memfacts.facts(jvm=memfacts.JVM._replace(heap_committed_bytes=256 * MIB))
    assert headroom(committed).heap_growth_bytes == 256 * MIB - mib(95.7)


def test_zgc_maps_each_page_three_times():
    """Of a memfd, PSS is what is in memory; of private memory, which a fork() shares for a moment, RSS is."""
    assert heap_resident_bytes(with_heap(memfacts.usage(90, 30, anonymous=0))) == 30 * MIB
    assert heap_resident_bytes(with_heap(memfacts.usage(90, 45))) == 90 * MIB
    assert heap_resident_bytes(memfacts.sums_only().facts) is None


def test_a_heap_in_reserved_huge_pages_does_not_grow():
    """They are taken at the start, and are not in the memory controller."""
    found = headroom(with_heap(memfacts.usage(0, hugetlb=256)))
    assert (found.heap_growth_bytes, found.can_be_killed) == (0, False)


def test_swap_of_the_cgroup_comes_before_a_kill():
    """As far as the cgroup may use it and the machine has some; the fix does not need it."""
    level = APP._replace(swap_bytes=0, swap_limit_bytes=None)
    found = headroom(with_meminfo(memfacts.facts(levels=(level,)), SwapFree=60 * MIB))
    assert (found.swap_left_bytes, found.all_left_bytes, found.can_be_killed) == (60 * MIB, 162 * MIB, False)
    found = headroom(with_meminfo(memfacts.facts(levels=(level,)), SwapFree=50 * MIB))
    assert (found.can_be_killed, found.fix_heap_bytes) == (True, 190 * MIB)
    found = headroom(with_meminfo(memfacts.facts(levels=(level._replace(swap_limit_bytes=0),)), SwapFree=60 * MIB))
    assert found.can_be_killed is True
    found = headroom(with_meminfo(memfacts.facts(levels=(level._replace(swaps=False),)), SwapFree=60 * MIB))
    assert found.can_be_killed is True


def test_a_container_without_swap_in_a_pod_with_a_limit():
    """memory.swap.max of the container holds for the limit of the pod too; so does that of a slice for what is below it."""
    app = APP._replace(limit_bytes=None, swap_bytes=0, swap_limit_bytes=0)
    pod = APP._replace(path="/pod", swap_bytes=0, swap_limit_bytes=None)
    found = headroom(with_meminfo(memfacts.facts(levels=(app, pod)), SwapFree=500 * MIB))
    assert (found.level.path, found.swap_left_bytes, found.can_be_killed) == ("/pod", 0, True)
    levels = (
        APP._replace(swap_bytes=0),
        memfacts.SLICE._replace(path="/system.slice", swap_bytes=0, swap_limit_bytes=0),
    )
    found = headroom(with_meminfo(memfacts.facts(levels=levels), SwapFree=500 * MIB))
    assert (found.level.path, found.can_be_killed) == ("/orders", True)


def test_swapped_heap_counts_already():
    """A page that comes back from swap leaves its place there."""
    found = headroom(with_heap(memfacts.usage(95.7, swap=60)))
    assert found.heap_growth_bytes == 256 * MIB - mib(95.7) - mib(60)


def test_memory_high_comes_before_the_limit():
    found = headroom(with_level(high_bytes=320 * MIB))
    assert (found.throttled_in.path, found.throttle_left_bytes) == ("/orders", 22 * MIB)
    assert headroom(with_level(high_bytes=450 * MIB)).throttled_in is None


def test_a_cgroup_above_may_leave_less():
    """Its limit is larger, and others use it as well. Each that is too small has to be raised."""
    above = memfacts.SLICE._replace(path="/tenant", limit_bytes=1000 * MIB, pinned_bytes=950 * MIB)
    found = headroom(memfacts.facts(levels=(APP, above)))
    assert (found.level.path, found.left_bytes, [group.path for group in found.others]) == (
        "/tenant",
        50 * MIB,
        ["/orders"],
    )
    assert found.fix_limit_bytes == rounded_up(1000 * MIB + round((256 * MIB - mib(95.7)) * 1.05) - 50 * MIB)


def test_without_a_limit_the_machine_ends_it():
    """MemAvailable and free swap; no limit is no reason for a kill."""
    facts = memfacts.facts(levels=(memfacts.SLICE,))
    found = headroom(facts)
    assert (found.level, found.left_bytes, found.can_be_killed) == (None, 20 << 30, False)
    found = headroom(with_meminfo(facts, MemAvailable=100 * MIB))
    assert (found.level, found.can_be_killed, found.fix_heap_bytes, found.fix_limit_bytes) == (
        None,
        True,
        190 * MIB,
        None,
    )
    assert headroom(with_meminfo(facts, MemAvailable=100 * MIB, SwapFree=61 * MIB)).can_be_killed is False


def test_zfs_gives_its_cache_back():
    """MemAvailable leaves it out: a host whose ARC has most of the memory is healthy."""
    facts = with_meminfo(memfacts.facts(levels=(memfacts.SLICE,)), MemAvailable=100 * MIB)
    found = headroom(facts._replace(host=facts.host._replace(arc=Arc(12 << 30, 1 << 30))))
    assert (found.left_bytes, found.can_be_killed) == ((11 << 30) + 100 * MIB, False)


def test_the_machine_may_have_less_than_the_limit():
    found = headroom(with_meminfo(memfacts.facts(), MemAvailable=40 * MIB))
    assert (found.level, found.left_bytes) == (None, 40 * MIB)


def test_nothing_is_known_of_a_tree_without_limits_and_meminfo():
    assert headroom(memfacts.facts(levels=(), host=HostMemory({}, None, None, None))) is None


@pytest.mark.parametrize("unknown", ["heap_max_bytes", "rows", "jvm"])
def test_no_verdict_without_the_heap(unknown):
    """What is left is known all the same."""
    facts = memfacts.facts()
    facts = facts._replace(jvm=facts.jvm._replace(heap_max_bytes=None)) if unknown == "heap_max_bytes" else facts._replace(
        **{unknown: () if unknown == "rows" else None})  # fmt: skip
    found = headroom(facts)
    assert (found.left_bytes, found.can_be_killed, found.heap_growth_bytes, found.fix_heap_bytes) == (
        102 * MIB,
        None,
        None,
        None,
    )


def test_kernel_memory_of_v1_may_be_reclaimable():
    """Where that decides, no verdict is given, and the fixes are on the safe side."""
    v1 = APP._replace(version=1, slab_unknown=True, kernel_bytes=80 * MIB)
    facts = memfacts.facts(levels=(v1,), process=Process(4242, "java", threads=64), page_table_bytes=2 * MIB)
    found = headroom(facts)
    assert (found.can_be_killed, found.unsure_bytes, found.fix_heap_bytes) == (None, 77 * MIB, 190 * MIB)
    assert headroom(facts._replace(levels=(v1._replace(kernel_bytes=20 * MIB),))).can_be_killed is True
    assert headroom(facts._replace(levels=(v1._replace(pinned_bytes=200 * MIB),))).can_be_killed is False


def test_strict_overcommit_counts_what_is_committed():
    """Allocations fail; nothing is killed for that."""
    facts = memfacts.facts(levels=(memfacts.SLICE,))
    found = headroom(with_meminfo(facts, overcommit=2, CommitLimit=1000 * MIB, Committed_AS=900 * MIB))
    assert (found.commit_left_bytes, found.allocations_fail, found.can_be_killed) == (100 * MIB, True, False)
    found = headroom(with_meminfo(facts, overcommit=2, CommitLimit=1000 * MIB, Committed_AS=800 * MIB))
    assert found.allocations_fail is False
    found = headroom(with_meminfo(facts, overcommit=0, CommitLimit=1000 * MIB, Committed_AS=9000 * MIB))
    assert (found.commit_left_bytes, found.allocations_fail) == (None, False)


def test_what_else_can_grow():
    """Up to limits of its own; metaspace has none by default."""
    found = {growth.kind: growth for growth in headroom(memfacts.facts()).growths}
    assert found["direct"].bytes == 214 * MIB
    assert found["code-cache"].bytes == 240 * MIB - mib(11.2)
    assert (found["thread-stacks"].bytes, found["thread-stacks"].limit) == (34 * MIB - mib(3.2), "34 x -Xss1m")
    assert (found["metaspace"].bytes, found["metaspace"].limit) == (None, None)
    limited = memfacts.JVM._replace(metaspace_max_bytes=64 * MIB, direct_max_bytes=64 * MIB, code_reserved_bytes=None)
    found = {growth.kind: growth for growth in headroom(memfacts.facts(jvm=limited)).growths}
    assert found["metaspace"].bytes == 64 * MIB - mib(28.5)
    assert found["direct"].bytes == 22 * MIB
    assert "code-cache" not in found
    assert headroom(memfacts.native().facts).growths == ()
    unread = memfacts.JVM._replace(
        sources=("hsperfdata",), code_reserved_bytes=None, direct_max_bytes=None, stack_bytes=None
    )
    assert headroom(memfacts.facts(jvm=unread)).growths == (), "whether metaspace has a limit is unknown"


def test_numbers_as_flags_take_them():
    assert [flag_size(count) for count in (256 * MIB, 4 << 30, 1500 << 10, 1000, 0)] == [
        "256m",
        "4g",
        "1500k",
        "1000",
        "0",
    ]
    assert (rounded_down(mib(197.7)), rounded_down(mib(99.9)), rounded_up(mib(458.3)), rounded_up(mib(64.1))) == (
        190 * MIB, 99 * MIB, 460 * MIB, 65 * MIB,
    )  # fmt: skip
