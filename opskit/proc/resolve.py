"""Opening a path within a directory, wherever its links and `..` point: openat2(2), or a walk component by component."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from opskit.proc.kernel import syscalls

if TYPE_CHECKING:
    from collections.abc import Callable

    Resolver = Callable[[int, bytes, int], int]  # from (base, path, O_ flags) to an fd

PATH_ONLY = os.O_PATH | os.O_CLOEXEC
_LINKS_AT_MOST = 40  # the kernel's own limit
_LEVELS_AT_MOST = 255  # each costs an fd
_RENAMES_AT_MOST = 16
_PATH_MAX = 4096
_PROC_ROOT_INODE = 1  # include/linux/proc_ns.h


def relative(path: str) -> bytes:
    """A path below its base. Raises FileNotFoundError for one with NUL, which no file has."""
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return os.fsencode(path).lstrip(b"/") or b"."


def best_resolver() -> Resolver:
    """openat2 where this kernel and its seccomp filters allow it, otherwise the walk."""
    here = os.open("/", PATH_ONLY)
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
        except BlockingIOError:  # a directory was renamed while `..` was resolved
            continue
    raise OSError(errno.ELOOP, "directories are renamed too often")


def walk_in_root(base: int, path: bytes, flags: int) -> int:
    """The same component by component, for kernels and sandboxes without openat2. `flags` must have O_PATH."""
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
            levels.append(os.open(part, PATH_ONLY | os.O_NOFOLLOW, dir_fd=levels[-1]))
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
    return [part for part in reversed(path.split(b"/")) if part not in (b"", b".")]


def _is_magic(link: int, directory: int) -> bool:
    """Whether following a link would leave the path: one of procfs, except in its topmost directory."""
    return (
        syscalls.file_system_type(link) == syscalls.PROC_SUPER_MAGIC and os.fstat(directory).st_ino != _PROC_ROOT_INODE
    )
