"""Pipes: their processes, one-sided and full ones, deadlocks among them, and processes that keep gaining them. Pure."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from opskit import shell
from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.slope import slope
from opskit.errors import BadInput
from opskit.proc.files.fd import PIPE_PREFIX
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opskit.collect.pipes import Facts, Sample
    from opskit.proc.pipe_fill import Fill
    from opskit.proc.pipe_scan import Holder
    from opskit.proc.process import Process

_NOT_LOOKED_AT = "was not looked at: add --ends"
PAGES_OF_A_NEW_PIPE = 16  # fs/pipe.c, PIPE_DEF_BUFFERS
_A_TREND = 5  # samples; with fewer a burst of connections looks like a leak
_MOSTLY = 0.8  # of the steps between them


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


class Gain(NamedTuple):
    """A process that has more pipes than when it was first seen, and how fast it gains them.

    `started_s`: seconds from the epoch; None where the boot time is not known.
    """

    pid: int
    start_ticks: int
    started_s: float | None
    command: str
    pipes_first: int
    pipes_last: int
    pipes_per_min: float
    is_steady: bool


class Result(NamedTuple):
    """What a look says. `rows`: (fds, inode, key) of each pipe; `pipes`: all about the same ones, where processes were looked at.

    `owners` None: not asked for; `gains` None: not a watch.
    """

    facts: Facts
    rows: list[tuple[int, int, bytes]]
    pipes: list[Pipe]
    owners: list[OwnerUse] | None
    gains: list[Gain] | None
    findings: list[Finding]

    @property
    def fifo_count(self) -> int:
        """Named FIFOs among the pipes."""
        return len(self.facts.scan.fifo_paths)

    @property
    def pipe_count(self) -> int:
        """Anonymous pipes."""
        return len(self.rows) - self.fifo_count

    @property
    def fd_count(self) -> int:
        """All fds on them."""
        return sum(fds for fds, _, _ in self.rows)


def judge(facts: Facts, sort: str = "fds") -> Result:
    """Rank the pipes by fds or inode, class their ends, and look for what is stuck or grows. Raises BadInput for `pipe:[x]`."""
    totals = total_fds(facts.scan.holders)
    rows = ranked(totals, sort)
    found: list[Finding] = []
    pipes: list[Pipe] = []
    if facts.ask.people:
        uses = uses_by_pipe(facts.holders, facts.people)
        stuck = deadlocked(facts, uses)
        verdicts = {key: verdict(facts, key, uses[key]) for key in facts.fills} if facts.ask.fill else {}
        pipes = [_pipe(facts, row, uses[row[2]], verdicts.get(row[2])) for row in rows]
        found = [
            _full(facts, key, text, is_deadlock=key in stuck)
            for key, text in verdicts.items()
            if text and text[:4] == "full"
        ]
    gained = gains(facts.samples, facts.boot_s, facts.clock_ticks) if facts.samples else None
    found += [_growing(gain, facts.samples) for gain in gained or () if gain.is_steady]
    owner_uses = None
    if facts.ask.owners:
        owner_uses = owners(pipes, facts.user_name, facts.soft_pages, facts.page_bytes)
    return Result(facts, rows, pipes, owner_uses, gained, most_severe_first(found))


def _pipe(facts: Facts, row: tuple[int, int, bytes], uses: tuple[ProcessUse, ...], said: str | None) -> Pipe:
    fds, inode, key = row
    kind, _, device = identity(key)
    path = facts.scan.fifo_paths.get(key)
    end_class, meaning = classify(uses, facts.in_flight, len(facts.scan.denied)) if facts.ask.ends else (None, None)
    if not facts.ask.ends:  # --fill and --fifos see the directions in passing
        uses = tuple(ProcessUse(use.process, use.fds, None, None) for use in uses)
    name = None if path is None else path.decode("utf-8", "surrogateescape")
    return Pipe(kind, inode, device, name, fds, uses, end_class, meaning, facts.fills.get(key), said)


def _full(facts: Facts, key: bytes, said: str, *, is_deadlock: bool) -> Finding:
    kind, inode, _ = identity(key)
    writers = sorted({entry.pid for entry in facts.blocked if entry.key == key})
    entity = Entity("pipe", f"{kind}:[{inode}]")
    evidence = "/proc/PID/task/TID/syscall, FIONREAD"
    next_ = shell.command("opskit", "pipes", *writers, "--ends", "--fill") if writers else None
    if is_deadlock:
        summary = f"deadlock: {said}, and each of them is blocked on a full pipe that only the others read"
        return Finding("pipe-deadlock", "error", entity, summary, evidence, next=next_)
    stuck = facts.all_seen and said.endswith("is not draining")
    return Finding("pipe-full-writer-blocked", "warning" if stuck else "note", entity, said, evidence, next=next_)


def _growing(gain: Gain, samples: Sequence[Sample]) -> Finding:
    return Finding(
        "pipes-keep-growing",
        "warning",
        Entity("process", gain.pid, gain.start_ticks),
        f"{gain.command} keeps gaining pipes: {gain.pipes_first} to {gain.pipes_last}, {gain.pipes_per_min:+.1f} a minute",
        f"{len(samples)} samples of /proc/{gain.pid}/fd",
        next=shell.command("opskit", "pipes", gain.pid, "--ends"),
        window_s=round(samples[-1].at_s - samples[0].at_s, 3),
    )


def deadlocked(facts: Facts, uses: Mapping[bytes, Sequence[ProcessUse]]) -> set[bytes]:
    """The full pipes whose readers are all blocked, with every thread, in writes to such pipes: none of them can ever drain.

    Empty where some process was not looked at: it may hold another read end.
    """
    if facts.scan.denied or not facts.all_seen:
        return set()
    stuck = {entry.key for entry in facts.blocked} - facts.drained
    while True:
        waiting: dict[int, set[int]] = {}
        for entry in facts.blocked:
            if entry.key in stuck:
                waiting.setdefault(entry.pid, set()).add(entry.tid)
        hopeless = {pid for pid, tids in waiting.items() if len(tids) >= facts.threads.get(pid, 0) > 0}
        readers = {key: [use.process.pid for use in uses[key] if use.read_fds] for key in stuck}
        still = {key for key, pids in readers.items() if pids and all(pid in hopeless for pid in pids)}
        if still == stuck:
            return stuck
        stuck = still


def identity(key: bytes) -> tuple[str, int, int | None]:
    """(kind, inode, device) of a scan's key: `pipe:[N]` or `fifo:DEVICE:INODE`."""
    if key.startswith(PIPE_PREFIX):
        return "pipe", int(key[6:-1]), None
    _, device, inode = key.split(b":")
    return "fifo", int(inode), int(device)


def total_fds(holders: Iterable[Holder]) -> dict[bytes, int]:
    """Fds a pipe, over all holders."""
    totals: dict[bytes, int] = {}
    get = totals.get
    for holder in holders:
        for key, count in holder.counts.items():
            totals[key] = get(key, 0) + count
    return totals


def ranked(totals: Mapping[bytes, int], sort: str = "fds") -> list[tuple[int, int, bytes]]:
    """(fds, inode, key) a pipe: most fds first and then by inode, or by inode alone. Raises BadInput for `pipe:[x]`."""
    size = len(PIPE_PREFIX)
    try:
        rows = [
            (count, int(key[size:-1]) if key.startswith(PIPE_PREFIX) else identity(key)[1], key)
            for key, count in totals.items()
        ]
    except ValueError:
        wrong = next(key for key in totals if key.startswith(PIPE_PREFIX) and integer(key[size:-1]) is None)
        raise BadInput("fd", "a link that is no pipe:[INODE]", found=wrong.decode("utf-8", "replace")) from None
    rows.sort(key=itemgetter(1, 2))
    if sort == "fds":
        rows.sort(key=itemgetter(0), reverse=True)  # stable: ties stay in the order of their inodes
    return rows


def commands_by_pipe(holders: Iterable[Holder], command: Mapping[int, str]) -> dict[bytes, dict[str, int]]:
    """Per pipe: the fds of each command's processes together."""
    names: dict[bytes, dict[str, int]] = {}
    for holder in holders:
        name = command[holder.pid]
        for key, count in holder.counts.items():
            row = names.get(key)
            if row is None:
                names[key] = {name: count}
            else:
                row[name] = row.get(name, 0) + count
    return names


_UNDIRECTED = (0, 0, None)


def uses_by_pipe(holders: Iterable[Holder], people: Mapping[int, Process]) -> dict[bytes, tuple[ProcessUse, ...]]:
    """Per pipe: every process with its fds, most first. Tables that a thread has of its own count for its process."""
    uses: dict[bytes, list[ProcessUse]] = {}
    for holder in holders:
        process, ends = people[holder.pid], holder.ends
        for key, count in holder.counts.items():
            read, write, _ = ends[key] if ends is not None else _UNDIRECTED
            use = ProcessUse(process, count, read, write) if read or write else ProcessUse(process, count, None, None)
            uses.setdefault(key, []).append(use)
    return {key: tuple(_merged(row)) if len(row) > 1 else tuple(row) for key, row in uses.items()}


def _merged(row: list[ProcessUse]) -> list[ProcessUse]:
    """One entry a process, most fds first."""
    by_pid: dict[int, ProcessUse] = {}
    for use in row:
        known = by_pid.get(use.process.pid)
        if known is not None:  # a thread with a table of its own
            read, write = (None if a is None or b is None else a + b for a, b in zip(known[2:], use[2:]))
            use = ProcessUse(use.process, known.fds + use.fds, read, write)
        by_pid[use.process.pid] = use
    return sorted(by_pid.values(), key=lambda use: (-use.fds, use.process.pid))


def classify(uses: Sequence[ProcessUse], in_flight: Mapping[int, int], denied: int) -> tuple[str, str | None]:
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


def _one_sided(read_end_is_left: bool, in_flight: Mapping[int, int], denied: int) -> str:
    missing, effect = (
        ("no write end", "read() returns end of file once it is empty")
        if read_end_is_left
        else ("no read end", "write() fails with EPIPE")
    )
    if in_flight:
        where = ", ".join(f"{count} in sockets of {pid}" for pid, count in sorted(in_flight.items()))
        return f"{missing} in any fd table, but fds are in flight ({where}): it may be among them; if not, {effect}"
    if denied:
        hidden = f"{denied} process{'' if denied == 1 else 'es'} could not be read and may hold it"
        return f"{missing} was seen, but {hidden}; if not, {effect}"
    return f"{missing} is left: {effect}"


def _one_family(processes: Sequence[Process]) -> bool:
    """Whether all but one descend from another of them."""
    pids = {process.pid for process in processes}
    return sum(process.ppid in pids for process in processes) == len(pids) - 1


def verdict(facts: Facts, key: bytes, uses: Sequence[ProcessUse]) -> str | None:
    """`full: writer X is blocked, reader Y is not draining`; `unknown: …`; None where nothing is wrong.

    No process is blamed for what one that was not looked at may do.
    """
    fill, all_seen = facts.fills[key], facts.all_seen
    if fill.reason is not None:
        return f"unknown: {fill.reason}"
    stuck = {entry.pid for entry in facts.blocked if entry.key == key}
    readers = [use.process for use in uses if use.read_fds]
    if not stuck:
        if not fill.queued_bytes or fill.queued_bytes != fill.capacity_bytes:
            return None
        return "full: no writer is blocked on it" if all_seen else f"full: whether a writer is blocked {_NOT_LOOKED_AT}"
    writers = ", ".join(_name(use.process) for use in uses if use.process.pid in stuck)
    waiting_for = [process for process in readers if process.pid not in stuck]
    if not waiting_for and not all_seen:
        return f"full: writer {writers} is blocked; who should read {_NOT_LOOKED_AT}"
    waiting_for = waiting_for or readers
    if not waiting_for:
        return f"full: writer {writers} is blocked, no reader is visible"
    how = "drains more slowly than that" if key in facts.drained else "is not draining"
    return f"full: writer {writers} is blocked, reader {', '.join(map(_name, waiting_for))} {how}"


def _name(process: Process) -> str:
    stopped = ", stopped by a signal" if process.state in ("T", "t") else ""
    return f"{process.pid} ({process.command}{stopped})"


def owners(
    pipes: Iterable[Pipe], user_name: Callable[[int], str], soft_pages: int | None, page_bytes: int
) -> list[OwnerUse]:
    """Per user who made them: pipes, fds, capacity, and whether the kernel already shrinks this user's new pipes.

    The kernel compares the user's pages, those of the new pipe included, with the soft limit (fs/pipe.c,
    alloc_pipe_info); root's rights exempt. Capacities that could not be seen make the answer "unknown".
    """
    groups: dict[int, list[Pipe]] = {}
    for pipe in pipes:
        uid = pipe.fill.uid if pipe.fill and pipe.fill.uid is not None else pipe.uses[0].process.uid
        groups.setdefault(-1 if uid is None else uid, []).append(pipe)
    rows = []
    for uid, members in groups.items():
        sizes = [pipe.fill.capacity_bytes for pipe in members if pipe.fill and pipe.fill.capacity_bytes is not None]
        capacity = sum(sizes) if sizes else None
        complete = len(sizes) == len(members)
        rows.append(
            OwnerUse(
                user="unknown" if uid < 0 else user_name(uid),
                uid=uid,
                pipes=len(members),
                fds=sum(pipe.fds for pipe in members),
                capacity_bytes=capacity,
                soft_limit_bytes=soft_pages * page_bytes if soft_pages else None,
                shrunk=_shrunk(uid, capacity, complete, soft_pages, page_bytes),
            )
        )
    return sorted(rows, key=lambda row: (-row.fds, row.uid))


def _shrunk(uid: int, capacity: int | None, complete: bool, soft_pages: int | None, page_bytes: int) -> str:
    if uid == 0:
        return "exempt"
    if soft_pages == 0:
        return "no"
    if capacity is None or soft_pages is None or uid < 0:
        return "unknown"
    if capacity // page_bytes + PAGES_OF_A_NEW_PIPE > soft_pages:
        return "yes"
    return "no" if complete else "unknown"


def gains(samples: Sequence[Sample], boot_s: int | None, clock_ticks: int) -> list[Gain]:
    """The processes that gained pipes over the samples, fastest first; the slope is a least-squares line's.

    `boot_s`: seconds from the epoch; `clock_ticks` in a second.
    """
    tracks: dict[tuple[int, int], list[tuple[float, int]]] = {}
    commands: dict[tuple[int, int], str] = {}
    for sample in samples:
        commands.update(sample.commands)
        for who, count in sample.pipes.items():
            tracks.setdefault(who, []).append((sample.at_s, count))
    found = []
    for (pid, start), track in tracks.items():
        per_s = slope(track)
        if per_s is not None and per_s > 0 and track[-1][1] > track[0][1]:
            started_s = None if boot_s is None else boot_s + start / clock_ticks
            first, last = track[0][1], track[-1][1]
            found.append(Gain(pid, start, started_s, commands[pid, start], first, last, per_s * 60, _is_steady(track)))
    return sorted(found, key=lambda gain: (-gain.pipes_per_min, gain.pid))


def _is_steady(track: Sequence[tuple[float, int]]) -> bool:
    """Whether it grew in most of the steps between enough samples: a leak, and no burst."""
    steps = [later - earlier for (_, earlier), (_, later) in zip(track, track[1:])]
    return len(track) >= _A_TREND and sum(step > 0 for step in steps) >= _MOSTLY * len(steps) and min(steps) >= 0
