"""The only opener of /proc, /sys, cgroupfs, /etc and /tmp of this machine; treefs.py opens those of other trees.

Errors are Python's own: GONE where a process or a file is not there (any more), DENIED where the rights do not
suffice, and Refused (a DENIED) for what opskit itself does not read. Processes vanish between readdir and read at every
step, also in a read after a good open: ESRCH and ENOENT mean the same.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

from opskit.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

T = TypeVar("T")
D = TypeVar("D")

GONE = (FileNotFoundError, ProcessLookupError)
DENIED = PermissionError

_MAX_LINKS = 40
_READ_BYTES = 65536
READ_ONLY = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

# The kernel bounds most of its files. maps of a million mappings has 100 MB, smaps ten times that: then it is unknown.
LARGEST_BYTES = 256 << 20
# execve(2) takes 6 MiB of words in all. A process may point at more of its memory (prctl(2), PR_SET_MM_MAP).
LARGEST_WORDS_BYTES = 8 << 20
_WORDS = ("/cmdline", "/environ")
_ID = re.compile("[1-9][0-9]{0,9}")
_LARGEST_PID = (1 << 31) - 1


class Refused(PermissionError):  # noqa: N818
    """What opskit does not read, whoever asks: no regular file, or one larger than any of its kind."""

    @classmethod
    def too_large(cls, path: str, limit_bytes: int) -> Refused:
        """The error for a file above its limit."""
        return cls(errno.EFBIG, f"larger than {limit_bytes >> 20} MiB", path)


def ids(names: Iterable[str]) -> list[int]:
    """The pids or tids among names, sorted: written as the kernel writes them, never `0`, `07` or `²`."""
    is_id = _ID.fullmatch
    numbers = sorted([int(name) for name in names if is_id(name)])  # a number: ten digits at most
    while numbers and numbers[-1] > _LARGEST_PID:
        numbers.pop()
    return numbers


def largest_bytes(path: str, limit_bytes: int) -> int:
    """How much of a file is read at most: `limit_bytes`, less of those that a process fills itself."""
    return min(limit_bytes, LARGEST_WORDS_BYTES) if path.endswith(_WORDS) else limit_bytes


def read_all(fd: int, path: str, limit_bytes: int) -> bytes:
    """Read to the end: st_size means nothing for a kernel file. Raises Refused above the limit of that file."""
    chunks = []
    left = limit = largest_bytes(path, limit_bytes)
    while chunk := os.read(fd, _READ_BYTES):
        chunks.append(chunk)
        left -= len(chunk)
        if left < 0:
            raise Refused.too_large(path, limit)
    return b"".join(chunks)


# One link of an fd directory: its name, its target, its mode. The mode's bits tell how the file was opened.
FdLink = tuple[bytes, bytes, int]
FD_READABLE, FD_WRITABLE = stat.S_IRUSR, stat.S_IWUSR


def _parsed(parse: Callable[[str], T], data: bytes, path: str) -> T:
    try:
        return parse(data.decode("utf-8", "surrogateescape"))
    except BadInput as error:
        raise BadInput(path, error.problem, error.line, error.found) from None


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


class FileId(NamedTuple):
    """What stat says of a file: device and inode tell it from every other."""

    device: int
    inode: int
    mode: int
    uid: int
    gid: int = 0
    links: int = 1
    size_bytes: int = 0
    ctime_ns: int = 0

    @classmethod
    def of(cls, found: os.stat_result) -> FileId:
        """The same from Python's record."""
        return cls(
            found.st_dev, found.st_ino, found.st_mode, found.st_uid, found.st_gid, found.st_nlink, found.st_size,
            found.st_ctime_ns,
        )  # fmt: skip


def _dense_fds(directory: int) -> list[bytes]:
    """The names of all fds where a process has many and no gap; empty where readdir has to tell.

    Since Linux 6.2 st_size of an fd directory is the number of fds. If there are N, and 0 to N-1 can all be read, these
    are all of them, and readdir, a fifth of the scan of a process with thousands, is not needed. A gap shows as ENOENT.
    """
    count = os.fstat(directory).st_size
    if count < _DENSE_FROM:
        return []
    try:
        os.lstat(b"%d" % (count - 1), dir_fd=directory)
    except GONE:
        return []
    while len(_FD_NAMES) < count:
        _FD_NAMES.append(b"%d" % len(_FD_NAMES))
    return _FD_NAMES[:count]


def _check_of_one_fd(error: OSError) -> None:
    """Raise the error again unless it is about one fd alone: it is closed by now, or there is no target to be told.

    The kernel does not tell a path longer than a page (ENAMETOOLONG); in a copied tree an fd may be no link (EINVAL).
    """
    if not isinstance(error, GONE) and error.errno not in (errno.ENAMETOOLONG, errno.EINVAL):
        raise error


def check_untrusted(found: FileId, path: str, limit_bytes: int) -> None:
    """Raise OSError for a link (ELOOP), for what else is no regular file (EINVAL), and above the limit (EFBIG)."""
    if stat.S_ISLNK(found.mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if not stat.S_ISREG(found.mode):
        raise OSError(errno.EINVAL, "is no regular file", path)
    if found.size_bytes > limit_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)


_DENSE_FROM = 64
_FD_NAMES: list[bytes] = []


class Space(NamedTuple):
    """What statvfs says of a file system. `free_inodes` for a user without rights; None where it does not count them."""

    read_only: bool
    free_bytes: int
    free_inodes: int | None

    @classmethod
    def of(cls, found: os.statvfs_result) -> Space:
        """The same from Python's record."""
        inodes = found.f_favail if found.f_files else None
        return cls(bool(found.f_flag & os.ST_RDONLY), found.f_bavail * found.f_frsize, inodes)


class ProcFS:
    """This machine's kernel files, by paths. TreeFS is the same for another tree, and overrides whatever opens or looks."""

    def __init__(self, proc: str = "/proc", root: str = "/") -> None:
        self.proc = proc.rstrip("/") or "/"
        self.root = root.rstrip("/")

    @property
    def is_live(self) -> bool:
        """Whether a kernel fills PROC now. A copy does not move, and holds only what was copied."""
        return True

    @property
    def has_our_root(self) -> bool:
        """Whether the users, /tmp and cgroups that belong to PROC are those of this machine."""
        return not self.root

    @property
    def refused(self) -> dict[str, str]:
        """What was not read although it is there: path -> why."""
        return {}

    def check(self) -> None:
        """Raise BadInput unless the root looks like a proc tree."""
        try:
            names = self.names_at(self.proc)
        except OSError as error:
            raise BadInput(
                self.proc, f"no proc tree: {error.strerror}; give the directory that holds 1/, meminfo, …"
            ) from None
        if not ids(names) and not {"self", "meminfo", "loadavg"} & set(names):
            found = ", ".join(sorted(names)[:3]) or "an empty directory"
            raise BadInput(self.proc, f"no proc tree: found {found}; give the directory that holds 1/, meminfo, …")

    def is_own(self) -> bool:
        """Whether a pid in this tree is that process here: the tree's `self` is us, in our own pid namespace."""
        try:
            return os.readlink(f"{self.proc}/self") == str(os.getpid()) and os.path.samefile(
                f"{self.proc}/self/ns/pid", "/proc/self/ns/pid"
            )
        except OSError:
            return False

    def pids(self) -> list[int]:
        """The processes, in the order of their pids."""
        return ids(self.names_at(self.proc))

    def tids(self, pid: int) -> list[int]:
        """The threads of a process, in the order of their tids."""
        return ids(self.names_at(f"{self.proc}/{pid}/task"))

    def exists(self, *parts: object) -> bool:
        """Whether the link or file itself is there (never follows the last link)."""
        return self._exists(self.path(*parts))

    def root_exists(self, *parts: object) -> bool:
        """Whether ROOT/parts is there (never follows the last link)."""
        return self._exists(self._root_path(parts))

    def root_directories(self, *parts: object) -> list[str]:
        """The names of the directories in ROOT/parts, sorted."""
        with self._scan(self._root_path(parts)) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))

    def root_links(self, *parts: object) -> dict[str, str]:
        """The symbolic links in ROOT/parts, and where each points."""
        directory = self._root_path(parts)
        with self._scan(directory) as entries:
            names = [entry.name for entry in entries if entry.is_symlink()]
        return {name: os.fsdecode(self._readlink(f"{directory}/{name}")) for name in names}

    def path(self, *parts: object) -> str:
        """The path of a file below the proc root."""
        return "/".join((self.proc, *map(str, parts)))

    def _root_path(self, parts: tuple[object, ...]) -> str:
        return "/".join((self.root, *map(str, parts)))

    def read(self, *parts: object) -> bytes:
        """The bytes of PROC/parts."""
        return self.read_path(self.path(*parts))

    def load(self, parse: Callable[[str], T], *parts: object) -> T:
        """PROC/parts through a parser, whose BadInput gets the path. Bytes that are no UTF-8 come as surrogates."""
        return _parsed(parse, self.read(*parts), self.path(*parts))

    def load_root(self, parse: Callable[[str], T], *parts: object) -> T:
        """ROOT/parts (etc/…, sys/…, tmp/…) through a parser."""
        path = self._root_path(parts)
        return _parsed(parse, self.read_path(path), path)

    @overload
    def maybe(self, parse: Callable[[str], T], *parts: object, strict: bool = False) -> T | None: ...
    @overload
    def maybe(self, parse: Callable[[str], T], *parts: object, default: D, strict: bool = False) -> T | D: ...
    def maybe(self, parse: Callable[[str], T], *parts: object, default: object = None, strict: bool = False) -> object:
        """PROC/parts through a parser, or the default where it is gone, denied, unreadable or malformed.

        `strict`: a malformed file raises BadInput.
        """
        return self._maybe(parse, self.path(*parts), default, strict=strict)

    @overload
    def maybe_root(self, parse: Callable[[str], T], *parts: object, strict: bool = False) -> T | None: ...
    @overload
    def maybe_root(self, parse: Callable[[str], T], *parts: object, default: D, strict: bool = False) -> T | D: ...
    def maybe_root(
        self, parse: Callable[[str], T], *parts: object, default: object = None, strict: bool = False
    ) -> object:
        """As `maybe`, for ROOT/parts."""
        return self._maybe(parse, self._root_path(parts), default, strict=strict)

    def _maybe(self, parse: Callable[[str], T], path: str, default: object, *, strict: bool) -> object:
        try:
            return _parsed(parse, self.read_path(path), path)
        except OSError:
            return default
        except BadInput:
            if strict:
                raise
            return default

    def names_root(self, *parts: object) -> list[str]:
        """The names in the directory ROOT/parts, sorted as C does; none where it is not there or must not be read."""
        try:
            return sorted(self.names_at(self._root_path(parts)))
        except OSError:
            return []

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

    def link(self, *parts: object) -> bytes:
        """Where a link points, without following it."""
        return self._readlink(self.path(*parts))

    def fd_targets(self, *parts: object) -> list[bytes]:
        """Where every fd of a process (or of a thread: pid, "task", tid) points. Nothing is opened or followed.

        bytes all the way: on 200,000 fds the decoding alone would cost a fifth of the scan. Empty where there is no target
        to be told.
        """
        path = os.fsencode(self.path(*parts, "fd"))
        directory = self._open_fds(path)
        readlink = os.readlink
        try:
            return [readlink(name, dir_fd=directory) for name in self._all_fds(path, directory)]
        except OSError as error:
            _check_of_one_fd(error)
            return self._surviving_targets(self._fds(path, directory), directory)
        finally:
            os.close(directory)

    @staticmethod
    def _surviving_targets(names: list[bytes], directory: int) -> list[bytes]:
        targets = []
        for name in names:
            try:
                targets.append(os.readlink(name, dir_fd=directory))
            except OSError as error:
                _check_of_one_fd(error)
                if not isinstance(error, GONE):
                    targets.append(b"")
        return targets

    def fd_count(self, *parts: object) -> int:
        """How many fds a process has open."""
        return len(self.names_at(self.path(*parts, "fd")))

    def fd_links(self, *parts: object, wanted: tuple[bytes, ...] = (b"",)) -> list[FdLink]:
        """The fds whose target begins with one of `wanted`, with the direction that is in the link's own mode bits.

        lstat costs a tenth of fdinfo, and never waits for a hung mount.
        """
        path = os.fsencode(self.path(*parts, "fd"))
        directory = self._open_fds(path)
        readlink, lstat = os.readlink, os.lstat
        try:
            return [
                (name, target, lstat(name, dir_fd=directory).st_mode)
                for name in self._all_fds(path, directory)
                if (target := readlink(name, dir_fd=directory)).startswith(wanted)
            ]
        except OSError as error:
            _check_of_one_fd(error)
            return self._surviving_links(self._fds(path, directory), directory, wanted)
        finally:
            os.close(directory)

    @staticmethod
    def _surviving_links(names: list[bytes], directory: int, wanted: tuple[bytes, ...]) -> list[FdLink]:
        links = []
        for name in names:
            try:
                target = os.readlink(name, dir_fd=directory)
                if target.startswith(wanted):
                    links.append((name, target, os.lstat(name, dir_fd=directory).st_mode))
            except OSError as error:
                _check_of_one_fd(error)
        return links

    def file_id(self, *parts: object) -> FileId:
        """What is behind a link such as 4242/fd/7. It follows the link: never call it for a network mount."""
        return FileId.of(self._stat(self.path(*parts)))

    def file_id_at(self, path: str) -> FileId:
        """What is at a path; a symbolic link there is not followed."""
        return FileId.of(os.lstat(path))

    def thread_count(self, pid: int) -> int:
        """How many threads a process has, for the price of one stat: its task directory has a link from each."""
        links = os.stat(self.path(pid, "task")).st_nlink
        return links - 2 if links > 2 else len(self.tids(pid))  # some file systems do not count (a captured tree)

    def is_writable(self, path: str) -> bool:
        """Whether we may write there: the rights, and no read-only mount."""
        return os.access(path, os.W_OK)

    def space_at(self, path: str) -> Space:
        """How much room there is on the file system of a path."""
        return Space.of(os.statvfs(path))

    def names_at(self, path: str) -> list[str]:
        """The names in a directory, in no order."""
        return os.listdir(path)

    def inside(self, pid: int, path: str) -> str:
        """Where a path of a process's own mount namespace is for us: below PROC/PID/root, whatever links lead to it.

        Links are followed as they are for the process: an absolute one must not lead into our own root.
        """
        base = self.path(pid, "root")
        self._stat(base)
        done: list[str] = []
        todo = [part for part in path.split("/") if part]
        links = 0
        while todo:
            part = todo.pop(0)
            if part == "..":
                del done[-1:]
                continue
            try:
                target = os.fsdecode(self._readlink("/".join((base, *done, part))))
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOENT):
                    raise
                done.append(part)  # no link
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                done.clear()
            todo[:0] = [part for part in target.split("/") if part not in ("", ".")]
        return "/".join((base, *done))

    def read_inside(self, pid: int, path: str, limit_bytes: int) -> bytes:
        """A regular file of a process's own mount namespace, which may be hostile. Raises OSError."""
        directory, _, name = self.inside(pid, path).rpartition("/")
        return self.read_untrusted(directory, name, limit_bytes)[1]

    def read_untrusted(self, directory: str, name: str, limit_bytes: int) -> tuple[FileId, bytes]:
        """A regular file in a directory that others may write to, with what fstat says of it. No link is followed, no lock taken.

        Raises OSError: ELOOP for a link, ENOTDIR, EINVAL for what is no regular file, EFBIG above the limit.
        """
        at = self._open_directory(directory)
        try:
            # Opening a device or a FIFO has effects of its own: first see what it is, then open that very file.
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

    # How a path is reached: TreeFS overrides these.

    def _exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def _stat(self, path: str) -> os.stat_result:
        return os.stat(path)

    def _readlink(self, path: str) -> bytes:
        return os.readlink(os.fsencode(path))

    def _open_directory(self, path: str) -> int:
        """An O_PATH fd of a directory, if it is one itself, and no link to one."""
        return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def _scan(self, path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        return os.scandir(path)

    def _open_fds(self, path: bytes) -> int:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _fds(self, path: bytes, directory: int) -> list[bytes]:  # noqa: ARG002
        """The names in an fd directory, by its path or its fd: a path gives bytes, which cost less."""
        return os.listdir(path)

    def _all_fds(self, path: bytes, directory: int) -> list[bytes]:
        """The same, where they are counted without readdir."""
        return _dense_fds(directory) or os.listdir(path)
