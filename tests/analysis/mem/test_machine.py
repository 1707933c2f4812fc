"""The parts of MemTotal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.mem.machine import USES, Beside, available, divide, held_most, supply

GIB = 1 << 30
KEYS = (
    "MemFree", "Buffers", "Cached", "SwapCached", "Shmem", "AnonPages", "Slab", "SReclaimable", "SUnreclaim", "KReclaimable",
    "KernelStack", "PageTables", "SecPageTables", "Percpu", "VmallocUsed", "Hugetlb", "HugePages_Total", "Hugepagesize",
    "Active(anon)", "Inactive(anon)", "Active(file)", "Inactive(file)", "Zswap", "HardwareCorrupted", "Balloon", "GPUActive",
)  # fmt: skip
amounts = st.integers(0, 1 << 50)
machines = st.builds(
    lambda total, rest: {**rest, "MemTotal": total}, amounts, st.dictionaries(st.sampled_from(KEYS), amounts)
)
besides = st.builds(Beside, st.none() | amounts, amounts, amounts, amounts, amounts)


def of(meminfo, beside=Beside(), total=64 * GIB):  # noqa: B008  (immutable)
    return {part.kind: part.bytes for part in divide({"MemTotal": total, **meminfo}, beside)}


@given(machines, besides)
def test_the_parts_are_all_of_it(meminfo, beside):
    """Whatever the kernel writes: nothing negative, no kind twice, the sum is MemTotal, in the order of USES."""
    parts = divide(meminfo, beside)
    kinds = [part.kind for part in parts]
    assert sum(part.bytes for part in parts) == meminfo["MemTotal"]
    assert all(part.bytes > 0 for part in parts if part.kind != "unaccounted")
    assert parts[-1].bytes >= 0
    assert kinds == [kind for kind in USES if kind in kinds]
    assert len(kinds) == len(set(kinds))
    assert [part.kind for part in held_most(parts)][:1] != ["free"]


def test_a_server():
    """Each byte once: shmem is in Cached too, kernel stacks in VmallocUsed, reclaimable slab in KReclaimable."""
    found = of(
        {
            "MemFree": 8 * GIB, "Buffers": GIB, "Cached": 20 * GIB, "Shmem": 4 * GIB, "AnonPages": 16 * GIB,
            "Active(file)": 7 * GIB, "Inactive(file)": 8 * GIB, "Slab": 3 * GIB, "SReclaimable": 2 * GIB, "SUnreclaim": GIB,
            "KReclaimable": 2 * GIB, "KernelStack": GIB, "VmallocUsed": 3 * GIB, "PageTables": GIB, "SecPageTables": GIB,
            "Percpu": GIB, "Hugetlb": 2 * GIB,
        },
        Beside(cpu_free_bytes=GIB),
    )  # fmt: skip
    gib = {kind: amount / GIB for kind, amount in found.items()}
    assert gib == {
        "free": 8, "free-cpu": 1, "page-cache": 15, "pinned-cache": 2, "processes": 16, "shmem": 4, "huge-pages": 2,
        "slab-reclaimable": 2, "slab-unreclaimable": 1, "page-tables": 2, "kernel-stacks": 1, "percpu": 1, "vmalloc": 2,
        "unaccounted": 64 - 57,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("meminfo", "beside", "kind", "gib"),
    [
        ({"SwapCached": 3 * GIB, "AnonPages": 5 * GIB, "Active(anon)": 7 * GIB}, Beside(), "swap-cache", 2),
        ({"SwapCached": 3 * GIB, "AnonPages": 5 * GIB, "Active(anon)": 5 * GIB}, Beside(), "swap-cache", None),
        ({"VmallocUsed": 9 * GIB}, Beside(), "vmalloc", None),  # Linux before 4.20: mapped devices, or nothing
        ({"HugePages_Total": 512, "Hugepagesize": 2 << 20}, Beside(), "huge-pages", 1),  # before Linux 4.18
        ({"Hugetlb": GIB}, Beside(3 * GIB), "huge-pages", 3),
        ({"Slab": 5 * GIB}, Beside(), "slab-unreclaimable", 5),  # Linux before 2.6.19
        ({"KReclaimable": 5 * GIB, "SReclaimable": 2 * GIB, "SUnreclaim": 0}, Beside(), "kernel-other", 3),
        ({"Balloon": GIB}, Beside(balloon_bytes=2 * GIB), "balloon", 2),
        # The balloon of virtio is outside of MemTotal, the ARC is partly in slabs: never more than is left.
        ({"MemFree": 60 * GIB}, Beside(balloon_bytes=20 * GIB), "balloon", 4),
        ({"MemFree": 60 * GIB, "SReclaimable": GIB}, Beside(arc_bytes=20 * GIB), "zfs-arc", 3),
    ],
)
def test_what_is_counted_twice_or_by_some_kernels(meminfo, beside, kind, gib):
    """The part has that size; None: it is not there."""
    found = of(meminfo, beside).get(kind)
    assert found == (None if gib is None else gib * GIB)


@pytest.mark.parametrize(
    ("available_bytes", "total", "state"),
    [
        (None, GIB, "unknown"),
        (GIB // 20, GIB, "short"),  # under a tenth, and under 2 GiB
        (5 * GIB, 256 * GIB, "some"),  # a database that is sized for its machine
        (GIB, 256 * GIB, "short"),
        (GIB // 5, GIB, "some"),
        (GIB // 2, GIB, "ample"),
        (20 * GIB, 256 * GIB, "ample"),
    ],
)
def test_supply(available_bytes, total, state):
    """Short needs little of RAM and little in bytes; ample is much in either."""
    assert supply(available_bytes, total) == state


def test_available_before_linux_3_14():
    """Free memory, page cache without shmem, reclaimable slab; unknown where these are not told."""
    old = {"MemFree": GIB, "Cached": 3 * GIB, "Buffers": GIB, "Shmem": 2 * GIB, "SReclaimable": GIB}
    assert available(old) == 4 * GIB
    assert available({**old, "MemAvailable": 5}) == 5
    assert available({"MemFree": GIB}) is None
