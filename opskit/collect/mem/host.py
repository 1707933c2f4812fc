"""Read what holds the machine's memory: meminfo, processes, tmpfs mounts, shared memory, huge pages, slabs, compressed memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from opskit.collect.mem.segments import creator_of
from opskit.errors import BadInput, NotSupported
from opskit.proc.cgroup.owner import owner_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.compressed import read_arc, read_zram_bytes
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.slabinfo import parse_slabinfo
from opskit.proc.files.smaps import parse_proportional
from opskit.proc.files.sockstat import parse_socket_pages
from opskit.proc.files.status import parse_status
from opskit.proc.files.sysvipc_shm import Segment, parse_sysvipc_shm
from opskit.proc.files.vmstat import page_size, parse_vmstat
from opskit.proc.files.zoneinfo import parse_cpu_free_pages
from opskit.proc.fs import DENIED, GONE
from opskit.proc.hugepages import read_huge_pools
from opskit.proc.namespaces import in_initial
from opskit.proc.process import command_name
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.tmpfs_mounts import HUGETLBFS, TmpfsMounts, read_tmpfs_mounts
from opskit.proc.visibility import coverage_lines, more_rights_show_more
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.cgroup.owner import CgroupOwner
    from opskit.proc.compressed import Arc
    from opskit.proc.files.slabinfo import Slab
    from opskit.proc.files.status import Status
    from opskit.proc.fs import ProcFS
    from opskit.proc.hugepages import HugePool

    IsShort = Callable[[Mapping[str, int], Optional[Arc]], bool]

# Reading smaps_rollup takes 21 ms of CPU per GiB resident, and waits for a process that changes its mappings: the largest processes first,
# until this much time has gone.
_LEAST_S, _PER_GIB_S, _LEAST = 1.0, 0.1, 10
_GIB = 1 << 30
_WORTH_A_SEARCH_BYTES = 16 << 20  # shared memory of unknown owners from which on memfds are looked for
_MOST_FDS = 20_000


class ProcessUse(NamedTuple):
    """One process's memory in bytes. `is_proportional`: each page is divided by the processes that map it (PSS); otherwise it is RSS.

    `anonymous_bytes`, `file_bytes` and `shmem_bytes` are parts of `bytes`; None: not told by this kernel. `hugetlb_bytes`: of reserved huge pages.
    """

    pid: int
    command: str
    owner: CgroupOwner | None
    bytes: int
    is_proportional: bool
    anonymous_bytes: int | None
    file_bytes: int | None
    shmem_bytes: int | None
    swap_bytes: int | None
    hugetlb_bytes: int | None
    page_table_bytes: int | None
    threads: int | None


class SharedFile(NamedTuple):
    """Shared memory without a path: a memfd, or memory shared with children. `bytes` with swapped pages; `command` of one holder."""

    kind: str
    name: str
    bytes: int
    pid: int
    command: str


class HostFacts(NamedTuple):
    """One look at the machine. `meminfo` in bytes by the kernel's names; None or empty: not known, `missing` says why.

    `balloon_bytes`: by the counters of /proc/vmstat. `cpu_free_bytes`: free pages in the lists of the CPUs. `socket_bytes`: buffers
    of TCP and UDP, in slabs or not. `creators`: the commands of those that made segments and live, by shmid. `has_allocinfo`: the kernel counts its memory by place in its source.
    """

    meminfo: Mapping[str, int]
    page_bytes: int
    processes: tuple[ProcessUse, ...]
    mounts: TmpfsMounts
    segments: tuple[Segment, ...]
    shared: tuple[SharedFile, ...]
    pools: tuple[HugePool, ...]
    slabs: tuple[Slab, ...] | None
    zram_bytes: int
    arc: Arc | None
    balloon_bytes: int
    cpu_free_bytes: int
    socket_bytes: int = 0
    has_allocinfo: bool = False
    creators: Mapping[int, str] = {}
    missing: tuple[str, ...] = ()


def collect_host(host: Host, top: int | None = None, is_short: IsShort | None = None) -> HostFacts:
    """Look once. `top`: for how many processes PSS is read at least. Raises NotSupported without meminfo, and BadInput.

    `is_short`: look quickly, without PSS, memfds and other mount namespaces, and at processes only where it says that memory is short.
    """
    fs, missing = host.fs, []
    try:
        meminfo = fs.load(parse_meminfo, "meminfo")
    except (*GONE, DENIED):
        raise NotSupported(f"{fs.path('meminfo')} cannot be read: what holds the memory is unknown") from None
    if not meminfo.get("MemTotal"):
        raise BadInput(fs.path("meminfo"), "has no MemTotal")
    # What is a part of the same sum is read at the same moment, the processes afterwards.
    cpu_free_pages = fs.maybe(parse_cpu_free_pages, "zoneinfo", default=0)
    vmstat = fs.maybe(parse_vmstat, "vmstat", default={})
    page_bytes = host.page_bytes if host.is_own else page_size(vmstat, meminfo, host.page_bytes)
    # With --proc alone, /sys and the cgroups here belong to another machine than the tree.
    whole_tree = bool(fs.root) or host.is_own
    pools = read_huge_pools(fs, meminfo) if whole_tree else ()
    arc = read_arc(fs)
    processes, notes = _processes(host, top or _LEAST, None if is_short is None else is_short(meminfo, arc))
    missing += notes
    mounts = read_tmpfs_mounts(fs, [process.pid for process in processes] if is_short is None else ())
    if not fs.is_live:
        missing.append("a copy does not say what its tmpfs mounts hold")
    elif mounts.unread:
        missing.append(f"the tmpfs mounts of {mounts.unread} mount namespaces could not be read; {_as_root(fs)}")
    if fs.is_live and in_initial(fs, "pid") is False:
        missing.append(
            "this is a PID namespace: the figures are the whole machine's, processes outside of it are not seen"
        )
    segments = tuple(fs.maybe(parse_sysvipc_shm, "sysvipc", "shm", default=[]))
    return HostFacts(
        meminfo, page_bytes, tuple(processes), mounts, segments,
        shared=_shared_files(host, meminfo, mounts, segments, processes) if is_short is None else (),
        pools=pools,
        slabs=_slabs(fs),
        zram_bytes=read_zram_bytes(fs) if whole_tree else 0,
        arc=arc,
        balloon_bytes=max(0, vmstat.get("balloon_inflate", 0) - vmstat.get("balloon_deflate", 0)) * page_bytes,
        cpu_free_bytes=cpu_free_pages * page_bytes,
        socket_bytes=fs.maybe(parse_socket_pages, "net", "sockstat", default=0) * page_bytes,
        has_allocinfo=fs.exists("allocinfo"),
        creators={one.shmid: made for one in segments if (made := creator_of(host, one)) is not None},
        missing=tuple(missing),
    )  # fmt: skip


def _processes(host: Host, least: int, is_short: bool | None) -> tuple[list[ProcessUse], list[str]]:
    """As `read_processes`; of a quick look (`is_short` is not None) by RSS, and none where memory is not short."""
    if is_short is None:
        return read_processes(host, least)
    return (_by_rss(host.fs), []) if is_short else ([], [])


def _by_rss(fs: ProcFS) -> list[ProcessUse]:
    found = [use for pid in fs.pids() if (use := _process(fs, pid)) is not None]
    return sorted(found, key=lambda use: (-use.bytes, use.pid))


def read_processes(host: Host, least: int) -> tuple[list[ProcessUse], list[str]]:
    """Every process that has memory, the largest first, and what is not known of them. `least`: read so many, also slowly."""
    fs = host.fs
    found = _by_rss(fs)
    resident = sum(use.bytes for use in found)
    end = host.monotonic() + _LEAST_S + _PER_GIB_S * resident / _GIB
    denied, late = [], 0
    for at, use in enumerate(found):
        if at >= least and host.monotonic() > end:
            late = len(found) - at
            break
        try:
            pss = fs.load(parse_proportional, use.pid, "smaps_rollup")
        except (*GONE, BadInput):  # ended, or a kernel before 4.14
            continue
        except OSError:
            denied.append(use.pid)
            continue
        if pss is not None:
            parts = (pss.anonymous_bytes, pss.file_bytes, pss.shmem_bytes)
            known = parts if None not in parts else (use.anonymous_bytes, use.file_bytes, use.shmem_bytes)
            found[at] = use._replace(
                bytes=pss.total_bytes, anonymous_bytes=known[0], file_bytes=known[1], shmem_bytes=known[2],
                is_proportional=True,
            )  # fmt: skip
    notes = []
    if denied and more_rights_show_more(fs):
        notes.append(
            f"for {len(denied):,} of {len(found):,} processes RSS stands for PSS: smaps_rollup cannot be read; {_as_root(fs)}"
        )
    if late:
        notes.append(f"for the {late:,} smallest processes RSS stands for PSS, to save time")
    notes += coverage_lines(fs, len(found), [], 0)
    return sorted(found, key=lambda use: (-use.bytes, use.pid)), notes


def _process(fs: ProcFS, pid: int) -> ProcessUse | None:
    """A process by its status; None for kernel threads and for what has ended."""
    status: Status | None = fs.maybe(parse_status, pid, "status")
    rss = status.bytes_of("VmRSS") if status else None
    if status is None or rss is None:
        return None
    owner = owner_of(fs.maybe(parse_cgroup, pid, "cgroup", default=[]))
    return ProcessUse(
        pid, command_name(fs, pid), owner, rss, is_proportional=False,
        anonymous_bytes=status.bytes_of("RssAnon"), file_bytes=status.bytes_of("RssFile"),
        shmem_bytes=status.bytes_of("RssShmem"), swap_bytes=status.bytes_of("VmSwap"),
        hugetlb_bytes=status.bytes_of("HugetlbPages"), page_table_bytes=status.bytes_of("VmPTE"),
        threads=status.threads,
    )  # fmt: skip


def _slabs(fs: ProcFS) -> tuple[Slab, ...] | None:
    slabs = fs.maybe(parse_slabinfo, "slabinfo")
    return None if slabs is None else tuple(slabs)


def _as_root(fs: ProcFS) -> str:
    return how_to_be_allowed(fs, "CAP_SYS_PTRACE", "opskit", "mem")


def _shared_files(
    host: Host,
    meminfo: Mapping[str, int],
    mounts: TmpfsMounts,
    segments: Sequence[Segment],
    processes: Sequence[ProcessUse],
) -> tuple[SharedFile, ...]:
    """Memfds and the like, where the mounts and segments leave much of the shared memory unexplained."""
    known = sum(mount.used_bytes or 0 for mount in mounts.mounts if mount.fs_type != HUGETLBFS)
    total = meminfo.get("Shmem", 0)
    in_segments = (segment.rss_bytes or 0 for segment in segments)
    rest = total - known - sum(amount for amount in in_segments if amount <= total)  # larger: of reserved huge pages
    if not host.fs.is_live or rest < _WORTH_A_SEARCH_BYTES:
        return ()
    return tuple(_search(host, mounts, sorted(processes, key=lambda use: -(use.shmem_bytes or 0)), rest))


def _search(host: Host, mounts: TmpfsMounts, processes: Sequence[ProcessUse], rest: int) -> Iterator[SharedFile]:
    """Those of the processes that map the most first, until little of `rest` is left."""
    from opskit.proc.memory_files import MEMFD, SHARED_ANONYMOUS, FileScanner

    scanner = FileScanner(host.fs, mounts._replace(mounts=()), _MOST_FDS)
    seen = set()
    for use in processes:
        try:
            files = scanner.scan(use.pid)
        except OSError:
            continue
        for file in files:
            key = file.device, file.inode
            if file.kind in (MEMFD, SHARED_ANONYMOUS) and key not in seen and file.allocated_bytes:
                seen.add(key)
                rest -= file.allocated_bytes
                yield SharedFile(file.kind, file.path, file.allocated_bytes, use.pid, use.command)
        if scanner.fds_left <= 0 or rest < _WORTH_A_SEARCH_BYTES:
            return
