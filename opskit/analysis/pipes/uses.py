"""Who uses a pipe, who made it, and what is known about its ends. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.pipes.ranking import identity
from opskit.quantities import plural
from opskit.records import NamedTuple

_NAMED = 5

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opskit.collect.pipes import Facts
    from opskit.proc.pipe_fill import Fill
    from opskit.proc.pipe_scan import Holder
    from opskit.proc.process import Process


_UNDIRECTED = (0, 0, None)
PAGES_OF_A_NEW_PIPE = 16  # fs/pipe.c, PIPE_DEF_BUFFERS


class ProcessUse(NamedTuple):
    """One process's fds on one pipe. The directions are None where they were not looked at."""

    process: Process
    fds: int
    read_fds: int | None
    write_fds: int | None


class Pipe(NamedTuple):
    """One pipe or FIFO. `device` and `path` only for a FIFO. `end_class`: self, parent-child, cross-process, one-sided."""

    kind: str
    inode: int
    device: int | None
    path: str | None
    fds: int
    uses: tuple[ProcessUse, ...]
    end_class: str | None = None
    meaning: str | None = None
    fill: Fill | None = None
    verdict: str | None = None

    @property
    def name(self) -> str:
        """`pipe:[INODE]`, as the kernel writes it, or `fifo:[INODE] PATH`."""
        return f"{self.kind}:[{self.inode}]" + (f" {self.path}" if self.path else "")


def pipe_of(facts: Facts, row: tuple[int, int, bytes], uses: tuple[ProcessUse, ...], said: str | None) -> Pipe:
    """All that was asked about a pipe. `said`: the verdict on what is queued in it."""
    fds, inode, key = row
    kind, _, device = identity(key)
    path = facts.scan.fifo_paths.get(key)
    end_class, meaning = classify(uses, facts.in_flight, facts.scan.denied) if facts.ask.ends else (None, None)
    if not facts.ask.ends:  # --fill and --fifos see the directions in passing
        uses = tuple(ProcessUse(use.process, use.fds, None, None) for use in uses)
    name = None if path is None else path.decode("utf-8", "surrogateescape")
    return Pipe(kind, inode, device, name, fds, uses, end_class, meaning, facts.fills.get(key), said)


def uses_by_pipe(holders: Iterable[Holder], processes: Mapping[int, Process]) -> dict[bytes, tuple[ProcessUse, ...]]:
    """Per pipe: every process with its fds, most first. Tables that a thread has of its own count for its process."""
    uses: dict[bytes, list[ProcessUse]] = {}
    for holder in holders:
        process, ends = processes[holder.pid], holder.ends
        for key, count in holder.counts.items():
            read, write, _ = ends[key] if ends is not None else _UNDIRECTED
            use = ProcessUse(process, count, read, write) if read or write else ProcessUse(process, count, None, None)
            uses.setdefault(key, []).append(use)
    return {key: tuple(_merged(row)) if len(row) > 1 else tuple(row) for key, row in uses.items()}


def _merged(row: list[ProcessUse]) -> list[ProcessUse]:
    by_pid: dict[int, ProcessUse] = {}
    for use in row:
        known = by_pid.get(use.process.pid)
        if known is not None:  # a thread with a table of its own
            read, write = (None if a is None or b is None else a + b for a, b in zip(known[2:], use[2:]))
            use = ProcessUse(use.process, known.fds + use.fds, read, write)
        by_pid[use.process.pid] = use
    return sorted(by_pid.values(), key=lambda use: (-use.fds, use.process.pid))


def classify(uses: Sequence[ProcessUse], in_flight: Mapping[int, int], denied: Sequence[int]) -> tuple[str, str | None]:
    """The class of a pipe's ends and, for a one-sided one, what that means for the side that is left."""
    if any(use.read_fds is None for use in uses):
        return "unknown", "which end is which is not known: a captured tree without fdinfo"
    readers = sum(use.read_fds or 0 for use in uses)
    writers = sum(use.write_fds or 0 for use in uses)
    if not readers or not writers:
        return "one-sided", _one_sided(bool(readers), in_flight, denied)
    if len(uses) == 1:
        return "self", None
    return ("parent-child" if _one_family([use.process for use in uses]) else "cross-process"), None


def hidden_processes(denied: Sequence[int]) -> str:
    """`4711 could not be read`, or how many."""
    named = ", ".join(map(str, denied)) if len(denied) <= _NAMED else plural(len(denied), "process", "processes")
    return f"{named} could not be read"


def _one_sided(read_end_is_left: bool, in_flight: Mapping[int, int], denied: Sequence[int]) -> str:
    missing, effect = "no read end", "write() fails with EPIPE"
    if read_end_is_left:
        missing, effect = "no write end", "read() returns end of file once it is empty"
    if in_flight:
        where = ", ".join(f"{count} in sockets of {pid}" for pid, count in sorted(in_flight.items()))
        return f"{missing} in any fd table, but fds are in flight ({where}): it may be among them; if not, {effect}"
    if denied:
        return f"{missing} was seen, but {hidden_processes(denied)} and may hold it; if not, {effect}"
    return f"{missing} is left: {effect}"


def _one_family(processes: Sequence[Process]) -> bool:
    """Whether all but one descend from another of them."""
    pids = {process.pid for process in processes}
    return sum(process.ppid in pids for process in processes) == len(pids) - 1


class OwnerUse(NamedTuple):
    """A user's pipes against fs.pipe-user-pages-soft. `capacity_bytes` sums what could be seen.

    `shrunk`: "yes" (new pipes of this user get 8 KiB), "no", "exempt" (root) or "unknown".
    """

    user: str
    uid: int
    pipes: int
    fds: int
    capacity_bytes: int | None
    soft_limit_bytes: int | None
    shrunk: str


def owners(
    pipes: Iterable[Pipe], user_name: Callable[[int], str], soft_pages: int | None, page_bytes: int
) -> list[OwnerUse]:
    """Per user who made them: pipes, fds, capacity, and whether the kernel already shrinks this user's new pipes."""
    groups: dict[int, list[Pipe]] = {}
    for pipe in pipes:
        uid = pipe.fill.uid if pipe.fill and pipe.fill.uid is not None else pipe.uses[0].process.uid
        groups.setdefault(-1 if uid is None else uid, []).append(pipe)
    rows = []
    for uid, members in groups.items():
        sizes = [pipe.fill.capacity_bytes for pipe in members if pipe.fill and pipe.fill.capacity_bytes is not None]
        capacity = sum(sizes) if sizes else None
        complete = len(sizes) == len(members)
        user, fds = "unknown" if uid < 0 else user_name(uid), sum(pipe.fds for pipe in members)
        limit = soft_pages * page_bytes if soft_pages else None
        shrunk = _shrunk(uid, capacity, complete, soft_pages, page_bytes)
        rows.append(OwnerUse(user, uid, len(members), fds, capacity, limit, shrunk))
    return sorted(rows, key=lambda row: (-row.fds, row.uid))


def _shrunk(uid: int, capacity: int | None, complete: bool, soft_pages: int | None, page_bytes: int) -> str:
    # fs/pipe.c, alloc_pipe_info: the user's pages, with those of the new pipe, against the soft limit; root is exempt.
    if uid == 0:
        return "exempt"
    if soft_pages == 0:
        return "no"
    if capacity is None or soft_pages is None or uid < 0:
        return "unknown"
    if capacity // page_bytes + PAGES_OF_A_NEW_PIPE > soft_pages:
        return "yes"
    return "no" if complete else "unknown"
