"""What a JVM's addresses are used for: against Native Memory Tracking, with every collector and layout of metaspace."""

from __future__ import annotations

import contextlib
import os
import random

import holders
import nmt
import pytest

from opskit.errors import NotSupported
from opskit.host import Host
from opskit.jvm.memory.direct_memory import read_buffers
from opskit.jvm.memory.objects import Objects
from opskit.jvm.memory.ranges import JvmRanges, jvm_ranges
from opskit.jvm.memory.vmstructs import VmStructs, read_vmstructs
from opskit.proc.files.smaps import parse_smaps
from opskit.proc.memory import RecordedMemory
from opskit.proc.pagemap import PageMap
from opskit.proc.touched_memory import TouchedMemory

UNLOCK = "-XX:+UnlockExperimentalVMOptions"
HELD = ("heap=24", "loaders=200", "classes=200", "threads=20")
SMALL = ("-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch")
LARGE = ("-Xms512m", "-Xmx512m", "-XX:+AlwaysPreTouch")
CASES = {
    "11 Serial": (11, ("-XX:+UseSerialGC", *SMALL)),
    "11 G1, touched": (11, ("-XX:+UseG1GC", *LARGE)),
    "17 Parallel": (17, ("-XX:+UseParallelGC", *SMALL)),
    "17 Shenandoah, touched": (17, ("-XX:+UseShenandoahGC", *LARGE)),
    "21 ZGC": (21, ("-XX:+UseZGC", *SMALL)),
    "21 generational ZGC, touched": (21, ("-XX:+UseZGC", "-XX:+ZGenerational", *LARGE)),
    "21 wide classes": (21, ("-XX:-UseCompressedClassPointers", "-Xmx64m")),
    "25 G1": (25, ("-XX:+UseG1GC", "-Xmx64m")),
    "25 Epsilon, wide pointers": (25, ("-XX:+UseEpsilonGC", "-XX:-UseCompressedOops", *SMALL)),
    "25 Parallel, touched, huge pages": (25, ("-XX:+UseParallelGC", "-XX:+UseTransparentHugePages", *LARGE)),
}
# Bounds: a part of the truth, and bytes that the JVM may use meanwhile.
BOUNDS = {"java-heap": 0.005, "metaspace": 0.01, "class-space": 0.01, "code-cache": 0.02, "gc": 0.05, "cds": 0.0}
SLACK_BYTES = 256 << 10


@contextlib.contextmanager
def opened(pid):
    """The tables, memory and mappings of a JVM."""
    fs = Host.at(None, None).fs
    regions = fs.load(parse_smaps, pid, "smaps")
    memory = TouchedMemory(fs, pid, regions)
    yield read_vmstructs(fs, pid, memory), memory, regions
    memory.close()


def resident_bytes(pid, ranges):
    pages, found = PageMap(Host.at(None, None).fs, pid), dict.fromkeys(nmt.KINDS.values(), 0)
    for start, end, kind in ranges:
        found[kind] = found.get(kind, 0) + pages.resident_bytes(start, end)
    pages.close()
    return found


def compare(pid, version):
    """Check each kind against the truth, which is taken twice: a running JVM uses more meanwhile."""
    nmt.resident_bytes(pid)  # its answer takes memory the first time
    before = nmt.resident_bytes(pid)
    with opened(pid) as (structs, memory, regions):
        looked = JvmRanges(structs, memory, regions)
    found, after = resident_bytes(pid, looked.ranges), nmt.resident_bytes(pid)
    if version < 17:  # NMT has one name for both
        for sizes in (before, found, after):
            sizes["metaspace"] += sizes.pop("class-space")
    assert looked.failed == []
    for kind, bound in BOUNDS.items():
        if kind in found:
            low, high = sorted((before[kind], after[kind]))
            slack = bound * high + (SLACK_BYTES if kind in ("gc", "code-cache") else 0)
            assert low - slack <= found[kind] <= high + slack, (kind, found, before, after)
    return looked, regions


@pytest.mark.parametrize("case", CASES)
def test_against_native_memory_tracking(case):
    """Heap, metaspace, class space, code cache and the collector's tables, within the bounds; no overlaps."""
    version, options = CASES[case]
    with holders.java(*HELD, version=version, options=(nmt.OPTION, UNLOCK, *options)) as held:
        looked, regions = compare(held.pid, version)
    ranges = looked.ranges
    assert all(before.end <= after.start for before, after in zip(ranges, ranges[1:]))
    assert looked.stacks >= 20
    assert 200 < len(looked.loaders) < 220
    stacks = [each for each in ranges if each.kind == "thread-stacks"]
    assert all(any(region.start < each.end <= region.end for region in regions) for each in stacks)


def test_an_archive_of_classes():
    """The JVMs of the tests have no CDS archive; those of a distribution do. It may be relocated."""
    binary = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
    with contextlib.ExitStack() as stack:
        try:
            held = stack.enter_context(
                holders.java(*HELD, binary=binary, options=(nmt.OPTION, "-Xmx64m", "-Xshare:on"))
            )
        except FileNotFoundError:
            pytest.skip(f"needs {binary}")
        looked, regions = compare(held.pid, 17)
    kinds = {each.kind for each in looked.ranges}
    assert "cds" in kinds
    archive = [region for region in regions if region.name.endswith(".jsa")]
    assert archive
    in_heap = [each for each in looked.ranges if each.kind == "java-heap"]
    for region in archive:  # archived objects are a part of the heap
        wanted = "java-heap" if any(each.start <= region.start < each.end for each in in_heap) else "cds"
        assert any(each.start <= region.start < each.end for each in looked.ranges if each.kind == wanted)


def test_nothing_is_touched():
    """No page more is in memory after a look."""
    fs = Host.at(None, None).fs
    with holders.java("heap=8", options=("-Xmx64m",)) as held:
        with opened(held.pid) as (structs, memory, regions):
            jvm_ranges(structs, memory, regions)
        after = fs.load(parse_smaps, held.pid, "smaps")
    anonymous = [sum(each.usage.anonymous_bytes for each in taken) for taken in (regions, after)]
    resident = [sum(each.usage.rss_bytes for each in taken) for taken in (regions, after)]
    assert anonymous[1] - anonymous[0] <= SLACK_BYTES
    assert resident[1] - resident[0] <= SLACK_BYTES


class Torn:
    """Memory of which a part of the reads is cut, zeroed, or has other bytes."""

    def __init__(self, memory, seed):
        self.memory, self.pagemap, self.draw = memory, memory.pagemap, random.Random(seed)  # noqa: S311

    def read(self, address, size):
        found = self.memory.read(address, size)
        if not found or self.draw.random() > 0.02:
            return found
        other = bytearray(found)
        other[self.draw.randrange(len(found))] = self.draw.randrange(256)
        return self.draw.choice((found[: len(found) // 2], bytes(len(found)), os.urandom(len(found)), bytes(other)))


@pytest.mark.parametrize(("version", "collector"), [(11, "Parallel"), (21, "G1"), (25, "Shenandoah")])
def test_memory_that_changes_while_it_is_read(version, collector):
    """Ranges stay sorted, within the address space and without overlaps, buffers stay numbers; only the project's errors are raised."""
    options = (UNLOCK, "-Xmx64m", f"-XX:+Use{collector}GC")
    with contextlib.ExitStack() as stack:
        held = stack.enter_context(holders.java("loaders=30", "direct=2", version=version, options=options))
        structs, memory, regions = stack.enter_context(opened(held.pid))
        for seed in range(60):
            memory.forget()
            torn = Torn(memory, seed)
            ranges = JvmRanges(structs, torn, regions).ranges
            assert all(before.end <= after.start for before, after in zip(ranges, ranges[1:]))
            assert all(0 < each.start < each.end < 1 << 64 for each in ranges)
            with contextlib.suppress(NotSupported):
                assert all(each is None or 0 <= each < 1 << 62 for each in read_buffers(Objects(structs, torn)))


def test_tables_that_describe_nothing():
    """Each part that is not described is left out and named; none raises."""
    looked = JvmRanges(VmStructs({}, {}, {}), RecordedMemory({}), [])
    assert looked.ranges == []
    assert len(looked.failed) >= 4
    assert all("does not describe" in each for each in looked.failed)
