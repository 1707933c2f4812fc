"""How fast each row grows in -w, and when its limit is reached if the growth is steady. Pure.

The Java heap is not judged: it rises and falls with each collection, up to a limit of its own. What a JVM does in its first minutes
(loads classes, compiles them) slows down; a leak does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.mem.headroom import MIB, heap_resident_bytes, rss_of
from opskit.analysis.mem.result import Slope
from opskit.analysis.slope import slope
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.mem.result import Headroom
    from opskit.collect.mem.facts import Facts

    Points = Sequence[tuple[float, int]]

A_TREND = 5  # looks; with fewer a burst looks like a leak
_MOSTLY = 0.75  # of the steps go up
_LATER = 0.6  # of the growth of the first half at least is in the second
_LEAST, _OF_ITSELF = MIB, 0.01  # a rise that is less is noise
_SUMS = frozenset({"rss", "cgroup"})
# A JVM that has just started loads classes, compiles them and starts threads: until it is so old, only more than that is growth.
_WARM_S = 120.0
_MORE_THAN_WARM = {
    "malloc-arenas": 64 * MIB, "malloc-mmapped": 32 * MIB, "metaspace": 64 * MIB, "class-space": 16 * MIB, "thread-stacks": 16 * MIB,
    "unnamed": 32 * MIB, "named": 32 * MIB, "vm-structures": 32 * MIB, "code-cache": 256 * MIB,
}  # fmt: skip
_EVEN = 2.5  # no step is so many times the mean one: a start comes in bursts
_OF_HEAP = ("java-heap", "gc")  # which follow the collections
_OF_FILES = ("mapped-files", "libraries", "cds")  # which the kernel reclaims


class _Series(NamedTuple):
    """A row's bytes, the part of them that is judged, and what is left below a limit of its own."""

    kind: str
    points: Points
    judged: Points
    own_room: int | None


class Trend(NamedTuple):
    """The slopes of all rows, and bytes a second of those that grow steadily: the rows that only a leak or a cache that fills up explains."""

    slopes: tuple[Slope, ...]
    steady: Mapping[str, float]


def trend(looks: Sequence[Facts], headroom: Headroom | None) -> Trend:
    """The growth over the looks, the oldest first; nothing with fewer than two."""
    if len(looks) < 2:
        return Trend((), {})
    room = _room(headroom)
    is_young = looks[0].jvm is not None and looks[0].age_s is not None and looks[0].age_s < _WARM_S
    slopes, steady = [], {}
    for each in _series(looks, headroom):
        rate = slope(each.points)
        if rate is None:
            continue
        grows = each.kind not in (*_OF_HEAP, *_OF_FILES) and is_steady(each.judged)
        if grows and is_young:
            grows = _is_more_than_a_start(each)
        lasting = slope(each.judged) if grows else None
        if lasting:
            steady[each.kind] = lasting
        ends = [end for end in (room, each.own_room) if end is not None]
        slopes.append(Slope(each.kind, rate, min(ends) / lasting if lasting and ends else None))
    return Trend(tuple(slopes), steady)


def is_steady(points: Points) -> bool:
    """Whether a series grows and will go on: enough points, hardly a step back, no less in its second half."""
    counts = [count for _, count in points]
    rise = counts[-1] - counts[0] if len(counts) >= A_TREND else 0
    if rise < max(_LEAST, _OF_ITSELF * counts[0] if counts else 0):
        return False
    steps = [later - earlier for earlier, later in zip(counts, counts[1:])]
    falls = -sum(step for step in steps if step < 0)
    half_s = (points[0][0] + points[-1][0]) / 2
    first = _at(points, half_s) - counts[0]
    # The largest step is no burst: a cache that is loaded once.
    return (
        sum(step > 0 for step in steps) >= _MOSTLY * len(steps)
        and falls <= rise / 10
        and rise - first >= _LATER * first
        and max(steps) <= rise / 2
    )


def _is_more_than_a_start(each: _Series) -> bool:
    """Whether a JVM that has just started grows as only a leak does; its sums are not judged, because they have all of that."""
    counts = [count for _, count in each.judged]
    rise, steps = counts[-1] - counts[0], [later - earlier for earlier, later in zip(counts, counts[1:])]
    is_even = max(steps) <= _EVEN * rise / len(steps)
    return each.kind not in _SUMS and is_even and rise >= _MORE_THAN_WARM.get(each.kind, 0)


def _at(points: Points, at_s: float) -> float:
    """The count at a time between two looks."""
    for (earlier_s, earlier), (later_s, later) in zip(points, points[1:]):
        if later_s >= at_s and later_s > earlier_s:
            return earlier + (later - earlier) * (at_s - earlier_s) / (later_s - earlier_s)
    return points[-1][1]


def _room(headroom: Headroom | None) -> int | None:
    """What is left to the rest if the heap grows to its limit; if it cannot, all that is left."""
    left = headroom.all_left_bytes if headroom is not None else None
    if headroom is None or left is None:
        return None
    return left - headroom.heap_growth_bytes if headroom.heap_growth_bytes and headroom.can_be_killed is False else left


def _series(looks: Sequence[Facts], headroom: Headroom | None) -> Iterator[_Series]:
    """Each row, then the sums."""
    last, own = looks[-1], _own_rooms(looks[-1])
    with_rows = [look for look in looks if look.rows]
    for row in last.rows if len(with_rows) > 1 else ():
        points = [(look.at_s, rss_of(look, row.kind)) for look in with_rows]
        yield _Series(row.kind, points, points, own.get(row.kind))
    yield _sum("rss", [(look, look.total.rss_bytes) for look in looks], *_OF_FILES)
    direct = [
        (look.at_s, look.jvm.direct_bytes)
        for look in looks
        if look.jvm is not None and look.jvm.direct_bytes is not None
    ]
    if direct:
        yield _Series("direct", direct, direct, own.get("direct"))
    level = headroom.level if headroom is not None else None
    path = level.path if level is not None else next((group.path for group in last.levels), None)
    pinned = [(look, used) for look in looks if (used := _pinned(look, path)) is not None]
    if pinned:
        yield _sum("cgroup", pinned)


def _sum(kind: str, counted: Sequence[tuple[Facts, int]], *without: str) -> _Series:
    """A sum, judged without the heap and what is reclaimed."""
    rest = [
        (look.at_s, count - (heap_resident_bytes(look) or 0) - rss_of(look, "gc", *without))
        for look, count in counted
        if look.jvm is None or look.rows
    ]
    return _Series(kind, [(look.at_s, count) for look, count in counted], rest, None)


def _own_rooms(last: Facts) -> dict[str, int]:
    """What is left below a limit of a row's own."""
    jvm = last.jvm
    if jvm is None:
        return {}
    metaspace = jvm.metaspace_committed_bytes or jvm.metaspace_used_bytes or 0
    limits = (
        ("code-cache", jvm.code_reserved_bytes, rss_of(last, "code-cache")),
        ("class-space", jvm.class_space_max_bytes, rss_of(last, "class-space")),
        ("metaspace", jvm.metaspace_max_bytes, metaspace),
        ("direct", jvm.direct_max_bytes, jvm.direct_bytes or 0),
    )
    return {kind: max(0, most - used) for kind, most, used in limits if most is not None}


def _pinned(look: Facts, path: str | None) -> int | None:
    return next((group.pinned_bytes for group in look.levels if group.path == path), None)
