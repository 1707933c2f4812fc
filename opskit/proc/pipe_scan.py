"""Which process holds which pipe: one pass over PROC/*/fd.

A pipe is named by its link target, `pipe:[INODE]`. A FIFO's target is a path, and two devices can give the same inode
number, so a FIFO is named `fifo:DEVICE:INODE` and is never mistaken for a pipe of the same number.
"""

from __future__ import annotations

import stat
from collections import Counter
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.fd_directory import FD_READABLE, FD_WRITABLE
from opskit.proc.fd_kinds import unmounted_kind_of
from opskit.proc.fd_scan import FdScan, FdScanner
from opskit.proc.files.fd import PIPE_PREFIX, parse_fdinfo
from opskit.proc.process_mounts import ProcessMounts, is_remote
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opskit.proc.fs import ProcFS

# procfs gives its links to the owner alone; links that others have rights on were copied, and their bits say nothing.
_NOT_PROC = 0o077
_MODES = {0: FD_READABLE, 1: FD_WRITABLE, 2: FD_READABLE | FD_WRITABLE}
_SOCKET_PREFIX = b"socket:["
_WANTED = (PIPE_PREFIX, _SOCKET_PREFIX)
_WANTED_WITH_FIFOS = (*_WANTED, b"/")


class Ends(NamedTuple):
    """One process's fds on one pipe: how many read and write (both 0: unknown, a copy without fdinfo), and one by number."""

    read_fds: int
    write_fds: int
    fd: int


class Holder(NamedTuple):
    """A process's fds on each pipe; `ends`: with directions, if asked for; `tid`: where one thread has the table alone."""

    pid: int
    counts: dict[bytes, int]
    ends: dict[bytes, Ends] | None = None
    tid: int | None = None


class PipeScan(FdScan[Holder]):
    """One pass: the holders in `tables`.

    `sockets`: (pid, fd, link) of every socket, with `ends`: a pipe's other end may be in flight there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fifo_paths: dict[bytes, bytes] = {}
        self.sockets: list[tuple[int, bytes, bytes]] = []
        self.remote_skipped = self.copied_skipped = 0

    @property
    def holders(self) -> list[Holder]:
        """The tables with pipes."""
        return self.tables


class PipeScanner:
    """Scanner of fd directories: with directions (`ends`), with named FIFOs, with threads' own fd tables."""

    def __init__(
        self, fs: ProcFS, *, ends: bool = False, fifos: bool = False, threads: bool = False,
        same_fd_table: Callable[[int, int], bool] | None = None,
    ) -> None:  # fmt: skip
        self.fs, self.ends, self.fifos, self.threads, self.same_fd_table = fs, ends, fifos, threads, same_fd_table
        self._mounts = ProcessMounts(fs)

    def scan(self, pids: Iterable[int]) -> PipeScan:
        """Scan these processes."""
        result = PipeScan()
        # Mounts come and go during a watch, and a new one gets the number of an old one.
        self._mounts = ProcessMounts(self.fs)

        def read(pid: int, tid: int | None, parts: tuple[object, ...]) -> tuple[Holder | None, bool]:
            found, any_fd = self._table(parts, pid, tid, result)
            if found is not None and not self.fs.is_live:
                _check_links(found)
            return found, any_fd

        scanner = FdScanner(self.fs, read, threads=self.threads, same_fd_table=self.same_fd_table)
        scanner.scan(pids, result)
        return result

    def _table(
        self, parts: tuple[object, ...], pid: int, tid: int | None, result: PipeScan
    ) -> tuple[Holder | None, bool]:
        if not (self.ends or self.fifos):
            targets = self.fs.fd_targets(*parts)
            counts = {key: count for key, count in Counter(targets).items() if key.startswith(PIPE_PREFIX)}
            return (Holder(pid, counts, None, tid) if counts else None), bool(targets)
        links = self.fs.fd_links(*parts, wanted=_WANTED_WITH_FIFOS if self.fifos else _WANTED)
        fd_of: dict[bytes, bytes] = {}
        fds: dict[bytes, int] = {}
        reads: dict[bytes, int] = {}
        writes: dict[bytes, int] = {}
        for fd, target, mode in links:
            key = target
            if not target.startswith(PIPE_PREFIX):
                if target.startswith(_SOCKET_PREFIX):
                    result.sockets.append((pid, fd, target))
                    continue
                if mode & _NOT_PROC:  # the path is another machine's: what lies there here is something else
                    result.copied_skipped += 1
                    continue
                key = self._fifo(parts, fd, target, result)
                if not key:
                    continue
            if mode & _NOT_PROC:
                mode = self._mode_by_fdinfo(parts, fd)
            fd_of[key] = fd
            fds[key] = fds.get(key, 0) + 1
            if mode & FD_READABLE:
                reads[key] = reads.get(key, 0) + 1
            if mode & FD_WRITABLE:
                writes[key] = writes.get(key, 0) + 1
        ends = {key: Ends(reads.get(key, 0), writes.get(key, 0), integer(fd) or 0) for key, fd in fd_of.items()}
        any_fd = bool(links) or bool(self.fs.fd_count(*parts))
        return (Holder(pid, fds, ends, tid) if fds else None), any_fd

    def _mode_by_fdinfo(self, parts: tuple[object, ...], fd: bytes) -> int:
        """The direction in a copy's fdinfo (flags, octal: open(2)'s access mode); 0 if it has none."""
        flags = self.fs.maybe(parse_fdinfo, *parts, "fdinfo", fd.decode(), default={}).get("flags", "")
        last = "01234567".find(flags[-1]) if flags else -1
        return _MODES.get(last & 3, 0) if last >= 0 else 0

    def _fifo(self, parts: tuple[object, ...], fd_name: bytes, target: bytes, result: PipeScan) -> bytes:
        fd = fd_name.decode()
        try:
            mount = self._mounts.of_fd(parts, fd)
            if mount is None or is_remote(mount):
                # A memfd is mounted nowhere too, and is no FIFO.
                result.remote_skipped += mount is not None or unmounted_kind_of(target) is None
                return b""
            found = self.fs.file_id(*parts, "fd", fd)
        except (OSError, BadInput):  # gone, denied, or its file system is (ESTALE, ENOTCONN, EIO)
            return b""
        if not stat.S_ISFIFO(found.mode):
            return b""
        key = b"fifo:%d:%d" % (found.device, found.inode)
        result.fifo_paths[key] = target
        return key


def _check_links(holder: Holder) -> None:
    for key in holder.counts:
        if key.startswith(PIPE_PREFIX) and (not key.endswith(b"]") or integer(key[len(PIPE_PREFIX) : -1]) is None):
            raise BadInput("fd", "a link that is no pipe:[INODE]", found=key.decode("utf-8", "replace"))


def only(holder: Holder, keys: set[bytes]) -> Holder:
    """What a process holds of these pipes."""
    counts = {key: count for key, count in holder.counts.items() if key in keys}
    ends = {key: end for key, end in holder.ends.items() if key in keys} if holder.ends is not None else None
    return Holder(holder.pid, counts, ends, holder.tid)
