"""What a drop changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.dentry.usage import WATCHED
from opskit.quantities import size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.dentry.usage import Usage

_SLAB, _PAGES = "reclaimable_bytes", "page_cache_bytes"
_DROPPED = {"dentries": (_SLAB,), "pagecache": (_PAGES,), "all": (_SLAB, _PAGES)}


class Change(NamedTuple):
    """A number before and after a drop; None where unknown. Names that end in `_bytes` are amounts of memory."""

    name: str
    before: int | None
    after: int | None

    @property
    def by(self) -> int | None:
        """After minus before."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def is_bytes(self) -> bool:
        """Whether it is an amount of memory, and not a count."""
        return self.name.endswith("_bytes")


class Dropped(NamedTuple):
    """What was done: `written` to `path`. `synced`: False where sync took longer than `sync_timeout_s`.

    `drop_s` None: interrupted before anything was dropped; `interrupted`: the kernel may have dropped a part.
    """

    level: str
    written: int
    path: str
    sync_timeout_s: float
    synced: bool = False
    sync_s: float = 0.0
    drop_s: float | None = None
    interrupted: bool = False


class Drop(NamedTuple):
    """What was done, what it changed, and the decrease of the caches that were dropped.

    `freed_bytes`: negative where they grew faster; None where the kernel does not count them.
    """

    done: Dropped
    changes: Sequence[Change]
    freed_bytes: int | None


def compare(done: Dropped, before: Usage, after: Usage) -> Drop:
    """Compare the numbers before and after a drop."""
    names = (*WATCHED, _PAGES, "free_bytes", "available_bytes")
    rows = [Change(name, getattr(before, name), getattr(after, name)) for name in names]
    found = [row.by for row in rows if row.name in _DROPPED[done.level]]
    return Drop(done, rows, None if None in found else -sum(found))  # type: ignore[arg-type]


def verdict(drop: Drop) -> str:
    """What was freed, and how long it took."""
    done, freed = drop.done, drop.freed_bytes
    amount = "an unknown amount" if freed is None else size(freed)
    if freed is not None and freed < 0:
        amount = f"nothing (the caches grew by {size(-freed)} meanwhile)"
    start = "Interrupted: the kernel has dropped a part of it," if done.interrupted else "Freed"
    how = f"wrote {done.written} to {done.path} after {done.sync_s:.2f} s of sync"
    return f"{start} {amount} in {done.drop_s or 0:.2f} s ({how})."


def notes(drop: Drop) -> list[str]:
    """What went wrong."""
    if drop.done.synced:
        return []
    return [
        f"sync did not end within {drop.done.sync_timeout_s:g} s (a hung mount?): it goes on in the background, and dirty "
        "data stayed cached; look for the mount with: grep -l 'D (disk sleep)' /proc/[0-9]*/status"
    ]
