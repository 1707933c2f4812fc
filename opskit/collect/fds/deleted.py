"""Files that are deleted and still held, by the file system whose blocks they take; file systems that are full; memory that nobody holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.collect.fds.facts import DeletedFacts, DeletedFile, DeletedHolder, FileSystem, Unattached
from opskit.collect.fds.refused import OUTSIDE, refused
from opskit.errors import NotSupported
from opskit.proc.cgroup.owner import owner_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.fd import parse_fdinfo
from opskit.proc.files.sysvipc_shm import parse_sysvipc_shm
from opskit.proc.in_flight import fds_in_flight
from opskit.proc.local_file_systems import OVERLAY, LocalFileSystems
from opskit.proc.memory_files import DELETED, HUGE_PAGES, MEMFD, TMPFS, FileScanner
from opskit.proc.namespaces import in_initial
from opskit.proc.tmpfs_mounts import is_for_sharing, read_tmpfs_mounts
from opskit.proc.tmpfs_walk import TmpfsWalk
from opskit.proc.visibility import coverage_lines, hides_processes, more_rights_show_more

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.host import Host
    from opskit.proc.memory_files import MemoryFile
    from opskit.proc.process import Process
    from opskit.proc.tmpfs_mounts import TmpfsMount, TmpfsMounts

_MOST_FDS = 1_000_000
_O_APPEND = 0o2000
_MOST_FLAGS = 64  # fds of one file in one process
_NEARLY_FULL = 0.1  # free
_COMMAND = ("opskit", "fds", "--deleted")
Key = tuple[int, int]


def collect_deleted(host: Host, pid: int | None = None) -> DeletedFacts:
    """Look once. `pid`: the process that is asked about. Raises NotSupported for a copy, NotPermitted where that process cannot be read."""
    fs = host.fs
    if not fs.is_live:
        raise NotSupported(f"--deleted: {fs.proc} is a copy, which has no open files")
    pids = fs.pids()
    mounts = read_tmpfs_mounts(fs, pids)
    scanner = FileScanner(fs, mounts, _MOST_FDS, with_sockets=True)
    scan = _Scan(host, scanner, mounts)
    scan.processes(pids)
    if pid is not None and pid in scanner.denied:
        raise refused(host, host.process(pid))
    walk = TmpfsWalk(fs)
    for mount in mounts.mounts:
        if is_for_sharing(mount.mount_point):
            walk.walk(mount)
    is_whole_machine = in_initial(fs, "pid") is not False and not hides_processes(fs)
    is_complete = is_whole_machine and not (scanner.denied and more_rights_show_more(fs))
    unattached = [*_segments(host), *(_left_files(host, walk, scan) if is_complete else ())]
    return DeletedFacts(
        systems=scan.file_systems(),
        memory=_largest_first(scan.memory),
        unattached=tuple(sorted(unattached, key=lambda one: -one.bytes)),
        in_flight=tuple(sorted(fds_in_flight(fs, scanner.sockets).items(), key=lambda each: (-each[1], each[0]))),
        skipped_remote=scanner.skipped,
        complete=is_whole_machine and not scanner.denied,
        missing=(*(() if pid else _unread(host, scanner)), *_missing(host, scanner, mounts, walk)),
    )


class _Scan:
    """The deleted files of all processes, by the device of their file system."""

    def __init__(self, host: Host, scanner: FileScanner, mounts: TmpfsMounts) -> None:
        self._host, self._scanner = host, scanner
        self._tmpfs = {mount.device: mount for mount in mounts.mounts}
        self._systems = LocalFileSystems(host.fs, scanner.mounts)
        self.held: set[Key] = set()
        self.on_disk: dict[int | None, list[DeletedFile]] = {}
        self.memory: list[DeletedFile] = []

    def processes(self, pids: Sequence[int]) -> None:
        """Add what they hold."""
        self._systems.add_all()
        for mount in self._tmpfs.values():
            if _is_nearly_full(mount):  # containers have thousands that are empty
                self._systems.add_tmpfs(mount)
        files: dict[tuple[int | None, int, int], list[MemoryFile]] = {}
        for pid, found in self._scanner.scan_all(pids):
            for file in found:
                self.held.add((file.device, file.inode))
                if file.deleted and file.kind in (DELETED, TMPFS, MEMFD, HUGE_PAGES):
                    system = self._system_of(file, pid)
                    # An overlay gives its files numbers of its own device, and mappings of them those of the disk.
                    is_overlay = file.mount is not None and file.mount.fs_type == OVERLAY and system is not None
                    device = system if is_overlay and system is not None else file.device
                    files.setdefault((system, device, file.inode), []).append(file)
        described: dict[int, tuple[Process, str | None]] = {}
        for (system, *_), holding in files.items():
            one = _deleted_file(self._host, holding, described)
            if system is None and holding[0].kind != DELETED:
                self.memory.append(one)
            else:
                self.on_disk.setdefault(system, []).append(one)

    def _system_of(self, file: MemoryFile, pid: int) -> int | None:
        if file.kind in (MEMFD, HUGE_PAGES):
            return None
        if file.kind == TMPFS:
            mount = self._tmpfs.get(file.device)
            return None if mount is None else self._systems.add_tmpfs(mount)
        return None if file.mount is None else self._systems.add(file.mount, pid)

    def file_systems(self) -> tuple[FileSystem, ...]:
        """The local file systems, those with the most in deleted files first; last one for files of a mount that is not known."""
        systems = [
            FileSystem(
                one.device, one.place, one.fs_type, one.space.size_bytes, one.space.free_bytes, one.space.inodes,
                one.space.free_inodes, _largest_first(self.on_disk.get(one.device, ())), one.space.reserved_bytes,
            )
            for one in self._systems.found.values()
            if one.space.size_bytes and not one.space.read_only
        ]  # fmt: skip
        listed = {one.device for one in systems}
        for device, files in self.on_disk.items():
            if device not in listed:
                systems.append(FileSystem(files[0].device, "", "", None, None, None, None, _largest_first(files)))
        return tuple(sorted(systems, key=lambda one: -sum(file.bytes or 0 for file in one.files)))


def _is_nearly_full(mount: TmpfsMount) -> bool:
    space = mount.space
    if space is None or space.read_only:
        return False
    has_few = space.inodes is not None and (space.free_inodes or 0) < space.inodes * _NEARLY_FULL
    return has_few or space.free_bytes < space.size_bytes * _NEARLY_FULL


def _largest_first(files: Sequence[DeletedFile]) -> tuple[DeletedFile, ...]:
    return tuple(sorted(files, key=lambda file: (-(file.bytes or 0), file.path)))


def _deleted_file(
    host: Host, holding: Sequence[MemoryFile], described: dict[int, tuple[Process, str | None]]
) -> DeletedFile:
    seen = next((file for file in holding if file.allocated_bytes is not None), holding[0])
    holders = []
    for file in holding:
        if file.pid not in described:
            owner = owner_of(host.fs.maybe(parse_cgroup, file.pid, "cgroup", default=[]))
            described[file.pid] = host.process(file.pid), owner.label if owner else None
        process, unit = described[file.pid]
        holders.append(DeletedHolder(process, file.fds, file.mapped, unit, _appending(host, file)))
    path = seen.path.removeprefix("/") if seen.kind in (MEMFD, HUGE_PAGES) else seen.path  # memfd:NAME
    return DeletedFile(
        seen.device, seen.inode, path, seen.allocated_bytes, seen.size_bytes, is_regular=True, holders=tuple(holders)
    )


def _appending(host: Host, file: MemoryFile) -> int | None:
    """An fd of a file that the process has opened O_WRONLY|O_APPEND, as often as it has opened it."""
    if not file.write_only or len(file.fds) > _MOST_FLAGS:
        return None
    flags = (host.fs.maybe(_flags, file.pid, "fdinfo", fd) for fd in file.fds)
    return file.fds[0] if all(each is not None and each & _O_APPEND for each in flags) else None


def _flags(fdinfo: str) -> int | None:
    """The flags of open(2), in octal."""
    text = parse_fdinfo(fdinfo).get("flags", "")
    return int(text, 8) if text and len(text) <= 20 and not text.strip("01234567") else None  # a number


def _segments(host: Host) -> Iterator[Unattached]:
    for segment in host.fs.maybe(parse_sysvipc_shm, "sysvipc", "shm", default=[]):
        used = segment.size_bytes if segment.rss_bytes is None else segment.rss_bytes + (segment.swap_bytes or 0)
        if used and not segment.attached:
            yield Unattached("sysv", str(segment.shmid), used, shell.command("ipcrm", "-m", segment.shmid))


def _left_files(host: Host, walk: TmpfsWalk, scan: _Scan) -> Iterator[Unattached]:
    for key, (mount, path, found) in walk.found.items():
        if key not in scan.held and found.allocated_bytes:
            place = path if mount.pid is None else f"{host.fs.path(mount.pid, 'root')}{path}"
            yield Unattached("shm", place, found.allocated_bytes, shell.command("rm", place))


def _unread(host: Host, scanner: FileScanner) -> Iterator[str]:
    """The processes that could not be read; of one that is asked about the files are known."""
    yield from coverage_lines(host.fs, len(scanner.scanned), scanner.denied, 0)


def _missing(host: Host, scanner: FileScanner, mounts: TmpfsMounts, walk: TmpfsWalk) -> Iterator[str]:
    fs = host.fs
    if in_initial(fs, "pid") is False:
        yield OUTSIDE
    yield from scanner.notes()
    if mounts.unread or mounts.cut:
        yield "some mount namespaces could not be read, or are too many: their tmpfs mounts are left out"
    yield from walk.notes(*_COMMAND)
    yield from _held_by_the_kernel(host)


def _held_by_the_kernel(host: Host) -> Iterator[str]:
    """Deleted files that no process holds: of loop devices, and swap files."""
    fs = host.fs
    for name in fs.names_root("sys", "block"):
        path = fs.maybe_root(str, "sys", "block", name, "loop", "backing_file") if name.startswith("loop") else None
        if path is not None and path.endswith(" (deleted)\n"):
            yield f"{name} holds a deleted file, whose blocks cannot be read: {path.removesuffix(' (deleted)' + chr(10))}"
    for line in fs.maybe(str.splitlines, "swaps", default=[]):
        place, kind = [*line.split(), "", ""][:2]
        if kind == "file" and place.endswith("\\040(deleted)"):
            yield f"swap is on a deleted file: {place.removesuffix(chr(92) + '040(deleted)')}"
