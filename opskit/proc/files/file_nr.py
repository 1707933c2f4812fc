"""/proc/sys/fs/file-nr (Documentation/admin-guide/sysctl/fs.rst): open files, those unused (0 since Linux 2.6), and fs.file-max.

593	0	2466177
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS


def parse_file_nr(text: str) -> tuple[int, int] | None:
    """Open files of the machine and fs.file-max; None for another text."""
    words = [integer(word) for word in text.split()]
    if len(words) != 3 or words[0] is None or words[2] is None:
        return None
    return words[0], words[2]


def read_file_nr(fs: ProcFS) -> tuple[int, int] | None:
    """The same; None where it cannot be read."""
    return fs.maybe(parse_file_nr, "sys", "fs", "file-nr")
