"""Spans of addresses against sets of single addresses."""

from __future__ import annotations

import random

from eachof import each_of

from opskit.proc.files.smaps import Region, Usage
from opskit.proc.spans import is_anonymous, merged, overlaps, without


def spans_of(draw, most=8):
    starts = [draw.randrange(60) for _ in range(draw.randrange(most))]
    return [(start, start + draw.randrange(12)) for start in starts]


def addresses(spans):
    return {address for start, end in spans for address in range(start, end)}


def region(start, end, permissions="rw-p", name=""):
    return Region(start, end, permissions, 0, 0, name, deleted=False, usage=Usage())


@each_of("seed", range(300))
def test_against_sets(seed):
    """The same addresses, sorted, without empty spans, without neighbours that touch in `merged`."""
    draw = random.Random(seed)  # noqa: S311
    spans, taken = spans_of(draw), spans_of(draw)
    joined, left = merged(spans), without(spans, taken)
    assert addresses(joined) == addresses(spans)
    assert addresses(left) == addresses(spans) - addresses(taken)
    assert all(before[1] < after[0] for before, after in zip(joined, joined[1:]))
    assert all(before[1] <= after[0] for before, after in zip(left, left[1:]))
    assert all(start < end for start, end in (*joined, *left))


@each_of("seed", range(100))
def test_parts_of_regions(seed):
    """Each part of a region that is in a span, once, of the right region."""
    draw = random.Random(seed)  # noqa: S311
    cuts = sorted(draw.sample(range(80), 8))
    regions, spans = [region(*pair) for pair in zip(cuts[::2], cuts[1::2])], spans_of(draw)
    parts = list(overlaps(regions, spans))
    found = [address for _, start, end in parts for address in range(start, end)]
    assert sorted(found) == sorted(addresses(spans) & addresses((each.start, each.end) for each in regions))
    assert all(each.start <= start < end <= each.end for each, start, end in parts)


def test_anonymous_memory():
    """Private, and without a file: also where it has a name of prctl(2); not the kernel's stack or heap."""
    assert is_anonymous(region(0, 1))
    assert is_anonymous(region(0, 1, "---p"))
    assert is_anonymous(region(0, 1, name="[anon:Metaspace]"))
    assert not any(is_anonymous(region(0, 1, name=name)) for name in ("[heap]", "[stack]", "/lib/x.so"))
    assert not is_anonymous(region(0, 1, "rw-s"))
