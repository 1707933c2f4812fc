"""Growth under a watch: what is steady, what is a saw-tooth, a warm-up, a burst; when it is full."""

from __future__ import annotations

import math
import random

import memfacts
import pytest
from memfacts import MIB, mib

from opskit.analysis.mem.headroom import headroom
from opskit.analysis.mem.trend import is_steady, trend
from opskit.collect.mem.facts import Member, Row

LEVEL = memfacts.ORDERS._replace(limit_bytes=1024 * MIB)


def looks(grow, number=8, interval_s=10.0, *, direct=None, age_s=3600.0, changes=lambda _at: {}):
    """Looks at the JVM of memfacts. `grow(kind, at)`: MiB that a row has more than at the start; `direct(at)`: of direct buffers."""
    found = []
    for at in range(number):
        grown = {row.kind: grow(row.kind, at) for row in memfacts.ROWS}
        rows = tuple(
            row._replace(usage=memfacts.usage(row.usage.rss_bytes / MIB + grown[row.kind])) for row in memfacts.ROWS
        )
        more = sum(grown.values())
        jvm = memfacts.JVM._replace(direct_bytes=memfacts.JVM.direct_bytes + mib(direct(at) if direct else 0))
        level = LEVEL._replace(usage_bytes=LEVEL.usage_bytes + mib(more), pinned_bytes=LEVEL.pinned_bytes + mib(more))
        found.append(
            memfacts.facts(rows=rows, total=memfacts.total(rows), jvm=jvm, levels=(level, memfacts.SLICE), at_s=at * interval_s,
                           age_s=age_s + at * interval_s)._replace(**changes(at))
        )  # fmt: skip
    return found


def judged(found):
    return trend(found, headroom(found[-1]))


def full(growth):
    return {slope.kind: slope.full_in_s for slope in growth.slopes if slope.full_in_s is not None}


def test_a_leak_has_a_slope_and_an_end():
    """2 MiB in 10 s: what the limit leaves after the heap has grown to its maximum, divided by the slope."""
    found = looks(lambda kind, at: 2.0 * at if kind == "malloc-mmapped" else 0, direct=lambda at: 2.0 * at)
    growth = judged(found)
    slopes = {slope.kind: slope.bytes_per_s for slope in growth.slopes}
    assert slopes["malloc-mmapped"] == pytest.approx(0.2 * MIB)
    assert slopes["direct"] == slopes["cgroup"] == slopes["rss"] == pytest.approx(0.2 * MIB)
    assert slopes["metaspace"] == 0
    left = 1024 - 298 - 14 - 160.3  # less 14 that leaked, and what the heap still takes
    ends = full(growth)
    assert ends["cgroup"] == ends["malloc-mmapped"] == ends["rss"] == pytest.approx(left / 0.2, rel=0.01)
    assert ends["direct"] == pytest.approx((256 - 42 - 14) / 0.2, rel=0.01)  # its own limit comes first
    assert set(growth.steady) == {"malloc-mmapped", "direct", "cgroup", "rss"}


def test_the_heap_is_a_saw_tooth():
    """It fills and is collected; neither its rise nor that of the sums is growth."""
    found = looks(lambda kind, at: 15.0 * (at % 8) if kind == "java-heap" else 0)
    assert full(judged(found)) == {}
    found = looks(lambda kind, at: 15.0 * (at % 4) if kind == "java-heap" else 0)
    assert judged(found).steady == {}


def test_the_heap_of_zgc_is_in_rss_three_times():
    """And in the cgroup as it is committed: the sums are judged without any of it."""

    def heap(at):
        row = Row("java-heap", memfacts.usage(90 + 30.0 * at, 30 + 10.0 * at, anonymous=0), 256 * MIB, 1)
        rows = (row, *memfacts.ROWS[1:])
        jvm = memfacts.JVM._replace(collector="ZGC", heap_committed_bytes=mib(30 + 25.0 * at))
        level = LEVEL._replace(pinned_bytes=LEVEL.pinned_bytes + mib(25.0 * at))
        return {"rows": rows, "total": memfacts.total(rows), "levels": (level, memfacts.SLICE), "jvm": jvm}

    growth = judged(looks(lambda _kind, _at: 0, changes=heap))
    assert {slope.kind for slope in growth.slopes if slope.bytes_per_s} == {"java-heap", "rss", "cgroup"}
    assert growth.steady == {}


def test_the_heap_of_another_jvm_in_the_cgroup_fills():
    """Nobody but that JVM says how far; what another program takes is growth."""

    def beside(command):
        def changes(at):
            level = LEVEL._replace(pinned_bytes=LEVEL.pinned_bytes + mib(5.0 * at))
            members = (Member(4242, "java", mib(290), 0, 0, 0), Member(7, command, mib(50 + 5.0 * at), 0, 0, 0))
            return {"levels": (level, memfacts.SLICE), "members": members}

        return set(judged(looks(lambda _kind, _at: 0, changes=changes)).steady)

    assert beside("java") == set()
    assert beside("envoy") == {"cgroup"}


def test_the_heap_hides_no_leak():
    """The sums are judged without it."""
    chance = random.Random(1)  # noqa: S311
    found = looks(lambda kind, at: {"java-heap": chance.uniform(0, 100), "malloc-arenas": 3.0 * at}.get(kind, 0), 10)
    assert {"malloc-arenas", "cgroup", "rss"} == set(judged(found).steady)


@pytest.mark.parametrize(
    "curve",
    [
        lambda at: 30 * (1 - math.exp(-at / 2)),  # a warm-up slows down
        lambda at: 0 if at < 4 else 40,  # a cache that is loaded once
        lambda at: 0.02 * at,  # noise
        lambda at: 20 if at % 2 else 5.0 * at,
        lambda at: -3.0 * at,
        lambda _at: 0,
        lambda at: min(3 * at, 12),  # a pool that is full
    ],
)
def test_what_is_no_leak(curve):
    assert judged(looks(lambda kind, at: curve(at) if kind == "malloc-arenas" else 0)).steady == {}


@pytest.mark.parametrize(
    "curve",
    [
        lambda at: 2.0 * at,
        lambda at: 0.5 * at * at,  # faster and faster
        lambda at: 4.0 * at + (at % 3),
        lambda at: 4.0 * at - (3 if at == 5 else 0),  # a little was freed
        lambda at: 6.0 * (at // 2) + at,  # in steps
        lambda at: 6.0 * (at // 2),  # that not every look shows
    ],
)
def test_what_is_one(curve):
    assert "malloc-arenas" in judged(looks(lambda kind, at: curve(at) if kind == "malloc-arenas" else 0, 10)).steady


def test_a_leak_that_begins_under_a_long_watch():
    """The last looks show it."""
    found = looks(lambda kind, at: 2.0 * max(0, at - 200) if kind == "malloc-arenas" else 0, 240)
    assert "malloc-arenas" in judged(found).steady
    assert judged(found[:200]).steady == {}


def test_a_program_without_a_jvm_is_judged_soon():
    """After ten seconds."""
    found = [
        look._replace(jvm=None) for look in looks(lambda kind, at: 3.0 * at if kind == "unnamed" else 0, age_s=12.0)
    ]
    assert set(judged(found).steady) == {"unnamed", "rss", "cgroup"}
    starts = [look._replace(age_s=look.age_s - 11) for look in found]
    assert judged(starts).steady == {}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_few_looks_have_slopes_and_no_end(number):
    growth = judged(looks(lambda kind, at: 20.0 * at if kind == "malloc-arenas" else 0, number))
    assert (full(growth), growth.steady) == ({}, {})
    assert bool(growth.slopes) == (number > 1)


def test_a_jvm_that_has_just_started_loads_and_compiles():
    """In its first minute only much more than that is growth."""

    def warming(kind, at):
        return {"metaspace": 1.5 * at, "code-cache": 0.8 * at, "malloc-arenas": 2.0 * at}.get(kind, 0)

    assert judged(looks(warming, interval_s=1.0, age_s=2.0)).steady == {}
    assert {"metaspace", "malloc-arenas"} <= set(judged(looks(warming, interval_s=1.0)).steady)
    leak = looks(lambda kind, at: 10.0 * at if kind == "malloc-arenas" else 0, interval_s=1.0, age_s=2.0)
    assert "malloc-arenas" in judged(leak).steady
    direct = looks(lambda kind, at: 2.0 * at if kind == "malloc-mmapped" else 0, direct=lambda at: 2.0 * at, age_s=2.0)
    assert set(judged(direct).steady) == {"direct"}  # which no start explains


# MiB each 0.7 s, read of Kafka, Tomcat and Jetty from their first second on.
STARTS = {
    "Kafka": (
        7.0,
        13.1,
        16.7,
        27.3,
        30.9,
        30.9,
        44.7,
        45.1,
        45.2,
        45.5,
        45.5,
        41.9,
        42.0,
        49.7,
        51.9,
        51.9,
        51.9,
        52.0,
    ),
    "Kafka again": (
        7.1,
        12.8,
        15.8,
        34.3,
        37.5,
        38.0,
        38.2,
        38.3,
        38.3,
        46.2,
        48.2,
        48.2,
        41.4,
        41.4,
        41.4,
        47.1,
        50.6,
        54.8,
    ),
    "classes": (6.4, 13.7, 23.6, 33.7, 37.5, 38.6, 39.3, 39.8, 39.8, 39.8, 39.9, 39.9),
    "Tomcat": (26.2, 31.8, 30.3, 30.4, 30.5, 27.6, 33.6, 33.8, 36.3, 36.3, 36.3, 33.4, 34.1),
    "Jetty": (10.3, 12.1, 12.7, 12.6, 14.1, 15.7, 16.9, 30.1, 30.8, 30.8, 30.8, 27.5),
    "code": (1.1, 3.2, 4.6, 5.5, 6.3, 6.3, 6.7, 7.8, 8.8, 9.8, 10.2, 10.9, 11.1, 11.4, 11.7, 11.8, 11.9, 12.0),
}


@pytest.mark.parametrize("name", STARTS)
def test_the_start_of_a_real_server(name):
    """Whatever part of it is looked at."""
    curve, kind = STARTS[name], {"classes": "metaspace", "code": "code-cache"}.get(name, "malloc-arenas")
    for first in range(len(curve) - 5):
        for last in range(first + 5, len(curve)):
            found = looks(
                lambda row, at, first=first: curve[first + at] - curve[first] if row == kind else 0,
                last - first,
                0.7,
                age_s=1 + first,
            )
            assert judged(found).steady == {}, (first, last)


def test_mapped_files_fill_nothing():
    """The kernel reclaims their pages."""
    found = looks(lambda kind, at: 5.0 * at if kind == "mapped-files" else 0, changes=lambda _at: {"levels": (LEVEL,)})
    assert judged(found).steady == {}


def test_a_heap_that_does_not_fit_leaves_all_to_the_rest():
    """Until the kill by that growth alone."""
    level = LEVEL._replace(limit_bytes=400 * MIB)
    found = looks(lambda kind, at: 2.0 * at if kind == "malloc-arenas" else 0, changes=lambda _at: {"levels": (level,)})
    assert full(judged(found))["malloc-arenas"] == pytest.approx(102 / 0.2, rel=0.01)


def test_looks_without_rows_have_sums():
    """Without rights only RSS and the cgroup are known; of a JVM they contain the heap, and are not judged."""
    found = [look._replace(rows=(), jvm=None) for look in looks(lambda kind, at: 3.0 * at if kind == "unnamed" else 0)]
    assert set(judged(found).steady) == {"rss", "cgroup"}
    with_heap = [look._replace(rows=()) for look in looks(lambda kind, at: 3.0 * at if kind == "java-heap" else 0)]
    growth = judged(with_heap)
    assert growth.steady == {}
    assert {slope.kind for slope in growth.slopes} == {"rss", "cgroup", "direct"}


def test_a_heap_that_was_not_found_is_not_judged():
    """It is in the other anonymous memory where its memory may not be read, and in each sum."""

    def hidden(at):
        rows = (*memfacts.ROWS[1:], memfacts.Row("unnamed", memfacts.usage(100 + 5 * at), 256 * MIB, 1))
        return {"rows": rows, "total": memfacts.total(rows)}

    growth = judged(looks(lambda kind, at: 5.0 * at if kind == "java-heap" else 0, changes=hidden))
    assert {slope.kind: slope.bytes_per_s for slope in growth.slopes}["unnamed"] == pytest.approx(0.5 * MIB)
    assert growth.steady == {}


def test_others_in_a_cgroup_without_a_limit_end_nothing():
    """Their growth is theirs; below a limit it ends this process too."""

    def cgroup(at, limit):
        return {"levels": (LEVEL._replace(limit_bytes=limit, pinned_bytes=LEVEL.pinned_bytes + mib(5.0 * at)),)}

    assert judged(looks(lambda _kind, _at: 0, changes=lambda at: cgroup(at, None))).steady == {}
    assert set(judged(looks(lambda _kind, _at: 0, changes=lambda at: cgroup(at, 1024 * MIB))).steady) == {"cgroup"}


def test_dentries_of_v1_are_no_growth():
    """A search of files fills the kernel's memory, and v1 does not tell that it is reclaimable."""

    def cgroup(at, unknown):
        level = LEVEL._replace(
            slab_unknown=unknown,
            kernel_bytes=LEVEL.kernel_bytes + mib(5.0 * at),
            pinned_bytes=LEVEL.pinned_bytes + mib(5.0 * at),
        )
        return {"levels": (level,)}

    assert judged(looks(lambda _kind, _at: 0, changes=lambda at: cgroup(at, True))).steady == {}
    assert set(judged(looks(lambda _kind, _at: 0, changes=lambda at: cgroup(at, False))).steady) == {"cgroup"}


def test_any_series_is_judged():
    """No series raises; times may repeat."""
    chance = random.Random(2)  # noqa: S311
    for _ in range(500):
        points = [
            (chance.choice([0.0, 1.0, 2.0, 5.0]), chance.randrange(1 << 40)) for _ in range(chance.randrange(1, 9))
        ]
        assert is_steady(sorted(points)) in (True, False)
