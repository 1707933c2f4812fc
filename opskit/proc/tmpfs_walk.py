"""The files of tmpfs mounts, by their directories."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from opskit.proc.files.mountinfo import parse_mountinfo
from opskit.proc.fs import DENIED, optional
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.tmpfs_mounts import path_of
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.file_id import FileId
    from opskit.proc.fs import ProcFS
    from opskit.proc.tmpfs_mounts import TmpfsMount

_MOST_ENTRIES = 20_000


class TmpfsWalk:
    """What was found: the mount, path and stat of each file, by (device, inode). `cut`: mounts that were not listed to the end; `unlisted`: directories."""

    def __init__(self, fs: ProcFS) -> None:
        self._fs = fs
        self.found: dict[tuple[int, int], tuple[TmpfsMount, str, FileId]] = {}
        self.cut: list[str] = []
        self.unlisted: list[str] = []
        self._entries_left = _MOST_ENTRIES

    def walk(self, mount: TmpfsMount) -> None:
        """Add the files of a mount. Other file systems mounted below it are left out."""
        fs = self._fs
        if mount.is_hidden or mount.used_bytes == 0:
            return
        reader = "self" if mount.pid is None else mount.pid
        mounted = {one.mount_point for one in fs.maybe(parse_mountinfo, reader, "mountinfo", default=[])}
        top = optional(path_of, fs, mount.pid, mount.mount_point)
        waiting = [] if top is None else [(top, mount.mount_point.rstrip("/"))]
        while waiting:
            directory, shown = waiting.pop()
            for name in self._names(directory, shown):
                path = f"{shown}/{name}"
                if path in mounted:
                    continue
                if self._entries_left <= 0:
                    self.cut.append(mount.mount_point)
                    return
                self._entries_left -= 1
                found = optional(fs.file_id_at, f"{directory}/{name}")
                if found is None or found.device != mount.device:
                    continue
                if stat.S_ISDIR(found.mode):
                    waiting.append((f"{directory}/{name}", path))
                elif stat.S_ISREG(found.mode):
                    self.found.setdefault((found.device, found.inode), (mount, path, found))

    def notes(self, *words: object) -> Iterator[str]:
        """What is missing. `words`: the command to repeat as root."""
        if self.unlisted:
            yield (
                f"files in directories of tmpfs mounts that cannot be listed: {plural(len(self.unlisted), 'directory', 'directories')}, "
                f"{self.unlisted[0]}; {how_to_be_allowed(self._fs, 'CAP_DAC_READ_SEARCH', *words)}"
            )
        if self.cut:
            yield f"only {_MOST_ENTRIES:,} files and directories of tmpfs mounts were looked at; not all of {self.cut[0]}"

    def _names(self, directory: str, shown: str) -> list[str]:
        try:
            return self._fs.names_at(directory, self._entries_left + 1)
        except DENIED:
            self.unlisted.append(shown or "/")
        except OSError:  # it was removed
            pass
        return []
