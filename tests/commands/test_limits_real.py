"""opskit limits against the kernel: a process under each limit in turn, filled until a thread really fails to start."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import jvms
import limitcases
import pytest
from atonce import ForEach
from limitcases import Case, child, close_enough, fill, pids_cgroup, pids_root, predicted
from nextsteps import try_next
from stracing import ACTS, OPENS, traced

from opskit.analysis.limits.judge import growth, judge
from opskit.collect.limits import collect
from opskit.collect.limits.collect import Collector, request_for
from opskit.host import Host
from opskit.proc.fs import ProcFS

pytestmark = pytest.mark.usefixtures("root_only")

KERNEL = tuple(map(int, os.uname().release.split(".")[:2]))


@pytest.mark.parametrize("case", limitcases.cases(), ids=lambda case: case.words)
def test_the_limit_is_named_and_threads_left_is_how_many_start(case):
    """Within 5 % or 3 threads; once it is full, the same limit is named, with next to nothing left and exit code 1."""
    if case.cgroup and pids_root() is None:
        pytest.skip("no pids cgroup can be made here")
    options = ("--stack", str(case.stack)) if case.stack else ()
    with child(case) as process:
        said = predicted(process.pid, *options)
        real = fill(process)
        after = predicted(process.pid, *options)
    assert said["binding"] == case.limit
    assert close_enough(said["threads_left"], real), f"said {said['threads_left']}, {real} started"
    assert after["binding"] == case.limit
    assert after["threads_left"] <= 3
    row = said["limits"][0]
    assert row["name"] == case.limit
    assert row["fix"]


@pytest.mark.parametrize("room", [500 << 20, 2 << 30])
@pytest.mark.parametrize("options", [("-XX:+UseSerialGC",), ("-XX:+UseG1GC", "-Xss512k")], ids=" ".join)
def test_a_jvms_address_space(inprocess, workload, jvm_version, options, room):
    """Its heap is no malloc arena, its arenas use address space, its stacks are by -Xss: as many threads start as predicted."""
    jvm = workload(version=jvm_version, options=("-Xmx64m", *options))
    used = int(re.search(r"VmSize:\s+(\d+) kB", Path(f"/proc/{jvm.pid}/status").read_text())[1]) << 10
    resource.prlimit(jvm.pid, resource.RLIMIT_AS, (used + room, used + room))
    said = json.loads(inprocess("limits", jvm.pid, "-f", "json").out)
    real = jvm.fill()
    assert said["binding"] == "RLIMIT_AS"
    assert close_enough(said["threads_left"], real), f"said {said['threads_left']}, {real} started"


def test_a_limit_of_the_parent_cgroup_is_shown_with_its_path(inprocess):
    """The leaf says max; its parent's pids.max is the one that is named, with the file to raise it in."""
    if pids_root() is None:
        pytest.skip("no pids cgroup can be made here")
    with child(Case("pids.max", "", cgroup=(5, None))) as process:
        fill(process)
        done = inprocess("limits", process.pid)
        row = predicted(process.pid)["limits"][0]
    parent = f"/opskit-test-{os.getpid()}"
    assert done.code == 1
    assert f"can start 0 more threads: pids.max of {parent} (5, 5 in use)" in done.out
    assert row["cgroup"] == parent
    assert row["source"].endswith(f"{parent}/pids.max")
    assert row["fix"] == f"echo 64 > {row['source']}"


def test_who_fills_a_cgroup_and_how_its_threads_are_named(inprocess, workload):
    """A JVM with many threads of one name fills pids.max: it is named for itself, for its neighbour, and in a watch."""
    if pids_root() is None:
        pytest.skip("no pids cgroup can be made here")
    jvm = workload("sleep=38", version=21, options=("-Xmx64m", "-XX:+UseSerialGC"))
    neighbour = subprocess.Popen(["sleep", "600"])
    root = pids_root()
    try:
        with pids_cgroup(None, None) as leaf:
            for pid in (jvm.pid, neighbour.pid):
                (leaf / "cgroup.procs").write_text(str(pid))
            threads = len(os.listdir(f"/proc/{jvm.pid}/task"))
            (leaf.parent / "pids.max").write_text(str(threads + 10))
            host = Host(ProcFS())
            collector = Collector(host, request_for(host, jvm.pid, uses=False))
            before = judge(collector.look(), None, ())
            more = jvm.fill()
            result = judge(collector.look(), None, before.samples)
            total = threads + more
            assert growth(result.samples) == ("more-*", more, more)
            assert [each.next for each in result.findings] == [f"opskit limits {jvm.pid} --probe --in-cgroup"]
            own = inprocess("limits", jvm.pid)
            assert own.code == 1
            try_next(result.findings, "threads-none-left")  # asks first, and gets no answer
            assert f"\n38 of {total} threads are named sleep-*\n" in own.out
            of_neighbour = inprocess("limits", neighbour.pid).out
            assert (
                f"\n{jvm.pid} (java) has {total} of the {total + 1} threads in /{leaf.parent.name}; "
                f"38 of {total} threads are named sleep-*\n"
            ) in of_neighbour
            [filler] = json.loads(inprocess("limits", neighbour.pid, "-f", "json").out)["fillers"]
            assert (filler["limit"], filler["pid"], filler["threads"]) == ("pids.max", jvm.pid, total)
            assert filler["thread_names"]["more-*"] == more
            # The probe that was made is not advised again.
            probe = ("limits", neighbour.pid, "--probe", "--in-cgroup", "--yes", "-f", "json")
            [finding] = json.loads(inprocess(*probe).out)["findings"]
            assert finding["next"] == f"opskit limits {neighbour.pid} -w"
            # Nor the watch in the watch, where few threads are left: what the threads do comes next.
            (leaf.parent / "pids.max").write_text(str(total + 3))
            for pid, closer in (
                (jvm.pid, f"opskit jpmp {jvm.pid}"),
                (neighbour.pid, f"ps -L -o lwp,wchan:20,comm -p {neighbour.pid}"),
            ):
                watch = inprocess("limits", pid, "-w", "-i", "0.01", "-c", "1", "-f", "json")
                [finding] = json.loads(watch.out)["findings"]
                assert try_next([finding], "threads-nearly-none-left") == closer
            shown = subprocess.run(closer.split(), capture_output=True, text=True, check=True).stdout
            assert "sleep" in shown
            for pid in (jvm.pid, neighbour.pid):
                (root / "cgroup.procs").write_text(str(pid))
    finally:
        neighbour.kill()
        neighbour.wait()


OPEN_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 4096))
keep = os.open("/dev/null", os.O_RDONLY)
for _ in range(int(sys.argv[1]) - 4): os.dup(keep)
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("count", "severity", "words"), [(90, "warning", "10 more files"), (100, "error", "no file descriptor left")]
)
def test_open_files_that_are_nearly_used_up_come_first(inprocess, spawn, count, severity, words):
    """The first line, exit code 1, what they are, and a command that raises the limit; with headroom nothing is said."""
    process = spawn(OPEN_FILES, count, stdin=subprocess.PIPE)
    done = inprocess("limits", process.pid)
    assert done.code == 1
    assert done.out.startswith(f"open files: {count} of 100 (RLIMIT_NOFILE), {count} %")
    [finding] = json.loads(inprocess("limits", process.pid, "-f", "json").out)["findings"]
    assert (finding["code"], finding["severity"]) == ("rlimit-nearly-used", severity)
    try_next([finding], "rlimit-nearly-used")
    assert finding["summary"].startswith(words)
    assert re.match(r"\d+ files, \d+ pipes; ", finding["evidence"])
    assert finding["next"] == f"opskit fds {process.pid}"
    assert "/dev/null" in inprocess("fds", process.pid).out
    assert finding["fix"] == f"prlimit --pid {process.pid} --nofile=200:4096"
    subprocess.run(finding["fix"].split(), check=True)
    done = inprocess("limits", process.pid)
    assert done.code == 0
    assert len(done.out.splitlines()) == 2


def test_two_processes_share_what_their_user_has_left(opskit):
    """RLIMIT_NPROC counts all threads of the real uid, not those of the process."""
    case = Case("RLIMIT_NPROC", "", limitcases.rlimit("RLIMIT_NPROC", 60), uid=limitcases.UID)
    with child(Case("", "", limitcases.rlimit("RLIMIT_NPROC", 20), uid=limitcases.UID)) as first, child(case) as second:
        others = fill(first) + 1
        said = predicted(second.pid)
        assert said["threads_left"] == 60 - others - 1
        assert fill(second) == said["threads_left"]


def test_an_unprivileged_caller_gets_what_it_may_read(as_nobody):
    """Its own processes in full; another user's maps are unknown with the reason, and the rest is shown."""
    own = as_nobody("limits", "-f", "json")
    assert own.returncode in (0, 1)
    document = json.loads(own.stdout)
    assert document["threads_left"] > 0
    assert all(row["state"] != "unknown" for row in document["limits"])
    other = as_nobody("limits", os.getpid(), "-f", "json")
    assert other.returncode in (0, 1)
    rows = {row["name"]: row for row in json.loads(other.stdout)["limits"]}
    assert rows["vm.max_map_count"]["threads_left"] is None
    assert rows["vm.max_map_count"]["state"] == "unknown"
    assert "permission denied" in rows["vm.max_map_count"]["note"]
    assert rows["kernel.threads-max"]["threads_left"] > 0


ASK_FROM_INSIDE = """
import os, subprocess, sys
if sys.argv[2] == "own":
    subprocess.run(["umount", sys.argv[1]], check=True)
    subprocess.run(["mount", "-t", "cgroup", "-o", "pids", "none", sys.argv[1]], check=True)
done = subprocess.run([sys.executable, "-m", "opskit", "limits", str(os.getpid()), "-f", "json"], stdout=-1)
os.write(1, done.stdout)
"""


@pytest.mark.parametrize("mount", ["host", "own"])
def test_a_cgroup_namespace(mount):
    """From inside: with the host's mount the limit above is found, with a mount of its own it is unknown."""
    root = pids_root()
    if root is None or not (root / "release_agent").exists():
        pytest.skip("needs the pids controller in cgroup v1")
    with pids_cgroup(40, None) as leaf:
        done = subprocess.run(
            ["unshare", "-C", "-m", sys.executable, "-c", ASK_FROM_INSIDE, root, mount],
            stdout=subprocess.PIPE,
            check=False,
            preexec_fn=lambda: (leaf / "cgroup.procs").write_text(str(os.getpid())),
        )
    document = json.loads(done.stdout)
    rows = [row for row in document["limits"] if row["name"] == "pids.max"]
    if mount == "own":
        assert [row["state"] for row in rows] == ["unknown"]
        assert "the root of the cgroup namespace" in rows[0]["note"]
    else:
        assert document["binding"] == "pids.max"
        assert (rows[0]["cgroup"], rows[0]["value"]) == (f"/{leaf.parent.name}", 40)


PID_NAMESPACE = """
import json, os, subprocess, sys, threading
open("/proc/sys/kernel/pid_max", "w").write("400")
sleeper = subprocess.Popen([sys.executable, "-c", {fill!r}], stdin=-1, stdout=-1, text=True)
pid = int(sleeper.stdout.readline())
done = subprocess.run([sys.executable, "-m", "opskit", "limits", str(pid), "-f", "json"], stdout=-1, text=True)
sleeper.stdin.write("go\\n")
sleeper.stdin.flush()
real = int(sleeper.stdout.readline())
sleeper.kill()
said = json.loads(done.stdout)
print(json.dumps([said["binding"], said["threads_left"], real]))
"""


@pytest.mark.skipif(KERNEL < (6, 14), reason="pid_max is of the whole machine before Linux 6.14")
def test_a_pid_namespace_with_a_pid_max_of_its_own():
    """Seen from inside, kernel.pid_max is the namespace's."""
    code = PID_NAMESPACE.format(fill=limitcases.FILL.format(prepare=""))
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    binding, said, real = json.loads(done.stdout)
    assert binding == "kernel.pid_max"
    assert close_enough(said, real), f"said {said}, {real} started"


def test_a_filter_that_sends_clone3_on_to_clone_stops_nothing():
    """ENOSYS, as today's container runtimes answer: glibc goes on to clone()."""
    case = Case("", "", lambda: limitcases.refuse_clone3(38))
    with child(case) as process:
        rows = {row["name"]: row for row in predicted(process.pid)["limits"]}
        process.stdin.write("go\n")  # it was not disturbed: its read() goes on
    assert rows["seccomp"]["state"] == "unlimited"


def test_libseccomps_own_filter_is_understood():
    """The program that libseccomp makes, not ours."""
    library = shutil.which("ldconfig") and next(Path("/usr/lib").rglob("libseccomp.so.2"), None)
    if not library:
        pytest.skip("needs the Debian package libseccomp2")
    load = f"""
import os
library = ctypes.CDLL({str(library)!r})
library.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(library.seccomp_init(0x7FFF0000))
number = library.seccomp_syscall_resolve_name(b"clone3")
assert library.seccomp_rule_add_exact(context, ctypes.c_uint32(0x00050001), number, 0) == 0
assert library.seccomp_load(context) == 0
"""
    with child(Case("seccomp", "", prepare=load)) as process:
        said = predicted(process.pid)
        real = fill(process)
    assert (said["binding"], said["threads_left"], real) == ("seccomp", 0, 0)


MUSL = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *rest(void *_) { pause(); return _; }
int main(void) {
  pthread_t thread; int started = 0; char line[9];
  printf("%d\n", getpid()); fflush(stdout);
  read(0, line, 1);
  while (!pthread_create(&thread, 0, rest, 0)) started++;
  printf("%d\n", started); fflush(stdout);
  read(0, line, 8);
  return 0;
}
"""


def test_musl_has_stacks_of_its_own_and_gets_a_range(tmp_path):
    """RLIMIT_STACK does not matter to it; under RLIMIT_AS the real number lies in the predicted range."""
    if not shutil.which("musl-gcc") or not shutil.which("gcc"):
        pytest.skip("needs the Debian packages gcc and musl-tools")
    program = tmp_path / "fill"
    subprocess.run(["musl-gcc", "-o", program, "-x", "c", "-"], input=MUSL, text=True, check=True)
    limit = limitcases.rlimit("RLIMIT_AS", 64 << 20)
    with subprocess.Popen([program], stdin=-1, stdout=-1, text=True, preexec_fn=limit) as process:  # noqa: PLW1509
        process.stdout.readline()
        said = predicted(process.pid)
        real = fill(process)
        process.kill()
    row = said["limits"][0]
    assert row["name"] == "RLIMIT_AS"
    assert row["threads_left"] <= real <= row["threads_left_max"]
    assert said["stack_bytes"] == 128 << 10


def test_a_cgroup_of_the_tests_own_is_gone():
    """The tests above leave nothing behind."""
    if pids_root() is None:
        pytest.skip("no pids cgroup can be made here")
    with pids_cgroup(None, 7):
        pass
    assert not list(pids_root().glob(f"opskit-test-{os.getpid()}*"))


JAVA = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:CompressedClassSpaceSize=64m", "-cp", jvms.classes())


def start_java(version, *words):
    """The Java test program in an address space of 3 GiB; its standard input keeps it alive."""
    return subprocess.Popen(
        [jvms.java(version), *JAVA, *words], stdin=-1, stdout=-1, stderr=subprocess.STDOUT, text=True,
        preexec_fn=limitcases.rlimit("RLIMIT_AS", 3 << 30),  # noqa: PLW1509
    )  # fmt: skip


def filled(version):
    """What a JVM prints that starts threads until its address space is full; -Xss is in an argument file, which no command line shows."""
    with tempfile.NamedTemporaryFile("w") as options:
        options.write("-Xss600k\n")
        options.flush()
        with start_java(version, f"@{options.name}", "Workload", "sleep=100000") as process:
            return process.stdout.read()


FILLED = ForEach(filled, jvms.WHEELS, 2)


def test_a_jvm_fills_its_address_space_with_stacks_of_its_own(jvm_version, tmp_path):
    """As many threads as predicted until `unable to create native thread`."""
    options = tmp_path / "options"
    options.write_text("-Xss600k\n")
    with start_java(jvm_version, f"@{options}", "Workload", "sleep=3") as process:
        while process.stdout.readline() != "READY\n":
            assert process.poll() is None
        said = predicted(process.pid)
        process.kill()
    assert said["binding"] == "RLIMIT_AS"
    assert said["stack_bytes"] == 600 << 10
    out = FILLED.result(jvm_version)
    assert "unable to create native thread" in out
    failed = re.search(r'java.lang.Thread "sleep-(\d+)"', out)
    if failed:  # JDK 11 does not say which it was
        assert close_enough(said["threads_left"], int(failed[1]) - 3)


@pytest.fixture
def probe(opskit):
    """`--probe --yes` in a real process, which forks: what came of it, and the whole object."""

    def run(pid, *options):
        document = json.loads(opskit("limits", pid, "--probe", "--yes", "-f", "json", *options).out)
        return document["probe"], document

    return run


@pytest.mark.parametrize(
    ("words", "options", "call", "code"),
    [
        ("stacks of 16 TiB", (), "mprotect", "ENOMEM"),
        ("an unprivileged uid, nproc 40", (), "clone", "EAGAIN"),
        ("address space of 300 MiB", (), "mmap", "ENOMEM"),
        ("data of 200 MiB", (), "mprotect", "ENOMEM"),
        ("pids.max 30 on the parent, the leaf has none", ("--in-cgroup",), "clone", "EAGAIN"),
    ],
)
def test_a_probe_proves_it(words, options, call, code, probe):
    """Before: threads really start, at most the smaller of 8 and half of what is left. Full: the call that fails, its errno."""
    case = next(case for case in limitcases.cases() if case.words == words)
    if case.cgroup and pids_root() is None:
        pytest.skip("no pids cgroup can be made here")
    with child(case) as process:
        before, document = probe(process.pid, *options)
        left = document["threads_left"]
        if left:
            assert before["tried"] == before["started"] == min(8, (left - 1) // 2)
            assert before["failed_call"] is None
        fill(process)
        after, document = probe(process.pid, *options)
        if document["threads_left"] == 0:
            assert (after["started"], after["failed_call"], after["errno"]) == (0, call, code)
        # what the probe took is the application's again
        assert predicted(process.pid)["threads_left"] == document["threads_left"]


def test_a_look_writes_nothing_and_sends_no_signal():
    """Held against strace: what is opened for writing is its own oom_score_adj; no signal, no ptrace, no rlimit is set."""
    with child(Case("", "")) as process:
        done = traced("limits", process.pid, "--all", calls=(*OPENS, *ACTS, "prlimit64"))
    assert done.code == 0
    asked = done.of("prlimit64")
    assert [call for call in asked if ", NULL, {" not in call] == []
    assert [call for call in done.acting() if call not in asked] == []


def test_processes_that_come_and_go_while_they_are_looked_at(inprocess):
    """An answer or "it ended", never anything else."""
    for pause in range(12):
        with subprocess.Popen(["sleep", str(0.002 * pause)]) as process:
            reaper = threading.Thread(target=process.wait)
            reaper.start()
            done = inprocess("limits", process.pid, "--all", "-f", "json")
            reaper.join()
        assert done.code in (0, 2)
        if done.code == 2:
            assert f"no process {process.pid}" in done.err
        else:
            assert json.loads(done.out)["threads_left"] > 0


def test_a_process_that_ends_while_it_is_looked_at(inprocess, monkeypatch):
    """After its first file was read, before the last one: exit code 2."""
    process = subprocess.Popen(["sleep", "600"])
    count = collect.read_task_counts

    def ends(fs):
        process.kill()
        process.wait()
        return count(fs)

    monkeypatch.setattr(collect, "read_task_counts", ends)
    done = inprocess("limits", process.pid)
    assert (done.code, done.out) == (2, "")
    assert f"no process {process.pid}: it ended while it was looked at" in done.err


def test_a_probe_asks_first(opskit):
    """Without --yes and without a terminal: the plan on stderr, nothing started, the verdict all the same."""
    with child(Case("", "")) as process:
        done = opskit("limits", process.pid, "--probe", "-f", "json")
    assert done.code == 0
    assert "will start up to 8 threads with stacks of 8 MiB" in done.err
    assert "Nothing was changed; add --yes" in done.err
    assert json.loads(done.out)["probe"] is None


def test_a_probe_with_a_closed_stdin_asks_nobody():
    """As without a terminal."""
    command = f"{sys.executable} -m opskit limits {os.getpid()} --probe <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Nothing was changed; add --yes" in done.stderr


def test_a_probe_leaves_the_last_threads_alone(probe):
    """With two left it starts none."""
    with child(Case("", "", limitcases.rlimit("RLIMIT_NPROC", 3), uid=limitcases.UID)) as process:
        found, document = probe(process.pid)
    assert document["threads_left"] == 2
    assert (found["made"], found["started"]) == (False, 0)
    assert "the application's own last threads" in document["verdict"][1]


def test_a_probe_outside_the_cgroup_says_what_it_did_not_prove(opskit):
    """Threads start, but pids.max was not over them."""
    if pids_root() is None:
        pytest.skip("no pids cgroup can be made here")
    with child(Case("", "", cgroup=(None, 4))) as process:
        fill(process)
        done = opskit("limits", process.pid, "--probe", "--yes")
    assert done.code == 1
    assert "it was not under pids.max: add --in-cgroup" in done.out


def test_a_probe_may_not_act_as_another_user(as_nobody):
    """Only root takes on somebody else's limits."""
    done = as_nobody("limits", os.getpid(), "--probe", "--yes")
    assert done.returncode == 2
    assert f"run as root: sudo opskit limits {os.getpid()} --probe" in done.stderr


def test_a_probe_has_no_capabilities_no_fds_no_core_and_a_timer():
    """Held against strace: what the child gives up before the first thread starts."""
    with child(Case("", "", uid=limitcases.UID)) as process:
        names = ("capset", "prctl", "setitimer", "setresuid", "close_range", "clone3", "clone", "exit_group", "kill")
        calls = traced("limits", process.pid, "--probe", "--yes", calls=names).calls
    order = [
        "PR_SET_PDEATHSIG, SIGKILL",
        "setitimer(ITIMER_REAL",
        f"setresuid({limitcases.UID}, {limitcases.UID}, {limitcases.UID}",
        "permitted=0, inheritable=0",
        "PR_SET_DUMPABLE, SUID_DUMP_DISABLE",
        "CLONE_THREAD",
        "SIGKILL",
    ]
    at = 0
    for wanted in order:
        found = next((number for number in range(at, len(calls)) if wanted in calls[number]), None)
        assert found is not None, f"{wanted!r} does not come after {calls[at - 1]!r}: {calls}"
        at = found + 1
    assert any("effective=0" in call for call in calls)
    assert not list(Path("/proc").glob("[0-9]*/task/*/comm/opskit-probe"))
