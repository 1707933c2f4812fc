"""What holds for the files of every copy of a machine, be it a tree or a capture: how large they may be, and whose root it has."""

from __future__ import annotations

import errno
import stat
from typing import TYPE_CHECKING

from opskit.proc.fs import optional

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

# The longest text in a capture is maps or smaps; this is the maps of half a million mappings.
LARGEST_COPIED_BYTES = 64 << 20
# These have a page or two, except a status with 65,536 groups. Split into lines, a hostile one takes thirty times its size.
LARGEST_SMALL_BYTES = 1 << 20
_SMALL = frozenset(("cgroup", "comm", "limits", "loadavg", "meminfo", "schedstat", "stat", "status", "uptime"))


def largest_copied_bytes(path: str, limit_bytes: int) -> int:
    """The most that is read of a copied file: `limit_bytes`, or less where its kind is always small."""
    return min(limit_bytes, LARGEST_SMALL_BYTES) if path[path.rfind("/") + 1 :] in _SMALL else limit_bytes


def check_has_root(fs: ProcFS, pid: int) -> None:
    """Raise FileNotFoundError where a copy does not hold the mount namespace of that process."""
    root = fs.path(pid, "root")
    if stat.S_ISLNK(fs.file_id_at(root).mode) and not _shares_the_root(fs, pid):
        raise FileNotFoundError(errno.ENOENT, "not in this copy", root)


def _shares_the_root(fs: ProcFS, pid: int) -> bool:
    """Whether a copied process's `root -> /` means ROOT: it is not in a mount namespace of its own."""
    if not fs.root:
        return False
    first, other = (optional(fs.link, each, "ns", "mnt") for each in (1, pid))  # a copy may hold neither
    return first is None or other is None or first == other
