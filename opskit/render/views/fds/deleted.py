"""How deleted files that are still held are shown: by file system, in memory, and memory that nobody holds."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.analysis.fds.deleted import advice
from opskit.quantities import listed, percent, plural, size
from opskit.records import NamedTuple
from opskit.render.fields import COUNT, FLAG, ID, SHARE, SIZE, TEXT, Field, list_of, records, sheet
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.fds.result import DeletedResult
    from opskit.collect.fds.facts import DeletedFacts, DeletedFile, DeletedHolder, FileSystem, Unattached
    from opskit.render.report import About

DEFAULT_TOP = 20
_MOST_HOLDERS, _MOST_FDS, _MOST_FILES, _MOST_SYSTEMS = 2, 3, 2, 2  # in a sentence or a cell; json has all
_NEARLY_FULL = 0.9
_LITTLE_BYTES, _LARGE_IN_MEMORY_BYTES = 1 << 20, 16 << 20
HELD, UNHELD = "deleted-files-held", "shared-memory-unheld"  # findings, which say what is left out here
_KINDS = {"sysv": "System V", "shm": "/dev/shm"}  # noqa: S108  (a title)
MEMORY = "memory"  # the place of memfds and of deleted files of tmpfs
NOT_MOUNTED = "a file system that is not mounted"
_LITTLE = ("deleted files that take little are not shown; -v shows all",)


class Row(NamedTuple):
    """A deleted file and its place: a mount point, or memory."""

    place: str
    file: DeletedFile


def rows_of(facts: DeletedFacts) -> list[Row]:
    """All deleted files that are held, the largest first."""
    rows = [Row(place_of(system), file) for system in facts.systems for file in system.files]
    rows += [Row(MEMORY, file) for file in facts.memory]
    return sorted(rows, key=lambda row: (-(row.file.bytes or 0), row.file.path))


def place_of(system: FileSystem) -> str:
    """Its mount point, or that it has none."""
    return system.mount or NOT_MOUNTED


def used(system: FileSystem) -> float | None:
    """How full it is, 0 to 1."""
    if not system.size_bytes or system.free_bytes is None:
        return None
    return 1 - system.free_bytes / system.size_bytes


def used_inodes(system: FileSystem) -> float | None:
    """The same of its inodes; None where it does not count them."""
    if not system.inodes or system.free_inodes is None:
        return None
    return 1 - system.free_inodes / system.inodes


def held_bytes(system: FileSystem) -> int:
    """Of its deleted files."""
    return sum(file.bytes or 0 for file in system.files)


HOLDER: Sequence[Field[DeletedHolder]] = (
    Field("pid", ID, value=attrgetter("process.pid")),
    Field("start_ticks", ID, value=attrgetter("process.start_ticks")),
    Field("command", value=attrgetter("process.command")),
    Field("user", value=attrgetter("process.user")),
    Field("unit", help="the container, pod or systemd unit"),
    Field("fds", list_of(ID), value=lambda holder: [*holder.fds]),
    Field("mapped", FLAG),
    Field("appending_fd", ID, help="an fd opened O_WRONLY|O_APPEND: only through such a one the file may be truncated"),
)
FILE: Sequence[Field[Row]] = (
    Field(
        "bytes",
        SIZE,
        "bytes",
        attrgetter("file.bytes"),
        help="its blocks, which are free when it is closed; null: unknown",
    ),
    Field("size_bytes", SIZE, "size", attrgetter("file.size_bytes"), help="its apparent size", rank=3),
    Field("place", TEXT, "file system", help="the mount point; memory: a memfd, or a deleted file of tmpfs", rank=2),
    Field("device", ID, value=attrgetter("file.device")),
    Field("inode", ID, value=attrgetter("file.inode")),
    Field("regular", FLAG, value=attrgetter("file.is_regular"), help="a regular file"),
    Field("holders", records(HOLDER), value=lambda row: [*row.file.holders]),
    Field("held_by", TEXT, "held by", lambda row: _holders(row.file), json=False, shrinks=20),
    Field("path", TEXT, "deleted file", attrgetter("file.path"), shrinks=20),
)
SYSTEM: Sequence[Field[FileSystem]] = (
    Field("deleted_bytes", SIZE, "held deleted", held_bytes, help="of its deleted files that are held"),
    Field("deleted_files", COUNT, "files", lambda system: len(system.files), rank=4),
    Field("used_share", SHARE, "used", used, help="0 to 1", show=lambda share: "" if share is None else percent(share)),
    Field("size_bytes", SIZE, "size", rank=3),
    Field("free_bytes", SIZE, "free", help="for users without rights"),
    Field("inodes_used_share", SHARE, "inodes used", used_inodes, help="0 to 1; null: it does not count them",
          show=lambda share: "" if share is None else percent(share), rank=1),
    Field("inodes", COUNT),
    Field("free_inodes", COUNT, help="null: it does not count them"),
    Field("type", TEXT, "type", rank=2),
    Field("device", ID),
    Field("mount", TEXT, "mount point", place_of, shrinks=12),
)  # fmt: skip
UNATTACHED: Sequence[Field[Unattached]] = (
    Field("bytes", SIZE, "bytes"),
    Field("kind", TEXT, "kind", show=lambda kind: _KINDS.get(kind, kind), help="sysv, shm"),
    Field("name", TEXT, "name", shrinks=16),
    Field("remove", TEXT, "remove", help="the command that removes it", below=attrgetter("name")),
)  # fmt: skip
IN_FLIGHT: Sequence[Field[tuple[int, int]]] = (
    Field("pid", ID, value=lambda each: each[0], help="whose unix sockets hold them"),
    Field("fds", COUNT, value=lambda each: each[1]),
)
DOCUMENT: Sequence[Field[DeletedResult]] = (
    Field("deleted_files", records(FILE), value=lambda it: rows_of(it.facts), help="deleted and held, the largest first"),
    Field("file_systems", records(SYSTEM), value=lambda it: [*it.facts.systems], help="the local ones"),
    Field("unattached", records(UNATTACHED), value=lambda it: [*it.facts.unattached], help="memory that no process holds"),
    Field("in_flight", records(IN_FLIGHT), value=lambda it: [*it.facts.in_flight], help="fds in the queues of unix sockets, whose files are not seen"),
    Field("remote_fds_skipped", COUNT, value=attrgetter("facts.skipped_remote"), help="fds on network file systems"),
    Field("all_processes_read", FLAG, value=attrgetter("facts.complete")),
)  # fmt: skip


def report(about: About, result: DeletedResult, top: int | None, *, is_text: bool) -> Report:
    """The files, the largest first; the file systems that matter; memory that nobody holds. `top`: -n; 0 shows all."""
    facts, limit = result.facts, (None if is_text else DEFAULT_TOP) if top is None else top or None
    rows, every = rows_of(facts), is_text or top == 0
    blocks: list[Block[Any]] = []
    listed_rows = [row for row in rows if every or row.file.bytes != 0]
    is_little = bool(listed_rows) and not every and facts.of_pid is None and _is_little(result)
    if listed_rows and not is_little:
        title = "deleted files that are held"
        is_told = bool(result.findings)  # which name the largest
        blocks.append(Block(FILE, listed_rows[:limit], len(rows), title, one_line=True, details=is_told))
    systems = sorted(facts.systems, key=lambda system: (-held_bytes(system), -_fullest(system), system.mount))
    shown = [system for system in systems if every or held_bytes(system) or _fullest(system) >= _NEARLY_FULL]
    if shown:
        blocks.append(Block(SYSTEM, shown, len(shown), "file systems", one_line=True, details=True))
    left = sorted(facts.unattached, key=lambda each: (-each.bytes, each.name))
    if left:
        blocks.append(Block(UNATTACHED, left[:limit], len(left), "memory that no process holds", details=True))
    return Report(
        about,
        blocks,
        verdict=[*verdict(result)],
        footer=[*_advice(result), *(_LITTLE if is_little else ()), *_unseen(facts)],
        findings=result.findings,
        sheet=lambda: sheet([field for field in FILE if field.name != "holders"], rows),
    )


def _is_little(result: DeletedResult) -> bool:
    """Whether no file system, nor the memory, would get back what matters."""
    in_memory = sum(file.bytes or 0 for file in result.facts.memory)
    large = any(held_bytes(system) >= _LITTLE_BYTES for system in result.facts.systems)
    return not (large or in_memory >= _LARGE_IN_MEMORY_BYTES or result.findings)


def _fullest(system: FileSystem) -> float:
    return max(used(system) or 0.0, used_inodes(system) or 0.0)


def verdict(result: DeletedResult) -> Iterator[str]:
    """What each file system would get back, the largest first; what is in memory; what nobody holds. Findings are not repeated."""
    facts, told = result.facts, {each.entity.id for each in result.findings if each.code == HELD}
    codes = {each.code for each in result.findings}
    holding = sorted((each for each in facts.systems if held_bytes(each)), key=lambda each: -held_bytes(each))
    large = [each for each in holding if held_bytes(each) >= _LITTLE_BYTES]
    for system in large[:_MOST_SYSTEMS]:
        held = (
            f"{size(held_bytes(system))} of {place_of(system)} {_are(system.files)} deleted but held{_fullness(system)}"
        )
        yield f"{held}." if (system.mount or None) in told else f"{held}: {_by_holder(system.files)}."
    if large[_MOST_SYSTEMS:]:
        rest = large[_MOST_SYSTEMS:]
        yield f"{size(sum(map(held_bytes, rest)))} of {plural(len(rest), 'other file system')} are deleted but held."
    in_memory = sum(file.bytes or 0 for file in facts.memory)
    if in_memory >= _LARGE_IN_MEMORY_BYTES:
        yield f"{size(in_memory)} of memory {_are(facts.memory)} in memfds and deleted files of tmpfs: {_by_holder(facts.memory)}."
    seen = "" if facts.complete else " that could be seen"
    if facts.of_pid is not None:
        seen = f" of {facts.of_pid}"
    if holding and not large:
        yield f"Deleted files{seen} take little of the local file systems: {size(sum(map(held_bytes, holding)))}."
    elif not holding:
        where = f" on {plural(len(facts.systems), 'local file system')}" if facts.systems else ""
        yield f"No deleted file{seen} takes space{where}."
    left = sum(each.bytes for each in facts.unattached)
    if left >= _LITTLE_BYTES and UNHELD not in codes:
        yield f"{size(left)} of shared memory is held by no process ({plural(len(facts.unattached), 'segment or file', 'segments or files')})."


def _advice(result: DeletedResult) -> Iterator[str]:
    """What gives the space of the largest file back, where no finding says it."""
    told = {each.entity.id for each in result.findings if each.code == HELD}
    systems = [each for each in result.facts.systems if (each.mount or None) not in told]
    files = [file for each in systems if held_bytes(each) >= _LITTLE_BYTES for file in each.files if file.holders]
    if files:
        largest = max(files, key=lambda file: file.bytes or 0)
        yield f"space of {largest.path}: {advice(largest)}"


def _fullness(system: FileSystem) -> str:
    """` (96 % used, 40.0 MiB free)`; empty where it is unknown."""
    share = used(system)
    return "" if share is None else f" ({percent(share)} used, {size(system.free_bytes)} free)"


def _are(files: Sequence[DeletedFile]) -> str:
    return "is" if len(files) == 1 else "are"


def _by_holder(files: Sequence[DeletedFile]) -> str:
    """`8709 (python3) 200 MiB fd 3 /var/log/x; 812 (java) 50 MiB mapped /tmp/y`."""
    largest = sorted(files, key=lambda file: -(file.bytes or 0))
    return listed([f"{_first_holder(file)} {file.path}" for file in largest], _MOST_FILES, "; ")


def _first_holder(file: DeletedFile) -> str:
    amount = "unknown size" if file.bytes is None else size(file.bytes)
    if not file.holders:
        return amount
    holder = file.holders[0]
    others = f" and {plural(len(file.holders) - 1, 'other process', 'other processes')}" if file.holders[1:] else ""
    return f"{holder.process.pid} ({holder.process.command}){others} {amount} {_how(holder)}"


def _how(holder: DeletedHolder) -> str:
    """`fd 3, 5, mapped`."""
    fds = listed([str(fd) for fd in holder.fds], _MOST_FDS)
    return ", ".join(filter(None, (f"fd {fds}" if fds else "", "mapped" if holder.mapped else "")))


def _holders(file: DeletedFile) -> str:
    """`java (4242) fd 3, in orders.service; …`."""
    held = [
        f"{each.process.command} ({each.process.pid}) {_how(each)}" + (f", in {each.unit}" if each.unit else "")
        for each in file.holders
    ]
    return listed(held, _MOST_HOLDERS, "; ")


def _unseen(facts: DeletedFacts) -> Iterator[str]:
    """What was not looked at, and what cannot be seen."""
    if facts.in_flight:
        fds, pids = sum(count for _, count in facts.in_flight), [str(pid) for pid, _ in facts.in_flight]
        yield f"{plural(fds, 'file descriptor')} in flight over unix sockets of {listed(pids, _MOST_FDS)}: their files cannot be seen"
    yield from facts.missing
