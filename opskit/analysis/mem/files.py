"""Which files hold memory, and which of them nobody uses. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.analysis.mem.machine import available, is_large, severity, supply
from opskit.proc.memory_files import DELETED, HUGE_PAGES, MEMFD, SHARED_ANONYMOUS, SYSV, TMPFS
from opskit.proc.tmpfs_mounts import is_for_sharing
from opskit.quantities import listed, plural, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.collect.mem.files import FileFacts, FileHolder, HeldMemory

_LARGE_ON_DISK_BYTES = 512 << 20
_WORTH_A_SENTENCE_BYTES = 1 << 20
_UNHELD_BYTES = 16 << 20  # less without a holder is listed, and no finding
KINDS = {
    TMPFS: "tmpfs",
    MEMFD: "memfd",
    SYSV: "System V",
    SHARED_ANONYMOUS: "shared anonymous",
    HUGE_PAGES: "huge pages",
    DELETED: "deleted",
}


class FileRow(NamedTuple):
    """A file, its name for people, and whether no process has it mapped or open; `unheld` None: not all processes could be read."""

    file: HeldMemory
    name: str
    unheld: bool | None

    @property
    def bytes(self) -> int:
        """What it holds in memory and swap, 0 where that is unknown."""
        return (self.file.resident_bytes or 0) + (self.file.swapped_bytes or 0)


class FileResult(NamedTuple):
    """The answer: the files by their memory and swap, the largest first. `by_kind`: bytes of each kind."""

    facts: FileFacts
    rows: Sequence[FileRow]
    by_kind: dict[str, int]
    verdict: Sequence[str]
    findings: Sequence[Finding]


def judge_files(facts: FileFacts) -> FileResult:
    """Judge one look."""
    rows = [FileRow(file, name_of(file), _is_unheld(facts, file)) for file in facts.files]
    rows.sort(key=lambda row: (-row.bytes, -(row.file.disk_bytes or 0), row.name))
    by_kind: dict[str, int] = {}
    for row in rows:
        by_kind[row.file.kind] = by_kind.get(row.file.kind, 0) + row.bytes
    return FileResult(facts, rows, by_kind, [*_verdict(facts, rows, by_kind)], [*_findings(facts, rows)])


def name_of(file: HeldMemory) -> str:
    """The path, through /proc where it is in another mount namespace, `memfd:NAME`, `System V segment 3`, `shared anonymous memory`."""
    if file.path.startswith("/SYSV") and (file.kind == SYSV or file.attached is not None):
        return f"System V segment {file.inode}"
    if file.kind == SHARED_ANONYMOUS and file.path == "/dev/zero":
        return "shared anonymous memory"
    return file.path.removeprefix("/") if file.path.startswith("/memfd:") else file.reached_at or file.path


def _is_unheld(facts: FileFacts, file: HeldMemory) -> bool | None:
    if file.holders or file.attached:
        return False
    return True if facts.complete or file.attached == 0 else None


def left_behind(row: FileRow) -> bool:
    """Whether a process is likely to have left it: nobody holds it, and its place is for memory that processes share."""
    file = row.file
    is_place = is_for_sharing(file.mount) or file.kind in (SYSV, HUGE_PAGES)
    return bool(row.unheld) and is_place and not file.deleted


def holder_name(holder: FileHolder) -> str:
    """`java (4242) in orders.service`; `loop0` for a loop device."""
    return (
        holder.command
        + (f" ({holder.pid})" if holder.pid is not None else "")
        + (f" in {holder.unit}" if holder.unit else "")
    )


def _verdict(facts: FileFacts, rows: Sequence[FileRow], by_kind: dict[str, int]) -> Iterator[str]:
    total = sum(by_kind.values())
    whose = f" of {' and '.join(map(str, facts.pids))}" if facts.pids else ""
    if not total:
        files = "tmpfs file, memfd, System V segment or deleted file"
        if facts.whole or facts.pids:
            yield f"No files{whose} take memory: no {files}."
        else:
            yield f"No files that take memory were found: no {files} that could be seen."
        return
    kinds = sorted(by_kind, key=lambda kind: -by_kind[kind])
    shares = [f"{KINDS[kind]} {size(by_kind[kind])}" for kind in kinds if by_kind[kind]]
    what = "memory and swap" if any(row.file.swapped_bytes for row in rows) else "memory"
    yield f"Files{whose} hold {size(total)} of {what}: {', '.join(shares)}."
    first = rows[0]
    yield f"The largest is {first.name}: {size(first.bytes)}, {_held_by(facts, first)}."
    left = [row for row in rows if left_behind(row) and row.bytes]
    nobody = nobody_of(facts)
    amount = sum(row.bytes for row in left)
    if amount >= _WORTH_A_SENTENCE_BYTES:
        others = (
            f"; the largest is {left[0].name} ({size(left[0].bytes)})" if left[0] is not first or len(left) > 1 else ""
        )
        yield f"{plural(len(left), 'file')} with {size(amount)} {'is' if len(left) == 1 else 'are'} held by {nobody}{others}."
    on_disk = sum(row.file.disk_bytes or 0 for row in rows)
    if on_disk >= _LARGE_ON_DISK_BYTES:
        yield f"Deleted files that processes still hold take {size(on_disk)} of disk: opskit fds --deleted."


def nobody_of(facts: FileFacts) -> str:
    """Who does not hold a file: processes outside of our PID namespace are not seen."""
    return "no process of this PID namespace" if facts.is_namespace else "no process"


def _held_by(facts: FileFacts, row: FileRow) -> str:
    if row.unheld is None:
        return "holders unknown"
    if row.unheld:
        return f"held by {nobody_of(facts)}"
    if not row.file.holders:
        return f"mapped {plural(row.file.attached or 0, 'time')} by processes that could not be read"
    return f"held by {listed([holder_name(holder) for holder in row.file.holders], 2)}"


def _findings(facts: FileFacts, rows: Sequence[FileRow]) -> Iterator[Finding]:
    total = facts.meminfo.get("MemTotal", 0)
    state = supply(available(facts.meminfo), total) if total else "unknown"
    left = [row for row in rows if left_behind(row) and row.bytes]
    amount = sum(row.bytes for row in left)
    if amount >= _UNHELD_BYTES:
        yield Finding(
            "shared-memory-unheld", severity(state, amount, total), _entity(left[0]),
            f"{nobody_of(facts)} holds {size(amount)} of shared memory ({_names(left)}): "
            "a process that ended has left it, or one keeps data there",
            "nobody has it mapped or open (/proc/PID/maps, /proc/PID/fd)",
            fix=None if facts.is_namespace else remove_command(left[0]),
            share=amount / total if total else None,
        )  # fmt: skip
    deleted = [row for row in rows if row.file.deleted and row.file.kind == TMPFS]
    amount = sum(row.bytes for row in deleted)
    if is_large(amount, total):
        holder = next((one for one in deleted[0].file.holders if one.pid is not None), None)
        yield Finding(
            "deleted-files-in-memory", severity(state, amount, total), _entity(deleted[0]),
            f"deleted files of tmpfs hold {size(amount)} until their processes close them ({_names(deleted)})",
            "/proc/PID/maps, /proc/PID/fd", next=shell.command("opskit", "mem", holder.pid) if holder else None,
            share=amount / total if total else None,
        )  # fmt: skip


def _names(rows: Sequence[FileRow]) -> str:
    return listed([f"{size(row.bytes)} in {row.name}" for row in rows], 2)


def _entity(row: FileRow) -> Entity:
    return Entity("file", row.name, inside=HOST)


def remove_command(row: FileRow) -> str | None:
    """What removes a file that nobody needs; through /proc where it is in another mount namespace."""
    file = row.file
    if file.path.startswith("/SYSV"):
        return shell.command("ipcrm", "-m", file.inode)
    return shell.command("rm", file.reached_at or file.path)
