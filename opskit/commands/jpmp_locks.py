"""`opskit jpmp --locks`: the gathered dumps as contended locks, their holders and deadlocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.locks import ASK_FOR_SYNCHRONIZERS, contention
from opskit.commands.shared.output import about
from opskit.jvm.logs.timestamps import read_stamp
from opskit.render.report import Block, Report
from opskit.render.views import locks as view

if TYPE_CHECKING:
    from opskit.commands.gathered import Gathered
    from opskit.host import Host

_SAID_LOCKS = 3  # in sentences; the table has all


def locks_report(host: Host, gathered: Gathered, top: int | None, footer: list[str]) -> Report:
    """Deadlocks and the locks that hold up most first."""
    times_s = gathered.times_s or [
        None if dump.time is None else read_stamp(dump.time).time_s for dump in gathered.dumps
    ]
    found = contention(gathered.dumps, times_s)
    rows = found.locks[: top or None]
    verdict = [*map(view.deadlock_line, found.deadlocks), *map(view.lock_line, found.locks[:_SAID_LOCKS])]
    if not verdict:
        told = any(thread.locks for dump in gathered.dumps for thread in dump.threads)
        verdict = ["no thread waits for a lock" if told else _nothing_told(gathered)]
    if gathered.live and any(lock.owner_unknown == ASK_FOR_SYNCHRONIZERS for lock in found.locks):
        pid = (gathered.target or {}).get("pid")
        finds = shell.command("opskit", "jpmp", pid, "--locks", "--synchronizers")
        footer = [*footer, f"owners of java.util.concurrent locks: {finds}"]
    return Report(
        about(host, gathered.target),
        [Block(view.COLUMNS, rows, len(found.locks))] if found.locks else [],
        verdict=verdict,
        footer=footer,
        data=lambda: {
            "locks": [view.lock_object(lock) for lock in rows],
            "deadlocks": view.deadlock_objects(found.deadlocks),
            "samples": len(gathered.dumps),
            **gathered.data,
        },
    )


def _nothing_told(gathered: Gathered) -> str:
    """For dumps without a word on locks: that is no news about them."""
    without = sorted({dump.dialect for dump in gathered.dumps})
    virtual = any(dialect.startswith("Thread.dump_to_file") for dialect in without)
    hint = (
        "; JDK 21 to 24 leave them out of it: an ordinary dump (jpmp without --virtual, jstack) has them"
        if virtual
        else ""
    )
    return f"unknown who waits for a lock: these dumps ({', '.join(without)}) tell nothing of locks{hint}"
