"""Why a process cannot be sampled: in one line, with what to do."""

from __future__ import annotations

import errno
import os
import signal
import subprocess

import pytest
from forked import in_child
from limitcases import refuse_call
from shells import NOBODY, root_with
from users import reserved_user

from opskit.collect.cpu_rights import Situation, check_target, refusal, why_not
from opskit.errors import NoSuchProcess, NotPermitted, NotSupported
from opskit.host import Host
from opskit.proc.files.sysctl import read_sysctl
from opskit.proc.fs import ProcFS
from opskit.proc.treefs import TreeFS

PERF_EVENT_OPEN = 298
SUDO = "run as root: sudo opskit …"
OUTSIDE = "run opskit on the host, or in a container started with kubectl debug --profile=sysadmin …"


def said(part, code, advice=SUDO, **facts):
    error = refusal(Situation(42, part, code, os.strerror(code), advice, OUTSIDE, **{"paranoid": 2, **facts}))
    return f"{type(error).__name__}: {error}"


def test_every_refusal_is_one_line(golden):
    """For each cause, with the command that allows it."""
    lines = [
        said("events", errno.EACCES, paranoid=3),
        said("events", errno.EACCES, paranoid=4, is_owner=False),
        said("events", errno.EACCES, is_owner=False, advice=f"sudo -u '#7' opskit …, or {SUDO}"),
        said("events", errno.EACCES, advice="root lacks CAP_PERFMON here; …"),
        said("events", errno.EPERM, filtered=True),
        said("events", errno.ENOSYS, filtered=True),
        said("events", errno.EPERM),
        said("events", errno.ENOSYS, paranoid=None),
        said("events", errno.EMFILE, most_fds=4096),
        said("events", errno.ENFILE),
        said("events", errno.ENOMEM, mlock_kb=516),
        said("events", errno.ENOENT),
        said("events", errno.EOPNOTSUPP),
        said("events", errno.EINVAL),
        said("events", errno.EIO),
        said("memory", errno.EACCES, is_owner=False, advice=f"sudo -u '#7' opskit …, or {SUDO}"),
        said("memory", errno.EACCES),
        said("memory", errno.EACCES, yama=1),
        said("memory", errno.EPERM, yama=2),
        said("memory", errno.EACCES, yama=3),
        said("memory", errno.EIO),
    ]
    assert not any("\n" in line for line in lines)
    golden("cpu-rights.txt", "\n".join(lines) + "\n")


@pytest.fixture
def host():
    return Host(ProcFS())


@pytest.fixture
def sleeper():
    """A function that starts a sleeping process of a user."""
    started = []

    def start(user=None):
        started.append(subprocess.Popen(["sleep", "600"], user=user, group=user, extra_groups=[]))
        return started[-1].pid

    yield start
    for each in started:
        each.kill()
        each.wait()


def test_root_may(host, sleeper, root_only):
    """Nothing is refused."""
    reason = why_not(host, sleeper())
    if reason is not None and "seccomp" in reason:
        pytest.skip(reason)
    assert reason is None


def test_another_users_process(host, sleeper, as_user):
    """Its own user may, and root."""
    pid = sleeper(NOBODY)
    with reserved_user() as user:
        if user is None:
            pytest.skip("no system user is free")
        reason = as_user(user.pw_uid, lambda: why_not(host, pid), gid=user.pw_gid)
    assert reason.startswith(f"cannot sample {pid}: /proc/{pid}/mem: permission denied: it runs as another user; ")
    assert "run as root" in reason


def test_the_owner_may(host, sleeper, as_user):
    """Where perf_event_paranoid and Yama leave it to him; else each is named, with its sysctl."""
    paranoid = read_sysctl(host.fs, "kernel", "perf_event_paranoid")
    yama = read_sysctl(host.fs, "kernel", "yama", "ptrace_scope")
    with reserved_user() as user:
        if user is None:
            pytest.skip("no system user is free")
        pid = sleeper(user.pw_uid)
        reason = as_user(user.pw_uid, lambda: why_not(host, pid), gid=user.pw_uid)
    if yama:
        assert f"kernel.yama.ptrace_scope is {yama}" in reason
    elif paranoid is not None and paranoid > 2:
        assert f"kernel.perf_event_paranoid is {paranoid}" in reason
    else:
        assert reason is None


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_a_seccomp_filter(host, sleeper, root_only, code):
    """As in a container: it answers perf_event_open with EPERM or ENOSYS, whatever our capabilities."""
    pid = sleeper()

    def work():
        refuse_call(PERF_EVENT_OPEN, code)
        return why_not(host, pid)

    reason = in_child(work)
    assert reason.startswith(
        f"cannot sample {pid}: a seccomp filter forbids perf_event_open (a container or sandbox); run opskit on the host"
    )
    assert reason.endswith("docker run --security-opt seccomp=unconfined …")


def test_root_without_capabilities(sleeper, root_only, opskit_code):
    """A container's root: what it lacks is named."""
    pid = sleeper(NOBODY)
    reason = opskit_code(root_with("setuid"), f"print(why_not(Host(ProcFS()), {pid}))")
    assert "root lacks CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH here" in reason


@pytest.fixture
def opskit_code():
    """Run a line behind the words of another kind of shell."""
    import sys

    head = "from opskit.collect.cpu_rights import why_not; from opskit.host import Host; from opskit.proc.fs import ProcFS; "

    def run(shell, line):
        done = subprocess.run([*shell, sys.executable, "-c", head + line], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_processes_that_have_no_stacks_to_unwind(host):
    """No process, a zombie, a kernel thread."""
    with pytest.raises(NoSuchProcess):
        check_target(host, 4_194_304)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    with pytest.raises(NoSuchProcess, match="has ended"):
        check_target(host, child)
    os.waitpid(child, 0)
    if os.path.exists("/proc/2/stat") and not os.path.exists("/proc/2/exe"):
        with pytest.raises(NotSupported, match="kernel thread"):
            check_target(host, 2)


def test_machines_that_are_not_ours_to_read(host, tmp_path, sleeper):
    """Another architecture, a 32-bit program, a copy of /proc."""
    pid = sleeper()
    host.machine = "aarch64"
    with pytest.raises(NotSupported, match="on x86_64 only, and this is aarch64"):
        check_target(host, pid)

    class Small(ProcFS):
        def read_at(self, path, offset, size):
            return b"\x7fELF\x01"[:size] if path.endswith("/exe") else super().read_at(path, offset, size)

    with pytest.raises(NotSupported, match="32-bit program"):
        check_target(Host(Small()), pid)
    (tmp_path / "proc" / "42").mkdir(parents=True)
    with pytest.raises(NotPermitted, match="is a copy"):
        check_target(Host(TreeFS(str(tmp_path / "proc"), str(tmp_path))), 42)


def test_a_process_that_ends_while_it_is_opened(host, sleeper, root_only):
    """It is said so, not refused."""
    pid = sleeper()

    class Gone(ProcFS):
        def hold(self, path):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return super().hold(path)

    assert why_not(Host(Gone()), pid) == f"no process {pid}: it has just ended"
