"""async-profiler in real JVMs: what it finds, what is left behind, what is refused before anything is loaded."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import asyncprofiler
import pytest
from attaching import refused
from sampling import wait_for, wait_until_it_used

from opskit.actions import asprof, leftovers
from opskit.actions.asprof import profile_by_asprof
from opskit.collect.asprof import AsprofRequest
from opskit.errors import AttachError, NoSuchProcess, NotSupported
from opskit.host import Host
from opskit.jvm.attach.client import AttachClient
from opskit.proc.fs import ProcFS

APP = 1235
OWN_MOUNTS = ("unshare", "--mount", "sh", "-c")
RUN = (
    "import sys; from opskit import interrupts; interrupts.install()\n"
    "from opskit.actions.asprof import profile_by_asprof; from opskit.collect.asprof import AsprofRequest\n"
    "from opskit.host import Host\n"
    "print('up'); pid, library, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])\n"
    "found = profile_by_asprof(Host.at(None, None), AsprofRequest(pid, library, duration_s=seconds))\n"
    "print(found.profile.ended, found.profile.samples)"
)


def profiled(running, event="ctimer", seconds=0.3, hz=499.0, library=None):
    ask = AsprofRequest(running.pid, library or asyncprofiler.library(), event, hz, seconds)
    return profile_by_asprof(Host.at(None, None), ask)


def samples_of(found):
    return {thread.name: thread.samples for thread in found.profile.threads.values()}


def left(running, *places, by=None):
    """What we, or a process that was started, left in the JVM's /tmp (or other places), open in the JVM, or running in it."""
    root = Path(f"/proc/{running.pid}/root")
    ours = [f".opskit-{pid}-*" for pid in (os.getpid(), by and by.pid) if pid]
    files = [str(file) for place in places or ("tmp",) for name in ours for file in (root / place).glob(name)]
    links = [os.readlink(link) for link in Path(f"/proc/{running.pid}/fd").iterdir()]
    return [*files, *(link for link in links if ".opskit-" in link), *timers(running)]


def timers(running):
    """The POSIX timers of the process: async-profiler has one for each thread while it samples with ctimer."""
    return [line for line in Path(f"/proc/{running.pid}/timers").read_text().splitlines() if line.startswith("ID:")]


def copies(running):
    mapped = Path(f"/proc/{running.pid}/maps").read_text().splitlines()
    return {line.split(None, 5)[5] for line in mapped if "libasyncProfiler" in line}


def test_every_jdk_is_sampled_and_left_clean(workload, jvm_version):
    """CPU time by thread and method; the second run loads no second copy; no file, fd or timer is left, and no output."""
    running = workload("burn=4:1", "sleep=1", version=jvm_version)
    first = profiled(running)
    names = samples_of(first)
    assert first.event == "ctimer"
    assert first.unit == "samples"
    assert first.version == "4.0"
    assert names["burn-4"] > names.get("burn-1", 0)
    leaves = [(key.frames[0].name, count) for key, count in first.profile.stacks.items()]
    assert sum(count for name, count in leaves if name == "Workload.work") > 0.8 * first.profile.samples
    assert {frame.kind for key in first.profile.stacks for frame in key.frames} >= {"compiled"}
    assert first.profile.cpu_ms
    assert abs(first.profile.sampled_ms - first.profile.cpu_ms) < 0.3 * first.profile.cpu_ms + 30
    assert len(copies(running)) == 1
    again = profiled(running, "wall", 0.2)
    assert samples_of(again)["sleep-0"] > 0
    assert len(copies(running)) == 1
    assert "listener" in first.stays[1]
    assert len(again.stays) == 1
    assert not left(running)
    assert running.output() == "READY"


def test_allocations_and_locks_are_weighed(workload):
    """Bytes by class, nanoseconds by monitor."""
    running = workload("allocate=50000000", "blocked=1")
    found = profiled(running, "alloc", 0.4)
    assert found.unit == "bytes"
    assert found.profile.samples > 1 << 20
    assert any(key.frames[0].name == "byte[]" for key in found.profile.stacks)
    assert profiled(running, "lock", 0.1).unit == "ns"
    assert not left(running)


def test_a_jvm_of_another_user_in_its_own_mounts(workload, root_only):
    """The library is put where that user can read it, the stacks are written as that user; everything is removed."""
    become = ("setpriv", f"--reuid={APP}", f"--regid={APP}", "--clear-groups")
    script = 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"'
    running = workload("burn=1", wrapper=(*OWN_MOUNTS, script, "sh", *become))
    assert samples_of(profiled(running))["burn-1"] > 0
    assert profiled(running, seconds=0.2).profile.threads
    assert len(copies(running)) == 1
    assert not left(running)


def test_in_a_pid_namespace_threads_have_the_jvms_ids(workload, root_only):
    """TIDs are those that the JVM sees, and so are the CPU times."""
    script = 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"'
    unshared = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    running = workload("burn=1", wrapper=(*OWN_MOUNTS, script, "sh", *unshared))
    found = profiled(running)
    [(tid, thread)] = [(tid, each) for tid, each in found.profile.threads.items() if each.name == "burn-1"]
    assert tid < 100
    assert thread.cpu_ms
    assert not left(running)


def test_a_noexec_tmp_is_passed_over(workload, root_only):
    """Where /tmp is mounted noexec the next place is taken; where all are, the error names them, and nothing is loaded."""
    noexec = "mount -t tmpfs -o noexec,mode=1777 tmpfs"
    running = workload("burn=1", wrapper=(*OWN_MOUNTS, f'{noexec} /tmp && exec "$@"', "sh"))
    assert profiled(running).profile.samples
    assert next(iter(copies(running))).startswith("/var/tmp/")
    assert not left(running, "tmp", "var/tmp")
    script = f'{noexec} /tmp && {noexec} /var/tmp && {noexec} /dev/shm && exec "$@"'
    closed = workload("burn=1", wrapper=(*OWN_MOUNTS, script, "sh"))
    theirs = shutil.copy(asyncprofiler.library(), "/var/tmp/libasyncProfiler.so")  # hidden in its mount namespace
    try:
        with refused("tmp", "/tmp: mounted noexec.*/var/tmp: mounted noexec.*/dev/shm: mounted noexec"):
            profiled(closed, library=theirs)
    finally:
        os.unlink(theirs)
    assert not copies(closed)
    assert profiled(closed).profile.samples  # loaded from where it is
    assert copies(closed) == {asyncprofiler.library()}
    assert not left(closed, "tmp", "var/tmp", "dev/shm")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_session(workload, spawn, number):
    """The profiler is stopped, its stacks are read, everything is removed."""
    running = workload("burn=1")
    started = spawn(RUN, running.pid, asyncprofiler.library(), 60)
    wait_for(lambda: timers(running))
    wait_until_it_used(running.pid, 100)
    started.send_signal(number)
    said = started.stdout.read()
    assert said.startswith("interrupted ")
    assert int(said.split()[1]) > 0
    assert not left(running, by=started)


def test_a_killed_run_ends_by_itself(workload, spawn, monkeypatch):
    """Until then the next run says so and stops nothing; what it left is removed. Afterwards all is as before."""
    running = workload("burn=1")
    library = asyncprofiler.library()
    started = spawn(f"import opskit.actions.asprof as a; a._GRACE_S = 1\n{RUN}", running.pid, library, 0.9)
    wait_for(lambda: timers(running))
    started.kill()
    started.wait()
    assert left(running, by=started)
    with pytest.raises(NotSupported, match=r"already profiling .* for another opskit, or one that was killed"):
        profiled(running)
    assert timers(running)
    wait_for(lambda: not timers(running))
    assert profiled(running).profile.samples
    assert len(copies(running)) == 1
    assert not left(running, by=started)


def test_another_opskit_is_not_disturbed(workload, spawn):
    """The second is refused, the first gets its samples."""
    running = workload("burn=1")
    # A later session uses the copy of the earlier one again.
    for says in ("another opskit is profiling", "for another opskit"):
        first = spawn(RUN, running.pid, asyncprofiler.library(), 60)
        wait_for(lambda: timers(running))
        with pytest.raises(NotSupported, match=says):
            profiled(running)
        wait_until_it_used(running.pid, 100)
        first.send_signal(signal.SIGINT)
        assert int(first.stdout.read().split()[1]) > 0
        assert not left(running, by=first)


def test_a_session_of_someone_else_goes_on(workload, tmp_path):
    """The library of an installation that is profiling: refused. Once it is stopped, opskit uses a copy of its own."""
    running = workload("burn=1")
    theirs = shutil.copy(asyncprofiler.library(), tmp_path / "libasyncProfiler.so")
    client = AttachClient(ProcFS(), running.pid, 60)
    client.execute("load", str(theirs), "true", "start,event=cpu,interval=1ms")
    with pytest.raises(NotSupported, match=r"already profiling .*running for"):
        profiled(running)
    client.execute("load", str(theirs), "true", f"stop,collapsed,file={tmp_path}/stacks")
    assert (tmp_path / "stacks").stat().st_size
    assert profiled(running, seconds=0.2).profile.samples
    assert len(copies(running)) == 2
    assert not left(running)


def test_a_jvm_that_ends_writes_its_stacks_first(workload, spawn):
    """SIGTERM to the JVM: the samples until then. SIGKILL: an error, and nothing is left in /tmp."""
    for number, expected in ((signal.SIGTERM, "exited"), (signal.SIGKILL, "")):
        running = workload("burn=1")
        started = spawn(RUN, running.pid, asyncprofiler.library(), 60, stderr=subprocess.PIPE)
        wait_for(lambda running=running: timers(running))
        wait_until_it_used(running.pid, 100)
        running.signal(number)
        said, failed = started.communicate(timeout=60)
        assert said.startswith(expected)
        assert number != signal.SIGKILL or "the JVM was killed" in failed
        assert number != signal.SIGTERM or int(said.split()[1]) > 0
    assert not list(Path("/tmp").glob(f".opskit-{started.pid}-*"))


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        (("-XX:+DisableAttachMechanism",), AttachError, "DisableAttachMechanism"),
        (("-XX:-EnableDynamicAgentLoading",), NotSupported, "loads no library"),
    ],
)
def test_a_jvm_that_loads_nothing(workload, options, error, says):
    """Refused before anything is sent."""
    running = workload(options=("-Xmx64m", *options))
    with pytest.raises(error, match=says):
        profiled(running)
    assert running.output() == "READY"
    assert not left(running)


def test_a_jvm_that_has_ended(workload):
    """No such process."""
    running = workload("burn=1")
    running.stop()
    with pytest.raises(NoSuchProcess):
        profiled(running)


def test_what_the_profiler_refuses_is_said(workload, monkeypatch):
    """Its own error, from its log."""
    running = workload("burn=1")
    monkeypatch.setitem(asprof.UNITS, "no-such-event", "samples")
    with pytest.raises(NotSupported, match=r"failed to start in \d+ \(Workload\): .*(event|Event|perf)"):
        profiled(running, "no-such-event")
    assert profiled(running).profile.samples
    assert not left(running)


def test_output_that_is_too_large_is_not_read(workload, monkeypatch):
    """The limit holds, and everything is removed."""
    running = workload("burn=1")
    monkeypatch.setattr(asprof, "_LARGEST_OUTPUT_BYTES", 10)
    with refused("reply-too-large"):
        profiled(running)
    assert not left(running)


def test_a_link_with_a_leftovers_name_is_not_followed(workload, tmp_path):
    """Only directories of our own are emptied."""
    running = workload("burn=1")
    (tmp_path / "kept").touch()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    planted = Path("/tmp") / leftovers.new_name().replace(f"-{os.getpid()}-", f"-{dead.pid}-")
    planted.symlink_to(tmp_path)
    try:
        assert profiled(running).profile.samples
        assert (tmp_path / "kept").exists()
    finally:
        planted.unlink()


@pytest.mark.parametrize(
    ("reply", "code"), [(b"0\n", b"0"), (b"return code: 0\n", b"0"), (b"return code: 200\n", b"200")]
)
def test_the_replies_of_jdk_8_and_later(reply, code):
    """Before JDK 9 the number alone."""
    assert asprof._CODE.search(reply)[1] == code
