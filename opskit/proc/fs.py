"""The opener of this machine's /proc, /sys, cgroupfs, /etc and /tmp; treefs.py opens those of other trees.

Errors are Python's own: GONE (a process or file that does not exist, or no longer), DENIED (missing rights), and Refused
(a DENIED), which opskit raises for a file that it does not read. A process can end between any two system calls, also
between open and read: ENOENT and ESRCH mean the same.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, TypeVar, overload

from opskit.errors import BadInput, NotSupported
from opskit.proc import fd_directory
from opskit.proc.calls import Calls
from opskit.proc.file_id import FileId, check_untrusted, space_of
from opskit.proc.held_file import HeldFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from opskit.proc.fd_directory import FdLink, FdReader
    from opskit.proc.file_space import Space
    from opskit.proc.kept_reads import KeptReads
    from opskit.proc.recorded.replies import Replies

T = TypeVar("T")
D = TypeVar("D")

GONE = (FileNotFoundError, ProcessLookupError)
DENIED = PermissionError
READ_ONLY = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
# The maps of a million mappings have 100 MB, smaps ten times that: larger files count as unreadable.
LARGEST_BYTES = 256 << 20
# execve(2) takes 6 MiB of words. A process may let cmdline show more of its memory (prctl(2), PR_SET_MM_MAP).
LARGEST_WORDS_BYTES = 8 << 20
_STEADY_LINKS = (("exe",), ("ns", "mnt"), ("ns", "pid"), ("ns", "net"))
_MAX_LINKS, _READ_BYTES, _LARGEST_PID, _ANY_SIZE = 40, 65536, (1 << 31) - 1, 1 << 63


class Refused(PermissionError):  # noqa: N818
    """A file that opskit does not read: not a regular one, or larger than any of its kind."""

    @classmethod
    def too_large(cls, path: str, limit_bytes: int) -> Refused:
        """The error for a file above its limit."""
        return cls(errno.EFBIG, f"larger than {limit_bytes >> 20} MiB", path)


def ids(names: Iterable[str]) -> list[int]:
    """The PIDs or TIDs among names, sorted, without `0`, `07` and `²`."""
    written = [name for name in names if not name.strip("0123456789") and len(name) < 11 and name[:1] not in "0"]
    return sorted([number for name in written if (number := int(name)) <= _LARGEST_PID])  # a number: ten digits at most


def largest_bytes(path: str, limit_bytes: int) -> int:
    """The most that is read of a file: `limit_bytes`, or less where a process chooses the content."""
    return min(limit_bytes, LARGEST_WORDS_BYTES) if path.endswith(("/cmdline", "/environ")) else limit_bytes


def read_all(fd: int, path: str, limit_bytes: int) -> bytes:
    """Read to the end; st_size of a kernel file is no length. Raises Refused above the limit."""
    chunks = []
    left = limit = largest_bytes(path, limit_bytes)
    while chunk := os.read(fd, _READ_BYTES):
        chunks.append(chunk)
        left -= len(chunk)
        if left < 0:
            raise Refused.too_large(path, limit)
    return b"".join(chunks)


@overload
def optional(call: Callable[..., T], *arguments: object) -> T | None: ...
@overload
def optional(call: Callable[..., T], *arguments: object, default: D) -> T | D: ...
def optional(call: Callable[..., T], *arguments: object, default: object = None) -> object:
    """call(*arguments), or the default where it raises OSError or BadInput."""
    try:
        return call(*arguments)
    except (OSError, BadInput):
        return default


class ProcFS:
    """This machine's kernel files by their paths. Another source (TreeFS, a recording) overrides the `primitives` alone."""

    small_read_bytes = 4096  # a small read of a process's memory takes so much of it

    def __init__(self, proc: str = "/proc", root: str = "/") -> None:
        self.proc = proc.rstrip("/") or "/"
        self.root = root.rstrip("/")
        self.is_live = True  # a kernel fills PROC now: a copy has no rates, and may be incomplete
        self.has_our_root = not self.root  # the users, /tmp and cgroups that belong to PROC are this machine's
        self.refused: dict[str, str] = {}  # the files that exist and were not read: path -> why
        self.kept: KeptReads | None = None  # for a run in which several collectors want the same files
        self.calls = Calls()
        self.machine = os.uname().machine  # whose numbers of system calls PROC has
        self.replies: Replies | None = None  # what JVMs replied, of a capture: they are not asked here
        self.uses_nss = True  # users may be looked up by NSS, which asks LDAP and the like; else in /etc/passwd alone

    @property
    def has_rates(self) -> bool:
        """Whether its counters can be read at two moments."""
        return self.is_live

    def is_own(self) -> bool:
        """Whether a PID in this tree is the same process here: the tree is live, and its `self` is us in our PID namespace."""
        if not self.is_live:
            return False
        try:
            return (
                # Actions open paths without the tree's rules: they must lead to the same place.
                self._stat(self.proc)[:2] == FileId.of(os.stat(self.proc))[:2]
                and self._readlink(self.path("self")) == b"%d" % os.getpid()
                and self._stat(self.path("self", "ns", "pid"))[:2] == FileId.of(os.stat("/proc/self/ns/pid"))[:2]
            )
        except OSError:
            return False

    @property
    def fds(self) -> tuple[int, ...]:
        """Our fds that it reads by: a child that reads keeps them open."""
        return ()

    def path(self, *parts: object) -> str:
        """The path of PROC/parts."""
        return "/".join((self.proc, *map(str, parts)))

    def _root_path(self, parts: tuple[object, ...]) -> str:
        return "/".join((self.root, *map(str, parts)))

    def pids(self) -> list[int]:
        """The processes, in the order of their PIDs. Raises NotSupported for a live tree without any, which is not mounted."""
        found = ids(optional(self.names_at, self.proc, default=[]))
        if not found and self.is_live:
            raise NotSupported(f"{self.proc} lists no process: it is not mounted here; mount -t proc proc /proc")
        return found

    def tids(self, pid: int) -> list[int]:
        """The threads of a process, in the order of their TIDs."""
        return ids(self.names_at(f"{self.proc}/{pid}/task"))

    def thread_count(self, pid: int) -> int:
        """The number of threads, by one stat: a live task directory has a link from each."""
        links = self._stat(self.path(pid, "task")).links if self.is_live else 0
        return links - 2 if links > 2 else len(self.tids(pid))  # some file systems do not count links

    def exists(self, *parts: object) -> bool:
        """Whether PROC/parts exists, without following a link at its end."""
        return self._exists(self.path(*parts))

    def root_exists(self, *parts: object) -> bool:
        """Whether ROOT/parts exists, without following a link at its end."""
        return self._exists(self._root_path(parts))

    def names_root(self, *parts: object) -> list[str]:
        """The names in the directory ROOT/parts, sorted; empty where it cannot be listed."""
        return sorted(optional(self.names_at, self._root_path(parts), default=[]))

    def root_directories(self, *parts: object) -> list[str]:
        """The names of the directories in ROOT/parts, sorted."""
        return sorted(name for name, is_directory, _ in self.entries_at(self._root_path(parts)) if is_directory)

    def root_links(self, *parts: object) -> dict[str, str]:
        """The symbolic links in ROOT/parts, and where each points."""
        directory = self._root_path(parts)
        names = [name for name, _, is_link in self.entries_at(directory) if is_link]
        return {name: os.fsdecode(self._readlink(f"{directory}/{name}")) for name in names}

    def read(self, *parts: object) -> bytes:
        """The bytes of PROC/parts."""
        return self._ask(self.read_path, self.path(*parts))

    def load(self, parse: Callable[[str], T], *parts: object) -> T:
        """PROC/parts through a parser, whose BadInput gets the path. Bytes that are not UTF-8 become surrogates."""
        return self._load(parse, self.path(*parts))

    def load_root(self, parse: Callable[[str], T], *parts: object) -> T:
        """ROOT/parts (etc/…, sys/…, tmp/…) through a parser."""
        return self._load(parse, self._root_path(parts))

    def _load(self, parse: Callable[[str], T], path: str) -> T:
        return self._parse(parse, path) if self.kept is None else self.kept.load(self._parse, parse, path)

    def _parse(self, parse: Callable[[str], T], path: str) -> T:
        try:
            return parse(self.read_path(path).decode("utf-8", "surrogateescape"))
        except BadInput as error:
            raise BadInput(path, error.problem, error.line, error.found) from None

    @overload
    def maybe(self, parse: Callable[[str], T], *parts: object, strict: bool = False) -> T | None: ...
    @overload
    def maybe(self, parse: Callable[[str], T], *parts: object, default: D, strict: bool = False) -> T | D: ...
    def maybe(self, parse: Callable[[str], T], *parts: object, default: object = None, strict: bool = False) -> object:
        """PROC/parts through a parser, or the default where it is gone, denied, unreadable or (unless `strict`) malformed."""
        return self._maybe(parse, self.path(*parts), default, strict)

    @overload
    def maybe_root(self, parse: Callable[[str], T], *parts: object, strict: bool = False) -> T | None: ...
    @overload
    def maybe_root(self, parse: Callable[[str], T], *parts: object, default: D, strict: bool = False) -> T | D: ...
    def maybe_root(
        self, parse: Callable[[str], T], *parts: object, default: object = None, strict: bool = False
    ) -> object:
        """As `maybe`, for ROOT/parts."""
        return self._maybe(parse, self._root_path(parts), default, strict)

    def _maybe(self, parse: Callable[[str], T], path: str, default: object, strict: bool) -> object:
        try:
            return self._load(parse, path)
        except (OSError, BadInput) as error:
            if strict and isinstance(error, BadInput):
                raise
            return default

    def link(self, *parts: object) -> bytes:
        """Where a link points, without following it."""
        path = self.path(*parts)
        if self.kept is not None and parts[1:] in _STEADY_LINKS:
            return self.kept.keep((None, path), path, self._readlink, path)
        return self._readlink(path)

    def file_id(self, *parts: object) -> FileId:
        """The file behind a link such as 4242/fd/7. It is followed, which can hang on a network mount."""
        return self._ask(self._stat, self.path(*parts))

    def fd_count(self, *parts: object) -> int:
        """The number of open fds of a process."""
        return len(self.names_at(self.path(*parts, "fd")))

    def fd_targets(self, *parts: object) -> list[bytes]:
        """Where every fd of a process (or of a thread: pid, "task", tid) points; empty for an unknown target."""
        # bytes: on 200,000 fds decoding costs a fifth of the scan.
        return self._of_fds(fd_directory.targets, parts)

    def fd_pairs(self, *parts: object) -> list[tuple[bytes, bytes]]:
        """The name of each fd, with where it points."""
        return self._of_fds(fd_directory.pairs, parts)

    def fd_links(self, *parts: object, wanted: tuple[bytes, ...] = (b"",)) -> list[FdLink]:
        """The fds whose target begins with one of `wanted`. lstat costs a tenth of fdinfo, and never waits for a hung mount."""
        return self._of_fds(lambda names, directory: fd_directory.links(names, directory, wanted), parts)

    def all_fds(self, *parts: object) -> list[FdLink]:
        """All fds, those whose target cannot be read with an empty one."""
        return self._of_fds(fd_directory.all_links, parts)

    def inside(self, pid: int, path: str) -> str:
        """Our path of a file in a process's mount namespace: below PROC/PID/root, where its absolute links lead too."""
        base = self.path(pid, "root")
        self._stat(base)
        todo = path.split("/")
        done: list[str] = []
        links_left = _MAX_LINKS
        while todo:
            part = todo.pop(0)
            if part == "..":
                del done[-1:]
            if part in ("", ".", ".."):
                continue
            try:
                target = os.fsdecode(self._readlink("/".join((base, *done, part))))
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOENT):
                    raise
                done.append(part)  # not a link
                continue
            links_left -= 1
            if links_left < 0:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                done.clear()
            todo[:0] = target.split("/")
        return "/".join((base, *done))

    def read_inside(self, pid: int, path: str, limit_bytes: int) -> bytes:
        """A regular file of a process's mount namespace, which may be hostile. Raises OSError."""
        directory, _, name = self.inside(pid, path).rpartition("/")
        return self.read_untrusted(directory, name, limit_bytes)[1]

    # primitives

    def read_path(self, path: str, limit_bytes: int = LARGEST_BYTES) -> bytes:
        """A whole file. Raises Refused where it is larger than the limit, or than any of its kind."""
        fd = os.open(path, READ_ONLY)
        try:
            return read_all(fd, path, limit_bytes)
        finally:
            os.close(fd)

    def read_at(self, path: str, offset: int, size: int) -> bytes:
        """A part of a file, fewer bytes at its end."""
        fd = os.open(path, READ_ONLY)
        try:
            return os.pread(fd, size, offset)
        finally:
            os.close(fd)

    def hold(self, path: str) -> HeldFile:
        """A file that stays open, for many reads. Raises OSError."""
        return HeldFile(os.open(path, READ_ONLY))

    def hold_regular(self, path: str) -> HeldFile:
        """The same for a file that another user chose: raises OSError, without opening it, for a link or what is not regular."""
        is_kernels = path.rsplit("/", 3)[::2] in ([self.proc, "map_files"], [self.proc, "fd"])  # links of PROC/PID
        seen = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if is_kernels else os.O_NOFOLLOW))
        try:
            check_untrusted(FileId.of(os.fstat(seen)), path, _ANY_SIZE)
            return HeldFile(os.open(f"/proc/self/fd/{seen}", READ_ONLY))
        finally:
            os.close(seen)

    def read_untrusted(self, directory: str, name: str, limit_bytes: int) -> tuple[FileId, bytes]:
        """A regular file in a directory that others may write to, with its fstat; see check_untrusted for the errors."""
        at = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            # Opening a device or a FIFO has side effects: look first, then open that very file.
            seen = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        finally:
            os.close(at)
        try:
            found = FileId.of(os.fstat(seen))
            check_untrusted(found, f"{directory}/{name}", limit_bytes)
            fd = os.open(f"/proc/self/fd/{seen}", READ_ONLY)
        finally:
            os.close(seen)
        with open(fd, "rb", buffering=0) as file:
            return found, file.read(limit_bytes) or b""

    def names_at(self, path: str, most: int | None = None) -> list[str]:
        """The names in a directory, unsorted; of one that others fill the first ones, at `most` so many."""
        if most is None:
            return self._ask(os.listdir, path)
        with self._scan(path) as entries:
            return [entry.name for entry, _ in zip(entries, range(most))]

    def entries_at(self, path: str) -> list[tuple[str, bool, bool]]:
        """Each name in a directory, whether it is a directory, and whether it is a link."""
        with self._scan(path) as entries:
            return [(each.name, each.is_dir(follow_symlinks=False), each.is_symlink()) for each in entries]

    def file_id_at(self, path: str) -> FileId:
        """The file at a path, without following a link at its end."""
        return FileId.of(self._ask(os.lstat, path))

    def is_writable(self, path: str) -> bool:
        """Whether the rights and the mount let us write there."""
        return os.access(path, os.W_OK)

    def space_at(self, path: str) -> Space:
        """The free space on the file system of a path."""
        return space_of(self._ask(os.statvfs, path))

    def _ask(self, call: Callable[[str], T], path: str) -> T:
        """call(path), known to `kept`: it may hang."""
        return call(path) if self.kept is None else self.kept.ask(path, call, path)

    def _exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def _stat(self, path: str) -> FileId:
        return FileId.of(os.stat(path))

    def _readlink(self, path: str) -> bytes:
        return os.readlink(os.fsencode(path))

    def _scan(self, path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        return os.scandir(path)

    def _of_fds(self, read: FdReader[T], parts: tuple[object, ...]) -> list[T]:
        """Read the fd directory PROC/parts/fd."""
        path = self.path(*parts, "fd")
        return _read_fds(read, path) if self.kept is None else self.kept.ask(path, _read_fds, read, path)


def _read_fds(read: FdReader[T], directory_path: str) -> list[T]:
    path = os.fsencode(directory_path)
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # A path gives names as bytes, which cost less than those of an open directory.
        return fd_directory.read_all(read, directory, lambda: os.listdir(path))
    finally:
        os.close(directory)
