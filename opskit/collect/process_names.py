"""The name of a process in a sentence: of a JVM what it runs, else the program's."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from opskit.errors import OpskitError
from opskit.proc.files.stat import parse_stat
from opskit.proc.process import command_name
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.host import Host

_FEWEST_THREADS = 5  # of a JVM


class Named(NamedTuple):
    """A process by PID and start time, with its name and whether it is a JVM; `threads` None: it has ended."""

    pid: int
    start_ticks: int | None
    name: str
    is_jvm: bool = False
    threads: int | None = None


def name_process(host: Host, pid: int) -> Named:
    """The process, named by the main class or jar of a JVM where that can be read, else by its program."""
    stat = host.fs.maybe(parse_stat, pid, "stat")
    if stat is None:
        return Named(pid, None, command_name(host.fs, pid))
    name, is_jvm = _name(host, pid, may_be_jvm=stat.threads >= _FEWEST_THREADS)
    return Named(pid, stat.start_ticks, name, is_jvm, stat.threads)


def _name(host: Host, pid: int, *, may_be_jvm: bool) -> tuple[str, bool]:
    fs = host.fs
    if may_be_jvm:
        from opskit.jvm.mapped_files import parse_jvm_maps

        maps = fs.maybe(parse_jvm_maps, pid, "maps")
        if maps is not None and maps.is_jvm:
            from opskit.jvm.discover import find_jvm

            with suppress(OpskitError, OSError):
                return find_jvm(fs, pid, host.clock_ticks).main, True
    return command_name(fs, pid), False
