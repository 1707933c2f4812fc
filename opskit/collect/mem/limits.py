"""Read what limits a process's memory: its cgroups, the processes that share the tightest of them, the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.mem.facts import HostMemory, Member
from opskit.proc.cgroup.memory import HugeLimit, MemoryGroup, huge_limits, memory_groups
from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.status import Status, parse_status
from opskit.quantities import integer, signed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.host import Host
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

_MOST_CGROUPS, _MOST_MEMBERS = 1000, 200  # below one that a process shares; each costs some reads


def read_levels(fs: ProcFS, pid: int) -> tuple[tuple[MemoryGroup, ...], str | None]:
    """The memory cgroups of a process, from its own up, and why some or all of them are unknown (None: all are known)."""
    levels, unknown = visible_levels(fs, pid, "memory")
    return memory_groups(fs, levels), unknown


def read_huge_limits(fs: ProcFS, pid: int) -> tuple[HugeLimit, ...]:
    """The limits of reserved huge pages in its cgroups."""
    return huge_limits(fs, visible_levels(fs, pid, "hugetlb")[0])


def read_host_memory(host: Host, pid: int) -> HostMemory:
    """The machine's memory, and how likely its OOM killer picks this process."""
    fs = host.fs
    return HostMemory(
        fs.maybe(parse_meminfo, "meminfo", default={}),
        host.sysctl("vm", "overcommit_memory"),
        fs.maybe(_number, pid, "oom_score"),
        fs.maybe(_number, pid, "oom_score_adj"),
    )


def _number(text: str) -> int | None:
    return signed(text.strip())


def read_members(fs: ProcFS, pid: int, group: MemoryGroup) -> tuple[tuple[Member, ...], int]:
    """The processes in a cgroup of this process and in those below it, and how many more there are; those that hold most first."""
    levels, _ = visible_levels(fs, pid, "memory")
    top = next((level for level in levels if level.path == group.path), None)
    pids = sorted({each for level in _below(fs, top) for each in _pids(fs, level)}) if top is not None else []
    wanted = [pid, *(each for each in pids if each != pid)] if pid in pids else pids
    read = [(each, fs.maybe(parse_status, each, "status")) for each in wanted[:_MOST_MEMBERS]]
    members = [_member(each, status) for each, status in read if status is not None]
    members.sort(key=lambda member: -((member.anon_bytes or 0) + (member.shmem_bytes or 0)))
    return tuple(members), max(0, len(wanted) - _MOST_MEMBERS)


def _below(fs: ProcFS, top: Level) -> Iterator[Level]:
    waiting, seen = [top], 0
    while waiting and seen < _MOST_CGROUPS:
        level = waiting.pop()
        seen += 1
        yield level
        waiting += level.children(fs)


def _pids(fs: ProcFS, level: Level) -> Iterator[int]:
    words = (level.load(fs, "cgroup.procs") or "").split()
    return (pid for word in words if (pid := integer(word)))  # 0: outside of our pid namespace


def _member(pid: int, status: Status) -> Member:
    sizes = (status.bytes_of(key) for key in ("RssAnon", "RssShmem", "VmSwap", "VmPTE"))
    return Member(pid, status.fields.get("Name", "?"), *sizes)
