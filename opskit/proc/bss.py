"""The .bss of programs and libraries: anonymous memory behind their data, as long as the file's program header says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.elf.file import open_elf
from opskit.proc.mapped_files import paths_of
from opskit.proc.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.proc.files.smaps import Region
    from opskit.proc.fs import ProcFS

SMALL_BYTES = 4 << 20  # what is smaller needs no proof
_MOST_FILES = 256


def large_bss(fs: ProcFS, pid: int, regions: Sequence[Region]) -> Iterator[Range]:
    """The .bss parts of large anonymous mappings right behind the data of a file; the kernel merges what is mapped behind them."""
    begins: dict[str, int] = {}
    left = _MOST_FILES
    for before, region in zip(regions, regions[1:]):
        if before.name.startswith("/") and not before.offset:
            begins[before.name] = before.start
        is_data = before.name.startswith("/") and before.permissions == "rw-p" and before.end == region.start
        is_behind = is_data and not region.name and region.permissions.startswith("rw")
        if is_behind and region.end - region.start > SMALL_BYTES and before.name in begins and left:
            left -= 1
            images = (open_elf(fs, path) for path in paths_of(fs, pid, before))
            image = next((image for image in images if image is not None), None)
            end = begins[before.name] - image.begin + image.end if image is not None else 0
            if region.start < end:
                yield Range(region.start, min(end, region.end), "libraries")
