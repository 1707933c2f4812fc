"""Rates of allocation and promotion from looks at the generations, and the verdict on young collections that free nothing."""

from __future__ import annotations

import pytest

from opskit.analysis.young_collections import frees_little, rates
from opskit.collect.jvms import Reading, Seen
from opskit.jvm.discover import HOTSPOT, Jvm
from opskit.jvm.perfdata.counters import GcWork
from opskit.jvm.perfdata.generations import Generations

MIB = 1 << 20


def look(
    young=0, eden_used=0, old_used=0, full=0, cycles=0, survivors=0, eden=40, filled=40, collector="Serial", **more
):
    """Sizes in MiB."""
    sizes = (each * MIB for each in (eden, eden_used, survivors, old_used, 100))
    return Generations(collector, young, full, cycles, *sizes, filled and filled * MIB, **more)


def of(*looks):
    return rates([(float(at), each) for at, each in enumerate(looks)])


def in_mib(found):
    return [each and round(each / MIB, 2) for each in (found.allocation_per_s, found.promotion_per_s)]


@pytest.mark.parametrize(
    ("looks", "expected", "freed"),
    [
        # No collection: what eden grew by.
        ([look(2, 10), look(2, 30)], [20, 0], None),
        # One: what it found in eden, and what is in it now, without what was in it before.
        ([look(2, 10), look(3, 5)], [35, 0], 1.0),
        # Three: the last one is counted exactly, the others by the size of eden.
        ([look(2, collector="G1"), look(5, filled=30, collector="G1")], [110, 0], 1.0),
        ([look(2, eden=20), look(5, eden=40, filled=10)], [80, 0], 1.0),
        # Large objects are not in TLABs: a young collection found eden full all the same; one of G1 not less than there was.
        ([look(2), look(3, filled=1)], [40, 0], 1.0),
        ([look(2, 20, collector="G1"), look(3, filled=1, collector="G1")], [20, 0], 1.0),
        # What the old generation gets without a collection is allocated there (humongous objects), not promoted.
        ([look(2), look(2, old_used=10), look(3, old_used=30)], [30, 5], 0.75),
        ([look(2), look(2, old_used=10), look(3, old_used=20)], [30, 0], 1.0),
        # What is promoted stays.
        ([look(2), look(3, old_used=30)], [40, 30], 0.25),
        ([look(2, survivors=0), look(3, old_used=20, survivors=10)], [40, 20], 0.25),
        # A collection of the old generation hides promotion: the step without one tells it for all.
        ([look(2), look(3, old_used=30), look(4, old_used=5, full=1)], [40, 30], 0.25),
        ([look(2), look(3, old_used=5, full=1)], [40, None], None),
        ([look(2), look(3, old_used=5, full=1, promoted_bytes=8 * MIB)], [40, 8], 0.8),
        # A full collection alone empties eden, a concurrent cycle does not.
        ([look(2, 10), look(2, full=1, filled=25)], [15, 0 or None], None),
        ([look(2, 10), look(2, 15, cycles=2)], [5, None], None),
        # Without TLABs a collection found eden full.
        ([look(2, filled=None), look(3, filled=None)], [40, 0], 1.0),
    ],
)
def test_rates_are_of_what_collections_found(looks, expected, freed):
    found = of(*looks)
    assert in_mib(found) == expected
    assert found.freed == (None if freed is None else pytest.approx(freed))


@pytest.mark.parametrize(
    "looks",
    [
        [look(3), look(2)],
        [look(3, full=1), look(3)],
        [look(3), look(4, collector="Parallel")],
        [look(3), None],
        [None, look(3)],
        [look(3), None, look(4)],
    ],
)
def test_counters_that_ran_backwards_or_lack_give_nothing(looks):
    assert of(*looks) is None


def test_eden_that_is_written_by_collections_alone_tells_nothing_between_them():
    """Serial and Parallel from JDK 25 on: 0 bytes in eden are no idle JVM."""
    still, collected = look(2, is_eden_current=False), look(4, is_eden_current=False)
    assert of(still, still).allocation_per_s is None
    assert in_mib(of(still, still, collected)) == [40, 0]


def seen(now, age_s=1000.0):
    reading = Reading(9.0, age_s, 1.0, GcWork(1, 1, 1.0), 1.0, None, None, None, 20, generations=now)
    return Seen(Jvm(7, 7, HOTSPOT, 1000, 5, "app.Main"), reading, "app", None, None, None, None)


def verdict(*looks, age_s=1000.0):
    return [(found.code, found.severity) for found in frees_little(seen(looks[-1], age_s), of(*looks))]


CODE = "jvm-young-collections-free-little"


def test_garbage_that_is_promoted_is_a_warning():
    """36 MiB/s into 100 MiB need 360 collections in 1,000 s, and there were as many: it was garbage."""
    assert verdict(look(0, full=400), look(3, full=400, old_used=110)) == [(CODE, "warning")]


@pytest.mark.parametrize("full", [0, 2, 50])
def test_what_may_be_live_is_a_note(full):
    """A cache that fills now, in a JVM whose old generation was collected seldom."""
    assert verdict(look(0, full=full), look(3, full=full, old_used=110)) == [(CODE, "note")]


def test_a_jvm_that_starts_is_a_note():
    assert verdict(look(0, full=9), look(3, full=9, old_used=110), age_s=5.0) == [(CODE, "note")]


@pytest.mark.parametrize(
    ("counts", "severity"), [({"full": 4}, "note"), ({"cycles": 9}, "note"), ({"cycles": 10}, "warning")]
)
def test_the_collections_of_a_start_prove_nothing(counts, severity):
    """A cache loads 12 s after the start, which had some collections for the Metaspace; a concurrent one has two pauses."""
    looks = [look(0, collector="G1", **counts), look(3, collector="G1", **counts, old_used=110)]
    assert verdict(*looks, age_s=12.0) == [(CODE, severity)]


@pytest.mark.parametrize(
    "looks",
    [
        [look(0), look(2, old_used=80)],  # two collections are no rate
        [look(0), look(4, old_used=100)],  # they free a third
        [look(0), look(0, 20)],
        [look(0), look(4, old_used=5, full=3)],
        [None, None],
    ],
)
def test_other_jvms_have_no_finding(looks):
    assert [*frees_little(seen(looks[-1]), of(*looks))] == []
