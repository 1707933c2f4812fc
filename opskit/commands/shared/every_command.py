"""Run every command on a machine that is recorded: what they ask it is then on the tape, and a replay finds it there."""

from __future__ import annotations

import gc
import io
import time
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

from opskit.catalog import CAPTURED_ASKED, CAPTURED_WATCHED, COMMANDS
from opskit.commands.shared.unseen import Unseen
from opskit.errors import OpskitError, where_raised
from opskit.proc.recorded.kept import KeptByMark
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import click

    from opskit.analysis.finding import Finding
    from opskit.recorded_host import RecordedHost

_DOCTOR = "doctor"
_MOST_NAMED = 8  # processes that doctor names
_OF_A_WINDOW = 2  # samples
_APART_S = 0.25  # between two looks at the memory of a JVM


class _Looked(NamedTuple):
    """The JVMs, and when their memory was looked at first, of time.monotonic."""

    pids: Sequence[int]
    at_s: float


class Ran(NamedTuple):
    """The command lines that were run, what doctor found, and why some lines gave nothing: (line, why)."""

    lines: Sequence[str]
    findings: Sequence[Finding]
    without: Sequence[tuple[str, str]]


def _look_early(host: RecordedHost) -> _Looked:
    """Look at who waits for whom in JVMs: what their memory says now, and says again later, is a deadlock."""
    from opskit.collect.found_jvms import found_jvms
    from opskit.collect.jvm_monitors import MonitorWatch

    host.rewind()
    jvms = found_jvms(host).jvms
    MonitorWatch(host, jvms).close()
    return _Looked([jvm.pid for jvm in jvms], time.monotonic())


def run_every_command(
    group: click.Group,
    host: RecordedHost,
    named: Sequence[int] = (),
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> Ran:
    """Run the lines of the catalog, one after the other, each from the first mark on. Nothing is shown.

    `group`: the commands. `host`: with a source, which is asked what the tape lacks. `named`: the processes that the
    capture is asked for. An error of one command, also a bug, ends that command alone.
    """
    unseen = Unseen(host)
    without: list[tuple[str, str]] = []
    lines: list[str] = []
    host.fs.kept = KeptByMark(host.clock)
    jvms = _look_early(host)
    is_collecting = gc.isenabled()
    gc.disable()  # a walk through all that the tape holds finds nothing: once after each line is enough
    if jvms.pids:
        time.sleep(max(0.0, jvms.at_s + _APART_S - time.monotonic()))

    def run(line: str) -> None:
        progress(line)
        lines.append(line)
        host.rewind()
        why = _run(group, unseen, line)
        gc.collect()
        gc.freeze()  # what is left now stays: the tape, what is kept, modules
        without.extend([] if why is None else [(line, why)])

    try:
        run(_DOCTOR)
        found = tuple(unseen.findings)
        pids = tuple(dict.fromkeys((*jvms.pids, *named, *list(_pids_of(found))[:_MOST_NAMED])))
        for line in (*every_line(jvms.pids, pids), *(CAPTURED_WATCHED if host.samples > _OF_A_WINDOW else ())):
            run(line)
        for line in _asked_lines(jvms.pids) if host.tape.origin.asked else ():
            host.rewind()
            _run(group, unseen, line)  # a JVM that has not replied is known
    finally:
        host.rewind()
        host.fs.kept = None
        gc.unfreeze()
        if is_collecting:
            gc.enable()
    return Ran(lines, found, without)


def _run(group: click.Group, unseen: Unseen, line: str) -> str | None:
    """Run a line; why it gave nothing, None where it did."""
    silent = io.StringIO()
    try:
        with (
            redirect_stdout(silent),
            redirect_stderr(silent),
            group.make_context("opskit", line.split(), obj=unseen) as context,
        ):
            group.invoke(context)
    except OpskitError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  (a bug in one command must not lose the capture)
        return f"a bug in opskit: {where_raised(error)}"
    return None


def every_line(jvms: Iterable[int], pids: Iterable[int]) -> Iterator[str]:
    """The lines of the catalog, but the first one of doctor; first those of single processes, which free much memory for the others."""
    lines = [f"{entry.name} {arguments}".rstrip() for entry in COMMANDS for arguments in entry.captured]
    for line in lines:
        if "{jvm}" in line:
            yield from (line.format(jvm=pid) for pid in jvms)
        elif "{pid}" in line:
            yield from (line.format(pid=pid) for pid in pids)
    yield from (line for line in lines if "{" not in line and line != _DOCTOR)


def _asked_lines(jvms: Iterable[int]) -> Iterator[str]:
    """The lines that need what JVMs have replied."""
    for line in CAPTURED_ASKED:
        yield from (line.format(jvm=pid) for pid in jvms) if "{jvm}" in line else (line,)


def _pids_of(findings: Iterable[Finding]) -> Iterator[int]:
    """The processes that findings are about, the most severe first."""
    from opskit.analysis.finding import most_severe_first

    for each in most_severe_first(findings):
        for entity in (each.entity, each.waits_for):
            while entity is not None:
                if entity.kind == "process" and isinstance(entity.id, int):
                    yield entity.id
                entity = entity.inside
