"""How the pipes are shown: columns for tables, lines for text, keys for JSON."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from opskit import shell
from opskit.analysis.pipes import identity
from opskit.escape import printable
from opskit.quantities import plain, size, whole
from opskit.render.report import Block, Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from opskit.analysis.pipes import Gain, OwnerUse, Pipe, ProcessUse


def total_line(pipes: int, fifos: int, fds: int) -> str:
    """The last line: `16 pipes using 1294 fds`."""
    return f"{pipes} pipes{f' and {fifos} fifos' if fifos else ''} using {fds} fds"


def count_lines(rows: Iterable[tuple[int, int, bytes]]) -> Iterator[str]:
    """`uniq -c` of the pipes: the count in 7 columns, a space, `pipe:[INODE]`."""
    return (f"{fds:7d} pipe:[{inode}]" for fds, inode, _ in rows)


def command_lines(rows: Iterable[tuple[int, int, bytes]], names: Mapping[bytes, Mapping[str, int]]) -> Iterator[str]:
    """`pipe:[4194986549] apache2=253 rotatelogs=1 dash=1`, most first within the row."""
    shown = {name: printable(name) for row in names.values() for name in row}
    for _, inode, key in rows:
        row = names[key]
        if len(row) == 1:
            [(name, count)] = row.items()
            yield f"pipe:[{inode}] {shown[name]}={count}"
        else:
            ordered = sorted(row.items(), key=lambda item: (-item[1], item[0]))
            yield f"pipe:[{inode}] " + " ".join(f"{shown[name]}={count}" for name, count in ordered)


def key_name(key: bytes) -> str:
    """The name of a scan's key, as the kernel writes it for a pipe."""
    kind, inode, _ = identity(key)
    return f"{kind}:[{inode}]"


def by_command(pipe: Pipe) -> dict[str, int]:
    """Fds a command, most first."""
    counts: dict[str, int] = {}
    for use in pipe.uses:
        counts[use.process.command] = counts.get(use.process.command, 0) + use.fds
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def detail_lines(pipes: Iterable[Pipe], *, by_process: bool, ends: bool, fill: bool) -> Iterator[str]:
    """The same rows with `key=value` words behind them for what was asked in addition."""
    for pipe in pipes:
        line = printable(pipe.name) if by_process else f"{pipe.fds:7d} {printable(pipe.name)}"
        if by_process:
            line += "".join(f" {printable(name)}={count}" for name, count in by_command(pipe).items())
        if ends:
            read, write = sides(pipe.uses)
            line += f" class={pipe.end_class} read={printable(read) or '-'} write={printable(write) or '-'}"
        if fill and pipe.fill:
            line += f" queued={plain(pipe.fill.queued_bytes)} capacity={plain(pipe.fill.capacity_bytes)}"
        if pipe.meaning or pipe.verdict:
            line += f"  # {printable(_notes(pipe))}"
        yield line


def _notes(pipe: Pipe) -> str:
    return "; ".join(note for note in (pipe.meaning, pipe.verdict) if note)


def sides(uses: Sequence[ProcessUse], between: str = ",") -> tuple[str, str]:
    """The read ends and the write ends: `command[pid]:fds`, joined by commas."""
    read = between.join([f"{use.process.command}[{use.process.pid}]:{use.read_fds}" for use in uses if use.read_fds])
    write = between.join([f"{use.process.command}[{use.process.pid}]:{use.write_fds}" for use in uses if use.write_fds])
    return read, write


def columns(*, by_process: bool, ends: bool, fill: bool) -> list[Column[Pipe]]:
    """The table's columns for what was asked."""
    found: list[Column[Pipe]] = [
        Column("fds", lambda pipe: pipe.fds, whole, right=True),
        Column("pipe", lambda pipe: pipe.name),
    ]
    if by_process or not ends:
        found.append(Column("processes", lambda pipe: " ".join(f"{name}={n}" for name, n in by_command(pipe).items())))
    if ends:
        found += [
            Column("class", lambda pipe: pipe.end_class),
            Column("read ends", lambda pipe: sides(pipe.uses, ", ")[0]),
            Column("write ends", lambda pipe: sides(pipe.uses, ", ")[1]),
        ]
    if fill:
        found += [
            Column("queued", lambda pipe: pipe.fill and pipe.fill.queued_bytes, size, right=True),
            Column("capacity", lambda pipe: pipe.fill and pipe.fill.capacity_bytes, size, right=True),
        ]
    if ends or fill:
        found.append(Column("verdict", _notes))
    return found


OWNER_COLUMNS: list[Column[OwnerUse]] = [
    Column("user", lambda row: row.user),
    Column("pipes", lambda row: row.pipes, whole, right=True),
    Column("fds", lambda row: row.fds, whole, right=True),
    Column("capacity bytes", lambda row: row.capacity_bytes, size, right=True),
    Column("soft limit bytes", lambda row: row.soft_limit_bytes, size, right=True),
    Column("new pipes shrunk", lambda row: row.shrunk),
]


def _started(gain: Gain) -> str | None:
    return None if gain.started_s is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(gain.started_s))


GAIN_COLUMNS: list[Column[Gain]] = [
    Column("pid", lambda gain: gain.pid, right=True),
    Column("command", lambda gain: gain.command),
    Column("started", _started),
    Column("pipes first", lambda gain: gain.pipes_first, whole, right=True),
    Column("pipes now", lambda gain: gain.pipes_last, whole, right=True),
    Column("pipes per min", lambda gain: gain.pipes_per_min, lambda value: f"{value:+,.1f}", right=True),
]


def gain_line(gain: Gain) -> str:
    """The sentence about a process that gains pipes."""
    return (
        f"{gain.pid} ({printable(gain.command)}) gains pipes: {gain.pipes_first} -> {gain.pipes_last}, "
        f"{gain.pipes_per_min:+.1f} a minute; started {_started(gain) or 'unknown'}; "
        f"see them with: {shell.command('opskit', 'pipes', gain.pid, '--ends')}"
    )


def gains_block(found: Sequence[Gain]) -> Block[Gain]:
    """The gainers as a table."""
    return Block(GAIN_COLUMNS, found, len(found), "gaining pipes")


def pipe_object(pipe: Pipe) -> dict[str, Any]:
    """One pipe for JSON."""
    return {
        "inode": pipe.inode,
        "fds": pipe.fds,
        "kind": pipe.kind,
        "device": pipe.device,
        "path": pipe.path,
        "processes": [
            {
                "pid": use.process.pid,
                "command": use.process.command,
                "user": use.process.user,
                "fds": use.fds,
                "read_fds": use.read_fds,
                "write_fds": use.write_fds,
            }
            for use in pipe.uses
        ],
        "class": pipe.end_class,
        "meaning": pipe.meaning,
        "queued_bytes": pipe.fill and pipe.fill.queued_bytes,
        "capacity_bytes": pipe.fill and pipe.fill.capacity_bytes,
        "verdict": pipe.verdict,
    }


def owner_object(owner: OwnerUse) -> dict[str, Any]:
    """One user for JSON."""
    return {
        "user": owner.user,
        "uid": owner.uid if owner.uid >= 0 else None,
        "pipes": owner.pipes,
        "fds": owner.fds,
        "capacity_bytes": owner.capacity_bytes,
        "soft_limit_bytes": owner.soft_limit_bytes,
        "new_pipes_shrunk": owner.shrunk,
    }


def gain_object(gain: Gain) -> dict[str, Any]:
    """One gaining process for JSON."""
    return {
        "pid": gain.pid,
        "start_ticks": gain.start_ticks,
        "started_utc": _started(gain),
        "command": gain.command,
        "pipes_first": gain.pipes_first,
        "pipes_last": gain.pipes_last,
        "pipes_per_min": gain.pipes_per_min,
    }
