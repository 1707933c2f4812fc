"""Which files that are in memory a process has mapped or open: memfds, System V segments, tmpfs files, deleted files.

/proc/PID/maps (proc_pid_maps(5)), and the links in /proc/PID/fd:

7f1200000000-7f1206400000 rw-s 00000000 00:01 1044      /memfd:pool (deleted)
7f1206400000-7f120c800000 rw-s 00000000 00:01 3         /SYSV00000000 (deleted)
7f120c800000-7f1212c00000 rw-s 00000000 00:01 2052      /dev/zero (deleted)
7f1212c00000-7f1219000000 rw-s 00000000 00:1b 7         /dev/shm/cache
7f1219000000-7f121f400000 r--s 00000000 fe:00 1310      /var/lib/app/index (deleted)
"""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING

from opskit.proc.files.smaps import parse_smaps
from opskit.proc.fs import optional
from opskit.proc.memory import PAGE_BYTES
from opskit.proc.namespaces import namespace
from opskit.proc.tmpfs_mounts import is_below, make_device
from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.fd_directory import FdLink
    from opskit.proc.fs import FileId, ProcFS

# The kinds, and what a path of each begins with.
MEMFD, SYSV, SHARED_ANONYMOUS, TMPFS, DELETED = "memfd", "sysv", "shared-anonymous", "tmpfs", "deleted"
HUGE_PAGES = "huge-pages"  # a memfd, a segment or a file of reserved huge pages
_NAMES = {
    b"/memfd:": MEMFD, b"/SYSV": SYSV, b"/dev/zero": SHARED_ANONYMOUS,
    b"/drm mm object": SHARED_ANONYMOUS, b"/i915": SHARED_ANONYMOUS,  # of graphics drivers
}  # fmt: skip
# Deleted by name only: rings of io_submit(2), reserved huge pages.
_NOT_FILES = (b"/[aio]", b"/anon_hugepage")
_DELETED, _NEWLINE = b" (deleted)", rb"\012"
_LINE = rb"^([0-9a-f]+-[0-9a-f]+) \S+ \S+ ([0-9a-f]+):([0-9a-f]+) ([0-9]+) +(/[^\n]*)$"


class MemoryFile(NamedTuple):
    """A file as one process sees it. `touched_bytes`: what it has mapped and in memory, read only where a look at the file is denied.

    `device` and `inode` identify it; of a System V segment `device` is the number of its IPC namespace, and `inode` its shmid. `path` without ` (deleted)`. `allocated_bytes`: memory and swap, of a deleted file of a disk its blocks there; None: unknown.
    `fds`: how many the process `pid` has open; `at`: below /proc/PID, a link to it: map_files/ADDRESSES or fd/N.
    """

    pid: int
    kind: str
    device: int
    inode: int
    path: str
    deleted: bool
    mapped: bool
    fds: int
    at: str
    size_bytes: int | None
    allocated_bytes: int | None
    touched_bytes: int | None
    uid: int | None


class _Seen:
    """A file before it is looked at."""

    __slots__ = ("at", "fds", "found", "kind", "mapped", "path", "touched_bytes")

    def __init__(self, kind: str, path: bytes, at: str, found: FileId | None) -> None:
        self.kind, self.path, self.at, self.found = kind, path, at, found
        self.fds, self.mapped = 0, False
        self.touched_bytes: int | None = None


class FileScanner:
    """Scans processes one by one. `devices`: of the tmpfs mounts; `remote_points`: below them nothing is looked at, it may hang.

    `fds_left`: how many fds may still be looked at.
    """

    def __init__(
        self,
        fs: ProcFS,
        devices: frozenset[int],
        mount_points: tuple[str, ...],
        remote_points: tuple[str, ...],
        fds_left: int,
    ) -> None:
        self._fs, self._devices, self._remote = fs, devices, remote_points
        self._mapping = re.compile(_LINE, re.MULTILINE)
        points = (f"{point.rstrip('/')}/".encode("utf-8", "surrogateescape") for point in mount_points)
        self._below_mounts = tuple(dict.fromkeys(points))
        self.fds_left = fds_left
        self.skipped = 0  # fds below remote mount points

    def scan(self, pid: int) -> list[MemoryFile]:
        """The files of one process. Raises OSError where its mappings cannot be read."""
        seen: dict[tuple[int, int], _Seen] = {}
        for key, kind, path, addresses in self._mappings(pid):
            if key not in seen:
                at = f"map_files/{addresses}"
                found = None if self._may_hang(path) else optional(self._fs.file_id, pid, at)
                if _NEWLINE in path:  # or these four characters
                    path = optional(self._fs.link, pid, at, default=path)
                if kind == SYSV:  # each IPC namespace has a segment 0
                    key = ipc_namespace(self._fs, pid) or 0, key[1]
                elif found is not None:
                    key = found.device, found.inode
                seen.setdefault(key, _Seen(kind, path, at, found))
            seen[key].mapped = True
        for kind, path, fd, found in self._open(pid):
            one = seen.setdefault((found.device, found.inode), _Seen(kind, path, f"fd/{fd}", found))
            one.found = one.found or found
            one.fds += 1
        for one in seen.values():
            if one.kind in (MEMFD, SYSV, TMPFS) and self._on_huge_pages(pid, one.at):
                one.kind = HUGE_PAGES
        self._look_by_pages(pid, seen)
        return [_file(pid, key, one) for key, one in seen.items()]

    def _look_by_pages(self, pid: int, seen: dict[tuple[int, int], _Seen]) -> None:
        """Without CAP_SYS_ADMIN the links in map_files are closed to us, also those of our own processes."""
        unseen = {inode: one for (_, inode), one in seen.items() if one.found is None}
        for region in self._fs.maybe(parse_smaps, pid, "smaps", default=[]) if unseen else ():
            if region.name and (one := unseen.get(region.inode)) is not None:
                one.touched_bytes = (one.touched_bytes or 0) + region.usage.rss_bytes

    def _mappings(self, pid: int) -> Iterator[tuple[tuple[int, int], str, bytes, str]]:
        text = self._fs.read(pid, "maps")
        before = None
        for addresses, major, minor, inode, path in self._mapping.findall(text):
            place = (major, minor, inode)
            if place == before:  # the next part of the same file
                continue
            before = place
            device = make_device(hexadecimal(major) or 0, hexadecimal(minor) or 0)
            kind = self._kind(path, device)
            if kind:
                start, _, end = addresses.decode().partition("-")  # map_files has no leading zeros
                yield (device, integer(inode) or 0), kind, path, f"{start.lstrip('0')}-{end.lstrip('0')}"

    def _open(self, pid: int) -> Iterator[tuple[str, bytes, str, FileId]]:
        links = optional(_files_of, self._fs, pid, default=[]) if self.fds_left > 0 else []
        self.fds_left -= len(links)
        for name, target, _ in links:
            is_deleted = target.endswith(_DELETED)
            if not (is_deleted or target.startswith(self._below_mounts)):
                continue
            if self._may_hang(target):
                self.skipped += 1
                continue
            found = optional(self._fs.file_id, pid, "fd", name.decode())
            if found is not None and stat.S_ISREG(found.mode):
                kind = self._kind(target, found.device)
                if kind and not (kind == DELETED and found.links):  # a name may end in " (deleted)"
                    yield kind, target, name.decode(), found

    def _kind(self, path: bytes, device: int) -> str | None:
        if path.endswith(_DELETED):
            if path.startswith(_NOT_FILES):
                return None
            named = next((kind for name, kind in _NAMES.items() if path.startswith(name)), None)
            return named or (TMPFS if device in self._devices else DELETED)
        return TMPFS if device in self._devices else None

    def _on_huge_pages(self, pid: int, at: str) -> bool:
        space = optional(self._fs.space_at, self._fs.path(pid, at))
        return space is not None and space.block_bytes > PAGE_BYTES

    def _may_hang(self, path: bytes) -> bool:
        return bool(self._remote) and is_below(path.decode("utf-8", "surrogateescape"), self._remote)


def ipc_namespace(fs: ProcFS, pid: int | str) -> int | None:
    """The number of a process's IPC namespace, `ipc:[4026531839]`; None where the link cannot be read."""
    return integer((namespace(fs, pid, "ipc") or b"").rpartition(b"[")[2].removesuffix(b"]"))


def _files_of(fs: ProcFS, pid: int) -> list[FdLink]:
    return fs.fd_links(pid, wanted=(b"/",))


def _file(pid: int, key: tuple[int, int], one: _Seen) -> MemoryFile:
    bare = one.path.removesuffix(_DELETED)
    found = one.found
    deleted = bare != one.path and not (found is not None and found.links and one.kind in (TMPFS, DELETED))
    path = (bare if deleted else one.path).decode("utf-8", "surrogateescape")
    sizes = (
        (None, None, one.touched_bytes, None)
        if found is None
        else (found.size_bytes, found.allocated_bytes, one.touched_bytes, found.uid)
    )
    return MemoryFile(pid, one.kind, *key, path, deleted, one.mapped, one.fds, one.at, *sizes)
