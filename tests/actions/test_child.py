"""Work in a child that may never end."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opskit.actions.child import run_in_child
from opskit.errors import BugInChild
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
    """What is no OSError ends the run as a bug does (exit 70), and is no errno."""
    with pytest.raises(BugInChild, match=r"unexpected exception in .*<lambda> of a child process"):
        run_in_child(host, lambda: {}["no such key"], 60)


def test_the_child_holds_nothing_of_ours(host, tmp_path):
    """No file or pipe of the parent is open in the child: one that is stuck keeps no reader waiting."""
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
    """None when the time ran out, and the child is no more."""
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
        pytest.fail("the child lives on")


def test_a_child_in_uninterruptible_sleep_does_not_hold_us(host, root_only):
    """A frozen child (cgroup v1: state D, deaf to SIGKILL) is what a sync on a hung mount looks like: we go on."""
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
    """However long the timeout is, the wait ends at Ctrl-C and its like, and the child is killed."""
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
    pytest.fail("the child lives on")
