"""How far the positions of a process's open files move: `pos` of /proc/PID/fdinfo.

pread(2), sockets and pipes move none. A seek back is not counted; a seek forward looks like a read.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from opskit.collect.io.facts import File
from opskit.proc.fd_kinds import DELETED, kind_of, path_kind, unmounted_kind_of
from opskit.proc.files.fd import parse_fdinfo
from opskit.proc.files.mountinfo import parse_mountinfo
from opskit.proc.fs import ids, optional
from opskit.proc.process_mounts import is_remote
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opskit.host import Host
    from opskit.proc.files.mountinfo import Mount
    from opskit.proc.fs import ProcFS

_FEW = 64
_MOST_FOLLOWED = 16  # between the ends of a window
_MOST_AGAIN = 500  # files that are read again in the middle of a window to choose them
_OCTAL_DIGITS = 12
_NEAR_BYTES = 4096  # that small reads move on between two looks right after each other
_MOST_TRIED = 8  # threads
_O_APPEND = 0o2000
_MODE, _READ_ONLY, _WRITE_ONLY = 3, 0, 1  # of open(2)
_MOST_BYTES = 4096  # of an `fdinfo` file; the position comes first
_WITHOUT_POSITION = (
    b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom", b"/dev/tty", b"/dev/pts/", b"/dev/ptmx", b"/dev/console",
)  # fmt: skip


class Open(NamedTuple):
    """An open file. `offset` None: it has no position that is followed."""

    target: bytes
    offset: int | None = None
    flags: int | None = None
    mount_id: int | None = None
    text: bytes | None = None  # of its fdinfo

    @property
    def appends(self) -> bool:
        """Whether each write goes to the end of the file (O_APPEND)."""
        return bool((self.flags or 0) & _O_APPEND)


class _Pairs:
    """What looks right after each other found, of one file: see File."""

    __slots__ = ("bytes", "jumps", "runs", "seconds")

    def __init__(self) -> None:
        self.runs = self.jumps = self.bytes = 0
        self.seconds = 0.0


class Positions:
    """The open files of a process: at first all, then those whose positions move."""

    def __init__(self, host: Host, pid: int, most: int) -> None:
        """`most`: fds that are read, the lowest numbers."""
        self._fs, self._monotonic, self._pid, self._most = host.fs, host.monotonic, pid, most
        self._place: tuple[object, ...] = (pid,)
        self.left_out = 0
        self._open: dict[int, Open] = {}
        self._open = self._read_all(trusting=False)
        self._followed: list[int] = []
        self._last: dict[int, int] = {}
        self._mounts: dict[int, Mount] | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a window where the last one ended."""
        self._last = {fd: each.offset for fd, each in self._open.items() if each.offset is not None}
        self._at_begin = self._open.keys()
        self._moved: dict[int, int] = {}
        self._since_look: dict[int, int] = {}
        self._seen: dict[int, Open] = {}  # those that moved
        self._pairs: dict[int, _Pairs] = {}

    def choose(self, *, ends: bool = False) -> None:
        """Read all again: what has moved since the last time is followed from now on. `ends`: the window does."""
        now = self._read_all(trusting=not ends)
        before = dict(self._moved)
        for fd, each in now.items():
            then = self._open.get(fd)
            if each.offset is None or (then is not None and then.target != each.target):
                for known_of in (self._last, self._moved, self._seen):
                    known_of.pop(fd, None)  # a number that was closed and opened again
            if each.offset is not None:
                # Opened in the window: it began at 0, or at the end of the file for O_APPEND.
                known = self._last.get(fd, 0 if then is None and not each.appends else each.offset)
                self._add(fd, each, known)
        self._open = now
        moved = [fd for fd in self._moved if self._moved[fd] != before.get(fd)]
        self._followed = sorted(moved, key=lambda fd: before.get(fd, 0) - self._moved[fd])[:_MOST_FOLLOWED]

    def look(self) -> dict[int, int]:
        """Read those that are followed: how far each moved forward since the last look; -1: only back."""
        for fd in self._followed:
            now_s = self._monotonic()
            each = self._read(fd, self._open[fd].target) if fd in self._open else None
            if each is not None and each.offset is not None:
                self._look_again(fd, each.target, each.offset, now_s)
                self._add(fd, each, self._last.get(fd, each.offset))
        moved, self._since_look = self._since_look, {}
        return {fd: (moved[fd] or -1) if fd in moved else 0 for fd in self._followed}

    def _look_again(self, fd: int, target: bytes, offset: int, since_s: float) -> None:
        """Look a second time, at once. `since_s`: when `offset` was read."""
        now_s, again = self._monotonic(), self._read(fd, target)
        if again is None or again.offset is None:
            return
        pair = self._pairs.setdefault(fd, _Pairs())
        moved = again.offset - offset
        if 0 <= moved <= _NEAR_BYTES:
            pair.runs += moved > 0
            pair.bytes += moved
            pair.seconds += now_s - since_s
        else:
            pair.jumps += 1

    def files(
        self, elapsed_s: float, most_bytes: tuple[float, float], seen: Mapping[int, Collection[int]], most: int
    ) -> tuple[File, ...]:
        """The files that moved, and those on which threads were seen (fd -> TIDs); the furthest first.

        `most_bytes`: that the process read, and that it wrote. A position that moved further was set.
        """
        found: list[tuple[int, Open, float | None, tuple[int, ...]]] = []
        for fd in {*self._moved, *seen}:
            # One that is closed now may have been open all the time.
            each = self._seen.get(fd) or self._open.get(fd) or self._read(fd, self._target(fd))
            moved = self._moved.get(fd)
            if each is None or not each.target:
                continue
            jumped = moved is None or moved > _limit(each, most_bytes)
            moved_bytes = None if jumped else (moved or 0) / elapsed_s
            found.append((fd, each, moved_bytes, tuple(sorted(seen.get(fd, ())))))
        found.sort(key=lambda file: (-len(file[3]), -(file[2] or 0), file[0]))
        return tuple(self._file(*file) for file in found[:most])

    def unmoved(self, known: Collection[int]) -> tuple[File, ...] | None:
        """The other open files; None: they are many, or were not the same at the begin of the window, so that others may come and go."""
        if len(self._open) > _FEW or self.left_out or self._open.keys() != self._at_begin:
            return None
        return tuple(
            self._file(fd, self._read(fd, each.target) or each, None, ())
            for fd, each in self._open.items()
            if fd not in known
        )

    def _file(self, fd: int, each: Open, moved_bytes: float | None, threads: tuple[int, ...]) -> File:
        mount = self._mount(each.mount_id)
        device, point = (None, None) if mount is None else (self._device(mount), mount.mount_point)
        pairs = self._pairs.get(fd, _Pairs())
        pace = pairs.bytes / pairs.seconds if pairs.runs else None
        return File(
            fd, _path(each.target), _kind(each.target), moved_bytes, each.flags, device, threads, point, pairs.runs, pairs.jumps, pace,
            None if mount is None or is_remote(mount) else self._size(fd),
        )  # fmt: skip

    def _size(self, fd: int) -> int | None:
        found = optional(self._fs.file_id, *self._place, "fd", fd)
        return found.size_bytes if found is not None and stat.S_ISREG(found.mode) else None

    def _add(self, fd: int, each: Open, known: int) -> None:
        offset = each.offset or 0
        if offset != known:
            self._seen[fd] = each
            for totals in (self._moved, self._since_look):
                totals[fd] = totals.get(fd, 0) + max(0, offset - known)
        self._last[fd] = offset

    def _read_all(self, *, trusting: bool) -> dict[int, Open]:
        """All open files. `trusting`: an fd that is known points where it did."""
        fds = self._fds()
        self.left_out = max(0, len(fds) - self._most)
        found, again = {}, 0
        for fd in fds[: self._most]:
            known = self._open.get(fd)
            again += known is not None and known.offset is not None
            leave = trusting and known is not None and again > _MOST_AGAIN
            each = known if leave else self._read_again(fd, known, trusting)
            if each is not None:
                found[fd] = each
        return found

    def _read_again(self, fd: int, known: Open | None, trusting: bool) -> Open | None:
        """An open file as it is now. Where it points is read anew where its fdinfo differs."""
        if known is not None and known.offset is not None:
            each = self._read(fd, known.target)
            if trusting or each is None or each is known:
                return each
        target = known.target if trusting and known is not None else self._target(fd)
        return self._read(fd, target) if _is_followed(target) else Open(target) if target else None

    def _fds(self) -> list[int]:
        """The numbers. Where the main thread has ended, its fd table is gone, and another thread's is read."""
        found = ids_and_zero(optional(self._fs.names_at, self._fs.path(*self._place, "fd"), default=[]))
        if found or len(self._place) > 1:
            return found
        for tid in optional(self._fs.tids, self._pid, default=[])[1 : _MOST_TRIED + 1]:
            place = self._pid, "task", tid
            if found := ids_and_zero(optional(self._fs.names_at, self._fs.path(*place, "fd"), default=[])):
                self._place = place
                break
        return found

    def _target(self, fd: int) -> bytes:
        return optional(self._fs.link, *self._place, "fd", fd, default=b"")

    def _read(self, fd: int, target: bytes) -> Open | None:
        """An open file by its fdinfo, which is parsed only where it differs from the last one."""
        path = self._fs.path(*self._place, "fdinfo", fd)
        text = optional(self._fs.read_at, path, 0, _MOST_BYTES)
        known = self._open.get(fd)
        if known is not None and known.text == text and known.target == target:
            return known
        fields = None if text is None else optional(parse_fdinfo, text.decode("ascii", "replace"))
        if fields is None:
            return None
        offset = integer(fields.get("pos", "")) if _is_followed(target) else None
        return Open(target, offset, _octal(fields.get("flags", "")), integer(fields.get("mnt_id", "")), text)

    def _mount(self, mount_id: int | None) -> Mount | None:
        if mount_id is None:
            return None
        if self._mounts is None or mount_id not in self._mounts:
            found = self._fs.maybe(parse_mountinfo, self._pid, "mountinfo", default=[])
            self._mounts = {mount.mount_id: mount for mount in found}
        return self._mounts.get(mount_id)

    def _device(self, mount: Mount) -> str:
        return device_name(self._fs, mount.device) or mount.fs_type


def _limit(each: Open, most_bytes: tuple[float, float]) -> float:
    """How far the position of a file can move that is read, or written, or both."""
    mode = None if each.flags is None else each.flags & _MODE
    return most_bytes[0] if mode == _READ_ONLY else most_bytes[1] if mode == _WRITE_ONLY else sum(most_bytes)


def device_name(fs: ProcFS, device: str) -> str | None:
    """The name of a block device by `major:minor`; None: it is none, or unknown."""
    numbers = device.partition(":")
    if integer(numbers[0]) is None or integer(numbers[2]) is None:
        return None
    return fs.maybe_root(_name_of, "sys", "dev", "block", device, "uevent")


def _is_followed(target: bytes) -> bool:
    """Whether it may have a position: a file, or a block device."""
    return target.startswith(b"/") and not target.startswith(_WITHOUT_POSITION)


def ids_and_zero(names: Collection[str]) -> list[int]:
    """The fds among names, sorted."""
    return [0, *ids(names)] if "0" in names else ids(names)


def _name_of(uevent: str) -> str | None:
    return next((line[8:] for line in uevent.splitlines() if line.startswith("DEVNAME=")), None)


def _octal(text: str) -> int | None:
    is_octal = 0 < len(text) <= _OCTAL_DIGITS and not text.strip("01234567")
    return int(text, 8) if is_octal else None  # a number of octal digits


def _path(target: bytes) -> str:
    return target.decode("utf-8", "surrogateescape")


def _kind(target: bytes) -> str:
    if target.startswith(b"socket:"):
        return "socket"
    if target.startswith(b"/"):
        unmounted = unmounted_kind_of(target)
        return path_kind(target, None, 0) if unmounted is None else unmounted[0]
    return kind_of(target.removesuffix(DELETED))[0]
