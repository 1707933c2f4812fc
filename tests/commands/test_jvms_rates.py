"""opskit jvms -i: allocation and promotion of real JVMs, and young collections that free nothing."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack

import jvms
import pytest
from nextsteps import try_next

MIB = 1 << 20
CODE = "jvm-young-collections-free-little"
STAGED = {
    "garbage": (17, "G1"), "live": (21, "Parallel"), "nepotism": (25, "Serial"), "nepotism of regions": (11, "G1"),
}  # fmt: skip
MIB_PER_S = 100


@pytest.fixture(scope="module")
def staged():
    """A JVM of each kind, for long enough that the old generation of those that promote was collected several times."""
    with ExitStack() as stack:
        started = {}
        for name, (version, collector) in STAGED.items():
            options = ("-Xmx192m", "-Xms192m", "-Xmn30m", f"-XX:+Use{collector}GC")
            words = ("Generations", name.split()[0], str(MIB_PER_S))
            started[name] = jvms.run([jvms.java(version), *options, "-cp", jvms.classes(), *words])
            stack.callback(started[name].stop)
        time.sleep(3)
        yield started


def test_rates_and_nepotism(inprocess, staged):
    """Garbage is allocated at its known rate and freed; what a dead old object keeps is found, and the closer look can be typed."""
    pids = {jvm.pid: name for name, jvm in staged.items()}
    answer = json.loads(inprocess("jvms", *pids, "-w", "-c", "2", "-i", "3s", "-f", "json", timeout=120).out)
    rows = {pids[row["pid"]]: row for row in answer["jvms"]}
    found = {pids[int(each["entity"]["id"])] for each in answer["findings"] if each["code"] == CODE}
    assert found == {"nepotism", "nepotism of regions"}, answer
    # A loaded machine keeps the JVM from its rate, which is an upper bound.
    assert 0.2 * MIB_PER_S * MIB < rows["garbage"]["allocation_bytes_per_s"] < 1.3 * MIB_PER_S * MIB
    assert rows["garbage"]["young_freed_percent"] > 90
    assert rows["live"]["young_freed_percent"] > 90
    assert rows["nepotism"]["promotion_bytes_per_s"] > 0.1 * MIB_PER_S * MIB
    assert try_next(answer["findings"], "jvm-young-collections-free-little").endswith("--live -c 2")


def test_rates_of_one_window(inprocess, staged):
    """Without -w as with it."""
    [row] = json.loads(inprocess("jvms", staged["nepotism of regions"].pid, "-i", "1s", "-f", "json").out)["jvms"]
    assert 0.2 * MIB_PER_S * MIB < row["allocation_bytes_per_s"] < 1.5 * MIB_PER_S * MIB
    assert row["promotion_bytes_per_s"] > 0.1 * MIB_PER_S * MIB


def test_one_look_has_no_rates(inprocess, staged):
    row = json.loads(inprocess("jvms", staged["garbage"].pid, "-f", "json").out)["jvms"][0]
    assert (row["allocation_bytes_per_s"], row["promotion_bytes_per_s"], row["young_freed_percent"]) == (
        None,
        None,
        None,
    )
