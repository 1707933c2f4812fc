"""The opener of trees that are not this machine's own /proc: a copy, or a host's root that is mounted somewhere.

Whoever made the tree may be hostile. Links and `..` are resolved within it (openat2(2), RESOLVE_IN_ROOT; component by
component where the kernel or a seccomp filter does not have that), nothing but regular files is opened, and no more than
LARGEST_COPIED_BYTES of one is read, of those that are always small less. What is refused is counted.

A mounted root has a live procfs in it. There /proc/PID/root, cwd and exe lead to where the process is, as they do here:
these links the kernel makes, and a path below root or cwd is resolved within that directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import TYPE_CHECKING

from opskit.errors import BadInput, NotSupported
from opskit.proc.fs import (
    GONE,
    LARGEST_BYTES,
    READ_ONLY,
    FileId,
    ProcFS,
    Refused,
    Space,
    check_untrusted,
    largest_bytes,
    read_all,
)
from opskit.proc.kernel import syscalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Resolver = Callable[[int, bytes, int], int]

# The longest text that a capture has is maps or smaps; this is maps of half a million mappings.
LARGEST_COPIED_BYTES = 64 << 20
# What a process has of these is a page or two, but for 65,536 groups in its status. Read line by line, a file of endless
# lines takes thirty times its size.
LARGEST_SMALL_BYTES = 1 << 20
_SMALL = frozenset(("cgroup", "comm", "limits", "loadavg", "meminfo", "schedstat", "stat", "status", "uptime"))
_LINKS_AT_MOST = 40  # as the kernel's own limit
_LEVELS_AT_MOST = 255  # each costs an fd
_RENAMES_AT_MOST = 16
_PATH_MAX = 4096
_PATH_ONLY = os.O_PATH | os.O_CLOEXEC
_PROC_ROOT_INODE = 1  # include/linux/proc_ns.h
# What the kernel's own links lead to, with a path behind those of directories.
_MAGIC = re.compile(
    r"(?P<parent>(?:[0-9]+|self|thread-self)(?:/task/[0-9]+)?(?P<within>/(?:fd|map_files|ns))?)"
    r"/(?(within)(?P<entry>[^/]+)|(?:(?P<file>exe)|(?P<place>root|cwd)(?P<below>/.*)?))",
    re.DOTALL,
)
_GONE_HERE = (errno.ENOTDIR, errno.ENAMETOOLONG)
_NOT_OPENED = (errno.ELOOP, errno.EXDEV)
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class TreeFS(ProcFS):
    """A tree below ROOT, or with ROOT "/" a proc tree alone. A copied proc tree alone has no root: nothing is known of it."""

    def __init__(self, proc: str, root: str = "/", resolver: Resolver | None = None) -> None:
        """`resolver`: open_in_root or walk_in_root; chosen by what works here. Raises BadInput, NotSupported."""
        super().__init__(proc, root)
        if not os.path.isdir("/proc/self/fd"):
            raise NotSupported(
                "/proc is not mounted here, and files of a tree are opened by it: mount -t proc proc /proc"
            )
        self._refused: dict[str, str] = {}
        self._resolve = resolver or _resolver()
        # What each path begins with, and the directory that it must not leave; the longest first.
        self._bases = [(self.root, _open_base(self.root, "tree", "proc/"))] if self.root else []
        if not self.root or not self.proc.startswith(f"{self.root}/"):
            self._bases.append((self.proc, _open_base(self.proc, "proc tree", "1/, meminfo, …")))
        self._bases.sort(key=lambda base: -len(base[0]))
        self._live = False  # until it is known
        self._live = self._is_procfs(self.proc)
        if self.has_our_root:
            self._bases.append(("", os.open("/", _PATH_ONLY)))
        self._limit_bytes = LARGEST_BYTES if self._live else LARGEST_COPIED_BYTES

    @property
    def is_live(self) -> bool:
        """Whether it is a procfs, which a kernel fills now."""
        return self._live

    @property
    def has_our_root(self) -> bool:
        """Whether the users, /tmp and cgroups that belong to PROC are those of this machine."""
        return self._live and not self.root

    @property
    def refused(self) -> dict[str, str]:
        """What was not read although it is there: path -> why."""
        return self._refused

    def is_own(self) -> bool:
        """Whether a pid in this tree is that process here; never in a copy, whose links may say anything."""
        if not self._live:
            return False
        try:
            seen, plain = self._stat(self.proc), os.stat(self.proc)  # what acts opens paths as they are
            return (
                os.path.samestat(seen, plain)
                and self._readlink(self.path("self")) == b"%d" % os.getpid()
                and os.path.samestat(self._stat(self.path("self", "ns", "pid")), os.stat("/proc/self/ns/pid"))
            )
        except OSError:
            return False

    def thread_count(self, pid: int) -> int:
        """How many threads a process has; a copy's directories need not be linked as the kernel's are."""
        if not self._live:
            return len(self.tids(pid))
        links = self._stat(self.path(pid, "task")).st_nlink
        return links - 2 if links > 2 else len(self.tids(pid))

    def read_path(self, path: str, limit_bytes: int | None = None) -> bytes:
        """A whole regular file. Raises Refused for anything else, and above the limit."""
        limit_bytes = largest_bytes(path, self._limit_bytes if limit_bytes is None else limit_bytes)
        if not self._live and path[path.rfind("/") + 1 :] in _SMALL:
            limit_bytes = min(limit_bytes, LARGEST_SMALL_BYTES)
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
                self._refused[path] = str(error.strerror)
                raise
            with self._reopened(seen, path) as fd:
                return found, read_all(fd, path, limit_bytes)

    def file_id_at(self, path: str) -> FileId:
        """What is at a path; a symbolic link there is not followed."""
        with self._opened(path, follow=False) as fd:
            return FileId.of(os.fstat(fd))

    def is_writable(self, path: str) -> bool:
        """Whether we may write there."""
        try:
            with self._opened(path) as fd:
                return os.access(f"/proc/self/fd/{fd}", os.W_OK)
        except OSError:
            return False

    def space_at(self, path: str) -> Space:
        """How much room there is on the file system of a path."""
        with self._opened(path) as fd:
            return Space.of(os.statvfs(fd))

    def names_at(self, path: str) -> list[str]:
        """The names in a directory, in no order."""
        with self._opened(path) as seen, self._listable(seen, path) as fd:
            return os.listdir(fd)

    def inside(self, pid: int, path: str) -> str:
        """As ProcFS has it. Raises FileNotFoundError where a copy does not hold that process's mount namespace."""
        root = self.path(pid, "root")
        if not self._live and stat.S_ISLNK(self.file_id_at(root).mode) and not self._shares_the_root(pid):
            raise FileNotFoundError(errno.ENOENT, "not in this copy", root)
        return super().inside(pid, path)

    def _shares_the_root(self, pid: int) -> bool:
        """Whether a copied process's `root -> /` means ROOT: it is not in a mount namespace of its own."""
        if not self.root:
            return False
        namespaces = []
        for each in (1, pid):
            try:
                namespaces.append(self.link(each, "ns", "mnt"))
            except OSError:
                return True  # the copy does not say
        return namespaces[0] == namespaces[1]

    # How a path is reached

    def _is_procfs(self, path: str) -> bool:
        try:
            with self._opened(path) as fd:
                return syscalls.file_system_type(fd) == syscalls.PROC_SUPER_MAGIC
        except OSError:
            return False

    @contextlib.contextmanager
    def _opened(self, path: str, *, follow: bool = True) -> Iterator[int]:
        """An O_PATH fd of what is at a path. Whatever fails is GONE or DENIED."""
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
            # Told by read_untrusted and _readlink; a live kernel file may give any error when it is read.
            if error.errno in (errno.EINVAL, errno.EFBIG) or (self._live and error.errno not in _NOT_OPENED):
                raise
            raise self._refuse(path, error.errno or errno.EIO, error.strerror or "cannot be opened") from None
        finally:
            if fd >= 0:
                os.close(fd)

    def _open(self, path: str, *, follow: bool) -> int:
        flags = _PATH_ONLY if follow else _PATH_ONLY | os.O_NOFOLLOW
        base, below = self._base(path)
        magic = (
            _MAGIC.fullmatch(path[len(self.proc) + 1 :]) if self._live and path.startswith(f"{self.proc}/") else None
        )
        if magic is None or not (follow or magic["below"]):
            return self._resolve(base, below, flags)
        name = magic["entry"] or magic["file"] or magic["place"]
        parent = self._resolve(base, self._base(f"{self.proc}/{magic['parent']}")[1], _PATH_ONLY | os.O_DIRECTORY)
        try:
            if syscalls.file_system_type(parent) != syscalls.PROC_SUPER_MAGIC:  # something is mounted over it
                return self._resolve(base, below, flags)
            place = os.open(name, _PATH_ONLY, dir_fd=parent)
        finally:
            os.close(parent)
        if not magic["below"]:
            return place
        try:
            return self._resolve(place, _relative(magic["below"]), flags)
        finally:
            os.close(place)

    def _base(self, path: str) -> tuple[int, bytes]:
        for prefix, base in self._bases:
            if path == prefix or path.startswith(f"{prefix}/"):
                return base, _relative(path[len(prefix) :])
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _check_regular(self, fd: int, path: str, limit_bytes: int | None) -> None:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            kind = _KINDS.get(stat.S_IFMT(found.st_mode))
            why = f"{kind}, not a regular file" if kind else os.strerror(errno.EISDIR)
            raise self._refuse(path, errno.EINVAL, why)
        if limit_bytes is not None and found.st_size > limit_bytes:
            error = Refused.too_large(path, limit_bytes)
            raise self._refuse(path, errno.EFBIG, str(error.strerror))

    def _refuse(self, path: str, number: int, why: str) -> Refused:
        self._refused[path] = why
        return Refused(number, why, path)

    @contextlib.contextmanager
    def _reopened(self, seen: int, path: str) -> Iterator[int]:
        """The same file, to be read: what was looked at cannot be replaced meanwhile."""
        fd = os.open(f"/proc/self/fd/{seen}", READ_ONLY)
        try:
            yield fd
        except Refused as error:
            self._refused[path] = str(error.strerror)
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
        try:
            with self._opened(path, follow=False):
                return True
        except OSError:
            return False

    def _stat(self, path: str) -> os.stat_result:
        with self._opened(path) as fd:
            return os.fstat(fd)

    def _readlink(self, path: str) -> bytes:
        with self._opened(path, follow=False) as fd:
            if not stat.S_ISLNK(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
            return os.readlink(b"", dir_fd=fd)

    @contextlib.contextmanager
    def _scan(self, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with self._opened(path) as seen, self._listable(seen, path) as fd, os.scandir(fd) as entries:
            yield entries

    def _open_fds(self, path: bytes) -> int:
        text = os.fsdecode(path)
        with self._opened(text) as seen, self._listable(seen, text) as fd:
            return os.dup(fd)

    def _fds(self, path: bytes, directory: int) -> list[bytes]:  # noqa: ARG002
        names = (os.fsencode(name) for name in os.listdir(directory))
        return [name for name in names if name.isascii() and name.strip(b"0123456789") == b"" and len(name) <= 10]

    def _all_fds(self, path: bytes, directory: int) -> list[bytes]:
        return super()._all_fds(path, directory) if self._live else self._fds(path, directory)


def _open_base(path: str, what: str, holds: str) -> int:
    try:
        return os.open(path, _PATH_ONLY | os.O_DIRECTORY)
    except OSError as error:
        raise BadInput(path, f"no {what}: {error.strerror}; give the directory that holds {holds}") from None


def _relative(path: str) -> bytes:
    """A path below its base. Raises FileNotFoundError for what is no path: no file has such a name."""
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return os.fsencode(path).lstrip(b"/") or b"."


def _resolver() -> Resolver:
    """openat2 where it works here."""
    here = os.open("/", _PATH_ONLY)
    try:
        os.close(syscalls.open_in_root(here, b".", os.O_PATH))
    except OSError:
        return walk_in_root
    finally:
        os.close(here)
    return open_in_root


def open_in_root(base: int, path: bytes, flags: int) -> int:
    """Open a path within a directory by openat2. Raises OSError: ELOOP for too many links, and for a magic one."""
    for _ in range(_RENAMES_AT_MOST):
        try:
            return syscalls.open_in_root(base, path, flags)
        except BlockingIOError:  # something was renamed while it went through `..`
            continue
    raise OSError(errno.ELOOP, "renamed again and again while it was looked for")


def walk_in_root(base: int, path: bytes, flags: int) -> int:
    """The same component by component, for kernels and sandboxes without openat2. `flags` are O_PATH ones."""
    if len(path) >= _PATH_MAX:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    levels = [os.dup(base)]
    try:
        todo = _components(path)
        links = 0
        while todo:
            part = todo.pop()
            if part == b"..":
                if len(levels) > 1:
                    os.close(levels.pop())
                continue
            if len(levels) > _LEVELS_AT_MOST:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            levels.append(os.open(part, _PATH_ONLY | os.O_NOFOLLOW, dir_fd=levels[-1]))
            if not stat.S_ISLNK(os.fstat(levels[-1]).st_mode) or (not todo and flags & os.O_NOFOLLOW):
                continue
            links += 1
            if links > _LINKS_AT_MOST or _is_magic(levels[-1], levels[-2]):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            target = os.readlink(b"", dir_fd=levels[-1])
            os.close(levels.pop())
            if target.startswith(b"/"):
                while len(levels) > 1:
                    os.close(levels.pop())
            todo += _components(target)
        if flags & os.O_DIRECTORY and not stat.S_ISDIR(os.fstat(levels[-1]).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return levels.pop()
    finally:
        for fd in levels:
            os.close(fd)


def _components(path: bytes) -> list[bytes]:
    """The parts, the first one last."""
    return [part for part in reversed(path.split(b"/")) if part not in (b"", b".")]


def _is_magic(link: int, directory: int) -> bool:
    """Whether following a link would leave the path: those of procfs, but for the ones in its topmost directory."""
    return (
        syscalls.file_system_type(link) == syscalls.PROC_SUPER_MAGIC and os.fstat(directory).st_ino != _PROC_ROOT_INODE
    )
