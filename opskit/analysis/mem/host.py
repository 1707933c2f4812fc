"""Who holds the machine's memory: the parts of MemTotal, who is behind each, the verdict and the findings. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.dentry.caches import classify, of_kind
from opskit.analysis.finding import HOST, Finding
from opskit.analysis.mem.machine import GIVEN_BACK, USES, Beside, Part, available, divide, is_large, severity, supply
from opskit.proc.tmpfs_mounts import HUGETLBFS
from opskit.quantities import listed, percent, plural, short_size, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.collect.mem.host import HostFacts, ProcessUse
    from opskit.proc.hugepages import HugePool

_LARGE_CACHE_SHARE = 0.25  # of RAM: from here on the page cache gets a sentence
NAMED_SHARE = 0.02  # of RAM: smaller holders are not named in the verdict
_UNUSED_SHARE, _UNUSED_BYTES = 0.01, 64 << 20  # of huge pages that nobody uses: from here on they are a finding
_MOST_NAMED = 3
_RECLAIMABLE = ("radix_tree_node", "xarray", "buffer_head", "extent_status")  # beside dentries and inodes
_LARGE_CACHE = 0.1  # of unreclaimable slab
_WORTH_NAMING_BYTES = 16 << 20  # of network buffers
FILES, DENTRIES = "opskit mem --files", "opskit dentry"
_NEXT = {
    "slab-reclaimable": DENTRIES,
    "slab-unreclaimable": shell.command("opskit", "dentry", "-n", 10),
    "vmalloc": shell.command("sudo", "sort", "-rnk2", "/proc/vmallocinfo", shell.Syntax("|"), "head"),
    "percpu": shell.command("cat", "/proc/cgroups"),
    "zram": shell.command("zramctl"),
    "zfs-arc": shell.command("arc_summary"),
    "swap-cache": shell.command("cat", "/proc/swaps"),
}
_NOTES = {
    "free": "used for nothing",
    "page-cache": "goes first when memory is needed",
    "pinned-cache": "mlock, ramfs: the kernel cannot take it back",
    "slab-reclaimable": "dentries and inodes, mostly",
    "zfs-arc": "goes when memory is needed, more slowly than page cache",
    "damaged": "taken out of use by the kernel",
}


class Group(NamedTuple):
    """The processes of one command in one cgroup. `pids`: the largest first. None: not known of any of them.

    `bytes`: PSS, or where `is_proportional` is false the RSS of some of them.
    """

    command: str
    owner: str | None
    cgroup: str | None
    pids: tuple[int, ...]
    bytes: int
    is_proportional: bool
    anonymous_bytes: int | None
    file_bytes: int | None
    shmem_bytes: int | None
    swap_bytes: int | None
    hugetlb_bytes: int | None
    page_table_bytes: int | None
    threads: int | None

    @property
    def name(self) -> str:
        """`java in orders.service`, `postgres (14 processes) in db.service`, `4242 (java)` without a cgroup."""
        several = f" ({plural(len(self.pids), 'process', 'processes')})" if len(self.pids) > 1 else f" ({self.pids[0]})"
        return f"{self.command}{several}" + (f" in {self.owner}" if self.owner else "")


class Holder(NamedTuple):
    """Who holds a part of MemTotal that nobody else in the list holds. `kind`: of machine.USES; `next`: the closer look."""

    kind: str
    name: str
    bytes: int
    share: float
    note: str | None
    next: str | None


class HostResult(NamedTuple):
    """The answer. `parts`: all of MemTotal, the largest first, then what is given back (machine.GIVEN_BACK); `holders`: who is behind them, the largest first, without what is given back.

    `groups`: the processes, the largest first. `supply`: short, some, ample or unknown (machine.supply).
    """

    facts: HostFacts
    total_bytes: int
    available_bytes: int | None
    supply: str
    parts: Sequence[Holder]
    holders: Sequence[Holder]
    groups: Sequence[Group]
    verdict: Sequence[str]
    findings: Sequence[Finding]


def judge_host(facts: HostFacts) -> HostResult:
    """Judge one look."""
    meminfo = facts.meminfo
    total = meminfo["MemTotal"]
    # Pools by /sys have all sizes; meminfo is right where /sys was not read.
    huge = sum(pool.bytes for pool in facts.pools) or None
    beside = Beside(
        huge, facts.zram_bytes, facts.arc.bytes if facts.arc else 0, facts.balloon_bytes, facts.cpu_free_bytes
    )
    parts = divide(meminfo, beside)
    groups = group(facts.processes)
    holders = sorted(_holders(facts, parts, groups, total), key=lambda holder: -holder.bytes)
    free = available(meminfo, facts.arc)
    state = supply(free, total)
    shown = [
        Holder(part.kind, USES[part.kind], part.bytes, part.bytes / total, *_about(facts, part, groups))
        for part in parts
    ]
    shown.sort(key=lambda part: (part.kind in GIVEN_BACK, -part.bytes))
    result = HostResult(facts, total, free, state, shown, holders, groups, (), ())
    return result._replace(verdict=[*_verdict(result)], findings=[*_findings(result)])


def group(processes: Iterable[ProcessUse]) -> list[Group]:
    """The processes by command and cgroup, the largest group first."""
    members: dict[tuple[str, str | None], list[ProcessUse]] = {}
    for process in processes:
        members.setdefault((process.command, process.owner.path if process.owner else None), []).append(process)
    found = []
    for (command, cgroup), each in members.items():
        each.sort(key=lambda process: -process.bytes)
        owner = each[0].owner
        names = (
            "anonymous_bytes",
            "file_bytes",
            "shmem_bytes",
            "swap_bytes",
            "hugetlb_bytes",
            "page_table_bytes",
            "threads",
        )
        sums = (_sum(getattr(process, name) for process in each) for name in names)
        pids = tuple(process.pid for process in each)
        total, is_pss = sum(process.bytes for process in each), all(process.is_proportional for process in each)
        found.append(Group(command, owner.label if owner else None, cgroup, pids, total, is_pss, *sums))
    return sorted(found, key=lambda one: (-one.bytes, one.pids[0]))


def _sum(amounts: Iterable[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _holders(facts: HostFacts, parts: Sequence[Part], groups: Sequence[Group], total: int) -> Iterator[Holder]:
    amounts = {part.kind: part.bytes for part in parts}
    for part in parts:
        if part.kind in (*GIVEN_BACK, "processes", "shmem", "huge-pages"):
            continue
        yield Holder(part.kind, USES[part.kind], part.bytes, part.bytes / total, *_about(facts, part, groups))
    named: dict[str, Iterable[tuple[str, int, str | None, str | None]]] = {
        "processes": _of_processes(groups),
        "shmem": _of_shmem(facts),
        "huge-pages": (
            (_pool_name(pool), pool.bytes, _pool_note(pool), _pool_next(pool, groups)) for pool in facts.pools
        ),
    }
    rests = {
        "processes": ("other processes", None),
        "shmem": ("shared memory of unknown owners", FILES),
        "huge-pages": (USES["huge-pages"], _NEXT_HUGE),
    }
    for kind, rows in named.items():
        left = amounts.get(kind, 0)
        for name, amount, note, next_ in rows:
            held = min(amount, left)  # swapped pages, and pages that forked processes share
            left -= held
            if held > 0:
                yield Holder(kind, name, held, held / total, note, next_)
        if left > 0:
            name, next_ = rests[kind]
            yield Holder(kind, name, left, left / total, None, next_)


_NEXT_HUGE = shell.command("grep", "-H", "HugetlbPages:.*[1-9]", shell.Syntax("/proc/[0-9]*/status"))


def _of_processes(groups: Sequence[Group]) -> Iterator[tuple[str, int, str | None, str | None]]:
    """The anonymous memory of each group; where the kernel does not tell it (before 4.5), all of its memory."""
    by_size = sorted(groups, key=lambda one: -(one.bytes if one.anonymous_bytes is None else one.anonymous_bytes))
    for one in by_size:
        amount = one.bytes if one.anonymous_bytes is None else one.anonymous_bytes
        yield one.name, amount, None, shell.command("opskit", "mem", one.pids[0])


def _of_shmem(facts: HostFacts) -> Iterator[tuple[str, int, str | None, str | None]]:
    rows: list[tuple[str, int, str]] = []
    for mount in facts.mounts.mounts:
        if mount.fs_type != HUGETLBFS and mount.used_bytes:
            where = "" if mount.pid is None else f" (in the mount namespace of {mount.pid})"
            rows.append((f"{mount.fs_type} {mount.mount_point}{where}", mount.used_bytes, FILES))
    for segment in facts.segments:
        if segment.rss_bytes and not is_on_huge_pages(facts, segment.rss_bytes):
            creator = facts.creators.get(segment.shmid)
            pid = segment.creator_pid
            whose = f"{creator} ({pid})" if creator is not None else f"{pid}, which has ended"
            rows.append((f"System V segment {segment.shmid} of {whose}", segment.rss_bytes, FILES))
    for shared in facts.shared:
        what = shared.name.removeprefix("/") if shared.name.startswith("/memfd:") else "shared anonymous memory"
        next_ = shell.command("opskit", "mem", shared.pid)
        rows.append((f"{what} of {shared.command} ({shared.pid})", shared.bytes, next_))
    for name, amount, next_ in sorted(rows, key=lambda row: -row[1]):
        yield name, amount, None, next_


def is_on_huge_pages(facts: HostFacts, amount: int) -> bool:
    """Whether a segment can only be one of reserved huge pages: there is not that much other shared memory."""
    return amount > facts.meminfo.get("Shmem", 0)


def _about(facts: HostFacts, part: Part, groups: Sequence[Group]) -> tuple[str | None, str | None]:
    """A note on a part of MemTotal, and the command for a closer look."""
    kind = part.kind
    note, next_ = _NOTES.get(kind), _NEXT.get(kind)
    if kind == "processes" and groups:
        next_ = shell.command("opskit", "mem", groups[0].pids[0])
    elif kind == "shmem":
        next_ = FILES
    elif kind == "huge-pages":
        unused = sum(pool.unused * pool.page_bytes for pool in facts.pools)
        note = f"{size(unused)} of it unused" if facts.pools else None
        next_ = _pool_next(facts.pools[0], groups) if facts.pools else _NEXT_HUGE
    elif kind == "page-tables":
        next_ = _largest_by(groups, "page_table_bytes", "mem")
    elif kind == "kernel-stacks":
        next_ = _largest_by(groups, "threads", "limits")
    elif kind in ("slab-reclaimable", "slab-unreclaimable") and facts.slabs:
        note = _about_slab(facts, part)
    elif kind == "unaccounted":
        note, next_ = _about_unaccounted(facts, part.bytes)
    return note, next_


def _about_slab(facts: HostFacts, part: Part) -> str | None:
    """Dentries and inodes; of the slab that stays the largest cache that may be a part of it."""
    caches = classify(facts.slabs or (), {}, facts.page_bytes)
    if part.kind == "slab-reclaimable":
        dentries, inodes = (sum(cache.size_bytes for cache in of_kind(caches, kind)) for kind in ("dentry", "inode"))
        return f"dentries {size(dentries)}, inodes {size(inodes)}"
    others = [
        cache
        for cache in of_kind(caches, "other")
        if cache.name not in _RECLAIMABLE and part.bytes >= cache.size_bytes >= part.bytes * _LARGE_CACHE
    ]
    return f"the largest cache: {others[0].name}, {size(others[0].size_bytes)}" if others else None


def _about_unaccounted(facts: HostFacts, amount: int) -> tuple[str, str]:
    sockets = facts.socket_bytes
    note = f"drivers; network buffers, {size(sockets)} at most" if sockets >= _WORTH_NAMING_BYTES else "drivers"
    if facts.has_allocinfo:
        return note, shell.command("sudo", "sort", "-rn", "/proc/allocinfo", shell.Syntax("|"), "head")
    return note, shell.command("ss", "-tm") if sockets * 2 >= amount > 0 else shell.command("lsmod")


def _largest_by(groups: Sequence[Group], name: str, command: str) -> str | None:
    most = max(groups, key=lambda one: getattr(one, name) or 0, default=None)
    return shell.command("opskit", command, most.pids[0]) if most and getattr(most, name) else None


def _pool_name(pool: HugePool) -> str:
    return f"huge pages of {short_size(pool.page_bytes)}"


def _pool_note(pool: HugePool) -> str | None:
    if pool.unused == pool.total:
        return "reserved, none in use"
    return f"{plural(pool.unused, 'page')} of {pool.total:,} unused" if pool.unused else "all in use"


def _pool_next(pool: HugePool, groups: Sequence[Group]) -> str | None:
    """Who uses them, or the command that gives unused ones back."""
    if pool.unused:
        return fewer_huge_pages(pool)
    return _largest_by(groups, "hugetlb_bytes", "mem") or _NEXT_HUGE


def fewer_huge_pages(pool: HugePool) -> str:
    """The command that leaves the pages in use or promised, and gives the others back."""
    kept = max(0, pool.total - pool.surplus - pool.unused)
    if pool.is_default:
        return shell.command("sysctl", f"vm.nr_hugepages={kept}")
    path = f"/sys/kernel/mm/hugepages/hugepages-{pool.page_bytes >> 10}kB/nr_hugepages"
    return shell.command("echo", kept, shell.Syntax(">"), path)


def _verdict(result: HostResult) -> Iterator[str]:
    total = size(result.total_bytes)
    if result.supply == "unknown":
        yield f"This kernel does not tell how much of {total} is available."
    else:
        words = {"ample": "Memory is not short: ", "short": "Memory is short: ", "some": ""}[result.supply]
        yield f"{words}{size(result.available_bytes)} of {total} are available."
    cache = next(
        (part for part in result.parts if part.kind == "page-cache" and part.share >= _LARGE_CACHE_SHARE), None
    )
    if cache is not None:
        yield f"The page cache takes {size(cache.bytes)} ({percent(cache.share)} of RAM), and goes first when memory is needed."
    named = [holder for holder in result.holders if holder.share >= NAMED_SHARE][:_MOST_NAMED]
    first = next(iter(result.holders), None)
    if named:
        then = f"; then {listed([_described(other) for other in named[1:]], _MOST_NAMED, '; ')}" if named[1:] else ""
        yield f"The largest holder is {_described(named[0])}{then}."
    elif first is not None:
        yield f"No holder takes more than {NAMED_SHARE * 100:.0f} % of it; the largest is {_described(first)}."
    # Processes outside of our PID namespace have none.
    following = next((holder.next for holder in result.holders if holder.next), None)
    if following is not None:
        yield f"Next: {following}"


def _described(holder: Holder) -> str:
    note = f", {holder.note}" if holder.note and holder.kind == "huge-pages" else ""
    return f"{holder.name}: {size(holder.bytes)} ({percent(holder.share)} of RAM{note})"


def _findings(result: HostResult) -> Iterator[Finding]:
    facts, total, state = result.facts, result.total_bytes, result.supply
    largest = result.holders[0] if result.holders else None
    if state == "short" and result.available_bytes is not None and largest is not None:
        yield Finding(
            "memory-short", "warning", HOST,
            f"{size(result.available_bytes)} of {size(total)} are available; {largest.name} holds the most, {size(largest.bytes)}",
            "/proc/meminfo: MemAvailable", next=largest.next, share=result.available_bytes / total,
        )  # fmt: skip
    for pool in facts.pools:
        unused = pool.unused * pool.page_bytes
        if unused >= max(total * _UNUSED_SHARE, _UNUSED_BYTES):
            yield Finding(
                "huge-pages-unused", "warning" if state == "short" else "note", HOST,
                f"{size(unused)} of reserved huge pages are unused, and no other memory can use them",
                f"hugepages-{pool.page_bytes >> 10}kB: {pool.total:,} pages, {pool.free:,} free, {pool.promised:,} promised",
                fix=fewer_huge_pages(pool), share=unused / total,
            )  # fmt: skip
    for holder in result.holders:
        if holder.kind == "shmem" and is_large(holder.bytes, total):
            yield Finding(
                "tmpfs-large", severity(state, holder.bytes, total), HOST,
                f"{holder.name} holds {size(holder.bytes)} of memory ({percent(holder.share)} of RAM)",
                "statvfs of each tmpfs, /proc/sysvipc/shm, /proc/PID/maps", next=FILES, share=holder.share,
            )  # fmt: skip
        if holder.kind == "unaccounted" and "AnonPages" in facts.meminfo and is_large(holder.bytes, total):
            yield Finding(
                "memory-unaccounted", severity(state, holder.bytes, total), HOST,
                f"{size(holder.bytes)} ({percent(holder.share)} of RAM) are in no line of /proc/meminfo: "
                "a driver, a balloon of the hypervisor, or network buffers hold them",
                "MemTotal less all that meminfo, huge pages and zram account for", next=holder.next, share=holder.share,
            )  # fmt: skip
