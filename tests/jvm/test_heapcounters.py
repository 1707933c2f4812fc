"""How full the heap is, by the counters of each collector."""

from __future__ import annotations

from pathlib import Path

import pytest

from opskit.jvm.heapcounters import heap_max_bytes, heap_used_bytes
from opskit.jvm.hsperfdata import parse_hsperfdata

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "hsperfdata"
MIB = 1 << 20


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.glob("jdk*")))
def test_every_collector(name):
    """All of these ran with -Xmx64m; each had something in use, and no more than that."""
    perf = parse_hsperfdata((FIXTURES / name).read_bytes(), name)
    assert abs(heap_max_bytes(perf) - 64 * MIB) < 100
    assert 0 < heap_used_bytes(perf) <= 64 * MIB


def test_counters_that_are_not_there():
    """None, never 0."""
    perf = parse_hsperfdata((FIXTURES / "jdk17-g1").read_bytes(), "x")
    perf.counters.clear()
    assert heap_used_bytes(perf) is None
    assert heap_max_bytes(perf) is None
