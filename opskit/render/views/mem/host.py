"""How the machine's memory is shown: by use, by process, by tmpfs mount and segment, huge pages."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.proc.tmpfs_mounts import HUGETLBFS
from opskit.quantities import size
from opskit.render.fields import COUNT, FLAG, ID, SHARE, SIZE, TEXT, Field, list_of, records
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.mem.host import Group, Holder, HostResult
    from opskit.proc.hugepages import HugePool
    from opskit.proc.tmpfs_mounts import TmpfsMount
    from opskit.render.report import About

DEFAULT_TOP = 10
_SHOWN_SHARE, _LISTED_SHARE = 0.001, 0.01  # of RAM: smaller uses are left out, and who holds less shared memory

USE: Sequence[Field[Holder]] = (
    Field("kind", help="free, page-cache, processes, shmem, huge-pages, slab-reclaimable, …, unaccounted"),
    Field("name", TEXT, "use"),
    Field("bytes", SIZE, "bytes"),
    Field("share", SHARE, "share of RAM", help="0 to 1"),
    Field("note", TEXT, "note"),
    Field("next", TEXT, "next", help="the command for a closer look", below=attrgetter("name")),
)
HOLDER: Sequence[Field[Holder]] = (
    Field("bytes", SIZE, "bytes"),
    Field("share", SHARE, "share of RAM", help="0 to 1"),
    Field("name", TEXT, "held by", shrinks=12),
    Field("kind"),
    Field("next"),
)
GROUP: Sequence[Field[Group]] = (
    Field("bytes", SIZE, "memory", help="PSS, or where is_proportional is false RSS"),
    Field("anonymous_bytes", SIZE, "anonymous", rank=2),
    Field("shmem_bytes", SIZE, "shared", rank=3, help="tmpfs, /dev/shm, memfd, System V"),
    Field("file_bytes", SIZE, "files", rank=6),
    Field("swap_bytes", SIZE, "swap", rank=4),
    Field("hugetlb_bytes", SIZE, "huge pages", rank=5),
    Field("page_table_bytes", SIZE),
    Field("threads", COUNT),
    Field("measure", TEXT, "by", lambda row: "PSS" if row.is_proportional else "RSS", json=False, rank=8),
    Field("is_proportional", FLAG, help="PSS: each page is divided by the processes that map it"),
    Field("processes", COUNT, "processes", lambda row: len(row.pids), rank=7),
    Field("pids", list_of(ID), value=lambda row: [*row.pids], help="the largest first"),
    Field("pid", ID, "pid", lambda row: row.pids[0], json=False),
    Field("command", TEXT, "command", shrinks=12),
    Field("owner", TEXT, "unit", help="the container, pod or systemd unit", shrinks=12, rank=1),
    Field("cgroup"),
)
_WHERE_USED = ("swap_bytes", "hugetlb_bytes")  # columns that most machines do not need
MOUNT: Sequence[Field[TmpfsMount]] = (
    Field("mount_point"),
    Field("fs_type"),
    Field("device", ID),
    Field("used_bytes", SIZE, help="swapped pages included; null: unknown"),
    Field("limit_bytes", SIZE, help="null: none, or unknown"),
    Field("pid", ID, help="a process of its mount namespace; null: opskit's own"),
    Field("is_hidden", FLAG, help="another mount is on top of it"),
)
POOL: Sequence[Field[HugePool]] = (
    Field("page_bytes", ID, "page size", show=size),
    Field("bytes", SIZE, "bytes"),
    Field("pages", COUNT, "pages", attrgetter("total"), help="of this size, used or not"),
    Field("free", COUNT, "free"),
    Field("promised", COUNT, "promised", help="of the free ones, to mappings that have not touched them"),
    Field("unused", COUNT, "unused", help="free and not promised"),
    Field("surplus", COUNT, "surplus"),
)
DOCUMENT: Sequence[Field[HostResult]] = (
    Field("total_bytes", SIZE, help="MemTotal"),
    Field("available_bytes", SIZE, help="MemAvailable, and what ZFS gives back of its ARC"),
    Field("supply", help="ample, some, short or unknown"),
    Field("swap_total_bytes", SIZE, value=lambda result: result.facts.meminfo.get("SwapTotal")),
    Field("swap_free_bytes", SIZE, value=lambda result: result.facts.meminfo.get("SwapFree")),
    Field(
        "uses",
        records(USE),
        value=attrgetter("parts"),
        help="the largest first, then page cache and free memory; their sum is MemTotal",
    ),
    Field(
        "holders", records(HOLDER), help="who is behind the uses, without free memory and page cache; the largest first"
    ),
    Field("processes", records(GROUP), value=attrgetter("groups"), help="by command and cgroup, the largest first"),
    Field("tmpfs", records(MOUNT), value=lambda result: [*tmpfs_mounts(result)]),
    Field("huge_pages", records(POOL), value=lambda result: [*result.facts.pools]),
)


def report(about: About, result: HostResult, top: int | None, *, is_text: bool) -> Report:
    """The uses, the largest groups of processes, who holds shared memory, the pools of huge pages. `top`: -n; 0 shows all."""
    limit = DEFAULT_TOP if top is None else top or None
    uses = [part for part in result.parts if is_text or top == 0 or part.share >= _SHOWN_SHARE]
    blocks: list[Block[Any]] = [Block(USE, uses, len(result.parts), "memory by use")]
    if result.groups:
        rows, title = result.groups[:limit], "processes by command and cgroup"
        fields = [field for field in GROUP if is_text or field.name not in _WHERE_USED or any(map(field.value, rows))]
        blocks.append(Block(fields, rows, len(result.groups), title, one_line=True, details=True))
    shared = [holder for holder in result.holders if holder.kind == "shmem"]
    if shared and (is_text or top == 0 or sum(holder.share for holder in shared) >= _LISTED_SHARE):
        blocks.append(
            Block(HOLDER, shared[:limit], len(shared), "tmpfs and shared memory", one_line=True, details=True)
        )
    if result.facts.pools:
        blocks.append(Block(POOL, result.facts.pools, len(result.facts.pools), "huge pages", details=True))
    return Report(
        about,
        blocks,
        result.verdict,
        result.facts.missing,
        summary=[*_swap(result)],
        findings=result.findings,
        document=(DOCUMENT, result),
    )


def _swap(result: HostResult) -> Iterator[str]:
    total = result.facts.meminfo.get("SwapTotal")
    if total:
        yield f"swap: {size(total - result.facts.meminfo.get('SwapFree', 0))} of {size(total)} used"
    elif total == 0:
        yield "no swap"


def tmpfs_mounts(result: HostResult) -> list[TmpfsMount]:
    """The tmpfs mounts without those of hugetlbfs, the largest first."""
    held = [mount for mount in result.facts.mounts.mounts if mount.fs_type != HUGETLBFS]
    return sorted(held, key=lambda mount: -(mount.used_bytes or 0))
