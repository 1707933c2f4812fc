"""Work that may never end, in a child process."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opskit.actions.child import run_in_child
from opskit.errors import BugInChild, NotSupported
from opskit.host import Host

FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.fixture
def host():
    return Host.at(None, None)


def test_done(host):
    """0 when the work is done."""
    assert run_in_child(host, lambda: None, 60) == 0


def test_an_error_comes_back_as_its_number(host):
    """The errno of the OSError that the work raised."""

    def work():
        raise OSError(errno.EROFS, "read-only")

    assert run_in_child(host, work, 60) == errno.EROFS


def test_a_bug_in_the_child_is_one_of_ours(host):
    """An exception other than OSError ends the run as a bug (exit 70)."""
    with pytest.raises(BugInChild, match=r"unexpected exception in .*<lambda> of a child process"):
        run_in_child(host, lambda: {}["no such key"], 60)


def test_a_machine_that_starts_no_process(host, as_user):
    """An error that names the command to type."""

    def attempt():
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        run_in_child(host, lambda: None, 60)

    with pytest.raises(NotSupported, match=r"cannot start a child process: .*; opskit limits shows"):
        as_user(64321, attempt)


def test_the_child_holds_nothing_of_ours(host, tmp_path):
    """No file or pipe of the parent is open in the child, so that a stuck child blocks no reader."""
    out = tmp_path / "fds"

    def work():
        out.write_text(" ".join(os.readlink(f"/proc/self/fd/{fd}") for fd in (0, 1, 2)) + f" {os.getcwd()}")

    reading, writing = os.pipe()
    try:
        assert run_in_child(host, work, 60) == 0
    finally:
        os.close(reading)
        os.close(writing)
    assert out.read_text().split() == ["/dev/null"] * 3 + ["/"]


def test_a_child_that_takes_too_long_is_killed(host, tmp_path):
    """None after the timeout, and the child has ended."""
    mark = tmp_path / "pid"

    def work():
        mark.write_text(str(os.getpid()))
        time.sleep(600)

    assert run_in_child(host, work, 0.5) is None
    pid = int(mark.read_text())
    for _ in range(600):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            break
        if state == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child still runs")


def test_a_child_in_uninterruptible_sleep_does_not_hold_us(host, root_only):
    """A frozen child (cgroup v1: state D, immune to SIGKILL) behaves like a sync on a hung mount: we go on."""
    if not (FREEZER / "tasks").exists():
        pytest.skip("needs the v1 freezer, whose sleepers cannot be killed")
    group = FREEZER / f"opskit-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / "freezer.state").write_text("FROZEN")

        def work():
            (group / "cgroup.procs").write_text(str(os.getpid()))
            time.sleep(600)

        assert run_in_child(host, work, 1.0) is None
        [pid] = (group / "cgroup.procs").read_text().split()
        assert "State:\tD" in Path(f"/proc/{pid}/status").read_text()
    finally:
        (group / "freezer.state").write_text("THAWED")
        for _ in range(600):
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pass
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_heard_while_it_waits(tmp_path, number):
    """SIGINT, SIGTERM and SIGHUP end the wait before the timeout, and the child is killed."""
    code = (
        "import os, sys, time\nfrom opskit import interrupts\nfrom opskit.actions.child import run_in_child\n"
        "from opskit.host import Host\ninterrupts.install()\n"
        f"def work():\n    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n    time.sleep(600)\n"
        "print(flush=True)\n"
        "try:\n    run_in_child(Host.at(None, None), work, 600)\nexcept KeyboardInterrupt:\n    print('heard', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    mark = tmp_path / "pid"
    for _ in range(600):
        if mark.exists() and mark.read_text():
            break
        time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert out == "heard\n"
    for _ in range(600):
        if not Path(f"/proc/{mark.read_text()}").exists():
            return
        time.sleep(0.05)
    pytest.fail("the child still runs")


def open_files():
    """What the calling process has open."""
    names = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{fd}"))
        except FileNotFoundError:  # the listing's own
            continue
    return names


def assert_is_gone(pid):
    """The process does not exist, not even as a zombie."""
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("seconds", [0, 600])
def test_no_zombie_is_left(host, tmp_path, seconds):
    """A child that did its work, or that was killed when the time ran out, is collected."""
    mark = tmp_path / "pid"

    def work():
        mark.write_text(str(os.getpid()))
        time.sleep(seconds)

    assert run_in_child(host, work, 60 if seconds == 0 else 0.5) == (0 if seconds == 0 else None)
    assert_is_gone(int(mark.read_text()))


def test_a_child_is_killed_and_collected_whatever_ends_the_wait(tmp_path):
    """An exception out of the wait goes on to the caller, and the child is gone by then."""
    mark = tmp_path / "pid"
    host = Host.at(None, None)

    def work():
        mark.write_text(str(os.getpid()))
        time.sleep(600)

    def sleep(seconds):
        time.sleep(seconds)
        if mark.exists() and mark.read_text():
            raise ValueError("out of the wait")

    host.sleep = sleep
    with pytest.raises(ValueError, match="out of the wait"):
        run_in_child(host, work, 60)
    assert_is_gone(int(mark.read_text()))


def test_a_child_that_somebody_else_collected_is_no_second_error(host):
    """With SIGCHLD ignored the kernel reaps children itself: the caller gets ChildProcessError."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(ChildProcessError):
            run_in_child(host, lambda: None, 60)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_an_error_without_a_number_is_no_success(host):
    """255, which is no errno."""

    def work():
        raise OSError("no number")

    assert run_in_child(host, work, 60) == 255


def test_a_child_that_a_signal_ended_is_no_success(host):
    """The OOM killer may take it: 255."""
    assert run_in_child(host, lambda: os.kill(os.getpid(), signal.SIGKILL), 60) == 255


def test_the_child_has_no_file_of_ours_and_a_session_of_its_own(host, tmp_path):
    """A child that is left behind holds no pipe, and Ctrl-C does not reach it."""
    out = tmp_path / "seen"

    def work():
        seen = open_files()
        out.write_text(f"{seen} {os.getsid(0) == os.getpid()}")

    pipes = [os.pipe() for _ in range(8)]
    far = os.dup2(pipes[0][0], 1023)
    try:
        assert run_in_child(host, work, 60) == 0
    finally:
        for fd in (far, *(fd for pair in pipes for fd in pair)):
            os.close(fd)
    assert out.read_text() == f"{['/dev/null'] * 3} True"


def test_standard_input_and_output_are_usable(host):
    """The work can write to its output, which is discarded; its input is empty."""

    def work():
        os.write(1, b"x")
        os.write(2, b"x")
        if os.read(0, 1):
            raise OSError(errno.EBADF, "that was the parent's input")

    reading, writing = os.pipe()
    os.write(writing, b"x")
    ours = os.dup(0)
    os.dup2(reading, 0)
    try:
        assert run_in_child(host, work, 60) == 0
        assert os.read(0, 1) == b"x"
    finally:
        os.dup2(ours, 0)
        for fd in (reading, writing, ours):
            os.close(fd)


def test_the_end_is_noticed_soon_and_the_wait_costs_nothing(host):
    """The pauses between two looks double up to 50 ms."""
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        time.sleep(seconds)

    host.sleep = sleep
    assert run_in_child(host, lambda: time.sleep(0.7), 60) == 0
    assert len(pauses) < 100
    assert max(pauses) <= 0.05
    assert all(pause <= sum(pauses[:index]) + 0.001 for index, pause in enumerate(pauses))


def test_the_time_is_the_one_that_was_given(host):
    """In seconds of the host's clock: the wait ends at the deadline itself."""
    clock = [100.0]
    host.monotonic = lambda: clock[0]

    def sleep(_seconds):
        clock[0] += 1.0
        time.sleep(0.001)

    host.sleep = sleep
    assert run_in_child(host, lambda: time.sleep(600), 5) is None
    assert clock[0] == 105.0
