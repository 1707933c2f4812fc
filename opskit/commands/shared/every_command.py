"""Run every command on a machine that is recorded: what they ask it is then on the tape, and a replay finds it there."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING

from opskit.catalog import COMMANDS
from opskit.commands.shared.output import Unseen
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


class Ran(NamedTuple):
    """The command lines that were run, what doctor found, and why some lines gave nothing: (line, why)."""

    lines: Sequence[str]
    findings: Sequence[Finding]
    without: Sequence[tuple[str, str]]


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

    def run(line: str) -> None:
        progress(line)
        lines.append(line)
        host.rewind()
        why = _run(group, unseen, line)
        if why is not None:
            without.append((line, why))

    try:
        run(_DOCTOR)
        found = tuple(unseen.findings)
        jvms = _jvms(host)
        pids = tuple(dict.fromkeys((*jvms, *named, *list(_pids_of(found))[:_MOST_NAMED])))
        for line in _lines(jvms, pids):
            run(line)
    finally:
        host.rewind()
        host.fs.kept = None
    return Ran(lines, found, without)


def _run(group: click.Group, unseen: Unseen, line: str) -> str | None:
    """Run a line; why it gave nothing, None where it did."""
    silent = io.StringIO()
    try:
        with redirect_stdout(silent), redirect_stderr(silent):
            with group.make_context("opskit", line.split(), obj=unseen) as context:
                group.invoke(context)
    except OpskitError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  (a bug in one command must not lose the capture)
        return f"{type(error).__name__}: {where_raised(error)}"
    return None


def _lines(jvms: Iterable[int], pids: Iterable[int]) -> Iterator[str]:
    """The lines of the catalog, but the first one of doctor."""
    for entry in COMMANDS:
        for arguments in entry.captured:
            if "{jvm}" in arguments:
                yield from (f"{entry.name} {arguments.format(jvm=pid)}" for pid in jvms)
            elif "{pid}" in arguments:
                yield from (f"{entry.name} {arguments.format(pid=pid)}" for pid in pids)
            elif entry.name != _DOCTOR:
                yield f"{entry.name} {arguments}".rstrip()


def _jvms(host: RecordedHost) -> list[int]:
    from opskit.collect.found_jvms import found_jvms

    host.rewind()
    return [jvm.pid for jvm in found_jvms(host).jvms]


def _pids_of(findings: Iterable[Finding]) -> Iterator[int]:
    """The processes that findings are about, the most severe first."""
    from opskit.analysis.finding import most_severe_first

    for each in most_severe_first(findings):
        for entity in (each.entity, each.waits_for):
            while entity is not None:
                if entity.kind == "process" and isinstance(entity.id, int):
                    yield entity.id
                entity = entity.inside
