"""Read what limits a process's memory: its cgroups, the processes that share the tightest of them, the machine."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from opskit.collect.mem.facts import HostMemory, Member, Unheld, unmapped_shmem_bytes
from opskit.proc.cgroup.memory import HugeLimit, MemoryGroup, huge_limits, memory_groups, swap_within, tightest
from opskit.proc.cgroup.tree import visible_levels
from opskit.proc.compressed import read_arc
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.status import Status, parse_status
from opskit.quantities import signed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.proc.fs import ProcFS

_MOST_CGROUPS, _MOST_MEMBERS = 1000, 200  # below one that a process shares; each costs some reads
# Shared memory that no process maps; for less, and a smaller part of the limit, no file is looked for.
_UNMAPPED_BYTES, _UNMAPPED_OF_LIMIT = 1 << 20, 0.01
_STAY = ("tmpfs", "sysv")  # what stays without a process


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
        read_arc(fs),
    )


def _number(text: str) -> int | None:
    return signed(text.strip())


class Sharing(NamedTuple):
    """Who shares the tightest limit of a process: see Facts."""

    members: tuple[Member, ...] = ()
    members_unread: int = 0
    unheld: tuple[Unheld, ...] = ()


def read_sharing(host: Host, pid: int, levels: tuple[MemoryGroup, ...], swap_free_bytes: int) -> Sharing:
    """The processes of the tightest cgroup; the files without a process where it is charged for shared memory that none of them maps."""
    group = tightest(levels, swap_within(levels, swap_free_bytes))
    if group is None:
        return Sharing()
    members, unread = read_members(host.fs, pid, group)
    unmapped = unmapped_shmem_bytes(group, members, unread)
    least = max(_UNMAPPED_BYTES, _UNMAPPED_OF_LIMIT * (group.limit_bytes or 0))
    return Sharing(members, unread, _unheld(host, unmapped) if unmapped and unmapped >= least else ())


def _unheld(host: Host, most_bytes: int) -> tuple[Unheld, ...]:
    """Files in memory without a process, the largest first, that are no larger than what is looked for."""
    from opskit.collect.mem.files import collect_files  # costs a scan of all processes

    if not host.fs.is_live:
        return ()
    found = collect_files(host)
    if not found.complete:
        return ()
    free = [file for file in found.files if file.kind in _STAY and not file.holders and not file.attached]
    sized = ((file, file.resident_bytes) for file in free)
    now_s = host.now().timestamp()

    def age_s(changed_s: float | None) -> float | None:
        return None if changed_s is None else max(0.0, now_s - changed_s)

    fitting = [
        Unheld(
            file.kind,
            file.path,
            file.inode,
            resident,
            file.mount_pid,
            age_s(file.changed_s),
            file.mount,
            file.reached_at,
        )
        for file, resident in sized
        if resident is not None and _UNMAPPED_BYTES <= resident <= most_bytes
    ]
    return tuple(sorted(fitting, key=lambda file: -file.bytes))


def read_members(fs: ProcFS, pid: int, group: MemoryGroup) -> tuple[tuple[Member, ...], int]:
    """The processes in a cgroup of this process and in those below it, and how many more there are; those that hold most first."""
    levels, _ = visible_levels(fs, pid, "memory")
    top = next((level for level in levels if level.path == group.path), None)
    groups = islice(top.with_those_below(fs), _MOST_CGROUPS) if top is not None else ()
    pids = sorted({each for level in groups for each in level.pids(fs)})
    wanted = [pid, *(each for each in pids if each != pid)] if pid in pids else pids
    read = [(each, fs.maybe(parse_status, each, "status")) for each in wanted[:_MOST_MEMBERS]]
    members = [_member(each, status) for each, status in read if status is not None]
    members.sort(key=lambda member: -((member.anon_bytes or 0) + (member.shmem_bytes or 0)))
    return tuple(members), max(0, len(wanted) - _MOST_MEMBERS)


def _member(pid: int, status: Status) -> Member:
    sizes = (status.bytes_of(key) for key in ("RssAnon", "RssShmem", "VmSwap", "VmPTE"))
    return Member(pid, status.fields.get("Name", "?"), *sizes)
