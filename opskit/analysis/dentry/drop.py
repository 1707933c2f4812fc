"""What a drop changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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


def changes(before: Usage, after: Usage) -> list[Change]:
    """The numbers that a drop may change."""
    return [Change(name, getattr(before, name), getattr(after, name)) for name in _COMPARED]


def freed_bytes(level: str, rows: list[Change]) -> int | None:
    """What a drop of "dentries", "pagecache" or "all" freed: the decrease of reclaimable slab and page cache.

    Negative where the caches grew faster than they were dropped; None where the kernel does not count them.
    """
    found = [row.by for row in rows if row.name in _DROPPED[level]]
    return None if None in found else -sum(found)  # type: ignore[arg-type]
