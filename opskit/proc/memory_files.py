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

from opskit.proc.fd_directory import FD_READABLE
from opskit.proc.fd_scan import FdScan, FdScanner
from opskit.proc.files.smaps import parse_smaps
from opskit.proc.fs import GONE, ProcFS, optional
from opskit.proc.memory import PAGE_BYTES
from opskit.proc.namespaces import namespace
from opskit.proc.process_mounts import ProcessMounts, is_remote
from opskit.proc.tmpfs_mounts import is_below, make_device
from opskit.quantities import hexadecimal, integer, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.file_id import FileId
    from opskit.proc.files.mountinfo import Mount
    from opskit.proc.tmpfs_mounts import TmpfsMounts

    _Link = tuple[bytes, bytes]  # of an fd directory: name and target

# The kinds, and what a path of each begins with.
MEMFD, SYSV, SHARED_ANONYMOUS, TMPFS, DELETED = "memfd", "sysv", "shared-anonymous", "tmpfs", "deleted"
HUGE_PAGES = "huge-pages"  # a memfd, a segment or a file of reserved huge pages
_NAMES = {
    b"/memfd:": MEMFD, b"/SYSV": SYSV, b"/dev/zero": SHARED_ANONYMOUS,
    b"/drm mm object": SHARED_ANONYMOUS, b"/i915": SHARED_ANONYMOUS,  # of graphics drivers
}  # fmt: skip
# Deleted by name only: rings of io_submit(2), reserved huge pages.
_NOT_FILES = (b"/[aio]", b"/anon_hugepage")
_INTERNAL = (*_NAMES, *_NOT_FILES)
_DELETED, _NEWLINE, _SOCKET = b" (deleted)", rb"\012", b"socket:["
_LINE = rb"^([0-9a-f]+-[0-9a-f]+) \S+ \S+ ([0-9a-f]+):([0-9a-f]+) ([0-9]+) +(/[^\n]*)$"


class MemoryFile(NamedTuple):
    """A file as one process sees it. `touched_bytes`: what it has mapped and in memory, read only where a look at the file is denied.

    `device` and `inode` identify it; of a System V segment `device` is the number of its IPC namespace, and `inode` its shmid. `path` without ` (deleted)`. `allocated_bytes`: memory and swap, of a deleted file of a disk its blocks there; None: unknown.
    `fds`: those of the process `pid`, `write_only`: whether each of them was opened for writing alone. `at`: below /proc/PID, a link to it:
    map_files/ADDRESSES or fd/N. `mount`: of a deleted file of a disk; None: it is mounted nowhere that is known.
    """

    pid: int
    kind: str
    device: int
    inode: int
    path: str
    deleted: bool
    mapped: bool
    fds: tuple[int, ...]
    at: str
    size_bytes: int | None
    allocated_bytes: int | None
    touched_bytes: int | None
    uid: int | None
    mount: Mount | None = None
    write_only: bool = False


class _Seen:
    """A file before it is looked at."""

    __slots__ = ("at", "fds", "found", "kind", "mapped", "mount", "path", "touched_bytes", "write_only")

    def __init__(self, kind: str, path: bytes, at: str, found: FileId | None, mount: Mount | None) -> None:
        self.kind, self.path, self.at, self.found, self.mount = kind, path, at, found, mount
        self.fds: list[int] = []
        self.mapped = False
        self.touched_bytes: int | None = None
        self.write_only = True


class FileScanner:
    """Scans processes one by one. `mounts`: of tmpfs. What is on a network file system is not looked at: that may hang.

    `fds_left`: how many fds may still be looked at. `with_sockets`: keep the (PID, fd, link) of sockets. PIDs that were `scanned`, `denied` and `vanished`.
    """

    def __init__(self, fs: ProcFS, mounts: TmpfsMounts, fds_left: int, *, with_sockets: bool = False) -> None:
        self._fs, self._remote = fs, mounts.remote_points
        self._most_fds = fds_left
        self._devices = frozenset(mount.device for mount in mounts.mounts)
        self._mapping = re.compile(_LINE, re.MULTILINE)
        # A maps file without any of these has no line that is looked for: most have none.
        self._marks = (_DELETED, *(b" %02x:%02x " % (_major(each), _minor(each)) for each in self._devices))
        points = {f"{one.mount_point.rstrip('/')}/".encode("utf-8", "surrogateescape") for one in mounts.mounts}
        self._below_mounts = tuple(sorted(points - {b"/"}))
        self._has_root = b"/" in points  # a machine without disks, a sandbox
        self._wanted = (b"/", _SOCKET) if with_sockets else (b"/",)
        self._numbers: dict[tuple[bytes, bytes], int] = {}  # major and minor in maps -> the device
        self.mounts = ProcessMounts(fs)
        self.fds_left = fds_left
        self.skipped = 0  # fds on network file systems
        self.detached = 0  # fds whose mount is not known
        self.sockets: list[tuple[int, bytes, bytes]] = []
        self.scanned: list[int] = []
        self.denied: list[int] = []
        self.vanished: list[int] = []

    def scan_all(self, pids: Iterable[int]) -> Iterator[tuple[int, list[MemoryFile]]]:
        """The processes that could be read, with their files."""
        for pid in pids:
            try:
                found = self.scan(pid)
            except GONE:
                self.vanished.append(pid)
            except OSError:
                self.denied.append(pid)
            else:
                self.scanned.append(pid)
                yield pid, found

    def notes(self) -> Iterator[str]:
        """What was not looked at."""
        if self.skipped:
            yield f"not looked at, since a stat may hang: {plural(self.skipped, 'fd')} on network file systems"
        if self.detached:
            yield f"not looked at: {plural(self.detached, 'fd')} on detached mounts, or on mounts of namespaces that could not be read"
        if self.fds_left <= 0:
            yield f"only {self._most_fds:,} open files were looked at"

    def scan(self, pid: int) -> list[MemoryFile]:
        """The files of one process. Raises OSError where its mappings cannot be read."""
        seen: dict[tuple[int, int], _Seen] = {}
        for key, kind, path, addresses in self._mappings(pid):
            if key not in seen:
                at = f"map_files/{addresses}"
                mount = self.mounts.of_device(pid, key[0]) if kind == DELETED else None
                may_hang = kind == DELETED and (not _major(key[0]) if mount is None else is_remote(mount))
                found = None if may_hang else optional(self._fs.file_id, pid, at)
                if _NEWLINE in path:  # or these four characters
                    path = optional(self._fs.link, pid, at, default=path)
                if kind == SYSV:  # each IPC namespace has a segment 0
                    key = ipc_namespace(self._fs, pid) or 0, key[1]
                elif found is not None:
                    key = found.device, found.inode
                seen.setdefault(key, _Seen(kind, path, at, found, mount))
            seen[key].mapped = True
        for kind, (name, path), found, mount in self._open(pid):
            fd = integer(name) or 0
            one = seen.setdefault((found.device, found.inode), _Seen(kind, path, f"fd/{fd}", found, mount))
            one.found, one.mount = one.found or found, one.mount or mount
            one.fds.append(fd)
            one.write_only = one.write_only and path.endswith(_DELETED) and self._is_write_only(pid, fd)
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
        if not any(mark in text for mark in self._marks):
            return
        before = None
        for addresses, major, minor, inode, path in self._mapping.findall(text):
            place = (major, minor, inode)
            if place == before:  # the next part of the same file
                continue
            before = place
            device = self._numbers.get(place[:2])
            if device is None:
                device = self._numbers[place[:2]] = make_device(hexadecimal(major) or 0, hexadecimal(minor) or 0)
            kind = self._kind(path, device)
            if kind:
                start, _, end = addresses.decode().partition("-")  # map_files has no leading zeros
                yield (device, integer(inode) or 0), kind, path, f"{start.lstrip('0')}-{end.lstrip('0')}"

    def _open(self, pid: int) -> Iterator[tuple[str, _Link, FileId, Mount | None]]:
        tables: FdScan[tuple[tuple[object, ...], list[_Link]]] = FdScan()
        if self.fds_left > 0:
            FdScanner(self._fs, self._table).scan([pid], tables)
        for parts, links in tables.tables:
            self.fds_left -= len(links)
            yield from self._files(pid, parts, links)

    def _table(
        self, _pid: int, _tid: int | None, parts: tuple[object, ...]
    ) -> tuple[tuple[tuple[object, ...], list[_Link]] | None, bool]:
        pairs = self._fs.fd_pairs(*parts)
        links = [pair for pair in pairs if pair[1].startswith(self._wanted)]
        return ((parts, links) if links else None), bool(pairs)

    def _files(
        self, pid: int, parts: tuple[object, ...], links: list[_Link]
    ) -> Iterator[tuple[str, _Link, FileId, Mount | None]]:
        for link in links:
            name, target = link
            if target.startswith(_SOCKET):
                self.sockets.append((pid, name, target))  # by a process: the fdinfo of its threads is the same
                continue
            is_deleted = target.endswith(_DELETED)
            is_known = is_deleted and target.startswith(_INTERNAL)  # on no mount that is listed
            is_below = target.startswith(self._below_mounts)
            if not (is_deleted or is_below or self._has_root):
                continue
            # The path says where it is only below a mount. It may be any file system's, and mounted nowhere by now.
            is_asked = not is_known and (is_deleted or not is_below)
            mount = self.mounts.of_fd(parts, name.decode()) if is_asked else None
            if is_remote(mount) if mount else not is_known and self._is_below_remote(target):
                self.skipped += 1
                continue
            if is_asked and mount is None:
                # Else it was closed meanwhile.
                self.detached += optional(self._fs.link, *parts, "fd", name.decode()) == target
                continue
            found = optional(self._fs.file_id, *parts, "fd", name.decode())
            if found is not None and stat.S_ISREG(found.mode):
                kind = self._kind(target, found.device)
                if kind and not (kind == DELETED and found.links):  # a name may end in " (deleted)"
                    yield kind, link, found, mount

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

    def _is_write_only(self, pid: int, fd: int) -> bool:
        """The mode of the link has how the fd was opened."""
        link = optional(self._fs.file_id_at, self._fs.path(pid, "fd", fd))
        return link is not None and not link.mode & FD_READABLE

    def _is_below_remote(self, path: bytes) -> bool:
        return bool(self._remote) and is_below(path.decode("utf-8", "surrogateescape"), self._remote)


def ipc_namespace(fs: ProcFS, pid: int | str) -> int | None:
    """The number of a process's IPC namespace, `ipc:[4026531839]`; None where the link cannot be read."""
    return integer((namespace(fs, pid, "ipc") or b"").rpartition(b"[")[2].removesuffix(b"]"))


def our_ipc_namespace() -> int | None:
    """The number of our own."""
    return ipc_namespace(ProcFS(), "self")


def _major(device: int) -> int:
    """The major number: 0 is that of a file system without a block device, as all of the network are."""
    return (device >> 8) & 0xFFF | (device >> 32) & ~0xFFF


def _minor(device: int) -> int:
    return (device & 0xFF) | (device >> 12) & 0xFFFFFF00


def _file(pid: int, key: tuple[int, int], one: _Seen) -> MemoryFile:
    bare = one.path.removesuffix(_DELETED)
    found = one.found
    deleted = bare != one.path and not (found is not None and found.links and one.kind in (TMPFS, DELETED))
    path = (bare if deleted else one.path).decode("utf-8", "surrogateescape")
    return MemoryFile(
        pid, one.kind, *key, path=path, deleted=deleted, mapped=one.mapped, fds=tuple(sorted(one.fds)), at=one.at,
        size_bytes=found.size_bytes if found else None, allocated_bytes=found.allocated_bytes if found else None,
        touched_bytes=one.touched_bytes, uid=found.uid if found else None, mount=one.mount, write_only=bool(one.fds) and one.write_only,
    )  # fmt: skip
