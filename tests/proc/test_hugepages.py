"""Pools of huge pages."""

from __future__ import annotations

from opskit.proc.hugepages import HugePool, read_huge_pools
from opskit.proc.treefs import TreeFS

MIB = 1 << 20
KEYS = {"HugePages_Total": 10, "HugePages_Free": 4, "HugePages_Rsvd": 1, "HugePages_Surp": 2, "Hugepagesize": 2 * MIB}


def pool(size, total, free, promised=0, surplus=0):
    names = ("nr_hugepages", "free_hugepages", "resv_hugepages", "surplus_hugepages")
    place = f"sys/kernel/mm/hugepages/hugepages-{size}kB"
    return {f"{place}/{name}": f"{number}\n" for name, number in zip(names, (total, free, promised, surplus))}


def read(tree, files, meminfo):
    root = tree({"proc/meminfo": "MemTotal: 1 kB\n", **files})
    return read_huge_pools(TreeFS(f"{root}/proc", str(root)), meminfo)


def test_all_sizes(tree):
    """The pools with pages, the largest first; which of them vm.nr_hugepages sets."""
    files = {
        **pool(2048, 512, 500, 12),
        **pool(1048576, 2, 1),
        **pool(64, 0, 0),
        "sys/kernel/mm/hugepages/x/nr_hugepages": "9\n",
    }
    giant, default = read(tree, files, {"Hugepagesize": 2 * MIB})
    assert giant == HugePool(1024 * MIB, 2, 1, 0, 0, is_default=False)
    assert default == HugePool(2 * MIB, 512, 500, 12, 0, is_default=True)
    assert (giant.bytes, default.bytes, default.unused) == (2048 * MIB, 1024 * MIB, 488)


def test_without_sys_meminfo_has_the_default_size(tree):
    """One pool by meminfo; none where it has no pages; torn numbers never make more free pages than there are."""
    assert read(tree, {}, KEYS) == (HugePool(2 * MIB, 10, 4, 1, 2, is_default=True),)
    assert read(tree, {}, {**KEYS, "HugePages_Total": 0}) == read(tree, {}, {}) == ()
    assert read(tree, {}, {**KEYS, "HugePages_Free": 99})[0].free == 10
    assert read(tree, pool(2048, 5, 2, 7), {})[0].unused == 0


def test_what_is_no_number(tree):
    """It counts as 0; a pool whose size or total is unknown is left out."""
    files = {**pool(2048, 5, "²"), **pool(1024, "x", 1)}
    assert [(each.page_bytes, each.total, each.free) for each in read(tree, files, {})] == [(2 * MIB, 5, 0)]
