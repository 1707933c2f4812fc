"""Programs that read and write badly, and healthy busy ones: each is looked at for a moment, beside three others."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import inprocess
import jvms
import pytest
from atonce import AtOnce
from cgroups import new_cgroup
from nativeprograms import tool
from nextsteps import try_next
from slowdisk import slow_disk
from stracing import traced

from opskit.analysis.finding import is_failure
from opskit.analysis.io.judge import judge
from opskit.collect.io.collect import Collector
from opskit.collect.io.facts import Request
from opskit.host import Host
from opskit.proc.fs import ProcFS

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="cgroups and file systems need root")
SUPPORT = Path(__file__).parents[2] / "support"
PROGRAMS = SUPPORT / "ioprograms.py"
WINDOW_S, TRIES = 0.7, 6
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
at_once = AtOnce()
outcomes = at_once.fixture()


def started(command, **options):
    """A program. On a machine whose memory and disk are this busy, exec() rarely fails with EFAULT; the next one works."""
    for _ in range(TRIES):
        try:
            return subprocess.Popen(command, **options)
        except OSError as error:
            if error.errno != errno.EFAULT:
                raise
    raise AssertionError(command)


def opskit(*words, before=()):
    """The program in a process of its own: these tests run in threads."""
    command = [*before, sys.executable, "-m", "opskit", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd="/", env=ENVIRONMENT)
    return inprocess.Ran(done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def running(case, before=()):
    """The PID of a program of ioprograms.py, and its directory."""
    with tempfile.TemporaryDirectory(prefix="opskit-io-") as there:
        command = [*before, sys.executable, str(PROGRAMS), case, there]
        process = started(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            yield int(process.stdout.readline()), there
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
            process.stdout.close()


def look(pid, *, ask=False, window_s=WINDOW_S):
    return judge(Collector(Host(ProcFS()), Request(pid, window_s, ask=ask)).look())


def until(pid, is_right, **how):
    """The first answer that is right: other programs may have had the CPUs or the disk in the window."""
    for _ in range(TRIES):
        result = look(pid, **how)
        if is_right(result):
            return result
    raise AssertionError((result.verdict, result.findings, result.facts))


def codes(result):
    return {finding.code for finding in result.findings}


def finds(code, severity=None):
    return lambda result: any(each.code == code and severity in (None, each.severity) for each in result.findings)


def no_finding(case, says, *, notes=frozenset()):
    """Looks at a healthy program until it was seen at work: nothing but these notes is found, in any look."""
    with running(case) as (pid, _):
        for _ in range(TRIES):
            result = look(pid)
            assert not is_failure(result.findings), result.findings
            assert codes(result) <= notes, result.findings
            if re.search(says, result.verdict[0]):
                return result
        raise AssertionError(result.verdict)


@at_once.test
def test_a_byte_a_read():
    """The number of calls is the program's own, within a quarter: both windows do not end at the same moment."""
    with running("read_bytes") as (pid, there):
        for _ in range(TRIES):
            before = counted(there)
            result = look(pid)
            after = counted(there)
            rate = (after[0] - before[0]) / (after[1] - before[1])
            (finding,) = result.findings
            assert (finding.code, finding.severity, finding.entity.kind) == ("io-tiny-reads", "warning", "thread")
            words = rf"python\S* does ([\d,]+) reads/s of 1\.0 byte: fd \d+ {there}/lines\.txt; wrap it in a buffer"
            said = re.fullmatch(words, result.verdict[0])
            assert said, result.verdict
            if abs(int(said[1].replace(",", "")) / rate - 1) < 0.25:
                assert result.rows[0].why.startswith("1.0 byte a read")
                return
        raise AssertionError((said, rate))


def counted(there):
    """(calls, at) as the program tells them; not while it writes them."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        place = Path(there, "count")
        first, second = (place.read_bytes() if place.exists() else b"" for _ in range(2))
        if first == second and any(first):
            return struct.unpack("=dd", first)
    raise AssertionError


@at_once.test
def test_a_small_file_again_and_again():
    """Its position is somewhere else at each look, but runs on between two looks right after each other, while it has a CPU."""
    with running("small_file") as (pid, there):
        result = until(pid, finds("io-tiny-reads", "warning"), window_s=1.5)
        assert re.search(rf"reads/s of 1\.0 byte: fd \d+ {there}/small; wrap it in a buffer", result.verdict[0])


@at_once.test
def test_a_byte_a_pread():
    """No position moves, but only one open file can be read."""
    with running("pread_bytes") as (pid, there):
        result = until(pid, finds("io-tiny-reads", "warning"))
        assert re.search(rf"reads/s of 1\.0 byte: fd \d+ {there}/lines\.txt; wrap it in a buffer", result.verdict[0])
        assert result.rows[0].why.startswith("1.0 byte a read")


@at_once.test
def test_a_byte_a_read_of_a_pipe():
    """Seen asleep in read(fd, …, 1): it does ask for one byte."""
    with running("pipe_bytes") as (pid, _):
        result = until(pid, finds("io-tiny-reads", "warning"))
        assert re.search(r"reads/s of 1\.0 byte: fd \d+ pipe:\[\d+\]; wrap it in a buffer", result.verdict[0])


@at_once.test
def test_a_byte_a_write():
    """The file is that whose position moves."""
    with running("write_bytes") as (pid, there):
        result = until(pid, finds("io-tiny-writes", "warning"))
        assert re.search(rf"writes/s of 1\.0 byte: fd \d+ {there}/out; wrap it in a buffer", result.verdict[0])


@at_once.test
def test_a_sync_after_each_record():
    """A page for each 100 bytes, and the calls that it is seen in."""
    with running("sync_records") as (pid, there):
        skip_in_memory(there)
        result = until(pid, finds("io-sync-dominates", "warning"))
        assert "in fsync" in result.verdict[0]
        assert f"{there}/wal" in result.verdict[0]
        rates = result.rows[0].thread.rates
        assert 30 < rates.disk_written_bytes / rates.written_bytes < 50


@at_once.test
def test_writes_that_are_synchronous():
    """The same by the flags of the file."""
    with running("synchronous") as (pid, there):
        skip_in_memory(there)
        result = until(pid, finds("io-sync-dominates", "warning"))
        assert "in writes with O_SYNC" in result.verdict[0]


def skip_in_memory(there):
    """A sync of a file in memory does nothing."""
    kinds = subprocess.run([tool("stat"), "-f", "-c", "%T", there], capture_output=True, text=True, check=True).stdout
    if kinds.strip() in ("tmpfs", "ramfs"):
        pytest.skip("temporary files are in memory")


@at_once.test
def test_what_children_did():
    """A process's counters hold those of the children that it has reaped: they are no work of its own."""
    result = no_finding("children", r"its children and threads that ended: reads .* calls/s")
    assert result.facts.total.read_bytes < result.facts.ended.read_bytes


@at_once.test
def test_temporary_files():
    """What is deleted before it is stored is a note."""
    with running("temporary") as (pid, there):
        skip_in_memory(there)
        result = until(pid, finds("io-writes-cancelled", "note"))
        assert codes(result) == {"io-writes-cancelled"}


@at_once.test
def test_a_device_that_is_slow():
    """150 ms for each request: the device is named, and who waits for it is not stuck."""
    with slow_disk(delay_s=0.15) as (name, pid):
        result = until(None, lambda each: name in {found.entity.id for found in each.findings}, window_s=0.8)
        [found] = [each for each in result.findings if each.entity.id == name]
        assert (found.code, found.severity, found.entity.kind) == ("io-device-slow", "warning", "device")
        assert re.match(
            rf"{name} needs \d\d\d ms for a request: it finished \d\.\d a second, [01]\.\d at a time$",
            found.summary,
        )
        assert pid not in [each.entity.id for each in result.findings]
        try_next([found], "io-device-slow")


@at_once.test
def test_a_device_that_finishes_nothing():
    """One request that lasts: the device and who waits for it; closer looks at both give an answer."""
    with slow_disk(delay_s=600) as (name, pid):
        result = until(None, lambda each: {name, pid} <= {found.entity.id for found in each.findings}, window_s=1.0)
        found = {each.entity.id: each for each in result.findings}
        assert (found[name].code, found[name].severity, found[pid].code) == ("io-device-hung", "warning", "io-stuck")
        assert re.match(rf"{name} has finished no request for 1\.\d s, 1 is in flight; ", found[name].summary)
        assert "waits for a block device (" in found[pid].summary
        [row] = [row for row in result.devices if row.device.name == name]
        assert (row.why, row.device.queue > 0.9) == ("finishes no request", True)
        try_next([found[name]], "io-device-hung")
        with ended(["io"], signal.SIGTERM), ended(["io", pid], signal.SIGINT):
            own = until(pid, finds("io-stuck"), window_s=1.0)
        assert f": fd 3 /dev/{name} on " in own.verdict[0]


@contextlib.contextmanager
def ended(words, number):
    """Watch beside the block, end that by a signal, and check that it did not wait for the device."""
    run = [sys.executable, "-m", "opskit", *map(str, words), "-w", "-i", "0.3", "-f", "text"]
    process = started(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=SUPPORT.parents[1])
    yield
    assert process.stdout.readline()
    process.send_signal(number)
    _, error = process.communicate(timeout=20)
    assert process.returncode == (130 if number == signal.SIGINT else -number), error
    assert "Traceback" not in error


@at_once.test
def test_what_iostat_and_pidstat_tell():
    """A page read and a page written every 20 ms, each in 4 ms: the figures of both for about the same second."""
    if not (shutil.which("iostat") and shutil.which("pidstat")):
        pytest.skip("needs the Debian package sysstat")
    with slow_disk(delay_s=0.004, pace_s=0.01) as (name, pid):
        for _ in range(TRIES):
            theirs = [
                started(words, **AS_TEXT)
                for words in (
                    ["iostat", "-dxy", "-o", "JSON", name, "1", "1"],
                    ["pidstat", "-d", "-p", str(pid), "1", "1"],
                )
            ]
            ours = figures(look(None, window_s=1.0), name, pid)
            device, process = (each.communicate(timeout=60)[0] for each in theirs)
            [disk] = json.loads(device)["sysstat"]["hosts"][0]["statistics"][0]["disk"]
            seen = [*(disk[key] for key in IOSTAT), *map(float, process.splitlines()[-1].split()[3:5])]
            if all(abs(our - their) <= 0.1 * their for our, their in zip(ours, seen)):
                assert seen[0] > 5
                return
        raise AssertionError((ours, seen))


AS_TEXT = {"stdout": subprocess.PIPE, "text": True, "env": {**os.environ, "LC_ALL": "C"}}
IOSTAT = ("r/s", "w/s", "rkB/s", "wkB/s", "r_await", "w_await", "aqu-sz", "util")


def figures(result, name, pid):
    """Those of iostat, then pidstat's kB_rd/s and kB_wr/s."""
    [device] = [row.device for row in result.devices if row.device.name == name]
    [rates] = [row.process.rates for row in result.processes if row.process.process.pid == pid]
    return (
        device.reads, device.writes, device.read_bytes / 1024, device.written_bytes / 1024, device.read_await_s * 1000,
        device.write_await_s * 1000, device.queue, device.busy * 100, rates.disk_read_bytes / 1024, rates.disk_written_bytes / 1024,
    )  # fmt: skip


@at_once.test
def test_a_page_cache_that_is_too_small():
    """A file of 128 MiB in a cgroup of 48 MiB is read from disk again and again; the cgroup is named."""
    with new_cgroup("memory", f"opskit-test-io-{os.getpid()}", "memory.limit_in_bytes memory.max") as place:
        limit = next(place / name for name in ("memory.limit_in_bytes", "memory.max") if (place / name).exists())
        limit.write_text(str(48 << 20))
        with running("again", ["sh", "-c", f'echo $$ > {place}/cgroup.procs; exec "$@"', "-"]) as (pid, there):
            skip_in_memory(there)
            result = until(pid, finds("io-cache-thrash", "warning"))
            assert f"the page cache of /{place.name} is too small, its memory limit is 48.0 MiB" in result.verdict[0]
            assert result.facts.cgroup.path == f"/{place.name}"
            try_next(result.findings, "io-cache-thrash", run=opskit)
            assert result.rows[0].file.path == f"{there}/again"


@at_once.test
def test_a_limit_of_its_cgroup():
    """1 MiB/s of reads: who is throttled, and by what."""
    with running("direct") as (pid, there), throttled(pid, there) as place:
        result = until(pid, finds("io-cgroup-throttled", "warning"))
        assert f"its cgroup /{place.name} may do 1.0 MiB/s of reads on " in result.verdict[0]


@contextlib.contextmanager
def throttled(pid, there):
    """The process in a cgroup of blkio (or io) with a limit for the disk of a directory. Or skip."""
    found = os.stat(there).st_dev
    disk = whole_disk(f"{os.major(found)}:{os.minor(found)}")
    wanted = "blkio.throttle.read_bps_device io.max"
    for controller in ("blkio", "io"):
        name = f"opskit-test-io-{os.getpid()}"
        with contextlib.suppress(pytest.skip.Exception), new_cgroup(controller, name, wanted) as place:
            old = place / "blkio.throttle.read_bps_device"
            try:
                if old.exists():
                    old.write_text(f"{disk} 1048576")
                else:
                    (place / "io.max").write_text(f"{disk} rbps=1048576")
            except OSError as error:
                pytest.skip(f"no limit for {disk}: {error}")
            (place / "cgroup.procs").write_text(str(pid))
            try:
                yield place
            finally:
                os.kill(pid, 9)
            return
    pytest.skip("needs a cgroup that limits devices")


def whole_disk(device):
    """Of a partition its disk: limits are for disks."""
    place = Path("/sys/dev/block", device)
    if not place.exists():
        pytest.skip("temporary files are on no block device")
    place = place.resolve()
    return (place.parent / "dev").read_text().strip() if (place / "partition").exists() else device


def both_are_found(result):
    """Whether two threads are found, each with its file, in readLine(): one may have had no CPU, or be in another method."""
    known = [
        row
        for row in result.rows
        if row.file and any("RandomAccessFile.readLine" in each for each in row.thread.frames)
    ]
    return len(known) > 1 and any(each.summary.endswith("; 1 more thread does the same") for each in result.findings)


@at_once.test
def test_a_jvm_that_reads_lines_unbuffered():
    """Each worker with its own file, its whole name and its Java stack."""
    with tempfile.TemporaryDirectory(prefix="opskit-io-") as there:
        files = [f"{there}/lines-{number}.txt" for number in (1, 2)]
        for file in files:
            Path(file).write_bytes(b"0123456789abcde\n" * (1 << 20))
        command = [jvms.java(21), "-Xmx64m", "-cp", jvms.classes(), "ReadLines", *files]
        jvm = jvms.run(command)
        try:
            traced("io", jvm.pid, "--ask", "-i", "0.1").only_started_the_listener(jvm.pid)
            result = until(jvm.pid, both_are_found, ask=True)
            rows = {row.thread.name: row for row in result.rows}
            for number in (1, 2):
                row = rows[f"csv-import-worker-{number}"]
                assert row.file.path == files[number - 1]
            (finding,) = [each for each in result.findings if each.severity == "warning"]
            assert re.match(r"csv-import-worker-\d does [\d,]+ reads/s of 1\.0 byte: fd \d+ ", finding.summary)
            assert "RandomAccessFile.readLine < ReadLines.load" in result.verdict[-1]
        finally:
            jvm.stop()


FUSE = """
import ctypes, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from silentfuse import SilentFuse
if ctypes.CDLL(None).unshare(0x20000): sys.exit("unshare")
ctypes.CDLL(None).mount(b"none", b"/", None, ctypes.c_ulong(0x44000), None)
try: server = SilentFuse(sys.argv[2])
except OSError: print("none", flush=True); sys.exit()
code = f"import os; fd = os.open({sys.argv[2]!r} + '/data', os.O_RDWR); os.read(fd, 4096); print(flush=True); input(); {sys.argv[3]}"
reader = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
reader.stdout.readline()
server.silent.set()
reader.stdin.write(b"x\\n"); reader.stdin.flush()
print(reader.pid, flush=True)
sys.stdin.readline()
reader.kill()
ctypes.CDLL(None).umount2(os.fsencode(sys.argv[2]), 2)
os._exit(0)
"""


@contextlib.contextmanager
def hung_process(code):
    """The PID of a process that runs this with `fd`, a file of a FUSE server that has stopped to answer, and the mount point."""
    with tempfile.TemporaryDirectory(prefix="opskit-io-") as there:
        command = [sys.executable, "-c", FUSE, str(SUPPORT), there, code]
        process = started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline().strip()
            if line == "none":
                pytest.skip("cannot mount a FUSE file system")
            yield int(line), there
        finally:
            process.communicate("\n", timeout=60)


def hung(code, call):
    """A thread that waits for that server: the mount, the call, and for how long."""
    with hung_process(code) as (pid, there):
        result = until(pid, finds("io-stuck"), window_s=1.0)
        (finding,) = result.findings
        assert finding.severity in ("warning", "error")
        assert f"(request_wait_answer), in {call}: fd 3 {there}/data on fuse" in finding.summary
        assert finding.entity.id == pid
        try_next(result.findings, "io-stuck")
        row = result.rows[0]
        assert row.thread.rates.read_bytes == 0
        assert row.thread.asleep_s > 0.9


@at_once.test
def test_a_read_from_a_server_that_does_not_answer():
    """Its state is S: a signal could end the wait."""
    hung("os.pread(fd, 4096, 512 << 20)", "pread64")


@at_once.test
def test_a_write_to_a_server_that_does_not_answer():
    """The same for writes."""
    hung("os.pwrite(fd, b'x' * 9000, 0)", "pwrite64")


@at_once.test
def test_the_machine_names_who_waits_for_it():
    """Where its mount is seen: a look at a name, whose state is S."""
    with hung_process("os.fstatvfs(fd)") as (pid, _):
        for _ in range(TRIES):
            done = opskit("io", "-i", "1", "-f", "json", before=[tool("nsenter"), "-m", "-t", str(pid)])
            found = [each for each in json.loads(done.out)["findings"] if each["entity"]["id"] == str(pid)]
            if found:
                break
        (finding,) = found
        assert (finding["code"], finding["next"]) == ("io-stuck", f"opskit io {pid}")
        assert "waits for a FUSE server (request_wait_answer), in fstatfs" in finding["summary"]


def waiting_for_fuse(pid):
    """How many threads of a process do."""
    return sum(path.read_text() == "request_wait_answer" for path in Path(f"/proc/{pid}/task").glob("*/wchan"))


@at_once.test
def test_many_threads_that_wait_for_it():
    """More than are looked at: those are counted, and how many there are is told."""
    code = "import threading; [threading.Thread(target=os.pread, args=(fd, 9, n << 20)).start() for n in range(1, 131)]"
    with hung_process(code) as (pid, _):
        deadline = time.monotonic() + 30
        while waiting_for_fuse(pid) < 130 and time.monotonic() < deadline:
            time.sleep(0.02)
        result = until(pid, finds("io-stuck"), window_s=1.0)
        (finding,) = result.findings
        assert re.match(r"at least 1\d\d threads \(\S+, …\) have not run for ", finding.summary)
        assert (finding.entity.kind, finding.entity.id) == ("process", pid)
        assert "; 130 threads waited for storage at the begin" in finding.evidence


@at_once.test
def test_a_copy_is_healthy():
    """Large calls, from one file to another."""
    result = no_finding("copy", r"reads \d.* .iB/s in .* calls/s.* and writes .* .iB/s")
    assert {"source", "target"} & {Path(file.path).name for file in result.facts.files}


@at_once.test
def test_a_database_is_healthy():
    """Pages at random places, all from disk."""
    no_finding("pages", r"reads .*/s in [\d,]+ calls/s")


@at_once.test
def test_direct_io_is_healthy():
    """Each byte is from disk, and most of the time it waits for it."""
    no_finding("direct", r"100 % from disk|9\d(\.\d)? % from disk")


@at_once.test
def test_a_mapped_file():
    """No call at all: page faults fetch it."""
    no_finding("mapped", r"fetches .* MiB/s from disk by page faults")


@at_once.test
def test_asynchronous_io():
    """No call counts it, and it is no page fault."""
    with tempfile.TemporaryDirectory(prefix="opskit-io-") as there:
        skip_in_memory(there)
    no_finding("asynchronous", r"fetches .* MiB/s from disk without read calls \(AIO, io_uring\)")


@at_once.test
def test_a_log_is_healthy():
    """A line a call is what its readers want; at most a note."""
    no_finding("log", r"writes", notes={"io-tiny-writes"})


@at_once.test
def test_a_server_with_small_requests_is_healthy():
    """Each read asks for 64 KiB and gets what there is."""
    no_finding("answer", r"reads .* calls/s and writes")


@at_once.test
def test_a_receiver_is_healthy():
    """recv(2) is in no counter: it has read nothing, and that is no finding."""
    no_finding("receive", r"has read and written nothing")


@at_once.test
def test_wake_ups_are_healthy():
    """One byte each, by a pipe, with a buffer of 64."""
    no_finding("wake", r"reads")


@at_once.test
def test_small_records_at_random_places():
    """A buffer would not help where the position is set between the reads: a note at most, with this advice."""
    no_finding("seek", r"it seeks between them: map the file or cache it$", notes={"io-tiny-reads"})


@at_once.test
def test_an_agent_that_reads_proc_is_healthy():
    """Small files, opened and closed."""
    no_finding("proc_files", r"reads")


@at_once.test
def test_an_idle_process():
    """Nothing in the window."""
    no_finding("idle", r"has read and written nothing in 0?\.?\d+")
