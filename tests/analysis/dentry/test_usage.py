"""Numbers from facts, whatever is missing."""

from __future__ import annotations

import json
import math

import pytest
from dentrytrees import facts_of
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.dentry.judge import exceeds, findings, verdict, ways
from opskit.analysis.dentry.usage import (
    DENTRY_BYTES,
    WATCHED,
    Sample,
    cache_growth_per_min,
    growth_per_min,
    measure,
)
from opskit.collect.dentry import Facts
from opskit.proc.cgroup.slab import CgroupSlab
from opskit.proc.files.dentry_state import DentryState
from opskit.proc.files.slabinfo import Slab

counts = st.integers(0, 10**10)
maybe = st.none() | counts
slabs = st.lists(
    st.builds(
        Slab,
        st.sampled_from(["dentry", "dentry_cache", "ext4_inode_cache", "xfs_inode", "inode_cache", "filp"]),
        *(counts, counts, st.integers(1, 10_000), counts, st.integers(1, 8)),
    ),
    unique_by=lambda slab: slab.name,
).map(tuple)
meminfos = st.dictionaries(
    st.sampled_from(["MemTotal", "MemAvailable", "MemFree", "Cached", "Buffers", "SReclaimable", "SUnreclaim"]), counts
)
states = st.none() | st.builds(DentryState, counts, counts, maybe)
cgroups = st.lists(
    st.builds(CgroupSlab, st.sampled_from(["/a", "/a/b", "/c"]), st.just("/sys/fs/cgroup/x"), *[maybe] * 4),
    unique_by=lambda group: group.path,
).map(tuple)
vmstats = st.dictionaries(st.sampled_from(["drop_slab", "drop_pagecache"]), counts)
any_facts = st.builds(Facts, states, st.none() | slabs, meminfos, st.just(4096), vmstats, st.just({}), cgroups, maybe)


@given(any_facts, st.floats(0, 100))
def test_unknown_numbers_never_appear_as_none(found, max_percent):
    """There is a verdict, no sentence says None, and the finding agrees with --check."""
    usage = measure(found)
    lines = [*verdict(usage), *ways(usage)]
    problems = findings(usage, max_percent)
    lines += [line for one in problems for line in (one.summary, one.evidence)]
    assert lines[0]
    assert all("None" not in line for line in lines)
    json.dumps(usage, allow_nan=False)
    assert ("dentry-share" in {one.code for one in problems}) == (exceeds(usage, max_percent) is True)
    for part in (usage.negative_share, usage.of_ram(usage.dentry_bytes)):
        assert part is None or (part >= 0 and math.isfinite(part))


def test_without_slabinfo_the_size_is_an_estimate_and_the_slab_is_unknown():
    """Counts come from dentry-state."""
    usage = measure(facts_of(DentryState(1000, 900, 0)))
    assert (usage.dentry_bytes, usage.dentry_slab_bytes, usage.inodes) == (1000 * DENTRY_BYTES, None, None)
    assert (usage.dentries, usage.unused, usage.in_use) == (1000, 900, 100)


@pytest.mark.parametrize(("merged", "count"), [({}, 7), ({"dentry": ("filp",)}, None)])
def test_without_dentry_state_the_objects_of_an_unshared_cache_are_the_dentries(merged, count):
    """A merged cache holds others too."""
    assert measure(facts_of(None, [("dentry", 7, 1)])._replace(merged=merged)).dentries == count


def at(seconds, count):
    return Sample(seconds, dict.fromkeys(WATCHED) | {"dentries": count}, {"dentry": count * 192})


def test_growth_is_a_slope_per_minute_and_unknown_without_two_samples():
    """Per number and per cache; an unknown number has no growth."""
    assert growth_per_min([at(0, 100)])["dentries"] is None
    growth = growth_per_min([at(0, 100), at(2, 120), at(4, 140)])
    assert growth["dentries"] == pytest.approx(600)
    assert growth["negative"] is None
    assert cache_growth_per_min([at(0, 100), at(2, 120)])["dentry"] == pytest.approx(600 * 192)
