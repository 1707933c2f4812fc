"""The machine, its limits and the heap, in the forms of each release and collector."""

from __future__ import annotations

import pytest

from opskit.jvm.logs.crashes.heap import parse_heap
from opskit.jvm.logs.crashes.machine import parse_machine, size_of
from opskit.jvm.logs.crashes.mappings import parse_mappings
from opskit.jvm.logs.crashes.sections import Sections


def machine(*lines):
    """The machine that these lines describe."""
    return parse_machine(Sections(lines), 3)


@pytest.mark.parametrize(
    ("lines", "os"),
    [
        (["OS:Red Hat Enterprise Linux Server release 7.9 (Maipo)", "", "uname:Linux 3.10.0"], "Red Hat Enterprise Linux Server release 7.9 (Maipo)"),
        (["OS:", "Red Hat Enterprise Linux release 8.5 (Ootpa)", "uname: Linux 4.18.0"], "Red Hat Enterprise Linux release 8.5 (Ootpa)"),
        (['OS:PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"', 'NAME="Debian GNU/Linux"'], "Debian GNU/Linux 12 (bookworm)"),
        (["OS:", 'NAME="Alpine Linux"', "ID=alpine", 'PRETTY_NAME="Alpine Linux v3.18"'], "Alpine Linux v3.18"),
        (["OS:", "DISTRIB_ID=Ubuntu", 'DISTRIB_DESCRIPTION="Ubuntu 20.04.6 LTS"'], "Ubuntu 20.04.6 LTS"),
        (["OS:", "uname: Linux 6.1.0 #1 SMP x86_64"], "Linux 6.1.0 #1 SMP x86_64"),
        (["OS:uname:Linux 6.1.0 #1 SMP x86_64"], "Linux 6.1.0 #1 SMP x86_64"),
        (["OS:Bsduname:Darwin 23.6.0 arm64"], "Darwin 23.6.0 arm64"),
        (["OS: Windows Server 2019 , 64 bit Build 17763"], "Windows Server 2019 , 64 bit Build 17763"),
        ([], None),
    ],
    ids=["8", "17", "11-debian", "21-alpine", "22-ubuntu", "none", "8-none", "macos", "windows", "missing"],
)  # fmt: skip
def test_the_name_of_the_system(lines, os):
    """The distribution where the JVM has found its file, else the kernel."""
    assert machine(*lines).os == os


def test_limits_of_both_forms():
    """JDK 8 prints the soft limit alone, later ones soft/hard."""
    assert machine("rlimit: STACK 8192k, CORE 0k, NPROC 1024, NOFILE 4096, AS infinity").limits == {
        "STACK": "8192k", "CORE": "0k", "NPROC": "1024", "NOFILE": "4096", "AS": "infinity",
    }  # fmt: skip
    limits = machine("rlimit (soft/hard): STACK 8192k/infinity , CORE 0k/0k , NOFILE 1024/4096").limits
    assert limits == {"STACK": "8192k/infinity", "CORE": "0k/0k", "NOFILE": "1024/4096"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [("536870912", 512 << 20), ("524288 k", 512 << 20), ("524288 kB", 512 << 20), ("0", 0)]
    + [(said, None) for said in ("unlimited", "not supported", "no limit", "-1", "-2", "", "12 apples", None)],
)
def test_sizes_of_a_container(said, expected):
    """Bytes from JDK 8 on, KiB later; anything else is unknown."""
    assert size_of(said) == expected


def test_a_container_of_each_version_of_cgroups():
    """The limit, the use and the quota."""
    two = machine(
        "container (cgroup) information:", "container_type: cgroupv2", "cpu_quota: 50000", "cpu_period: 100000",
        "memory_limit_in_bytes: 262144 k", "memory_usage_in_bytes: 146644 k", "memory_max_usage_in_bytes: not supported",
    )  # fmt: skip
    assert (two.container, two.container_memory_bytes, two.container_used_bytes) == (
        "cgroupv2",
        256 << 20,
        146644 << 10,
    )
    assert (two.container_max_used_bytes, two.container_cpus) == (None, "0.5")
    assert machine("container (cgroup) information:", "container information not found.").container is None
    unlimited = machine(
        "container_type: cgroupv1", "cpu_quota: no quota", "cpu_period: 100000", "memory_limit_in_bytes: unlimited"
    )
    assert (unlimited.container, unlimited.container_memory_bytes, unlimited.container_cpus) == ("cgroupv1", None, None)


def test_free_memory_counts_the_page_cache():
    """JDK 8 prints MemFree; the report's meminfo has MemAvailable. In a container the line is the container's."""
    meminfo = ("/proc/meminfo:", "MemTotal:       1000000 kB", "MemFree:         10000 kB", "MemAvailable:    600000 kB",
        "CommitLimit:     500000 kB", "Committed_AS:    400000 kB")  # fmt: skip
    host = machine(
        *meminfo,
        "Memory: 4k page, physical 1000000k(10000k free), swap 0k(0k free)",
        "Resident Set Size: 50380K (peak: 50K)",
    )
    assert (host.memory_bytes, host.free_bytes) == (1_000_000 << 10, 600_000 << 10)
    assert (host.commit_limit_bytes, host.committed_bytes, host.rss_bytes) == (
        500_000 << 10,
        400_000 << 10,
        50380 << 10,
    )
    container = machine(*meminfo, "Memory: 4k page, physical 524288k(1000k free), swap 0k(0k free)")
    assert container.free_bytes == 1000 << 10


def test_memory_of_linux_and_of_windows():
    """Physical memory, free memory, free swap; the kernel's limits on a line of their own in JDK 11."""
    linux = machine(
        "Memory: 4k page, physical 24684084k(23610164k free), swap 1024k(512k free)",
        "CPU: total 10 (initial active 10) 0x61", "load average: 0.02 0.03 0.03",
        "/proc/sys/kernel/threads-max (system-wide limit on the number of threads):", "192730",
        "/proc/sys/vm/max_map_count (maximum number of memory map areas a process may have): 65530",
        "/proc/sys/kernel/pid_max (system-wide limit on number of process identifiers): 32768", "Total number of mappings: 65531",
    )  # fmt: skip
    assert (linux.memory_bytes, linux.free_bytes, linux.swap_free_bytes) == (24684084 << 10, 23610164 << 10, 512 << 10)
    assert (linux.cpus, linux.load) == (10, "0.02 0.03 0.03")
    assert (linux.threads_max, linux.max_map_count, linux.pid_max, linux.maps) == (192730, 65530, 32768, 65531)
    windows = machine("Memory: 4k page, system-wide physical 8191M (1234M free)")
    assert (windows.memory_bytes, windows.free_bytes, windows.swap_free_bytes) == (8191 << 20, 1234 << 20, None)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([" garbage-first heap   total 262144K, used 1156K [0x1, 0x2)", "  region size 1024K, 1 young (1024K)"], ("G1", 1156, 262144, None)),
        ([" garbage-first heap   total reserved 1914880K, committed 122880K, used 1156K [0x1, 0x2)"], ("G1", 1156, 122880, 1914880)),
        ([" PSYoungGen      total 100K, used 30K [0x1, 0x2, 0x3)", "  eden space 80K, 36% used [0x1,0x2,0x3)", " ParOldGen       total 200K, used 50K [0x1)", " PSPermGen       total 70K, used 60K [0x1)"], ("Parallel", 80, 300, None)),
        ([" def new generation   total 9K, used 1K [0x1)", " tenured generation   total 90K, used 2K [0x1)", " compacting perm gen  total 12K, used 5K [0x1)"], ("Serial", 3, 99, None)),
        ([" DefNew     total 9K, used 1K [0x1)", " Tenured    total 90K, used 2K [0x1)"], ("Serial", 3, 99, None)),
        ([" par new generation   total 9K, used 1K [0x1)", " concurrent mark-sweep generation total 90K, used 2K [0x1)"], ("CMS", 3, 99, None)),
        ([" ZHeap           used 1024M, capacity 2048M, max capacity 4096M"], ("ZGC", 1 << 20, 2 << 20, 4 << 20)),
        (["Shenandoah Heap", " 98304M total, 98304M committed, 78973M used"], ("Shenandoah", 78973 << 10, 98304 << 10, None)),
        (["Shenandoah Heap", " 512M max, 512M soft max, 40960K committed, 5632K used"], ("Shenandoah", 5632, 40960, 512 << 10)),
        ([" Shenandoah Heap", "   512M max, 512M soft max, 40960K committed, 5632K used", "  1024 x 512K regions"], ("Shenandoah", 5632, 40960, 512 << 10)),
        ([], (None, None, None, None)),
    ],
    ids=["g1", "g1-25", "parallel", "serial", "serial-25", "cms", "zgc", "shenandoah-8", "shenandoah-17", "shenandoah-27", "missing"],
)  # fmt: skip
def test_the_heap_of_each_collector(lines, expected):
    """In KiB: used and committed are sums over the generations, without the permanent one and Metaspace."""
    metaspace = [
        " Metaspace       used 117K, committed 320K, reserved 1056768K",
        "  class space    used 6K, committed 128K, reserved 1K",
    ]
    heap = parse_heap(Sections(["Heap:", *lines, *metaspace, ""] if lines else [""]))
    used, committed, maximum = (None if size is None else size >> 10 for size in heap[2:])
    assert (heap.collector, used, committed, maximum) == expected


def test_the_largest_size_of_the_heap_stands_at_its_address():
    """A report from early in the start has no section of the heap."""
    assert (
        parse_heap(
            Sections(["heap address: 0x00000000c0000000, size: 1024 MB, Compressed Oops mode: 32-bit"])
        ).max_bytes
        == 1 << 30
    )


def test_mappings_of_linux_windows_and_macos():
    """Files once each, in order; on Linux also what is mapped at an address."""
    lines = [
        "7f5a64000000-7f5a64101000 rw-s 00000000 00:2f 2                          /srv/shop/prices (1).map",
        "7f5a64101000-7f5a64102000 ---p 00000000 00:00 0 ",
        "7f5a64102000-7f5a64103000 r-xp 00001000 fe:00 326269                     /usr/lib/libc.so.6",
        "7f5a64103000-7f5a64104000 r--p 00002000 fe:00 326269                     /usr/lib/libc.so.6",
        "7ffdccd09000-7ffdccd2a000 rw-p 00000000 00:00 0                          [stack]",
    ]
    found = parse_mappings(lines, 0x7F5A64100000)
    assert found == (5, ("/srv/shop/prices (1).map", "/usr/lib/libc.so.6"), "/srv/shop/prices (1).map (rw-s)")
    assert parse_mappings(lines, 0x7F5A64101010).holder == "anonymous memory (---p)"
    assert parse_mappings(lines, 0x1000).holder is None
    assert parse_mappings(["0x00007fff977e0000 - 0x00007fff979ce000 \tC:\\Windows\\ntdll.dll"], None).libraries == (
        "C:\\Windows\\ntdll.dll",
    )
    assert parse_mappings(["0x00000001001e0000 \t/opt/java/lib/libjli.dylib"], None).libraries == (
        "/opt/java/lib/libjli.dylib",
    )
    assert parse_mappings([], None).number is None
