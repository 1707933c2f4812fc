"""opskit mem on real processes: rows, formats, -w, a cgroup's limit, rights, what has no memory, and every bad usage."""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from xml.etree import ElementTree as ET

import promtext
import pytest
from answers import answer, no_thread, no_zombie, refused, valid
from imports import HEAVY, imported
from shells import NOBODY
from stracing import traced
from terminal import on_terminal

from opskit.proc.ranges import KINDS

MIB = 1 << 20
HOLD = """
import ctypes, mmap, sys
kept = [mmap.mmap(-1, 24 << 20)]
for at in range(0, 24 << 20, 4096): kept[0][at] = 1
libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.malloc.argtypes = [ctypes.c_size_t]
for _ in range(8):
    block = libc.malloc(1 << 20); ctypes.memset(block, 1, 1 << 20)
print("ready", flush=True); sys.stdin.read()
"""
GROW = """
import sys, time
kept = []
print("ready", flush=True)
while len(kept) < 400: kept.append(bytearray(range(256)) * 4096); time.sleep(0.05)
"""


@pytest.fixture
def holder(spawn):
    """A Python process with 24 MiB of a mapping and 8 blocks of 1 MiB of malloc, which waits for its input."""
    process = spawn(HOLD, stdin=subprocess.PIPE)
    before = None
    while before != (before := rollup(process.pid)):
        time.sleep(0.05)
    return process


@pytest.fixture
def of_process(inprocess):
    """The JSON object of a process, valid by its schema."""
    return partial(answer, inprocess, "mem")


def rollup(pid):
    """The sums of smaps_rollup in bytes."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        pairs = [line.split() for line in file.readlines()[1:]]
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in pairs}


def test_the_rows_sum_up_to_the_resident_memory(holder, of_process):
    """Each kind once; the mapping and malloc's blocks are where they belong."""
    document = of_process(holder.pid)
    kernel = rollup(holder.pid)
    assert document["total"]["rss_bytes"] == kernel["Rss"]
    assert sum(row["rss_bytes"] for row in document["rows"]) == pytest.approx(kernel["Rss"], rel=0.001)
    assert sum(row["pss_bytes"] for row in document["rows"]) == pytest.approx(kernel["Pss"], rel=0.05)
    rows = {row["kind"]: row for row in document["rows"]}
    assert len(rows) == len(document["rows"])
    assert 8 * MIB <= rows["malloc-mmapped"]["rss_bytes"] <= 10 * MIB
    assert sum(rows[kind]["rss_bytes"] for kind in ("unnamed", "shared-memory") if kind in rows) >= 24 * MIB
    assert document["process"]["pid"] == holder.pid
    assert document["jvm"] is None
    assert document["uses"] is None
    assert document["files"] is None


@pytest.mark.parametrize("format_", ["table", "text", "markdown", "prometheus", "svg"])
def test_every_format_of_a_real_process(inprocess, holder, format_):
    """The same figures in each."""
    done = inprocess("mem", holder.pid, "-f", format_)
    assert done.code in (0, 1)
    if format_ == "prometheus":
        samples = promtext.parse(done.out)
        assert promtext.value(samples, "opskit_mem_process_rss_bytes", pid=holder.pid) == rollup(holder.pid)["Rss"]
    elif format_ == "svg":
        ET.fromstring(done.out)  # noqa: S314  (our own)
    else:
        assert f"{holder.pid} (python" in done.out
        assert ("malloc-mmapped" if format_ == "text" else KINDS["malloc-mmapped"]) in done.out


@pytest.mark.parametrize("options", [(), ("--files",)], ids=" ".join)
@pytest.mark.parametrize("format_", ["table", "text", "json", "markdown", "prometheus"])
def test_the_machine_and_its_files_in_every_format(inprocess, options, format_):
    """Without a process, and with --files; both in the same schema and as metrics."""
    done = inprocess("mem", *options, "-f", format_)
    assert done.code in (0, 1), done.err
    if format_ == "json":
        document = valid("mem", done.out)
        assert document["rows"] is None
        assert document["files" if options else "uses"]
    elif format_ == "prometheus":
        assert promtext.parse(done.out)


def test_files_of_one_process(inprocess, of_process):
    """--files with a PID lists what this process holds."""
    size = 3 * MIB
    fd = os.memfd_create("opskit-test-held")
    try:
        os.ftruncate(fd, size)
        with mmap.mmap(fd, size) as mapped:
            mapped[:] = b"x" * size
            done = inprocess("mem", os.getpid(), "--files", "-f", "json")
            rows = json.loads(done.out)["files"]
    finally:
        os.close(fd)
    [held] = [row for row in rows if "opskit-test-held" in row["name"]]
    assert held["resident_bytes"] == size
    assert [each["pid"] for each in held["holders"]] == [os.getpid()]


def test_a_watch_shows_what_grows(inprocess, spawn):
    """Slopes in JSON, which are those of the samples; a block a sample in text."""
    growing = spawn(GROW)
    done = inprocess("mem", growing.pid, "-w", "-i", "0.25", "-c", "6", "-f", "json")
    document = valid("mem", done.out)
    assert len(document["samples"]) == 6
    first, last = document["samples"][0], document["samples"][-1]
    rise = last["rss_bytes"] - first["rss_bytes"]
    assert rise > 2 * MIB
    slopes = {slope["kind"]: slope["bytes_per_s"] for slope in document["slopes"]}
    assert slopes["rss"] == pytest.approx(rise / (last["at_s"] - first["at_s"]), rel=0.5)
    out = inprocess("mem", growing.pid, "-w", "-i", "0.1", "-c", "3", "-f", "text").out
    assert out.count("AT_S") == 3


def test_a_watch_ends_with_its_process(inprocess, spawn):
    """One line says so; what was seen is shown."""
    short = spawn("import time; print(1, flush=True); time.sleep(2)")
    done = inprocess("mem", short.pid, "-w", "-i", "0.3", "-c", "30", "-f", "json")
    assert done.code in (0, 1)
    assert f"opskit: no process {short.pid}" in done.err
    assert json.loads(done.out)["samples"]


def test_a_picture_of_a_watch(inprocess, spawn, tmp_path):
    """Areas over time."""
    growing = spawn(GROW)
    path = tmp_path / "mem.svg"
    assert inprocess("mem", growing.pid, "-w", "-i", "0.1", "-c", "4", "-o", path).code in (0, 1)
    text = path.read_text()
    assert text.count("<polygon") > 2
    assert "seconds since the first sample" in text


def test_a_process_near_its_limit(opskit, cgroup, spawn):
    """In a cgroup of 64 MiB: the limit is the verdict's; 90 % of it is a warning, and exit code 1."""
    place = cgroup("memory", {})
    limit = place / ("memory.limit_in_bytes" if (place / "memory.limit_in_bytes").exists() else "memory.max")
    if not limit.exists():
        pytest.skip("needs the memory controller")
    limit.write_text(str(64 * MIB))
    code = "import os, sys\nopen(sys.argv[1], 'w').write(str(os.getpid()))\nkept = bytearray(60 << 20)\nfor at in range(0, 60 << 20, 4096): kept[at] = 1\nprint(1, flush=True)\nsys.stdin.read()"
    held = spawn(code, place / "cgroup.procs", stdin=subprocess.PIPE)
    done = opskit("mem", held.pid, "-f", "json")
    document = json.loads(done.out)
    assert done.code == 1
    assert document["levels"][0]["limit_bytes"] == 64 * MIB
    assert document["headroom"]["cgroup"] == document["levels"][0]["path"]
    assert 0 <= document["headroom"]["left_bytes"] < 4 * MIB
    assert "memory-near-limit" in [finding["code"] for finding in document["findings"]]
    assert (
        f"the limit leaves {document['headroom']['left_bytes'] / MIB:.1f} MiB (64 MiB, cgroup "
        in document["verdict"][0]
    )


def test_a_jvm_that_does_not_fit_can_be_killed(opskit, cgroup, workload):
    """The verdict names the heap, what is left and both ways out; on 80 x 24 with the largest rows."""
    place = cgroup("memory", {})
    limit = place / ("memory.limit_in_bytes" if (place / "memory.limit_in_bytes").exists() else "memory.max")
    if not limit.exists():
        pytest.skip("needs the memory controller")
    limit.write_text(str(200 * MIB))
    enter = f'echo $$ > {place / "cgroup.procs"} && exec "$@"'
    jvm = workload("retain=100", options=("-Xmx256m",), wrapper=("sh", "-c", enter, "sh"))
    code, out = on_terminal("mem", str(jvm.pid))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", out).replace("\r", "")
    assert code == 1, shown
    assert re.search(
        rf"^{jvm.pid} \(Workload\) can be killed: the heap may still grow \d+ MiB \([\d.]+( [KG]iB)? of -Xmx256m resident\); "
        rf"the limit leaves \d+ MiB \(200 MiB, cgroup \S+\)\. Fix: -Xmx\d+m, or a limit of \d+ MiB\.$",
        shown, re.MULTILINE,
    ), shown  # fmt: skip
    assert "total (RSS)" in shown
    assert "  next: opskit " in shown
    assert sum(-(-max(len(line), 1) // 80) for line in shown.splitlines()) <= 24, shown


def test_another_users_process(as_nobody, holder):
    """The sums and the limits, and how to see more; its own process in full."""
    done = as_nobody("mem", holder.pid, "-f", "json")
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert document["rows"] == []
    assert document["total"]["rss_bytes"] > 30 * MIB
    assert "ermission denied" in document["why_sums_only"]
    assert any(f"sudo opskit mem {holder.pid}" in line or "CAP_SYS_PTRACE" in line for line in document["missing"])
    with subprocess.Popen(["sleep", "60"], user=NOBODY, group=NOBODY, extra_groups=[]) as own:
        try:
            document = json.loads(as_nobody("mem", own.pid, "-f", "json").stdout)
        finally:
            own.kill()
    assert document["why_sums_only"] is None
    assert "libraries" in [row["kind"] for row in document["rows"]]


def test_a_jvm_whose_memory_may_not_be_read(root_only, workload):
    """Root without CAP_SYS_PTRACE, as in a container: the heap is unknown, and nothing that may be the heap is called malloc."""
    jvm = workload("retain=100")
    drop = ("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace")
    done = subprocess.run(
        [*drop, sys.executable, "-m", "opskit", "mem", str(jvm.pid), "-f", "json"], capture_output=True, check=False
    )
    assert done.returncode == 0, done
    document = json.loads(done.stdout)
    assert document["jvm"]["heap_used_bytes"] is None or "vmStructs" not in document["jvm"]["sources"]
    assert "how far the heap may grow is unknown" in document["verdict"][0]
    assert (document["suspects"], document["headroom"]["growths"]) == ([], [])
    assert any("CAP_SYS_PTRACE" in line for line in document["missing"] + document["jvm"]["missing"])


def test_nothing_is_written_sent_or_stopped(holder):
    """As its safety table says."""
    for words in (("mem", holder.pid), ("mem",), ("mem", "--files")):
        done = traced(*words, "-f", "text")
        assert done.code in (0, 1), done.err
        # cachestat(2), whose name this strace may not know, reads how much of a file is in memory.
        assert [call for call in done.acting() if not call.startswith("syscall_0x1c3(")] == [], words


def test_a_jvm_is_not_asked_unless_told(workload):
    """No signal, no trigger file, no socket: its attach listener stays off."""
    jvm = workload("sleep=1")
    done = traced(
        "mem", jvm.pid, "-f", "text", calls=("kill", "tgkill", "pidfd_send_signal", "connect", "ptrace", "unlink")
    )
    assert done.code in (0, 1)
    assert not [call for call in done.calls if "nscd" not in call]
    asked = traced("mem", jvm.pid, "--ask", "-f", "text")
    asked.only_started_the_listener(jvm.pid)


def test_the_environment_is_never_shown(inprocess, workload):
    """Neither of a JVM nor of another process, in no format."""
    jvm = workload("sleep=1", env={**os.environ, "OPSKIT_TEST_SECRET": "swordfish"})
    for format_ in ("table", "text", "json", "prometheus", "svg"):
        done = inprocess("mem", jvm.pid, "-v", "--ask", "-f", format_)
        assert "swordfish" not in done.out + done.err
        assert done.code in (0, 1)


def test_imports(holder):
    """Text needs no heavy module; a process does not need the machine's and the files' modules."""
    modules = imported("mem", holder.pid, "-f", "text")
    assert not modules & (HEAVY - {"ctypes"})
    assert not modules & {"opskit.collect.mem.host", "opskit.collect.mem.files", "opskit.render.views.mem.document"}
    assert "opskit.jvm.memory.vmstructs" not in modules, "of a process that is no JVM"


def test_a_thread_of_a_process(inprocess, spawn):
    """As top -H shows it: it has the memory of its process, and the JVM's structures are not found by it."""
    no_thread(inprocess, "mem", spawn)


def test_a_zombie_a_kernel_thread_and_nobody(inprocess):
    """Each has one line and exit code 2."""
    no_zombie(inprocess, "mem", "opskit: {pid} (true) is a zombie")
    if os.path.exists("/proc/2/comm") and open("/proc/2/comm").read() == "kthreadd\n":  # noqa: SIM115
        done = inprocess("mem", 2)
        assert (done.code, done.err) == (2, "opskit: 2 (kthreadd) is a kernel thread, which has no memory of its own\n")


BAD = {
    ("--exact",): "opskit: --exact goes with a process and without --files: opskit mem PID",
    ("--ask",): "opskit: --ask goes with a process and without --files: opskit mem PID",
    ("1", "--files", "--ask"): "opskit: --ask goes with a process and without --files: opskit mem PID",
    ("-f", "svg"): "opskit: a picture is drawn of a process: opskit mem PID -o mem.svg",
    ("--files", "-o", "/tmp/x.svg"): "opskit: a picture is drawn of a process: opskit mem PID -o mem.svg",
    ("1", "-c", "3"): "opskit: -c/--count goes with -w/--watch: add --watch",
    ("0",): "opskit: '0' is not a PID",
    ("no-such-program",): "opskit: mem: 'no-such-program' is not a PID",
    ("1", "-o", "/tmp/x.png"): "opskit: -o /tmp/x.png: unknown suffix '.png'; known are .txt",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_usage(inprocess, words):
    """One line, exit code 2, nothing on stdout."""
    done = inprocess("mem", *words)
    refused(done, BAD[words])
    assert done.err.count("\n") == 1


def test_several_processes_of_that_name(inprocess, spawn, tmp_path):
    """They are listed."""
    name = f"mem-{os.getpid()}"
    program = shutil.copy("/bin/sleep", tmp_path / name)
    started = [subprocess.Popen([program, "60"]) for _ in range(2)]
    try:
        time.sleep(0.1)
        done = inprocess("mem", name)
        assert done.code == 2
        assert all(str(each.pid) in done.err for each in started)
        started[0].kill()
        started[0].wait()
        assert inprocess("mem", name, "-f", "text").code in (0, 1)
    finally:
        for each in started:
            each.send_signal(signal.SIGKILL)
            each.wait()


def test_exact_says_first_what_it_takes(inprocess, holder):
    """On stderr: the estimated time, and that it pauses nothing. Of what cannot be read nothing is estimated."""
    done = inprocess("mem", holder.pid, "--exact", "-f", "json")
    assert done.code in (0, 1)
    assert re.fullmatch(
        rf"opskit: --exact reads each mapping and each free block of malloc of {holder.pid}: about 15\d ms of CPU time, "
        rf"and 4 s for each million of free blocks; {holder.pid} is not paused\n",
        done.err,
    )
    assert json.loads(done.out)["rows"]
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert inprocess("mem", ended.pid, "--exact") == (2, "", f"opskit: no process {ended.pid}\n")


def test_a_copy_has_no_growth(inprocess, tree):
    """-w needs a machine that moves."""
    root = tree({"proc/1/status": "Name:\tx\n", "proc/meminfo": "MemTotal: 4 kB\n"})
    done = inprocess("mem", "1", "--root", root, "-w", "-c", "2")
    assert done.code == 2
    assert "which has no rates" in done.err
