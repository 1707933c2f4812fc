"""What a drop changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.dentry.usage import Usage

_COMPARED = (
    *("dentries", "unused", "negative", "dentry_slab_bytes", "inode_slab_bytes", "reclaimable_bytes"),
    *("page_cache_bytes", "free_bytes", "available_bytes"),
)
_DROPPED = {
    "dentries": ("reclaimable_bytes",),
    "pagecache": ("page_cache_bytes",),
    "all": ("reclaimable_bytes", "page_cache_bytes"),
}


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
    """What was done, what it changed, and what it freed (see `freed_bytes`)."""

    done: Dropped
    changes: Sequence[Change]
    freed_bytes: int | None


def compare(done: Dropped, before: Usage, after: Usage) -> Drop:
    """Compare the numbers before and after a drop."""
    rows = [Change(name, getattr(before, name), getattr(after, name)) for name in _COMPARED]
    return Drop(done, rows, freed_bytes(done.level, rows))


def freed_bytes(level: str, rows: Sequence[Change]) -> int | None:
    """What a drop of "dentries", "pagecache" or "all" freed: the decrease of reclaimable slab and page cache.

    Negative where the caches grew faster than they were dropped; None where the kernel does not count them.
    """
    found = [row.by for row in rows if row.name in _DROPPED[level]]
    return None if None in found else -sum(found)  # type: ignore[arg-type]


def verdict(drop: Drop) -> str:
    """What was freed, and how long it took."""
    done, freed = drop.done, drop.freed_bytes
    if freed is None:
        amount = "an unknown amount"
    else:
        amount = size(freed) if freed >= 0 else f"nothing (the caches grew by {size(-freed)} meanwhile)"
    took = (
        f"{amount} in {done.drop_s or 0:.2f} s (wrote {done.written} to {done.path} after {done.sync_s:.2f} s of sync)."
    )
    return f"Interrupted: the kernel has dropped a part of it, {took}" if done.interrupted else f"Freed {took}"


def notes(drop: Drop) -> list[str]:
    """What went wrong."""
    if drop.done.synced:
        return []
    return [
        f"sync did not end within {drop.done.sync_timeout_s:g} s (a hung mount?): it goes on in the background, and dirty "
        "data stayed cached; look for the mount with: grep -l 'D (disk sleep)' /proc/[0-9]*/status"
    ]
