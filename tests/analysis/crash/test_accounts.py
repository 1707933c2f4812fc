"""Strict accounting of overcommit is suspected only where the figures of meminfo allow it."""

from __future__ import annotations

import pytest

from opskit.analysis.crash.judge import judge
from opskit.collect.crash.facts import Facts, Read
from opskit.jvm.logs.crashes.record import CrashReport, Event, Machine

MIB = 1 << 20


def blamed(committed, limit, maps=500):
    """Who is blamed for 16 MiB that the kernel refused, with 20 GiB free."""
    machine = Machine(
        memory_bytes=32 << 30, free_bytes=20 << 30, limits={"AS": "infinity"}, max_map_count=65530, maps=maps,
        commit_limit_bytes=limit, committed_bytes=committed,
    )  # fmt: skip
    said = "Native memory allocation (mmap) failed to map 16777216 bytes. Error detail: committing reserved memory."
    event = Event("memory", "Out of Memory Error", message=(said,), bytes_refused=16 * MIB)
    return judge(Facts([Read("hs_err.log", CrashReport("hotspot", event, machine=machine))])).verdicts[0]


@pytest.mark.parametrize(
    ("committed", "limit", "maps", "pattern"),
    [
        (None, None, 500, "crash-overcommit"),
        (990 * MIB, 1000 * MIB, 500, "crash-overcommit"),
        (500 * MIB, 1000 * MIB, 500, "crash-native-memory"),
        (1500 * MIB, 1000 * MIB, 500, "crash-native-memory"),
        (500 * MIB, 1000 * MIB, None, "crash-native-memory"),
        (990 * MIB, 1000 * MIB, None, "crash-overcommit"),
    ],
    ids=["unknown", "full", "room", "not-enforced", "no-mappings", "full-no-mappings"],
)
def test_the_figures_of_meminfo_decide(committed, limit, maps, pattern):
    """Below the limit there was room; above it, it is not enforced."""
    verdict = blamed(committed, limit, maps)
    assert verdict.pattern == pattern
    assert ("strict overcommit accounting did not refuse it" in verdict.cause) == (pattern == "crash-native-memory")
