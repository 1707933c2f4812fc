"""How a run ends: by a bug, a signal, two signals; signals in forked children."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Runs `opskit pipes` with BODY instead of its collector.
MAIN = """
import os, signal, sys, time
from opskit import cli, interrupts
from opskit.commands import pipes
def body(*args, **options):
{body}
pipes.Collector = body
sys.argv = ["opskit", "pipes"]
cli.main()
"""


def code_of(body):
    return MAIN.format(body="\n".join(f"    {line}" for line in body.splitlines()))


def ran(body, **env):
    return subprocess.run(
        [sys.executable, "-c", code_of(body)], capture_output=True, text=True, env={**os.environ, **env}, check=False
    )


def started(body, **options):
    """The same, left running after its first line. Its `input()` waits for communicate()."""
    process = subprocess.Popen(
        [sys.executable, "-c", code_of(body)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    process.stdout.readline()
    return process


# --- a bug ---


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise TypeError('no number')", "TypeError: no number"),
        ("raise ValueError('a\\x1b[31m\\nb')", "ValueError: a\\x1b[31m\\nb"),
        ("'\\ud800'.encode()", "UnicodeEncodeError: 'utf-8' codec"),
        ("def deep(): deep()\ndeep()", "RecursionError: maximum recursion depth exceeded"),
        ("raise PermissionError(13, 'Permission denied', '/x')", "PermissionError: [Errno 13] Permission denied: '/x'"),
        ("raise OSError(27, 'larger', '/x')", "OSError: [Errno 27] larger: '/x'"),  # names a file: not about the output
        ("raise AssertionError", "AssertionError"),
        ("raise ValueError('x' * 100000)", "ValueError: xxx"),
    ],
)
def test_a_bug_is_one_line_with_its_place_and_exit_70(body, said):
    """One line, no traceback, and not 1: that means a finding."""
    done = ran(body)
    assert done.returncode == 70
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith(f"opskit: this is a bug in opskit; report it with this line and the command line: {said}")
    assert " at opskit/commands/pipes.py:" in line
    assert "report it" in line
    assert "OPSKIT_DEBUG=1" in line
    assert len(line) < 600


def test_the_traceback_of_a_bug_is_shown_when_asked_for():
    """OPSKIT_DEBUG=1: the traceback, then the same line; exit 70."""
    done = ran("raise TypeError('no number \\x1b')", OPSKIT_DEBUG="1")
    assert done.returncode == 70
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Traceback")
    assert lines[-2] == "TypeError: no number \\x1b"
    assert lines[-1].startswith("opskit: this is a bug")


def test_too_little_memory_is_no_bug():
    """One line, exit 2."""
    done = ran("raise MemoryError")
    assert done.returncode == 2
    assert done.stderr.startswith("opskit: out of memory (MemoryError at opskit/commands/pipes.py:")


# --- a signal ---


def test_ctrl_c_ends_with_130():
    """Without any output."""
    process = started("print(flush=True); time.sleep(60)")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_unwinds_and_then_ends_the_process(number):
    """`finally` runs; the parent sees the signal."""
    process = started("try:\n    print(flush=True); time.sleep(60)\nfinally:\n    print('undone', flush=True)")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (-number, "undone\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_watch_shows_what_it_gathered_before_a_signal_ends_it(tmp_path, number):
    """Like Ctrl-C, and then it ends by the signal."""
    out = tmp_path / "seen.json"
    command = [sys.executable, "-m", "opskit", "pipes", str(os.getpid()), "-w", "-i", "60s", "-o", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    # Until the next sample; Python before 3.11 sleeps in select().
    while not re.search("nanosleep|poll|select", Path(f"/proc/{process.pid}/wchan").read_text()):
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (-number, "")
    assert out.read_text().startswith("{")
    assert os.listdir(tmp_path) == ["seen.json"]


def _sleeps(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


def test_what_nohup_ignores_stays_ignored():
    """SIGHUP does nothing to a run whose parent ignores it."""
    process = started(
        "print(flush=True); input(); print('whole', flush=True); sys.exit(5)",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    process.send_signal(signal.SIGHUP)
    out, _ = process.communicate("go on\n", timeout=60)
    assert (process.returncode, out) == (5, "whole\n")


def test_a_second_signal_does_not_abort_the_cleanup():
    """In a guard, signals after the first one wait."""
    process = started(
        "with interrupts.Guard():\n"
        "    try:\n"
        "        with interrupts.Interruptible():\n"
        "            print(flush=True); time.sleep(60)\n"
        "    finally:\n"
        "        print('undoing', flush=True); input(); print('undone', flush=True)\n"
    )
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "undoing\n"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
    out, err = process.communicate("go on\n", timeout=60)
    assert (process.returncode, out, err) == (-signal.SIGTERM, "undone\n", "")


def test_a_signal_in_a_guard_comes_when_it_is_left():
    """The guarded block runs to its end; what follows it does not start."""
    process = started(
        "with interrupts.Guard():\n    print(flush=True); input(); print('whole', flush=True)\n"
        "print('not reached', flush=True)\n"
    )
    process.send_signal(signal.SIGINT)
    out, err = process.communicate("go on\n", timeout=60)
    assert (process.returncode, out, err) == (130, "whole\n", "")


def test_a_signal_in_an_inner_guard_comes_in_the_outer_ones_interruptible_part():
    """Guards nest; the outer one cleans up as well."""
    process = started(
        "with interrupts.Guard():\n"
        "    try:\n"
        "        with interrupts.Interruptible():\n"
        "            with interrupts.Guard():\n"
        "                print(flush=True); input(); print('inner', flush=True)\n"
        "            print('not reached', flush=True)\n"
        "    finally:\n"
        "        print('outer', flush=True)\n"
    )
    process.send_signal(signal.SIGINT)
    out, err = process.communicate("go on\n", timeout=60)
    assert (process.returncode, out, err) == (130, "inner\nouter\n", "")


def test_a_second_ctrl_c_ends_a_long_report():
    """Outside of guards each signal raises."""
    process = started(
        "try:\n    print(flush=True); time.sleep(60)\nexcept KeyboardInterrupt:\n    print('report', flush=True); time.sleep(60)"
    )
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "report\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_a_forked_child_does_not_run_the_parents_cleanup():
    """It ends by the signal itself."""
    process = started(
        "child = 0\n"
        "print(flush=True)\n"
        "try:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        time.sleep(60)\n"
        "    print(child, flush=True)\n"
        "    status = os.waitpid(child, 0)[1]\n"
        "    print('ended by', os.WTERMSIG(status), flush=True)\n"
        "finally:\n"
        "    print('cleanup of', 'parent' if child else 'child', flush=True)\n"
        "sys.exit(0)\n"
    )
    child = int(process.stdout.readline())
    while not _sleeps(child):
        time.sleep(0.01)
    os.kill(child, signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert out.splitlines()[-2:] == ["ended by 15", "cleanup of parent"]


def test_a_picture_leaves_no_directory_where_there_is_no_home(tmp_path):
    """Matplotlib's cache directory in TMPDIR is removed."""
    pytest.importorskip("matplotlib")
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    (tmp_path / "x.svg").write_text("")
    env = {**os.environ, "HOME": "/proc/none", "TMPDIR": str(scratch)}
    for name in ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        env.pop(name, None)
    command = [sys.executable, "-m", "opskit", "dentry", "-o", str(tmp_path / "x.svg")]
    subprocess.run(command, env=env, stderr=subprocess.DEVNULL, check=True)
    assert os.listdir(scratch) == []
