"""Generations in the counters of real JVMs."""

from __future__ import annotations

from pathlib import Path

import pytest

from opskit.jvm.perfdata.generations import GENERATION_COUNTERS, generations
from opskit.jvm.perfdata.hsperfdata import Counter, PerfData, parse_hsperfdata

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "hsperfdata"
FILES = sorted(file for file in FIXTURES.iterdir() if file.name.startswith("jdk"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_generations_of_each_collector(file):
    """Those with a young generation in hsperfdata, alike whether all counters were read or those that are needed."""
    found = generations(parse_hsperfdata(file.read_bytes(), file.name))
    assert found == generations(parse_hsperfdata(file.read_bytes(), file.name, GENERATION_COUNTERS))
    if file.name.partition("-")[2] not in ("serial", "parallel", "cms", "g1"):
        assert found is None
        return
    assert found is not None
    assert 0 < found.eden_bytes < found.old_max_bytes
    assert found.young + found.full > 0
    assert found.is_eden_current == (found.collector == "G1" or not file.name.startswith("jdk25"))
    assert found.eden_filled_bytes is None or 0 < found.eden_filled_bytes < found.old_max_bytes


def test_negative_counters_are_unknown():
    """Only a damaged or hostile file has them."""
    perf = parse_hsperfdata((FIXTURES / "jdk17-g1").read_bytes(), "jdk17-g1")
    eden = "sun.gc.generation.0.space.0.used"
    damaged = {**perf.counters, eden: Counter(-1, perf.counters[eden].unit)}
    assert generations(PerfData("damaged", True, damaged)) is None
