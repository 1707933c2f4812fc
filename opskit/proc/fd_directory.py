"""The links of a process's fd directory, read through an open fd of it; 200,000 of them in a fraction of a second."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")
FdLink = tuple[bytes, bytes, int]  # name, target, and mode, whose bits say how the file was opened
FD_READABLE, FD_WRITABLE = stat.S_IRUSR, stat.S_IWUSR

if TYPE_CHECKING:
    from collections.abc import Callable

    # From (names, the directory) to one item an fd. Raises OSError for the first fd that cannot be read.
    FdReader = Callable[[list[bytes], int], list[T]]

_DENSE_FROM = 64
_NAMES: list[bytes] = []
# Errors that concern one fd alone: closed meanwhile; a target longer than a page; in a copied tree, not a link.
_GONE = (errno.ENOENT, errno.ESRCH)
_NO_TARGET = (errno.ENAMETOOLONG, errno.EINVAL)


def _dense_names(directory: int) -> list[bytes]:
    """The names of all fds where a process has many and no gap; empty where readdir has to list them."""
    # Since Linux 6.2 st_size is the number of fds N. Where 0 to N-1 can all be read, readdir, a fifth of the scan, is not needed.
    count = os.fstat(directory).st_size
    if count < _DENSE_FROM:
        return []
    try:
        os.lstat(b"%d" % (count - 1), dir_fd=directory)
    except (FileNotFoundError, ProcessLookupError):
        return []
    while len(_NAMES) < count:
        _NAMES.append(b"%d" % len(_NAMES))
    return _NAMES[:count]


def targets(names: list[bytes], directory: int) -> list[bytes]:
    """Where each fd points."""
    readlink = os.readlink
    return [readlink(name, dir_fd=directory) for name in names]


def pairs(names: list[bytes], directory: int) -> list[tuple[bytes, bytes]]:
    """Each fd with its target."""
    return list(zip(names, targets(names, directory)))


def links(names: list[bytes], directory: int, wanted: tuple[bytes, ...]) -> list[FdLink]:
    """The fds whose target begins with one of `wanted`."""
    readlink, lstat = os.readlink, os.lstat
    return [
        (name, target, lstat(name, dir_fd=directory).st_mode)
        for name in names
        if (target := readlink(name, dir_fd=directory)).startswith(wanted)
    ]


def all_links(names: list[bytes], directory: int) -> list[FdLink]:
    """All fds, those without a readable target too."""
    return links(names, directory, (b"",))


# What stands for an fd whose target cannot be read; links() leaves it out.
_WITHOUT_TARGET: dict[object, Callable[[bytes], list[Any]]] = {
    targets: lambda _: [b""],
    pairs: lambda name: [(name, b"")],
    all_links: lambda name: [(name, b"", 0)],
}


def read_all(read: FdReader[T], directory: int, names: Callable[[], list[bytes]], *, dense: bool = True) -> list[T]:
    """`read` of each fd of a directory listed by `names`, or by `dense` counts."""
    try:
        return read((dense and _dense_names(directory)) or names(), directory)
    except OSError as error:
        _check_of_one_fd(error)
    found: list[T] = []
    for name in names():
        try:
            found += read([name], directory)
        except OSError as error:
            _check_of_one_fd(error)
            if error.errno in _NO_TARGET and read in _WITHOUT_TARGET:
                found += _WITHOUT_TARGET[read](name)
    return found


def _check_of_one_fd(error: OSError) -> None:
    if error.errno not in _GONE and error.errno not in _NO_TARGET:
        raise error
