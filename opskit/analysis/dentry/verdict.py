"""What the numbers mean, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.dentry.caches import inodes_by_owner
from opskit.analysis.dentry.usage import share
from opskit.quantities import percent, size

if TYPE_CHECKING:
    from opskit.analysis.dentry.usage import Usage

LARGE_SHARE = 0.10  # of RAM: from here on a cache gets a sentence
LITTLE_SHARE = 0.01  # of RAM: less than this is not worth dropping
MOSTLY = 0.5


def mostly(part: int | None, whole: int | None) -> bool:
    """Whether a part is known to be half of the whole, or more."""
    found = share(part, whole)
    return found is not None and found >= MOSTLY


def verdict(usage: Usage) -> list[str]:
    """The sentences, most important first."""
    sentences = (_dentries(usage), _inodes(usage), _unreclaimable(usage), little_to_free(usage))
    return [sentence for sentence in sentences if sentence]


def little_to_free(usage: Usage) -> str | None:
    """The sentence that dropping is not worth it; None where it may be, or where that is unknown."""
    part = usage.of_ram(usage.reclaimable_bytes)
    if part is None or part >= LITTLE_SHARE:
        return None
    return f"Dropping dentries and inodes would free little: reclaimable slab is {percent(part)} of RAM."


def _dentries(usage: Usage) -> str:
    amount, part = usage.dentry_bytes, usage.of_ram(usage.dentry_bytes)
    if amount is None:
        return "The size of the dentry cache is unknown: neither slabinfo nor dentry-state could be read."
    about = "about " if usage.dentry_slab_bytes is None else ""
    of_ram = "" if part is None else f" ({percent(part)} of RAM)"
    start = f"The dentry cache holds {about}{size(amount)}{of_ram}"
    large = part is not None and part >= LARGE_SHARE
    negative = usage.negative_share
    if part is not None and not large:
        start += ": it is not the cause of high memory use"
    elif large and mostly(usage.in_use, usage.dentries):
        start += f", {percent(share(usage.in_use, usage.dentries))} of it in use, which a drop does not free"
    elif large and usage.available_bytes is not None:
        start += ", reclaimable and already counted in MemAvailable"
    elif large:
        start += ", reclaimable (this kernel has no MemAvailable, and `free` counts it as used)"
    if negative is not None:
        start += f"; {percent(negative)} of it are negative entries"
        if negative >= MOSTLY:
            start += ": a program keeps looking for files that are not there"
    if not large:
        return f"{start}."
    if negative is not None and negative < MOSTLY:
        return f"{start}. Dropping helps only for now: dentries come back with use."
    return f"{start}. Dropping helps only for now: find {'the program that makes them' if negative is None else 'that program'}."


def _inodes(usage: Usage) -> str | None:
    part = usage.of_ram(usage.inode_slab_bytes)
    if part is None or part < LARGE_SHARE or usage.caches is None:
        return None
    first = inodes_by_owner(usage.caches)[0]
    return (
        f"Inode caches hold {size(usage.inode_slab_bytes)} ({percent(part)} of RAM), most of it for {first.owner} "
        f"({size(first.size_bytes)}): a program walks, or creates, many files."
    )


def _unreclaimable(usage: Usage) -> str | None:
    part = usage.of_ram(usage.unreclaimable_bytes)
    if part is None or part < LARGE_SHARE:
        return None
    return (
        f"Unreclaimable slab holds {size(usage.unreclaimable_bytes)} ({percent(part)} of RAM), which a drop does not free: "
        f"its owner is the driver or subsystem that the largest caches belong to."
    )
