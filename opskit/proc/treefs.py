"""The opener of trees other than this machine's /proc: a copy, or another host's root that is mounted here.

The tree may be hostile. Links and `..` are resolved within it (resolve.py), only regular files are opened, and reads are
bounded by LARGEST_COPIED_BYTES, or less for files that are always small. Each refused file is recorded.

A mounted root has a live procfs in it. Its /proc/PID/root, cwd and exe are links of the kernel's and lead to where the
process is; a path below root or cwd is resolved within that directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import TYPE_CHECKING, TypeVar

from opskit.errors import BadInput, NotSupported
from opskit.proc import fd_directory
from opskit.proc.copied_files import LARGEST_COPIED_BYTES, check_has_root, largest_copied_bytes
from opskit.proc.file_id import FileId, check_untrusted, kind_of, space_of
from opskit.proc.fs import GONE, LARGEST_BYTES, READ_ONLY, ProcFS, Refused, ids, largest_bytes, optional, read_all
from opskit.proc.held_file import HeldFile
from opskit.proc.kernel import syscalls
from opskit.proc.resolve import PATH_ONLY, best_resolver, relative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.fd_directory import FdReader
    from opskit.proc.file_space import Space
    from opskit.proc.resolve import Resolver

T = TypeVar("T")

# The kernel's own links, with a path behind those of directories.
_MAGIC = re.compile(
    r"(?P<parent>(?:[0-9]+|self|thread-self)(?:/task/[0-9]+)?(?P<within>/(?:fd|map_files|ns))?)"
    r"/(?(within)(?P<entry>[^/]+)|(?:(?P<file>exe)|(?P<place>root|cwd)(?P<below>/.*)?))",
    re.DOTALL,
)
_GONE_HERE = (errno.ENOTDIR, errno.ENAMETOOLONG)
_NOT_OPENED = (errno.ELOOP, errno.EXDEV)


class TreeFS(ProcFS):
    """A tree below ROOT, or with ROOT "/" a proc tree alone; a copied proc tree alone has no root to read."""

    def __init__(self, proc: str, root: str = "/", resolver: Resolver | None = None) -> None:
        """`resolver`: open_in_root or walk_in_root; None: the one that works here. Raises BadInput, NotSupported."""
        super().__init__(proc, root)
        if not os.path.isdir("/proc/self/fd"):
            raise NotSupported(
                "/proc is not mounted here, and opening files of a tree needs it; mount -t proc proc /proc"
            )
        self._resolve = resolver or best_resolver()
        # The start of each path, and the directory that it must not leave; the longest first.
        self._bases = [(self.root, _open_base(self.root, "tree", "proc/"))] if self.root else []
        if not self.root or not self.proc.startswith(f"{self.root}/"):
            self._bases.append((self.proc, _open_base(self.proc, "proc tree", "1/, meminfo, …")))
        self._bases.sort(key=lambda base: -len(base[0]))
        self.is_live = False  # _is_procfs opens by it
        self.is_live = self._is_procfs(self.proc)
        self.has_our_root = self.is_live and not self.root
        if self.has_our_root:
            self._bases.append(("", os.open("/", PATH_ONLY)))
        self._limit_bytes = LARGEST_BYTES if self.is_live else LARGEST_COPIED_BYTES

    @property
    def fds(self) -> tuple[int, ...]:
        """The directories that paths must not leave."""
        return tuple(fd for _, fd in self._bases)

    def check(self) -> None:
        """Raise BadInput unless the root looks like a proc tree."""
        advice = "give the directory that holds 1/, meminfo, …"
        try:
            names = self.names_at(self.proc)
        except OSError as error:
            raise BadInput(self.proc, f"no proc tree: {error.strerror}; {advice}") from None
        if not ids(names) and not {"self", "meminfo", "loadavg"} & set(names):
            found = ", ".join(sorted(names)[:3]) or "an empty directory"
            raise BadInput(self.proc, f"no proc tree: found {found}; {advice}")

    def read_path(self, path: str, limit_bytes: int | None = None) -> bytes:
        """A whole regular file. Raises Refused for anything else, and above the limit."""
        limit_bytes = largest_bytes(path, self._limit_bytes if limit_bytes is None else limit_bytes)
        if not self.is_live:
            limit_bytes = largest_copied_bytes(path, limit_bytes)
        with self._opened(path) as seen:
            self._check_regular(seen, path, limit_bytes)
            with self._reopened(seen, path) as fd:
                return read_all(fd, path, limit_bytes)

    def read_at(self, path: str, offset: int, size: int) -> bytes:
        """A part of a regular file, fewer bytes at its end."""
        with self._opened(path) as seen:
            self._check_regular(seen, path, None)
            with self._reopened(seen, path) as fd:
                return os.pread(fd, size, offset)

    def hold(self, path: str) -> HeldFile:
        """A regular file that stays open."""
        with self._opened(path) as seen:
            self._check_regular(seen, path, None)
            with self._reopened(seen, path) as fd:
                return HeldFile(os.dup(fd))

    def hold_regular(self, path: str) -> HeldFile:
        """The same: links lead to files of the tree."""
        return self.hold(path)

    def read_untrusted(self, directory: str, name: str, limit_bytes: int) -> tuple[FileId, bytes]:
        """As ProcFS has it."""
        path = f"{directory}/{name}"
        if stat.S_ISLNK(self.file_id_at(directory).mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
        with self._opened(path, follow=False) as seen:
            found = FileId.of(os.fstat(seen))
            try:
                check_untrusted(found, path, limit_bytes)
            except OSError as error:
                self.refused[path] = str(error.strerror)
                raise
            with self._reopened(seen, path) as fd:
                return found, read_all(fd, path, limit_bytes)

    def file_id_at(self, path: str) -> FileId:
        """The file at a path, without following a link at its end."""
        with self._opened(path, follow=False) as fd:
            return FileId.of(os.fstat(fd))

    def is_writable(self, path: str) -> bool:
        """Whether the rights and the mount let us write there."""
        try:
            with self._opened(path) as fd:
                return os.access(f"/proc/self/fd/{fd}", os.W_OK)
        except OSError:
            return False

    def space_at(self, path: str) -> Space:
        """The free space on the file system of a path."""
        with self._opened(path) as fd:
            return space_of(os.statvfs(fd))

    def names_at(self, path: str, most: int | None = None) -> list[str]:
        """The names in a directory, unsorted; at `most` so many."""
        if most is not None:
            return super().names_at(path, most)
        with self._opened(path) as seen, self._listable(seen, path) as fd:
            return os.listdir(fd)

    def inside(self, pid: int, path: str) -> str:
        """As ProcFS has it. Raises FileNotFoundError where a copy does not hold that process's mount namespace."""
        if not self.is_live:
            check_has_root(self, pid)
        return super().inside(pid, path)

    # How a path is reached

    def _is_procfs(self, path: str) -> bool:
        try:
            with self._opened(path) as fd:
                return syscalls.file_system_type(fd) == syscalls.PROC_SUPER_MAGIC
        except OSError:
            return False

    @contextlib.contextmanager
    def _opened(self, path: str, *, follow: bool = True) -> Iterator[int]:
        """An O_PATH fd of the file at a path. Each failure becomes GONE or DENIED."""
        fd = -1
        try:
            fd = self._open(path, follow=follow)
            yield fd
        except (*GONE, PermissionError) as error:
            error.filename = path
            raise
        except OSError as error:
            if error.errno in _GONE_HERE:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
            # read_untrusted and _readlink raise these; reading a live kernel file may give any error.
            if error.errno in (errno.EINVAL, errno.EFBIG) or (self.is_live and error.errno not in _NOT_OPENED):
                raise
            raise self._refuse(path, error.errno or errno.EIO, error.strerror or "cannot be opened") from None
        finally:
            if fd >= 0:
                os.close(fd)

    def _open(self, path: str, *, follow: bool) -> int:
        flags = PATH_ONLY if follow else PATH_ONLY | os.O_NOFOLLOW
        base, below = self._base(path)
        is_below = self.is_live and path.startswith(f"{self.proc}/")
        magic = _MAGIC.fullmatch(path, len(self.proc) + 1) if is_below else None
        if magic is None or not (follow or magic["below"]):
            return self._resolve(base, below, flags)
        name = magic["entry"] or magic["file"] or magic["place"]
        parent = self._resolve(base, self._base(f"{self.proc}/{magic['parent']}")[1], PATH_ONLY | os.O_DIRECTORY)
        try:
            if syscalls.file_system_type(parent) != syscalls.PROC_SUPER_MAGIC:  # something is mounted over it
                return self._resolve(base, below, flags)
            place = os.open(name, PATH_ONLY, dir_fd=parent)
        finally:
            os.close(parent)
        if not magic["below"]:
            return place
        try:
            return self._resolve(place, relative(magic["below"]), flags)
        finally:
            os.close(place)

    def _base(self, path: str) -> tuple[int, bytes]:
        for prefix, base in self._bases:
            if path == prefix or path.startswith(f"{prefix}/"):
                return base, relative(path[len(prefix) :])
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _check_regular(self, fd: int, path: str, limit_bytes: int | None) -> None:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            why = f"a {kind_of(found.st_mode)}, not a regular file"
            raise self._refuse(path, errno.EINVAL, why)
        if limit_bytes is not None and found.st_size > limit_bytes:
            error = Refused.too_large(path, limit_bytes)
            raise self._refuse(path, errno.EFBIG, str(error.strerror))

    def _refuse(self, path: str, number: int, why: str) -> Refused:
        self.refused[path] = why
        return Refused(number, why, path)

    @contextlib.contextmanager
    def _reopened(self, seen: int, path: str) -> Iterator[int]:
        """An fd to read the file that was checked, even if its path leads to another one by now."""
        fd = os.open(f"/proc/self/fd/{seen}", READ_ONLY)
        try:
            yield fd
        except Refused as error:
            self.refused[path] = str(error.strerror)
            raise
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _listable(self, seen: int, path: str) -> Iterator[int]:
        if not stat.S_ISDIR(os.fstat(seen).st_mode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOTDIR), path)
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=seen)
        try:
            yield fd
        finally:
            os.close(fd)

    def _exists(self, path: str) -> bool:
        return optional(self.file_id_at, path) is not None

    def _stat(self, path: str) -> FileId:
        with self._opened(path) as fd:
            return FileId.of(os.fstat(fd))

    def _readlink(self, path: str) -> bytes:
        with self._opened(path, follow=False) as fd:
            if not stat.S_ISLNK(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
            return os.readlink(b"", dir_fd=fd)

    @contextlib.contextmanager
    def _scan(self, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with self._opened(path) as seen, self._listable(seen, path) as fd, os.scandir(fd) as entries:
            yield entries

    def _of_fds(self, read: FdReader[T], parts: tuple[object, ...]) -> list[T]:
        path = self.path(*parts, "fd")
        with self._opened(path) as seen, self._listable(seen, path) as directory:
            return fd_directory.read_all(read, directory, lambda: _fd_names(directory), dense=self.is_live)


def _fd_names(directory: int) -> list[bytes]:
    names = (os.fsencode(name) for name in os.listdir(directory))
    return [name for name in names if name.isascii() and name.strip(b"0123456789") == b"" and len(name) <= 10]


def _open_base(path: str, what: str, holds: str) -> int:
    try:
        return os.open(path, PATH_ONLY | os.O_DIRECTORY)
    except OSError as error:
        raise BadInput(path, f"no {what}: {error.strerror}; give the directory that holds {holds}") from None
