"""What holds the machine's memory, on this machine and on captured ones."""

from __future__ import annotations

import os
from itertools import count

import pytest
from ownmounts import own_mounts

from opskit.analysis.mem.host import judge_host
from opskit.collect.mem.host import collect_host, read_processes
from opskit.errors import BadInput, NotSupported
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.process import command_name

MIB = 1 << 20
# A parent that touches memory, and children that share it.
FORKS = """
import mmap, os, sys, time
block = mmap.mmap(-1, 60 << 20, mmap.MAP_PRIVATE); block.write(bytes(60 << 20))
for _ in range(3):
    if not os.fork():
        break
else:
    print("ready")
time.sleep(60)
"""
STATUS = "Name:\t{0}\nState:\tS\nVmRSS:\t{1} kB\nRssAnon:\t{2} kB\nRssFile:\t0 kB\nRssShmem:\t0 kB\nVmSwap:\t8 kB\nVmPTE:\t40 kB\nHugetlbPages:\t0 kB\nThreads:\t9\nUid:\t0 0 0 0\n"
MEMINFO = (
    "MemTotal: 16777216 kB\nMemFree: 1048576 kB\nMemAvailable: 900000 kB\nBuffers: 0 kB\nCached: 3145728 kB\nShmem: 2097152 kB\n"
    "AnonPages: 5242880 kB\nActive(file): 1048576 kB\nInactive(file): 0 kB\nPercpu: 1024 kB\nHugepagesize: 2048 kB\nHugetlb: 4194304 kB\n"
)
CAPTURE = {
    "proc/meminfo": MEMINFO,
    "proc/sys/kernel/hostname": "captured\n",
    "proc/101/status": STATUS.format("java", 4194304, 4100000),
    "proc/101/smaps_rollup": "00-10 ---p 00000000 00:00 0 [rollup]\nPss: 4100000 kB\nPss_Anon: 4000000 kB\nPss_File: 100000 kB\nPss_Shmem: 0 kB\n",
    "proc/101/cgroup": "0::/system.slice/orders.service\n",
    "proc/101/comm": "java\n",
    "proc/102/status": STATUS.format("java", 1024, 1000),
    "proc/102/cgroup": "0::/system.slice/orders.service\n",
    "proc/102/comm": "java\n",
    "proc/103/status": STATUS.format("we\\nird", 2048, 1000),
    "proc/103/comm": "we\x1bird\n",
    "proc/2/status": "Name:\tkthreadd\nThreads:\t1\nUid:\t0 0 0 0\n",
    "proc/sysvipc/shm": "key shmid perms size cpid lpid nattch uid rss swap\n0 5 600 1073741824 101 1 1 0 1073741824 0\n0 6 600 9 55 1 0 0 536870912 0\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "2048\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "2000\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages": "500\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages": "0\n",
}  # fmt: skip


def here():
    return collect_host(Host.at(None, None), 10)


def test_the_parts_of_this_machine():
    """They sum to MemTotal, and each process that has memory is in a group."""
    result = judge_host(here())
    assert sum(part.bytes for part in result.parts) == result.total_bytes
    assert os.getpid() in {pid for group in result.groups for pid in group.pids}
    held = sum(holder.bytes for holder in result.holders)
    given = sum(part.bytes for part in result.parts if part.kind in ("free", "free-cpu", "page-cache"))
    assert held == result.total_bytes - given
    assert result.verdict


def test_pages_that_processes_share_count_once(root_only, spawn):
    """Four processes with the same 60 MiB: PSS says so, RSS would count them four times."""
    process = spawn(FORKS)
    family = [process.pid, *map(int, open(f"/proc/{process.pid}/task/{process.pid}/children").read().split())]  # noqa: SIM115
    uses = [use for use in here().processes if use.pid in family]
    assert len(uses) == 4
    assert all(use.is_proportional for use in uses)
    assert 60 * MIB <= sum(use.anonymous_bytes for use in uses) < 90 * MIB


@pytest.mark.xdist_group("JVMs by PID")  # whose ends would change the same sums
def test_nothing_counts_twice_or_not_at_all(spawn):
    """A memfd, anonymous memory and kernel stacks of 1,000 threads go to their uses: the unaccounted rest stays as it was."""

    def uses():
        return {part.kind: part.bytes for part in judge_host(here()).parts}

    before = uses()
    spawn(
        "import mmap, os, threading, time; threading.stack_size(65536); f = os.memfd_create('x'); os.write(f, bytes(128 << 20))\n"
        "b = mmap.mmap(-1, 160 << 20, mmap.MAP_PRIVATE); b.write(bytes(160 << 20))\n"
        "for _ in range(1000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "print('ready'); time.sleep(60)"
    )
    after = uses()
    assert after["shmem"] - before["shmem"] > 100 * MIB
    assert after["kernel-stacks"] - before["kernel-stacks"] > 10 * MIB
    assert abs(after["unaccounted"] - before["unaccounted"]) < 64 * MIB


def test_shared_memory_has_its_owner(root_only, spawn, tmp_path):
    """A memfd and a tmpfs of another mount namespace are holders, the rest stays unknown."""
    process = spawn(
        "import os, time; f = os.memfd_create('cache'); os.write(f, bytes(48 << 20)); print('ready'); time.sleep(60)"
    )
    with own_mounts(f"mount -t tmpfs none {tmp_path} && head -c {24 * MIB} /dev/zero > {tmp_path}/x") as other:
        holders = {holder.name: holder for holder in judge_host(here()).holders}
    [mine] = [
        one
        for name, one in holders.items()
        if name == f"memfd:cache of {command_name(ProcFS(), process.pid)} ({process.pid})"
    ]
    assert (mine.bytes, mine.next) == (48 * MIB, f"opskit mem {process.pid}")
    mounted = holders[f"tmpfs {tmp_path} (in the mount namespace of {other})"]
    assert (mounted.bytes, mounted.next) == (24 * MIB, "opskit mem --files")


def test_another_user(as_user):
    """Without rights over the processes of others RSS stands for PSS, and both are told apart."""

    def look():
        facts = here()
        kinds = {use.is_proportional for use in facts.processes}
        return kinds, [note for note in facts.missing if "RSS stands for PSS" in note]

    kinds, notes = as_user(65534, look)
    assert False in kinds
    assert "smaps_rollup cannot be read; run as root: sudo opskit mem" in notes[0]


def test_it_ends_in_time():
    """Where reading is slow, RSS stands for the PSS of the smallest processes, after so many as are to be shown."""
    host = Host.at(None, None)
    seconds = count(0, 10)
    host.monotonic = lambda: float(next(seconds))
    uses, notes = read_processes(host, 2)
    slow = [use for use in uses if not use.is_proportional]
    assert len(slow) >= len(uses) - 2
    assert any(f"for the {len(uses) - 2:,} smallest processes RSS stands for PSS" in note for note in notes)


def test_a_capture(tree):
    """Groups by command and unit, huge pages by /sys, segments and their creators, without what only a live kernel says."""
    facts = collect_host(Host.at(str(tree(CAPTURE)), None), None)
    result = judge_host(facts)
    java, weird = result.groups
    assert (java.command, java.owner, java.pids) == ("java", "orders.service", (101, 102))
    assert (java.bytes, java.anonymous_bytes) == ((4100000 + 1024) << 10, (4000000 + 1000) << 10)
    assert (java.is_proportional, java.swap_bytes, java.threads) == (False, 16 << 10, 18)
    assert (weird.command, weird.owner) == ("we\x1bird", None)
    kinds = {part.kind: part.bytes >> 20 for part in result.parts}
    assert kinds["huge-pages"] == 4096
    assert (kinds["processes"], kinds["shmem"], kinds["page-cache"]) == (5120, 2048, 1024)
    shared = [(holder.name, holder.bytes >> 20) for holder in result.holders if holder.kind == "shmem"]
    assert shared == [
        ("System V segment 5 of java (101)", 1024),
        ("System V segment 6 of 55, which has ended", 512),
        ("shared memory of unknown owners", 512),
    ]
    assert any("a copy does not say" in note for note in facts.missing)
    assert result.supply == "short"


def test_a_tree_without_the_numbers(tree):
    """No meminfo, or none of memory: exit 2."""
    with pytest.raises(NotSupported, match="meminfo cannot be read"):
        collect_host(Host.at(str(tree({"proc/loadavg": "0 0 0 1/2 3\n"})), None), None)


def test_a_malformed_meminfo(tree):
    """A line, or the total, is missing."""
    with pytest.raises(BadInput, match="has no MemTotal"):
        collect_host(Host.at(str(tree({"proc/meminfo": "MemFree: 1 kB\n"})), None), None)
