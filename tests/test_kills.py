"""What a killed run leaves: a few kills of each command; `python tests/support/kills.py 50` does more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import kills
import pytest
from atonce import ForEach
from hostcaches import needs_tracefs
from stracing import needs_strace

from opskit.actions import leftovers

KILLS = 4  # of each case: each signal once
# A run that writes to a file does all that the same run without -o does; of those that write to stdout a look, a watch and an attach are enough.
# These watches are interrupted by test_interrupts.py, too; `python tests/support/kills.py` kills them all the same.
ELSEWHERE = tuple(f"{name} -w" for name in ("tcp", "clock", "cswitch", "io"))
NAMES = [
    name
    for name in kills.CASES
    if (f"{name} -o x.json" not in kills.CASES or name in ("limits", "fds -w", "jpmp"))
    and not name.startswith(ELSEWHERE)
]


@pytest.fixture(scope="module")
def killed(request, root_only, initial_pid_namespace):
    """Kills the cases that were chosen, some side by side: their runs mostly wait. They share a JVM whose listener runs."""
    chosen = [item for item in request.session.items if item.path == request.path and "killed" in item.fixturenames]
    running = kills.workload()
    subprocess.run(
        [sys.executable, "-m", "opskit", "jpmp", str(running.pid), "1", "0.1"], check=True, capture_output=True
    )
    yield ForEach(
        lambda name: kills.run_case(name, KILLS, running.pid, 13), [item.callspec.params["name"] for item in chosen], 3
    )
    running.stop()


@pytest.mark.xdist_group("machine")  # its JVM would be seen by tests that look for all of them
@pytest.mark.parametrize("name", [name for name in NAMES if "--culprit" not in name])
def test_a_killed_run_leaves_nothing(killed, name):
    """SIGTERM, SIGHUP and SIGINT leave nothing; SIGKILL leaves files at most, and the next run removes them."""
    assert killed.result(name).problems == []


@pytest.mark.xdist_group("kernel")
@pytest.mark.parametrize("name", [name for name in NAMES if "--culprit" in name])
def test_a_killed_tracer_leaves_nothing(root_only, initial_pid_namespace, name):
    """Tracing instances too."""
    needs_tracefs()
    assert kills.run_case(name, KILLS, os.getpid(), 13).problems == []


WRITE = """
import sys
from opskit import interrupts
from opskit.actions import outfile
from opskit.errors import CannotWrite
interrupts.install()
try:
    outfile.write_file(sys.argv[1], b'"new"')
except (KeyboardInterrupt, CannotWrite):
    pass
interrupts.end_by_signal()
"""
RENAME = "rename,renameat,renameat2"


def write_under_strace(out, *options):
    """Write a file while strace injects signals and errors; return its output."""
    needs_strace()
    done = subprocess.run(
        ["strace", "-qq", "-f", *options, sys.executable, "-c", WRITE, out],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("call", ["openat", "write", "fchmod", RENAME])
def test_a_signal_at_each_call_of_the_writing_leaves_the_file_whole_or_as_it_was(tmp_path, call, number):
    """After each call that makes, fills and renames the file."""
    out = tmp_path / "x.json"
    out.write_text('"old"')
    which = ["-P", tmp_path] if call == "openat" else []
    seen = write_under_strace(out, *which, "-e", f"trace={call}", "-e", f"inject={call}:signal={number.name}")
    assert "(INJECTED)" in seen.stderr or f"--- {number.name}" in seen.stderr
    assert seen.returncode == (-number if number == signal.SIGTERM else 0)
    assert os.listdir(tmp_path) == ["x.json"]
    assert out.read_text() in ('"old"', '"new"')


def test_a_signal_in_the_cleanup_does_not_end_it(tmp_path):
    """The rename fails, and signals come while the temporary file is removed."""
    out = tmp_path / "x.json"
    out.write_text('"old"')
    seen = write_under_strace(
        out, "-e", f"trace={RENAME},unlink,unlinkat", "-e", f"inject={RENAME}:error=EIO:signal=SIGTERM",
        "-e", "inject=unlink,unlinkat:signal=SIGINT",
    )  # fmt: skip
    assert "EIO" in seen.stderr
    assert "unlink" in seen.stderr
    assert os.listdir(tmp_path) == ["x.json"]
    assert out.read_text() == '"old"'


def test_what_sigkill_left_bears_a_name_that_the_next_run_knows(tmp_path):
    """SIGKILL at the rename, then one run more."""
    out = tmp_path / "x.json"
    write_under_strace(out, "-e", f"trace={RENAME}", "-e", f"inject={RENAME}:error=EIO:signal=SIGKILL")
    [name] = os.listdir(tmp_path)
    assert leftovers.is_abandoned(name)
    subprocess.run([sys.executable, "-c", WRITE, out], check=True)
    assert os.listdir(tmp_path) == ["x.json"]
