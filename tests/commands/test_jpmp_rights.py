"""`opskit jpmp --on-cpu` with fewer rights, in sandboxes and namespaces, and on JVMs that change meanwhile."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
from pathlib import Path

import jvms
import lesser
import pytest
from sampling import wait_until_it_samples, wait_until_it_used
from shells import CONTAINER

import opskit.actions.asprof
import opskit.analysis.jpmp.cpu_samples
import opskit.collect.cpu_profile
import opskit.commands.jpmp
import opskit.render.views.jpmp.cpu_profile  # noqa: F401  (a child that became another user cannot import)

APP, OTHER = 1237, 1238
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
SECONDS = "0.3s"
OWN_TMP = 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"'
UNSHARED = (
    "unshare",
    "--mount",
    "sh",
    "-c",
    OWN_TMP,
    "sh",
    "unshare",
    "--pid",
    "--fork",
    "--mount-proc",
    "--kill-child",
)

# On one worker with the other tests that set or depend on kernel.perf_event_paranoid.
pytestmark = [pytest.mark.usefixtures("root_only"), pytest.mark.xdist_group("kernel")]


@pytest.fixture(scope="module")
def jvm():
    """A JVM of another user that burns CPU time."""
    running = jvms.start("burn=4:2", version=21, user=APP, group=APP)
    yield running
    running.stop()


@pytest.fixture
def paranoid():
    """Set kernel.perf_event_paranoid; it is restored."""
    if os.environ.get("OPSKIT_TEST_HOST") != "1":
        pytest.skip("changes the host: set OPSKIT_TEST_HOST=1")
    before = PARANOID.read_text()
    yield lambda level: PARANOID.write_text(f"{level}\n")
    PARANOID.write_text(before)


@pytest.fixture
def sampled(inprocess):
    """Profile a PID with these rights: the JSON document, or what stderr has."""

    def run(pid, *more, **rights):
        done = lesser.call(
            lambda: inprocess("jpmp", pid, "--on-cpu", "--sampler", "unwind", "-F", 499, "--duration", SECONDS, "-f", "json", *more),
            **rights,
        )  # fmt: skip
        return json.loads(done.out) if done.code in (0, 1) else done.err

    return run


def frames_of(document):
    return {frame for stack in document["stacks"] for frame in stack["frames"]}


def check_works(document, scope):
    assert document["profiler"]["scope"] == scope
    assert any("Workload.work" in frame for frame in frames_of(document))


def test_root_the_owner_and_capabilities(jvm, sampled):
    """Root samples CPUs; the owner his threads, without the kernel; CAP_PERFMON CPUs; other users are refused in one line."""
    check_works(sampled(jvm.pid), "cpus")
    owners = sampled(jvm.pid, uid=APP)
    check_works(owners, "threads")
    assert not owners["profiler"]["kernel_seen"]
    check_works(sampled(jvm.pid, uid=APP, capabilities=["perfmon"]), "cpus")
    check_works(sampled(jvm.pid, uid=OTHER, capabilities=["perfmon", "sys_ptrace", "dac_read_search"]), "cpus")
    for capabilities in ((), ("perfmon",), ("perfmon", "sys_ptrace")):
        said = sampled(jvm.pid, uid=OTHER, capabilities=capabilities)
        assert f"cannot sample {jvm.pid}: /proc/{jvm.pid}/mem: permission denied: it runs as another user; " in said
        assert "sudo" in said
        assert "security module" not in said
        assert said.count("\n") == 1


@pytest.mark.parametrize("level", [-1, 0, 1, 2, 3, 4])
def test_every_level_of_perf_event_paranoid(jvm, sampled, paranoid, level):
    """The owner samples his JVM wherever this kernel allows it, with the kernel's frames up to 1; another user never."""
    paranoid(level)
    owners = sampled(jvm.pid, uid=APP)
    if isinstance(owners, str):  # a kernel of Debian or Ubuntu
        assert level > 2
        assert f"kernel.perf_event_paranoid is {level}" in owners
    else:
        check_works(owners, "cpus" if level < 1 else "threads")
        assert owners["profiler"]["kernel_seen"] == (level < 2)
    assert "it runs as another user" in sampled(jvm.pid, uid=OTHER)
    check_works(sampled(jvm.pid), "cpus")


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_a_seccomp_filter_as_of_a_container(jvm, sampled, inprocess, code):
    """The filter is named with what allows the call; without --sampler the dumps take over, and say why in one line."""
    for rights in ({}, {"uid": APP}):
        said = sampled(jvm.pid, forbidden=code, **rights)
        assert "a seccomp filter forbids perf_event_open" in said
        assert "docker run --cap-add PERFMON" in said
        assert "seccomp=unconfined" in said
        assert said.count("\n") == 1
    done = lesser.call(
        lambda: inprocess("jpmp", jvm.pid, "3", "0.05", "--on-cpu", "--by-thread", "-f", "text"), forbidden=code
    )  # fmt: skip
    assert done.code in (0, 1)
    assert ",burn-4\n" in done.out  # three dumps may all see it wait for its round
    assert "a seccomp filter forbids perf_event_open" in done.out + done.err


def test_root_of_a_container_lacks_two_capabilities(jvm, sampled):
    """With the filter that containers have, one line names all that is needed."""
    said = sampled(jvm.pid, capabilities=CONTAINER, forbidden=errno.EPERM)
    assert "root lacks CAP_PERFMON and CAP_SYS_PTRACE here" in said
    assert "--cap-add PERFMON --cap-add SYS_PTRACE" in said
    assert said.count("\n") == 1


def test_from_outside_of_a_container(workload, sampled):
    """Its JDK is only there, its PID inside is another: TIDs as the JVM has them, full names, Java and native symbols."""
    running = workload("burn=4:2", version=21, wrapper=UNSHARED)
    found = sampled(running.pid, "--by-thread")
    check_works(found, "cpus")
    names = frames_of(found)
    assert names >= {"burn-4", "JavaThread::run"} or names >= {"burn-4", "JavaThread::thread_main_inner"}


def end_it(running, number):
    wait_until_it_samples(os.getpid())
    wait_until_it_used(running.pid, 100)
    running.signal(number)


def test_the_end_of_the_jvm(workload, inprocess):
    """It ends while it is sampled: what there is so far, and that it has ended; no traceback."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        running = workload("burn=1", version=17)
        ends = threading.Thread(target=end_it, args=(running, number))
        ends.start()
        done = inprocess("jpmp", running.pid, "--on-cpu", "--sampler", "unwind", "--duration", "20s", "-f", "json")
        ends.join()
        assert done.code in (0, 1)
        assert json.loads(done.out)["ended"] == "exited"


def test_a_program_that_becomes_a_jvm(spawn, inprocess):
    """It calls exec meanwhile: the frames of both programs."""
    code = (
        "import os, sys, time\ndef spin():\n    ends = time.monotonic() + 1\n    while time.monotonic() < ends: sum(range(1000))\n"
        "print('up'); spin(); os.execv(sys.argv[1], ['java', '-Xmx64m', '-Xint', '-cp', sys.argv[2], 'Workload', 'burn=1'])"
    )
    started = spawn(code, jvms.java(17), jvms.classes())
    done = inprocess("profile", started.pid, "--sampler", "unwind", "--duration", "2.5s", "-f", "json")
    assert done.code in (0, 1), done.err
    names = frames_of(json.loads(done.out))
    assert any("Workload." in name for name in names)
    assert any("Py" in name or "python" in name for name in names)


@pytest.mark.parametrize("options", [("-XX:ReservedCodeCacheSize=2000m", "-XX:InitialCodeCacheSize=1000m"), ("-Xint",)])
def test_large_and_empty_code_caches(workload, sampled, options):
    """A code cache of 2 GB, and one without methods."""
    running = workload("burn=2", version=25, options=("-Xmx64m", *options))
    check_works(sampled(running.pid), "cpus")
