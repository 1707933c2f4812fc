"""How pipes are shown: fields, the lines of `-f text`, sentences."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.pipes.ranking import commands_by_pipe
from opskit.escape import printable
from opskit.quantities import agreeing, listed, plain
from opskit.records import NamedTuple
from opskit.render.fields import COUNT, ID, NUMBER, SIZE, TEXT, Field, records
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opskit.analysis.pipes.growth import Gain
    from opskit.analysis.pipes.judge import Result
    from opskit.analysis.pipes.uses import OwnerUse, Pipe, ProcessUse
    from opskit.collect.pipes import Sample
    from opskit.render.report import About


_MOST_HOLDERS = 5  # of a pipe; json has all


class Shown(NamedTuple):
    """What to show. `top` None or 0: every row."""

    by_process: bool
    by_user: bool
    ends: bool
    fill: bool
    top: int | None

    def few(self, holders: Sequence[str], comma: str = ", ") -> str:
        """The holders of a pipe, or the first few and `… 1,003 more (-n 0)`."""
        whole = len(holders) <= _MOST_HOLDERS or self.top == 0
        return comma.join(holders) if whole else listed(holders, _MOST_HOLDERS, comma, see="-n 0")


def report(about: About, result: Result, shown: Shown, *, is_text: bool) -> Report:
    """The pipes, or their users; who gains pipes; the total."""
    total = f"{_counted(result.pipe_count, 'pipe')} using {_counted(result.fd_count, 'fd')}"
    if result.fifo_count:
        total = total.replace(" using", f" and {_counted(result.fifo_count, 'fifo')} using")
    summary = [total, *map(gain_line, result.gains or ())]
    blocks: list[Block[Pipe] | Block[OwnerUse] | Block[Gain]] = []
    pipes = result.pipes[: shown.top or None]
    if result.owners is not None:
        blocks.append(Block(OWNER, result.owners, len(result.owners)))
    elif result.facts.ask.processes and result.pipes:
        judged = sorted(result.pipes, key=lambda pipe: not pipe.verdict)[: shown.top or None]
        blocks.append(Block(columns(shown), judged, len(result.rows)))
    if result.gains:
        blocks.append(Block(GAIN, result.gains, len(result.gains), "gaining pipes"))
    return Report(
        about,
        blocks,
        findings=result.findings,
        summary=summary,
        footer=result.facts.notes,
        text=(lambda: [*_lines(result, pipes, shown), *summary]) if is_text and not shown.by_user else None,
        document=(DOCUMENT, (result, pipes)),
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {agreeing(count, noun)}"  # no separators: the last line of -f text


def _lines(result: Result, pipes: Sequence[Pipe], shown: Shown) -> Iterable[str]:
    if pipes:
        return detail_lines(pipes, shown)
    rows = result.rows[: shown.top or None]
    return command_lines(result, rows, shown) if shown.by_process else count_lines(rows)


def count_lines(rows: Iterable[tuple[int, int, bytes]]) -> Iterator[str]:
    """`uniq -c` of the pipes: the count in 7 columns, a space, `pipe:[INODE]`."""
    return (f"{fds:7d} pipe:[{inode}]" for fds, inode, _ in rows)


def command_lines(result: Result, rows: Iterable[tuple[int, int, bytes]], shown: Shown) -> Iterator[str]:
    """`pipe:[4194986549] apache2=253 rotatelogs=1 dash=1`, most first within the row."""
    names = commands_by_pipe(result.facts.scan.holders, result.facts.commands)
    safe = {name: printable(name) for row in names.values() for name in row}
    for _, inode, key in rows:
        row = names[key]
        ordered = row.items() if len(row) == 1 else sorted(row.items(), key=lambda item: (-item[1], item[0]))
        yield f"pipe:[{inode}] " + shown.few([f"{safe[name]}={count}" for name, count in ordered], " ")


def by_command(pipe: Pipe) -> dict[str, int]:
    """Fds of each command, most first."""
    counts: dict[str, int] = {}
    for use in pipe.uses:
        counts[use.process.command] = counts.get(use.process.command, 0) + use.fds
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def detail_lines(pipes: Iterable[Pipe], shown: Shown) -> Iterator[str]:
    """The same rows with `key=value` words after them for what was asked in addition."""
    for pipe in pipes:
        name = printable(pipe.name)
        line = f"{name} {printable(shown.few(_commands(pipe), ' '))}" if shown.by_process else f"{pipe.fds:7d} {name}"
        if shown.ends:
            read, write = (printable(shown.few(_side(pipe, end), ",")) or "-" for end in ("read", "write"))
            line += f" class={pipe.end_class} read={read} write={write}"
        if shown.fill and pipe.fill:
            line += f" queued={plain(pipe.fill.queued_bytes)} capacity={plain(pipe.fill.capacity_bytes)}"
        if pipe.meaning or pipe.verdict:
            line += f"  # {printable(_notes(pipe))}"
        yield line


def _notes(pipe: Pipe) -> str:
    return "; ".join(note for note in (pipe.meaning, pipe.verdict) if note)


def _side(pipe: Pipe, end: str) -> list[str]:
    """The read ends or the write ends: `command[pid]:fds`."""
    counts = ((use.process, use.read_fds if end == "read" else use.write_fds) for use in pipe.uses)
    return [f"{process.command}[{process.pid}]:{count}" for process, count in counts if count]


def gain_line(gain: Gain) -> str:
    """The sentence about a process that gains pipes."""
    return (
        f"{gain.pid} ({printable(gain.command)}) gains pipes: {gain.pipes_first} -> {gain.pipes_last}, "
        f"{gain.pipes_per_min:+.1f} a minute; started {_started(gain) or 'unknown'}; "
        f"see them with: {shell.command('opskit', 'pipes', gain.pid, '--ends')}"
    )


def _started(gain: Gain) -> str | None:
    return None if gain.started_s is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(gain.started_s))


USE: Sequence[Field[ProcessUse]] = (
    Field("pid", ID, value=lambda use: use.process.pid),
    Field("command", value=lambda use: use.process.command),
    Field("user", value=lambda use: use.process.user),
    Field("fds", COUNT),
    Field("read_fds", COUNT, help="with --ends"),
    Field("write_fds", COUNT, help="with --ends"),
)
_FDS: Field[Pipe] = Field("fds", COUNT, "fds")
_CLASSES = "self, parent-child, cross-process, one-sided or unknown"
_CLASS: Field[Pipe] = Field("class", TEXT, "class", lambda pipe: pipe.end_class, help=_CLASSES)
_QUEUED: Field[Pipe] = Field("queued_bytes", SIZE, "queued", lambda pipe: pipe.fill and pipe.fill.queued_bytes)
_CAPACITY: Field[Pipe] = Field("capacity_bytes", SIZE, "capacity", lambda pipe: pipe.fill and pipe.fill.capacity_bytes)
PIPE: Sequence[Field[Pipe]] = (
    Field("inode", ID),
    _FDS,
    Field("kind", help="pipe or fifo"),
    Field("device", ID, help="of a FIFO"),
    Field("path", help="of a FIFO"),
    Field("processes", records(USE), value=lambda pipe: pipe.uses),
    _CLASS,
    Field("meaning", help="of a one-sided pipe"),
    _QUEUED,
    _CAPACITY,
    Field("verdict", help="with --fill or --ends"),
)
OWNER: Sequence[Field[OwnerUse]] = (
    Field("user", TEXT, "user"),
    Field("uid", ID, value=lambda owner: owner.uid if owner.uid >= 0 else None),
    Field("pipes", COUNT, "pipes"),
    Field("fds", COUNT, "fds"),
    Field("capacity_bytes", SIZE, "capacity bytes"),
    Field("soft_limit_bytes", SIZE, "soft limit bytes", help="fs.pipe-user-pages-soft"),
    Field("new_pipes_shrunk", TEXT, "new pipes shrunk", lambda owner: owner.shrunk, help="yes, no, exempt or unknown"),
)
GAIN: Sequence[Field[Gain]] = (
    Field("pid", ID, "pid"),
    Field("start_ticks", ID),
    Field("command", TEXT, "command"),
    Field("started_utc", TEXT, "started", _started),
    Field("pipes_first", COUNT, "pipes first"),
    Field("pipes_last", COUNT, "pipes now"),
    Field("pipes_per_min", NUMBER, "pipes per min", show=lambda value: f"{value:+,.1f}"),
)
SAMPLE: Sequence[Field[Sample]] = (
    Field("at_s", NUMBER, value=lambda sample: round(sample.at_s, 3)),
    Field("pipe_count", COUNT),
    Field("fd_count", COUNT),
)
DOCUMENT: Sequence[Field[tuple[Result, Sequence[Pipe]]]] = (
    Field("pipes", records(PIPE), value=lambda both: both[1]),
    Field("pipe_count", COUNT, value=lambda both: both[0].pipe_count),
    Field("fifo_count", COUNT, value=lambda both: _fifo_count(both[0]), help="with --fifos"),
    Field("fd_count", COUNT, value=lambda both: both[0].fd_count),
    Field("processes_scanned", COUNT, value=lambda both: len(both[0].facts.scan.scanned)),
    Field("processes_denied", COUNT, value=lambda both: len(both[0].facts.scan.denied)),
    Field("processes_vanished", COUNT, value=lambda both: len(both[0].facts.scan.vanished)),
    Field("users", records(OWNER), value=lambda both: both[0].owners, help="with --by-user"),
    Field("gains", records(GAIN), value=lambda both: both[0].gains, help="with -w"),
    Field("samples", records(SAMPLE), value=lambda both: both[0].facts.samples or None, help="with -w"),
)


def _fifo_count(result: Result) -> int | None:
    facts = result.facts
    return result.fifo_count if facts.ask.fifos and not facts.scan.copied_skipped else None


def _commands(pipe: Pipe) -> list[str]:
    return [f"{name}={count}" for name, count in by_command(pipe).items()]


def columns(shown: Shown) -> list[Field[Pipe]]:
    """The table's columns for what was asked."""
    found = [_FDS, Field("name", TEXT, "pipe")]
    if shown.by_process or not shown.ends:
        found.append(Field("by_command", TEXT, "processes", lambda pipe: shown.few(_commands(pipe), " ")))
    if shown.ends:
        read: Field[Pipe] = Field("read_ends", TEXT, "read ends", lambda pipe: shown.few(_side(pipe, "read")))
        write: Field[Pipe] = Field("write_ends", TEXT, "write ends", lambda pipe: shown.few(_side(pipe, "write")))
        found += [_CLASS, read, write]
    found += [_QUEUED, _CAPACITY] if shown.fill else []
    notes: Field[Pipe] = Field("notes", TEXT, "verdict", _notes, below=lambda pipe: pipe.name)
    return [*found, notes] if shown.ends or shown.fill else found
