"""A CPU profile of real programs: JVMs, native ones, programs that end or become another one."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading

import pytest
from stracing import needs_strace
from users import reserved_user

from opskit.collect import cpu_target
from opskit.collect.cpu_profile import CpuProfile, profile
from opskit.collect.cpu_target import CpuTarget
from opskit.errors import NoSuchProcess, NotPermitted
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.kernel.cpu_samples import CpuSampler

BUSY = """
import hashlib, sys, threading
data, go = bytes(1 << 20), threading.Event()
def burn():
    go.wait()
    while True:
        hashlib.sha256(data).digest()
for _ in range(int(sys.argv[1])):
    threading.Thread(target=burn, daemon=True).start()
print("ready")
go.set()
sys.stdin.read()
"""
pytestmark = pytest.mark.usefixtures("perf_events")


@pytest.fixture
def perf_events(root_only):
    """Skip where this machine refuses perf events even to root."""
    from opskit.collect.cpu_rights import why_not

    reason = why_not(Host(ProcFS()), os.getppid())
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture
def host():
    return Host(ProcFS())


def whole(run: CpuProfile) -> float:
    """The share of the walks that end at a thread's entry."""
    ends = {end: count for end, count in run.ends.items() if end != "none"}
    return ends.get("root", 0) / sum(ends.values())


def test_a_jvm(host, workload, jvm_version):
    """Each thread by its full name, with its share of the CPU; each stack down to the thread's entry."""
    jvm = workload("burn=4:2", "sleep=3", version=jvm_version)
    run = profile(host, jvm.pid, 499, 0.8)
    assert (run.scope, run.ended, run.missing, run.lost) == ("cpus", None, (), 0)
    assert whole(run) >= 0.95
    assert 0.7 < run.explained_share < 1.4
    by_name = {thread.name: thread for thread in run.threads.values()}
    assert {"burn-4", "burn-2"} <= by_name.keys()
    share = by_name["burn-4"].samples / (by_name["burn-4"].samples + by_name["burn-2"].samples)
    used = by_name["burn-4"].cpu_ms / (by_name["burn-4"].cpu_ms + by_name["burn-2"].cpu_ms)
    assert abs(share - used) < 0.2
    busy = {key for key in run.stacks if key.tid in run.threads and run.threads[key.tid].name.startswith("burn-")}
    methods = {frame.name for key in busy for frame in key.frames}
    assert "Workload.work" in methods
    assert run.debug_non_safepoints is False
    assert sum(run.stacks.values()) == run.samples == sum(run.ends.values())


def test_a_native_program(host, spawn):
    """Its stacks go down to the thread's entry; it is no JVM."""
    process = spawn(BUSY, 2, stdin=subprocess.PIPE)
    run = profile(host, process.pid, 499, 0.6)
    assert run.debug_non_safepoints is None
    assert whole(run) >= 0.95
    assert 0.7 < run.explained_share < 1.4
    names = {frame.name for key in run.stacks for frame in key.frames if frame.kind == "native"}
    assert any("EVP_Digest" in name or "SHA256" in name.upper() or "sha" in name.lower() for name in names), names


@pytest.mark.parametrize(("scope", "least"), [("cpus", 0.5), ("threads", 0)])
def test_a_hundred_busy_threads(host, spawn, scope, least):
    """Fewer than 1 % of the samples are lost, although opskit has to compete for the CPUs."""
    process = spawn(BUSY, 100, stdin=subprocess.PIPE)
    run = profile(host, process.pid, 99, 1.2, scope=scope)
    assert run.elapsed_s < 5
    # An event of a thread on a CPU gives its first sample after a whole period.
    assert run.samples * 1000 / 99 >= least * sum(thread.cpu_ms for thread in run.threads.values())
    assert run.lost < 0.01 * run.samples


def test_the_end_of_the_process_ends_the_run(host, spawn):
    """What was sampled until then is the result; its CPU time is unknown."""
    process = spawn(BUSY, 2, stdin=subprocess.PIPE)
    killer = threading.Timer(0.5, process.kill)
    killer.start()
    reaper = threading.Thread(target=process.wait)
    reaper.start()
    run = profile(host, process.pid, 199, 30.0)
    reaper.join()
    assert run.ended == "exited"
    assert run.elapsed_s < 5
    assert run.samples > 10
    assert run.cpu_ms is None
    with pytest.raises(NoSuchProcess):
        profile(host, process.pid, 99, 1.0)


def test_an_end_shortly_before_the_end_of_the_run(host, spawn):
    """It is noticed, too."""
    process = spawn("import sys; print('ready'); sys.stdin.read(1)", stdin=subprocess.PIPE)
    ender = threading.Timer(0.2, lambda: (process.stdin.close(), process.wait()))
    ender.start()
    run = profile(host, process.pid, 99, 0.6)
    ender.join()
    assert (run.ended, run.cpu_ms) == ("exited", None)
    process.stdin = None


def test_the_end_of_a_jvm(host, workload):
    """Its memory is gone before the last samples are unwound: their stacks are incomplete."""
    jvm = workload("burn=4:2", "virtualburn=1", version=21)
    killer = threading.Timer(0.5, jvm.process.kill)
    killer.start()
    run = profile(host, jvm.pid, 499, 30.0)
    assert run.ended == "exited"
    assert run.elapsed_s < 5
    assert run.ends["root"] > 0


def test_a_jvm_that_is_starting(host, workload):
    """Its tables are found once they are there."""
    jvm = workload("burn=1", version=17, ready=False)
    run = profile(host, jvm.process.pid, 199, 1.8)
    kinds = {frame.kind for key in run.stacks for frame in key.frames}
    assert kinds & {"interpreted", "c1", "compiled"}
    assert run.missing == ()


def test_a_jvm_that_starts_slowly():
    """Its tables are looked for as long as the run lasts, ever less often."""

    class Counting(ProcFS):
        looks = 0

        def maybe(self, parse, *parts, **options):
            self.looks += parse is cpu_target._maps_libjvm
            return super().maybe(parse, *parts, **options)

    fs = Counting()
    target = CpuTarget(Host(fs), os.getpid())
    seen = []
    for _ in range(8):
        for _ in range(100):
            target.refresh()
        seen.append(fs.looks)
    target.close()
    assert seen[-1] > seen[3] > seen[1] > 6
    assert seen[-1] < 15


def test_the_owner_of_a_process(host, as_user, spawn):
    """Without rights: events of the threads, the stacks of user code."""
    with reserved_user() as user:
        if user is None:
            pytest.skip("no system user is free")
        program = subprocess.Popen(
            ["sh", "-c", "while :; do :; done"], user=user.pw_uid, group=user.pw_gid, extra_groups=[]
        )
        try:
            run = as_user(user.pw_uid, lambda: tuple(profile(host, program.pid, 199, 0.6)), gid=user.pw_gid)
        except NotPermitted as error:
            pytest.skip(str(error))
        finally:
            program.kill()
            program.wait()
    found = CpuProfile(*run)
    assert found.scope == "threads"
    assert found.ends["root"] > 0.9 * found.samples > 5
    assert found.lost == 0


def test_ctrl_c_gives_what_there_is(host, spawn):
    """As the end of the time does."""
    process = spawn(BUSY, 1, stdin=subprocess.PIPE)
    timer = threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    seen = []
    run = profile(host, process.pid, 199, 30.0, progress=lambda samples, left_s: seen.append((samples, left_s)))
    assert run.ended == "interrupted"
    assert run.elapsed_s < 5
    assert run.samples > 10
    assert 0.5 < run.explained_share < 2
    assert seen == sorted(seen, key=lambda each: (each[0], -each[1]))
    assert 25 < seen[-1][1] < 30


def test_another_program_of_the_same_process(host, spawn):
    """After an exec, its code is read anew: the second program's functions are named."""
    code = (
        "import os, sys, threading, time; print('ready')\n"
        "threading.Timer(0.6, lambda: os.execv('/bin/sh', ['sh', '-c', 'while :; do :; done'])).start()\n"
        "while True: sum(range(999))"
    )
    process = spawn(code)
    run = profile(host, process.pid, 199, 1.4)
    assert run.ended is None
    names = {frame.name for key in run.stacks for frame in key.frames}
    assert any("Py" in name or "python" in name for name in names)
    assert names & {"[dash]", "[bash]", "[busybox]"} or any("eval" in name or "execute" in name for name in names)
    assert 0.7 < run.explained_share < 1.4


def test_deep_stacks_are_copied_further(host, spawn, monkeypatch):
    """Where 16 KiB end too many walks, 63 KiB are copied from then on, and most walks reach the entry.

    The samples of the smaller copies that were still there are unwound with the memory as it is then.
    """
    calls = []
    for owner, name in ((CpuSampler, "reopen"), (CpuTarget, "refresh"), (CpuTarget, "walk")):
        monkeypatch.setattr(owner, name, _noted(calls, getattr(owner, name)))
    code = (
        "import re, sys; sys.setrecursionlimit(9000); print('ready')\n"
        "def down(n):\n"
        "  if n: return [*map(down, [n - 1])]\n"
        "  while True: sum(map(abs, range(9999)))\n"
        "down(60)"
    )
    process = spawn(code)
    run = profile(host, process.pid, 999, 1.5)
    assert calls[calls.index("reopen") + 1] == "refresh"
    assert run.stack_bytes > 16384
    assert run.ends["dump"] > 100
    assert run.ends["root"] > 100
    assert run.ends["root"] + run.ends["dump"] > 0.95 * run.samples
    assert run.lost == 0


def _noted(calls, function):
    def call(*arguments):
        calls.append(function.__name__)
        return function(*arguments)

    return call


def test_threads_of_another_pid_namespace(host, spawn):
    """They go by the TIDs that the process itself sees."""
    inner = "import threading; print('ready', threading.get_native_id())\nwhile True: sum(range(999))"
    process = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-u", "-c", inner],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        if not line.startswith("ready"):
            pytest.skip("no PID namespaces here")
        child = int(ProcFS().read(process.pid, "task", process.pid, "children"))
        run = profile(host, child, 199, 0.6)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert [*run.threads] == [int(line.split()[1])] == [1]
    assert run.threads[1].name.startswith("python")
    assert {key.tid for key in run.stacks} == {1}


def test_a_jvm_of_another_pid_namespace(host, workload):
    """Its thread names are found by the TIDs that it sees itself."""
    # With counters it would remove the files of other tests' JVMs in /tmp, whose PIDs it does not see.
    options = ("-Xmx128m", "-XX:-UsePerfData")
    jvm = workload("burn=1", version=17, options=options, wrapper=("unshare", "--pid", "--fork", "--kill-child"))
    run = profile(host, jvm.pid, 499, 0.6)
    busiest = max(run.threads, key=lambda tid: run.threads[tid].samples)
    assert run.threads[busiest].name == "burn-1"
    assert busiest < 100
    assert whole(run) >= 0.95


def test_nothing_is_done_to_the_process(workload):
    """By strace: no signal, no connection, no ptrace, and no file opened for writing: only reads of its memory."""
    needs_strace()
    jvm = workload("burn=1", version=21)
    code = (
        "import sys; from opskit.host import Host; from opskit.proc.fs import ProcFS\n"
        "from opskit.collect.cpu_profile import profile\n"
        f"print(profile(Host(ProcFS()), {jvm.pid}, 99, 0.5).samples)"
    )
    done = subprocess.run(
        ["strace", "-f", "-qq", "-e",
         "trace=kill,tkill,tgkill,pidfd_send_signal,ptrace,connect,process_vm_writev,pwrite64,write,open,openat,openat2",
         sys.executable, "-B", "-c", code],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    calls = [
        line.split("] ", 1)[-1] for line in done.stderr.splitlines() if "nscd" not in line
    ]  # of a look-up of names
    assert int(done.stdout) > 3
    assert any(f'"/proc/{jvm.pid}/mem"' in call for call in calls)
    assert [call for call in calls if not call.startswith(("open", "write(1, ", "+++"))] == []
    assert [call for call in calls if re.search(r"O_WRONLY|O_RDWR|O_CREAT", call)] == []


def test_one_event_ring_is_left_behind_by_none(host, spawn):
    """All fds are closed, and the priority is as it was."""
    process = spawn(BUSY, 1, stdin=subprocess.PIPE)
    gc.collect()
    before = os.listdir("/proc/self/fd"), os.getpriority(os.PRIO_PROCESS, 0)
    meanwhile = set()
    profile(host, process.pid, 99, 0.5, progress=lambda *_: meanwhile.add(os.getpriority(os.PRIO_PROCESS, 0)))
    gc.collect()
    assert meanwhile == {-20}  # before the busy threads
    assert (os.listdir("/proc/self/fd"), os.getpriority(os.PRIO_PROCESS, 0)) == before
