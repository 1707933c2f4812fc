"""What a drop changed."""

from __future__ import annotations

import pytest
from dentrytrees import facts_of

from opskit.analysis.dentry.drop import Dropped, compare, notes, verdict
from opskit.analysis.dentry.usage import measure


@pytest.mark.parametrize(("level", "freed"), [("dentries", 300), ("pagecache", 50), ("all", 350)])
def test_what_a_drop_freed(level, freed):
    """Reclaimable slab for dentries, page cache for the page cache; unknown where the kernel does not report it."""
    before = measure(facts_of(SReclaimable=1000, Cached=500, Buffers=10))
    after = measure(facts_of(SReclaimable=700, Cached=460, Buffers=0))
    done = Dropped(level, 2, "/proc/sys/vm/drop_caches", 30.0, synced=True, sync_s=0.5, drop_s=1.25)
    assert compare(done, before, after).freed_bytes == freed
    assert compare(done, before, measure(facts_of())).freed_bytes is None


def dropped(before, after, **done):
    """A drop of dentries that changed SReclaimable."""
    made = Dropped("dentries", 2, "/proc/sys/vm/drop_caches", 30.0, synced=True, sync_s=0.5, drop_s=1.25)
    sizes = ({} if size is None else {"SReclaimable": size} for size in (before, after))
    return compare(made._replace(**done), *(measure(facts_of(**size)) for size in sizes))


@pytest.mark.parametrize(
    ("drop", "start"),
    [
        (dropped(4096, 1024), "Freed 3.0 KiB in 1.25 s (wrote 2 to /proc/sys/vm/drop_caches after 0.50 s of sync)."),
        (dropped(1024, 2048), "Freed nothing (the caches grew by 1.0 KiB meanwhile) in 1.25 s"),
        (dropped(1024, None), "Freed an unknown amount in 1.25 s"),
        (dropped(2048, 1024, interrupted=True), "Interrupted: the kernel has dropped a part of it, 1.0 KiB in 1.25 s"),
    ],
)
def test_the_sentence(drop, start):
    """How much, how long, and what was written."""
    assert verdict(drop).startswith(start)


def test_a_sync_that_did_not_end_is_said():
    """With the timeout."""
    assert notes(dropped(2, 1)) == []
    [note] = notes(dropped(2, 1, synced=False))
    assert note.startswith("sync did not end within 30 s (a hung mount?)")
