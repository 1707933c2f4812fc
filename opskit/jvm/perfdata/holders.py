"""Which processes hold an hsperfdata file: by flock (/proc/locks), or mapped (/proc/PID/maps and map_files)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.mapped_files import parse_jvm_maps
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE, ProcFS, optional
from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.proc.file_id import FileId
    from opskit.proc.files.maps import Mapping

_LOCK = re.compile(r"^[0-9]+: FLOCK +\S+ +\S+ +-?[0-9]+ [0-9a-f]+:[0-9a-f]+:([0-9]{1,20}) ", re.MULTILINE)


class Holders:
    """Reads /proc/locks and every process's maps once, when they are first needed. `scans` False: reads neither, and knows nothing."""

    def __init__(self, fs: ProcFS, *, scans: bool = True) -> None:
        self.fs, self._scans = fs, scans
        self._locks: set[int] | None = None
        self._mapped: dict[tuple[int, int], int] | None = None
        self._numbers: dict[int, int] = {}  # inode numbers of mapped files whose map_files may not be read
        self._hidden = False

    def is_locked(self, inode: int) -> bool | None:
        """Whether a process holds an flock on a file of this inode number, on whatever device. None: unknown."""
        if self._locks is None and self._scans:
            self._locks = self.fs.maybe(_locked, "locks")
        return None if self._locks is None else inode in self._locks

    def is_mapped(self, file: FileId) -> bool | None:
        """Whether a process maps this hsperfdata file. None: none is seen, and some could not be read."""
        return True if self.holder(file) is not None else None if self._hidden else False

    def holder(self, file: FileId) -> int | None:
        """The PID of a process that maps this hsperfdata file; by the number alone where map_files may not be read."""
        return self._holders().get((file.device, file.inode)) or self._numbers.get(file.inode)

    def _holders(self) -> dict[tuple[int, int], int]:
        if self._mapped is None:
            self._mapped, self._hidden = {}, not self._scans
            for pid in self.fs.pids() if self._scans else ():
                try:
                    task = pid
                    maps = self.fs.load(str, pid, "maps")
                    if not maps and self._has_lost_its_leader(pid):
                        task, maps = self._maps_of_a_thread(pid)
                except GONE:
                    continue
                except DENIED:
                    self._hidden = True
                    continue
                mapping = parse_jvm_maps(maps).hsperfdata
                if mapping is None:
                    continue
                file = mapped_file(self.fs, task, mapping)
                if file is None:
                    self._numbers[mapping.inode] = pid
                else:
                    self._mapped[file.device, file.inode] = pid
        return self._mapped

    def _has_lost_its_leader(self, pid: int) -> bool:
        """Whether its first thread has ended and others run: PROC/PID/maps is empty then, as a kernel thread's always is."""
        status = self.fs.load(parse_status, pid, "status")
        return status.fields.get("State", "").startswith("Z") and status.threads != 1

    def _maps_of_a_thread(self, pid: int) -> tuple[int, str]:
        """A thread that still has the process's memory, and its maps, which PROC/TID has as well."""
        for tid in self.fs.tids(pid):
            try:
                maps = self.fs.load(str, tid, "maps")
            except GONE:
                continue
            if maps:
                return tid, maps
        raise ProcessLookupError(f"{pid} has ended")


def mapped_file(fs: ProcFS, pid: int, mapping: Mapping) -> FileId | None:
    """The identity of a file that a process maps; None where the rights do not suffice (CAP_CHECKPOINT_RESTORE)."""
    return optional(fs.file_id, pid, "map_files", mapping.addresses)


def _locked(text: str) -> set[int]:
    return {number for number in map(integer, _LOCK.findall(text)) if number is not None}
