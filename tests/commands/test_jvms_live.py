"""opskit jvms on real JVMs in trouble, and on a terminal that is redrawn."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import jvms as real
import pytest
from cgroups import frozen, new_cgroup
from nextsteps import try_next
from rich.cells import cell_len
from terminal import on_terminal

NO_COLOR = {"NO_COLOR": "1"}
LONG = "kubepods-burstable-pod6a1c2b9e_0d0f_4f35_9d6b_3d1f0e5a7c11"


def frames(*words, rows, columns):
    """What a terminal shows after each sample, as lines."""
    code, out = on_terminal("jvms", *map(str, words), rows=rows, columns=columns, env=NO_COLOR)
    assert code in (0, 1), out
    return [frame.replace("\r", "").split("\n") for frame in out.split("\x1b[H\x1b[2J")[1:]]


def rows_of(inprocess, *words):
    done = inprocess("jvms", "-f", "json", *words)
    assert done.code in (0, 1), done.err
    return {row["pid"]: row for row in json.loads(done.out)["jvms"]}


def test_a_watch_is_one_screen_with_the_worst_jvm_first(workload):
    """At any size no frame is larger than the terminal, and each JVM that fits has one line."""
    calm = [workload("sleep=1", version=version, options=("-Xmx64m",)) for version in (17, 21)]
    full = workload("gc=4", "retain=100000", options=("-Xmx64m", "-XX:+UseSerialGC"))
    stopped = workload("sleep=1", options=("-Xmx64m", "-XX:+DisableAttachMechanism"))
    stopped.signal(signal.SIGSTOP)
    pids = [calm[0].pid, full.pid, calm[1].pid, stopped.pid]
    for rows, columns in ((24, 80), (24, 200), (14, 60), (10, 40)):
        seen = frames(*pids, "-w", "-i", "300ms", "-c", "2", rows=rows, columns=columns)
        assert len(seen) == 2
        for frame in seen:
            lines = [line for line in frame if "came late: " not in line]  # below the screen, at the end
            assert sum(max(1, -(-cell_len(line) // columns)) for line in lines[:-1]) < rows, lines
            shown = [int(line.split()[0]) for line in lines if re.match(rf" *({'|'.join(map(str, pids))}) ", line)]
            assert len(shown) == len(set(shown))
            assert shown[0] == stopped.pid, lines
            assert (
                f"error ({stopped.pid}): Workload is stopped by a signal" in " ".join(lines).replace("…", "")
                or columns < 60
            )
            if rows == 24:
                assert set(shown) == set(pids)
    shown = on_terminal("jvms", *map(str, pids), env=NO_COLOR)[1].replace("\r", "").split("\n")
    table = [line for line in shown if re.match(rf" *({'|'.join(map(str, pids))})   ", line)]
    assert 2 <= len(table) <= 2 * len(pids)
    assert all(cell_len(line) <= 80 for line in table)


def test_a_long_cgroup_name_is_shortened_in_its_middle(workload, root_only):
    """Its beginning and its end stay; the row stays one line."""
    with new_cgroup("pids", f"{LONG}-{os.getpid()}") as place:
        running = workload("sleep=1", options=("-Xmx64m",))
        (place / "cgroup.procs").write_text(str(running.pid))
        [lines] = frames(running.pid, "-w", "-c", "1", rows=24, columns=140)
        running.stop()
    [row] = [line for line in lines if line.split()[:1] == [str(running.pid)]]
    assert re.search(rf" kubepods\S*…\S*{os.getpid() % 100:02d} ", row)


def test_gc_pauses_longer_than_the_interval(inprocess, workload):
    """A pause is shown in the window in which it happens, at most 100 %: not as 0 % and then as 300 %."""
    running = workload("retain=6000000", "gc=200", options=("-Xmx900m", "-XX:+UseSerialGC"))
    before = rows_of(inprocess, running.pid)[running.pid]
    done = inprocess("jvms", running.pid, "-w", "-i", "100ms", "-c", "15", "-f", "json")
    document = json.loads(done.out)
    [last] = document["jvms"]
    samples = [(sample["at_s"], sample["jvms"][0]) for sample in document["samples"]]
    shares = [(later[0] - sooner[0], later[1]) for sooner, later in zip(samples, samples[1:])]
    assert all(0 <= sample["gc_percent"] <= 100 and 0 <= sample["stopped_percent"] <= 100 for _, sample in shares)
    assert last["gc_pauses"] > before["gc_pauses"]
    booked_s = sum(elapsed * sample["gc_percent"] / 100 for elapsed, sample in shares)
    counted_s = last["gc_pause_s"] - before["gc_pause_s"]
    assert booked_s <= counted_s * 1.05 + 0.05
    assert booked_s >= counted_s * 0.5 - 1.0  # those before the first sample are not in it


@pytest.mark.parametrize("version", [17, 21, 25])
def test_the_use_of_a_heap_that_was_never_collected_is_unknown(inprocess, workload, version):
    """G1 writes it at collections only: null and `-`, never 0; after one it is there."""
    running = workload("sleep=1", version=version, options=("-Xmx64m", "-XX:+UseG1GC"))
    row = rows_of(inprocess, running.pid)[running.pid]
    assert (row["gc_collections"], row["heap_used_bytes"]) == (0, None)
    assert row["heap_max_bytes"] == 64 << 20
    assert "unknown / " in inprocess("jvms", running.pid, "-f", "table").out
    inprocess("jmap-diff", running.pid, "-c", "2", "-i", "10ms", "--live", "--yes")
    assert rows_of(inprocess, running.pid)[running.pid]["heap_used_bytes"] > 0


def test_a_jvm_that_reaches_no_safepoint(inprocess, workload):
    """Reported as stuck, with the thread; attach is no. A JVM beside it that burns CPU is not."""
    hog = workload("hog", options=("-Xmx64m", *real.HOG_OPTIONS))
    busy = workload("burn=1", "allocate=50000000", "gc=20", options=("-Xmx64m",))
    inprocess("jpmp", hog.pid, "1", "--timeout", "1s")  # requests a safepoint
    done = inprocess("jvms", hog.pid, busy.pid, "-f", "json")
    document = json.loads(done.out)
    [found] = [each for each in document["findings"] if each["code"] == "safepoint-not-reached"]
    assert found["subject"] == str(hog.pid)
    assert "thread 'hog'" in found["summary"]
    codes = {row["pid"]: row["attach_code"] for row in document["jvms"]}
    assert codes == {hog.pid: "no-safepoint", busy.pid: "yes"}


def test_a_stopped_and_a_frozen_jvm(inprocess, workload, root_only):
    """Both are reported, with what resumes them."""
    running = workload("sleep=1", options=("-Xmx64m",))
    running.signal(signal.SIGSTOP)
    done = inprocess("jvms", running.pid, "-f", "text")
    assert done.code == 1
    assert (
        f"error process-stopped ({running.pid}): Workload is stopped by a signal (state T): nothing in it runs"
        in done.err
    )
    assert f"  fix: kill -CONT {running.pid}" in done.err
    running.signal(signal.SIGCONT)
    assert "process-stopped" not in inprocess("jvms", running.pid, "-f", "text").err
    with frozen(running.pid):
        done = inprocess("jvms", running.pid, "-f", "text")
    assert f"warning process-stopped ({running.pid}): Workload is frozen with its cgroup" in done.err
    assert "  no:frozen  " in done.out


def test_a_jvm_that_the_oom_killer_kills(workload, root_only, inprocess):
    """A watch names it as killed, with its cgroup's limit; so does a later look at its PID, as far as the kernel's log tells."""
    names = "memory.limit_in_bytes", "memory.max"
    with new_cgroup("memory", f"opskit-test-oom-{os.getpid()}", " ".join(names)) as place:
        next(place / name for name in names if (place / name).exists()).write_text(str(70 << 20))
        running = workload(
            "sleep=1",
            options=("-Xmx512m", "-Xms512m", "-Xmn400m", "-XX:+UseSerialGC"),  # it grows without a collection
            wrapper=("sh", "-c", f'echo $$ > {place}/cgroup.procs; exec "$@"', "sh"),
        )
        watch = subprocess.Popen(
            [sys.executable, "-m", "opskit", "jvms", str(running.pid), "-w", "-i", "300ms", "-f", "text"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
        )  # fmt: skip
        watch.stdout.readline()
        running.process.stdin.write(b"+" * 6000)  # 144 MB of objects
        running.process.stdin.flush()
        err = watch.communicate(timeout=60)[1]
        killed = f"error oom-killed ({running.pid}): Workload was killed by the kernel's OOM killer at the limit of"
        assert killed in err
        assert f"no process {running.pid}" in err
        assert watch.returncode == 1
        if b"Killed process %d " % running.pid in subprocess.run(["dmesg"], capture_output=True, check=False).stdout:
            later = inprocess("jvms", running.pid, "-f", "text")
            assert later.code == 1
            assert f"error oom-killed ({running.pid}): " in later.err
            found = json.loads(inprocess("jvms", running.pid, "-f", "json").out)["findings"]
            try_next(found, "oom-killed")
        running.stop()
