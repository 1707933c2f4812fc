"""What is read of a process's memory, and what limits it. Sizes in bytes; None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.malloc.record import Malloc
from opskit.proc.memory_files import SYSV
from opskit.proc.tmpfs_mounts import is_for_sharing
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.cgroup.memory import HugeLimit, MemoryGroup
    from opskit.proc.cgroup.owner import CgroupOwner
    from opskit.proc.compressed import Arc
    from opskit.proc.files.smaps import Usage
    from opskit.proc.process import Process

__all__ = ["Facts", "HostMemory", "JvmMemory", "Malloc", "Part", "Request", "Row"]


class Request(NamedTuple):
    """What to read. `exact`: each mapping also above 32 GiB resident, and what may pause a JVM. `ask`: start a JVM's attach listener."""

    pid: int
    exact: bool = False
    ask: bool = False


class Row(NamedTuple):
    """Memory of one kind (proc.ranges.KINDS). `items`: stacks, arenas, blocks or mappings; `reserved_bytes`: of address space."""

    kind: str
    usage: Usage
    reserved_bytes: int
    items: int | None = None


class Part(NamedTuple):
    """One mapped file, library or named mapping, for the details of a row."""

    kind: str
    name: str
    deleted: bool
    usage: Usage


class JvmMemory(NamedTuple):
    """What a JVM says about its own memory; None: unknown. `heap_max_bytes`: -Xmx in force; `heap_touched`: -XX:+AlwaysPreTouch.

    `direct_bytes`: reserved by java.nio.Bits; `direct_max_bytes`: MaxDirectMemorySize or, where it is not set, the heap's limit.
    `stack_bytes`: of a new thread (-Xss). `sources`: what was read: vmStructs, hsperfdata, attach.
    """

    main: str
    release: str | None = None
    collector: str | None = None
    heap_used_bytes: int | None = None
    heap_committed_bytes: int | None = None
    heap_max_bytes: int | None = None
    heap_touched: bool = False
    metaspace_used_bytes: int | None = None
    metaspace_committed_bytes: int | None = None
    metaspace_max_bytes: int | None = None  # None: no limit, or without vmStructs unknown
    class_space_max_bytes: int | None = None
    code_reserved_bytes: int | None = None
    direct_bytes: int | None = None
    direct_max_bytes: int | None = None
    mapped_buffer_bytes: int | None = None
    threads: int | None = None
    stack_bytes: int | None = None
    class_loaders: int | None = None
    sources: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # what stayed unknown, and why


class HostMemory(NamedTuple):
    """The machine. `meminfo` in bytes by the kernel's names; `overcommit`: vm.overcommit_memory; `arc`: ZFS's cache."""

    meminfo: Mapping[str, int]
    overcommit: int | None
    oom_score: int | None  # of the process, 0 to 2000
    oom_score_adj: int | None
    arc: Arc | None = None


class Member(NamedTuple):
    """A process of the tightest cgroup. `shmem_bytes`: what it maps of it, of which others may map the same pages. None: unknown."""

    pid: int
    command: str
    anon_bytes: int | None
    shmem_bytes: int | None
    swap_bytes: int | None
    page_table_bytes: int | None


class Unheld(NamedTuple):
    """A file of a tmpfs (/dev/shm, …) or a System V segment that no process has open or mapped: its memory stays until it is removed.

    `kind`: tmpfs or sysv, whose `inode` is its id. `mount_pid`: a process that sees `path`; None: opskit does. `age_s`: since its last change.
    `mount`: the mount point of its tmpfs. `reached_at`: our path of a file of another mount namespace.
    """

    kind: str
    path: str
    inode: int
    bytes: int
    mount_pid: int | None = None
    age_s: float | None = None
    mount: str | None = None
    reached_at: str | None = None

    @property
    def is_left_behind(self) -> bool:
        """Whether a process is likely to have left it: its place is for memory that processes share."""
        return self.kind == SYSV or is_for_sharing(self.mount)


def unmapped_shmem_bytes(group: MemoryGroup, members: tuple[Member, ...], unread: int) -> int | None:
    """Shared memory charged to a cgroup that none of its processes maps: files of a tmpfs, also of processes that have ended."""
    parts = [member.shmem_bytes for member in members]
    if group.shmem_bytes is None or not parts or unread or None in parts:
        return None
    return max(0, group.shmem_bytes - sum(part or 0 for part in parts))


class Facts(NamedTuple):
    """One look at one process. `rows` is empty where only the sums are known (`why_sums_only`). `levels`: its memory cgroups, from its own up.

    `levels_unknown`: why some or all are not known. `missing`: what could not be read, and which command would tell more.
    `members`: all processes of the tightest cgroup, itself too, the largest first; `unheld`: where shared memory charged to it has no process.
    `at_s`: seconds since the first look; `age_s`: since the process started.
    """

    process: Process
    owner: CgroupOwner | None
    total: Usage
    page_table_bytes: int | None
    rows: tuple[Row, ...]
    parts: tuple[Part, ...]
    malloc: Malloc | None
    jvm: JvmMemory | None
    levels: tuple[MemoryGroup, ...]
    levels_unknown: str | None
    host: HostMemory
    why_sums_only: str | None = None
    missing: tuple[str, ...] = ()
    at_s: float = 0.0
    age_s: float | None = None
    members: tuple[Member, ...] = ()
    members_unread: int = 0
    unheld: tuple[Unheld, ...] = ()
    huge_limits: tuple[HugeLimit, ...] = ()

    @property
    def is_heap_hidden(self) -> bool:
        """Whether the heap of a JVM is somewhere in the other rows, because its memory could not be read."""
        return self.jvm is not None and all(row.kind != "java-heap" for row in self.rows)
