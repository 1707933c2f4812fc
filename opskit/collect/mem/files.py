"""Read the files that are in memory: tmpfs and /dev/shm, memfds, System V segments, deleted files that processes still hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.mem.segments import creator_of
from opskit.errors import NoSuchProcess, NotPermitted, NotSupported
from opskit.proc.cgroup.owner import owner_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.sysvipc_shm import parse_sysvipc_shm
from opskit.proc.fs import optional
from opskit.proc.memory_files import (
    DELETED,
    HUGE_PAGES,
    MEMFD,
    SHARED_ANONYMOUS,
    SYSV,
    TMPFS,
    FileScanner,
    our_ipc_namespace,
)
from opskit.proc.namespaces import in_initial
from opskit.proc.process import command_name
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.tmpfs_mounts import HUGETLBFS, RAMFS, path_of, read_tmpfs_mounts
from opskit.proc.tmpfs_walk import TmpfsWalk
from opskit.proc.visibility import coverage_lines, hides_processes, more_rights_show_more
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.files.sysvipc_shm import Segment
    from opskit.proc.memory_files import MemoryFile
    from opskit.proc.tmpfs_mounts import TmpfsMounts

_MOST_FDS, _MOST_MEASURED = 200_000, 200
_SWAPPED = (TMPFS, MEMFD, SHARED_ANONYMOUS)
Key = tuple[int, int]


class FileHolder(NamedTuple):
    """A process that has a file mapped or open. `unit`: its container, pod or systemd unit. `pid` None: the kernel, for the loop device `command`."""

    pid: int | None
    command: str
    unit: str | None
    mapped: bool
    fds: int


class HeldMemory(NamedTuple):
    """A file in memory. `kind`: of proc.memory_files: memfd, sysv, shared-anonymous, tmpfs, huge-pages, or deleted (of a disk).

    `resident_bytes`: in memory, swapped pages included where `swapped_bytes` is None; of a deleted file of a disk its page cache (Linux 6.5).
    `disk_bytes`: what that file still takes on its disk. None: unknown. `creator_pid`: of a System V segment, which may have ended (`creator`
    None then); `attached`: how many mappings it has. `mount_pid`: a process that sees `path`; None: opskit. `changed_s`: since 1970.
    `reached_at`: our path of a file of another mount namespace, below PROC/PID/root.
    """

    kind: str
    path: str
    deleted: bool
    device: int
    inode: int
    size_bytes: int | None
    resident_bytes: int | None
    swapped_bytes: int | None
    disk_bytes: int | None
    uid: int | None
    user: str | None
    holders: tuple[FileHolder, ...]
    creator_pid: int | None = None
    creator: str | None = None
    attached: int | None = None
    mount: str | None = None
    mount_pid: int | None = None
    changed_s: float | None = None
    reached_at: str | None = None


class FileFacts(NamedTuple):
    """One look. `pids`: those asked about, none: all. `complete`: a file without a holder has none, but for processes guarded from root.

    `is_namespace`: processes outside of our PID namespace are not seen, and may hold files too. `whole`: no process and no directory
    was closed to us. `missing`: what was not read or left out.
    """

    pids: tuple[int, ...]
    files: tuple[HeldMemory, ...]
    meminfo: Mapping[str, int]
    complete: bool
    is_namespace: bool = False
    missing: tuple[str, ...] = ()
    whole: bool = True


def collect_files(host: Host, pids: tuple[int, ...] = ()) -> FileFacts:
    """Look once, at all processes or at these. Raises NotSupported for a copy, NotPermitted and NoSuchProcess for these."""
    fs = host.fs
    if not fs.is_live:
        raise NotSupported(f"--files: {fs.proc} is a copy, which has no files in memory")
    everyone = fs.pids()
    mounts = read_tmpfs_mounts(fs, everyone)
    scan = _Scan(host, mounts)
    # All processes: the others are holders of the same files.
    scan.processes([*pids, *(pid for pid in everyone if pid not in pids)])
    for pid in pids:
        scan.check_was_read(pid)
    segments = fs.maybe(parse_sysvipc_shm, "sysvipc", "shm", default=[])
    ours = optional(fs.calls.ask, our_ipc_namespace) or 0  # whose segments sysvipc lists, whatever tree it is read in
    by_key = {(ours, segment.shmid): segment for segment in segments}
    if not pids:
        # The largest first, while there are entries left to look at; those without a limit do not say.
        for mount in sorted(mounts.mounts, key=lambda mount: (mount.used_bytes is not None, -(mount.used_bytes or 0))):
            scan.walk(mount)
        scan.loop_devices()
    wanted = {key for key, users in scan.holders.items() if not pids or {user.pid for user in users} & {*pids}}
    files = [_held(host, scan, key, by_key) for key in {**scan.files, **scan.walked} if not pids or key in wanted]
    if not pids:
        files += [_segment(host, *each) for each in by_key.items() if each[0] not in scan.files]
    meminfo = fs.maybe(parse_meminfo, "meminfo", default={})
    notes = scan.notes()
    if meminfo.get("SwapTotal", 0) > meminfo.get("SwapFree", 0):
        files = _without_swap(host, scan, files)
        if any(file.kind in _SWAPPED and file.swapped_bytes is None for file in files):
            notes.append("pages of some of these files that are swapped out count as memory")
    is_complete = not (scan.denied and more_rights_show_more(fs)) and not hides_processes(fs)
    return FileFacts(
        pids, tuple(files), meminfo, is_complete, in_initial(fs, "pid") is False, tuple(notes), scan.is_whole
    )


def _without_swap(host: Host, scan: _Scan, files: list[HeldMemory]) -> list[HeldMemory]:
    """The files, of the largest ones what is in swap apart from what is in memory (Linux 6.5)."""
    files = sorted(files, key=lambda file: -(file.resident_bytes or 0))
    for at, file in enumerate(files[:_MOST_MEASURED]):
        if file.kind not in _SWAPPED or file.resident_bytes is None or file.swapped_bytes is not None:
            continue
        key = file.device, file.inode
        mount, path, _ = scan.walked.get(key, (None, "", None))
        place = optional(path_of, host.fs, mount.pid, path) if mount else _link_to(host, scan.files.get(key))
        cached = _cached(host, place)
        if cached is not None:
            resident = min(cached, file.resident_bytes)
            files[at] = file._replace(resident_bytes=resident, swapped_bytes=file.resident_bytes - resident)
    return files


class _Scan:
    """What processes hold, and what is in the tmpfs mounts, by (device, inode)."""

    def __init__(self, host: Host, mounts: TmpfsMounts) -> None:
        self.host, self.mounts = host, mounts
        self.files: dict[Key, MemoryFile] = {}
        self.holders: dict[Key, list[FileHolder]] = {}
        self._walk = TmpfsWalk(host.fs)
        self.walked, self.walk = self._walk.found, self._walk.walk
        self._scanner = FileScanner(host.fs, mounts, _MOST_FDS)
        self.denied, self._vanished = self._scanner.denied, self._scanner.vanished

    def processes(self, pids: Sequence[int]) -> None:
        """What each of them has mapped and open."""
        fs = self.host.fs
        for pid, found in self._scanner.scan_all(pids):
            if not found:
                continue
            owner = owner_of(fs.maybe(parse_cgroup, pid, "cgroup", default=[]))
            command, unit = command_name(fs, pid), owner.label if owner else None
            for file in found:
                key = file.device, file.inode
                known = self.files.setdefault(key, file)
                if known.allocated_bytes is None and file.allocated_bytes is not None:
                    self.files[key] = file
                self.holders.setdefault(key, []).append(FileHolder(pid, command, unit, file.mapped, len(file.fds)))

    def check_was_read(self, pid: int) -> None:
        """Raise NotPermitted or NoSuchProcess where a process was not."""
        host = self.host
        if pid in self.denied:
            who = host.process(pid)
            remedy = how_to_be_allowed(host.fs, "CAP_SYS_PTRACE", "opskit", "mem", pid, "--files", pid=pid)
            whose = f"{pid} ({who.command}, user {who.user or 'unknown'})"
            raise NotPermitted(f"cannot read the mappings of {whose}: permission denied; {remedy}")
        if pid in self._vanished:
            raise NoSuchProcess(pid)

    def loop_devices(self) -> None:
        """The kernel holds the file behind a loop device: no process has it open."""
        fs = self.host.fs
        for name in fs.names_root("sys", "block"):
            path = fs.maybe_root(str, "sys", "block", name, "loop", "backing_file") if name.startswith("loop") else None
            for key, (_, shown, _) in self.walked.items() if path else ():
                if path in (f"{shown}\n", f"{shown} (deleted)\n"):
                    self.holders.setdefault(key, []).append(FileHolder(None, name, None, mapped=False, fds=0))

    @property
    def is_whole(self) -> bool:
        """Whether every file in memory was found."""
        hidden = any(mount.is_hidden for mount in self.mounts.mounts)
        return not (
            hidden or self._walk.unlisted or self._walk.cut or self.mounts.unread or self.mounts.cut or self.denied
        )

    def notes(self) -> list[str]:
        """What is missing."""
        notes = [*coverage_lines(self.host.fs, len(self._scanner.scanned), self.denied, 0)]
        hidden = [mount for mount in self.mounts.mounts if mount.is_hidden]
        if hidden:
            notes.append(
                f"files below other mounts cannot be listed: {plural(len(hidden), 'tmpfs mount')}, {hidden[0].mount_point}"
            )
        notes += self._walk.notes("opskit", "mem", "--files")
        if self.mounts.unread or self.mounts.cut:
            notes.append("some mount namespaces could not be read, or are too many: their tmpfs mounts are left out")
        notes += self._scanner.notes()
        return notes


def _held(host: Host, scan: _Scan, key: Key, segments: Mapping[Key, Segment]) -> HeldMemory:
    file = scan.files.get(key)
    mount, path, found = scan.walked.get(key, (None, "", None))
    place = mount or next((each for each in scan.mounts.mounts if each.device == key[0]), None)
    holders = tuple(sorted(scan.holders.get(key, ()), key=lambda holder: (not holder.mapped, holder.pid or 0)))
    if file is None:
        is_huge = place is not None and place.fs_type == HUGETLBFS
        kind, length, allocated, uid = HUGE_PAGES if is_huge else TMPFS, None, None, None
    else:
        kind, length, allocated, uid = file.kind, file.size_bytes, file.allocated_bytes, file.uid
    if found is not None:
        is_ramfs = place is not None and place.fs_type == RAMFS  # it counts no blocks
        length, allocated, uid = found.size_bytes, found.size_bytes if is_ramfs else found.allocated_bytes, found.uid
    resident = _cached(host, _link_to(host, file)) if kind == DELETED else allocated
    held = HeldMemory(
        kind, path or (file.path if file else ""), bool(file and file.deleted and not found), *key, length,
        resident_bytes=file.touched_bytes if resident is None and file else resident,
        swapped_bytes=None, disk_bytes=allocated if kind == DELETED else None,
        uid=uid, user=None if uid is None else host.user_name(uid), holders=holders,
        mount=place.mount_point if place else None, mount_pid=mount.pid if mount else None,
        changed_s=found.ctime_ns / 1e9 if found else None,
        reached_at=f"{host.fs.path(mount.pid, 'root')}{path}" if mount and mount.pid is not None else None,
    )  # fmt: skip
    segment = segments.get(key)
    return held if segment is None else _with_segment(host, held, segment)


def _link_to(host: Host, file: MemoryFile | None) -> str | None:
    """A holder's link to a file. One that was not looked at may be on a server that is gone."""
    return host.fs.path(file.pid, file.at) if file is not None and file.allocated_bytes is not None else None


def _cached(host: Host, path: str | None) -> int | None:
    """What of a file is in memory, in bytes; None: unknown."""
    held = optional(host.fs.hold_regular, path) if path is not None else None
    if held is None:
        return None
    try:
        pages = optional(held.cached_pages)
        return None if pages is None else pages * host.page_bytes
    finally:
        held.close()


def _segment(host: Host, key: Key, segment: Segment) -> HeldMemory:
    """A System V segment that no readable process has mapped."""
    nobody: tuple[FileHolder, ...] = ()
    empty = HeldMemory(SYSV, "/SYSV", False, *key, None, None, None, None, None, None, nobody)
    return _with_segment(host, empty, segment)


def _with_segment(host: Host, held: HeldMemory, segment: Segment) -> HeldMemory:
    return held._replace(
        size_bytes=segment.size_bytes,
        resident_bytes=held.resident_bytes if segment.rss_bytes is None else segment.rss_bytes,
        swapped_bytes=segment.swap_bytes, uid=segment.uid, user=host.user_name(segment.uid),
        creator_pid=segment.creator_pid, creator=creator_of(host, segment), attached=segment.attached,
    )  # fmt: skip
