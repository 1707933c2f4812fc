"""Headroom against real kills in a memory cgroup, fixes that suffice, growth under -w, and healthy busy JVMs."""

from __future__ import annotations

import json
import os
import subprocess
import threading

import cgroups
import holders
import jvms
import pytest
from nextsteps import try_next

pytestmark = pytest.mark.xdist_group("JVMs by PID")
MIB = holders.MIB
LIMIT = 250
MODES = ("heap=20", "direct=30", "threads=50")


class Limited:
    """A memory cgroup with a limit in MiB."""

    def __init__(self, place):
        self.place = place
        self._limit = next(place / name for name in ("memory.max", "memory.limit_in_bytes") if (place / name).exists())
        self._kills = next(place / name for name in ("memory.events", "memory.oom_control") if (place / name).exists())

    def limit(self, mib):
        self._limit.write_text(str(mib * MIB))

    def kills(self):
        return int(dict(line.split() for line in self._kills.read_text().splitlines())["oom_kill"])


@pytest.fixture
def limited(root_only):
    with cgroups.new_cgroup("memory", f"opskit-test-{os.getpid()}", "memory.max memory.limit_in_bytes") as place:
        made = Limited(place)
        made.limit(LIMIT)
        yield made


@pytest.fixture
def look(inprocess):
    """Run `opskit mem` and return its JSON object."""

    def run(pid, *options):
        done = inprocess("mem", pid, *options, "-f", "json", timeout=120)
        assert done.code in (0, 1), done.err
        found = json.loads(done.out)
        assert done.code == any(one["severity"] != "note" for one in found["findings"])
        return found

    return run


def codes(found):
    return [one["code"] for one in found["findings"] if one["severity"] != "note"]


def held(limited, *options, modes=MODES, version=17):
    return holders.java(*modes, version=version, options=options, cgroup=limited.place)


@pytest.mark.parametrize("version", [17, 25])
def test_what_is_left_until_the_kernel_kills(look, limited, disk, version):
    """As many MiB of direct buffers fit as headroom says, within 2 % of the limit; page cache in the cgroup changes nothing."""
    with open(disk / "large", "wb") as file:
        file.truncate(150 * MIB)
    read = 'echo $$ > "$0/cgroup.procs" && cat "$1" > /dev/null'
    with held(limited, "-Xmx400m", "-XX:MaxDirectMemorySize=1g", version=version) as workload:
        found = look(workload.pid)
        left = found["headroom"]["left_bytes"] / MIB
        subprocess.run(["sh", "-c", read, limited.place, disk / "large"], check=True)
        full = look(workload.pid)
        assert next(level["cache_bytes"] for level in full["levels"]) > 100 * MIB
        assert full["headroom"]["left_bytes"] / MIB == pytest.approx(left, abs=2)
        assert codes(found) == codes(full) == ["memory-heap-outgrows-limit"]
        try_next(full["findings"], "memory-heap-outgrows-limit")
        more = 0
        while holders.grow(workload, "d"):
            more += 1
    assert limited.kills() == 1
    assert more == pytest.approx(left, abs=0.02 * LIMIT)


@pytest.mark.parametrize(("version", "collector"), [(17, "G1"), (21, "Parallel")])
def test_the_fixes_suffice(look, limited, version, collector):
    """With the smaller -Xmx, and with the larger limit, the heap is filled to its end and nothing is killed."""
    gc = f"-XX:+Use{collector}GC"
    with held(limited, "-Xmx400m", gc, version=version) as workload:
        headroom = look(workload.pid)["headroom"]
    assert headroom["can_be_killed"]
    smaller, larger = headroom["fix_heap_bytes"] // MIB, headroom["fix_limit_bytes"] // MIB
    assert (150 < smaller < 250, 420 < larger < 520) == (True, True)
    for heap, limit in ((smaller, LIMIT), (400, larger)):
        limited.limit(limit)
        with held(limited, f"-Xmx{heap}m", gc, version=version) as workload:
            more = 0
            while holders.grow(workload, "h"):
                more += 1
        assert more > heap * 0.6
        assert limited.kills() == 0


@pytest.mark.parametrize("version", [17, 25])
def test_a_heap_of_zgc(look, limited, version):
    """The cgroup is charged with what is committed, touched or not: only the rest can still grow, and no file has the untouched part."""
    with held(limited, "-Xms100m", "-Xmx200m", "-XX:+UseZGC", modes=("heap=20",), version=version) as workload:
        found = look(workload.pid)
    assert found["headroom"]["heap_growth_bytes"] == pytest.approx(100 * MIB, abs=2 * MIB)
    assert "memory-in-tmpfs" not in [one["code"] for one in found["suspects"]]
    assert codes(found) == []


def test_near_the_limit_and_after_a_kill(look, limited):
    """A program without a JVM: nothing to say at 60 %, a warning at 95 %; what was killed is counted."""
    with holders.native("anon=150", cgroup=limited.place) as small:
        assert codes(look(small.pid)) == []
    with holders.native("anon=238", cgroup=limited.place) as large:
        found = look(large.pid)
        assert codes(found) == ["memory-near-limit"]
        assert found["suspects"][0]["code"] == "memory-in-anonymous-mappings"
        try_next(found["findings"], "memory-near-limit")
        while holders.grow(large, "a"):
            pass
    assert limited.kills() == 1
    with holders.native("anon=10", cgroup=limited.place) as small:
        found = look(small.pid)
        assert [(one["code"], one["severity"]) for one in found["findings"]] == [("oom-counted", "note")]
        try_next(found["findings"], "oom-counted")


def test_others_share_the_limit(look, limited):
    """The sidecar is named with what it holds."""
    with (
        holders.native("anon=60", cgroup=limited.place) as other,
        holders.native("anon=2", cgroup=limited.place) as small,
    ):
        found = look(small.pid)
        assert found["suspects"][0]["code"] == "memory-in-other-processes"
        assert found["suspects"][0]["bytes"] == pytest.approx(60 * MIB, rel=0.05)
        assert f"({other.pid})" in found["suspects"][0]["summary"]
        assert codes(found) == []
        try_next(found["suspects"], "memory-in-other-processes")


def test_growth_under_a_watch(look, limited):
    """Direct buffers that are kept: the row, its end, and the closer look. The heap of another busy JVM is no growth."""
    with held(limited, "-Xmx60m", "-XX:MaxDirectMemorySize=1g") as workload:
        done = threading.Event()

        def leak():
            while not done.wait(0.1):
                holders.grow(workload, "d")

        thread = threading.Thread(target=leak)
        thread.start()
        try:
            found = look(workload.pid, "-w", "-i", "0.4", "-c", "8")
        finally:
            done.set()
            thread.join()
        slopes = {slope["kind"]: slope for slope in found["slopes"]}
        assert "memory-keeps-growing" in codes(found)
        assert found["suspects"][0]["code"] == "memory-in-direct-buffers"
        assert slopes["direct"]["bytes_per_s"] == pytest.approx(slopes["malloc-mmapped"]["bytes_per_s"], rel=0.2)
        left = found["headroom"]["left_bytes"] - found["headroom"]["heap_growth_bytes"]
        assert slopes["direct"]["full_in_s"] == pytest.approx(left / slopes["direct"]["bytes_per_s"], rel=0.05)
        try_next(found["findings"], "memory-keeps-growing")
        try_next(found["suspects"], "memory-in-direct-buffers")


@pytest.mark.parametrize("version", [11, 25])
def test_a_busy_jvm_that_has_just_started(look, version):
    """It fills its heap, compiles, makes lambdas and threads: no finding."""
    workload = jvms.start("allocate=80000000", "burn=2", "cache=30000", "sleep=40", "lambda=500", version=version)
    try:
        assert codes(look(workload.pid, "-w", "-i", "0.4", "-c", "7")) == []
    finally:
        workload.stop()
