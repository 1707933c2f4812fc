"""opskit jvms: on captured trees, whole outputs; on real JVMs, the numbers against other sources."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jvms as real
import psutil
import pytest
from jvmtree import LIBJVM, Tree
from stracing import ACTS, OPENS, traced
from terminal import on_terminal

from opskit.cli import run

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "hsperfdata"
ID = "3f2a9c81d0e4" + "0123456789abcdef" * 3 + "0123"
NOBODY = 65534


def steady(out):
    """Without what differs from run to run: the time, the version, the tree's place, who runs the tests."""
    out = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-01-02T03:04:05Z", out)
    out = re.sub(r"opskit \d+\.\d+\.\d+", "opskit VERSION", out)
    out = re.sub(r'"version": "[^"]*"', '"version": "VERSION"', out)
    out = re.sub(r'"uid": \d+', '"uid": 1001', out)
    return re.sub(r"--root \S+?(?=[ \"`]|$)", "--root DIR", out, flags=re.MULTILINE)


@pytest.fixture
def machine(tmp_path):
    """Another machine: a JVM in Docker at its limits, one that shares nothing, OpenJ9, and a name that is an attack."""
    tree = Tree(tmp_path)
    tree.write("proc/sys/kernel/hostname", "web1\n")
    tree.write("proc/loadavg", "0.1 0.1 0.1 1/489 999\n")
    tree.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n")
    scope = f"sys/fs/cgroup/system.slice/docker-{ID}.scope"
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    tree.write(f"{scope}/memory.max", "41943040\n")
    tree.write(f"{scope}/memory.current", "41000000\n")
    tree.write(f"{scope}/cpu.max", "50000 100000\n")
    tree.write(f"{scope}/cpu.stat", "nr_periods 1000\nnr_throttled 340\nthrottled_usec 61200000\n")
    tree.write("sys/fs/cgroup/system.slice/app.service/memory.max", "max\n")
    tree.write("sys/fs/cgroup/system.slice/app.service/cpu.max", "max 100000\n")
    capture = (FIXTURES / "jdk17-g1").read_bytes()
    file = tree.write("tmp/hsperfdata_app/4242", capture)
    line = f"7f0000002000-7f000000a000 rw-s 00000000 08:01 {file.stat().st_ino} /tmp/hsperfdata_app/4242\n"
    tree.process(4242, ("java", "-Dkey=s3cret", "T"), maps=LIBJVM + line, threads=14)
    tree.write("proc/4242/cgroup", f"0::/system.slice/docker-{ID}.scope\n")
    tree.process(50, ("java", "-XX:-UsePerfData", "-jar", "/srv/app.jar"), maps=LIBJVM, threads=9)
    tree.write("proc/50/cgroup", "0::/system.slice/app.service\n")
    tree.write("proc/50/root/opt/jdk/release", 'JAVA_VERSION="1.8.0_402"\n')
    tree.process(60, ("java", "Main"), maps=LIBJVM + LIBJVM.replace("libjvm.so", "libj9vm29.so"))
    tree.process(70, ("java", "evil\x1b[31m[bold]Main"), maps=LIBJVM, environ="JAVA_TOOL_OPTIONS=-XX:-UsePerfData\0")
    for pid, kib in ((4242, 39936), (50, 120000), (60, 90000), (70, 80000)):
        status = tree.root / f"proc/{pid}/status"
        status.write_text(status.read_text() + f"VmRSS:\t{kib} kB\n")
    return tree


@pytest.mark.parametrize("format_", ["text", "table", "json", "markdown"])
def test_a_captured_machine_in_every_format(inprocess, machine, golden, format_):
    """Whole outputs of --root on another machine's tree; no JVM there is reported as attachable."""
    done = inprocess("jvms", "--vm-args", "--root", machine.root, "-f", format_)
    assert done.code == 1
    assert "s3cret" not in done.out + done.err
    golden(f"jvms-captured.{format_}", steady(done.out))


def test_top_limits_the_rows_and_a_terminal_shows_what_fits(inprocess, machine):
    """-n 1: one row in each table, the number of the others; JSON has all. On 200 x 16 the findings stay in sight."""
    count = len(json.loads(inprocess("jvms", "--root", machine.root, "-f", "json").out)["jvms"])
    table = inprocess("jvms", "-n", "1", "--root", machine.root, "-f", "table").out
    assert table.count(f"… {count - 1} more; -n 0 shows all") == 2
    assert len(inprocess("jvms", "-n", "1", "--root", machine.root, "-f", "text").out.splitlines()) == 2
    assert len(json.loads(inprocess("jvms", "-n", "1", "--root", machine.root, "-f", "json").out)["jvms"]) == count
    shown = on_terminal("jvms", "--root", str(machine.root), rows=16, columns=200, env={"NO_COLOR": "1"})[1]
    assert " more; -n 0 shows all" in shown


def test_properties_are_shown_to_who_asks_for_them(inprocess, machine):
    """The values of -D come from the JVM's own record of its options."""
    out = inprocess("jvms", "4242", "--show-properties", "--root", machine.root, "-f", "json").out
    assert json.loads(out)["jvms"][0]["vm_args"].startswith("-XX:+UnlockExperimentalVMOptions")


def test_order_and_choice(inprocess, machine):
    """--sort puts the largest first, what is unknown last; PIDs and -u choose."""

    def pids(*words):
        done = inprocess("jvms", "--root", machine.root, "-f", "text", *words)
        assert done.code == (1 if "4242" in done.out else 0)  # it has findings
        return [int(line.split()[0]) for line in done.out.splitlines()[1:]]

    assert pids() == [50, 60, 70, 4242]
    assert pids("--sort", "rss") == [50, 60, 70, 4242]
    assert pids("--sort", "heap") == [4242, 50, 60, 70]
    assert pids("60", "4242", "60") == [60, 4242]
    assert pids("-u", "app") == [50, 60, 70, 4242]
    done = inprocess("jvms", "--root", machine.root, "-u", "0" if os.getuid() else "12345", "-f", "text")
    assert done.code == 0
    assert len(done.out.splitlines()) == 1
    assert "is running here" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("999",), "no process 999: opskit jvms lists the JVMs"),
        (("abc",), "'abc' is not a PID or a part of a running JVM's main class or jar"),
        (("80",), r"80 \(nginx\) is not a JVM"),
        (("-u", "no-such-user"), "-u no-such-user: no such user"),
        (("--sort", "size"), "'size' is not one of"),
        (("-c", "2"), "goes with -w"),
        (("-i", "2"), "-i/--interval: .* is a copy"),
        (("-f", "csv"), "'csv' is not one of"),
    ],
)
def test_bad_words(inprocess, machine, words, message):
    """One clear line and exit code 2."""
    machine.process(80, ("nginx",))
    done = inprocess("jvms", "--root", machine.root, *words)
    assert done.code == 2
    assert done.out == ""
    assert re.search(message, done.err)


def test_a_damaged_file_is_named_and_the_rest_goes_on(inprocess, machine):
    """The JVM keeps its row; what is unknown stays so."""
    path = machine.root / "tmp/hsperfdata_app/4242"
    with path.open("r+b") as file:
        file.write(b"garbage")
    done = inprocess("jvms", "--root", machine.root, "-f", "json")
    rows = {row["pid"]: row for row in json.loads(done.out)["jvms"]}
    assert rows[4242]["heap_used_bytes"] is None
    assert "does not begin with ca fe c0 c0" in rows[4242]["no_counters"]
    assert rows[4242]["threads"] == 14


def test_a_tree_without_any_jvm(inprocess, tmp_path):
    """Says so, exit code 0."""
    tree = Tree(tmp_path)
    tree.process(80, ("nginx",))
    done = inprocess("jvms", "--root", tmp_path)
    assert done.code == 0
    assert "no JVM is running here" in done.err
    assert json.loads(inprocess("jvms", "--root", tmp_path, "-f", "json").out)["jvms"] == []


# Real JVMs


def rows_of(inprocess, *words, **options):
    done = inprocess("jvms", "-f", "json", *words, **options)
    assert done.code in (0, 1), done.err
    return {row["pid"]: row for row in json.loads(done.out)["jvms"]}


def test_a_real_jvm_of_each_version(inprocess, workload, jvm_version):
    """Found among all processes; its numbers agree with psutil's and with its own options. Nothing was sent to it."""
    jvm = workload(
        "sleep=3", "gc=50", version=jvm_version, options=("-Xms64m", "-Xmx96m", "-XX:+UseSerialGC", "-Dpw=s3cret x")
    )
    deadline = time.monotonic() + 60
    while True:  # until it has collected: the JVM writes the heap's use then, and the time at the safepoint at its end
        row = rows_of(inprocess)[jvm.pid]
        has_collected = row["gc_collections"] and row["heap_used_bytes"]
        if (has_collected and row["stopped_percent"] >= row["gc_percent"] * 0.9) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    theirs = psutil.Process(jvm.pid)
    assert row["main"] == "Workload"
    assert row["jdk_version"].split(".")[0] == str(jvm_version)
    assert row["collector"] == "Serial"
    assert row["heap_max_bytes"] == 96 << 20
    assert 0 < row["heap_used_bytes"] <= row["heap_committed_bytes"] <= 96 << 20
    assert row["user"] == theirs.username()
    assert abs(row["threads"] - theirs.num_threads()) <= 3
    assert row["rss_bytes"] == pytest.approx(theirs.memory_info().rss, rel=0.2)
    assert row["cpu_percent"] > 0
    assert row["gc_collections"] > 0
    assert row["gc_percent"] > 0
    assert row["stopped_percent"] >= row["gc_percent"] * 0.9
    assert row["attach"] is True
    assert "s3cret" not in row["vm_args"]
    assert not os.path.exists(f"/tmp/.java_pid{jvm.pid}")
    assert "Full thread dump" not in jvm.output()


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("-XX:+UseG1GC", "G1"),
        ("-XX:+UseParallelGC", "Parallel"),
        ("-XX:+UseZGC", "ZGC"),
        ("-XX:+UseShenandoahGC", "Shenandoah"),
    ],
)
def test_collectors(inprocess, workload, jvm_version, option, name):
    """Each collector's heap has the size that it was started with."""
    try:
        jvm = workload(
            "sleep=1", version=jvm_version, options=("-XX:+UnlockExperimentalVMOptions", option, "-Xmx96m", "-Xms48m")
        )
    except pytest.fail.Exception:
        pytest.skip(f"this JVM has no {name}")
    row = rows_of(inprocess, jvm.pid)[jvm.pid]
    assert row["collector"].startswith(name)
    assert row["heap_max_bytes"] == 96 << 20
    assert 48 << 20 <= row["heap_committed_bytes"] <= 96 << 20


def test_jvms_that_share_no_counters_are_found_and_say_why(inprocess, workload):
    """-UsePerfData, PerfDisableSharedMem, a deleted file: root reads that all the same."""
    off = workload(options=("-Xmx64m", "-XX:-UsePerfData"))
    private = workload(options=("-Xmx64m", "-XX:+PerfDisableSharedMem"))
    cleaned = workload(options=("-Xmx64m",))
    [file] = Path("/tmp").glob(f"hsperfdata_*/{cleaned.pid}")
    file.unlink()
    rows = rows_of(inprocess)
    assert "-XX:-UsePerfData" in rows[off.pid]["no_counters"]
    assert rows[off.pid]["jdk_version"].startswith("17.")  # of the JDK's release file
    assert "-XX:+PerfDisableSharedMem" in rows[private.pid]["no_counters"]
    assert rows[private.pid]["heap_max_bytes"] is None
    assert rows[private.pid]["attach"] is True
    if os.geteuid() == 0:
        assert rows[cleaned.pid]["heap_max_bytes"] == 64 << 20
    else:
        assert "deleted" in rows[cleaned.pid]["no_counters"]


def test_whether_it_could_be_attached_to(inprocess, workload, root_only):
    """Every no has its reason, and nothing was sent to find it out."""
    disabled = workload(options=("-Xmx64m", "-XX:+DisableAttachMechanism"))
    stopped = workload(options=("-Xmx64m",))
    stopped.signal(signal.SIGSTOP)
    reduced = workload(options=("-Xmx64m", "-Xrs"))
    rows = rows_of(inprocess)
    assert rows[disabled.pid]["attach_code"] == "disabled"
    assert rows[stopped.pid]["attach_code"] == "stopped"
    assert rows[reduced.pid]["attach_code"] == "yes"  # it made its socket when it started
    os.unlink(f"/tmp/.java_pid{reduced.pid}")
    assert rows_of(inprocess, reduced.pid)[reduced.pid]["attach_code"] in ("no-signal", "needs-restart")
    done = inprocess("jvms", disabled.pid, "-f", "text")
    assert "  no:disabled  " in done.out
    assert "DisableAttachMechanism" in done.err


def test_another_users_jvms_are_there_without_their_counters(workload, as_user, tmp_path):
    """Found by names that every user may read; what missing rights hide is noted once."""
    jvm = workload(options=("-Xmx64m",))
    report = tmp_path / "report.json"
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent.stat().st_mode & 0o1000:  # never /tmp itself, nor what is above
            break
        parent.chmod(0o755)
    json_words = ["jvms", "-f", "json", "-o", str(report)]
    for name in (
        "commands.jvms",
        "render.formats.json",
        "actions.outfile",
        "jvm.attach.attachable",
        "proc.kernel.syscalls",
    ):
        importlib.import_module(f"opskit.{name}")  # another user may not be able to read it
    assert as_user(NOBODY, lambda: run(json_words)) == 0
    document = json.loads(report.read_text())
    row = {row["pid"]: row for row in document["jvms"]}[jvm.pid]
    assert (row["main"], row["attach_code"], row["heap_max_bytes"]) == ("Workload", "other-user", None)
    assert row["rss_bytes"] > 0
    assert any("only that user and root may read the counters" in note for note in document["notes"])


def test_in_a_pid_and_mount_namespace_of_its_own(inprocess, workload, root_only):
    """Its file is in its own /tmp, under the pid that it has there; the host's leftover of that name is not taken for it."""
    jvm = workload(
        "sleep=1",
        options=("-Xmx80m",),
        wrapper=(
            "unshare",
            "--fork",
            "--pid",
            "--mount",
            "--mount-proc",
            "sh",
            "-c",
            'mount -t tmpfs none /tmp && exec "$@"',
            "sh",
        ),
    )
    row = rows_of(inprocess)[jvm.pid]
    assert row["ns_pid"] == 1
    assert row["heap_max_bytes"] == 80 << 20
    assert row["attach"] is True
    text = inprocess("jvms", jvm.pid, "-f", "table").out
    assert f"{jvm.pid} (1 inside)" in text


def test_a_process_that_has_the_pid_of_a_containers_jvm(inprocess, workload, spawn, root_only):
    """They share /tmp; the file named after the pid is the container's."""
    # As another user: it removes the files of its user's JVMs whose PIDs it does not see.
    become = ("setpriv", "--reuid=1243", "--regid=1243", "--clear-groups")
    wrapper = ("unshare", "--fork", "--pid", "--mount-proc", *become)
    jvm = workload("sleep=1", options=("-Xmx80m",), wrapper=wrapper)
    rows = rows_of(inprocess)
    assert rows[jvm.pid]["ns_pid"] == 1
    assert 1 not in rows


def test_watch_gives_shares_of_the_interval(inprocess, workload):
    """CPU of a thread that burns since the last look. One object for JSON."""
    busy = workload("burn=1", options=("-Xmx64m",))
    done = inprocess("jvms", busy.pid, "-w", "-i", "500ms", "-c", "3", "-f", "json")
    document = json.loads(done.out)
    assert done.code == 0
    assert len(document["samples"]) == 3
    assert document["jvms"][0]["cpu_percent"] > 0
    blocks = inprocess("jvms", busy.pid, "-w", "-i", "200ms", "-c", "2", "-f", "text").out
    assert blocks.count("PID  NS_PID") == 2


def test_an_interval_without_watch_is_the_window(inprocess, workload):
    """Shares of that half second, not since the JVM's start; the JVM is named by a part of its main class."""
    jvm = workload("sleep=1", options=("-Xmx64m",))
    since_start = rows_of(inprocess, jvm.pid)[jvm.pid]
    now = rows_of(inprocess, jvm.pid, "-i", "500ms")[jvm.pid]
    assert since_start["cpu_percent"] > now["cpu_percent"]
    assert now["safepoints"] is not None


def test_a_jvm_by_its_name(inprocess, machine):
    """A part of the main class or jar names a JVM, an exact process name a process; several matches are listed."""
    root = ("--root", machine.root)
    [row] = json.loads(inprocess("jvms", "APP.jar", *root, "-f", "json").out)["jvms"]
    assert row["pid"] == 50
    done = inprocess("jvms", "java", *root)
    assert (done.code, done.out) == (2, "")
    assert "4 JVMs match 'java'; give the PID of one" in done.err


def test_a_target_that_ends_ends_the_watch(workload):
    """What was seen is shown."""
    jvm = workload(options=("-Xmx64m",))
    watch = subprocess.Popen(
        [sys.executable, "-m", "opskit", "jvms", str(jvm.pid), "-w", "-i", "200ms", "-f", "text"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
    )  # fmt: skip
    head = watch.stdout.readline()
    jvm.stop()
    out, err = watch.stdout.read(), watch.stderr.read()
    assert watch.wait(timeout=60) == 0
    assert head.split()[:2] == ["PID", "NS_PID"]
    assert f"no process {jvm.pid}" in err
    assert str(jvm.pid) in out


def test_ctrl_c_in_a_watch(inprocess, workload, monkeypatch):
    """What was gathered is printed as one JSON object, exit code 130."""
    jvm = workload(options=("-Xmx64m",))
    waits = []

    def interrupted(seconds):
        waits.extend([seconds] if seconds > 0.1 else ())  # shorter ones are within a look
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("opskit.host.time.sleep", interrupted)
    done = inprocess("jvms", jvm.pid, "-w", "-i", "0.4", "-f", "json")
    assert done.code == 130
    document = json.loads(done.out)
    assert [row["pid"] for row in document["jvms"]] == [jvm.pid]
    assert len(document["samples"]) == 2


def test_throttling_and_limits_of_real_cgroups(inprocess, cgroup):
    """A busy JVM with a fifth of a CPU is throttled in most periods, and reported as such."""
    v1 = os.path.exists("/sys/fs/cgroup/cpu/cgroup.procs")
    quota = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"} if v1 else {"cpu.max": "20000 100000"}
    cpu = cgroup("cpu", quota)
    limit = 3 << 30
    memory = cgroup("memory", {"memory.limit_in_bytes" if v1 else "memory.max": str(limit)})
    jvm = real.start("gc=1", "allocate=300000000", options=("-Xmx64m", "-Xint"))
    try:
        for place in (cpu, memory):
            (place / "cgroup.procs").write_text(str(jvm.pid))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            row = rows_of(inprocess, jvm.pid)[jvm.pid]
            if row["throttled_percent"] and row["throttled_percent"] > 10:
                break
            time.sleep(0.3)
        assert row["throttled_percent"] > 10
        assert row["cpu_limit_cpus"] == pytest.approx(0.2)
        assert row["memory_limit_bytes"] == limit
        assert 0 < row["memory_percent"] < 50
        done = inprocess("jvms", jvm.pid, "-i", "1s", "-f", "text")
        assert "is throttled in" in done.err
        assert "is throttled in" not in done.out
        assert done.code == 1
    finally:
        jvm.stop()


def test_it_only_reads(workload):
    """The page's safety table against strace: it writes its own oom_score_adj, and signals no process."""
    workload(options=("-Xmx64m",))
    done = traced("jvms", "-f", "json", calls=(*OPENS, *ACTS, "connect", "socket", "pidfd_open", "flock"))
    assert done.code in (0, 1)
    # Python's own: names of users may be asked of a name service daemon.
    assert [call for call in done.acting() if "nscd" not in call and "AF_UNIX" not in call] == []
