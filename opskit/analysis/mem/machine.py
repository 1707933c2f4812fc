"""The machine's memory by use: parts of MemTotal that do not overlap, and what is left. Pure.

MemTotal = MemFree + free pages in lists of the CPUs (zoneinfo) + page cache (Buffers + Cached - Shmem: on the lists Active(file) and
           Inactive(file), or pinned by mlock and ramfs) + Shmem + AnonPages + swap cache without AnonPages + Hugetlb
         + Slab + other reclaimable kernel memory (KReclaimable - SReclaimable) + PageTables + SecPageTables + KernelStack + Percpu
         + vmalloc (VmallocUsed - KernelStack: stacks are in both) + Zswap + zram + GPU memory + I/O buffers + damaged pages + ARC + balloon
         + unaccounted (drivers that take pages themselves, network buffers)

meminfo is no snapshot, and the ARC, the balloon and vmalloc may be counted elsewhere too: each part takes at most what those before it left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.finding import Severity
    from opskit.proc.compressed import Arc

SHORT_SHARE, SHORT_BYTES = 0.10, 2 << 30  # less than both is available: memory is short
AMPLE_SHARE, AMPLE_BYTES = 0.25, 16 << 30
LARGE_SHARE, LARGE_BYTES = 0.05, 512 << 20  # of a finding that is a note
_ALARMING_SHARE = 0.10  # of one that is a warning where memory is short
# Kind -> what it is, in the order of the table.
USES = {
    "free": "free",
    "free-cpu": "free pages in lists of the CPUs",
    "page-cache": "page cache",
    "pinned-cache": "page cache that stays",
    "processes": "anonymous memory of processes",
    "shmem": "tmpfs and shared memory",
    "huge-pages": "reserved huge pages",
    "slab-reclaimable": "reclaimable slab",
    "slab-unreclaimable": "unreclaimable slab",
    "page-tables": "page tables",
    "kernel-stacks": "kernel stacks",
    "percpu": "per-CPU memory",
    "vmalloc": "vmalloc",
    "swap-cache": "swap cache",
    "zswap": "zswap",
    "zram": "zram",
    "gpu": "GPU",
    "kernel-other": "other kernel memory",
    "damaged": "damaged pages",
    "zfs-arc": "ZFS ARC",
    "balloon": "balloon",
    "unaccounted": "unaccounted memory",
}
GIVEN_BACK = ("free", "free-cpu", "page-cache")  # what the kernel gives to who asks


class Beside(NamedTuple):
    """What other files than meminfo say, in bytes. `huge_bytes`: all pools; None: by meminfo."""

    huge_bytes: int | None = None
    zram_bytes: int = 0
    arc_bytes: int = 0
    balloon_bytes: int = 0
    cpu_free_bytes: int = 0


class Part(NamedTuple):
    """A part of MemTotal: one of USES."""

    kind: str
    bytes: int


def divide(meminfo: Mapping[str, int], beside: Beside) -> list[Part]:
    """The parts that are not empty; their sum is MemTotal. `meminfo` has a MemTotal."""
    left = meminfo["MemTotal"]
    parts = []
    for kind, amount in _amounts(meminfo, beside):
        taken = min(max(amount, 0), left)
        left -= taken
        if taken:
            parts.append(Part(kind, taken))
    order = [*USES]
    return sorted([*parts, Part("unaccounted", left)], key=lambda part: order.index(part.kind))


def _amounts(meminfo: Mapping[str, int], beside: Beside) -> Iterator[tuple[str, int]]:
    def of(*keys: str) -> int:
        return sum(meminfo.get(key, 0) for key in keys)

    stacks = of("KernelStack")
    # A kernel before 2.6.19 tells nothing of what can be reclaimed.
    slab_known = "SUnreclaim" in meminfo
    yield "free", of("MemFree")
    yield "free-cpu", beside.cpu_free_bytes
    cache = of("Buffers", "Cached") - of("Shmem")
    on_lists = of("Active(file)", "Inactive(file)") if "Inactive(file)" in meminfo else cache
    yield "page-cache", min(cache, on_lists)
    yield "pinned-cache", cache - on_lists
    yield "processes", of("AnonPages")
    yield "shmem", of("Shmem")
    yield "huge-pages", _huge_bytes(meminfo) if beside.huge_bytes is None else beside.huge_bytes
    yield "slab-reclaimable", of("SReclaimable")
    yield "slab-unreclaimable", of("SUnreclaim") if slab_known else of("Slab")
    yield "page-tables", of("PageTables", "SecPageTables")
    yield "kernel-stacks", stacks
    yield "percpu", of("Percpu")
    # Swapped pages that are mapped again are in AnonPages too.
    unmapped = of("Active(anon)", "Inactive(anon)") - of("Shmem", "AnonPages")
    yield "swap-cache", min(of("SwapCached"), max(unmapped, 0))
    yield "zswap", of("Zswap")
    yield "zram", beside.zram_bytes
    yield "gpu", of("GPUActive", "GPUReclaim")
    yield "kernel-other", max(of("KReclaimable") - of("SReclaimable"), 0) + of("Bounce", "WritebackTmp", "Quicklists")
    yield "damaged", of("HardwareCorrupted")
    # Kernels without Percpu count mapped devices in VmallocUsed (before 4.4), or nothing.
    yield "vmalloc", of("VmallocUsed") - stacks if "Percpu" in meminfo else 0
    yield "zfs-arc", beside.arc_bytes
    yield "balloon", max(of("Balloon"), beside.balloon_bytes)


def _huge_bytes(meminfo: Mapping[str, int]) -> int:
    default_pool = meminfo.get("HugePages_Total", 0) * meminfo.get("Hugepagesize", 0)
    return max(meminfo.get("Hugetlb", 0), default_pool)


def available(meminfo: Mapping[str, int], arc: Arc | None = None) -> int | None:
    """MemAvailable and what ZFS gives back, which that leaves out; before Linux 3.14 free memory, page cache and reclaimable slab. None: not told."""
    given_back = max(0, arc.bytes - arc.least_bytes) if arc is not None else 0
    if "MemAvailable" in meminfo:
        return min(meminfo["MemAvailable"] + given_back, meminfo.get("MemTotal", meminfo["MemAvailable"]))
    if "MemFree" not in meminfo or "Cached" not in meminfo:
        return None
    cache = meminfo["Cached"] + meminfo.get("Buffers", 0) - meminfo.get("Shmem", 0)
    return meminfo["MemFree"] + max(cache, 0) + meminfo.get("SReclaimable", 0) + given_back


def supply(available_bytes: int | None, total_bytes: int) -> str:
    """`short`: little is available, `ample`: much is, `some`: neither; `unknown`."""
    if available_bytes is None:
        return "unknown"
    if available_bytes < min(total_bytes * SHORT_SHARE, SHORT_BYTES):
        return "short"
    is_ample = available_bytes >= min(total_bytes * AMPLE_SHARE, AMPLE_BYTES)
    return "ample" if is_ample else "some"


def is_large(amount: int, total_bytes: int) -> bool:
    """Whether one holder's memory is a finding."""
    return amount >= max(total_bytes * LARGE_SHARE, LARGE_BYTES)


def severity(state: str, amount: int, total_bytes: int) -> Severity:
    """Of a finding about one holder: a warning only where memory is short. `state`: what `supply` says."""
    return "warning" if state == "short" and amount >= total_bytes * _ALARMING_SHARE else "note"


def held_most(parts: Sequence[Part]) -> list[Part]:
    """The parts that are not given to who asks for memory, the largest first."""
    return sorted((part for part in parts if part.kind not in GIVEN_BACK), key=lambda part: -part.bytes)
