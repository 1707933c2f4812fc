"""`opskit doctor` that is interrupted, or whose reader is gone: it ends at once, and its child with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "opskit", "doctor", "--deadline", "30s"]


def wait_until(is_so, seconds=20):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


def has_ended(pid):
    """Whether it is gone, or a zombie that PID 1 has yet to reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def running():
    """A run whose checks wait for their second readings, and the PID of its child."""
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        wait_until(lambda: children.read_text(encoding="utf-8").strip())
        child = children.read_text(encoding="utf-8").split()[0]
        wait_until(lambda: Path(f"/proc/{child}/comm").read_text(encoding="utf-8") == "opskit-measure\n")
        yield process, child
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)]
)
def test_a_signal_ends_both(running, number, code):
    """Exit code 130 after Ctrl-C, else the signal; nothing is printed."""
    process, child = running
    process.send_signal(number)
    assert (*process.communicate(timeout=20), process.returncode) == ("", "", code)
    wait_until(lambda: has_ended(child))


def test_its_child_is_terminated(running):
    """SIGTERM to the child alone: what it has sent is shown, the others are gaps."""
    process, child = running
    os.kill(int(child), signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert (process.returncode in (0, 1, 2), "its process ended early" in out, err) == (True, True, "")


def test_nobody_reads_the_answer():
    """A closed pipe is no error; closed streams are no bug."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, "--only", "dentry"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode in (0, 1), done.stderr) == (True, b"")
    for closed in ("<&-", ">&-", "<&- >&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, "--only", "dentry"], capture_output=True, check=False
        )
        assert done.returncode in (0, 1, 2), closed
        assert b"bug" not in done.stderr


@pytest.mark.usefixtures("root_only")
def test_its_start_comes_first():
    """On a machine whose CPUs are overloaded, its imports alone would take seconds: it has the highest priority before them."""
    code = "import os, sys; sys.argv = ['opskit', *sys.argv[1:]]; import opskit.cli; print(os.getpriority(os.PRIO_PROCESS, 0))"
    nice = [subprocess.check_output([sys.executable, "-c", code, word], text=True) for word in ("doctor", "pipes")]
    assert nice == ["-20\n", f"{os.getpriority(os.PRIO_PROCESS, 0)}\n"]
