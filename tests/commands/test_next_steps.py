"""The `next` commands of findings that no other test stages: each is typed in the state that prints it."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import jvms
import maven
from nextsteps import try_next

LOAD = jvms.SOURCE.parent / "CpuLoad.java"


def findings(inprocess, *words):
    return json.loads(inprocess(*words, "-f", "json", timeout=300).out)["findings"]


def until(find, *codes):
    """The findings, as soon as these are among them."""
    deadline = time.monotonic() + jvms.START_S
    while True:
        found = find()
        if {finding["code"] for finding in found} >= set(codes):
            return found
        assert time.monotonic() < deadline, found


def test_a_lock_that_holds_up_threads(inprocess, workload):
    """The holder's stacks, by its name."""
    jvm = workload("blocked=4")
    found = findings(inprocess, "jpmp", jvm.pid, 4, 0.1, "--locks", "--timeout", "120")
    assert try_next(found, "lock-contended") == f"opskit jpmp {jvm.pid} --by-thread --include '^lock-holder$'"


def test_a_jvm_that_collects_most_of_the_time(inprocess, tmp_path):
    """By its counters in jvms, and by its log in safepoints."""
    log = tmp_path / "safepoints.log"
    java = [jvms.java(17), "-Xmx48m", "-XX:+UseSerialGC", f"-Xlog:safepoint:file={log}"]
    jvm = jvms.run([*java, "-cp", maven.classes(LOAD), "CpuLoad", "full=88"])
    try:
        found = until(lambda: findings(inprocess, "jvms", jvm.pid, "-i", "1s"), "jvm-gc-share")
        try_next(found, "jvm-gc-share")
        found = until(lambda: findings(inprocess, "safepoints", log), "jvm-gc-share")
        try_next(found, "jvm-gc-share", PID=jvm.pid)
    finally:
        jvm.stop()


def test_a_jvm_at_the_limits_of_its_cgroups(inprocess, cgroup):
    """A quota that runs out; resident memory near the limit; a heap that may grow above it."""
    memory, cpu = cgroup("memory", {}), cgroup("cpu", {})
    limit = memory / ("memory.limit_in_bytes" if (memory / "memory.limit_in_bytes").exists() else "memory.max")
    is_v1 = (cpu / "cpu.cfs_quota_us").exists()
    (cpu / ("cpu.cfs_quota_us" if is_v1 else "cpu.max")).write_text("50000" if is_v1 else "50000 100000")
    inside = ("sh", "-c", 'echo $$ > "$0" && echo $$ > "$1" && shift && exec "$@"', str(memory / "cgroup.procs"))
    options = ("-Xms150m", "-Xmx600m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC")
    jvm = jvms.start("burn=25:25", options=options, wrapper=(*inside, str(cpu / "cgroup.procs")))
    try:
        status = Path(f"/proc/{jvm.pid}/status").read_text(encoding="utf-8")
        resident = int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) << 10
        limit.write_text(str(resident + (12 << 20)))
        codes = ("cpu-throttled", "memory-near-limit", "memory-heap-outgrows-limit")
        found = until(lambda: findings(inprocess, "jvms", jvm.pid, "-i", "1s"), *codes)
        try_next(found, "cpu-throttled")
        try_next(found, "memory-near-limit")
        try_next(found, "memory-heap-outgrows-limit")
    finally:
        jvm.stop()


def test_a_process_that_keeps_gaining_pipes(inprocess, spawn):
    """Its ends, while it still gains them."""
    process = spawn("import os, time\nprint()\nkept = []\nwhile True: kept.append(os.pipe()); time.sleep(0.05)")
    found = findings(inprocess, "pipes", process.pid, "-w", "-i", "0.4", "-c", "6")
    assert try_next(found, "pipes-keep-growing") == f"opskit pipes {process.pid} --ends"
