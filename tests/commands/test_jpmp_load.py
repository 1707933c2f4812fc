"""The verdicts of `opskit jpmp PID` on the CPU: collections that use most of it, threads that wait for one."""

from __future__ import annotations

import json
import re

import jvms
import maven
import pytest
from nextsteps import try_next

TIMEOUT = ("--timeout", "120")
SOURCE = jvms.SOURCE.parent / "CpuLoad.java"


@pytest.fixture
def cpu_load():
    """Start CpuLoad with these modes; all are killed at the end."""
    started = []

    def start(*modes, options=("-Xmx48m",), version=17, wrapper=()):
        java = [*wrapper, jvms.java(version), *options, "-cp", maven.classes(SOURCE), "CpuLoad", *modes]
        started.append(jvms.run(java))
        return started[-1]

    yield start
    for each in started:
        each.stop()


def findings_of(document, *codes):
    return [finding for finding in document["findings"] if finding["code"] in codes]


@pytest.mark.parametrize(("collector", "version"), [("Serial", 17), ("Parallel", 21), ("G1", 25)])
def test_collections_that_use_most_of_the_cpu(inprocess, cpu_load, collector, version):
    """A heap that is nearly full of reachable objects: the collector and its share are named, and what to do next."""
    jvm = cpu_load("full=88", options=("-Xmx48m", f"-XX:+Use{collector}GC"), version=version)
    done = inprocess("jpmp", jvm.pid, "-c", 6, "-i", "0.3", "-f", "json", *TIMEOUT)
    document = json.loads(done.out)
    [found] = findings_of(document, "jvm-gc-cpu")
    assert done.code == 1
    assert re.match(
        r"garbage collection uses most of the CPU: \d\d(\.\d)? % of what the JVM uses; heap: ", found["summary"]
    )
    assert found["evidence"].startswith(f"{collector}: ")
    assert try_next(document["findings"], "jvm-gc-cpu") == f"opskit jmap-diff {jvm.pid}"
    assert found["share"] > 0.6
    assert document["gc_cpu_percent"] == pytest.approx(100 * found["share"], abs=0.1)
    if collector == "Serial":  # the sentence does not depend on it
        done = inprocess("jpmp", jvm.pid, "--locks", "-c", 5, "-i", "0.3", "-f", "table", *TIMEOUT)
        assert "garbage collection uses most of the CPU" in done.out


@pytest.mark.parametrize(
    ("options", "version"),
    [(("-XX:+UseG1GC",), 17), (("-XX:+UseParallelGC",), 17), (("-XX:+UseZGC",), 21), (("-XX:+UseShenandoahGC",), 25)],
)
def test_a_busy_server_that_allocates_is_healthy(inprocess, cpu_load, options, version):
    """Collections of a heap with room are no finding, also those that run beside the application."""
    jvm = cpu_load("busy=4", options=("-Xmx256m", *options), version=version)
    document = json.loads(inprocess("jpmp", jvm.pid, "-c", 5, "-i", "0.4", "-f", "json", *TIMEOUT).out)
    assert findings_of(document, "jvm-gc-cpu") == []
    assert document["gc_cpu_percent"] < 50


def test_threads_that_share_one_cpu(inprocess, cpu_load):
    """Eight threads that spin on one CPU wait for it most of the time: the share, their number, and the next command."""
    jvm = cpu_load("spin=8", wrapper=("taskset", "-c", "0"))
    words = ("jpmp", jvm.pid, "-c", 5, "-i", "0.5", *TIMEOUT)
    done = inprocess(*words, "-f", "json")
    document = json.loads(done.out)
    [found] = findings_of(document, "jvm-cpu-wait")
    assert done.code == 1
    assert re.match(r"threads wait \d\d(\.\d)? % of the time for a CPU: ", found["summary"])
    assert "1 CPU" in found["summary"]
    assert try_next(document["findings"], "jvm-cpu-wait") == f"opskit cswitch {jvm.pid}"
    assert found["share"] > 0.75
    assert document["cpu_wait_percent"] == pytest.approx(100 * found["share"], abs=0.1)
    # The question about locks is answered; the shortage is only mentioned.
    done = inprocess(*words, "--locks", "-f", "table")
    assert done.code == 0
    assert re.search(
        r"^threads wait \d\d(\.\d)? % of the time for a CPU: .*; next: opskit cswitch ", done.out, re.MULTILINE
    )


def test_a_quota_that_runs_out(inprocess, cpu_load, cgroup):
    """The quota is named as the cause, not the number of threads."""
    place = cgroup("cpu", {})
    v1 = (place / "cpu.cfs_quota_us").exists()
    (place / ("cpu.cfs_quota_us" if v1 else "cpu.max")).write_text("40000" if v1 else "40000 100000")
    jvm = cpu_load("spin=2")
    try:
        (place / "cgroup.procs").write_text(str(jvm.pid))
        document = json.loads(inprocess("jpmp", jvm.pid, "-c", 5, "-i", "0.5", "-f", "json", *TIMEOUT).out)
        assert try_next(document["findings"], "cpu-throttled") == f"opskit cswitch {jvm.pid}"
    finally:
        jvm.stop()
    [found] = findings_of(document, "cpu-throttled")
    said = rf"{jvm.pid} is throttled in \d+(\.\d)? % of the periods: its cgroup's quota is 0\.4 CPUs"
    assert re.fullmatch(said, found["summary"])
    assert findings_of(document, "jvm-cpu-wait") == []


def test_a_deadlock_in_the_first_dump_ends_the_run(inprocess, workload, tmp_path):
    """It is proven, and said; --on-cpu and --save sample on, and so does a deadlock that a timeout ends."""
    jvm = workload("deadlock", "sleep=1")
    done = inprocess("jpmp", jvm.pid, 3, 0.2, "-f", "table", *TIMEOUT)
    assert done.code == 1
    assert "1 sample, " in done.out
    assert "ended after the first sample, which proves a deadlock" in done.out
    document = json.loads(
        inprocess("jpmp", jvm.pid, 2, 0.2, "--on-cpu", "--sampler", "dumps", "-f", "json", *TIMEOUT).out
    )
    assert (document["sample_count"], document["ended"]) == (2, None)
    assert try_next(document["findings"], "jvm-deadlock") == f"opskit jpmp {jvm.pid} --locks"
    place = tmp_path / "dumps"
    document = json.loads(inprocess("jpmp", jvm.pid, 3, 0.2, "--locks", "--save", place, "-f", "json", *TIMEOUT).out)
    assert len([*place.iterdir()]) == 3
    [finding] = [each for each in document["findings"] if each["code"] == "jvm-deadlock"]
    assert finding["next"] == f"opskit capture {jvm.pid} --ask"
