"""What a drop changed."""

from __future__ import annotations

import pytest
from dentrytrees import facts_of

from opskit.analysis.dentry.drop import changes, freed_bytes
from opskit.analysis.dentry.usage import measure


@pytest.mark.parametrize(("level", "freed"), [("dentries", 300), ("pagecache", 50), ("all", 350)])
def test_what_a_drop_freed(level, freed):
    """Reclaimable slab for dentries, page cache for the page cache; unknown where the kernel does not report it."""
    before = measure(facts_of(SReclaimable=1000, Cached=500, Buffers=10))
    after = measure(facts_of(SReclaimable=700, Cached=460, Buffers=0))
    assert freed_bytes(level, changes(before, after)) == freed
    assert freed_bytes(level, changes(before, measure(facts_of()))) is None
