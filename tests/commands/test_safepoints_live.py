"""`opskit safepoints PID` on real JVMs 11, 17, 21 and 25: what it says is what the JVM's own log says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jvms
import pytest
from nextsteps import try_next
from stracing import ACTS, OPENS, traced
from terminal import on_terminal

from opskit.jvm.logs.safepoints.log import SafepointLog


def logged(path):
    """(stop, TTSP) of each safepoint in a log."""
    return [pair for batch in SafepointLog().read([path.read_bytes()]) for pair in zip(batch.stops_s, batch.ttsps_s)]


def test_live_figures_are_those_of_the_log(inprocess, workload, tmp_path, jvm_version):
    """Over the same safepoints, matched by the JVM's own count: within 0.1 % from 17 on, 3 % on 11."""
    path = tmp_path / "safepoints.log"
    jvm = workload(
        "allocate=200000000", "gc=100", version=jvm_version, options=("-Xmx128m", f"-Xlog:safepoint:file={path}")
    )
    # The JVM reads its clock once for the log and once for the counter, and may lose the CPU in between.
    for _ in range(4):
        document = json.loads(inprocess("safepoints", jvm.pid, "-i", "250ms", "-c", "6", "-f", "json").out)
        time.sleep(0.3)  # the last stop is logged
        logs = spans(logged(path), document["counters"])
        if all(is_near(document[key], logs, column, jvm_version) for column, key in enumerate(("stopped_s", "ttsp_s"))):
            break
    else:
        pytest.fail(f"not in the log: {document}")
    first, last = document["counters"]["first"], document["counters"]["last"]
    assert last["safepoints"] - first["safepoints"] == document["safepoints"] >= 10
    assert len(document["samples"]) == 6


def spans(rows, counters):
    """The rows between two looks. A count may be one ahead of the times, where the look fell into a stop."""
    first, last = counters["first"]["safepoints"], counters["last"]["safepoints"]
    return [rows[first - begun : last - open_] for begun in (0, 1) for open_ in (0, 1)]


def is_near(value, logs, column, version):
    tolerance = 0.03 if version == 11 else 0.001
    return any(value == pytest.approx(sum(row[column] for row in rows), rel=tolerance) for rows in logs)


def test_a_thread_that_does_not_stop_is_named(inprocess, workload, jvm_version):
    """A counted loop without polls: no counter moves, but the late thread is named."""
    jvm = workload("hog", "gc=200", version=jvm_version, options=("-Xmx128m", *jvms.HOG_OPTIONS))
    deadline = time.monotonic() + 120
    while True:
        done = inprocess("safepoints", jvm.pid, "-i", "250ms", "-c", "3", "-f", "json")
        document = json.loads(done.out)
        if document["waiting"] and document["late_thread"]:
            break
        assert time.monotonic() < deadline, document
    assert document["late_thread"] == "hog"
    assert document["findings"][0]["code"] == "safepoint-not-reached"
    # A JVM in this state gives no thread dump, and no advice asks for one.
    assert try_next(document["findings"], "safepoint-not-reached") == f"top -H -p {jvm.pid}"
    assert all("jpmp" not in (finding["next"] or "") for finding in document["findings"])
    assert "(TTSP) dominates: a safepoint was requested and has not been reached" in document["verdict"][0]


def test_counted_loops_without_polls_make_ttsp_dominate(inprocess, workload, tmp_path, jvm_version):
    """Live and in the log: TTSP is most of the stopped time, the verdict says so, the flags are the release's."""
    path = tmp_path / "safepoints.log"
    options = ("-Xmx128m", *jvms.HOG_OPTIONS, f"-Xlog:safepoint:file={path}")
    jvm = workload("lag=100", "gc=50", version=jvm_version, options=options)
    deadline = time.monotonic() + 120
    while True:
        live = json.loads(inprocess("safepoints", jvm.pid, "-i", "500ms", "-c", "2", "-f", "json").out)
        if live["safepoints"] >= 3 and live["ttsp_share"]:
            break
        assert time.monotonic() < deadline, live
    jvm.stop()
    log = json.loads(inprocess("safepoints", path, "-f", "json").out)
    for document in (live, log):
        assert document["ttsp_share"] > 0.5
        assert "Time to safepoint (TTSP) dominates" in document["verdict"][0]
        found = {finding["code"]: finding for finding in document["findings"]}
        assert "LoopStripMiningIter=1000" in found["ttsp-dominates"]["fix"]


def test_late_threads_dominate_in_the_log(inprocess, workload, tmp_path):
    """A JVM whose loop has no polls, its log read back: the last safepoint is not there, the timeout names the thread."""
    path = tmp_path / "safepoints.log"
    options = (
        "-Xmx128m", *jvms.HOG_OPTIONS, f"-Xlog:safepoint:file={path}", "-XX:+SafepointTimeout", "-XX:SafepointTimeoutDelay=200",
    )  # fmt: skip
    jvm = workload("hog", "gc=200", version=17, options=options)
    deadline = time.monotonic() + 120
    while "End of list" not in path.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    document = json.loads(inprocess("safepoints", path, "-f", "json").out)
    assert document["late_threads"] == {"hog": 1}
    assert document["findings"][0]["code"] == "late-to-safepoint"
    assert try_next(document["findings"], "late-to-safepoint", PID=jvm.pid) == "top -H -p PID"
    # Nor does it answer to a probe: its advice needs no answer either.
    probed = json.loads(inprocess("hsperf-check", jvm.pid, "--probe", "--timeout", "1s", "-f", "json").out)
    assert try_next(probed["findings"], "attach-probe-failed") == f"opskit safepoints {jvm.pid}"


def seen(inprocess, jvm, *codes):
    """Looks again and again until these findings are there, and gives that document; a loaded machine may need long."""
    deadline = time.monotonic() + 180
    while True:
        document = json.loads(inprocess("safepoints", jvm.pid, "-c", "3", "-i", "0.5", "-f", "json").out)
        found = {finding["code"]: finding for finding in document["findings"]}
        if found.keys() >= set(codes):
            return document, found
        assert time.monotonic() < deadline, document


def inside(place):
    """The wrapper that puts a JVM into a cgroup from its first instruction on."""
    return ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(place / "cgroup.procs"))


def test_a_jvm_held_back_by_its_cpu_quota(inprocess, cgroup, workload):
    """A fifth of a CPU for threads that want more: the kernel's throttling counters are shown, and their finding comes first."""
    v1 = os.path.exists("/sys/fs/cgroup/cpu/cgroup.procs")
    quota = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"} if v1 else {"cpu.max": "20000 100000"}
    place = cgroup("cpu", quota)

    def account():
        counts = dict(line.split() for line in (place / "cpu.stat").read_text().splitlines())
        time_s = int(counts["throttled_time"]) / 1e9 if v1 else int(counts["throttled_usec"]) / 1e6
        return time_s, int(counts["nr_throttled"])

    jvm = workload("burn=8:4:2:1", "gc=300", options=("-Xmx64m", "-XX:+UseSerialGC"), wrapper=inside(place))
    before = account()
    document, found = seen(inprocess, jvm, "cpu-throttled")
    after = account()
    assert 0 < document["throttled_s"] <= round(after[0] - before[0], 9)
    assert 0 < document["throttled_periods"] <= after[1] - before[1]
    assert document["findings"][0]["code"] == "cpu-throttled"
    assert found["cpu-throttled"]["summary"].endswith("of the periods: its cgroup's quota is 0.2 CPUs")
    assert try_next(document["findings"], "cpu-throttled") == f"opskit cswitch {jvm.pid}"


def test_a_jvm_short_of_memory(inprocess, cgroup, workload, tmp_path):
    """It reads a mapped file that is larger than its cgroup's limit: pressure, and faults that wait for the disk."""
    if not os.path.exists("/proc/pressure/memory"):
        pytest.skip("this kernel tells no pressure (PSI)")
    if subprocess.check_output(["stat", "-f", "-c", "%T", tmp_path], text=True).strip() in ("tmpfs", "ramfs"):
        pytest.skip("needs a directory on disk (set TMPDIR)")
    v1 = os.path.exists("/sys/fs/cgroup/memory/cgroup.procs")
    place = cgroup("memory", {"memory.limit_in_bytes" if v1 else "memory.max": str(120 << 20)})
    with open(tmp_path / "mapped", "wb") as file:
        file.writelines([os.urandom(1 << 20)] * 220)
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)  # or it would be there at our own expense
    options = ("-Xmx24m", "-XX:+UseSerialGC")
    jvm = workload(f"map={tmp_path}/mapped", "gc=300", options=options, wrapper=inside(place))
    document, found = seen(inprocess, jvm, "memory-pressure", "major-faults")
    of_machine = any("whole machine's" in note for note in document["notes"])
    who = "tasks somewhere on the machine" if of_machine else "tasks of its cgroup"
    assert found["memory-pressure"]["summary"].startswith(f"{who} waited for memory")
    assert 0.05 <= document["memory_pressure_share"] <= 1
    assert try_next(document["findings"], "memory-pressure") == "vmstat 1"
    assert try_next(document["findings"], "major-faults") == "vmstat 1"
    (tmp_path / "mapped").unlink()  # half a gigabyte, which is free when the JVM is gone
    stat = Path(f"/proc/{jvm.pid}/stat").read_text()
    assert 0 < document["major_faults"] <= int(stat.rpartition(")")[2].split()[9])


def test_more_threads_than_cpus(inprocess, workload, spawn):
    """Twice as many busy processes as CPUs: the load is compared with the CPUs, and said to be above them."""
    cpus = os.cpu_count()
    for _ in range(2 * cpus + 1):
        spawn("import os; os.nice(19); print()\nwhile True: pass")
    jvm = workload("gc=300", options=("-Xmx64m", "-XX:+UseSerialGC"))
    document, found = seen(inprocess, jvm, "runnable-above-cpus")
    assert document["runnable"] - 1 > cpus
    assert f"on average for {cpus}" in found["runnable-above-cpus"]["summary"]
    assert try_next(document["findings"], "runnable-above-cpus") == f"opskit cswitch {jvm.pid}"


def test_pressure_is_its_own_cgroups(inprocess, cgroup, workload):
    """Also where v1 has the controllers: v2 has pressure without any. Elsewhere the machine's is shown, and a note says so."""
    jvm = workload("gc=300", options=("-Xmx64m", "-XX:+UseSerialGC"))
    place = cgroup("unified", {})
    if not (place / "cpu.pressure").exists():
        pytest.skip("this kernel tells no pressure of cgroups")
    note = "pressure (PSI) is the whole machine's: its cgroup has none"
    (place / "cgroup.procs").write_text(str(jvm.pid))
    assert note not in inprocess("safepoints", jvm.pid, "-c", "1", "-i", "200ms").err
    (place.parent / "cgroup.procs").write_text(str(jvm.pid))
    assert note in inprocess("safepoints", jvm.pid, "-c", "1", "-i", "200ms").err


def test_it_only_reads(workload, tmp_path):
    """As strace sees it: nothing is sent to a live JVM; only a long log needs a temporary file."""
    path = tmp_path / "safepoints.log"
    jvm = workload("gc=100", options=("-Xmx128m", f"-Xlog:safepoint:file={path}"))
    calls = (*OPENS, *ACTS, "connect")
    for words in ((jvm.pid, "-c", "2", "-i", "200ms"), (path,)):
        done = traced("safepoints", *words, calls=calls)
        assert done.code in (0, 1), done.err
        assert done.acting() == []
    jvm.stop()
    long = tmp_path / "long.log"
    long.write_text(path.read_text() * (40_000 // path.read_text().count("Total:") + 1))
    acting = traced("safepoints", long, calls=calls).acting()
    [unnamed] = [call for call in acting if "O_TMPFILE" in call]
    # Python's tempfile tries which directory takes a file: it makes one and removes it.
    [tried, removed] = [call for call in acting if call != unnamed]
    assert "O_EXCL" in tried
    assert removed.startswith("unlink")
    assert removed.split('"')[1] == tried.split('"')[1]


@pytest.mark.parametrize("format_", ["text", "table", "markdown", "csv"])
def test_every_format(inprocess, workload, format_):
    """A row an interval, and all of them together."""
    jvm = workload("allocate=100000000")
    done = inprocess("safepoints", jvm.pid, "-i", "200ms", "-c", "3", "-f", format_)
    assert done.code in (0, 1)  # by what else the machine does
    if format_ == "csv":
        assert len(done.out.splitlines()) == 4
    elif format_ == "text":
        assert done.out.splitlines()[0].split()[:2] == ["AT_S", "SAFEPOINTS"]
        assert done.out.splitlines()[4].startswith("stopped.avg=")
    else:
        assert "stopped the application" in done.out or "never stopped" in done.out


def test_more_intervals_than_the_screen_has_rows(workload):
    """The newest are shown, with no advice about -n, which a live JVM does not take."""
    jvm = workload("sleep=1")
    code, shown = on_terminal("safepoints", str(jvm.pid), "-i", "10ms", "-c", "30")
    assert code in (0, 1)
    last = shown.rpartition("\x1b[2J")[2]
    assert any(line.split()[:1] == ["all"] for line in last.splitlines())
    assert "-n 0" not in last


def test_the_jvm_may_be_named_by_its_main_class(inprocess, workload):
    """As everywhere; and a name that fits none is answered with those there are."""
    jvm = workload("sleep=1", properties=("-Dx=y",))
    done = inprocess("safepoints", "nosuchthing.log")
    assert done.code == 2
    assert "'nosuchthing.log' is not a PID, a file or a part of a running JVM's main class or jar" in done.err
    assert str(jvm.pid) in done.err


def test_ctrl_c_tells_what_was_gathered(workload):
    """Exit code 130, the sums on stdout."""
    jvm = workload("allocate=100000000")
    process = subprocess.Popen(
        [sys.executable, "-m", "opskit", "safepoints", str(jvm.pid), "-w", "-i", "50ms"],
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(14):  # more than without -w
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped.avg=" in out


def test_a_jvm_that_ends_meanwhile(workload):
    """The samples so far are shown, and a note that the JVM ended."""
    jvm = workload("allocate=100000000")
    process = subprocess.Popen(
        [sys.executable, "-m", "opskit", "safepoints", str(jvm.pid), "-i", "100ms", "-c", "10000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(4):
        process.stdout.readline()
    jvm.stop()
    out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 1), err  # by what was found
    assert "stopped.avg=" in out
    assert "it ended while it was watched" in err


def test_a_jvm_without_counters_says_why(inprocess, workload):
    """And exit code 2."""
    jvm = workload("sleep=1", options=("-Xmx64m", "-XX:-UsePerfData"))
    done = inprocess("safepoints", jvm.pid)
    assert done.code == 2
    assert "-XX:-UsePerfData" in done.err
    done = inprocess("safepoints", os.getpid())
    assert done.code == 2
    assert "is not a JVM" in done.err
