"""`opskit jmap-diff` on real leaks inside and outside of the heap, and on garbage; healthy busy servers are in tests/test_healthy_servers.py."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time

import jvms
import pytest
from nextsteps import try_next

pytestmark = pytest.mark.xdist_group("JVMs by PID")
MIB = 1 << 20
G1, SERIAL, PARALLEL = "-XX:+UseG1GC", "-XX:+UseSerialGC", "-XX:+UseParallelGC"


@contextlib.contextmanager
def leaks(*modes, version=17, options=("-Xmx128m",)):
    """A JVM that runs tests/java/Leaks.java."""
    command = [jvms.java(version), *options, "-cp", jvms.classes(), "Leaks", *modes]
    jvm = jvms.run(command)
    try:
        yield jvm
    finally:
        jvm.stop()


def look(inprocess, jvm, *options):
    """The JSON object, and the exit code."""
    done = inprocess("jmap-diff", jvm.pid, *options, "--yes", "-f", "json")  # a loaded machine stretches each estimate
    assert done.out, (done.err, jvm.process.poll(), jvm.output()[-2000:])
    return json.loads(done.out), done.code


def codes(found):
    return [one["code"] for one in found["findings"]]


def test_no_collection_no_suspect(inprocess, workload):
    """Garbage in a large young generation, three collectors' worth of growth: the verdict says so, and what to type."""
    jvm = workload("allocate=20000000", "leak=500000", options=("-Xms600m", "-Xmx600m", "-Xmn500m", G1))
    done = inprocess("jmap-diff", jvm.pid, "-c", "3", "-i", "0.5", "-f", "table")
    assert done.code == 0
    assert "no collection between them: growth may be garbage; --live or a longer -i" in " ".join(done.out.split())
    assert f"opskit jmap-diff {jvm.pid} --live -c 5" in " ".join(done.out.split())
    for absent in ("suspect", "keeps growing", "is full", "warning", "note"):
        assert absent not in done.out
    text = inprocess("jmap-diff", jvm.pid, "-c", "3", "-i", "0.3", "-f", "text").out
    assert "# no collection between them" in text
    assert "suspect" not in text
    found, code = look(inprocess, jvm, "--live", "-c", "4", "-i", "0.5")
    assert (code, found["suspects"], found["proof"]) == (1, ["Workload$Leaked"], "reachable")


@pytest.mark.parametrize("collector", [PARALLEL, G1])
def test_full_collections_prove_a_leak_without_live(inprocess, workload, collector):
    """The leak is named, and garbage in the same JVM is not."""
    jvm = workload("leak=4000000", "allocate=20000000", "gc=150", options=("-Xmx200m", collector))
    found, code = look(inprocess, jvm, "-c", "4", "-i", "0.5")
    assert (code, found["suspects"], found["proof"]) == (1, ["Workload$Leaked"], "collected")
    assert found["forecasts"][0]["space"] == "heap"


@pytest.mark.parametrize("collector", [SERIAL, G1])
def test_garbage_between_collections_is_no_leak(inprocess, workload, collector):
    """Neither between young ones nor between full ones."""
    jvm = workload("allocate=40000000", "cache=20000", options=("-Xmx64m", collector))
    found, code = look(inprocess, jvm, "-c", "5", "-i", "0.4")
    assert (code, found["findings"], found["heap_full_in_min"]) == (0, [], None)
    assert found["proof"] in ("young", "collected")


def test_a_collector_whose_histograms_have_no_garbage(inprocess, workload):
    """Generational ZGC: a leak is proven without a collection, and garbage does not grow."""
    jvm = workload("leak=1000000", "allocate=5000000", version=25, options=("-Xmx256m", "-XX:+UseZGC"))
    found, code = look(inprocess, jvm, "-c", "4", "-i", "0.4")
    assert (code, found["suspects"][0], found["proof"]) == (1, "Workload$Leaked", "reachable")
    assert "[B" not in found["suspects"]


@pytest.mark.parametrize(("version", "limit"), [(11, 64), (25, None)])
def test_a_class_loader_leak_fills_metaspace(inprocess, version, limit):
    """Loaders and classes are counted; the ceiling is MaxMetaspaceSize, without it the class space or the memory."""
    with leaks(
        "loaders=100", version=version, options=("-Xmx512m", *([f"-XX:MaxMetaspaceSize={limit}m"] if limit else []))
    ) as jvm:
        found, code = look(inprocess, jvm, "--live", "-c", "5", "-i", "0.5")
    assert (code, codes(found)) == (1, ["metaspace-keeps-growing"])
    [finding] = found["findings"]
    assert "class loaders keep growing: java.net.URLClassLoader +" in finding["summary"]
    assert finding["next"] == f"jcmd {jvm.pid} VM.classloader_stats"
    own = next(one for one in found["forecasts"] if one["space"] != "heap")
    if limit:
        assert (own["space"], own["ceiling_bytes"], own["ceiling"]) == ("Metaspace", limit * MIB, "MaxMetaspaceSize")
        assert "at this slope Metaspace is full in" in " ".join(found["verdict"])
    else:
        assert own["ceiling"] in ("CompressedClassSpaceSize", "no MaxMetaspaceSize: the limit is the machine's memory")
    assert own["full_in_min"] > 0


@pytest.mark.parametrize(("version", "options", "limit"), [
    (17, ("-XX:MaxDirectMemorySize=64m", SERIAL), 64),
    (21, ("-XX:+UseZGC", "-XX:+ZGenerational"), 128),
])  # fmt: skip
def test_a_direct_buffer_leak_fills_direct_memory(inprocess, version, options, limit):
    """How much is in use is read from java.nio.Bits; the ceiling is MaxDirectMemorySize, without it the maximum heap."""
    with leaks("direct=100", version=version, options=("-Xmx128m", *options)) as jvm:
        found, code = look(inprocess, jvm, "--live", "-c", "4", "-i", "0.4")
    assert (code, codes(found)) == (1, ["direct-memory-keeps-growing"])
    own = next(one for one in found["forecasts"] if one["space"] == "direct memory")
    assert own["ceiling_bytes"] == limit * MIB
    assert 0 < own["full_in_min"] * 60 < 2 * limit * MIB / (100 * 65536)
    buffers = next(row for row in found["classes"] if row["name"] == "java.nio.DirectByteBuffer")
    assert own["used_bytes"] == pytest.approx(buffers["instances"] * 65536, rel=0.15)
    assert "at this slope direct memory is full in" in " ".join(found["verdict"])


def test_deflaters_that_are_not_ended(inprocess):
    """Their memory is outside of the heap, and the machine's is the limit."""
    with leaks("deflaters=100") as jvm:
        found, code = look(inprocess, jvm, "--live", "-c", "4", "-i", "0.4")
    assert (code, codes(found)) == (1, ["zlib-memory-keeps-growing"])
    assert found["findings"][0]["summary"].startswith("java.util.zip.Deflater keeps growing: +")
    assert "the limit is" in found["forecasts"][-1]["ceiling"]


def test_buffers_and_deflaters_that_come_and_go(inprocess):
    """No finding."""
    with leaks("churn=500") as jvm:
        found, code = look(inprocess, jvm, "--live", "-c", "4", "-i", "0.4")
    assert (code, found["findings"]) == (0, [])


def test_a_full_heap(inprocess, workload, tmp_path):
    """It is named from its first comparison on, without any growth."""
    jvm = workload("retain=1380000", options=("-Xmx40m", "-Xmn2m", SERIAL))
    found, code = look(inprocess, jvm, "--live", "-c", "2", "-i", "0.2")
    assert (code, codes(found)) == (1, ["heap-nearly-full"])
    try_next(found["findings"], "heap-nearly-full", FILE=str(tmp_path / "heap.hprof"))
    assert "the heap is nearly full: 3" in " ".join(found["verdict"])


@pytest.fixture
def hogs():
    """Start processes that burn CPU; they end with the test."""
    started = []

    def start(number):
        started.extend(subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number))
        time.sleep(0.2)

    yield start
    for each in started:
        each.kill()
        each.wait()


def test_the_estimate_grows_with_cpu_pressure(inprocess, cgroup, workload, hogs):
    """By the quota of its cgroup, and by the threads of other processes that want to run; above 1 s it asks."""
    v1 = os.path.exists("/sys/fs/cgroup/cpu/cgroup.procs")
    quota = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"} if v1 else {"cpu.max": "20000 100000"}
    place = cgroup("cpu", quota)
    jvm = workload("retain=6000000", options=("-Xmx400m", "-Xms400m", SERIAL))
    assert inprocess("jmap-diff", jvm.pid, "-i", "0.1", "--live", "--yes").code == 0
    (place / "cgroup.procs").write_text(str(jvm.pid))
    throttled = inprocess("jmap-diff", jvm.pid, "-i", "0.1", "--live")
    assert "its cgroup has a quota of 0.2 of" in throttled.err
    (place.parent / "cgroup.procs").write_text(str(jvm.pid))
    hogs(4 * (os.cpu_count() or 1))
    crowded = inprocess("jmap-diff", jvm.pid, "-i", "0.1", "--live")
    assert "of other processes for" in crowded.err
    for done in (throttled, crowded):
        assert done.code == 2
        assert "Nothing was sent; add --yes" in done.err
