"""How fast each row grows in -w, and when its limit is reached if the growth is steady. Pure.

The Java heap is not judged, neither its own nor that of other JVMs in the cgroup: it rises and falls with each collection, up to a limit of its own. What a JVM does in its first minutes
(loads classes, compiles them) slows down; a leak does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.mem.headroom import MIB, heap_resident_bytes, swap_for, untouched_heap_bytes
from opskit.analysis.mem.result import Slope
from opskit.analysis.slope import slope
from opskit.proc.cgroup.memory import tightest
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.mem.result import Headroom
    from opskit.collect.mem.facts import Facts

    Points = Sequence[tuple[float, int]]

A_TREND = 5  # looks; with fewer a burst looks like a leak
_LATELY = 30  # of a long watch these are judged alone too
_OF_A_THIRD = 0.1  # of the growth is in each third of the time
_LATER = 0.6  # of the growth of the first half at least is in the second
_LEAST, _OF_ITSELF = MIB, 0.01  # a rise that is less is noise
_SUMS = frozenset({"rss", "cgroup"})
# A JVM that has just started loads classes, compiles them and starts threads: until it is so old, only more than that is growth.
_WARM_S, _WARM_WITHOUT_JVM_S = 120.0, 10.0
_MORE_THAN_WARM = {
    "malloc-arenas": 64 * MIB, "malloc-mmapped": 32 * MIB, "metaspace": 64 * MIB, "class-space": 16 * MIB, "thread-stacks": 16 * MIB,
    "unnamed": 32 * MIB, "named": 32 * MIB,
}  # fmt: skip
_EVEN = 2.5  # no step is so many times the mean one: a start comes in bursts
_OF_FILES = ("mapped-files", "libraries", "cds")  # which the kernel reclaims
# The heap and its tables follow the collections; code that is compiled is less and less.
_NOT_JUDGED = ("java-heap", "gc", "code-cache", *_OF_FILES)
_WITH_A_HEAP = ("unnamed", "named", "runtime-heap", "shared-memory", *_SUMS)  # where a heap is that was not found


class _Series(NamedTuple):
    """A row's bytes, the part of them that is judged, and what is left below a limit of its own."""

    kind: str
    points: Points
    judged: Points
    own_room: int | None


class Trend(NamedTuple):
    """The slopes of all rows; of those that grow steadily how many bytes a second, and by how much they rose while they were looked at."""

    slopes: tuple[Slope, ...]
    steady: Mapping[str, float]
    rises: Mapping[str, int]


class _Look(NamedTuple):
    """One look: resident bytes by kind of row, empty where only sums are known."""

    facts: Facts
    rows: Mapping[str, int]

    def without(self, count: int, *kinds: str) -> int | None:
        """A sum without these rows; None where a JVM's are unknown."""
        if not self.rows:
            return count if self.facts.jvm is None else None
        return count - sum(self.rows.get(kind, 0) for kind in kinds)

    def of_heaps(self, path: str) -> int:
        """What of a cgroup is the heap of this JVM, and the memory of other ones: what of it is heap only they can say."""
        own = (heap_resident_bytes(self.facts) or 0) + untouched_heap_bytes(self.facts)
        group = tightest(self.facts.levels, swap_for(self.facts))
        if group is None or group.path != path:  # whose members were read
            return own
        others = (each for each in self.facts.members if each.pid != self.facts.process.pid and each.command == "java")
        return own + sum((each.anon_bytes or 0) + (each.shmem_bytes or 0) for each in others)


def trend(looks: Sequence[Facts], headroom: Headroom | None) -> Trend:
    """The growth over the looks, the oldest first; nothing with fewer than two."""
    if len(looks) < 2:
        return Trend((), {}, {})
    room, is_young = _room(headroom), _is_young(looks[0])
    is_limited = headroom is not None and headroom.level is not None  # else others' growth does not end this process
    not_judged = (*_NOT_JUDGED, *_WITH_A_HEAP) if looks[-1].is_heap_hidden else _NOT_JUDGED
    slopes, steady, rises = [], {}, {}
    read = [_Look(look, {row.kind: row.usage.rss_bytes for row in look.rows}) for look in looks]
    for each in _series(read, headroom):
        rate = slope(each.points)
        if rate is None:
            continue
        is_judged = each.kind not in not_judged and (each.kind != "cgroup" or is_limited)
        lasting = _growing(each, is_young=is_young) if is_judged else None
        per_s = slope(lasting) if lasting else None
        if lasting and per_s:
            steady[each.kind], rises[each.kind] = per_s, lasting[-1][1] - lasting[0][1]
        ends = [end for end in (room, each.own_room) if end is not None]
        slopes.append(Slope(each.kind, rate, min(ends) / per_s if per_s and ends else None))
    return Trend(tuple(slopes), steady, rises)


def _is_young(first: Facts) -> bool:
    warm_s = _WARM_S if first.jvm is not None else _WARM_WITHOUT_JVM_S
    return first.age_s is not None and first.age_s < warm_s


def _growing(each: _Series, *, is_young: bool) -> Points | None:
    """The points that show a steady growth: all, or in a long watch the last ones; None: it does not grow."""
    for points in (each.judged, each.judged[-_LATELY:]):
        if is_steady(points) and (not is_young or _is_more_than_a_start(each.kind, points)):
            return points
    return None


def is_steady(points: Points) -> bool:
    """Whether a series grows and will go on: enough points, hardly a step back, in each third of the time, no less in the second half."""
    counts = [count for _, count in points]
    rise = counts[-1] - counts[0] if len(counts) >= A_TREND else 0
    if rise < max(_LEAST, _OF_ITSELF * counts[0] if counts else 0):
        return False
    steps = [later - earlier for earlier, later in zip(counts, counts[1:])]
    falls = -sum(step for step in steps if step < 0)
    begin_s, length_s = points[0][0], points[-1][0] - points[0][0]
    at = [_at(points, begin_s + length_s * part) for part in (0, 1 / 3, 1 / 2, 2 / 3, 1)]
    # No step is half of the rise: that is a cache which was loaded once.
    return (
        falls <= rise / 10
        and max(steps) <= rise / 2
        and min(at[1] - at[0], at[3] - at[1], at[4] - at[3]) >= _OF_A_THIRD * rise
        and at[4] - at[2] >= _LATER * (at[2] - at[0])
    )


def _is_more_than_a_start(kind: str, points: Points) -> bool:
    """Whether a process that has just started grows as only a leak does; its sums are not judged, because they have all of that."""
    counts = [count for _, count in points]
    rise, steps = counts[-1] - counts[0], [later - earlier for earlier, later in zip(counts, counts[1:])]
    is_even = max(steps) <= _EVEN * rise / len(steps)
    return kind not in _SUMS and is_even and rise >= _MORE_THAN_WARM.get(kind, 0)


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


def _series(looks: Sequence[_Look], headroom: Headroom | None) -> Iterator[_Series]:
    """Each row, then the sums."""
    last, own = looks[-1], _own_rooms(looks[-1])
    with_rows = [look for look in looks if look.rows]
    for kind in last.rows if len(with_rows) > 1 else ():
        points = [(look.facts.at_s, look.rows.get(kind, 0)) for look in with_rows]
        yield _Series(kind, points, points, own.get(kind))
    # RSS has each page of ZGC's heap as often as the row of the heap has it.
    yield _sum("rss", [(look, look.facts.total.rss_bytes) for look in looks], "java-heap", "gc", *_OF_FILES)
    jvms = ((look.facts.at_s, look.facts.jvm) for look in looks)
    direct = [(at_s, jvm.direct_bytes) for at_s, jvm in jvms if jvm is not None and jvm.direct_bytes is not None]
    if direct:
        yield _Series("direct", direct, direct, own.get("direct"))
    level = headroom.level if headroom is not None else None
    path = level.path if level is not None else next((group.path for group in last.facts.levels), None)
    groups = [(look, next((group for group in look.facts.levels if group.path == path), None)) for look in looks]
    pinned = [(look, group, group.pinned_bytes) for look, group in groups if group and group.pinned_bytes is not None]
    if pinned:
        # v1 does not tell how much of the kernel's memory is reclaimable slab, which any search of files makes grow.
        sure = [
            (look, used - (group.kernel_bytes or 0 if group.slab_unknown else 0) - look.of_heaps(group.path))
            for look, group, used in pinned
        ]
        yield _sum("cgroup", sure, "gc")._replace(points=[(look.facts.at_s, used) for look, _, used in pinned])


def _sum(kind: str, counted: Sequence[tuple[_Look, int]], *without: str) -> _Series:
    """A sum, judged without these rows: the heap and what is reclaimed."""
    rest = [(look.facts.at_s, look.without(count, *without)) for look, count in counted]
    judged = [(at_s, count) for at_s, count in rest if count is not None]
    return _Series(kind, [(look.facts.at_s, count) for look, count in counted], judged, None)


def _own_rooms(last: _Look) -> dict[str, int]:
    """What is left below a limit of a row's own."""
    jvm = last.facts.jvm
    if jvm is None:
        return {}
    metaspace = jvm.metaspace_committed_bytes or jvm.metaspace_used_bytes or 0
    limits = (
        ("class-space", jvm.class_space_max_bytes, last.rows.get("class-space", 0)),
        ("metaspace", jvm.metaspace_max_bytes, metaspace),
        ("direct", jvm.direct_max_bytes, jvm.direct_bytes or 0),
    )
    return {kind: max(0, most - used) for kind, most, used in limits if most is not None}
