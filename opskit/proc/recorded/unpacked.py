"""A capture that was unpacked to a directory: plain files below it alone. The archive may have come from a stranger."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from opskit.errors import BadInput, NotPermitted
from opskit.proc.recorded import manifest
from opskit.proc.recorded.unarchive import MOST_BYTES, MOST_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_directory(path: str) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each file, the names from the directory on. Raises BadInput for links, FIFOs and the like, and NotPermitted."""
    below = [f"{name}/" for name, is_directory in _listed(path, "") if is_directory]
    if not any(os.path.lexists(os.path.join(path, folder, manifest.NAME)) for folder in ("", *below)):
        raise BadInput(
            path, "is a directory without manifest.json; give a capture, or the directory where it was unpacked"
        )
    left, files, todo = MOST_BYTES, 0, [""]
    while todo:
        folder = todo.pop()
        for name, is_directory in _listed(path, folder):
            files += 1
            if files > MOST_FILES:
                raise BadInput(path, f"has more than {MOST_FILES:,} files, the most that is read of a capture")
            if is_directory:
                todo.append(f"{name}/")
                continue
            data = _read(path, name, left)
            left -= len(data)
            yield name, data


def _listed(path: str, folder: str) -> list[tuple[str, bool]]:
    """The names in a directory, sorted, and whether each is a directory."""
    try:
        with os.scandir(os.path.join(path, folder)) as entries:
            return sorted([(folder + entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries])
    except OSError as error:
        raise _cannot_read(error, path, folder) from None


def _read(path: str, name: str, most: int) -> bytes:
    try:
        fd = os.open(os.path.join(path, name), _OPEN)
        with open(fd, "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise BadInput(path, "has a file that is not a plain file; a capture has plain files alone", found=name)
            data = file.read(most + 1)
    except OSError as error:
        raise _cannot_read(error, path, name) from None
    if len(data) > most:
        raise BadInput(path, f"has more than {MOST_BYTES >> 30} GiB, the most that is read of a capture")
    return data


def _cannot_read(error: OSError, path: str, name: str) -> BadInput | NotPermitted:
    if isinstance(error, PermissionError):
        return NotPermitted(f"cannot read {os.path.join(path, name)}: permission denied; run as its owner or as root")
    if error.errno == errno.ELOOP:
        return BadInput(path, "has a symbolic link; a capture has plain files alone", found=name)
    return BadInput(path, f"has a file that cannot be read ({error.strerror})", found=name)
