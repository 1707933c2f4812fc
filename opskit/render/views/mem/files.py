"""How files that hold memory are shown."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from opskit.analysis.mem.files import KINDS
from opskit.quantities import listed, plural
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SIZE, TEXT, Field, map_of, records
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.mem.files import FileResult, FileRow
    from opskit.collect.mem.files import FileHolder
    from opskit.render.report import About

DEFAULT_TOP = 20
_MOST_HOLDERS = 2  # of a file in a table; json has all

HOLDER: Sequence[Field[FileHolder]] = (
    Field("pid", ID, help="null: the kernel, for a loop device"),
    Field("command"),
    Field("unit", help="the container, pod or systemd unit"),
    Field("mapped", FLAG),
    Field("fds", COUNT, help="open file descriptors"),
)
_SWAP: Field[FileRow] = Field("swapped_bytes", SIZE, "swap", attrgetter("file.swapped_bytes"), rank=1)
FILE: Sequence[Field[FileRow]] = (
    Field("resident_bytes", SIZE, "memory", attrgetter("file.resident_bytes"), help="in memory; swapped pages count where swapped_bytes is null"),
    _SWAP,
    Field("size_bytes", SIZE, "size", attrgetter("file.size_bytes"), rank=3),
    Field("disk_bytes", SIZE, value=attrgetter("file.disk_bytes"), help="of a deleted file: what it still takes on its disk"),
    Field("kind", TEXT, "kind", attrgetter("file.kind"), show=lambda kind: KINDS[kind], help=", ".join(KINDS)),
    Field("name", TEXT, "file", shrinks=20),
    Field("deleted", FLAG, value=attrgetter("file.deleted")),
    Field("path", value=attrgetter("file.path")),
    Field("device", ID, value=attrgetter("file.device")),
    Field("inode", ID, value=attrgetter("file.inode"), help="of a System V segment its shmid"),
    Field("mount", value=attrgetter("file.mount"), help="the tmpfs mount"),
    Field("mount_pid", ID, value=attrgetter("file.mount_pid"), help="a process that sees the path; null: opskit sees it"),
    Field("user", TEXT, "user", attrgetter("file.user"), rank=2),
    Field("creator_pid", ID, value=attrgetter("file.creator_pid"), help="of a System V segment; it may have ended"),
    Field("creator", value=attrgetter("file.creator"), help="null: it has ended, or is unknown"),
    Field("changed_s", NUMBER, value=attrgetter("file.changed_s"), help="ctime, since 1970"),
    Field("unheld", FLAG, help="no process has it mapped or open; null: not all processes could be read"),
    Field("holders", records(HOLDER), value=lambda row: [*row.file.holders]),
    Field("held_by", TEXT, "held by", lambda row: _held_by(row), json=False, shrinks=20),
)  # fmt: skip
DOCUMENT: Sequence[Field[FileResult]] = (
    Field("files", records(FILE), value=attrgetter("rows"), help="the largest first"),
    Field("bytes_by_kind", map_of(SIZE), value=attrgetter("by_kind")),
    Field("complete", FLAG, value=attrgetter("facts.complete"), help="whether every process could be read"),
)


def report(about: About, result: FileResult, top: int | None, *, is_text: bool) -> Report:
    """The files, the largest first. `top`: -n; 0 shows all, empty files too, as text for grep does."""
    limit = (None if is_text else DEFAULT_TOP) if top is None else top or None
    rows = [
        row
        for row in result.rows
        if top == 0 or is_text or row.bytes or row.file.disk_bytes or row.file.resident_bytes is None
    ]
    is_swapped = is_text or any(row.file.swapped_bytes for row in rows)
    fields = [field for field in FILE if is_swapped or field is not _SWAP]
    blocks = [Block(fields, rows[:limit], len(result.rows), one_line=True)] if rows else []
    return Report(
        about, blocks, result.verdict, result.facts.missing, findings=result.findings, document=(DOCUMENT, result)
    )


def _held_by(row: FileRow) -> str:
    """`java (4242) mapped, 2 fds; …`, `no process`, `created by 812 (ended), no process`."""
    file = row.file
    holders = [_holder(holder) for holder in file.holders]
    if holders:
        return listed(holders, _MOST_HOLDERS, "; ")
    creator = f"; created by {file.creator_pid} ({file.creator or 'ended'})" if file.creator_pid else ""
    return (
        "unknown" if row.unheld is None else "no process" if row.unheld else "processes that could not be read"
    ) + creator


def _holder(holder: FileHolder) -> str:
    """`java (4242) mapped, 2 fds, in orders.service`."""
    fds = plural(holder.fds, "fd") if holder.fds else ""
    unit = f"in {holder.unit}" if holder.unit else ""
    if holder.pid is None:
        return holder.command
    return f"{holder.command} ({holder.pid}) " + ", ".join(filter(None, ("mapped" if holder.mapped else "", fds, unit)))
