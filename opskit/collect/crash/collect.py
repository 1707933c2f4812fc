"""Read the crash reports that the user named, or look where JVMs write them."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from typing import TYPE_CHECKING

from opskit.collect.crash import places
from opskit.collect.crash.cores import Around
from opskit.collect.crash.directory import (
    MOST_REPORTS,
    joined,
    list_directory,
    read_listed,
    reads_of,
    subdirectories,
    why_not_read,
    without_headers,
)
from opskit.collect.crash.facts import Facts, Place, Read, Unread
from opskit.errors import BadInput, NotPermitted, OpskitError
from opskit.proc.fs import ProcFS
from opskit.proc.user_files import STDIN, is_directory, modified_s, open_files
from opskit.quantities import listed, plural, short_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.crash.directory import Listing
    from opskit.collect.crash.facts import Request
    from opskit.host import Host

_COMMAND = "crash"
_LARGEST_BYTES = 256 << 20  # a program's output, with a report among its lines
_COREDUMPCTL = ("usr/bin/coredumpctl", "bin/coredumpctl")
_MOST_CORES = 3
_NO_SUCH_FILE = "no such file or directory; without a name, opskit crash looks where JVMs write their reports"


def collect(host: Host, ask: Request) -> Facts:
    """The reports, newest first. Raises BadInput and NotPermitted where none of the named files can be read."""
    core_pattern = host.fs.maybe(str.strip, "sys", "kernel", "core_pattern")
    has_tool = any(host.fs.root_exists(name) for name in _COREDUMPCTL)
    if ask.names:
        return _Named(host, core_pattern).read(ask)._replace(core_pattern=core_pattern, has_coredumpctl=has_tool)
    reads, unread, looked = places.look(host, core_pattern)
    return Facts(reads, unread, looked, core_pattern, has_tool)


class _Named:
    """Reads what the user named. Links are followed, a FIFO is waited for; those in a named directory are not."""

    def __init__(self, host: Host, core_pattern: str | None) -> None:
        self._host, self._fs = host, ProcFS()
        self._core_pattern = core_pattern if host.is_own else None
        self._reads: list[Read] = []
        self._known: set[str] = set()  # paths; a file may be named by itself and by its directory
        self._unread: list[Unread] = []
        self._places: list[Place] = []

    def read(self, ask: Request) -> Facts:
        """All of them. One that is unreadable costs itself only, unless it is the only one."""
        failed: list[OpskitError] = []
        for name in dict.fromkeys(ask.names):
            try:
                (self._read_directory if is_directory(name) else self._read_file)(name)
            except (BadInput, NotPermitted) as error:
                failed.append(error)
                why = error.problem if isinstance(error, BadInput) else str(error)
                self._unread.append(Unread(name, why))
        if failed and not self._reads and not self._places:
            raise failed[0]
        reads = sorted(without_headers(self._reads), key=lambda read: -(read.modified_s or 0.0))
        return Facts(reads, self._unread, () if reads else self._places)

    def _read_file(self, name: str) -> None:
        try:
            file = open_files([name], _COMMAND)[0]
        except BadInput as error:
            if not error.problem.endswith("No such file or directory"):
                raise
            raise BadInput(name, _NO_SUCH_FILE) from None
        data = joined(file.chunks(), file.name, _LARGEST_BYTES)
        around = None if name == STDIN else self._around(posixpath.dirname(name) or ".")
        self._add(reads_of(data, name, modified_s(name), around))

    def _read_directory(self, name: str) -> None:
        directory = name.rstrip("/") or "/"
        try:
            found = list_directory(self._fs, directory, sniff=True)
        except OSError as error:
            raise BadInput(name, f"cannot be listed: {why_not_read(error)}") from None
        self._places.append(Place(name, _what(found), [f"{directory}/{each}" for each, _ in found.reports]))
        self._take(directory, found)
        if not (found.reports or found.unread):  # reports of several machines, one directory each
            for below in subdirectories(self._fs, directory):
                if len(self._reads) >= MOST_REPORTS:
                    self._unread.append(Unread(below, f"not read: at most {MOST_REPORTS} reports are read"))
                    break
                with suppress(OSError):
                    self._take(below, list_directory(self._fs, below))

    def _take(self, directory: str, found: Listing) -> None:
        around = self._around(directory)
        reads, unread = read_listed(self._fs, directory, found, around.machine, around.roots, around.core_pattern)
        self._add(reads)
        self._unread += unread

    def _add(self, reads: Sequence[Read]) -> None:
        """The reports of files that were not read before; a log may have several of one event."""
        new = [(posixpath.normpath(read.name), read) for read in reads]
        self._reads += [read for path, read in new if path not in self._known]
        self._known.update(path for path, _ in new)

    def _around(self, beside: str) -> Around:
        machine = self._host.fs
        return Around(self._fs, beside, machine, [machine.root], self._core_pattern)


def _what(found: Listing) -> str:
    cores = [f"{name} ({short_size(file.size_bytes)})" for name, file in found.cores]
    return f"directory with {plural(len(cores), 'core file')}: {listed(cores, _MOST_CORES)}" if cores else "directory"
