"""Read the space of the local file systems, in all mount namespaces, and which of them turned read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.fds.facts import FileSystem
from opskit.proc.block_devices import device_chain
from opskit.proc.config.fstab import Entry, parse_fstab
from opskit.proc.fd_directory import FD_WRITABLE
from opskit.proc.files.mountinfo import Mount, parse_mountinfo
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import optional
from opskit.proc.lines import lines_of
from opskit.proc.local_file_systems import LocalFileSystems, is_local
from opskit.proc.namespaces import namespace
from opskit.proc.process_mounts import ProcessMounts, is_remote
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.fs import ProcFS

_LEAST_BYTES = 1 << 20  # smaller ones are made to measure
_MOST_NAMESPACES = 500
_MAJOR_MINOR = 2  # of the words of a line
_MOST_LINES = 20_000


class ReadOnly(NamedTuple):
    """A file system whose super block is read-only. `mounted_rw`: a mount of it is not: the kernel made it read-only, or a remount elsewhere.

    `emergency`: the kernel's word for it (`emergency_ro`, `shutdown`); None: none. `entry`: its line in /etc/fstab. `chain`: its device, and what that is on.
    """

    mount: Mount
    mounted_rw: bool
    emergency: str | None = None
    entry: Entry | None = None
    chain: tuple[str, ...] = ()


class Writer(NamedTuple):
    """A process that has files open for writing on a file system."""

    pid: int
    start_ticks: int | None


class SpaceFacts(NamedTuple):
    """One look. `writers`: where processes were asked about, by device of the file system, the only ones that count.

    `remote`: network file systems, at which nobody looked. `missing`: what is unknown, and why.
    """

    systems: tuple[FileSystem, ...]
    read_only: tuple[ReadOnly, ...]
    remote: int = 0
    writers: Mapping[int, Writer] = {}
    missing: tuple[tuple[str, str], ...] = ()


def collect_file_systems(host: Host, pids: Sequence[int] = ()) -> SpaceFacts:
    """Look once, without network file systems. `pids`: also what they write to."""
    return _Look(host).read(pids)


class _Look:
    def __init__(self, host: Host) -> None:
        self._host, self._fs = host, host.fs
        self._mounts = ProcessMounts(host.fs)
        self._systems = LocalFileSystems(host.fs, self._mounts)
        self._read_only: dict[str, ReadOnly] = {}
        self._seen: set[str] = set()
        self._pools: set[tuple[str, int]] = set()
        self._unread = 0

    def read(self, pids: Sequence[int]) -> SpaceFacts:
        fs = self._fs
        if not fs.is_live:
            own = fs.maybe(parse_mountinfo, 1, "mountinfo", default=[])
            self._look_for_read_only(own)
            return SpaceFacts(
                (), tuple(self._read_only.values()), missing=(("space on file systems", "a copy does not have it"),)
            )
        own = self._mounts.of("self" if fs.is_own() and not fs.root else 1)
        self._systems.add_all()
        self._look_for_read_only(own)
        self._seen = {mount.device for mount in own}
        self._other_namespaces(pids or fs.pids())
        missing = []
        if self._unread:
            what = f"file systems of {plural(self._unread, 'mount namespace')}"
            missing.append((what, "permission denied: run as root"))
        remote = len({mount.device for mount in own if is_remote(mount) and mount.fs_type != "fusectl"})
        writers = {device: found for pid in pids for device, found in self._writers(pid)}
        return SpaceFacts(tuple(self._file_systems()), tuple(self._read_only.values()), remote, writers, tuple(missing))

    def _file_systems(self) -> Iterator[FileSystem]:
        sources = {mount.mount_point: mount.source for mount in self._mounts.of("self")}
        for one in self._systems.found.values():
            space = one.space
            if space.read_only or space.size_bytes < _LEAST_BYTES:
                continue
            if one.fs_type == "zfs":  # the datasets of a pool share its space
                pool = sources.get(one.mount_point, "").partition("/")[0], space.free_bytes >> 20
                if pool in self._pools:
                    continue
                self._pools.add(pool)
            yield FileSystem(
                one.device, one.place, one.fs_type, space.size_bytes, space.free_bytes, space.inodes, space.free_inodes,
                (), space.reserved_bytes,
            )  # fmt: skip

    def _other_namespaces(self, pids: Sequence[int]) -> None:
        """Add what only containers and services with mounts of their own see. Each namespace is read once."""
        fs = self._fs
        known = {namespace(fs, "self", "mnt"), None}
        for pid in pids:
            name = namespace(fs, pid, "mnt")
            if name in known or len(known) > _MOST_NAMESPACES:
                continue
            known.add(name)
            lines = fs.maybe(_lines, pid, "mountinfo")
            if lines is None:
                self._unread += 1
                continue
            new = [line for line in lines if _device_of(line) not in self._seen]
            mounts = optional(parse_mountinfo, "\n".join(new), default=[])
            self._seen.update(mount.device for mount in mounts)
            for mount in sorted(mounts, key=lambda each: (each.root != "/", len(each.mount_point))):
                self._systems.add(mount, pid)
            self._look_for_read_only(mounts)

    def _look_for_read_only(self, mounts: Sequence[Mount]) -> None:
        entries: dict[str, Entry] | None = None
        for mount in mounts:
            words = mount.super_options
            emergency = next((word for word in ("emergency_ro", "shutdown") if word in words), None)
            if not (emergency or "ro" in words) or not is_local(mount):
                continue
            if entries is None:
                entries = {each.mount_point: each for each in self._fs.maybe_root(parse_fstab, "etc", "fstab") or ()}
            is_rw = "rw" in mount.own_options
            known = self._read_only.get(mount.device)
            if known is None or (is_rw and not known.mounted_rw):
                entry = entries.get(mount.mount_point)
                self._read_only[mount.device] = ReadOnly(mount, is_rw, emergency, entry, _chain_of(self._fs, mount))

    def _writers(self, pid: int) -> Iterator[tuple[int, Writer]]:
        """The file systems that a process writes to: of its fds, and its working directory's."""
        fs = self._fs
        stat = fs.maybe(parse_stat, pid, "stat")
        writer = Writer(pid, stat and stat.start_ticks)
        links = optional(lambda: fs.fd_links(pid, wanted=(b"/",)), default=[])
        paths = [target for _, target, mode in links if mode & FD_WRITABLE]
        cwd = optional(fs.link, pid, "cwd")
        by_point = sorted(self._mounts.of(pid), key=lambda mount: -len(mount.mount_point))
        for path in dict.fromkeys([*paths, *([cwd] if cwd else [])]):
            text = path.decode("utf-8", "surrogateescape")
            for mount in by_point:
                if text == mount.mount_point or text.startswith(f"{mount.mount_point.rstrip('/')}/"):
                    device = self._systems.add(mount, pid)
                    if device is not None:
                        yield device, writer
                    break


def _lines(text: str) -> list[str]:
    return list(lines_of(text))[:_MOST_LINES]


def _device_of(line: str) -> str:
    words = line.split(" ", _MAJOR_MINOR + 1)
    return words[_MAJOR_MINOR] if len(words) > _MAJOR_MINOR else ""


def _chain_of(fs: ProcFS, mount: Mount) -> tuple[str, ...]:
    """By its number, of btrfs by its source."""
    blocks = fs.names_root("sys", "class", "block")
    source = mount.source.rpartition("/")[2]
    is_known = not mount.device.startswith("0:")
    named = (each for each in blocks if fs.maybe_root(str.strip, "sys", "class", "block", each, "dev") == mount.device)
    name = (next(named, None) if is_known else None) or (source if source in blocks else None)
    return device_chain(fs, name) if name is not None else ()
