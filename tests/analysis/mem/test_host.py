"""Who holds the machine's memory: sentences and findings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.analysis.mem.host import judge_host
from opskit.collect.mem.host import HostFacts, ProcessUse, SharedFile
from opskit.proc.cgroup.owner import CgroupOwner
from opskit.proc.compressed import Arc
from opskit.proc.files.slabinfo import Slab
from opskit.proc.files.sysvipc_shm import Segment
from opskit.proc.hugepages import HugePool
from opskit.proc.tmpfs_mounts import TmpfsMount, TmpfsMounts

GIB, MIB = 1 << 30, 1 << 20
UNIT = CgroupOwner("/system.slice/db.service", unit="db.service")


def process(pid, gib, command="postgres", owner=UNIT, hugetlb=0, **values):
    amount = round(gib * GIB)
    fields = {
        "anonymous_bytes": amount, "file_bytes": 0, "shmem_bytes": 0, "swap_bytes": 0, "hugetlb_bytes": round(hugetlb * GIB),
        "page_table_bytes": MIB, "threads": 1, **values,
    }  # fmt: skip
    return ProcessUse(pid, command, owner, amount, is_proportional=True, **fields)


def mount(point, gib, pid=None, fs_type="tmpfs"):
    return TmpfsMount(len(point), fs_type, point, pid, round(gib * GIB), None)


def pool(total, free=0, promised=0, *, surplus=0, size=2 * MIB, is_default=True):
    return HugePool(size, total, free, promised, surplus, is_default)


def judged(
    processes=(),
    mounts=(),
    segments=(),
    shared=(),
    pools=(),
    slabs=None,
    total=64,
    sockets=0,
    has_allocinfo=False,
    **gib,
):
    meminfo = {key: round(value * GIB) for key, value in gib.items()}
    facts = HostFacts(
        {"MemTotal": total * GIB, **meminfo}, 4096, tuple(processes), TmpfsMounts(tuple(mounts), ()), tuple(segments),
        tuple(shared), tuple(pools), slabs, 0, None, 0, 0, round(sockets * GIB), has_allocinfo, {3: "postgres"},
    )  # fmt: skip
    return judge_host(facts)


def codes(result):
    return {finding.code: finding.severity for finding in result.findings}


# --- machines that are healthy ---


def test_processes_that_are_not_seen():
    """In a PID namespace they hold the most, and no command shows them: the next holder has one."""
    result = judged(MemFree=40, MemAvailable=50, AnonPages=10, SUnreclaim=4, Cached=10)
    assert "The largest holder is other processes: 10.0 GiB" in result.verdict[1]
    assert result.verdict[-1] == "Next: opskit dentry -n 10"


def test_a_file_server_with_zfs():
    """MemAvailable leaves the ARC out, and ZFS gives it back down to c_min."""
    facts = HostFacts(
        {"MemTotal": 64 * GIB, "MemFree": 10 * GIB, "MemAvailable": GIB, "AnonPages": 4 * GIB, "Cached": 0}, 4096, (),
        TmpfsMounts((), ()), (), (), (), None, 0, Arc(50 * GIB, 2 * GIB), 0, 0,
    )  # fmt: skip
    result = judge_host(facts)
    assert (result.supply, result.available_bytes, codes(result)) == ("ample", 49 * GIB, {})
    short = judge_host(facts._replace(arc=Arc(2 * GIB, 2 * GIB)))
    assert short.supply == "short"


def test_a_database_with_huge_pages_in_use():
    """All of them in use, or promised to a database that has not touched them: no finding, memory is not short."""
    healthy = {"MemFree": 8, "MemAvailable": 20, "AnonPages": 4, "Cached": 12, "Hugetlb": 40}
    for pools in ([pool(20480, 0)], [pool(20480, 5000, 5000)]):
        result = judged([process(10, 4, hugetlb=40)], pools=pools, **healthy)
        assert not result.findings
        assert result.verdict[:2] == [
            "Memory is not short: 20.0 GiB of 64.0 GiB are available.",
            "The largest holder is huge pages of 2 MiB: 40.0 GiB (62 % of RAM, all in use); "
            "then postgres (10) in db.service: 4.0 GiB (6.2 % of RAM).",
        ]
        assert result.verdict[2] == "Next: opskit mem 10"


def test_a_large_page_cache_is_no_holder():
    """A file server: most of RAM is page cache, which goes first."""
    result = judged([process(10, 1)], MemFree=1, MemAvailable=58, AnonPages=1, Cached=60)
    assert not result.findings
    assert result.verdict == [
        "Memory is not short: 58.0 GiB of 64.0 GiB are available.",
        "The page cache takes 60.0 GiB (94 % of RAM), and goes first when memory is needed.",
        "The largest holder is unaccounted memory: 2.0 GiB (3.1 % of RAM).",
        "Next: lsmod",
    ]


def test_a_machine_that_is_sized_for_its_database():
    """Little is free, 5 GiB are available: neither short nor ample is claimed."""
    result = judged([process(10, 50)], MemFree=1, MemAvailable=5, AnonPages=50, Cached=12)
    assert not result.findings
    assert result.verdict[0] == "5.0 GiB of 64.0 GiB are available."


# --- who holds it ---


def test_a_tmpfs_and_huge_pages():
    """Both are named with the command for each; where memory is not short they are notes."""
    result = judged([process(10, 1)], [mount("/srv/export", 10)], pools=[pool(2048, 2048)],
                    MemFree=40, MemAvailable=45, AnonPages=1, Cached=11, Shmem=10, Hugetlb=4)  # fmt: skip
    assert result.verdict[:3] == [
        "Memory is not short: 45.0 GiB of 64.0 GiB are available.",
        # 8 GiB are in no line of this meminfo.
        "The largest holder is tmpfs /srv/export: 10.0 GiB (16 % of RAM); then unaccounted memory: 8.0 GiB (12 % of RAM); "
        "huge pages of 2 MiB: 4.0 GiB (6.2 % of RAM, reserved, none in use).",
        "Next: opskit mem --files",
    ]
    assert codes(result) == {"huge-pages-unused": "note", "tmpfs-large": "note", "memory-unaccounted": "note"}
    assert {finding.code: finding.fix for finding in result.findings}["huge-pages-unused"] == "sysctl vm.nr_hugepages=0"


def test_short_of_memory():
    """The same where little is available: warnings, and the largest holder in the first."""
    result = judged([process(10, 1)], [mount("/srv/export", 40)], pools=[pool(2048, 2048)],
                    MemFree=1, MemAvailable=1, AnonPages=1, Cached=41, Shmem=40, Hugetlb=4)  # fmt: skip
    assert codes(result) == {
        "memory-short": "warning", "huge-pages-unused": "warning", "tmpfs-large": "warning", "memory-unaccounted": "warning",
    }  # fmt: skip
    first = result.findings[0]
    assert first.summary == "1.0 GiB of 64.0 GiB are available; tmpfs /srv/export holds the most, 40.0 GiB"
    assert first.next == "opskit mem --files"


def test_memory_that_a_process_has_by_right_is_no_finding():
    """Only `memory-short` where processes hold it."""
    result = judged([process(10, 40), process(11, 20)], MemFree=1, MemAvailable=1, AnonPages=60, Cached=3)
    assert codes(result) == {"memory-short": "warning"}
    assert result.findings[0].next == "opskit mem 10"
    assert result.verdict[1].startswith(
        "The largest holder is postgres (2 processes) in db.service: 60.0 GiB (94 % of RAM)"
    )


@pytest.mark.parametrize(
    ("pools", "fix"),
    [
        ([pool(1000, 600, 100)], "sysctl vm.nr_hugepages=500"),
        ([pool(1000, 600, 100, surplus=50)], "sysctl vm.nr_hugepages=450"),
        (
            [pool(8, 8, size=GIB, is_default=False)],
            "echo 0 > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
        ),
        ([pool(1000, 10)], None),  # 20 MiB
    ],
)
def test_huge_pages_that_nobody_uses(pools, fix):
    """The command leaves those in use and promised, in the pool of that size."""
    result = judged([process(10, 1, hugetlb=1)], pools=pools, MemFree=50, MemAvailable=50, AnonPages=1)
    assert [finding.fix for finding in result.findings if finding.code == "huge-pages-unused"] == ([fix] if fix else [])


def test_shared_memory_counts_once():
    """Mounts, segments and memfds, never more than Shmem: pages of a mount may be in swap; a segment of huge pages is none of it."""
    segments = [Segment(3, 2 * GIB, 10, 1, 0, 2 * GIB, 0), Segment(4, 30 * GIB, 999, 1, 0, 30 * GIB, 0)]
    result = judged([process(10, 1)], [mount("/dev/shm", 1), mount("/dev/hugepages", 20, fs_type="hugetlbfs")], segments,
                    [SharedFile("memfd", "/memfd:a", 4 * GIB, 10, "postgres"), SharedFile("shared-anonymous", "/dev/zero", GIB, 10, "postgres")],
                    [pool(20480, 0)], MemFree=8, MemAvailable=9, AnonPages=1, Cached=10, Shmem=10, Hugetlb=40)  # fmt: skip
    assert [(holder.name, holder.bytes / GIB) for holder in result.holders if holder.kind == "shmem"] == [
        ("memfd:a of postgres (10)", 4),
        ("System V segment 3 of postgres (10)", 2),
        ("shared memory of unknown owners", 2),
        ("tmpfs /dev/shm", 1),
        ("shared anonymous memory of postgres (10)", 1),
    ]
    swapped = judged([], [mount("/a", 8), mount("/b", 6)], MemFree=50, AnonPages=0, Cached=10, Shmem=10)
    assert [holder.bytes / GIB for holder in swapped.holders if holder.kind == "shmem"] == [8, 2]


def test_a_kernel_that_tells_little():
    """No AnonPages: the rest is not called unaccounted memory; no MemAvailable and no Cached: nothing is said to be available."""
    result = judged([process(10, 30, anonymous_bytes=None)], MemFree=1)
    assert result.supply == "unknown"
    assert result.verdict[0] == "This kernel does not tell how much of 64.0 GiB is available."
    assert not result.findings


@pytest.mark.parametrize(
    ("known", "next_"),
    [
        ({"has_allocinfo": True}, "sudo sort -rn /proc/allocinfo | head"),
        ({"sockets": 30}, "ss -tm"),
        ({"sockets": 1}, "lsmod"),
    ],
)
def test_the_closer_look_at_what_is_unaccounted(known, next_):
    """The kernel's own account where it keeps one; the sockets where their buffers may be it."""
    result = judged(MemFree=20, AnonPages=1, MemAvailable=20, **known)
    assert result.verdict[2] == f"Next: {next_}"
    note = result.parts[0].note
    assert ("network buffers" in note) == ("sockets" in known)


def test_slabs():
    """Dentries and inodes of what is reclaimable; the largest other cache of what is not."""
    slabs = [Slab("dentry", 1, 1, 192, 1000, 1), Slab("xfs_inode", 1, 1, 1024, 2000, 2), Slab("buffer_head", 1, 1, 104, 9000, 1),
             Slab("kmalloc-2k", 1, 1, 2048, 30000, 8), Slab("skbuff", 1, 1, 256, 10, 1), Slab("huge", 1, 1, 256, 1 << 30, 1)]  # fmt: skip
    result = judged(slabs=slabs, MemFree=60, AnonPages=0, SReclaimable=1, SUnreclaim=1)
    notes = {part.kind: (part.note, part.next) for part in result.parts}
    small = judged(slabs=slabs, MemFree=20, AnonPages=0, SUnreclaim=20)
    assert next(part for part in small.parts if part.kind == "slab-unreclaimable").note is None
    assert notes["slab-reclaimable"] == ("dentries 3.9 MiB, inodes 15.6 MiB", "opskit dentry")
    assert notes["slab-unreclaimable"] == ("the largest cache: kmalloc-2k, 938 MiB", "opskit dentry -n 10")


# --- whatever is read ---

amounts = st.integers(0, 1 << 45)
unknown = st.none() | amounts
names = st.text(max_size=8).filter(lambda name: "None" not in name)  # as a file may be called
owners = st.none() | st.builds(CgroupOwner, names, names, names)
processes = st.builds(ProcessUse, st.integers(1, 9), names, owners, amounts, st.booleans(), *[unknown] * 6, unknown)
mounts = st.builds(TmpfsMount, amounts, st.sampled_from(["tmpfs", "hugetlbfs"]), names, unknown, unknown, unknown)
segments = st.builds(Segment, amounts, amounts, st.integers(0, 9), amounts, amounts, unknown, unknown)
files = st.builds(SharedFile, st.sampled_from(["memfd", "shared-anonymous"]), names, amounts, st.integers(1, 9), names)
pools_ = st.builds(
    HugePool,
    st.integers(1 << 12, 1 << 30),
    st.integers(1, 99),
    st.integers(0, 99),
    *[st.integers(0, 99)] * 2,
    st.booleans(),
)
meminfos = st.dictionaries(
    st.sampled_from(["MemFree", "MemAvailable", "AnonPages", "Cached", "Shmem", "SUnreclaim", "SReclaimable", "KernelStack", "SwapTotal"]), amounts
)  # fmt: skip
arcs = st.none() | st.builds(Arc, amounts, amounts)
facts = st.builds(
    lambda total, meminfo, *rest: HostFacts({"MemTotal": total, **meminfo}, 4096, *rest),
    st.integers(1, 1 << 45), meminfos, st.lists(processes, max_size=4).map(tuple),
    st.lists(mounts, max_size=3).map(lambda found: TmpfsMounts(tuple(found), ())), st.lists(segments, max_size=3).map(tuple),
    st.lists(files, max_size=3).map(tuple), st.lists(pools_, max_size=2).map(tuple), st.none(), amounts, arcs, amounts,
    amounts, amounts, st.booleans(),
)  # fmt: skip


@settings(max_examples=200)
@given(facts)
def test_whatever_is_read(found):
    """Parts and holders sum up, nothing is negative, unknown is never written as None, every finding has a share of RAM."""
    result = judge_host(found)
    total = found.meminfo["MemTotal"]
    assert sum(part.bytes for part in result.parts) == total
    given_back = sum(part.bytes for part in result.parts if part.kind in ("free", "free-cpu", "page-cache"))
    assert sum(holder.bytes for holder in result.holders) == total - given_back
    assert all(holder.bytes >= 0 for holder in result.holders)
    assert [holder.bytes for holder in result.holders] == sorted(
        (holder.bytes for holder in result.holders), reverse=True
    )
    lines = [
        *result.verdict,
        *(line for one in result.findings for line in (one.summary, one.evidence, one.fix or "", one.next or "")),
    ]
    assert result.verdict
    assert all("None" not in line for line in lines)
    assert all(0 <= one.share <= 1 for one in result.findings if one.code != "huge-pages-unused")
