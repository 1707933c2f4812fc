"""Where the file behind a mapping can be opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.fs import optional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.files.smaps import Region
    from opskit.proc.fs import ProcFS


def paths_of(fs: ProcFS, pid: int, region: Region) -> Iterator[str]:
    """Our paths of that very file, also when it was deleted or replaced (needs CAP_CHECKPOINT_RESTORE), and of what has its name now."""
    yield fs.path(pid, "map_files", f"{region.start:x}-{region.end:x}")
    inside = None if region.deleted else optional(fs.inside, pid, region.name)
    if inside is not None:
        yield inside
